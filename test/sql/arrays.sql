-- Proves: enqueue_array and array dequeue are all or nothing, keep order, and take properties for each message.
-- How: arrays of 0, 1 and many, NULLs, literals, properties of the right and the wrong length.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('a', payload_type => 'text');
SELECT queue.create_queue('a_int', payload_type => 'int');
SELECT queue.create_queue('a_json');

-- a literal, an array, one element, none
SELECT cardinality(queue.enqueue_array('a', '{x,y,z}'));
SELECT cardinality(queue.enqueue_array('a', ARRAY['p', 'q, r', NULL, '']));
SELECT cardinality(queue.enqueue_array('a', ARRAY['one']));
SELECT queue.enqueue_array('a', '{}');
SELECT queue.enqueue_array('a', ARRAY[]::text[]);
SELECT payload, payload IS NULL AS isnull FROM queue.dequeue_as(NULL::text, 'a', max_messages => 100);
-- msgids in the order of the payloads
SELECT queue.enqueue_array('a', '{1,2,3}') AS ids \gset
SELECT array_agg(msgid ORDER BY payload) = :'ids'::uuid[] AS same FROM a;
SELECT payload FROM queue.dequeue('a', max_messages => 2);
SELECT payload FROM queue.dequeue('a', max_messages => 2);
SELECT payload FROM queue.dequeue('a', max_messages => 2);

-- other payload types
SELECT cardinality(queue.enqueue_array('a_int', '{1,2}'));
SELECT cardinality(queue.enqueue_array('a_int', ARRAY[3, 4]));
SELECT cardinality(queue.enqueue_array('a_int', ARRAY[5, 6]::bigint[]));
SELECT payload FROM queue.dequeue_as(NULL::int, 'a_int', max_messages => 10);
SELECT cardinality(queue.enqueue_array('a_json', ARRAY['{"n": 1}', '2', 'null']::jsonb[]));
SELECT cardinality(queue.enqueue_array('a_json', '{"{\"n\": 3}",4}'));
SELECT payload FROM queue.dequeue('a_json', max_messages => 10);
-- a driver's parameter
PREPARE p AS SELECT cardinality(queue.enqueue_array('a_int', $1));
EXECUTE p('{7,8}');
PREPARE p2 (int[]) AS SELECT cardinality(queue.enqueue_array('a_int', $1));
EXECUTE p2('{9}');
SELECT payload FROM queue.dequeue_as(NULL::int, 'a_int', max_messages => 10);
DEALLOCATE ALL;

-- properties, one for each
SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
WHERE attrelid = 'queue.message_properties'::regclass AND attnum > 0 ORDER BY attnum;
SELECT cardinality(queue.enqueue_array('a', '{a,b,c}', ARRAY[
	jsonb_populate_record(NULL::queue.message_properties, '{"priority": 5, "correlation": "first"}'),
	NULL,
	jsonb_populate_record(NULL::queue.message_properties, '{"delay": "1 day", "properties": {"x": 1}}')]));
SELECT payload, priority, correlation, properties, state FROM a ORDER BY msgid;
SELECT payload FROM queue.dequeue('a', max_messages => 10);
SELECT count(*) FROM a;

-- wrong: nothing is stored
CALL pg_temp.try($$SELECT queue.enqueue_array('a', '{a,b}', ARRAY[NULL::queue.message_properties])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a', '{a,b}', ARRAY[]::queue.message_properties[])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a', NULL::text)$$);
CALL pg_temp.try($$SELECT queue.enqueue_array(NULL, '{a}')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a', '{a')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a_int', '{1,two}')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a_int', ARRAY['2020-01-01'::date])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a_int', ARRAY[1, 2147483648])$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a_json', '{1,"{bad"}')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a', '{a,b}', ARRAY[NULL,
	jsonb_populate_record(NULL::queue.message_properties, '{"delay": "-1 s"}')])$$);
SELECT count(*) FROM a;
SELECT count(*) FROM a_int;
-- two dimensions
CALL pg_temp.try($$SELECT queue.enqueue_array('a_int', '{{1,2},{3,4}}')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('a_int', ARRAY[[1, 2], [3, 4]])$$);

-- many
SELECT cardinality(queue.enqueue_array('a_int', array_agg(n ORDER BY n))) FROM generate_series(1, 20000) n;
SELECT count(*), bool_and(payload = place) AS in_order FROM (
	SELECT payload, row_number() OVER () AS place FROM queue.dequeue_as(NULL::int, 'a_int', max_messages => 100000)) m;
-- a rollback takes all of them back
BEGIN;
SELECT cardinality(queue.enqueue_array('a_int', '{1,2,3}'));
ROLLBACK;
SELECT count(*) FROM queue.dequeue('a_int');
-- rows are stored many at a time, large ones and those that wait among them
SELECT queue.create_queue('a_big', payload_type => 'text', sort_list => 'priority,enq_time');
CREATE TEMP TABLE sent AS
SELECT n, n || CASE WHEN n % 50 = 0 THEN (SELECT string_agg(md5(n || ' ' || i), '') FROM generate_series(1, 3000) i) ELSE '' END AS payload,
	jsonb_populate_record(NULL::queue.message_properties, jsonb_build_object('priority', n % 3, 'delay', CASE WHEN n % 7 = 0 THEN '1 hour' END)) AS properties
FROM generate_series(1, 300) n;
SELECT cardinality(queue.enqueue_array('a_big', array_agg(payload ORDER BY n), array_agg(properties ORDER BY n))) FROM sent;
SELECT count(*), bool_and(payload = expected AND priority = (properties).priority) AS as_sent FROM (
	SELECT payload, priority, row_number() OVER () AS place FROM queue.dequeue_as(NULL::text, 'a_big', max_messages => 1000)) m
	FULL JOIN (SELECT payload AS expected, properties, row_number() OVER (ORDER BY (properties).priority, n) AS place FROM sent
		WHERE (properties).delay IS NULL) s USING (place);
SELECT state, count(*) FROM a_big_qt GROUP BY state;
SET enable_seqscan = off;
SELECT count(*) FROM a_big_qt m WHERE queue_id = (SELECT id FROM queue.queue WHERE view = 'a_big'::regclass) AND consumer_id = 0 AND msgid > '00000000-0000-7000-8000-000000000000';
RESET enable_seqscan;
SELECT queue.drop_queue_table('a_big_qt', force => true);

SELECT queue.drop_queue_table('a_qt', force => true);
SELECT queue.drop_queue_table('a_int_qt', force => true);
SELECT queue.drop_queue_table('a_json_qt', force => true);
