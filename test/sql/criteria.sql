-- Proves: correlation patterns, conditions and msgids find the right messages, and bad ones are refused with the cause.
-- How: one queue of composites, one of jsonb; every kind of criterion, alone and together.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
CREATE TYPE order_t AS (id int, customer text);
SELECT queue.create_queue('k', payload_type => 'order_t');
SELECT queue.create_queue('k_json');
SELECT queue.create_queue('k_other', 'k_qt');
SELECT queue.enqueue('k', ROW(n, 'customer ' || n)::order_t, priority => 10 - n, correlation => c, properties => jsonb_build_object('n', n)) IS NOT NULL AS sent
FROM unnest(ARRAY['red', 'blue', 'green', 'reed', '10%', '100', 'r\d']) WITH ORDINALITY u (c, n);
SELECT queue.enqueue('k', ROW(8, NULL)::order_t) IS NOT NULL AS sent;
SELECT queue.enqueue('k_other', ROW(99, 'neighbour')::order_t, correlation => 'red') IS NOT NULL AS sent;
CREATE FUNCTION pg_temp.look(correlation text DEFAULT NULL, condition text DEFAULT NULL) RETURNS SETOF int LANGUAGE sql
AS $$ SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', mode => 'browse', correlation => $1, condition => $2, max_messages => 100) $$;

-- correlation: exact, and LIKE patterns
SELECT * FROM pg_temp.look('red');
SELECT * FROM pg_temp.look('r%');
SELECT * FROM pg_temp.look('re_d');
SELECT * FROM pg_temp.look('%');
SELECT * FROM pg_temp.look('10\%');
SELECT * FROM pg_temp.look('10%');
SELECT * FROM pg_temp.look('r\\d');
SELECT * FROM pg_temp.look('RED');
SELECT * FROM pg_temp.look('');

-- conditions: the view's columns, Oracle's, the payload
SELECT * FROM pg_temp.look(condition => 'priority < 5');
SELECT * FROM pg_temp.look(condition => $$correlation = 'blue' OR correlation IS NULL$$);
SELECT * FROM pg_temp.look(condition => $$corrid = 'blue'$$);
SELECT * FROM pg_temp.look(condition => '(payload).id BETWEEN 3 AND 4');
SELECT * FROM pg_temp.look(condition => 'tab.user_data.id = 2');
SELECT * FROM pg_temp.look(condition => $$tab.user_data.customer LIKE '%3' AND priority = 7$$);
SELECT * FROM pg_temp.look(condition => 'TAB.USER_DATA.ID = 2');
SELECT * FROM pg_temp.look(condition => $$(properties ->> 'n')::int > 6$$);
SELECT * FROM pg_temp.look(condition => $$enq_time <= clock_timestamp() AND retry_count = 0 AND state = 'ready' AND (payload).id = 1$$);
SELECT * FROM pg_temp.look(condition => '(payload).id = (SELECT 1 + 1)');
SELECT * FROM pg_temp.look(condition => 'true');
SELECT * FROM pg_temp.look(condition => 'false');
SELECT * FROM pg_temp.look(condition => 'NULL');
-- a NULL in it is no match
SELECT * FROM pg_temp.look(condition => $$(payload).customer <> 'customer 1'$$);
-- both must hold
SELECT * FROM pg_temp.look('r%', 'priority < 9');
-- jsonb
SELECT queue.enqueue('k_json', jsonb_build_object('n', n)) IS NOT NULL AS sent FROM generate_series(1, 3) n;
SELECT payload FROM queue.dequeue('k_json', condition => $$payload @> '{"n": 2}'$$);
SELECT payload FROM queue.dequeue('k_json', condition => $$(payload ->> 'n')::int = 3$$);
SELECT payload FROM queue.dequeue('k_json');

-- refused: not SQL, not one expression, not boolean, what is not there
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'priority <')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => '')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'priority')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'priority, true')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'true ORDER BY 1')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'true); DROP TABLE k_qt; --')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'true; SELECT true')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'no_such_column = 1')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'no_such_function(priority)')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'tab.user_data.nothing = 1')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'count(*) > 0')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => 'generate_series(1, 2) = 1')$$);
-- one that fails at run time: nothing is taken
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => '1 / (priority - 9) > 0')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => '(SELECT n FROM generate_series(1, 2) n) = 1')$$);
CALL pg_temp.try($$SELECT queue.dequeue('k', condition => $q$(payload).id = 3 AND (SELECT id FROM no_such_table) = 1$q$)$$);
SELECT count(*) FROM k;
-- a condition sees only its own queue
SELECT count(*) FROM queue.dequeue('k', mode => 'browse', condition => '(payload).id = 99');

-- msgid: any order, delay ignored, only of this queue
SELECT msgid AS id FROM k WHERE (payload).id = 5 \gset
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', mode => 'browse', msgid => :'id');
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', msgid => :'id');
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', msgid => :'id');
SELECT count(*) FROM queue.dequeue('k', msgid => '00000000-0000-7000-8000-000000000000');
SELECT msgid AS other FROM k_other \gset
SELECT count(*) FROM queue.dequeue('k', msgid => :'other');
-- with other criteria: refused
CALL pg_temp.try(format('SELECT queue.dequeue(%L, msgid => %L, correlation => %L)', 'k', :'other', 'red'));
CALL pg_temp.try(format('SELECT queue.dequeue(%L, msgid => %L, condition => %L)', 'k', :'other', 'true'));

-- taking by criteria leaves the others, and their order
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', correlation => 'green');
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', condition => 'priority = 6');
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k', max_messages => 100);
SELECT (payload).id FROM queue.dequeue_as(NULL::order_t, 'k_other');

-- a condition runs with the caller's rights
CREATE ROLE regress_queue_consumer;
CREATE TABLE secret (n int);
INSERT INTO secret VALUES (1);
SELECT queue.grant_queue_privilege('dequeue', 'k_json', 'regress_queue_consumer');
SELECT queue.enqueue('k_json', '1') IS NOT NULL AS sent;
SET ROLE regress_queue_consumer;
CALL pg_temp.try($$SELECT queue.dequeue('k_json', condition => '(SELECT n FROM secret) = 1')$$);
RESET ROLE;
GRANT SELECT ON secret TO regress_queue_consumer;
SET ROLE regress_queue_consumer;
SELECT payload FROM queue.dequeue('k_json', condition => '(SELECT n FROM secret) = 1');
RESET ROLE;
-- and with the caller's search_path; what it changes is not kept in a plan
SELECT queue.enqueue('k_json', n::text::jsonb) IS NOT NULL AS sent FROM generate_series(1, 2) n;
CREATE SCHEMA k_schema;
CREATE FUNCTION public.wanted() RETURNS jsonb LANGUAGE sql AS $$ SELECT '1'::jsonb $$;
CREATE FUNCTION k_schema.wanted() RETURNS jsonb LANGUAGE sql AS $$ SELECT '2'::jsonb $$;
SELECT payload FROM queue.dequeue('k_json', mode => 'browse', condition => 'payload = wanted()');
SET search_path = k_schema, public;
SELECT payload FROM queue.dequeue('k_json', mode => 'browse', condition => 'payload = wanted()');
RESET search_path;
-- a condition that itself uses queues
SELECT payload FROM queue.dequeue('k_json', condition => $$payload = '2' AND
	(SELECT count(*) FROM queue.dequeue('k_json', mode => 'browse', max_messages => 10, condition => 'payload <> ''9''')) = 2$$);
SELECT payload FROM queue.dequeue('k_json', max_messages => 10);

DROP SCHEMA k_schema CASCADE;
DROP FUNCTION wanted;
DROP TABLE secret;
SELECT queue.drop_queue_table('k_qt', force => true);
SELECT queue.drop_queue_table('k_json_qt', force => true);
DROP TYPE order_t;
DROP ROLE regress_queue_consumer;
