-- Proves: a queue's view takes INSERT and COPY as enqueues, refuses DELETE and UPDATE, and shows only its own queue.
-- How: every form of INSERT, COPY in and out, RETURNING, ON CONFLICT, TRUNCATE, a leaky function.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue_table('v_qt', payload_type => 'jsonb');
SELECT queue.create_queue('v', 'v_qt');
SELECT queue.create_queue('v_neighbour', 'v_qt');
SELECT queue.enqueue('v_neighbour', '"secret"') IS NOT NULL AS sent;
SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum;
SELECT reloptions FROM pg_class WHERE oid = 'v'::regclass;

-- INSERT
INSERT INTO v (payload) VALUES ('{"n": 1}');
INSERT INTO v (payload, priority, correlation, properties) VALUES ('2', 5, 'c', '{"p": 1}'), ('3', DEFAULT, NULL, NULL);
INSERT INTO v (payload) SELECT to_jsonb(n) FROM generate_series(4, 6) n;
INSERT INTO v DEFAULT VALUES;
INSERT INTO v (payload, delay, expiration, exception_queue, sender, group_key, reply_to, routing_key)
VALUES ('7', '1 day', '2 days', '"aq$_v_qt_e"', 'me', 'g', 'r', 'k')
RETURNING msgid IS NOT NULL AS msgid, payload, state, deliver_at - enq_time BETWEEN '23:59'::interval AND '24:01' AS in_a_day, expiration, exception_queue, sender, group_key, reply_to, routing_key, retry_count;
INSERT INTO v (payload) VALUES ('8') RETURNING payload, priority, state, msgid IS NOT NULL AS msgid;
INSERT INTO v (payload) VALUES ('9') ON CONFLICT DO NOTHING;
WITH i AS (INSERT INTO v (payload) VALUES ('10') RETURNING msgid)
SELECT count(msgid) FROM i;
PREPARE ins AS INSERT INTO v (payload, priority) VALUES ($1, $2);
EXECUTE ins('11', 3);
DEALLOCATE ins;
INSERT INTO v (payload, deliver_at) VALUES ('12', now() - interval '1 s');
SELECT payload, priority, correlation, properties, state FROM v ORDER BY msgid;
-- the returned msgid is the message's
INSERT INTO v (payload) VALUES ('13') RETURNING msgid AS id \gset
SELECT payload FROM queue.dequeue('v', msgid => :'id');
SELECT payload, priority, correlation FROM queue.dequeue('v', max_messages => 100);
DELETE FROM v_qt WHERE state = 1;

-- COPY
COPY v (payload) FROM stdin;
{"n": 1}
\N
"tab\\tbed"
\.
COPY v (correlation, priority, payload) FROM stdin WITH (FORMAT csv);
c1,7,"{""n"": 2}"
,1,3
\.
SELECT payload, priority, correlation FROM queue.dequeue('v', max_messages => 100);
INSERT INTO v (payload) VALUES ('1');
CALL pg_temp.try($$COPY v TO '/dev/null'$$);
COPY (SELECT payload, priority FROM v ORDER BY msgid) TO stdout;
-- a bad line: nothing is stored
COPY v (payload) FROM stdin;
1
{bad
\.
SELECT payload FROM queue.dequeue('v', max_messages => 100);
-- many lines
COPY v (payload) FROM PROGRAM 'seq 5000';
SELECT count(*), bool_and(payload::int = place) AS in_order FROM (
	SELECT payload, row_number() OVER () AS place FROM queue.dequeue('v', max_messages => 10000)) m;

-- bad input
INSERT INTO v (payload) VALUES ('kept');
INSERT INTO v (payload) VALUES ('"kept"');
CALL pg_temp.try($$INSERT INTO v (payload, state) VALUES ('1', 'ready')$$);
CALL pg_temp.try($$INSERT INTO v (payload, enq_time) VALUES ('1', now())$$);
CALL pg_temp.try($$INSERT INTO v (payload, retry_count) VALUES ('1', 3)$$);
CALL pg_temp.try($$INSERT INTO v (payload, expires_at) VALUES ('1', now())$$);
CALL pg_temp.try($$INSERT INTO v (payload, group_id) VALUES ('1', '00000000-0000-7000-8000-000000000000')$$);
CALL pg_temp.try($$INSERT INTO v (payload, priority) VALUES ('1', 2147483648)$$);
CALL pg_temp.try($$INSERT INTO v (payload) VALUES ('1') ON CONFLICT (msgid) DO NOTHING$$);
CALL pg_temp.try($$INSERT INTO v (payload, msgid) VALUES ('1', '00000000-0000-7000-8000-000000000000')$$);
CALL pg_temp.try($$INSERT INTO v (payload, dedup_key) VALUES ('1', 'd')$$);
SELECT count(*) FROM v;

-- DELETE, UPDATE, TRUNCATE
CALL pg_temp.try($$DELETE FROM v$$);
CALL pg_temp.try($$UPDATE v SET priority = 3$$);
CALL pg_temp.try($$UPDATE v SET payload = '1' WHERE false$$);
CALL pg_temp.try($$TRUNCATE v$$);
CALL pg_temp.try($$INSERT INTO "aq$v_qt" (user_data) VALUES ('1')$$);
SELECT count(*) FROM v;
DELETE FROM v WHERE false;

-- another queue's rows are hidden, from a function that leaks what it sees as well
CREATE FUNCTION pg_temp.leak(jsonb) RETURNS bool LANGUAGE plpgsql COST 0.0000001
AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
SELECT payload FROM v WHERE pg_temp.leak(payload);
CREATE ROLE regress_queue_browser;
SELECT queue.grant_queue_privilege('browse', 'v', 'regress_queue_browser');
SET ROLE regress_queue_browser;
SELECT payload FROM v;
CALL pg_temp.try($$SELECT * FROM v_neighbour$$);
CALL pg_temp.try($$SELECT * FROM v_qt$$);
CALL pg_temp.try($$SELECT * FROM "aq$v_qt"$$);
RESET ROLE;

-- the triggers' functions belong to queues only
CREATE TABLE victim (msgid uuid, payload jsonb);
CREATE VIEW v_fake AS SELECT * FROM victim;
CREATE TRIGGER t INSTEAD OF INSERT ON v_fake FOR EACH ROW EXECUTE FUNCTION queue._view_insert('1');
CALL pg_temp.try($$INSERT INTO v_fake (payload) VALUES ('1')$$);
DROP VIEW v_fake;
CREATE TRIGGER t AFTER INSERT ON victim FOR EACH ROW EXECUTE FUNCTION queue._message_published();
CALL pg_temp.try($$INSERT INTO victim (payload) VALUES ('1')$$);
CALL pg_temp.try($$SELECT queue._view_insert()$$);
DROP TABLE victim;

SELECT queue.drop_queue_table('v_qt', force => true);
DROP ROLE regress_queue_browser;
