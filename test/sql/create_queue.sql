-- Proves: queues are made, altered, started, stopped and dropped with all their options, and bad calls change nothing.
-- How: each option and each error of create_, alter_, start_, stop_ and drop_queue.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
-- one call is enough
SELECT queue.create_queue('c_alone');
SELECT queue.enqueue('c_alone', '{"n": 1}') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('c_alone');
SELECT queue_table, queue_type, max_retries, retry_delay, retention_time, enqueue_enabled, dequeue_enabled, comment
FROM queue.queue WHERE view = 'c_alone'::regclass;
SELECT payload_type, sort_list FROM queue.queue_table WHERE relation = 'c_alone_qt'::regclass;

-- its own table, with options
SELECT queue.create_queue('c_text', payload_type => 'text', sort_list => 'priority');
SELECT payload_type, sort_list FROM queue.queue_table WHERE relation = 'c_text_qt'::regclass;

-- a table for several queues
SELECT queue.create_queue_table('c_qt', payload_type => 'text');
SELECT queue.create_queue('c_one', 'c_qt', max_retries => 0, retry_delay => '1 minute', retention_time => '1 day', comment => 'one');
SELECT queue.create_queue('c_two', queue_table => 'c_qt', max_retries => NULL, retry_delay => NULL, retention_time => NULL);
SELECT queue.create_queue('c_exc', 'c_qt', queue_type => 'exception');
SELECT view, queue_type, max_retries, retry_delay, retention_time, enqueue_enabled, dequeue_enabled, comment
FROM queue.queue WHERE queue_table = 'c_qt'::regclass ORDER BY id;

-- a queue may lie in another schema than its table
CREATE SCHEMA c_other;
SELECT queue.create_queue('c_other.c_elsewhere', 'c_qt');
SELECT queue.enqueue('c_other.c_elsewhere', 'x') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('c_other.c_elsewhere');
SELECT queue.stop_queue('c_other.c_elsewhere');
SELECT queue.drop_queue('c_other.c_elsewhere');
DROP SCHEMA c_other;

-- errors of create_queue
CALL pg_temp.try($$SELECT queue.create_queue('c_one', 'c_qt')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_alone')$$);
CALL pg_temp.try($$SELECT queue.create_queue(NULL)$$);
CALL pg_temp.try($$SELECT queue.create_queue('')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'no_such_table')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_alone')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', queue_type => 'strange')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', max_retries => -1)$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', retry_delay => '-1 s')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', retention_time => '-1 s')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', queue_type => 'exception', max_retries => 3)$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', queue_type => 'exception', retry_delay => '1 s')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', queue_type => 'exception', retention_time => '1 s')$$);
CALL pg_temp.try($$SELECT queue.create_queue('c_bad', 'c_qt', payload_type => 'jsonb')$$);
CALL pg_temp.try($$SELECT queue.create_queue('aq$_c_bad', 'c_qt')$$);
CALL pg_temp.try($$SELECT queue.create_queue('no_such_schema.c_bad')$$);
CREATE TABLE c_taken (n int);
CALL pg_temp.try($$SELECT queue.create_queue('c_taken')$$);
DROP TABLE c_taken;
SELECT relname FROM pg_class WHERE relname ~ 'c_bad' ORDER BY 1;

-- alter_queue: what is not named stays
SELECT queue.alter_queue('c_one', max_retries => 7);
SELECT queue.alter_queue('c_one', retry_delay => '2 minutes', comment => 'changed');
SELECT max_retries, retry_delay, retention_time, comment FROM queue.queue WHERE view = 'c_one'::regclass;
SELECT queue.alter_queue('c_one', retention_time => '0');
SELECT max_retries, retry_delay, retention_time, comment FROM queue.queue WHERE view = 'c_one'::regclass;
CALL pg_temp.try($$SELECT queue.alter_queue('c_one', max_retries => -2)$$);
CALL pg_temp.try($$SELECT queue.alter_queue('c_one', retry_delay => '-1 day')$$);
CALL pg_temp.try($$SELECT queue.alter_queue('c_one', retention_time => '-1 day')$$);
CALL pg_temp.try($$SELECT queue.alter_queue('c_exc', max_retries => 2)$$);
CALL pg_temp.try($$SELECT queue.alter_queue('c_qt', max_retries => 2)$$);
CALL pg_temp.try($$SELECT queue.alter_queue('no_such_queue', max_retries => 2)$$);
CALL pg_temp.try($$SELECT queue.alter_queue(NULL, max_retries => 2)$$);

-- start and stop, each half by itself; false leaves a half as it is
SELECT queue.stop_queue('c_one', enqueue => true, dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_one'::regclass;
CALL pg_temp.try($$SELECT queue.enqueue('c_one', 'x')$$);
CALL pg_temp.try($$INSERT INTO c_one (payload) VALUES ('x')$$);
SELECT count(*) FROM queue.dequeue('c_one');
SELECT queue.stop_queue('c_one', enqueue => false, dequeue => true);
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_one'::regclass;
CALL pg_temp.try($$SELECT queue.dequeue('c_one')$$);
CALL pg_temp.try($$SELECT queue.dequeue_as(NULL::text, 'c_one')$$);
SELECT queue.start_queue('c_one', enqueue => true, dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_one'::regclass;
SELECT queue.start_queue('c_one', enqueue => false, dequeue => false);
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_one'::regclass;
SELECT queue.start_queue('c_one');
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_one'::regclass;

-- exception queues: no enqueue, dequeue only when started
CALL pg_temp.try($$SELECT queue.enqueue('c_exc', 'x')$$);
CALL pg_temp.try($$INSERT INTO c_exc (payload) VALUES ('x')$$);
CALL pg_temp.try($$SELECT queue.dequeue('c_exc')$$);
CALL pg_temp.try($$SELECT queue.start_queue('c_exc')$$);
CALL pg_temp.try($$SELECT queue.start_queue('c_exc', enqueue => true, dequeue => false)$$);
SELECT queue.start_queue('c_exc', enqueue => false);
SELECT enqueue_enabled, dequeue_enabled FROM queue.queue WHERE view = 'c_exc'::regclass;
SELECT count(*) FROM queue.dequeue('c_exc');

-- errors of start, stop and of the verbs
CALL pg_temp.try($$SELECT queue.start_queue('no_such_queue')$$);
CALL pg_temp.try($$SELECT queue.start_queue(NULL)$$);
CALL pg_temp.try($$SELECT queue.stop_queue('c_qt')$$);
CALL pg_temp.try($$SELECT queue.stop_queue(NULL)$$);
CALL pg_temp.try($$SELECT queue.enqueue('no_such_queue', 'x')$$);
CALL pg_temp.try($$SELECT queue.enqueue(NULL, 'x')$$);
CALL pg_temp.try($$SELECT queue.enqueue('c_qt', 'x')$$);
CALL pg_temp.try($$SELECT queue.dequeue('no_such_queue')$$);
CALL pg_temp.try($$SELECT queue.dequeue(NULL)$$);
CALL pg_temp.try($$SELECT queue.dequeue('c_qt')$$);
CALL pg_temp.try($$SELECT queue.dequeue('pg_class')$$);

-- drop: stopped first; its messages go, those of its neighbours stay
SELECT queue.enqueue('c_one', 'one') IS NOT NULL AS sent;
SELECT queue.enqueue('c_two', 'two') IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.drop_queue('c_one')$$);
SELECT queue.stop_queue('c_one', enqueue => false);
CALL pg_temp.try($$SELECT queue.drop_queue('c_one')$$);
SELECT queue.stop_queue('c_one');
SELECT queue.drop_queue('c_one');
SELECT payload FROM c_qt;
SELECT payload FROM queue.dequeue('c_two');
CALL pg_temp.try($$SELECT queue.dequeue('c_one')$$);
CALL pg_temp.try($$SELECT queue.drop_queue('no_such_queue')$$);
CALL pg_temp.try($$SELECT queue.drop_queue(NULL)$$);
CALL pg_temp.try($$SELECT queue.drop_queue('c_qt')$$);
CALL pg_temp.try($$SELECT queue.drop_queue('"aq$_c_qt_e"')$$);

-- the name can be used again; the new queue has none of the old messages
SELECT queue.create_queue('c_one', 'c_qt');
SELECT count(*) FROM queue.dequeue('c_one');
SELECT queue.drop_queue_table('c_qt', force => true);
SELECT queue.drop_queue_table('c_alone_qt', force => true);
SELECT queue.drop_queue_table('c_text_qt', force => true);
SELECT count(*) FROM queue.queue;
