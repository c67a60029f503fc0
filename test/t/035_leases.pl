# Proves: however receipts are used, by whom, and whatever dies meanwhile, each message is consumed once or lies in the exception queue, and nobody has it while another one's lease lasts; a waiting receiver wakes when a lease ends.
# How: sessions receive, acknowledge, give back and extend at random, also with receipts of others and old ones, and are terminated and killed; what was done stands in tables written by the same transactions, and is counted.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $soak = $ENV{QUEUE_SOAK};
my $seconds = $soak ? 60 : 6;
my $sessions = 6;
my $node = new_queue_node('leases', conf => "deadlock_timeout = '200ms'\nstatement_timeout = '60s'\n");
my $session = session($node);

$session->must(<<'SQL');
CREATE TABLE sent (queue regclass, msgid uuid);
CREATE TABLE delivered (
	id bigserial PRIMARY KEY, queue regclass, msgid uuid, receipt uuid, retry_count int,
	started timestamptz, ended timestamptz, lease interval);
CREATE TABLE settled (how text, receipt uuid, started timestamptz, lease interval);
CREATE TABLE consumed (queue regclass, msgid uuid, how text);
CREATE INDEX ON settled (receipt);
CREATE INDEX ON delivered (receipt);

-- One thing at random, in the caller's transaction.
CREATE FUNCTION step(q regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	pick float := random();
	time interval := make_interval(secs => 0.01 + random() * random() * 0.5);
	receipts uuid[];
	n int;
BEGIN
	IF pick < 0.1 THEN
		INSERT INTO sent SELECT q, queue.enqueue(q, '{}', priority => (random() * 3)::int) FROM generate_series(1, 3);
		RETURN 'sent';
	ELSIF pick < 0.4 THEN
		INSERT INTO delivered (queue, msgid, receipt, retry_count, started, ended, lease)
		SELECT q, r.msgid, r.receipt, r.retry_count, statement_timestamp(), clock_timestamp(), time
		FROM queue.receive(q, time, max_messages => 1 + (random() * 4)::int) r;
		GET DIAGNOSTICS n = ROW_COUNT;
		RETURN 'received ' || n;
	ELSIF pick < 0.45 THEN
		INSERT INTO consumed SELECT q, msgid, 'dequeue' FROM queue.dequeue(q);
		RETURN 'dequeued';
	END IF;
	SELECT array_agg(receipt) INTO receipts FROM (
		SELECT receipt FROM (SELECT * FROM delivered WHERE queue = q ORDER BY id DESC LIMIT 40) d
		WHERE random() < 0.1 OR NOT EXISTS (SELECT FROM settled s WHERE s.receipt = d.receipt AND s.how <> 'extend')
		ORDER BY random() LIMIT 1 + (random() * random() * 3)::int) p;
	BEGIN
		IF pick < 0.75 THEN
			n := queue.ack(receipts);
			INSERT INTO settled SELECT 'ack', unnest(receipts);
			INSERT INTO consumed SELECT queue, msgid, 'ack' FROM delivered WHERE receipt = ANY (receipts);
			RETURN 'acknowledged ' || n;
		ELSIF pick < 0.9 THEN
			n := queue.nack(receipts, CASE WHEN random() < 0.5 THEN '0' ELSE time END);
			INSERT INTO settled SELECT 'nack', unnest(receipts);
			RETURN 'given back ' || n;
		ELSE
			n := queue.extend(receipts, time);
			INSERT INTO settled SELECT 'extend', unnest(receipts), statement_timestamp(), time;
			RETURN 'extended ' || n;
		END IF;
	EXCEPTION WHEN SQLSTATE 'QU012' OR lock_not_available THEN
		RETURN 'refused ' || sqlstate;
	END;
END $$;
SQL

# Steps until the time is over; how they end goes into a file.
sub work
{
	my ($id, $until, $file, @queues) = @_;
	my $mine = session($node, lazy => 1);
	my %count;

	srand($id + time * 1000);
	while (time < $until)
	{
		if ($mine->is_lost || !$mine->is_open)
		{
			$mine->open or sleep 0.1;
			next unless $mine->is_open;
			$mine->query("SET application_name = 'stress'");
		}
		my $queue = $queues[ rand @queues ];
		my $fate = rand;
		my $answer;
		if ($fate < 0.7) { $answer = $mine->query("SELECT step('$queue')"); }
		else
		{
			# some in one transaction, with a part of it undone
			$mine->query('BEGIN');
			$answer = $mine->query("SELECT step('$queue')");
			$mine->query("SAVEPOINT s; SELECT step('$queue'); ROLLBACK TO s") if $fate < 0.8;
			$mine->query("SELECT step('$queue')") if $fate < 0.9;
			$mine->query($fate < 0.95 ? 'COMMIT' : 'ROLLBACK');
		}
		my $what = $answer->{rows}[0] || $answer->{state};
		$what =~ s/ \d$//;
		$count{$what}++;
	}
	open my $out, '>', $file or die "$file: $!";
	print $out "$_ $count{$_}\n" for sort keys %count;
	close $out;
}

sub play
{
	my ($faults, @queues) = @_;
	my $until = time + $seconds;
	my $dir = PostgreSQL::Test::Utils::tempdir;
	my (@children, %total);

	for my $id (1 .. $sessions)
	{
		my $pid = fork;
		die "fork: $!" unless defined $pid;
		if ($pid == 0)
		{
			my $done = eval { work($id, $until, "$dir/$id", @queues); 1 };
			print STDERR "session $id: $@" unless $done;
			POSIX::_exit($done ? 0 : 1);
		}
		push @children, $pid;
	}
	my $kills = 0;
	while (time < $until - 1)
	{
		sleep 0.3;
		next if $faults eq 'calm';
		my ($out, $rc);
		($rc, $out) = $node->psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE application_name = 'stress' ORDER BY random() LIMIT 1");
		next if $rc || !$out;
		if ($faults eq 'kill' && $kills < 2) { kill_backend($node, $out); $kills++; sleep 1; }
		else { $node->psql('postgres', "SELECT pg_terminate_backend($out)"); }
	}
	my $failed = 0;
	for my $child (@children) { waitpid $child, 0; $failed++ if $?; }
	is($failed, 0, "$faults: all sessions came to their end");
	for my $line (map { split /\n/, slurp_file("$dir/$_") } 1 .. $sessions)
	{
		my ($what, $n) = $line =~ /^(.*) (\d+)$/;
		$total{$what} += $n;
	}
	note("$faults: $_ $total{$_}") for sort keys %total;
	cmp_ok($total{$_} || 0, '>', 10, "$faults: $_") for 'received', 'acknowledged', 'given back', 'extended', 'refused QU012';
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'stress'");
	$session->query('SELECT 1');
	$session->open if $session->is_lost;
}

sub one { return join ',', $session->must($_[0]); }

# What is left is taken when its leases are over, and all is counted.
sub account
{
	my ($faults, @queues) = @_;
	sleep 0.7;
	for my $queue (@queues)
	{
		$session->must("INSERT INTO consumed SELECT '$queue', msgid, 'drain' FROM queue.dequeue('$queue', max_messages => 100000)");
		is(one("SELECT count(*) FROM $queue"), 0, "$faults: nothing is left in $queue");
		my $name = $queue . '_qt';
		$session->must("INSERT INTO consumed SELECT '$queue', msg_id, 'exception' FROM aq\$$name WHERE msg_state = 'EXPIRED'");
	}
	is(one('SELECT count(*) FROM (SELECT queue, msgid FROM sent EXCEPT ALL SELECT queue, msgid FROM consumed) x'),
		0, "$faults: none is lost");
	is(one('SELECT count(*) FROM (SELECT queue, msgid FROM consumed EXCEPT ALL SELECT queue, msgid FROM sent) x'),
		0, "$faults: none is consumed twice");
	is( one("SELECT count(*) FROM settled WHERE how <> 'extend' GROUP BY receipt HAVING count(*) > 1"),
		'', "$faults: no receipt is used up twice");
	is(one('SELECT count(*) FROM delivered GROUP BY receipt HAVING count(*) > 1'), '', "$faults: no receipt is given twice");
	is( one(<<'SQL'), 0, "$faults: nobody has a message while another one's lease lasts");
SELECT count(*) FROM delivered a
  JOIN delivered b ON b.msgid = a.msgid AND b.receipt <> a.receipt AND b.started > a.ended
 WHERE NOT EXISTS (SELECT FROM settled s WHERE s.receipt = a.receipt AND s.how = 'nack')
   AND b.ended < coalesce((SELECT min(s.started + s.lease) FROM settled s
                           WHERE s.receipt = a.receipt AND s.how = 'extend'), a.started + a.lease)
SQL
	is( one(<<'SQL'), 0, "$faults: each delivery is counted");
SELECT count(*) FROM (
	SELECT retry_count, row_number() OVER (PARTITION BY msgid ORDER BY retry_count) - 1 AS before
	FROM delivered) x WHERE retry_count < before
SQL
	is(one('SELECT count(*) FROM (SELECT DISTINCT msgid, retry_count FROM delivered) x'),
		one('SELECT count(*) FROM delivered'), "$faults: no two deliveries have the same count");
	note("$faults: " . one('SELECT string_agg(how || \' \' || n, \', \') FROM (SELECT how, count(*) AS n FROM consumed GROUP BY how) x'));
	$session->must('TRUNCATE sent, delivered, settled, consumed');
}

my $number = 0;
my @sort_lists = ('enq_time', 'priority,commit_time', 'enq_time,priority', 'commit_time', 'priority', 'enq_time');
for my $faults ('calm', 'terminate', 'kill')
{
	my @queues = ('a' . ++$number, 'b' . $number);
	my ($first, $second) = splice @sort_lists, 0, 2;
	$session->must("SELECT queue.create_queue('$queues[0]', sort_list => '$first', max_retries => NULL)");
	$session->must("SELECT queue.create_queue('$queues[1]', sort_list => '$second', max_retries => 2)");
	play($faults, @queues);
	account($faults, @queues);
}

# -- waiting --------------------------------------------------------------------

# A receiver that waits wakes when a lease ends that began after it fell
# asleep, and when a message is given back.
$session->must("SELECT queue.create_queue('w')");
$session->must("SELECT queue.enqueue('w', '1')");
my ($receipt) = $session->must("SELECT receipt FROM queue.receive('w', '1 hour')");
my $waiter = session($node);
$waiter->send("SELECT receipt FROM queue.receive('w', '1 hour', wait => '60 s')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM queue.workers WHERE kind = 'waiter'");
my $begun = time;
$session->must("SELECT queue.extend(ARRAY['$receipt']::uuid[], '1 s')");
my ($second) = @{ $waiter->receive->{rows} };
isnt($second, $receipt, 'a waiting receiver wakes when the lease ends');
cmp_ok(time - $begun, '>', 0.9, 'not before');
cmp_ok(time - $begun, '<', 10, 'soon');
$waiter->send("SELECT retry_count FROM queue.receive('w', '1 hour', wait => '60 s')");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM queue.workers WHERE kind = 'waiter'");
$session->must("SELECT queue.nack(ARRAY['$second']::uuid[], '0')");
is(join(',', @{ $waiter->receive->{rows} }), '2', 'and when the message is given back');

$node->stop;
done_testing();
