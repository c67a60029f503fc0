-- Proves: any way to write a call resolves to one function, and types arrive as meant.
-- How: untyped, named, prepared and computed arguments; every integer type; quoted queue names; unknown names.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('o');
CREATE DOMAIN text_d AS text;
CREATE FUNCTION pg_temp.got() RETURNS text LANGUAGE sql VOLATILE
AS $$ SELECT string_agg(payload::text, ' ') FROM queue.dequeue('o', max_messages => 100) $$;

-- two overloads each, no more
SELECT p.proname, p.proargtypes[1]::regtype AS payload, p.pronargs, p.provolatile, p.proparallel, p.proisstrict
FROM pg_proc p WHERE p.pronamespace = 'queue'::regnamespace AND p.proname IN ('enqueue', 'enqueue_array')
ORDER BY 1, 2::text;

-- payload
SELECT queue.enqueue('o', '1') IS NOT NULL AS sent;
SELECT queue.enqueue('o', '2'::text) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '3'::varchar(10)) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '4'::char(5)) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '5'::name) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '6'::text_d) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '7'::json) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '8'::jsonb) IS NOT NULL AS sent;
SELECT queue.enqueue('o', to_jsonb(9)) IS NOT NULL AS sent;
SELECT queue.enqueue('o', (SELECT '10')) IS NOT NULL AS sent;
SELECT queue.enqueue('o', CASE WHEN true THEN '11' END) IS NOT NULL AS sent;
SELECT queue.enqueue('o', NULL) IS NOT NULL AS sent;
SELECT queue.enqueue('o', payload => '12') IS NOT NULL AS sent;
SELECT queue.enqueue(payload => '13', queue => 'o') IS NOT NULL AS sent;
SELECT queue.enqueue('o', jsonb_build_object('a', 14)) IS NOT NULL AS sent;
SELECT pg_temp.got();

-- parameters: unknown, text, varchar, jsonb
PREPARE p1 AS SELECT queue.enqueue($1, $2) IS NOT NULL AS sent;
EXECUTE p1('o', '1');
PREPARE p2 (varchar, varchar) AS SELECT queue.enqueue($1, $2) IS NOT NULL AS sent;
EXECUTE p2('o', '2');
PREPARE p3 (text, jsonb) AS SELECT queue.enqueue($1, $2) IS NOT NULL AS sent;
EXECUTE p3('o', '3');
PREPARE p4 (regclass, text, bigint) AS SELECT queue.enqueue($1, $2, priority => $3) IS NOT NULL AS sent;
EXECUTE p4('o', '4', 5);
DEALLOCATE ALL;
DO $$
DECLARE
	q text = 'o';
	body jsonb = '5';
	s text = '6';
BEGIN
	PERFORM queue.enqueue(q, body);
	PERFORM queue.enqueue(q, s);
	PERFORM queue.enqueue('o'::regclass, s, 1, NULL, NULL, NULL, 'positional');
END $$;
SELECT pg_temp.got();

-- integers of every size
SELECT queue.enqueue('o', '1', priority => 5::smallint) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '2', priority => 5) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '3', priority => 5::bigint) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('o', max_messages => 1::smallint);
SELECT payload FROM queue.dequeue('o', max_messages => 1::bigint);
SELECT payload FROM queue.dequeue('o', 'remove', max_messages => 1);
SELECT payload FROM queue.dequeue('o', mode => 'remove'::varchar);

-- times as literals and typed
SELECT queue.enqueue('o', '1', delay => '0') IS NOT NULL AS sent;
SELECT queue.enqueue('o', '2', delay => interval '0') IS NOT NULL AS sent;
SELECT queue.enqueue('o', '3', deliver_at => now()) IS NOT NULL AS sent;
SELECT queue.enqueue('o', '4', deliver_at => '2001-01-01') IS NOT NULL AS sent;
SELECT queue.enqueue('o', '5', deliver_at => timestamp '2001-01-01') IS NOT NULL AS sent;
SELECT queue.enqueue('o', '6', properties => '{"a": 1}', sender => NULL) IS NOT NULL AS sent;
SELECT pg_temp.got();

-- the result's columns, in order
SELECT * FROM queue.dequeue('o') LIMIT 0;
SELECT (queue.dequeue('o')).* LIMIT 0;
SELECT * FROM queue.dequeue_as(NULL::jsonb, 'o') LIMIT 0;
-- in FROM, in a join, in a CTE, in PL/pgSQL
SELECT count(queue.enqueue('o', n::text)) FROM generate_series(1, 6) n;
WITH m AS MATERIALIZED (SELECT * FROM queue.dequeue('o')) SELECT payload FROM m;
SELECT n, m.payload FROM generate_series(1, 2) n CROSS JOIN LATERAL queue.dequeue('o', max_messages => n - n + 1) m ORDER BY n;
DO $$
DECLARE
	m record;
BEGIN
	FOR m IN SELECT * FROM queue.dequeue('o', max_messages => 2) LOOP
		RAISE INFO 'got %', m.payload;
	END LOOP;
	SELECT * INTO m FROM queue.dequeue('o');
	RAISE INFO 'got %', m.payload;
	SELECT * INTO m FROM queue.dequeue('o');
	RAISE INFO 'found: %', FOUND;
END $$;

-- queue by name as it would be written in SQL
CALL pg_temp.try($$SELECT queue.enqueue('O', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('"O"', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('o', '1', no_such_argument => 1)$$);
CALL pg_temp.try($$SELECT queue.enqueue(0::oid, '1')$$);
CALL pg_temp.try($$SELECT queue.dequeue(1::oid)$$);
SELECT pg_temp.got();
SELECT queue.drop_queue_table('o_qt', force => true);
DROP DOMAIN text_d;
