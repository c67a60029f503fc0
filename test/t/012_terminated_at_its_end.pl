# Proves: a session that is cancelled or terminated between the end of its transaction and the publication of its keys publishes them, then ends; one that is terminated in a transaction gives back what it took.
# How: sessions are held at the stop point before_publish (debug builds): in COMMIT, ROLLBACK, ROLLBACK TO, and in the abort that the termination itself makes.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('terminate');
if (!has_debug_points($node))
{
	$node->stop;
	plan skip_all => 'not a debug build';
}
my ($ctl, $other) = (session($node), session($node));

sub take_all
{
	my ($queue) = @_;
	return join ',', $other->must(
		"SELECT (payload->>'n') || ':' || retry_count FROM queue.dequeue('$queue', max_messages => 10)");
}

sub one
{
	my ($who, $sql) = @_;
	my ($value) = $who->must($sql);
	return $value;
}

sub must_take
{
	my ($who, $queue, $expected) = @_;
	my ($n) = $who->must("SELECT payload->>'n' FROM queue.dequeue('$queue')");
	die "took $n, not $expected" if $n ne $expected;
}

sub enqueue
{
	my ($who, $queue, @n) = @_;
	$who->must("SELECT queue.enqueue('$queue', '{\"n\": $_}')") for @n;
}

# name, what the victim does in its transaction, its last statement, what
# others find while it is held, and afterwards (number:retry_count)
my @cases = (
	[ 'sent, committed', sub { enqueue($_[0], $_[1], 1) }, 'COMMIT', '2:0,3:0', '1:0' ],
	[ 'sent, rolled back', sub { enqueue($_[0], $_[1], 1) }, 'ROLLBACK', '2:0,3:0', '' ],
	[ 'taken, committed', sub { must_take($_[0], $_[1], 2) }, 'COMMIT', '3:0', '' ],
	[ 'taken, rolled back', sub { must_take($_[0], $_[1], 2) }, 'ROLLBACK', '3:0', '2:1' ],
	[ 'locked, committed',
		sub { $_[0]->must("SELECT FROM queue.dequeue('$_[1]', mode => 'locked')") },
		'COMMIT', '3:0', '2:0' ],
	# the first one is rolled back by the termination, which is no failed attempt
	[ 'a savepoint, rolled back to',
		sub {
			must_take($_[0], $_[1], 2);
			$_[0]->must('SAVEPOINT s');
			must_take($_[0], $_[1], 3);
		},
		'ROLLBACK TO s', '', '2:0,3:1' ],
	# terminated while idle, held in the abort
	[ 'taken, not ended', sub { must_take($_[0], $_[1], 2) }, undef, '3:0', '2:0' ],
	[ 'sent, not ended', sub { enqueue($_[0], $_[1], 1) }, undef, '2:0,3:0', '' ]);

my $number = 0;
for my $how ('terminate', 'cancel')
{
	for my $case (@cases)
	{
		my ($name, $act, $end, $held, $after) = @$case;
		my $queue = 'q' . ++$number;
		my $victim = session($node);
		my $pid = $victim->backend_pid;

		# without an end of its own only a termination ends it
		next if $how eq 'cancel' && (!defined $end || $end =~ /TO/);
		$ctl->must("SELECT queue.create_queue('$queue')");
		$victim->must("SET queue.debug_points = 'before_publish'");
		$victim->must('BEGIN');
		# what the victim sends lies before 2 and 3; what it takes is there
		$act->($victim, $queue) if $name =~ /sent/;
		enqueue($other, $queue, 2, 3);
		$act->($victim, $queue) if $name !~ /sent/;
		hold_point($ctl, 'before_publish');
		if (defined $end)
		{
			$victim->send($end);
			until_waiting($node, $victim, 'advisory');
			$ctl->must("SELECT pg_${how}_backend($pid)");
		}
		else
		{
			$ctl->must("SELECT pg_terminate_backend($pid)");
			until_waiting($node, $victim, 'advisory');
		}
		is(take_all($queue), $held, "$how: $name: held");
		is(one($ctl, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"),
			1, "$how: $name: still there");
		free_point($ctl, 'before_publish');
		if ($how eq 'terminate')
		{
			ok($node->poll_query_until('postgres',
					"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"),
				"$how: $name: the session ends");
		}
		else
		{
			is($victim->receive->{state}, '00000', "$how: $name: too late");
			is(one($victim, 'SELECT 1'), 1, "$how: $name: it goes on");
		}
		is(take_all($queue), $after, "$how: $name: afterwards");
		is(take_all($queue), '', "$how: $name: once");
		is(one($ctl, "SELECT count(*) FROM ${queue}_qt"), 0, "$how: $name: nothing is left");
		$victim->quit;
	}
}

is(check_indexes($node, 'postgres'), '', 'amcheck is clean');
$node->stop;
done_testing();
