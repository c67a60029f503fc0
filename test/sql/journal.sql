-- Proves: consumed messages are kept as long as retention_time says, and aq$<queue_table> shows every message in every state.
-- How: queues without, with and with endless retention in one table; Oracle's columns.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue_table('j_qt', payload_type => 'text');
SELECT queue.create_queue('j_none', 'j_qt');
SELECT queue.create_queue('j_day', 'j_qt', retention_time => '1 day', max_retries => 0);
SELECT queue.create_queue('j_ever', 'j_qt', retention_time => NULL);
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'aq$j_qt' ORDER BY ordinal_position;

SELECT queue.enqueue(q, q || ' consumed', correlation => 'c', priority => 2) IS NOT NULL AS sent FROM unnest('{j_none,j_day,j_ever}'::text[]) q;
SELECT queue.enqueue(q, q || ' ready') IS NOT NULL AS sent FROM unnest('{j_none,j_day,j_ever}'::text[]) q;
SELECT queue.enqueue('j_day', 'waiting', delay => '1 day', exception_queue => '"aq$_j_qt_e"') IS NOT NULL AS sent;
SELECT queue.enqueue('j_day', 'expired', expiration => '1 us') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('j_none');
SELECT payload FROM queue.dequeue('j_day');
SELECT payload FROM queue.dequeue('j_ever');
-- moves the expired one on sight
SELECT payload FROM queue.dequeue('j_day', condition => $$payload = 'nothing'$$);

SELECT queue, user_data, msg_state, corr_id, msg_priority, retry_count, enq_user_id = current_user AS enq_user,
	deq_user_id = current_user AS deq_user, deq_time >= enq_time AS deq_time
FROM aq$j_qt ORDER BY enq_time;
-- columns that depend on the state
SELECT user_data, msg_state, delay IS NOT NULL AS delay, exception_queue, exception_queue_owner = current_user AS exc_owner,
	original_queue_name, original_queue_owner = current_user AS orig_owner, expiration_reason
FROM aq$j_qt ORDER BY enq_time;
-- transaction ids join what belongs together
BEGIN;
SELECT payload FROM queue.dequeue('j_ever');
SELECT queue.enqueue('j_none', 'follow-up') IS NOT NULL AS sent;
COMMIT;
SELECT c.user_data AS cause, e.user_data AS effect FROM aq$j_qt c JOIN aq$j_qt e ON e.enq_txn_id = c.deq_txn_id;

-- a dequeue that is rolled back is not in the journal
SELECT queue.enqueue('j_ever', 'rolled back') IS NOT NULL AS sent;
BEGIN;
SELECT payload FROM queue.dequeue('j_ever');
ROLLBACK;
SELECT user_data, msg_state FROM aq$j_qt WHERE user_data = 'rolled back';
-- no journal for browse and locked; one for remove_nodata, with its payload
SELECT payload FROM queue.dequeue('j_ever', mode => 'browse');
BEGIN;
SELECT payload FROM queue.dequeue('j_ever', mode => 'locked');
COMMIT;
SELECT user_data, msg_state FROM aq$j_qt WHERE user_data = 'rolled back';
SELECT payload FROM queue.dequeue('j_ever', mode => 'remove_nodata');
SELECT user_data, msg_state, retry_count FROM aq$j_qt WHERE user_data = 'rolled back';
-- sent and consumed in one transaction: it was there all the same
BEGIN;
SELECT queue.enqueue('j_ever', 'same') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('j_ever');
COMMIT;
SELECT user_data, msg_state, enq_txn_id = deq_txn_id AS same_transaction FROM aq$j_qt WHERE user_data = 'same';
-- a journalled message is not deliverable, by msgid neither
SELECT msg_id AS id FROM aq$j_qt WHERE user_data = 'same' \gset
SELECT count(*) FROM queue.dequeue('j_ever', msgid => :'id');
-- nor is it in the queue's view
SELECT payload, state FROM j_ever ORDER BY msgid;
SELECT payload, state FROM j_day ORDER BY msgid;
-- large payloads come through the journal whole
SELECT queue.enqueue('j_ever', repeat('0123456789', 100000)) IS NOT NULL AS sent;
SELECT length(payload #>> '{}') FROM queue.dequeue('j_ever');
SELECT length(user_data), md5(user_data) = md5(repeat('0123456789', 100000)) AS whole FROM aq$j_qt WHERE length(user_data) > 100;

-- every message is in exactly one state
SELECT msg_state, count(*) FROM aq$j_qt GROUP BY 1 ORDER BY 1;
SELECT queue.drop_queue_table('j_qt', force => true);
SELECT to_regclass('aq$j_qt');
