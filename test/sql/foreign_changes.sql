-- Proves: changes that users make to a queue table behind the extension's back lead to right results or a plain error.
-- How: own index, trigger, constraint and column; TRUNCATE, plain INSERT and DELETE; objects dropped by hand.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('f', payload_type => 'text', retention_time => '1 day');

-- an index of the user's on the whole table
CREATE INDEX f_correlation ON f_qt (correlation);
SELECT queue.enqueue('f', n::text, correlation => 'c' || n) IS NOT NULL AS sent FROM generate_series(1, 3) n;
SELECT payload FROM queue.dequeue('f');
SET enable_seqscan = off;
SELECT payload, state FROM f_qt WHERE correlation = 'c1';
SELECT payload, state FROM f_qt WHERE correlation = 'c3';
RESET enable_seqscan;
DROP INDEX f_correlation;
-- an expression index that can fail
CREATE INDEX f_expr ON f_qt ((1 / priority));
CALL pg_temp.try($$SELECT queue.enqueue('f', 'x', priority => 0)$$);
DROP INDEX f_expr;

-- triggers of the user's
CREATE TABLE f_log (op text, payload text, state int);
CREATE FUNCTION f_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO f_log VALUES (TG_OP, (CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END).payload, (CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END).state);
	RETURN NULL;
END $$;
CREATE TRIGGER f_log AFTER INSERT OR DELETE OR UPDATE ON f_qt FOR EACH ROW EXECUTE FUNCTION f_log();
SELECT queue.enqueue('f', '4') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
SELECT payload FROM queue.dequeue('f', max_messages => 10);
SELECT op, payload, state FROM f_log ORDER BY payload, op, state;
DROP TRIGGER f_log ON f_qt;
-- one that changes the payload before it is stored
CREATE FUNCTION f_upper() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.payload = upper(NEW.payload); RETURN NEW; END $$;
CREATE TRIGGER f_upper BEFORE INSERT ON f_qt FOR EACH ROW EXECUTE FUNCTION f_upper();
SELECT queue.enqueue('f', 'loud') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
DROP TRIGGER f_upper ON f_qt;

-- constraints of the user's
ALTER TABLE f_qt ADD CONSTRAINT short CHECK (length(payload) < 10);
CALL pg_temp.try($$SELECT queue.enqueue('f', 'much too long for this')$$, brief => true);
SELECT queue.enqueue('f', 'short') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
ALTER TABLE f_qt DROP CONSTRAINT short;
ALTER TABLE f_qt ALTER payload SET NOT NULL;
CALL pg_temp.try($$SELECT queue.enqueue('f', NULL)$$, brief => true);
ALTER TABLE f_qt ALTER payload DROP NOT NULL;

-- a column of the user's
ALTER TABLE f_qt ADD COLUMN note text DEFAULT 'mine';
SELECT queue.enqueue('f', 'with note') IS NOT NULL AS sent;
SELECT payload, note FROM f_qt WHERE state = 0;
SELECT payload FROM queue.dequeue('f');
SELECT payload, note FROM f_qt WHERE payload = 'with note';
ALTER TABLE f_qt DROP COLUMN note;
SELECT queue.enqueue('f', 'without') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
SELECT payload, state FROM f_qt WHERE payload = 'without';

-- row security on the table: whoever may use the queue is not caught in it
ALTER TABLE f_qt ENABLE ROW LEVEL SECURITY;
SELECT queue.enqueue('f', 'rls') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
ALTER TABLE f_qt DISABLE ROW LEVEL SECURITY;

-- plain SQL on the table
SELECT queue.enqueue('f', n::text) IS NOT NULL AS sent FROM generate_series(1, 4) n;
DELETE FROM f_qt WHERE payload = '1' AND state = 0;
SELECT payload FROM queue.dequeue('f');
UPDATE f_qt SET payload = 'changed' WHERE payload = '3' AND state = 0;
SELECT payload FROM queue.dequeue('f');
INSERT INTO f_qt (queue_id, consumer_id, msgid, priority, state, segment, retry_count, payload)
SELECT id, 0, '00000000-0000-7000-8000-000000000001', 1, 0, 2, 0, 'old id' FROM queue.queue WHERE view = 'f'::regclass;
SELECT payload FROM queue.dequeue('f');
SELECT payload FROM queue.dequeue('f');
SELECT payload FROM queue.dequeue('f');
-- TRUNCATE
SELECT queue.enqueue('f', n::text) IS NOT NULL AS sent FROM generate_series(1, 2) n;
TRUNCATE f_qt;
SELECT payload FROM queue.dequeue('f');
SELECT queue.enqueue('f', 'after') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
-- VACUUM FULL, CLUSTER, REINDEX, ALTER TABLE that rewrites
SELECT queue.enqueue('f', n::text) IS NOT NULL AS sent FROM generate_series(1, 6) n;
SELECT payload FROM queue.dequeue('f');
VACUUM FULL f_qt;
SELECT payload FROM queue.dequeue('f');
REINDEX TABLE f_qt;
SELECT payload FROM queue.dequeue('f');
ALTER TABLE f_qt_ready_0 SET LOGGED;
SELECT payload FROM queue.dequeue('f');
VACUUM f_qt;
SELECT payload FROM queue.dequeue('f', max_messages => 10);

-- our trigger gone: no head, but nothing lost
SELECT tgrelid::regclass::text LIKE '%ready%' AS ready, tgrelid::regclass AS leaf
FROM pg_trigger WHERE tgname = 'queue_message_published' AND tgrelid::regclass::text ~ 'ready' ORDER BY tgrelid::regclass::text LIMIT 1 \gset
SELECT :'ready' AS ready;
SELECT queue.enqueue('f', n::text) IS NOT NULL AS sent FROM generate_series(1, 3) n;
SELECT payload FROM queue.dequeue('f');
ALTER TABLE :leaf DISABLE TRIGGER queue_message_published;
BEGIN;
SELECT payload FROM queue.dequeue('f');
ROLLBACK;
SELECT payload FROM queue.dequeue('f');
ALTER TABLE :leaf ENABLE ALWAYS TRIGGER queue_message_published;
SELECT payload FROM queue.dequeue('f');
SELECT payload FROM queue.dequeue('f');

-- the view dropped by hand
SELECT queue.create_queue('f_two', 'f_qt');
SELECT queue.enqueue('f_two', 'orphan') IS NOT NULL AS sent;
DROP VIEW f_two;
SELECT count(*) FROM queue.queue WHERE queue_table = 'f_qt'::regclass;
CALL pg_temp.try($$SELECT queue.enqueue('f_two', 'x')$$);
SELECT queue, user_data, msg_state FROM "aq$f_qt" WHERE user_data = 'orphan';
SELECT queue.create_queue('f_two', 'f_qt');
SELECT count(*) FROM queue.dequeue('f_two');
-- the default exception queue dropped by hand
DROP VIEW "aq$_f_qt_e";
SELECT queue.enqueue('f', 'expired', expiration => '1 us') IS NOT NULL AS sent;
SELECT queue.enqueue('f', 'next') IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.dequeue('f')$$);
-- adopt makes it again, with what was in it
SELECT queue.adopt('f_qt');
SELECT payload FROM queue.dequeue('f');
SELECT payload, state FROM "aq$_f_qt_e";
DROP VIEW "aq$_f_qt_e";
SELECT queue.adopt('f_qt');
SELECT view, queue_type, is_default_exception, enqueue_enabled, dequeue_enabled FROM queue.queue WHERE queue_table = 'f_qt'::regclass ORDER BY id;
SELECT payload, state FROM "aq$_f_qt_e";
SELECT queue.start_queue('"aq$_f_qt_e"', enqueue => false);
SELECT payload FROM queue.dequeue('"aq$_f_qt_e"');
SELECT queue.drop_queue_table('f_qt', force => true);

-- columns renamed: nothing is lost without a word
SELECT queue.create_queue('f', payload_type => 'text');
ALTER VIEW f RENAME COLUMN priority TO urgency;
ALTER VIEW f ALTER COLUMN urgency DROP DEFAULT;
CALL pg_temp.try($$INSERT INTO f (payload, urgency) VALUES ('x', 7)$$);
INSERT INTO f (payload) VALUES ('without');
ALTER VIEW f RENAME COLUMN payload TO body;
CALL pg_temp.try($$INSERT INTO f (body) VALUES ('x')$$);
SELECT payload, priority FROM queue.dequeue('f', max_messages => 10);
ALTER VIEW f RENAME COLUMN delay TO wait;
ALTER VIEW f RENAME COLUMN body TO delay;
CALL pg_temp.try($$INSERT INTO f (delay) VALUES ('x')$$);
ALTER TABLE f_qt RENAME COLUMN payload TO body;
CALL pg_temp.try($$SELECT queue.enqueue('f', 'x')$$);
CALL pg_temp.try($$SELECT queue.dequeue('f')$$);
CALL pg_temp.try($$SELECT queue.dequeue_as(NULL::text, 'f')$$);
ALTER TABLE f_qt RENAME COLUMN body TO payload;
SELECT queue.enqueue('f', 'again') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
SELECT queue.drop_queue_table('f_qt', force => true);

-- a leaf dropped or detached
SELECT queue.create_queue('f');
SELECT relid::regclass AS leaf FROM pg_partition_tree('f_qt') WHERE isleaf AND relid::regclass::text ~ 'waiting' \gset
DROP TABLE :leaf;
SELECT queue.enqueue('f', '1') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('f');
CALL pg_temp.try($$SELECT queue.enqueue('f', '1', delay => '1 day')$$, brief => true);
SELECT queue.drop_queue_table('f_qt', force => true);

-- the payload's type dropped
CREATE TYPE f_t AS (n int);
SELECT queue.create_queue('f', payload_type => 'f_t');
SELECT queue.enqueue('f', ROW(1)) IS NOT NULL AS sent;
CALL pg_temp.try($$DROP TYPE f_t$$, brief => true);
SET client_min_messages = warning;
DROP TYPE f_t CASCADE;
RESET client_min_messages;
CALL pg_temp.try($$SELECT queue.enqueue('f', ROW(1))$$);
CALL pg_temp.try($$SELECT queue.dequeue('f')$$);
SELECT count(*) FROM f_qt;
SELECT queue.drop_queue_table('f_qt', force => true);
SELECT count(*) FROM queue.queue_table;
SELECT count(*) FROM queue.queue;

-- adopt: the catalog's rows are lost, the user's objects are not
SELECT queue.create_queue('f', payload_type => 'text', sort_list => 'priority', max_retries => 2, retry_delay => '3 s', retention_time => NULL);
SELECT queue.create_queue('f_exc', 'f_qt', queue_type => 'exception');
SELECT queue.enqueue('f', n::text, priority => n) IS NOT NULL AS sent FROM generate_series(1, 2) n;
DELETE FROM queue.queue;
DELETE FROM queue.queue_table;
SELECT queue.adopt('f_qt');
SELECT view, queue_type, max_retries, retry_delay, retention_time, is_default_exception FROM queue.queue ORDER BY id;
SELECT payload_type, sort_list FROM queue.queue_table;
SELECT queue.start_queue('f');
SELECT payload FROM queue.dequeue('f', max_messages => 10);
SELECT queue.adopt('f_qt');
CALL pg_temp.try($$SELECT queue.adopt('f_log')$$);
SELECT queue.drop_queue_table('f_qt', force => true);

DROP TABLE f_log;
DROP FUNCTION f_log;
DROP FUNCTION f_upper;
