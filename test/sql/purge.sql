-- Proves: purge_queue_table deletes what its condition names, in any state, says how many, and nothing else.
-- How: messages in every state of two queues; conditions good and bad; other people's locks are in isolation/purge_dequeue.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue_table('u_qt', payload_type => 'text');
SELECT queue.create_queue('u1', 'u_qt', retention_time => NULL);
SELECT queue.create_queue('u2', 'u_qt');
CREATE PROCEDURE pg_temp.fill() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue.enqueue('u1', 'processed');
	PERFORM FROM queue.dequeue('u1');
	PERFORM queue.enqueue('u1', 'expired', expiration => '1 us');
	PERFORM FROM queue.dequeue('u1');
	PERFORM queue.enqueue('u1', 'waiting', delay => '1 day');
	PERFORM queue.enqueue('u1', 'ready', priority => 5, correlation => 'c');
	PERFORM queue.enqueue('u2', 'two', priority => 9);
END $$;
CALL pg_temp.fill();
SELECT queue, user_data, msg_state FROM aq$u_qt ORDER BY enq_time;

-- a condition over the columns of aq$<queue_table>, qtview, and the queue's own
SELECT queue.purge_queue_table('u_qt', $$qtview.msg_state = 'EXPIRED'$$);
SELECT queue.purge_queue_table('u_qt', $$msg_state = 'PROCESSED' AND user_data = 'processed'$$);
SELECT queue.purge_queue_table('u_qt', $$queue = 'u2'$$);
SELECT queue.purge_queue_table('u_qt', 'priority > 100');
SELECT queue.purge_queue_table('u_qt', 'NULL');
SELECT queue, user_data, msg_state FROM aq$u_qt ORDER BY enq_time;
SELECT queue.purge_queue_table('u_qt', condition => $$corr_id = 'c' AND msg_priority = 5$$);
SELECT user_data FROM aq$u_qt;
SELECT queue.purge_queue_table('u_qt');
SELECT count(*) FROM u_qt;
SELECT queue.purge_queue_table('u_qt');

-- a rollback brings it all back
CALL pg_temp.fill();
BEGIN;
SELECT queue.purge_queue_table('u_qt');
SELECT count(*) FROM queue.dequeue('u2');
ROLLBACK;
SELECT payload FROM queue.dequeue('u2');
SELECT payload FROM queue.dequeue('u1');
-- the queue goes on as before
SELECT queue.purge_queue_table('u_qt');
SELECT queue.enqueue('u1', 'next') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('u1');

-- refused: nothing is deleted
CALL pg_temp.fill();
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', 'nonsense here')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', 'no_such_column = 1')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', 'priority')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', '')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', 'true) OR (true')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', 'true); DROP TABLE u_qt; --')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u_qt', '1 / (priority - priority) > 0')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('u1')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table(NULL)$$);
SELECT count(*) FROM u_qt;
SELECT queue.purge_queue_table('u_qt', 'true -- all of them');
SELECT queue.drop_queue_table('u_qt', force => true);
