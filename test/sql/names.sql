-- Proves: any legal name works for queues, queue tables and schemas, and derived names do not collide.
-- How: quotes, upper case, spaces, dots, non-ASCII, 63 bytes, reserved words, renames, search_path.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('"Upper"');
SELECT queue.create_queue('UPPER');
SELECT queue.create_queue('"with space"');
SELECT queue.create_queue('"with.dot"');
SELECT queue.create_queue('"with ""quotes"""');
SELECT queue.create_queue($$"it's"$$);
SELECT queue.create_queue('"$$;--\%s"');
SELECT queue.create_queue('"select"');
SELECT queue.create_queue('"1st"');
SELECT queue.create_queue('häuser_名前');
CREATE SCHEMA "My Schem.a";
SELECT queue.create_queue('"My Schem.a"."Q ""x""; é"');

-- each sends to itself and takes from itself
DO $$
DECLARE
	q regclass;
	got jsonb;
BEGIN
	FOR q IN SELECT view FROM queue.queue WHERE queue_type = 'normal' LOOP
		PERFORM queue.enqueue(q, to_jsonb(q::text));
		EXECUTE format('INSERT INTO %s (payload) VALUES ($1)', q) USING to_jsonb(q::text);
	END LOOP;
	FOR q IN SELECT view FROM queue.queue WHERE queue_type = 'normal' LOOP
		SELECT jsonb_agg(payload) INTO got FROM queue.dequeue(q, max_messages => 10);
		IF got IS DISTINCT FROM jsonb_build_array(q::text, q::text) THEN
			RAISE WARNING '% got %', q, got;
		END IF;
	END LOOP;
END $$;
SELECT view, queue_table FROM queue.queue WHERE queue_type = 'normal' ORDER BY view::text COLLATE "C";
SELECT relation FROM queue.queue_table ORDER BY relation::text COLLATE "C";

-- a name given as text, resolved by search_path
SET search_path = "My Schem.a", public;
SELECT queue.enqueue('"Q ""x""; é"'::text, '1') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('"Q ""x""; é"');
RESET search_path;

-- 63 bytes, and others that differ in the last of them
SELECT queue.create_queue(repeat('a', 63));
SELECT queue.create_queue(repeat('a', 62) || 'b');
SELECT queue.create_queue(repeat('a', 61));
SELECT queue.create_queue(repeat('ü', 31));
SELECT queue.create_queue_table(repeat('t', 63));
SELECT queue.create_queue_table(repeat('t', 62));
SELECT queue.create_queue('long_one', repeat('t', 63));
SELECT queue.create_queue('long_two', repeat('t', 62));
SELECT queue.enqueue(repeat('a', 63), '1') IS NOT NULL AS sent;
SELECT queue.enqueue(repeat('a', 62) || 'b', '2') IS NOT NULL AS sent;
SELECT queue.enqueue(repeat('a', 61), '3') IS NOT NULL AS sent;
SELECT queue.enqueue(repeat('ü', 31), '4') IS NOT NULL AS sent;
SELECT queue.enqueue('long_one', '5') IS NOT NULL AS sent;
SELECT queue.enqueue('long_two', '6') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue(repeat('a', 63));
SELECT payload FROM queue.dequeue(repeat('a', 62) || 'b');
SELECT payload FROM queue.dequeue(repeat('a', 61));
SELECT payload FROM queue.dequeue(repeat('ü', 31));
SELECT payload FROM queue.dequeue('long_one');
SELECT payload FROM queue.dequeue('long_two');
-- each has its own table, exception queue and message view
SELECT count(*) AS tables FROM queue.queue_table;
SELECT count(*) AS exception_queues FROM queue.queue WHERE is_default_exception;
SELECT count(*) AS message_views FROM pg_views WHERE viewname LIKE 'aq$%' AND viewname NOT LIKE 'aq$\_%';

-- 64 bytes are too long, and nothing is cut without a word
CALL pg_temp.try(format('SELECT queue.create_queue(%L)', repeat('a', 64)));
CALL pg_temp.try(format('SELECT queue.create_queue(%L)', repeat('ü', 32)));
CALL pg_temp.try(format('SELECT queue.create_queue_table(%L)', repeat('a', 64)));
-- not names
CALL pg_temp.try($$SELECT queue.create_queue('two words')$$);
CALL pg_temp.try($$SELECT queue.create_queue('"open')$$);
CALL pg_temp.try($$SELECT queue.create_queue('""')$$);
CALL pg_temp.try($$SELECT queue.create_queue('a.')$$);
CALL pg_temp.try($$SELECT queue.create_queue('a;drop table b')$$);

-- a queue whose own table's name is taken
CREATE TABLE taken_qt (n int);
SELECT queue.create_queue('taken');
SELECT queue_table <> 'taken_qt'::regclass AS another_name FROM queue.queue WHERE view = 'taken'::regclass;
DROP TABLE taken_qt;

-- renamed and moved queues keep their messages
SELECT queue.create_queue('old_name');
SELECT queue.enqueue('old_name', '"kept"') IS NOT NULL AS sent;
ALTER VIEW old_name RENAME TO "New Name";
ALTER TABLE old_name_qt RENAME TO "New Table";
CREATE SCHEMA elsewhere;
ALTER VIEW "New Name" SET SCHEMA elsewhere;
SELECT queue.enqueue('elsewhere."New Name"', '"sent"') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('elsewhere."New Name"', max_messages => 5);
CALL pg_temp.try($$SELECT queue.enqueue('old_name', '1')$$);
SELECT view, queue_table FROM queue.queue WHERE view::text ~ 'New Name';
SELECT queue.drop_queue_table('"New Table"', force => true);
DROP SCHEMA elsewhere;

DO $$
DECLARE
	t regclass;
BEGIN
	FOR t IN SELECT relation FROM queue.queue_table LOOP
		PERFORM queue.drop_queue_table(t, force => true);
	END LOOP;
END $$;
SELECT count(*) FROM queue.queue_table;
SELECT count(*) FROM queue.queue;
DROP SCHEMA "My Schem.a";
