-- Proves: payloads of any base, domain, composite, array, enum or range type come back as they were sent.
-- How: a queue for each type, values at its edges, dequeue as jsonb and typed; wrong types are refused.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
CREATE TYPE address_t AS (street text, "Zip Code" int);
CREATE TYPE customer_t AS (id int, name text, home address_t, tags text[]);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN filled AS text NOT NULL;
CREATE DOMAIN rich AS customer_t CHECK ((VALUE).id <> 0);
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE row_t (n int, gone int, t text);
ALTER TABLE row_t DROP COLUMN gone;

SELECT queue.create_queue('p_text', payload_type => 'text');
SELECT queue.create_queue('p_bytea', payload_type => 'bytea');
SELECT queue.create_queue('p_json', payload_type => 'json');
SELECT queue.create_queue('p_jsonb', payload_type => 'jsonb');
SELECT queue.create_queue('p_composite', payload_type => 'customer_t');
SELECT queue.create_queue('p_domain', payload_type => 'positive');
SELECT queue.create_queue('p_filled', payload_type => 'filled');
SELECT queue.create_queue('p_rich', payload_type => 'rich');
SELECT queue.create_queue('p_array', payload_type => 'int[]');
SELECT queue.create_queue('p_enum', payload_type => 'mood');
SELECT queue.create_queue('p_int', payload_type => 'int');
SELECT queue.create_queue('p_range', payload_type => 'int4range');
SELECT queue.create_queue('p_row', payload_type => 'row_t');

-- text, with nothing in it and with a lot
SELECT queue.enqueue('p_text', 'plain') IS NOT NULL AS sent;
SELECT queue.enqueue('p_text', '') IS NOT NULL AS sent;
SELECT queue.enqueue('p_text', E'quo"te, back\\slash, new\nline, ü, 😀') IS NOT NULL AS sent;
SELECT queue.enqueue('p_text', NULL) IS NOT NULL AS sent;
SELECT payload, payload IS NULL AS isnull FROM queue.dequeue('p_text', max_messages => 10);
SELECT queue.enqueue('p_text', repeat('x', 3000000)) IS NOT NULL AS sent;
SELECT queue.enqueue('p_text', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 20000) n)) IS NOT NULL AS sent;
SELECT length(payload), md5(payload) FROM queue.dequeue_as(NULL::text, 'p_text', max_messages => 2);
SELECT md5(repeat('x', 3000000)), md5(string_agg(md5(n::text), '')) FROM generate_series(1, 20000) n;

SELECT queue.enqueue('p_bytea', '\x00ff41'::bytea) IS NOT NULL AS sent;
SELECT queue.enqueue('p_bytea', '\x00ff42') IS NOT NULL AS sent;
SELECT queue.enqueue('p_bytea', ''::bytea) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_bytea', mode => 'browse', max_messages => 10);
SELECT payload FROM queue.dequeue_as(NULL::bytea, 'p_bytea', max_messages => 10);

SELECT queue.enqueue('p_json', '{"b": 1,  "a": 2, "a": 3}'::json) IS NOT NULL AS sent;
SELECT queue.enqueue('p_json', '{"a": 1}'::jsonb) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_json', mode => 'browse', max_messages => 10);
SELECT payload FROM queue.dequeue_as(NULL::json, 'p_json', max_messages => 10);
SELECT queue.enqueue('p_jsonb', '{"b": 1,  "a": 2, "a": 3}') IS NOT NULL AS sent;
SELECT queue.enqueue('p_jsonb', '{"c": 1}'::json) IS NOT NULL AS sent;
SELECT queue.enqueue('p_jsonb', 'null') IS NOT NULL AS sent;
SELECT queue.enqueue('p_jsonb', NULL::jsonb) IS NOT NULL AS sent;
SELECT payload, payload IS NULL AS isnull FROM queue.dequeue('p_jsonb', mode => 'browse', max_messages => 10);
SELECT payload, payload IS NULL AS isnull FROM queue.dequeue_as(NULL::jsonb, 'p_jsonb', max_messages => 10);

-- composites: typed, anonymous, as text, with NULLs, nested
SELECT queue.enqueue('p_composite', ROW(1, 'one', ROW('street', 12345), '{a,b}')::customer_t) IS NOT NULL AS sent;
SELECT queue.enqueue('p_composite', ROW(2, 'two', NULL, NULL)) IS NOT NULL AS sent;
SELECT queue.enqueue('p_composite', '(3,"three, 3",,)') IS NOT NULL AS sent;
SELECT queue.enqueue('p_composite', ROW(4, NULL, ROW('s', 1), '{}')) IS NOT NULL AS sent;
SELECT queue.enqueue('p_composite', NULL::customer_t) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_composite', mode => 'browse', max_messages => 10);
SELECT (payload).id, (payload).name, (payload).home, ((payload).home)."Zip Code", (payload).tags, pg_typeof(payload)
FROM queue.dequeue_as(NULL::customer_t, 'p_composite', max_messages => 10);
-- a table's row type with a dropped column
INSERT INTO row_t VALUES (1, 'from table');
SELECT queue.enqueue('p_row', r) IS NOT NULL AS sent FROM row_t r;
SELECT queue.enqueue('p_row', ROW(2, 'anonymous')) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_row', mode => 'browse', max_messages => 10);
SELECT (payload).* FROM queue.dequeue_as(NULL::row_t, 'p_row', max_messages => 10);

-- domains
SELECT queue.enqueue('p_domain', 5) IS NOT NULL AS sent;
SELECT queue.enqueue('p_domain', '6') IS NOT NULL AS sent;
SELECT queue.enqueue('p_domain', 7::positive) IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.enqueue('p_domain', -5)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_domain', '-5')$$);
CALL pg_temp.try($$INSERT INTO p_domain (payload) VALUES (-5)$$);
SELECT payload, pg_typeof(payload) FROM queue.dequeue_as(NULL::positive, 'p_domain', max_messages => 10);
SELECT queue.enqueue('p_filled', 'full') IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.enqueue('p_filled', NULL)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_filled', NULL::text)$$);
SELECT payload FROM queue.dequeue('p_filled', max_messages => 10);
SELECT queue.enqueue('p_rich', ROW(1, 'one', NULL, NULL)::customer_t) IS NOT NULL AS sent;
SELECT queue.enqueue('p_rich', ROW(2, 'two', NULL, NULL)) IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.enqueue('p_rich', ROW(0, 'two', NULL, NULL))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_rich', ROW(0, 'two', NULL, NULL)::customer_t)$$);
SELECT (payload).id, pg_typeof(payload) FROM queue.dequeue_as(NULL::rich, 'p_rich', max_messages => 10);

-- arrays, enums, numbers, ranges
SELECT queue.enqueue('p_array', ARRAY[1, NULL, 3]) IS NOT NULL AS sent;
SELECT queue.enqueue('p_array', '{{1,2},{3,4}}') IS NOT NULL AS sent;
SELECT queue.enqueue('p_array', ARRAY[1]::bigint[]) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_array', mode => 'browse', max_messages => 10);
SELECT payload FROM queue.dequeue_as(NULL::int[], 'p_array', max_messages => 10);
SELECT queue.enqueue('p_enum', 'happy') IS NOT NULL AS sent;
SELECT queue.enqueue('p_enum', 'sad'::mood) IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.enqueue('p_enum', 'angry')$$);
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
SELECT payload FROM queue.dequeue_as(NULL::mood, 'p_enum', max_messages => 10);
SELECT queue.enqueue('p_int', 1) IS NOT NULL AS sent;
SELECT queue.enqueue('p_int', 2::smallint) IS NOT NULL AS sent;
SELECT queue.enqueue('p_int', 3::bigint) IS NOT NULL AS sent;
SELECT queue.enqueue('p_int', 4.6) IS NOT NULL AS sent;
SELECT queue.enqueue('p_int', '5') IS NOT NULL AS sent;
SELECT queue.enqueue('p_int', NULL) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue_as(NULL::int, 'p_int', max_messages => 10);
SELECT queue.enqueue('p_range', int4range(1, 5)) IS NOT NULL AS sent;
SELECT queue.enqueue('p_range', '[7,7]') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_range', max_messages => 10);

-- refused: nothing is stored
CALL pg_temp.try($$SELECT queue.enqueue('p_jsonb', '{bad')$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_jsonb', 5)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_int', 'five')$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_int', 3000000000)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_int', current_date)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_int', ROW(1, 2))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_bytea', now())$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_bytea', '\xZZ')$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_composite', ROW(1, 'too few'))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_composite', ROW(1, 'x', NULL, NULL, 'too many'))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_composite', ROW('not a number', 'x', NULL, NULL))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_composite', ROW(current_date, 'x', NULL, NULL))$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_composite', ROW('street', 1)::address_t)$$);
CALL pg_temp.try($$SELECT queue.enqueue('p_jsonb', '"\u0000"')$$);
-- dequeue_as another type than the queue's
SELECT queue.enqueue('p_int', 1) IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT * FROM queue.dequeue_as(NULL::date, 'p_int')$$);
CALL pg_temp.try($$SELECT * FROM queue.dequeue_as(row(1, 2), 'p_int')$$);
CALL pg_temp.try($$SELECT * FROM queue.dequeue_as(NULL, 'p_int')$$);
SELECT payload FROM queue.dequeue('p_int');
SELECT count(*) FROM p_jsonb;
SELECT count(*) FROM p_composite;

-- a composite that grows while messages are stored
SELECT queue.enqueue('p_row', ROW(1, 'before')) IS NOT NULL AS sent;
CALL pg_temp.try($$ALTER TABLE row_t ADD COLUMN extra int$$);
CALL pg_temp.try($$ALTER TYPE address_t ADD ATTRIBUTE country text CASCADE$$);
SELECT (payload).* FROM queue.dequeue_as(NULL::row_t, 'p_row');
SELECT queue.enqueue('p_composite', ROW(1, 'one', ROW('street', 12345, 'land'), '{a,b}')) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('p_composite');
-- the type cannot be dropped under the queue
CALL pg_temp.try($$DROP TYPE mood$$, brief => true);

DO $$
DECLARE
	t regclass;
BEGIN
	FOR t IN SELECT relation FROM queue.queue_table LOOP
		PERFORM queue.drop_queue_table(t, force => true);
	END LOOP;
END $$;
DROP DOMAIN positive, filled, rich;
DROP TYPE customer_t, address_t, mood;
DROP TABLE row_t;
