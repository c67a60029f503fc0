# Proves: with no process or no slot left monitors wait and come when there is room; an error of a job is shown and goes no further.
# How: max_worker_processes and queue.max_monitors too small; a job made to fail by a setting of debug builds.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(sleep);

# the logical replication launcher takes one process, the queue launcher another
my $node = new_queue_node('limits', conf => "max_worker_processes = 3\n");

sub sql { return $node->safe_psql($_[1] || 'postgres', $_[0]); }
sub logged { my $n = () = slurp_file($node->logfile) =~ /$_[0]/g; return $n; }

my $sleeping = "SELECT coalesce(string_agg(database, ',' ORDER BY database), '')
	FROM queue.workers WHERE kind = 'monitor' AND state = 'sleeping'";

sub settled
{
	my ($expected, $what) = @_;
	cmp_ok(seconds_until($node, 'postgres', $sleeping, $expected), '<', 25, $what);
}

# processes
settled('postgres', 'one process, one monitor');
for my $name (qw(one two))
{
	sql("CREATE DATABASE $name");
	sql('CREATE EXTENSION queue', $name);
}
seconds_until($node, 'postgres',
	"SELECT string_agg(state, ',') FROM queue.workers WHERE pid IS NULL", 'waiting,waiting');
sql('CREATE DATABASE three');
sql('CREATE EXTENSION queue', 'three');
sleep 2.5;
is(logged('there is no worker process left'), 1, 'said once in the log');
sql("SELECT queue.create_queue('works'); SELECT queue.enqueue('works', '{\"n\": 1}')", 'two');
is(join(',', drain_all($node, 'two', 'works')), '1', 'queues work without');
sql("DROP DATABASE $_") for qw(two three);
settled('postgres', 'databases without a monitor can be dropped');
sql('DROP EXTENSION queue');
cmp_ok(seconds_until($node, 'one', $sleeping, 'one'), '<', 5, 'a process is free: the next one starts at once');

# slots
$node->append_conf('postgresql.conf', "max_worker_processes = 20\nqueue.max_monitors = 2\n");
$node->restart;
sql('CREATE EXTENSION queue');
settled('one,postgres', 'two slots, two monitors');
sql('CREATE DATABASE two');
sql('CREATE EXTENSION queue', 'two');
my $late = session($node, dbname => 'two');
$late->must("SELECT queue.create_queue('late')");
sleep 0.3;
is(sql($sleeping), 'one,postgres', 'and no third');
is(logged('no room for the monitor of another database'), 1, 'said once in the log');
$late->must("SELECT queue.enqueue('late', '{}')");
sql('DROP DATABASE one');
$late->must("SELECT queue.enqueue('late', '{}')");
settled('postgres,two', 'the next use takes the slot that was given up');
$late->quit;

SKIP:
{
	my ($state) = sqlstate_of($node, 'SHOW queue.debug_job_error');
	skip 'not a debug build', 1 if $state ne '00000';

	my $error = "SELECT errors > 0, last_error, last_error_sqlstate, last_error_job,
		last_error_at IS NOT NULL FROM queue.workers WHERE database = 'two'";
	$node->append_conf('postgresql.conf', "queue.debug_job_error = 'the first reason'\n");
	$node->reload;
	cmp_ok(
		seconds_until($node, 'postgres', $error, 't|the first reason|XX000|debug|t'),
		'<', 10, 'an error is shown');
	cmp_ok(
		seconds_until($node, 'postgres',
			"SELECT errors >= 3 FROM queue.workers WHERE database = 'two'", 't'),
		'<', 25, 'and the job tried again');
	is( sql("SELECT count(*) FROM queue.workers WHERE kind = 'monitor' AND pid IS NOT NULL
		AND starts = 1"), '2', 'the monitors live');
	is(logged('monitor for database "two".*the first reason'), 1, 'logged once');
	sql('CREATE ROLE reader LOGIN');
	is( $node->safe_psql('postgres', "SELECT errors > 0, last_error, last_error_sqlstate, last_error_job
		FROM queue.workers WHERE database = 'two'", extra_params => [ '-U', 'reader' ]),
		't|||', 'not everybody reads the text');
	my $long = 'x' . 'ü' x 300;
	$node->append_conf('postgresql.conf', "queue.debug_job_error = '$long'\n");
	$node->reload;
	cmp_ok(
		seconds_until($node, 'postgres',
			"SELECT last_error FROM queue.workers WHERE database = 'two'", 'x' . 'ü' x 127),
		'<', 25, 'a long one is cut between characters');
	is(logged("monitor for database \"two\".*$long"), 1, 'and logged');
	$node->append_conf('postgresql.conf', "queue.debug_job_error = ''\n");
	$node->reload;
	my $errors = "SELECT sum(errors) FROM queue.workers";
	sleep 1;
	my $before = sql($errors);
	sleep 3;
	is(sql($errors), $before, 'without the reason it works again');
}

# places of failed attempts: those of a database that is dropped, and of a
# queue table that is dropped in a database where nobody dequeues any more
sub fill_places
{
	my ($name) = @_;
	sql("CREATE DATABASE $name");
	sql(<<'SQL', $name);
CREATE EXTENSION queue;
SELECT queue.create_queue('many', max_retries => NULL);
SELECT queue.enqueue('many', '{}') FROM generate_series(1, 100);
BEGIN;
SELECT count(*) FROM queue.dequeue('many', max_messages => 100);
ROLLBACK;
SQL
}

sub retries
{
	my ($count) = sql(<<'SQL') =~ /^retries (\d+)$/m or die;
SELECT queue.enqueue('here', '{}') IS NULL;
BEGIN;
SELECT count(*) FROM queue.dequeue('here');
ROLLBACK;
SELECT 'retries ' || retry_count FROM queue.dequeue('here', mode => 'browse');
SELECT count(*) FROM queue.dequeue('here');
SQL
	return $count;
}

$node->append_conf('postgresql.conf', "queue.max_failed_attempts = 100\nqueue.max_monitors = 10\n");
$node->restart;
sql("SELECT queue.create_queue('here', max_retries => NULL)");
is(retries(), 1, 'a failed attempt counts');
fill_places('gone');
is(retries(), 0, 'not where there is no place');
sql('DROP DATABASE gone');
is(retries(), 1, 'the places of a dropped database are free');
fill_places('quiet');
sql("SELECT queue.drop_queue_table('many_qt', true)", 'quiet');
SKIP:
{
	skip 'not a debug build', 2 if (sqlstate_of($node, 'SHOW queue.debug_points'))[0] ne '00000';
	is(retries(), 0, 'no place again');
	$node->append_conf('postgresql.conf', "queue.monitor_naptime = 1\n");
	my ($offset, $freed) = (0, 0);
	for my $try (1 .. 40)
	{
		# the time between two sweeps is over
		$offset += 61_000_000;
		$node->append_conf('postgresql.conf', "queue.debug_clock_offset = $offset\n");
		$node->reload;
		sleep 0.5;
		$freed = retries();
		last if $freed;
	}
	ok($freed, 'the monitor gives back those of a dropped queue table');
}

$node->append_conf('postgresql.conf', "queue.monitor_naptime = 1\n");
$node->reload;
is(sql('SHOW queue.monitor_naptime'), '1s', 'naptime has its unit');

$node->stop;
done_testing();
