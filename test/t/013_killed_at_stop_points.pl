# Proves: wherever a session is killed (SIGKILL) in an enqueue, a dequeue or the end of its transaction, each committed message is there once after the restart, and no other.
# How: a victim is killed at each stop point (debug builds) beside open, committed and prepared transactions; then all is drained and compared.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('kill');
if (!has_debug_points($node))
{
	$node->stop;
	plan skip_all => 'not a debug build';
}

sub enqueue
{
	my ($who, $queue, @n) = @_;
	$who->must("SELECT queue.enqueue('$queue', '{\"n\": $_}')") for @n;
}

sub take_sql
{
	my ($queue) = @_;
	return "SELECT payload->>'n' FROM queue.dequeue('$queue')";
}

sub must_take
{
	my ($who, $queue, $expected) = @_;
	my ($n) = $who->must(take_sql($queue));
	die "took $n, not $expected" if $n ne $expected;
}

# The victim has sent 21 and taken 1 when it is killed in its last statement.
my $undone = '1,2,5,6,7,8,24,25';
my $done_in_order_of_keys = '2,5,6,7,8,21,24,25';
my $number = 0;
for my $sort_list ('priority,enq_time', 'commit_time')
{
	my $by_commit = $sort_list eq 'commit_time';
	my @cases = (
		(map { [ $_, 'send', $undone ] } qw(before_lock before_insert after_insert)),
		(map { [ $_, 'take', $undone ] } qw(after_scan before_take before_floor)),
		(map { [ $_, 'COMMIT', $done_in_order_of_keys ] } qw(before_publish after_publish)),
		(map { [ $_, 'ROLLBACK', $undone ] } qw(before_publish after_publish)));
	# these are stored in the commit, and come after what has committed before
	@cases = (
		(map { [ $_, 'COMMIT', $undone ] } qw(before_lock before_insert after_insert)),
		(map { [ $_, 'COMMIT', '2,5,6,7,8,24,25,21' ] } qw(before_publish after_publish))
	) if $by_commit;

	for my $case (@cases)
	{
		my ($point, $last, $expected) = @$case;
		my $queue = 'q' . ++$number;
		my $name = "$sort_list: $point in $last";
		my ($ctl, $victim, $open, $done, $prepared) = map { session($node) } 1 .. 5;

		$ctl->must("SELECT queue.create_queue('$queue', sort_list => '$sort_list')");
		enqueue($ctl, $queue, 1 .. 8);
		$_->must('BEGIN') for $victim, $open;
		enqueue($victim, $queue, 21);
		must_take($victim, $queue, 1);
		enqueue($open, $queue, 23);
		must_take($open, $queue, 2);
		must_take($done, $queue, 3);
		enqueue($done, $queue, 24);
		$prepared->must('BEGIN');
		if ($by_commit)
		{
			# cannot be prepared when it has sent
			must_take($prepared, $queue, 4);
			$prepared->must("PREPARE TRANSACTION 'commit'");
			enqueue($prepared, $queue, 25);
		}
		else
		{
			must_take($prepared, $queue, 4);
			enqueue($prepared, $queue, 25);
			$prepared->must("PREPARE TRANSACTION 'commit'");
		}
		$prepared->must('BEGIN');
		must_take($prepared, $queue, 5);
		enqueue($prepared, $queue, 26) if !$by_commit;
		$prepared->must("PREPARE TRANSACTION 'rollback'");

		$victim->must("SET LOCAL queue.debug_points = '$point'");
		hold_point($ctl, $point);
		$victim->send($last eq 'send' ? "SELECT queue.enqueue('$queue', '{\"n\": 22}')"
			: $last eq 'take' ? take_sql($queue) : $last);
		until_waiting($node, $victim, 'advisory');
		kill_backend($node, $victim->backend_pid);
		ok($victim->receive->{lost}, "$name: killed");

		my $after = session($node);
		$after->must("COMMIT PREPARED 'commit'");
		$after->must("ROLLBACK PREPARED 'rollback'");
		is( join(',', $after->must(
				"SELECT DISTINCT retry_count, state FROM ${queue}_qt")),
			'0|0', "$name: nothing is a failed attempt");
		is(join(',', drain_all($node, 'postgres', $queue)), $expected,
			"$name: each committed message once, in order");
		is(join(',', $after->must("SELECT count(*) FROM ${queue}_qt")), '0',
			"$name: nothing is left");
		$_->vanish for $ctl, $victim, $open, $done, $prepared;
		$after->quit;
	}
}

is(check_indexes($node, 'postgres'), '', 'amcheck is clean');
$node->stop;
done_testing();
