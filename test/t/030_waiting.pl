# Proves: a waiting dequeue is woken by whatever makes a message available, by as many messages as there are, and by nothing else; who is woken and takes nothing hands it on; waits end at once when they should; nothing is lost.
# How: sessions that wait are answered or not; which of them, and within which time.  Stop points hold a woken one.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = new_queue_node('waiting');
my $session = session($node);
my $ctl = session($node);

# Wait until so many sessions sleep in a wait for messages.
sub sleepers
{
	my ($count) = @_;
	return $node->poll_query_until('postgres',
		"SELECT count(*) = $count FROM queue.workers WHERE kind = 'waiter'");
}

sub waiter
{
	my ($sql, %option) = @_;
	my $waiter = session($node, %option);
	$waiter->must($option{first}) if $option{first};
	$waiter->send($sql || "SELECT payload->>'n' FROM queue.dequeue('q', wait => '60 s')");
	return $waiter;
}

# The answer, which must come soon.
sub soon
{
	my ($waiter, $rows, $what) = @_;
	my $begun = time;
	my $answer = $waiter->receive;
	my $took = time - $begun;
	is(join(',', @{ $answer->{rows} }), $rows, $what);
	cmp_ok($took, '<', 5, "$what: soon") or diag("$took s");
	return $answer;
}

sub fails
{
	my ($waiter, $state, $what) = @_;
	my $begun = time;
	my $answer = $waiter->receive;
	is($answer->{state}, $state, $what);
	cmp_ok(time - $begun, '<', 5, "$what: soon");
}

sub quiet
{
	my ($what, @waiters) = @_;
	sleep 0.3;
	is(scalar(grep { $_->ready(0) } @waiters), 0, $what);
}

sub send_messages
{
	my ($count, $arguments) = @_;
	$session->must("SELECT count(queue.enqueue('q', jsonb_build_object('n', i)"
		  . ($arguments || '') . ")) FROM generate_series(1, $count) i");
}

$session->must("SELECT queue.create_queue('q', max_retries => NULL)");

# -- commit, and not before -----------------------------------------------------

my $w = waiter();
ok(sleepers(1), 'a waiter is shown');
is( join(',', $session->must("SELECT backend_xid IS NULL FROM pg_stat_activity WHERE pid = " . $w->backend_pid)),
	't', 'it has no transaction id');
$session->must('BEGIN');
send_messages(1);
quiet('not woken before the commit', $w);
$session->must('COMMIT');
soon($w, '1', 'woken by the commit');

# -- n messages wake n -----------------------------------------------------------

my @many = map { waiter() } 1 .. 12;
ok(sleepers(12), 'twelve wait');
send_messages(5);
ok(sleepers(7), 'five messages wake five, seven wait on');
my @woken;
for (1 .. 200)
{
	@woken = grep { $_->ready(0) } @many;
	last if @woken == 5;
	sleep 0.05;
}
is(join(',', sort map { @{ $_->receive->{rows} } } @woken), '1,2,3,4,5', 'each has one');
my %woken = map { $_ => 1 } @woken;
@many = grep { !$woken{$_} } @many;
send_messages(7);
is(join(',', sort map { @{ $_->receive->{rows} } } @many), '1,2,3,4,5,6,7', 'the others are woken later');
$_->quit for @many, @woken;

# -- rollback -----------------------------------------------------------------------

for my $undo ('ROLLBACK', 'ROLLBACK TO s; COMMIT')
{
	send_messages(1);
	$session->must('BEGIN; SAVEPOINT s');
	$session->must("SELECT 1 FROM queue.dequeue('q')");
	$w = waiter();
	ok(sleepers(1), 'it waits for what is taken');
	$session->must($undo);
	soon($w, '1', "woken by $undo");
	$w->quit;
}

# -- two-phase commit -----------------------------------------------------------------

for my $end ('COMMIT', 'ROLLBACK')
{
	send_messages(1) if $end eq 'ROLLBACK';
	$session->must('BEGIN');
	$end eq 'COMMIT' ? send_messages(1) : $session->must("SELECT 1 FROM queue.dequeue('q')");
	$session->must("PREPARE TRANSACTION 'waiting'");
	$w = waiter();
	ok(sleepers(1), "it waits for what is prepared");
	$ctl->must("$end PREPARED 'waiting'");
	soon($w, '1', "woken by $end PREPARED");
	$w->quit;
}

# -- who is woken and takes nothing hands it on --------------------------------------------

for my $end ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $first = waiter('', first => "SET queue.debug_points = 'woken'");
	ok(sleepers(1), 'the first waits');
	my $second = waiter();
	ok(sleepers(2), 'the second waits');
	$ctl->must("SELECT pg_advisory_lock(81, hashtext('woken'))");
	send_messages(1);
	quiet("one message: the second is not woken", $second);
	$ctl->must("SELECT $end(" . $first->backend_pid . ')');
	soon($second, '1', "$end of who was woken: the other has it");
	$ctl->must('SELECT pg_advisory_unlock_all()');
	$first->receive;
	$second->quit;
}

# -- conditions -------------------------------------------------------------------------------

my $other = waiter("SELECT payload->>'n' FROM queue.dequeue('q', condition => 'correlation = ''b''', wait => '60 s')");
ok(sleepers(1), 'one waits for b');
my $plain = waiter();
ok(sleepers(2), 'one waits for anything');
send_messages(1, ", correlation => 'a'");
soon($plain, '1', 'a condition that is not met takes no wake-up away');
quiet('and waits on', $other);
send_messages(1, ", correlation => 'b'");
soon($other, '1', 'until it is met');
$_->quit for $other, $plain;

# -- time ----------------------------------------------------------------------------------------

send_messages(1, ", delay => '1.5 s'");
$w = waiter();
quiet('a delayed message is not there yet', $w);
soon($w, '1', 'woken when it is due');
$w->quit;

$w = waiter();
ok(sleepers(1), 'it waits');
send_messages(1, ", delay => '1.5 s'");
quiet('a delayed message that comes later is not there yet', $w);
soon($w, '1', 'woken when that is due');
$w->quit;

# who knows when the next one is due leaves with another: somebody else must know
my ($one, $two) = (waiter(), waiter());
ok(sleepers(2), 'two wait');
$session->must("SELECT queue.enqueue('q', '{\"n\": 1}', delay => '2 s')");
$session->must("SELECT queue.enqueue('q', '{\"n\": 2}')");
sleep 3;
is(join(',', sort map { @{ $_->receive->{rows} } } $one, $two), '1,2', 'both are delivered');
$_->quit for $one, $two;

$session->must("SELECT queue.alter_queue('q', retry_delay => '1.5 s')");
send_messages(1);
$session->must("BEGIN; SELECT 1 FROM queue.dequeue('q')");
$w = waiter();
ok(sleepers(1), 'it waits for what is taken');
$session->must('ROLLBACK');
quiet('held back after the failed attempt', $w);
soon($w, '1', 'woken when the retry delay is over');
$session->must("SELECT queue.alter_queue('q', retry_delay => '0')");
$w->quit;

# -- ends -----------------------------------------------------------------------------------------

$w = waiter("SELECT payload FROM queue.dequeue('q', wait => '0.4 s')");
soon($w, '', 'the wait is over');
$w->send("SET statement_timeout = '400ms'; SELECT payload FROM queue.dequeue('q', wait => NULL)");
fails($w, '57014', 'statement_timeout');
$w->must('RESET statement_timeout');
for my $call ("SELECT payload FROM queue.dequeue('q', wait => NULL)", "CALL queue.wait('q')",
	"SELECT queue.listen(ARRAY[(NULL, 'q', NULL)::queue.agent])")
{
	$w->send($call);
	ok(sleepers(1), "$call waits");
	$ctl->must('SELECT pg_cancel_backend(' . $w->backend_pid . ')');
	fails($w, '57014', "$call: cancelled");
	$w->must('SELECT 1');
	$w->send($call);
	ok(sleepers(1), "$call waits again");
	$ctl->must("SELECT queue.stop_queue('q')");
	fails($w, 'QU002', "$call: the queue is stopped");
	$ctl->must("SELECT queue.start_queue('q')");
	$w->send($call);
	ok(sleepers(1), "$call waits once more");
	$ctl->must('SELECT pg_terminate_backend(' . $w->backend_pid . ')');
	fails($w, '08006', "$call: terminated");
	ok(sleepers(0), 'nobody is left in the lists');
	$w = session($node);
}

# the same by a transaction that was prepared
for my $change ("SELECT queue.stop_queue('gone')", 'DROP TABLE gone_qt CASCADE')
{
	$session->must("SELECT queue.create_queue('gone')") if $change =~ /stop/;
	$session->must("SELECT queue.start_queue('gone')") if $change =~ /DROP/;
	$w = waiter("SELECT payload FROM queue.dequeue('gone', wait => NULL)");
	ok(sleepers(1), 'it waits');
	$session->must("BEGIN; $change; PREPARE TRANSACTION 'change'");
	quiet('prepared: it waits on', $w);
	$session->must("COMMIT PREPARED 'change'");
	fails($w, $change =~ /DROP/ ? '42P01' : 'QU002', "$change, prepared");
	$w->quit;
}

# a waiter holds no lock that stands in the way of a drop
for my $drop ("SELECT queue.drop_queue_table('gone_qt', force => true)", 'DROP TABLE gone_qt CASCADE')
{
	$session->must("SELECT queue.create_queue('gone')");
	$w = waiter("SELECT payload FROM queue.dequeue('gone', wait => NULL)");
	ok(sleepers(1), 'it waits');
	$session->must($drop);
	fails($w, '42P01', "$drop");
	$w->quit;
}

# -- wait() ---------------------------------------------------------------------------------------

for my $block ('', 'BEGIN;')
{
	$w = session($node);
	$w->send("$block CALL queue.wait('q')");
	ok(sleepers(1), 'wait() waits');
	is( join(',', $session->must("SELECT backend_xid IS NULL, backend_xmin IS NULL FROM pg_stat_activity WHERE pid = " . $w->backend_pid)),
		't|t', "without a snapshot or a transaction id $block");
	send_messages(1);
	soon($w, '', 'woken');
	is(join(',', $w->must("SELECT payload->>'n' FROM queue.dequeue('q')")), '1', 'the message is there');
	$w->must('COMMIT') if $block;
	$w->quit;
}
$w = waiter("CALL queue.wait('q', timeout => '0.3 s')");
soon($w, '', 'its timeout');
$w->must("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
$w->send("CALL queue.wait('q')");
ok(sleepers(1), 'in REPEATABLE READ it waits as well');
send_messages(1);
soon($w, '', 'and is woken');
$w->must("ROLLBACK; SELECT 1 FROM queue.dequeue('q')");

# woken by wait(), but never dequeues
$w->send("CALL queue.wait('q')");
ok(sleepers(1), 'the first waits');
my $next = waiter();
ok(sleepers(2), 'the second waits');
send_messages(1);
soon($w, '', 'the first is woken');
quiet('the second is not', $next);
$w->quit;
soon($next, '1', 'when the first has gone without dequeuing');
$next->quit;

# -- listen() -----------------------------------------------------------------------------------------

$session->must("SELECT queue.create_queue('\"Other queue\"'), queue.create_queue('r')");
my $agents = q{ARRAY[(NULL, 'q', NULL), (NULL, '"Other queue"', NULL), (NULL, 'r', NULL)]::queue.agent[]};
$w = waiter("SELECT (queue.listen($agents)).address");
ok(sleepers(3), 'one session listens for three queues');
$session->must("SELECT queue.enqueue('\"Other queue\"', '{}')");
soon($w, '"Other queue"', 'listen() says which queue');
soon(waiter("SELECT (queue.listen($agents)).address"), '"Other queue"', 'also when it has a message already');
$session->must("SELECT 1 FROM queue.dequeue('\"Other queue\"')");
soon(waiter("SELECT queue.listen($agents, timeout => '0.3 s') IS NULL"), 't', 'its timeout');
for my $case ([ 'NULL', '22004' ], [ "'{}'", '22023' ], [ "ARRAY[NULL]::queue.agent[]", '22004' ],
	[ "ARRAY[('c', 'q', NULL)]::queue.agent[]", '22023' ], [ "ARRAY[(NULL, 'none', NULL)]::queue.agent[]", '42P01' ],
	[ "ARRAY[(NULL, NULL, NULL)]::queue.agent[]", '22004' ])
{
	is($w->query("SELECT queue.listen($case->[0])")->{state}, $case->[1], "listen($case->[0])");
}
is($w->query("CALL queue.wait('q', timeout => '-1 s')")->{state}, '22023', 'a negative timeout');
is($w->query("CALL queue.wait('q', 'c')")->{state}, '22023', 'a consumer with a name');
is($w->query("CALL queue.wait(NULL)")->{state}, '22004', 'no queue');
$w->quit;

# -- a rare message, many waiters, many times: none sleeps beside a message --------------------------------

$session->must(<<'SQL');
CREATE TABLE got (n int);
CREATE PROCEDURE consume_waiting() LANGUAGE plpgsql AS $$
DECLARE k int; rounds int := 0;
BEGIN
	LOOP
		SELECT (payload->>'n')::int INTO k FROM queue.dequeue('r', wait => '20 s');
		EXIT WHEN k IS NULL OR k < 0;
		rounds := rounds + 1;
		INSERT INTO got VALUES (k);
		-- some give back what they have, some of those in a subtransaction
		IF rounds % 5 = 0 THEN
			ROLLBACK;
		ELSIF rounds % 7 = 0 THEN
			BEGIN
				PERFORM queue.dequeue('r');
				RAISE division_by_zero;
			EXCEPTION WHEN division_by_zero THEN NULL;
			END;
			COMMIT;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
END $$;
SELECT queue.alter_queue('r', max_retries => NULL);
SQL
my @consumers = map { my $s = session($node, timeout => 300); $s->send('CALL consume_waiting()'); $s } 1 .. 6;
ok(sleepers(6), 'six consumers wait');
my $slowest = 0;
for my $n (1 .. 150)
{
	my $begun = time;
	$session->must("SELECT queue.enqueue('r', jsonb_build_object('n', $n))");
	# every third one alone, others in a row
	next if $n % 3;
	while (1)
	{
		last if ($session->must('SELECT count(*) FROM got'))[0] == $n;
		die "message $n is not delivered" if time - $begun > 15;
		sleep 0.002;
	}
	$slowest = time - $begun if time - $begun > $slowest;
}
note("slowest: $slowest s");
cmp_ok($slowest, '<', 5, 'none sleeps beside a message');
is(($session->must('SELECT count(*) || \',\' || count(DISTINCT n) FROM got'))[0], '150,150',
	'lost = duplicated = unexpected = 0');
$session->must("SELECT count(queue.enqueue('r', '{\"n\": -1}')) FROM generate_series(1, 6)");
is(scalar(grep { $_->receive->{state} ne '00000' } @consumers), 0, 'the consumers end');

# -- faults ---------------------------------------------------------------------------------------------------

$w = waiter();
ok(sleepers(1), 'it waits');
send_messages(1);
soon($w, '1', 'woken');
$w = waiter();
ok(sleepers(1), 'it waits');
kill 'KILL', $w->backend_pid;
is($w->receive->{lost}, 1, 'killed');
$node->poll_query_until('postgres', 'SELECT true');
$session = session($node);
send_messages(1);
soon(waiter(), '1', 'after the restart everything works');
$w = waiter();
ok(sleepers(1), 'it waits');
kill 'KILL', $node->{_pid};
is($w->receive->{lost}, 1, 'the postmaster is gone: the wait ends');
$node->{_pid} = undef;

done_testing();
