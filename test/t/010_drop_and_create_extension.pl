# Proves: dropping the extension leaves tables and messages; made again, queue.adopt brings the queues back.
# How: DROP EXTENSION CASCADE with messages in every state, digests before and after, CREATE EXTENSION, adopt, use.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('contract');

sub sql { return $node->safe_psql('postgres', shift); }

create_all_states($node, 'postgres', 'states', 'states_qt');
sql(<<'SQL');
CREATE ROLE producer;
SELECT queue.create_queue('"Other Q"', 'states_qt', max_retries => NULL,
	retry_delay => '3 minutes', retention_time => NULL);
SELECT queue.create_queue('txt', payload_type => 'text', sort_list => 'commit_time');
SELECT queue.enqueue('txt', 'a'), queue.enqueue('txt', 'b');
SELECT queue.grant_queue_privilege('enqueue', 'states', 'producer');
SQL
my ($state, $err) = sqlstate_of($node, 'DROP EXTENSION queue');
is($state, '2BP01', 'without CASCADE it is refused') or diag($err);

my $messages = digest_messages($node, 'postgres', 'states_qt');
my $text = digest_messages($node, 'postgres', 'txt_qt');
my $settings = "SELECT view, queue_table, id, queue_type, is_default_exception, max_retries,
	retry_delay, retention_time FROM queue.queue ORDER BY view::text";
my $tables = 'SELECT relation, payload_type, sort_list, multiple_consumers, message_grouping
	FROM queue.queue_table ORDER BY relation::text';
my ($queues_before, $tables_before) = (sql($settings), sql($tables));

sql('SET client_min_messages = error; DROP EXTENSION queue CASCADE');
same(digest_messages($node, 'postgres', 'states_qt'), $messages, 'messages stay');
same(digest_messages($node, 'postgres', 'txt_qt'), $text, 'everywhere');
is(sql("SELECT count(*) FROM pg_proc WHERE pronamespace = (SELECT oid FROM pg_namespace
	WHERE nspname = 'queue')"), '0', 'the functions are gone');
is(sql("SELECT count(*) FROM pg_event_trigger"), '0', 'and the event trigger');

sql('CREATE EXTENSION queue');
($state, $err) = sqlstate_of($node, "SELECT * FROM queue.dequeue('states')");
is($state, '42P01', 'not known') or diag($err);
like($err, qr/HINT:.*adopt/, 'the hint names queue.adopt');
sql("SELECT queue.adopt('states_qt'); SELECT queue.adopt('txt_qt')");
same(sql($tables), $tables_before, 'queue tables are registered again');
same(sql($settings), $queues_before, 'queues are registered again, with settings');
same(digest_messages($node, 'postgres', 'states_qt'), $messages, 'messages are untouched');

sql(<<'SQL');
SELECT queue.start_queue('states');
SELECT queue.start_queue('"Other Q"');
SELECT queue.start_queue('txt');
SQL
is(join(',', drain_all($node, 'postgres', 'states')), '3,6,9,1,4,7,10,2,5,8', 'delivered');
is( sql(q{SELECT payload #>> '{}' FROM queue.dequeue('txt', max_messages => 5)}),
	"a\nb", 'the other table too');
sql(q{INSERT INTO "Other Q" (payload) VALUES ('{"n": 5}')});
is(join(',', drain_all($node, 'postgres', '"Other Q"')), '5', 'INSERT enqueues again');
($state, $err) = sqlstate_of($node, 'DELETE FROM states');
is($state, '0A000', 'DELETE is refused again') or diag($err);
($state, $err) = sqlstate_of($node, q{SET session_replication_role = replica;
	INSERT INTO states (payload) VALUES ('{}')});
isnt($state, '00000', 'INSERT where triggers are off is refused again');

# the triggers that publish plain inserts are back: a message put back by hand
# below the floor is delivered
sql(q{SELECT queue.enqueue('states', jsonb_build_object('n', i)) FROM generate_series(1, 3) i});
sql('CREATE TABLE aside AS SELECT * FROM states_qt WHERE state = 0;
	DELETE FROM states_qt WHERE msgid = (SELECT min(msgid::text)::uuid FROM aside);');
is(join(',', drain_all($node, 'postgres', 'states')), '2,3', 'the others');
sql('INSERT INTO states_qt SELECT * FROM aside ORDER BY msgid LIMIT 1');
is(join(',', drain_all($node, 'postgres', 'states')), '1', 'put back by hand');

is(sql("SELECT queue.drop_queue_table('states_qt', true) IS NULL"), 'f', 'and dropped');
is(sql("SELECT count(*) FROM pg_class WHERE relname LIKE '%states%'"), '0', 'nothing is left');
is(check_indexes($node, 'postgres'), '', 'amcheck is clean');

$node->stop;
done_testing();
