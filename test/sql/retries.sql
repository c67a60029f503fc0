-- Proves: failed attempts are counted, delay the next one, and end in the exception queue.
-- How: rollbacks of whole transactions, savepoints and blocks with max_retries 0, 1, 5 and NULL.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
CREATE PROCEDURE pg_temp.fail(q regclass) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM queue.dequeue(q);
	RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
END $$;
SELECT queue.create_queue_table('r_qt', payload_type => 'text');
SELECT queue.start_queue('"aq$_r_qt_e"', enqueue => false);
SELECT queue.create_queue('r0', 'r_qt', max_retries => 0);
SELECT queue.create_queue('r1', 'r_qt', max_retries => 1);
SELECT queue.create_queue('r5', 'r_qt');
SELECT queue.create_queue('r_ever', 'r_qt', max_retries => NULL);

-- 0: the first failure is the last
SELECT queue.enqueue('r0', 'zero') IS NOT NULL AS sent;
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r0');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r0');
SELECT payload, retry_count FROM queue.dequeue('"aq$_r_qt_e"');

-- 1: moved when retry_count exceeds it, which is the second failure
SELECT queue.enqueue('r1', 'one', correlation => 'c', properties => '{"p": 1}', priority => 3) AS id \gset
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r1');
ROLLBACK;
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r1');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r1');
SELECT user_data, msg_state, retry_count, expiration_reason, original_queue_name, queue FROM aq$r_qt;
-- it is the same message
SELECT msgid = :'id' AS same, payload, retry_count, correlation, properties, priority FROM queue.dequeue('"aq$_r_qt_e"');

-- 5, the default: the sixth failure
SELECT queue.enqueue('r5', 'five') IS NOT NULL AS sent;
CALL pg_temp.fail('r5'); CALL pg_temp.fail('r5'); CALL pg_temp.fail('r5'); CALL pg_temp.fail('r5'); CALL pg_temp.fail('r5');
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r5');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r5');
SELECT payload, retry_count FROM queue.dequeue('"aq$_r_qt_e"');

-- NULL: for ever
SELECT queue.enqueue('r_ever', 'ever') IS NOT NULL AS sent;
DO $$ BEGIN FOR i IN 1..20 LOOP CALL pg_temp.fail('r_ever'); END LOOP; END $$;
SELECT payload, retry_count FROM queue.dequeue('r_ever');

-- counted: a savepoint before the dequeue
SELECT queue.enqueue('r5', 'savepoint') IS NOT NULL AS sent;
BEGIN;
SAVEPOINT s;
SELECT payload, retry_count FROM queue.dequeue('r5');
ROLLBACK TO s;
SELECT payload, retry_count FROM queue.dequeue('r5');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r5');
-- not counted: a savepoint after it, browse, locked, an error before the take
SELECT queue.enqueue('r5', 'not counted') AS id \gset
BEGIN;
SELECT payload FROM queue.dequeue('r5', mode => 'browse');
ROLLBACK;
BEGIN;
SELECT payload FROM queue.dequeue('r5', mode => 'locked');
ROLLBACK;
BEGIN;
SELECT payload FROM queue.dequeue('r5', condition => '1 / 0 = 1');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r5', mode => 'browse');
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r5');
SAVEPOINT s;
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM queue.dequeue('r5');

-- what was enqueued and dequeued in the same transaction leaves no trace
BEGIN;
SELECT queue.enqueue('r1', 'no trace') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('r1');
ROLLBACK;
SELECT count(*) FROM queue.dequeue('r1');

-- but one that outlives the failed attempt remembers it, also one of very many
BEGIN;
SELECT count(queue.enqueue('r5', n::text)) AS sent FROM generate_series(1, 1500) n;
SAVEPOINT s;
SELECT payload FROM queue.dequeue('r5', max_messages => 3);
ROLLBACK TO s;
COMMIT;
SELECT payload, retry_count FROM queue.dequeue('r5', max_messages => 4);
SELECT count(*), max(retry_count) FROM queue.dequeue('r5', max_messages => 2000);

-- remove by msgid, remove_nodata and arrays count as well
SELECT queue.enqueue('r1', 'a') AS a \gset
SELECT queue.enqueue('r1', 'b') AS b \gset
BEGIN;
SELECT payload FROM queue.dequeue('r1', msgid => :'b');
SELECT payload FROM queue.dequeue('r1', mode => 'remove_nodata');
ROLLBACK;
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r1', max_messages => 5);
ROLLBACK;
SELECT count(*) FROM queue.dequeue('r1');
SELECT payload, retry_count FROM queue.dequeue('"aq$_r_qt_e"', max_messages => 5);

-- retry_delay
SELECT queue.alter_queue('r1', retry_delay => '1 minute');
SELECT queue.enqueue('r1', 'delayed') IS NOT NULL AS sent;
SELECT queue.enqueue('r1', 'behind') IS NOT NULL AS sent;
CALL pg_temp.fail('r1');
SELECT payload, retry_count FROM queue.dequeue('r1', max_messages => 5);
SELECT payload, retry_count FROM queue.dequeue('r1');
SET queue.debug_clock_offset = 61000000;
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('r1');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('r1');
SELECT payload, retry_count FROM queue.dequeue('"aq$_r_qt_e"');
RESET queue.debug_clock_offset;

-- the message's own exception queue
SELECT queue.create_queue('r_exc', 'r_qt', queue_type => 'exception');
SELECT queue.start_queue('r_exc', enqueue => false);
SELECT queue.enqueue('r0', 'own', exception_queue => 'r_exc') IS NOT NULL AS sent;
CALL pg_temp.fail('r0');
SELECT count(*) FROM queue.dequeue('r0');
SELECT payload, retry_count FROM queue.dequeue('r_exc');

-- attempts at an exception queue have no limit
SELECT queue.enqueue('r0', 'poison') IS NOT NULL AS sent;
CALL pg_temp.fail('r0');
SELECT count(*) FROM queue.dequeue('r0');
DO $$ BEGIN FOR i IN 1..8 LOOP CALL pg_temp.fail('"aq$_r_qt_e"'); END LOOP; END $$;
SELECT payload FROM queue.dequeue('"aq$_r_qt_e"');
SELECT count(*) FROM r_qt;
SELECT queue.drop_queue_table('r_qt', force => true);
