-- Proves: a wrong call changes nothing, and says so with the right SQLSTATE, the object's name and a hint.
-- How: each wrong call in a table of its own line; nothing is stored after all of them; everything is rolled back.
\set ECHO none
\set QUIET 1
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS queue;
SELECT * FROM no_plan();

CREATE TYPE e_pair AS (a int, b text);
CREATE DOMAIN e_even AS int CHECK (VALUE % 2 = 0);
SELECT queue.create_queue('e_q');
SELECT queue.create_queue('e_pairs', payload_type => 'e_pair');
SELECT queue.create_queue('e_even_q', payload_type => 'e_even');
SELECT queue.create_queue('e_bytes', payload_type => 'bytea');
SELECT queue.create_queue('e_stopped');
SELECT queue.stop_queue('e_stopped');
SELECT queue.create_queue('e_in', 'e_q_qt');
SELECT queue.stop_queue('e_in', enqueue => true, dequeue => false);
SELECT queue.create_queue('e_exception', 'e_q_qt', queue_type => 'exception');
CREATE TABLE e_table (a int);
CREATE VIEW e_view AS SELECT 1 AS a;
CREATE ROLE e_nobody;

CREATE FUNCTION pg_temp.refused(statement text, state text, message text, hinted bool DEFAULT true)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	got_message text;
	got_hint text;
	got_detail text;
BEGIN
	BEGIN
		EXECUTE statement;
		RETURN NEXT fail('accepted: ' || statement);
		RETURN;
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS got_message = MESSAGE_TEXT, got_hint = PG_EXCEPTION_HINT,
			got_detail = PG_EXCEPTION_DETAIL;
		RETURN NEXT is(SQLSTATE, state, statement);
		RETURN NEXT ok(got_message ~ message, format('  says: %s [%s]', got_message, message));
		IF hinted THEN
			RETURN NEXT ok(got_hint <> '', '  and hints: ' || got_hint);
		END IF;
	END;
END $$;

CREATE TEMP VIEW stored AS
SELECT (SELECT count(*) FROM e_q_qt) + (SELECT count(*) FROM e_pairs_qt)
	+ (SELECT count(*) FROM e_even_q_qt) + (SELECT count(*) FROM e_bytes_qt)
	+ (SELECT count(*) FROM e_stopped_qt) AS messages,
	(SELECT count(*) FROM queue.queue) AS queues,
	(SELECT count(*) FROM pg_class) AS relations;
SELECT queue.enqueue('e_q', '{"n": 1}', correlation => 'c');
CREATE TEMP TABLE before AS SELECT * FROM stored;
CREATE TEMP TABLE ignore AS SELECT 1; -- counted, too
UPDATE before SET relations = (SELECT count(*) FROM pg_class);

-- unknown, wrong kind, NULL
SELECT pg_temp.refused($$SELECT queue.enqueue('e_none', '{}')$$, '42P01', 'e_none', false);
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue('e_none')$$, '42P01', 'e_none', false);
SELECT pg_temp.refused(format($$SELECT %s$$, call), '42P01', 'e_table')
FROM unnest(ARRAY[$$queue.enqueue('e_table', '{}')$$, $$queue.enqueue_array('e_table', '{}')$$,
	$$queue.dequeue('e_table')$$, $$queue.start_queue('e_table')$$, $$queue.stop_queue('e_table')$$,
	$$queue.alter_queue('e_table')$$, $$queue.drop_queue('e_table')$$,
	$$queue.grant_queue_privilege('all', 'e_table', 'e_nobody')$$]) call;
SELECT pg_temp.refused($$SELECT queue.enqueue('e_view', '{}')$$, '42P01', 'e_view');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_q_qt', '{}')$$, '42P01', 'e_q_qt');
SELECT pg_temp.refused($$SELECT queue.purge_queue_table('e_table')$$, '42P01', 'e_table');
SELECT pg_temp.refused($$SELECT queue.drop_queue_table('e_q')$$, '42P01', 'e_q');
SELECT pg_temp.refused($$SELECT queue.alter_queue_table('e_table', 'x')$$, '42P01', 'e_table');
SELECT pg_temp.refused(format('SELECT %s', call), '22004', message, false)
FROM (VALUES ($$queue.enqueue(NULL::regclass, '{}')$$, 'queue'),
	($$queue.enqueue(NULL::regclass, '{}'::jsonb)$$, 'queue'),
	($$queue.enqueue_array(NULL::regclass, '{}')$$, 'queue'),
	($$queue.enqueue_array('e_q', NULL::text)$$, 'payloads'),
	($$queue.dequeue(NULL::regclass)$$, 'queue'),
	($$queue.dequeue_as(NULL::jsonb, NULL)$$, 'queue'),
	($$queue.create_queue(NULL)$$, 'queue_name'),
	($$queue.create_queue('e_new', queue_type => NULL)$$, 'queue_type'),
	($$queue.create_queue_table(NULL)$$, 'queue_table'),
	($$queue.start_queue(NULL)$$, 'queue'),
	($$queue.start_queue('e_q', enqueue => NULL)$$, 'enqueue'),
	($$queue.stop_queue(NULL)$$, 'queue'),
	($$queue.stop_queue('e_q', wait => NULL)$$, 'wait'),
	($$queue.alter_queue(NULL)$$, 'queue'),
	($$queue.drop_queue(NULL)$$, 'queue'),
	($$queue.drop_queue_table(NULL)$$, 'queue_table'),
	($$queue.purge_queue_table(NULL)$$, 'queue_table'),
	($$queue.grant_queue_privilege(NULL, 'e_q', 'e_nobody')$$, 'privilege'),
	($$queue.grant_queue_privilege('all', NULL, 'e_nobody')$$, 'queue'),
	($$queue.grant_queue_privilege('all', 'e_q', NULL)$$, 'grantee'),
	($$queue.grant_system_privilege(NULL, 'e_nobody')$$, 'privilege'),
	($$queue.grant_system_privilege('manage_any', NULL)$$, 'grantee'),
	($$queue.adopt(NULL)$$, 'queue_table')) v (call, message);

-- a NULL where there is a default is the default
SELECT lives_ok(format('SELECT %s', call), call)
FROM unnest(ARRAY[$$queue.dequeue('e_pairs', mode => NULL)$$, $$queue.dequeue('e_pairs', navigation => NULL)$$,
	$$queue.dequeue('e_pairs', max_messages => NULL)$$, $$queue.dequeue('e_pairs', visibility => NULL)$$]) call;

-- payloads
SELECT pg_temp.refused($$SELECT queue.enqueue('e_q', '{"broken"')$$, '22P02', 'json', false);
SELECT pg_temp.refused($$INSERT INTO e_q (payload) VALUES ('{"broken"')$$, '22P02', 'json', false);
SELECT pg_temp.refused($$SELECT queue.enqueue('e_q', '\x00'::bytea)$$, 'QU007', 'e_q');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_q', now())$$, 'QU007', 'e_q');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_bytes', '{}'::jsonb)$$, 'QU007', 'e_bytes');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_bytes', 5)$$, 'QU007', 'e_bytes');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_pairs', '{"a": 1}'::jsonb)$$, 'QU007', 'e_pairs');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_pairs', ROW(1))$$, 'QU007', 'e_pairs');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_pairs', ROW(1, 'b', 3))$$, 'QU007', 'e_pairs');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_pairs', ROW('x', 'b'))$$, '22P02', 'integer', false);
SELECT pg_temp.refused($$SELECT queue.enqueue('e_even_q', 3)$$, '23514', 'e_even', false);
SELECT pg_temp.refused($$SELECT queue.enqueue('e_even_q', '3')$$, '23514', 'e_even', false);
SELECT pg_temp.refused($$SELECT queue.enqueue_array('e_even_q', '{2,4,5}')$$, '23514', 'e_even', false);
SELECT pg_temp.refused($$SELECT queue.enqueue_array('e_q', ARRAY[1.5, 2.5]::float8[])$$, 'QU007', 'e_q');
SELECT pg_temp.refused($$SELECT queue.enqueue_array('e_q', '{"{}", "{}"}',
	ARRAY[NULL]::queue.message_properties[])$$, '22023', 'differ in length');

-- times and numbers
SELECT pg_temp.refused(format($$SELECT queue.enqueue('e_q', '{}', %s)$$, argument), state, message, hinted)
FROM (VALUES
	('delay => ''-1 second''', '22023', 'delay', false),
	('expiration => ''-1 second''', '22023', 'expiration', false),
	('deliver_at => ''infinity''', '22023', 'time of delivery', false),
	('deliver_at => ''-infinity''', '22023', 'time of delivery', false),
	('delay => ''1 hour'', deliver_at => now()', '22023', 'de(lay|liver_at)', true),
	('delay => ''293000 years''', '22008', '', false),
	('expiration => ''293000 years''', '22008', '', false),
	('priority => 3000000000', '22003', 'priority', false),
	('visibility => ''sometimes''', '22023', 'visibility', true),
	('visibility => ''immediate''', '0A000', 'visibility', false),
	('delivery_mode => ''buffered''', '0A000', 'delivery_mode|buffered', false),
	('delivery_mode => ''paper''', '22023', 'delivery_mode', true),
	('sequence_deviation => ''middle''', '22023', 'sequence_deviation', true),
	('sequence_deviation => ''top''', '0A000', 'sequence_deviation', false),
	('recipients => ARRAY[ROW(''a'', NULL, NULL)::queue.agent]', '0A000', 'recipients|consumer', false)
	) v (argument, state, message, hinted);

-- dequeue
SELECT pg_temp.refused(format($$SELECT * FROM queue.dequeue('e_q', %s)$$, argument), state, message, hinted)
FROM (VALUES
	('mode => ''take''', '22023', 'mode', true),
	('mode => ''''', '22023', 'mode', true),
	('navigation => ''back''', '22023', 'navigation', true),
	('navigation => ''next_transaction''', 'QU010', 'e_q', true),
	('max_messages => 0', '22023', 'max_messages', false),
	('max_messages => -1', '22023', 'max_messages', false),
	('max_messages => 10000000000', '22023', 'max_messages', false),
	('wait => ''-1 second''', '22023', 'wait', true),
	('consumer => ''me''', '22023', 'consumer', false),
	('msgid => ''00000000-0000-7000-8000-000000000000'', correlation => ''c''', 'QU008', 'msgid', true),
	('msgid => ''00000000-0000-7000-8000-000000000000'', condition => ''true''', 'QU008', 'msgid', true),
	('condition => ''priority =''', '42601', '', false),
	('condition => ''priority = 1; DROP TABLE e_table''', '42601', '', false),
	('condition => ''true) OR (true''', '42601', '', false),
	('condition => ''no_such_column = 1''', '42703', 'no_such_column', false),
	('condition => ''no_such_function()''', '42883', 'no_such_function', false),
	('condition => ''priority + 1''', '42804', 'boolean', false),
	('condition => ''1 / (priority - priority) = 1''', '22012', 'division', false),
	('condition => ''priority = (SELECT g FROM generate_series(1, 2) g)''', '21000', '', false),
	('condition => ''''', '42601', '', false),
	('visibility => ''now''', '22023', 'visibility', true)) v (argument, state, message, hinted);
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue_as(NULL::text, 'e_q')$$, 'QU007', 'e_q');

-- states of queues
SELECT pg_temp.refused($$SELECT queue.enqueue('e_stopped', '{}')$$, 'QU001', 'e_stopped');
SELECT pg_temp.refused($$INSERT INTO e_stopped (payload) VALUES ('{}')$$, 'QU001', 'e_stopped');
SELECT pg_temp.refused($$SELECT queue.enqueue_array('e_stopped', '{"{}"}')$$, 'QU001', 'e_stopped');
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue('e_stopped')$$, 'QU002', 'e_stopped');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_in', '{}')$$, 'QU001', 'e_in');
SELECT lives_ok($$SELECT * FROM queue.dequeue('e_in')$$, 'the other direction is open');
SELECT pg_temp.refused($$SELECT queue.enqueue('e_exception', '{}')$$, 'QU003', 'e_exception');
SELECT pg_temp.refused($$INSERT INTO e_exception (payload) VALUES ('{}')$$, 'QU003', 'e_exception');
SELECT pg_temp.refused($$SELECT queue.enqueue('"aq$_e_q_qt_e"', '{}')$$, 'QU003', 'aq\$_e_q_qt_e');
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue('e_exception')$$, 'QU002', 'e_exception');
SELECT pg_temp.refused($$SELECT queue.start_queue('e_exception')$$, 'QU003', 'e_exception');
SELECT pg_temp.refused($$SELECT queue.alter_queue('e_exception', max_retries => 1)$$, 'QU003', 'e_exception', false);
SELECT pg_temp.refused($$SELECT queue.alter_queue('e_exception', retention_time => '1 day')$$, 'QU003', 'e_exception', false);
SELECT pg_temp.refused($$SELECT queue.drop_queue('e_q')$$, 'QU004', 'e_q');
SELECT pg_temp.refused($$SELECT queue.drop_queue('e_in')$$, 'QU004', 'e_in');
SELECT pg_temp.refused($$SELECT queue.drop_queue_table('e_q_qt')$$, 'QU005', 'e_q_qt');
SELECT pg_temp.refused($$DELETE FROM e_q$$, '0A000', 'e_q');
SELECT pg_temp.refused($$UPDATE e_q SET priority = 2$$, '0A000', 'e_q');

-- administration
SELECT pg_temp.refused($$SELECT queue.create_queue('e_q')$$, '42710', 'e_q', false);
SELECT pg_temp.refused($$SELECT queue.create_queue_table('e_q_qt')$$, '42710', 'e_q_qt', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', 'e_none_qt')$$, '42P01', 'e_none_qt', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', 'e_table')$$, '42P01', 'e_table', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', queue_type => 'odd')$$, '22023', 'queue_type|odd');
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', max_retries => -1)$$, '22023', 'max_retries', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', max_retries => 3000000000)$$, '22023', 'max_retries', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', retry_delay => '-1 s')$$, '22023', 'retry_delay', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', retention_time => '-1 s')$$, '22023', 'retention_time', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', sort_list => 'size')$$, '22023', 'sort_list|size');
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', 'e_q_qt', payload_type => 'text')$$, '22023', 'payload_type', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', multiple_consumers => true)$$, '0A000', '', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', message_grouping => 'transactional')$$, '0A000', '', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', message_grouping => 'some')$$, '22023', 'message_grouping|some');
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', rotation => 'fast')$$, '22023', 'rotation|fast');
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', 'e_q_qt', rotation => 'eager')$$, '22023', 'rotation', false);
SELECT pg_temp.refused($$SELECT queue.create_queue_table('e_new', rotation => 'fast')$$, '22023', 'rotation|fast');
SELECT pg_temp.refused($$SELECT queue.alter_queue_table('e_q_qt', rotation => 'fast')$$, '22023', 'rotation|fast');
SELECT pg_temp.refused($$SELECT queue.create_queue('e_new', payload_type => 'anyelement')$$, '42809', 'anyelement', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('')$$, '22023', '', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('  ')$$, '42602', '', false);
SELECT pg_temp.refused($$SELECT queue.create_queue('nowhere.e_new')$$, '3F000', 'nowhere', false);
SELECT pg_temp.refused(format('SELECT queue.create_queue(%L)', repeat('n', 64)), '42622', 'nnn', false);
SELECT pg_temp.refused(format('SELECT queue.create_queue(%L)', '"' || repeat('ü', 32) || '"'), '42622', 'ü', false);
SELECT pg_temp.refused($$SELECT queue.alter_queue('e_q', max_retries => -5)$$, '22023', 'max_retries', false);
SELECT pg_temp.refused($$SELECT queue.grant_queue_privilege('fly', 'e_q', 'e_nobody')$$, '22023', 'fly');
SELECT pg_temp.refused($$SELECT queue.grant_queue_privilege('enqueue_any', 'e_q', 'e_nobody')$$, '22023', 'enqueue_any');
SELECT pg_temp.refused($$SELECT queue.grant_queue_privilege('all', 'e_q', 'e_none')$$, '42704', 'e_none', false);
SELECT pg_temp.refused($$SELECT queue.grant_system_privilege('enqueue', 'e_nobody')$$, '22023', 'enqueue');
SELECT pg_temp.refused($$SELECT queue.grant_system_privilege('manage_any', 'e_none')$$, '42704', 'e_none', false);
SELECT pg_temp.refused($$SELECT queue.purge_queue_table('e_q_qt', 'msg_priority =')$$, '42601', '', false);
SELECT pg_temp.refused($$SELECT queue.purge_queue_table('e_q_qt', 'true; DROP TABLE e_table')$$, '42601', '', false);
SELECT pg_temp.refused($$SELECT queue.purge_queue_table('e_q_qt', 'true) RETURNING (true')$$, '42601', '', false);
SELECT pg_temp.refused($$SELECT queue.purge_queue_table('e_q_qt', '1 / (msg_priority - msg_priority) = 1')$$, '22012', '', false);
SELECT pg_temp.refused($$SELECT queue.adopt('e_table')$$, '42P01', 'e_table', false);

-- nothing happened
SELECT results_eq('SELECT messages, queues FROM stored', 'SELECT messages, queues FROM before',
	'after all this nothing has changed');
SELECT is((SELECT relations FROM stored), (SELECT relations FROM before), 'not one relation');
SELECT is((SELECT payload->>'n' FROM queue.dequeue('e_q')), '1', 'the one message is there');

-- the payload type is protected; what happens if it changes under the queue
SELECT pg_temp.refused('DROP TYPE e_pair', '2BP01', 'e_pair', false);
SELECT queue.enqueue('e_pairs', ROW(1, 'one')::e_pair);
DROP TYPE e_pair CASCADE;
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue('e_pairs')$$, state, 'e_pairs')
FROM (SELECT CASE WHEN to_regclass('e_pairs') IS NULL THEN '42P01' ELSE 'QU011' END) s (state)
WHERE to_regclass('e_pairs') IS NOT NULL;

-- a view dropped by hand
DROP VIEW e_in;
SELECT pg_temp.refused($$SELECT * FROM queue.dequeue('e_in')$$, '42P01', 'e_in', false);
SELECT lives_ok($$SELECT queue.enqueue('e_q', '{"n": 2}')$$, 'its neighbour works');
SELECT is((SELECT count(*) FROM queue.queues WHERE queue::text = 'e_in'), 0::bigint, 'it is gone from the catalog');
SELECT lives_ok($$SELECT queue.create_queue('e_in', 'e_q_qt')$$, 'and can be made again');

-- read-only transactions
SAVEPOINT read_only;
SET TRANSACTION READ ONLY;
SELECT throws_ok(statement, '25006', NULL, statement || ' in a read-only transaction')
FROM unnest(ARRAY[$$SELECT queue.enqueue('e_q', '{}')$$, $$SELECT * FROM queue.dequeue('e_q')$$,
	$$SELECT queue.enqueue_array('e_q', '{"{}"}')$$, $$INSERT INTO e_q (payload) VALUES ('{}')$$,
	$$SELECT * FROM queue.dequeue('e_q', mode => 'locked')$$, $$SELECT queue.stop_queue('e_q')$$,
	$$SELECT queue.create_queue('e_new')$$, $$SELECT queue.drop_queue('e_q')$$,
	$$SELECT queue.purge_queue_table('e_q_qt')$$,
	$$SELECT queue.grant_system_privilege('manage_any', 'e_nobody')$$]) statement;
SELECT lives_ok($$SELECT * FROM queue.dequeue('e_q', mode => 'browse')$$, 'browse is allowed there');
ROLLBACK TO read_only;

-- where triggers are off, nothing is stored in silence
SET session_replication_role = replica;
SELECT throws_ok($$INSERT INTO e_q (payload) VALUES ('{}')$$, NULL, NULL, 'INSERT in replica role is refused');
RESET session_replication_role;

SELECT * FROM finish();
ROLLBACK;
