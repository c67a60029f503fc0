# Proves: a dequeue's work stays the same however many messages were consumed while another session held a snapshot.
# How: buffers touched by SELECT queue.dequeue (EXPLAIN ANALYZE, BUFFERS) before and after 20,000 were taken; no times.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

# without rotation, which would leave the dead ones out
my $node = new_queue_node('held', conf => 'queue.rotation = off');
my $session = session($node, timeout => 300);

# Shared buffers that one dequeue touches: the least of several, because the
# first ones extend caches.
sub buffers
{
	my ($queue, $arguments) = @_;
	my $least;
	for (1 .. 20)
	{
		my $plan = join "\n", $session->must(
			"EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off, COSTS off) "
			  . "SELECT * FROM queue.dequeue('$queue'$arguments)");
		$plan =~ /actual rows=1(?:\.00)? / or die "no message taken: $plan";
		# the plan's own node only: planning is apart
		$plan =~ s/^Planning.*//ms;
		my $all = 0;
		$all += $1 while $plan =~ /\b(?:hit|read)=(\d+)/g;
		$least = $all if !defined $least || $all < $least;
	}
	return $least;
}

my $fill = <<'SQL';
SELECT count(queue.enqueue('%s', jsonb_build_object('n', i), priority => 1 + i %% 3))
  FROM generate_series(%d, %d) i
SQL

for my $sort_list ('enq_time', 'priority,enq_time', 'commit_time')
{
	my $looks = $sort_list =~ /^priority/ ? 12 : 5;
	my $queue = 'q_' . ($sort_list =~ s/,/_/r);
	$session->must("SELECT queue.create_queue('$queue', sort_list => '$sort_list')");
	$session->must(sprintf $fill, $queue, 1, 25_000);
	my $before = buffers($queue, '');

	my $holder = session($node);
	$holder->must('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$holder->must('SELECT count(*) FROM pg_class');
	$session->must("SELECT count(*) FROM queue.dequeue('$queue', max_messages => 1000)")
	  for 1 .. 20;
	$session->must("VACUUM ${queue}_qt");
	my ($dead) = $session->must(
		"SELECT count(*) FROM pg_stat_user_tables WHERE n_dead_tup >= 20000 "
		  . "AND relid IN (SELECT relid FROM pg_partition_tree('${queue}_qt'))");
	my $after = buffers($queue, '');
	note("$sort_list: $before buffers before, $after after");
	# where the sort list begins with priority, each priority that has run empty
	# costs one look into its lane
	cmp_ok($after, '<=', $before + $looks, "$sort_list: flat behind 20,000 dead ones");

	# another session, which remembers nothing of its own
	my $fresh = session($node);
	(my $mine, $session) = ($session, $fresh);
	buffers($queue, '');
	my $other = buffers($queue, '');
	cmp_ok($other, '<=', $before + $looks, "$sort_list: flat for another session");
	$session->quit;
	$session = $mine;

	# taken and put back: no more work either
	$session->must('BEGIN');
	$session->must("SELECT count(*) FROM queue.dequeue('$queue', max_messages => 50)");
	$session->must('ROLLBACK');
	$session->must("SELECT count(*) FROM queue.dequeue('$queue', max_messages => 50)");
	my $put_back = buffers($queue, '');
	cmp_ok($put_back, '<=', $before + $looks, "$sort_list: flat after a rollback");

	# an empty queue costs little to look at, too
	$session->must("SELECT count(*) FROM queue.dequeue('$queue', max_messages => 100000)");
	$session->must(sprintf $fill, $queue, 1, 20);
	my $empty = buffers($queue, '');
	cmp_ok($empty, '<=', $before + $looks, "$sort_list: flat near the end");

	# the comparison can fail: without the floor it does
	$session->must(sprintf $fill, $queue, 1, 25);
	$session->must('SET queue.use_heads = off');
	my $without = buffers($queue, '');
	$session->must('RESET queue.use_heads');
	note("$sort_list: $without buffers without the head");
	cmp_ok($without, '>', $before + 100, "$sort_list: the test sees dead entries");
	$holder->must('ROLLBACK');
	$holder->quit;
}

# Depth does not matter either.
$session->must("SELECT queue.create_queue('deep')");
$session->must(sprintf $fill, 'deep', 1, 50);
my $shallow = buffers('deep', '');
$session->must(sprintf $fill, 'deep', 1, 50_000);
my $deep = buffers('deep', '');
cmp_ok($deep, '<=', $shallow + 6, "$shallow buffers with 30 messages, $deep with 50,000");

$session->quit;
$node->stop;
done_testing();
