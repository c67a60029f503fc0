-- Proves: queue.redrive() sends back what it is told to, where it is told to, with counters reset, as part of the transaction, and refuses the rest.
-- How: messages that failed are sent back; rows are read from the queue table.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS queue;
SELECT queue.create_queue('r', max_retries => 0, sort_list => 'priority,enq_time');
SELECT queue.create_queue('r_two', 'r_qt');
SELECT queue.create_queue('r_other', payload_type => 'text');
CREATE VIEW pg_temp.messages AS
SELECT payload->>'n' AS n, q.view AS queue, state, retry_count, original_queue_id, expiration_reason, expires_at > now() AS expires
  FROM r_qt m JOIN queue.queue q ON q.queue_table = 'r_qt'::regclass AND q.id = m.queue_id ORDER BY 1;
SELECT count(queue.enqueue('r', jsonb_build_object('n', i), priority => 9 - i, expiration => '1 day')) FROM generate_series(1, 5) i;
BEGIN;
SELECT count(*) FROM queue.dequeue('r', max_messages => 5);
ROLLBACK;
SELECT count(*) FROM queue.dequeue('r');
TABLE pg_temp.messages;
SELECT queue.redrive('aq$_r_qt_e', max_messages => 1);
SELECT queue.redrive('aq$_r_qt_e', condition => $$(payload->>'n')::int = 2$$);
SELECT queue.redrive('aq$_r_qt_e', 'r_two', $$(payload->>'n')::int = 3$$);
TABLE pg_temp.messages;
BEGIN;
SELECT queue.redrive('aq$_r_qt_e');
SELECT payload FROM queue.dequeue('r', max_messages => 9);
ROLLBACK;
TABLE pg_temp.messages;
SELECT payload FROM queue.dequeue('r', max_messages => 9);
SELECT queue.redrive('aq$_r_qt_e');
SELECT queue.redrive('aq$_r_qt_e');
-- refused
SELECT queue.redrive('r');
SELECT queue.redrive(NULL);
SELECT queue.redrive('aq$_r_qt_e', 'r_other');
SELECT queue.redrive('aq$_r_qt_e', 'aq$_r_qt_e');
SELECT queue.redrive('aq$_r_qt_e', max_messages => 0);
SELECT queue.redrive('aq$_r_qt_e', condition => 'nonsense');
DROP VIEW pg_temp.messages;
SELECT queue.drop_queue_table('r_qt', force => true), queue.drop_queue_table('r_other_qt', force => true);
