-- Proves: the examples of README.md work as they stand there.
-- How: runs them in their order; a gate compares the two files.
\set ECHO none
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS queue;
RESET client_min_messages;
\set ECHO all

-- example
SELECT queue.create_queue('orders');
SELECT queue.enqueue('orders', '{"order": 1001}') IS NOT NULL AS sent;
INSERT INTO orders (payload) VALUES ('{"order": 1002}');
BEGIN;
SELECT payload, retry_count FROM queue.dequeue('orders');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('orders');
SELECT payload, retry_count FROM queue.dequeue('orders');

-- example
CREATE TYPE job AS (command text, tries int);
SELECT queue.create_queue_table('jobs_qt', payload_type => 'job', sort_list => 'priority,enq_time');
SELECT queue.create_queue('jobs', 'jobs_qt', max_retries => 2, retry_delay => '10 seconds', retention_time => '7 days');
SELECT queue.alter_queue('jobs', retry_delay => '0');
SELECT queue.stop_queue('jobs', dequeue => false);
SELECT queue.start_queue('jobs');

-- example
SELECT queue.enqueue('jobs', ROW('vacuum', 1)::job, priority => 10) IS NOT NULL AS sent;
SELECT queue.enqueue('jobs', '(reindex,1)', priority => 1, correlation => 'night') IS NOT NULL AS sent;
SELECT queue.enqueue('jobs', '(report,1)', delay => '1 hour', expiration => '1 day') IS NOT NULL AS sent;
SELECT cardinality(queue.enqueue_array('jobs', ARRAY[ROW('a', 1), ROW('b', 1)]::job[])) AS sent;
INSERT INTO jobs (payload, priority) SELECT ROW('copy ' || n, 1)::job, 20 FROM generate_series(1, 3) n;

-- example
SELECT payload FROM queue.dequeue('jobs', correlation => 'night');
SELECT (payload).command, priority FROM queue.dequeue_as(NULL::job, 'jobs');
SELECT payload, priority FROM queue.dequeue('jobs', mode => 'browse');
SELECT payload FROM queue.dequeue('jobs', condition => $$(payload).command LIKE 'copy%'$$, max_messages => 2);
SELECT count(*) FROM queue.dequeue('jobs', max_messages => 100, wait => '0');

-- example
SELECT queue.enqueue('orders', '{"order": 1003}') IS NOT NULL AS sent;
SELECT queue.ack(array_agg(receipt)) AS done FROM queue.receive('orders', lease => '5 minutes', max_messages => 10);

-- example
SELECT queue.create_queue('fragile', max_retries => 0);
SELECT queue.enqueue('fragile', '{"will": "fail"}') IS NOT NULL AS sent;
BEGIN;
SELECT payload FROM queue.dequeue('fragile');
ROLLBACK;
SELECT payload FROM queue.dequeue('fragile');
SELECT queue.start_queue('aq$_fragile_qt_e', enqueue => false);
SELECT payload, retry_count FROM queue.dequeue('aq$_fragile_qt_e');

-- example
SELECT queue, queue_table, enqueue_enabled, dequeue_enabled FROM queue.queues WHERE queue = 'jobs'::regclass;
SELECT state, count(*) FROM jobs GROUP BY state ORDER BY state;
SELECT msg_state, count(*) FROM aq$jobs_qt GROUP BY msg_state ORDER BY msg_state;

-- example
CREATE ROLE shop;
CREATE ROLE packer;
SELECT queue.grant_queue_privilege('enqueue', 'orders', 'shop');
SELECT queue.grant_queue_privilege('dequeue', 'orders', 'packer');

-- clean up
SELECT queue.drop_queue_table('orders_qt', force => true);
SELECT queue.drop_queue_table('jobs_qt', force => true);
SELECT queue.drop_queue_table('fragile_qt', force => true);
DROP TYPE job;
DROP ROLE shop;
DROP ROLE packer;
