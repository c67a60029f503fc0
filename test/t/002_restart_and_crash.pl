# Proves: a restart or a crash loses, doubles and reorders no committed message.
# How: messages in every state and open, prepared and finished transactions, then stop (fast, immediate) and start.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('crash');

sub enqueue
{
	my ($who, $queue, @n) = @_;
	$who->must("SELECT queue.enqueue('$queue', '{\"n\": $_}')") for @n;
}

sub dequeue
{
	my ($who, $queue, $count) = @_;
	return join ',', $who->must(
		"SELECT payload->>'n' FROM queue.dequeue('$queue', max_messages => $count)");
}

sub sql
{
	return $node->safe_psql('postgres', shift);
}

for my $how ('fast', 'immediate')
{
	create_all_states($node, 'postgres', "states_$how", "states_${how}_qt");
	sql("SELECT queue.create_queue('busy_$how', max_retries => NULL)");
	my $busy = "busy_$how";

	my $setup = session($node);
	enqueue($setup, $busy, 1 .. 8);
	is(dequeue($setup, $busy, 2), '1,2', "$how: consumed before the stop");

	# what is open at the stop: taken, sent, locked, and half of a savepoint
	my @open = map { session($node) } 1 .. 4;
	$_->must('BEGIN') for @open;
	is(dequeue($open[0], $busy, 2), '3,4', "$how: taken, not committed");
	enqueue($open[1], $busy, 900);
	$open[2]->must(
		"SELECT payload->>'n' FROM queue.dequeue('$busy', mode => 'locked')");
	$open[3]->must('SAVEPOINT s');
	is(dequeue($open[3], $busy, 1), '6', "$how: taken, then put back");
	$open[3]->must('ROLLBACK TO s');
	enqueue($open[3], $busy, 901);

	# prepared: one sends, one takes
	my $prepared = session($node);
	$prepared->must('BEGIN');
	enqueue($prepared, $busy, 11);
	$prepared->must("PREPARE TRANSACTION 'send_$how'");
	$prepared->must('BEGIN');
	enqueue($prepared, $busy, 902);
	$prepared->must("PREPARE TRANSACTION 'send_back_$how'");
	$prepared->must('BEGIN');
	is(dequeue($prepared, $busy, 1), '6', "$how: taken by a prepared one");
	$prepared->must("PREPARE TRANSACTION 'take_$how'");
	$prepared->must('BEGIN');
	is(dequeue($prepared, $busy, 1), '7', "$how: taken by another");
	$prepared->must("PREPARE TRANSACTION 'take_back_$how'");
	enqueue($prepared, $busy, 12);

	my $messages = digest_messages($node, 'postgres', "states_${how}_qt");
	my $catalog = digest_catalog($node, 'postgres');
	$node->stop($how);
	$_->vanish for @open;
	$node->start;

	same(digest_messages($node, 'postgres', "states_${how}_qt"),
		$messages, "$how: every state is as it was");
	same(digest_catalog($node, 'postgres'), $catalog, "$how: the catalog too");

	# before the prepared ones end: theirs stay away, the rest is there
	my $after = session($node);
	$after->must('BEGIN');
	is(dequeue($after, $busy, 20), '3,4,5,8,12',
		"$how: open ones are undone, prepared ones are left alone");
	$after->must('ROLLBACK');
	$after->must("COMMIT PREPARED 'send_$how'");
	$after->must("ROLLBACK PREPARED 'send_back_$how'");
	$after->must("COMMIT PREPARED 'take_$how'");
	$after->must("ROLLBACK PREPARED 'take_back_$how'");
	is(join(',', drain_all($node, 'postgres', $busy)), '3,4,5,7,8,11,12',
		"$how: each committed message once, in order");

	is(join(',', drain_all($node, 'postgres', "states_$how")),
		'3,6,9,1,4,7,10,2,5,8', "$how: ready ones, by priority");
	is( sql("SELECT string_agg(payload->>'n', ',' ORDER BY msgid)
			 FROM states_${how}_qt WHERE state = 2 AND payload->>'n' LIKE '10_'"),
		'101,102,103,104,105', "$how: journal");
	is( sql("SELECT string_agg((payload->>'n') || ' ' || expiration_reason, ','
				ORDER BY msgid) FROM states_${how}_qt WHERE state = 3"),
		'200 MAX_RETRY_EXCEEDED,201 TIME_EXPIRATION', "$how: exception queue");
	is( sql("SELECT count(*) FROM states_${how}_qt WHERE state = 1"),
		'4', "$how: waiting");
	$after->quit;
	$setup->quit;
	$prepared->quit;
}

# An exception queue can be emptied after a restart.
sql(q{SELECT queue.start_queue('"aq$_states_fast_qt_e"', enqueue => false)});
is( join(',', drain_all($node, 'postgres', '"aq$_states_fast_qt_e"')),
	'200,201', 'dequeue from the exception queue');

# A waiting message becomes due while the server is down.
sql("SELECT queue.create_queue('late')");
sql(q{SELECT queue.enqueue('late', '{"n": 1}', delay => '1 second')});
is(join(',', drain_all($node, 'postgres', 'late')), '', 'not yet due');
$node->stop('immediate');
$node->start;
ok( $node->poll_query_until('postgres',
		q{SELECT payload->>'n' = '1' FROM queue.dequeue('late', mode => 'browse')}),
	'due after the restart');
is(join(',', drain_all($node, 'postgres', 'late')), '1', 'and delivered once');

# msgids made after a crash lie above all that is stored
my $clock = session($node);
enqueue($clock, 'late', 2);
is( sql('SELECT (SELECT msgid FROM late) >= ALL
			(SELECT msgid FROM states_fast_qt UNION SELECT msgid FROM busy_fast_qt)'),
	't', 'msgids go on upwards');
$clock->quit;

# A killed backend: the server starts itself anew, nothing is lost.
my ($victim, $other) = (session($node), session($node));
$victim->must('BEGIN');
is(dequeue($victim, 'late', 1), '2', 'taken by the victim');
enqueue($other, 'late', 3);
kill_backend($node, $victim->backend_pid);
ok($victim->query('SELECT 1')->{lost}, 'the victim is gone');
is(join(',', drain_all($node, 'postgres', 'late')), '2,3', 'both are there');
is(check_indexes($node, 'postgres'), '', 'amcheck is clean');

$node->stop;
done_testing();
