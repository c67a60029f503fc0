-- Proves: browse, locked, remove and remove_nodata do what they say, and bad arguments are refused.
-- How: each mode on the same messages, also in a transaction, with LIMIT and in a cursor.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('m', payload_type => 'text');
SELECT queue.enqueue('m', n::text, correlation => 'c' || n) IS NOT NULL AS sent FROM generate_series(1, 8) n;

SELECT payload FROM queue.dequeue('m', mode => 'browse');
SELECT payload FROM queue.dequeue('m', mode => 'browse', max_messages => 3);
SELECT count(*) FROM m;
-- locked: stays, and can be removed by msgid in the same transaction
BEGIN;
SELECT msgid AS id, payload FROM queue.dequeue('m', mode => 'locked') \gset
SELECT :'payload' AS locked;
SELECT payload FROM queue.dequeue('m', msgid => :'id');
COMMIT;
SELECT payload FROM queue.dequeue('m', mode => 'browse');
BEGIN;
SELECT payload FROM queue.dequeue('m', mode => 'locked', max_messages => 2);
COMMIT;
SELECT count(*) FROM m;
-- remove, the default
SELECT payload FROM queue.dequeue('m');
SELECT payload FROM queue.dequeue('m', mode => 'REMOVE');
-- remove_nodata: everything but the payload
SELECT payload, correlation, priority FROM queue.dequeue('m', mode => 'remove_nodata');
SELECT payload, correlation, priority FROM queue.dequeue_as(NULL::text, 'm', mode => 'remove_nodata');
SELECT payload FROM m ORDER BY msgid;
-- a LIMIT outside never changes what is taken
SELECT payload FROM queue.dequeue('m', max_messages => 2) LIMIT 1;
SELECT payload FROM m ORDER BY msgid;
-- none in a cursor that is not read to its end
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT payload FROM queue.dequeue('m', max_messages => 2);
COMMIT;
FETCH c;
SELECT count(*) FROM m;
CLOSE c;
-- empty
SELECT payload FROM queue.dequeue('m');
SELECT payload FROM queue.dequeue('m', mode => 'browse');
SELECT payload FROM queue.dequeue('m', mode => 'locked');
SELECT payload FROM queue.dequeue('m', mode => 'remove_nodata');
-- waiting ends
SELECT payload FROM queue.dequeue('m', wait => '10 ms');
SET statement_timeout = '100 ms';
CALL pg_temp.try($$SELECT queue.dequeue('m', wait => '1 hour')$$);
SELECT queue.dequeue('m', wait => NULL);
RESET statement_timeout;

-- all properties come back
SELECT queue.enqueue('m', 'x', priority => 7, expiration => '1 day', correlation => 'corr', properties => '{"a": [1, null]}',
	sender => 'someone', group_key => 'g', reply_to => 'elsewhere', routing_key => 'a.b.c') AS id \gset
SELECT priority, correlation, properties, sender, group_key, reply_to, routing_key, state, retry_count,
	expiration::interval(0), delay, deliver_at, msgid = :'id' AS msgid, enq_time = queue.enq_time(msgid) AS enq_time, (expires_at - enq_time)::interval(0) AS lives
FROM m;
SELECT msgid = :'id' AS msgid, payload, priority, correlation, enq_time = queue.enq_time(msgid) AS enq_time, retry_count, properties,
	sender, group_id, step, original_msgid, (expires_at - enq_time)::interval(0) AS lives, reply_to, routing_key, group_key
FROM queue.dequeue('m');
SELECT abs(extract(epoch FROM queue.enq_time(:'id') - now())) < 86400 AS about_now;

-- refused
CALL pg_temp.try($$SELECT queue.dequeue('m', mode => 'strange')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', navigation => 'sideways')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', max_messages => 0)$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', max_messages => -1)$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', max_messages => 1000001)$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', wait => '-1 ms')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', visibility => 'later')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', visibility => 'immediate')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', delivery_mode => 'strange')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', delivery_mode => 'buffered')$$);
CALL pg_temp.try($$SELECT queue.dequeue('m', consumer => 'me')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', priority => 2147483648)$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', visibility => 'later')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', visibility => 'immediate')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', delivery_mode => 'buffered')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', dedup_key => 'd')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', recipients => ARRAY[ROW('a', NULL, NULL)::queue.agent])$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', sequence_deviation => 'top')$$);
CALL pg_temp.try($$SELECT queue.enqueue('m', 'x', relative_msgid => '00000000-0000-7000-8000-000000000000')$$);
SELECT count(*) FROM m;
-- NULL is the default
SELECT queue.enqueue('m', 'null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) IS NOT NULL AS sent;
SELECT payload, priority FROM queue.dequeue('m', mode => NULL, navigation => NULL, max_messages => NULL, visibility => NULL, delivery_mode => NULL);
-- immediate is the same as on_commit where there is no transaction block
SELECT queue.enqueue('m', 'immediate', visibility => 'immediate') IS NOT NULL AS sent;
BEGIN;
SELECT queue.enqueue('m', 'immediate', visibility => 'immediate') IS NOT NULL AS sent;
ROLLBACK;
BEGIN;
SELECT payload FROM queue.dequeue('m', visibility => 'immediate');
ROLLBACK;
SELECT payload FROM queue.dequeue('m', visibility => 'immediate');
SELECT queue.enqueue('m', 'spelled out', visibility => 'ON_COMMIT', delivery_mode => 'Persistent') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('m', visibility => 'on_commit', delivery_mode => 'persistent');
SELECT count(*) FROM m;
SELECT queue.drop_queue_table('m_qt', force => true);
