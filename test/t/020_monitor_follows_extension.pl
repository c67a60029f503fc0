# Proves: a monitor comes with CREATE EXTENSION and goes with DROP EXTENSION, committed ones only, and is idle in between.
# How: several databases, rolled back and prepared commands, killed monitors, the setting off and on; wakeups are counted.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(time sleep);

# far more than it takes, far less than a nap
my $SOON = 5;

# rotation has a rhythm of its own
my $node = new_queue_node('follows', no_extension => 1, conf => "queue.rotation = off\n");
my $log = $node->logfile;

sub sql { return $node->safe_psql($_[1] || 'postgres', $_[0]); }

# databases with a monitor that has settled, as pg_stat_activity says
my $monitors = <<'SQL';
SELECT coalesce(string_agg(a.datname, ',' ORDER BY a.datname), '')
  FROM pg_stat_activity a WHERE a.backend_type = 'queue monitor'
SQL

sub soon
{
	my ($expected, $what) = @_;
	cmp_ok(seconds_until($node, 'postgres', $monitors, $expected), '<', $SOON, $what);
}

# nothing happens for so long that it would have
sub never
{
	my ($expected, $what) = @_;
	sleep 0.5;
	is(sql($monitors), $expected, $what);
}

is( sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'queue launcher'"),
	'1', 'the launcher runs');
never('', 'no extension, no monitor');

# create
sql("CREATE DATABASE $_") for qw(one two);
sql('CREATE EXTENSION queue', 'one');
soon('one', 'CREATE EXTENSION starts a monitor');
is( sql(q{SELECT kind, database, pid IS NOT NULL, starts, errors FROM queue.workers
	ORDER BY kind}, 'one'),
	"launcher||t|1|0\nmonitor|one|t|1|0", 'queue.workers shows both');
sql('CREATE EXTENSION queue', 'two');
soon('one,two', 'another database, another monitor');

my $session = session($node);
$session->must('BEGIN');
$session->must('CREATE EXTENSION queue');
$session->must("SELECT queue.create_queue('early')");
never('one,two', 'not before the commit');
$session->must('ROLLBACK');
never('one,two', 'not after a rollback');
$session->must('BEGIN');
$session->must('SAVEPOINT a');
$session->must('CREATE EXTENSION queue');
$session->must('ROLLBACK TO a');
$session->must('COMMIT');
never('one,two', 'not after a rollback to a savepoint');
$session->must('CREATE EXTENSION queue');
soon('one,postgres,two', 'the commit starts it');

# drop
$session->must('BEGIN');
$session->must('DROP EXTENSION queue');
$session->must('ROLLBACK');
never('one,postgres,two', 'DROP EXTENSION rolled back changes nothing');
is( sql("SELECT starts FROM queue.workers WHERE database = 'postgres'"),
	'1', 'it is the same monitor');
$session->must('DROP EXTENSION queue');
soon('one,two', 'DROP EXTENSION ends it');
is( sql("SELECT count(*) FROM queue.workers WHERE database = 'postgres'", 'one'),
	'0', 'and nothing is left of it');
for my $n (1 .. 5)
{
	$session->must('CREATE EXTENSION queue');
	$session->must('DROP EXTENSION queue');
	$session->must('CREATE EXTENSION queue');
	soon('one,postgres,two', "dropped and created again at once, $n");
	$session->must('DROP EXTENSION queue');
}
soon('one,two', 'and dropped');

# created again just when the monitor has found nothing and is about to leave
SKIP:
{
	my ($state) = sqlstate_of($node, 'SHOW queue.debug_points');
	skip 'not a debug build', 5 if $state ne '00000';

	sql("ALTER DATABASE postgres SET queue.debug_points = 'before_give_up'");
	$session->must('CREATE EXTENSION queue');
	soon('one,postgres,two', 'a monitor');
	$session->must("SELECT pg_advisory_lock(81, hashtext('before_give_up'))");
	$session->must('DROP EXTENSION queue');
	seconds_until($node, 'one',
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", '1');
	$session->must('CREATE EXTENSION queue');
	$session->must("SELECT pg_advisory_unlock_all()");
	sleep 0.3;
	soon('one,postgres,two', 'there still is one');
	sql('ALTER DATABASE postgres RESET queue.debug_points');

	# the dropping session is held after its commit is done and before its
	# invalidations are sent: who looks into a cache now finds the extension
	my $dropper = session($node);
	$dropper->must("SET queue.debug_points = 'before_publish'");
	$session->must("SELECT queue.create_queue('last')");
	$session->must("SELECT pg_advisory_lock(81, hashtext('before_publish'))");
	$dropper->must('BEGIN');
	$dropper->must("SELECT * FROM queue.dequeue('last')");
	$dropper->must('SET LOCAL client_min_messages = error; DROP EXTENSION queue CASCADE');
	$dropper->send('COMMIT');
	seconds_until($node, 'one',
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", '1');
	sleep 0.3;
	is( sql("SELECT state FROM pg_stat_activity WHERE backend_type = 'queue monitor'
		AND datname = 'postgres'", 'one'), 'idle', 'the monitor is not woken too early');
	$session->must("SELECT pg_advisory_unlock_all()");
	is($dropper->receive->{state}, '00000', 'dropped');
	soon('one,two', 'and the monitor is gone');
	$dropper->quit;
	$session->must('DROP TABLE last_qt CASCADE');
}
sql('CREATE ROLE keeper SUPERUSER');
sql('SET ROLE keeper; CREATE EXTENSION queue');
soon('one,postgres,two', 'made by a role');
sql('DROP OWNED BY keeper CASCADE');
soon('one,two', 'DROP OWNED ends it, too');

# two phases
$session->must('BEGIN');
$session->must('CREATE EXTENSION queue');
$session->must("PREPARE TRANSACTION 'create'");
never('one,two', 'not when it is prepared');
$session->must("COMMIT PREPARED 'create'");
soon('one,postgres,two', 'COMMIT PREPARED starts it');
$session->must('BEGIN');
$session->must('DROP EXTENSION queue');
$session->must("PREPARE TRANSACTION 'drop'");
never('one,postgres,two', 'prepared only');
$session->must("COMMIT PREPARED 'drop'");
soon('one,two', 'COMMIT PREPARED ends it');

# ended, by hand
sub pid_of { return sql("SELECT pid FROM queue.workers WHERE database = '$_[0]'", 'one'); }
my $pid = pid_of('two');
sql("SELECT pg_terminate_backend($pid)");
cmp_ok(
	seconds_until($node, 'one',
		"SELECT pid <> $pid FROM queue.workers WHERE database = 'two' AND state = 'sleeping'", 't'),
	'<', $SOON, 'a terminated monitor comes back');
is(sql("SELECT starts FROM queue.workers WHERE database = 'two'", 'one'),
	'2', 'it was started twice');
$pid = pid_of('two');
sql("SELECT pg_cancel_backend($pid)");
never('one,two', 'cancel does not end it');
is(pid_of('two'), $pid, 'it is the same');
my $launcher = sql("SELECT pid FROM queue.workers WHERE kind = 'launcher'", 'one');
sql("SELECT pg_terminate_backend($launcher)");
cmp_ok(
	seconds_until($node, 'one',
		"SELECT pid <> $launcher FROM queue.workers WHERE kind = 'launcher' AND state = 'sleeping'", 't'),
	'<', $SOON, 'so does the launcher');
soon('one,two', 'monitors stay meanwhile');
is(pid_of('two'), $pid, 'the same ones');
sql('CREATE EXTENSION queue');
soon('one,postgres,two', 'the new launcher works');
sql("SELECT pg_terminate_backend($pid)");
soon('one,postgres,two', 'also for monitors that it has not started');

# a server that crashes, and one that is restarted
kill_backend($node, pid_of('one'));
soon('one,postgres,two', 'all are back after a crash');
$node->restart;
soon('one,postgres,two', 'and after a restart');

# the setting
$node->append_conf('postgresql.conf', "queue.monitor = off\n");
$node->reload;
soon('', 'off ends all');
is( sql('SELECT DISTINCT state FROM queue.workers WHERE pid IS NULL', 'one'),
	'off', 'and the view says so');
sql('DROP EXTENSION queue; CREATE DATABASE three');
sql('CREATE EXTENSION queue', 'three');
never('', 'off is off');
$node->restart;
never('', 'also for those that start');
$node->append_conf('postgresql.conf', "queue.monitor = on\n");
$node->reload;
soon('one,three,two', 'on finds them all');

# idle: one wakeup, perhaps, that was under way, and no more
my $runs = 'SELECT sum(runs), count(*) FROM queue.workers';
my ($before) = sql($runs, 'one') =~ /^(\d+)\|4$/ or die;
sleep 4;
my ($after) = sql($runs, 'one') =~ /^(\d+)\|4$/ or die;
cmp_ok($after - $before, '<=', 1, 'an idle server does not wake them');
$node->append_conf('postgresql.conf', "queue.monitor_naptime = 1\n");
$node->reload;
($before) = sql($runs, 'one') =~ /^(\d+)/;
my $start = time;
sleep 3;
($after) = sql($runs, 'one') =~ /^(\d+)/;
cmp_ok($after - $before, '>=', 8, 'but for the heartbeat');
# four workers, one of them woken by the reload perhaps
cmp_ok($after - $before, '<=', 4 * (time - $start + 2), 'which is one in a nap');

$session->quit;
$node->stop;
unlike(slurp_file($log), qr/job "[^"]*" failed|PANIC:|TRAP:/,
	'no job has met an extension that is not there');
done_testing();
