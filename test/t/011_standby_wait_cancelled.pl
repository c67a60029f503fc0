# Proves: a commit that waits for a standby when it is cancelled, terminated or killed is a commit: what it sent is delivered once, what it took is gone (rule X4).
# How: no standby has the required name, so commits of sessions with synchronous_commit = on wait; others move the floor meanwhile.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('sync', conf => <<'CONF');
synchronous_standby_names = 'nobody'
synchronous_commit = local
CONF

sub send_to
{
	my ($who, $queue, @n) = @_;
	$who->must("SELECT queue.enqueue('$queue', '{\"n\": $_}')") for @n;
}

sub take_from
{
	my ($who, $queue, $count) = @_;
	return join ',', $who->must(
		"SELECT payload->>'n' FROM queue.dequeue('$queue', max_messages => $count)");
}

sub stored
{
	my ($queue) = @_;
	return $node->safe_psql('postgres',
		"SELECT coalesce(string_agg(payload->>'n', ',' ORDER BY msgid), '') FROM ${queue}_qt");
}

# End a session's wait.  What its client hears of the commit.
sub end_wait
{
	my ($how, $waiter) = @_;
	my $pid = $waiter->backend_pid;

	if ($how eq 'kill')
	{
		kill_backend($node, $pid);
		return $waiter->receive;
	}
	$node->safe_psql('postgres',
		"SELECT pg_${how}_backend($pid)");
	return $waiter->receive;
}

for my $how ('cancel', 'terminate', 'kill')
{
	my ($in, $out) = ("in_$how", "out_$how");
	$node->safe_psql('postgres', "SELECT queue.create_queue('$_')") for $in, $out;
	my ($waiter, $other) = (session($node), session($node));
	$waiter->must('SET synchronous_commit = on');

	# enqueue; a later message is consumed while the commit waits
	$waiter->must('BEGIN');
	send_to($waiter, $in, 1);
	send_to($other, $in, 2);
	$waiter->send('COMMIT');
	until_waiting($node, $waiter, 'SyncRep');
	is(take_from($other, $in, 10), '2', "$how: enqueue: in progress for others");
	is(take_from($other, $in, 10), '', "$how: enqueue: also when asked again");
	my $answer = end_wait($how, $waiter);
	is($answer->{state}, $how eq 'cancel' ? '00000' : '08006', "$how: enqueue: the answer");
	if ($how ne 'cancel')
	{
		ok($waiter->query('SELECT 1')->{lost}, "$how: the session has ended");
		($waiter, $other) = (session($node), session($node));
		$waiter->must('SET synchronous_commit = on');
	}
	is(stored($in), '1', "$how: enqueue: committed");
	is(take_from($other, $in, 10), '1', "$how: enqueue: delivered");
	is(take_from($other, $in, 10), '', "$how: enqueue: once");

	# dequeue, and what is sent on in the same transaction
	send_to($other, $in, 3, 4, 5);
	$waiter->must('BEGIN');
	is(take_from($waiter, $in, 2), '3,4', "$how: dequeue");
	send_to($waiter, $out, 3, 4);
	$waiter->send('COMMIT');
	until_waiting($node, $waiter, 'SyncRep');
	is(take_from($other, $in, 10), '5', "$how: dequeue: in progress for others");
	is(stored($in), '3,4', "$how: dequeue: still to be seen");
	is(take_from($other, $out, 10), '', "$how: dequeue: nothing sent on yet");
	$answer = end_wait($how, $waiter);
	is($answer->{state}, $how eq 'cancel' ? '00000' : '08006', "$how: dequeue: the answer");
	($waiter, $other) = (session($node), session($node)) if $how ne 'cancel';
	is(stored($in), '', "$how: dequeue: committed");
	is(take_from($other, $in, 10), '', "$how: dequeue: gone");
	is(take_from($other, $out, 10), '3,4', "$how: dequeue: sent on");
	is(take_from($other, $out, 10), '', "$how: dequeue: once");
	$_->quit for $waiter, $other;
}

is(check_indexes($node, 'postgres'), '', 'amcheck is clean');
$node->stop;
done_testing();
