# Proves: whatever sessions do and however they die, each committed message is consumed once or lies in the exception table, unchanged and in order.
# How: 8 sessions make random transactions on queues of every sort list (calm, with terminated and cancelled sessions, with killed backends); then all is drained and counted against histories kept outside.
#
# Checked to go red when the code is broken on purpose: nothing published at
# abort, or at commit; the floor moved past what stops it; a taken row left
# undeleted; failed attempts not counted.  The barrier alone is too narrow a
# window for chance: the isolation specs late_insert and pair_order hold it open.
#
# QUEUE_SEED replays a plan, QUEUE_ROUND (a pattern) only some of its rounds;
# QUEUE_SOAK=1 runs longer, with several seeds.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueAccounting;
use QueueTest;
use Test::More;

my $soak = $ENV{QUEUE_SOAK};
my $sessions = 8;
my @seeds = $ENV{QUEUE_SEED} || 1 + int rand 1_000_000;
push @seeds, map { $seeds[0] + $_ } 1 .. 4 if $soak;
my $seconds = $ENV{QUEUE_STRESS_SECONDS} || ($soak ? 30 : 3);
my $rounds = $ENV{QUEUE_ROUND} || '';
my @sort_lists = (
	'enq_time', 'priority,enq_time', 'commit_time', 'enq_time,priority',
	'priority,commit_time', 'priority');
# histories stay when a directory is named for them
my $dir = $ENV{QUEUE_HISTORY_DIR} || PostgreSQL::Test::Utils::tempdir;
my $node = new_queue_node('stress', conf => <<'CONF');
autovacuum_naptime = 1s
statement_timeout = '60s'
deadlock_timeout = '200ms'
CONF
referee($node, $dir, $sessions);

# Segments are one block: messages have gone through many of them, and what is
# consumed is given back within seconds (but for the current one).
sub rotated
{
	my ($name) = @_;
	ok($node->poll_query_until('postgres', <<"SQL"), "$name: segments are truncated");
SELECT count(*) FILTER (WHERE pg_relation_filenode(relid) <> relid) > 0
       AND count(*) FILTER (WHERE pg_relation_size(relid) > 0) <= 1
  FROM pg_partition_tree('${name}_qt')
 WHERE isleaf AND parentrelid = (SELECT relid FROM pg_partition_tree('${name}_qt') ORDER BY relid LIMIT 1 OFFSET 1)
SQL
}

for my $seed (@seeds)
{
	note("QUEUE_SEED=$seed");
	print "# seed $seed\n";
	my $number = 0;
	for my $faults ('calm', 'terminate', 'kill')
	{
		# kills restart the server: two tables do
		my @lists = $faults eq 'kill' && !$soak ? @sort_lists[ 1, 2 ] : @sort_lists;
		my $duration = $faults eq 'kill' ? $seconds * 2 : $seconds;
		for my $sort_list (@lists)
		{
			my $name = sprintf 's%d_%s_%d', $seed, $faults, ++$number;
			next if $name !~ /$rounds/;
			diag("$name: $sort_list") if $soak;
			my @files = play($name, $sort_list, $faults, $seed * 10 + $number,
				$duration, shallow => $number % 2);
			drain($name);
			account($name, $faults, @files);
			rotated($name);
		}
	}
	# one consumer that rolls nothing back: the order of each session is whole
	for my $sort_list (@sort_lists)
	{
		my $name = sprintf 's%d_one_%d', $seed, ++$number;
		next if $name !~ /$rounds/;
		my @files = play($name, $sort_list, 'calm', $seed * 10 + $number,
			$seconds / 2, one_consumer => 1);
		drain($name);
		account($name, 'calm', @files);
	}
	is(check_indexes($node, 'postgres'), '', 'amcheck is clean');
}

$node->stop;
done_testing();
