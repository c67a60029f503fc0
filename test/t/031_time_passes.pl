# Proves: the monitor makes due messages ready, moves expired and exhausted ones to the exception queue, writes failed attempts down and empties the journal, without anybody dequeuing, each message once; nothing moves while it is off, and dequeues see to it then; an error in one queue table does not stop the others.
# How: the clock of every process is moved by a setting of debug builds; then states and counts are read from the queue table.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('time_passes');
my $session = session($node);
plan skip_all => 'needs a build with debug points' unless has_debug_points($node);

my @sort_lists = ('enq_time', 'priority,enq_time', 'enq_time,priority', 'commit_time');

# Move every process's clock, ours too; in seconds from the real one.
sub set_clock
{
	my ($seconds) = @_;
	$session->must("ALTER SYSTEM SET queue.debug_clock_offset = " . $seconds * 1_000_000);
	$session->must('SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT current_setting('queue.debug_clock_offset')::float8 = "
		  . $seconds * 1_000_000) or die 'the clock does not move';
}

sub set_monitor
{
	my ($value) = @_;
	$session->must("ALTER SYSTEM SET queue.monitor = $value");
	$session->must('SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT count(*) = " . ($value eq 'on' ? 1 : 0)
		  . " FROM queue.workers WHERE kind = 'monitor' AND pid IS NOT NULL")
	  or die 'the monitor does not follow';
}

# Is this what the messages of a queue table come to?
sub becomes
{
	my ($sql, $wanted, $what) = @_;
	my $ok = $node->poll_query_until('postgres', $sql, $wanted);
	ok($ok, $what) or diag(join "\n", $node->safe_psql('postgres', $sql),
		$session->must('SELECT * FROM queue.workers'));
}

sub states
{
	my ($table) = @_;
	return "SELECT string_agg(state || ':' || n, ' ' ORDER BY state)"
	  . " FROM (SELECT state, count(*) n FROM $table GROUP BY state) s";
}

sub drained
{
	my ($queue) = @_;
	return join ',', $session->must(
		"SELECT payload->>'n' FROM queue.dequeue('$queue', max_messages => 100000)");
}

# -- due messages ---------------------------------------------------------------

my $number = 0;
for my $sort_list (@sort_lists)
{
	my $q = 'due_' . ++$number;
	$session->must("SELECT queue.create_queue('$q', sort_list => '$sort_list')");
	$session->must("SELECT count(queue.enqueue('$q', jsonb_build_object('n', i),"
		  . " delay => '1 hour')) FROM generate_series(1, 1000) i");
	$session->must("SELECT count(queue.enqueue('$q', jsonb_build_object('n', i),"
		  . " delay => '3 hours')) FROM generate_series(1001, 1010) i");
}
sleep 1;
is(join(',', $session->must(states('due_1_qt'))), '1:1010', 'nothing is due');
set_clock(2 * 3600);
for my $n (1 .. $number)
{
	becomes(states("due_${n}_qt"), '0:1000 1:10', "$sort_lists[$n - 1]: due ones are ready, others are not");
}
set_clock(4 * 3600);
for my $n (1 .. $number)
{
	becomes(states("due_${n}_qt"), '0:1010', "$sort_lists[$n - 1]: those too");
	my $got = drained("due_$n");
	$got = join ',', sort { $a <=> $b } split /,/, $got if $n == 3;
	is($got, join(',', 1 .. 1010), "$sort_lists[$n - 1]: each once, in order");
}

# one that comes before what the monitor sleeps for
set_clock(0);
$session->must("SELECT queue.create_queue('soon')");
$session->must("SELECT queue.enqueue('soon', '{}', delay => '1 hour')");
sleep 1;
$session->must("SELECT queue.enqueue('soon', '{}', delay => '1 second')");
becomes(states('soon_qt'), '0:1 1:1', 'an earlier one wakes it');

# somebody waits for it, and knew of a later one
my $waiter = session($node);
$session->must("SELECT queue.dequeue('soon')");
$waiter->send("SELECT 'x' FROM queue.dequeue('soon', wait => '60 s')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM queue.workers WHERE kind = 'waiter'");
$session->must("SELECT queue.enqueue('soon', '{}', delay => '1 second')");
is(join(',', @{ $waiter->receive->{rows} }), 'x', 'a waiter gets it');

# locked and in progress
$session->must("SELECT queue.enqueue('soon', '{\"n\": 7}', delay => '2 hours')");
my ($msgid) = $session->must("SELECT msgid FROM soon_qt WHERE payload->>'n' = '7'");
my $other = session($node);
$other->must('BEGIN');
$other->must("SELECT 1 FROM soon_qt WHERE msgid = '$msgid' FOR UPDATE");
set_clock(3 * 3600);
becomes(states('soon_qt'), '0:1 1:1', 'what somebody has locked is left alone');
$other->must('COMMIT');
becomes(states('soon_qt'), '0:2', 'and done later');
$session->must("SELECT queue.enqueue('soon', '{}', delay => '2 hours')");
$other->must("BEGIN; SELECT queue.enqueue('soon', '{}', delay => '2 hours'); PREPARE TRANSACTION 'later'");
set_clock(6 * 3600);
becomes(states('soon_qt'), '0:3', 'what is prepared is left alone');
$other->must("COMMIT PREPARED 'later'");
becomes(states('soon_qt'), '0:4', 'and done when it is committed');
$session->must("SELECT queue.dequeue('soon', max_messages => 10)");

# -- expiration -------------------------------------------------------------------

set_clock(0);
$session->must("SELECT queue.create_queue('x'), queue.create_queue('x_own', 'x_qt', queue_type => 'exception')");
$session->must("SELECT queue.enqueue('x', '{\"n\": 1}', expiration => '1 hour')");
$session->must("SELECT queue.enqueue('x', '{\"n\": 2}', expiration => '1 hour', delay => '1 hour')");
$session->must("SELECT queue.enqueue('x', '{\"n\": 3}', expiration => '1 hour', exception_queue => 'x_own')");
$session->must("SELECT queue.enqueue('x', '{\"n\": 4}')");
$session->must("SELECT queue.enqueue('x', '{\"n\": 5}', expiration => '1 day')");
$session->must("SELECT count(queue.enqueue('x', jsonb_build_object('n', i), expiration => '1 hour')) FROM generate_series(11, 1010) i");
my $where = "SELECT string_agg(payload->>'n' || coalesce(q.view::text, '?') || m.state, ' ' ORDER BY (payload->>'n')::int)"
  . " FROM x_qt m LEFT JOIN queue.queue q ON q.queue_table = 'x_qt'::regclass AND q.id = m.queue_id WHERE (payload->>'n')::int < 10";
$other->must('BEGIN');
$other->must(q{SELECT 1 FROM queue.dequeue('x', condition => $$payload->>'n' = '1010'$$)});
set_clock(3600 + 1800);
becomes($where, '1"aq$_x_qt_e"3 2x0 3x_own3 4x0 5x0', 'expired ones go to their exception queue, nobody dequeues');
becomes("SELECT count(*) FROM x_qt WHERE state = 3", '1001', 'all of them, but one that is being consumed');
$other->must('ROLLBACK');
becomes("SELECT count(*) FROM x_qt WHERE state = 3", '1002', 'and that one later');
is(join(',', $session->must("SELECT DISTINCT expiration_reason, original_queue_id IS NOT NULL FROM x_qt WHERE state = 3")),
	'TIME_EXPIRATION|t', 'with reason and origin');
is(drained('x'), '2,4,5', 'the others are there');

# a named queue that is gone
$session->must("SELECT queue.create_queue('y'), queue.create_queue('y_own', 'y_qt', queue_type => 'exception')");
$session->must("SELECT queue.enqueue('y', '{\"n\": 1}', expiration => '1 hour', exception_queue => 'y_own')");
$session->must("SELECT queue.stop_queue('y_own'), queue.drop_queue('y_own')");
set_clock(5 * 3600);
becomes(states('y_qt'), '3:1', 'a named exception queue that is gone: the default one');
like($node->log_content, qr/exception queue public\.y_own of a message in queue "y" cannot be used/,
	'and the log says so') if $node->can('log_content');

# -- failed attempts ----------------------------------------------------------------

set_clock(0);
$session->must("SELECT queue.create_queue('f', max_retries => 2), queue.create_queue('f_late', 'f_qt', max_retries => 2, retry_delay => '1 hour')");
$session->must("SELECT queue.enqueue(q, jsonb_build_object('n', 1)) FROM unnest('{f,f_late}'::regclass[]) q");
sub fail_with
{
	my ($queue) = @_;
	$session->must('BEGIN');
	my @got = $session->must("SELECT payload->>'n' FROM queue.dequeue('$queue')");
	$session->must('ROLLBACK');
	return scalar @got;
}
fail_with($_) for 'f', 'f_late';
my $rows = "SELECT string_agg(state || ':' || retry_count, ' ' ORDER BY queue_id) FROM f_qt";
becomes($rows, '0:1 1:1', 'counts are written, and who is held back waits');
$node->restart;
$session = session($node);
becomes($rows, '0:1 1:1', 'a restart does not forget them');
is(fail_with('f_late'), 0, 'it is held back after the restart too');
set_clock(2 * 3600);
becomes($rows, '0:1 0:1', 'and comes back');
fail_with($_) for 'f', 'f_late';
set_clock(4 * 3600);
becomes($rows, '0:2 0:2', 'the second');
fail_with($_) for 'f', 'f_late';
becomes($rows, '3:3 3:3', 'one too many: to the exception queue, nobody dequeues');
is(join(',', $session->must("SELECT count(DISTINCT original_queue_id), min(expiration_reason) FROM f_qt")),
	'2|MAX_RETRY_EXCEEDED', 'with reason and origin');

# -- the journal ---------------------------------------------------------------------

set_clock(0);
$session->must("SELECT queue.create_queue('j', retention_time => '1 hour'), queue.create_queue('j_ever', 'j_qt', retention_time => NULL)");
$session->must("SELECT count(queue.enqueue(q, jsonb_build_object('n', i))) FROM unnest('{j,j_ever}'::regclass[]) q, generate_series(1, 500) i");
$session->must("SELECT count(*) FROM queue.dequeue('j', max_messages => 400)");
$session->must("SELECT count(*) FROM queue.dequeue('j_ever', max_messages => 400)");
becomes(states('j_qt'), '0:200 2:800', 'kept');
set_clock(1800);
$session->must("SELECT count(*) FROM queue.dequeue('j', max_messages => 50)");
set_clock(3600 + 600);
becomes(states('j_qt'), '0:150 2:450', 'those past retention are gone, no others');
$session->must("SELECT queue.alter_queue('j_ever', retention_time => '1 minute')");
becomes(states('j_qt'), '0:150 2:50', 'less is kept when less is to be kept');

# -- a damaged queue table -------------------------------------------------------------

set_clock(0);
$session->must("SELECT queue.create_queue('a_bad'), queue.create_queue('good')");
$session->must("SELECT queue.enqueue(q, '{}', delay => '1 hour', expiration => '1 hour') FROM unnest('{a_bad,good}'::regclass[]) q");
$session->must(<<'SQL');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'refused as %', current_user;
END $$
SQL
$session->must('CREATE ROLE nobody_special');
$session->must('GRANT CREATE, USAGE ON SCHEMA public TO nobody_special');
$session->must(<<'SQL');
DO $$
DECLARE r regclass;
BEGIN
	FOR r IN SELECT relid FROM pg_partition_tree('a_bad_qt') LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO nobody_special', r);
	END LOOP;
END $$
SQL
$session->must('CREATE TRIGGER refuse BEFORE INSERT ON a_bad_qt FOR EACH ROW EXECUTE FUNCTION refuse()');
set_clock(2 * 3600 - 1800);
becomes(states('good_qt'), '0:1', 'a damaged queue table does not stop the others');
becomes("SELECT last_error_job FROM queue.workers WHERE kind = 'monitor' AND errors > 0", 'due messages', 'it is shown');
set_clock(3 * 3600);
becomes(states('good_qt'), '3:1', 'nor later');
my $log = slurp_file($node->logfile);
my $times = () = $log =~ /job "due messages" failed: refused as nobody_special/g;
is($times, 1, 'it is logged once, and was done as the owner');
like($log, qr/at work on queue table "a_bad_qt"/, 'and which table it was');
$session->must('DROP TRIGGER refuse ON a_bad_qt');
becomes(states('a_bad_qt'), '3:1', 'and done when it can be');

# -- without a monitor ------------------------------------------------------------------

set_clock(0);
set_monitor('off');
$session->must("SELECT queue.create_queue('alone', max_retries => 0)");
$session->must("SELECT queue.enqueue('alone', '{\"n\": 1}', delay => '1 hour')");
$session->must("SELECT queue.enqueue('alone', '{\"n\": 2}', expiration => '1 hour')");
$session->must("SELECT queue.enqueue('alone', '{\"n\": 3}')");
set_clock(2 * 3600);
sleep 2;
is(join(',', $session->must(states('alone_qt'))), '0:2 1:1', 'off: nothing moves');
is(drained('alone'), '1,3', 'but what is due is delivered, what has expired is not');
is(join(',', $session->must(states('alone_qt'))), '3:1', 'it is moved by who sees it');

# the waiter's looks have passed the place where an earlier one comes in
$waiter = session($node);
$session->must("SELECT queue.create_queue('early')");
$session->must("SELECT queue.enqueue('early', '{\"n\": 1}', delay => '40 seconds')");
$waiter->send("SELECT payload->>'n' FROM queue.dequeue('early', wait => '60 s')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM queue.workers WHERE kind = 'waiter'");
for my $n (2 .. 4)
{
	$session->must("SELECT queue.enqueue('early', '{\"n\": $n}', delay => '50 seconds')");
	select undef, undef, undef, 0.2;
}
$session->must("SELECT queue.enqueue('early', '{\"n\": 5}', delay => '1 second')");
my $begun = time;
is(join(',', @{ $waiter->receive->{rows} }), '5', 'a waiter gets one that comes in before what it had seen');
cmp_ok(time - $begun, '<', 15, 'in time');

$session->must("SELECT queue.enqueue('alone', '{\"n\": 4}', delay => '1 hour')");
set_clock(4 * 3600);
set_monitor('on');
becomes(states('alone_qt'), '0:1 3:1', 'on again: it sees what there is');

# -- idle -----------------------------------------------------------------------------

set_clock(0);
sleep 3;
my $runs = "SELECT runs FROM queue.workers WHERE kind = 'monitor'";
my ($before) = $session->must($runs);
sleep 3;
my ($after) = $session->must($runs);
cmp_ok($after - $before, '<=', 1, 'an idle monitor sleeps');

# -- what is acknowledged is kept as long as it should be, and no longer ---------------

$session->must("SELECT queue.create_queue('acked', retention_time => '2 seconds')");
$session->must("SELECT queue.enqueue('acked', '{}')");
$session->must("SELECT 1 FROM queue.dequeue('acked')");
becomes('SELECT count(*) FROM acked_qt', '0', 'what is dequeued goes out of the journal');
$session->must("SELECT queue.enqueue('acked', '{}')");
$session->must("CREATE TEMP TABLE handed AS SELECT receipt FROM queue.receive('acked', '1 minute')");
$session->must('SELECT queue.ack(ARRAY(SELECT receipt FROM handed))');
my $acked_at = time;
becomes('SELECT count(*) FROM acked_qt', '0', 'so does what is acknowledged');
cmp_ok(time - $acked_at, '<', 20, 'in time, not at the heartbeat');

# -- a database that the monitor has just met ---------------------------------------

for my $i (1 .. 4)
{
	$node->safe_psql('postgres', "CREATE DATABASE fresh$i");
	$node->safe_psql("fresh$i", <<'SQL');
CREATE EXTENSION queue;
SELECT queue.create_queue('q');
SELECT queue.enqueue('q', '{}', expiration => '1 second');
SQL
	ok($node->poll_query_until("fresh$i", 'SELECT count(*) = 1 FROM q_qt WHERE state = 3'),
		"a new queue table is looked at in time, database $i");
	$node->safe_psql('postgres', "DROP DATABASE fresh$i");
}

$node->stop;
done_testing();
