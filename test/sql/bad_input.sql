-- Proves: bad input is refused with a SQLSTATE, the name of the object and a hint, and changes nothing.
-- How: the errors that no other test has; what the error says of its place is shown as well.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
\set ECHO none
-- The lines of the context that we have put there, and nothing else.
CREATE PROCEDURE pg_temp.place(command text) LANGUAGE plpgsql AS $$
DECLARE
	context text;
BEGIN
	EXECUTE command;
	RAISE INFO 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
	RAISE INFO '% %: %', sqlstate, sqlerrm, (SELECT string_agg(line, ', ') FROM regexp_split_to_table(context, '\n') line
		WHERE line ~ '^(payload|condition)');
END $$;
\set ECHO all
CREATE TYPE b_t AS (id int, name text);
CREATE TYPE b_wide AS (id int, name text, more text);
SELECT queue.create_queue('b');
SELECT queue.create_queue('b_int', payload_type => 'int');
SELECT queue.create_queue('b_row', payload_type => 'b_t');
SELECT queue.create_queue('b_exc', 'b_qt', queue_type => 'exception');
SELECT queue.create_queue('b_int_exc', 'b_int_qt', queue_type => 'exception');
SELECT queue.enqueue('b', '{"kept": true}', correlation => 'kept') IS NOT NULL AS sent;

-- the queue
CALL pg_temp.try($$SELECT queue.enqueue(NULL, '1')$$);
CALL pg_temp.try($$SELECT queue.dequeue_as(NULL::int, NULL)$$);
CALL pg_temp.try($$SELECT queue.enqueue('', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('no_such_queue'::text, '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('pg_class', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('"aq$b_qt"', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('b_exc', '{1}')$$);
CALL pg_temp.try($$SELECT queue.dequeue('b_exc')$$);
CALL pg_temp.try($$COPY b_exc (payload) FROM PROGRAM 'echo 1'$$);

-- the payload: what says no names neither queue nor type, so the context does
CALL pg_temp.place($$SELECT queue.enqueue('b', '{bad')$$);
CALL pg_temp.place($$SELECT queue.enqueue('b', '')$$);
CALL pg_temp.place($$SELECT queue.enqueue_array('b', '{1')$$);
CALL pg_temp.place($$SELECT queue.enqueue_array('b', '{1,"{bad"}')$$);
CALL pg_temp.place($$SELECT queue.enqueue('b_int', 'five')$$);
CALL pg_temp.place($$SELECT queue.enqueue('b_int', 3000000000)$$);
CALL pg_temp.place($$SELECT queue.enqueue('b_row', '(1,2')$$);
-- and the hint says what would do
CALL pg_temp.try($$SELECT queue.enqueue('b', true)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_int', '5'::jsonb)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_int', now())$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_row', '{"id": 1}'::jsonb)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_row', ROW(1, 'x', 'y')::b_wide)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_row', ROW('1'::jsonb, 'x'))$$);
CALL pg_temp.try($$SELECT queue.enqueue('b_row', ROW(now(), 'x'))$$);

-- the options
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', priority => 2147483648)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', priority => -2147483649)$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', properties => '[1]')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', properties => 'null')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', correlation => repeat('x', 1025))$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', sender => repeat('x', 513))$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', group_key => repeat('ü', 257))$$);
CALL pg_temp.try($$INSERT INTO b (payload, reply_to) VALUES ('1', repeat('x', 1025))$$);
CALL pg_temp.try($$INSERT INTO b (payload, routing_key) VALUES ('1', repeat('x', 1025))$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', visibility => 'later')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', delivery_mode => 'fast')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', delivery_mode => 'buffered')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', sequence_deviation => 'bottom')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', sequence_deviation => 'top')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', relative_msgid => '00000000-0000-7000-8000-000000000000')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', dedup_key => 'once')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', recipients => ARRAY[ROW('a', NULL, NULL)::queue.agent])$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', recipients => '{}', visibility => NULL, delivery_mode => 'PERSISTENT')$$);

-- its exception queue
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => 'b_int_exc')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => 'b_qt')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => 'no_such_schema.b_exc')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => 'two words')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => '')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', exception_queue => 'a.b.c')$$);
CALL pg_temp.try(format('SELECT queue.enqueue(%L, %L, exception_queue => %L)', 'b', '1', repeat('x', 64)));
-- another owner's: only with the privilege to send there
CREATE ROLE regress_queue_sender;
CREATE ROLE regress_queue_other;
CREATE SCHEMA b_other AUTHORIZATION regress_queue_other;
GRANT USAGE ON SCHEMA b_other TO regress_queue_sender;
SELECT queue.grant_queue_privilege('enqueue', 'b', 'regress_queue_sender');
SET ROLE regress_queue_other;
SELECT queue.create_queue('b_other.exc', queue_type => 'exception');
SET ROLE regress_queue_sender;
CALL pg_temp.try($$SELECT queue.enqueue('b', '2', exception_queue => 'b_other.exc')$$);
CALL pg_temp.try($$INSERT INTO b (payload, exception_queue) VALUES ('2', 'b_other.exc')$$);
SET ROLE regress_queue_other;
SELECT queue.grant_queue_privilege('enqueue', 'b_other.exc', 'regress_queue_sender');
SET ROLE regress_queue_sender;
CALL pg_temp.try($$SELECT queue.enqueue('b', '3', exception_queue => 'b_other.exc')$$);
RESET ROLE;

-- times
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', delay => '1 month -40 days')$$);
CALL pg_temp.try($$SELECT queue.enqueue('b', '1', expiration => '1 month -40 days')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('b', '{1,2}', ARRAY[NULL, jsonb_populate_record(NULL::queue.message_properties, '{"deliver_at": "infinity"}')])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('b', '{1,2}', ARRAY[NULL, jsonb_populate_record(NULL::queue.message_properties, '{"delay": "1 s", "deliver_at": "2001-01-01"}')])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('b', array_fill('1'::jsonb, '{1000001}'))$$);

-- dequeue
CALL pg_temp.try($$SELECT queue.dequeue('b', visibility => 'later')$$);
CALL pg_temp.try($$SELECT queue.dequeue('b', visibility => 'immediate')$$);
CALL pg_temp.try($$SELECT queue.dequeue('b', delivery_mode => 'buffered')$$);
CALL pg_temp.try($$SELECT queue.dequeue('b', delivery_mode => 'fast')$$);
CALL pg_temp.try($$SELECT queue.dequeue('b', condition => repeat(' ', 65537))$$);
-- a bad condition: where it is wrong is said in terms of the condition, and whose it is
CALL pg_temp.place($$SELECT queue.dequeue('b', condition => 'priority <')$$);
CALL pg_temp.place($$SELECT queue.dequeue('b', condition => 'no_such_column = 1')$$);
CALL pg_temp.place($$SELECT queue.dequeue('b', condition => '(SELECT n FROM no_such_table) = 1')$$);
CALL pg_temp.place($$SELECT queue.dequeue('b', condition => '1 / (priority - 1) = 1')$$);
CALL pg_temp.place($$SELECT queue.dequeue('b', condition => '(SELECT n FROM generate_series(1, 2) n) = 1')$$);
CALL pg_temp.place($$SELECT queue.purge_queue_table('b_qt', 'priority <')$$);
CALL pg_temp.place($$SELECT queue.purge_queue_table('b_qt', '1 / (priority - 1) = 1')$$);
\set VERBOSITY default
SELECT queue.dequeue('b', condition => 'priority < 3 AND (');
SELECT queue.dequeue('b', condition => $$correlation = 'ü' AND no_such_column = 1$$);
SELECT queue.purge_queue_table('b_qt', 'priority < 3 AND (');
SELECT queue.purge_queue_table('b_qt', $$corr_id = 'ü' AND no_such_column = 1$$);
SELECT queue.grant_system_privilege('manage_any', 'regress_queue_sender');
SET ROLE regress_queue_sender;
SELECT queue.purge_queue_table('b_qt', $$corr_id = 'ü' AND no_such_column = 1$$);
RESET ROLE;
SELECT queue.revoke_system_privilege('manage_any', 'regress_queue_sender');

-- administration
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', 'b_qt', max_retries => 2147483648)$$);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', 'b_qt', queue_type => NULL)$$);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', '')$$);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', sort_list => 'size')$$);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', payload_type => 'trigger')$$);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', payload_type => 0::oid)$$);
CREATE TYPE b_shell;
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', payload_type => 'b_shell')$$);
DROP TYPE b_shell;
CREATE TYPE pg_temp.b_temporary AS (n int);
CALL pg_temp.try($$SELECT queue.create_queue('b_bad', payload_type => 'pg_temp.b_temporary')$$, brief => true);
CALL pg_temp.try($$SELECT queue.create_queue_table('b_bad', payload_type => NULL)$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('b_bad', multiple_consumers => NULL)$$);
CALL pg_temp.try($$SELECT queue.start_queue('b', dequeue => NULL)$$);
CALL pg_temp.try($$SELECT queue.stop_queue('b', wait => NULL)$$);
CALL pg_temp.try($$SELECT queue.drop_queue_table('b_qt', NULL)$$);
CALL pg_temp.try($$SELECT queue.adopt(NULL)$$);
SELECT count(*) FROM pg_class WHERE relname ~ 'b_bad';

-- nothing has changed, but for the two that were sent without an error
SELECT payload, correlation, exception_queue, state, retry_count FROM b ORDER BY msgid;
SELECT count(*) FROM b_qt;
SELECT count(*) FROM b_int_qt;
SELECT count(*) FROM b_row_qt;
SELECT queue, enqueue_enabled, dequeue_enabled FROM queue.queues WHERE queue = 'b'::regclass;

SELECT queue.drop_queue_table('b_qt', force => true);
SELECT queue.drop_queue_table('b_int_qt', force => true);
SELECT queue.drop_queue_table('b_row_qt', force => true);
DROP TYPE b_t, b_wide;
SELECT queue.drop_queue_table('b_other.exc_qt', force => true);
DROP SCHEMA b_other;
DROP ROLE regress_queue_sender, regress_queue_other;
