-- Proves: a received message is handed out for its lease, and is consumed, given back or extended by its receipt only, which is good until the lease ends.
-- How: one session moves the clock; each end of a lease, each wrong receipt, retries, retention, expiration and the orders of delivery.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
-- at the time that it is: ids from the future would stay with the server
CREATE FUNCTION pg_temp.send(queue regclass, payload text, delay interval DEFAULT NULL, expiration interval DEFAULT NULL) RETURNS bool
LANGUAGE sql SET queue.debug_clock_offset = 0
AS $$ SELECT queue.enqueue(queue, payload, delay => delay, expiration => expiration) IS NOT NULL $$;
SELECT queue.create_queue_table('l_qt', payload_type => 'text');
SELECT queue.create_queue('l', 'l_qt', max_retries => 2);
SELECT queue.create_queue('l_kept', 'l_qt', retention_time => '1 day');
SELECT queue.start_queue('"aq$_l_qt_e"', enqueue => false);

-- handed out: with its count, and nobody else gets it
SELECT count(queue.enqueue('l', 'm' || i, correlation => 'c', properties => '{"p": 1}')) FROM generate_series(1, 5) i;
SELECT receipt AS r1, msgid AS m1, payload, priority, correlation, retry_count, properties, enq_time = queue.enq_time(msgid) AS times
FROM queue.receive('l', '1 hour') \gset
SELECT :'payload' AS payload, :'priority' AS priority, :'correlation' AS correlation, :'retry_count' AS retry_count, :'properties' AS properties, :'times' AS times, :'r1' <> :'m1' AS differs;
SELECT payload FROM queue.receive('l', '1 hour', max_messages => 2, condition => $$payload > 'm3'$$) ORDER BY 1;
SELECT payload, retry_count FROM queue.dequeue('l');
-- no order of arguments, no name takes a leased one
SELECT payload FROM queue.dequeue('l', msgid => :'m1');
SELECT payload FROM queue.dequeue('l', msgid => :'m1', mode => 'locked');
SELECT payload, retry_count FROM queue.dequeue('l', msgid => :'m1', mode => 'browse');
-- how it is shown: waiting until the lease ends, with who has it
SELECT payload, state, retry_count, deliver_at - now() BETWEEN '59 minutes' AND '61 minutes' AS in_an_hour FROM l ORDER BY msgid;
SELECT user_data, msg_state, retry_count, deq_user_id = current_user AS mine, deq_time IS NOT NULL AS since FROM aq$l_qt ORDER BY msg_id;

-- ack: gone, and the receipt with it
SELECT queue.ack(ARRAY[:'r1']::uuid[]);
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r1']), true);
CALL pg_temp.try(format('SELECT queue.nack(%L::uuid[])', ARRAY[:'r1']), true);
CALL pg_temp.try(format('SELECT queue.extend(%L::uuid[])', ARRAY[:'r1']), true);
SELECT payload FROM queue.dequeue('l', max_messages => 10);

-- the lease ends: refused from then on, though nobody has it yet; then it is back, counted, and an old receipt does nothing to a later delivery
SELECT pg_temp.send('l', 'm6') AS sent;
SET queue.debug_clock_offset = 3601000000;
SELECT receipt AS r4, payload, retry_count FROM queue.receive('l', '1 minute') \gset
\echo :payload :retry_count
SET queue.debug_clock_offset = 3662000000;
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r4']), true);
SELECT receipt AS r4b, payload, retry_count FROM queue.receive('l', '1 minute', max_messages => 2) WHERE payload = '"m4"' \gset
\echo :payload :retry_count
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r4']), true);
CALL pg_temp.try(format('SELECT queue.nack(%L::uuid[])', ARRAY[:'r4']), true);
CALL pg_temp.try(format('SELECT queue.extend(%L::uuid[])', ARRAY[:'r4']), true);
SELECT payload, state, retry_count FROM l ORDER BY msgid;
SELECT queue.ack(ARRAY[:'r4b']::uuid[]);
SET queue.debug_clock_offset = 3723000000;
SELECT payload, retry_count FROM queue.dequeue('l', max_messages => 10);
SET queue.debug_clock_offset = 3662000000;

-- one failure too many: the exception queue, after the end of a lease or by nack
SELECT pg_temp.send('l', 'lost') AS sent;
SELECT retry_count FROM queue.receive('l', '1 minute');
SET queue.debug_clock_offset = 3723000000;
SELECT retry_count FROM queue.receive('l', '1 minute');
SET queue.debug_clock_offset = 3784000000;
SELECT retry_count FROM queue.receive('l', '1 minute');
SET queue.debug_clock_offset = 3845000000;
SELECT retry_count FROM queue.receive('l', '1 minute');
SELECT payload, retry_count FROM queue.dequeue('"aq$_l_qt_e"');
SELECT pg_temp.send('l', 'refused') AS sent;
SELECT queue.nack(array_agg(receipt), '0') FROM queue.receive('l');
SELECT queue.nack(array_agg(receipt), '0') FROM queue.receive('l');
SELECT queue.nack(array_agg(receipt), '1 hour') FROM queue.receive('l');
SELECT user_data, msg_state, expiration_reason, original_queue_name, deq_user_id, deq_time FROM aq$l_qt;
SELECT payload, retry_count FROM queue.dequeue('"aq$_l_qt_e"');

-- nack: at once and in its place; after a delay; after the queue's
SELECT count(pg_temp.send('l', 'n' || i)) FROM generate_series(1, 2) i;
SELECT receipt AS r FROM queue.receive('l') \gset
SELECT queue.nack(ARRAY[:'r']::uuid[], '0');
SELECT payload, state, retry_count, deliver_at FROM l ORDER BY msgid;
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r']), true);
SELECT receipt AS r, payload FROM queue.receive('l') \gset
\echo :payload
SELECT queue.nack(ARRAY[:'r']::uuid[], '10 minutes');
SELECT payload, retry_count FROM queue.dequeue('l', max_messages => 10);
SET queue.debug_clock_offset = 4446000000;
SELECT payload, retry_count FROM queue.dequeue('l');
SELECT queue.alter_queue('l', retry_delay => '5 minutes');
SELECT pg_temp.send('l', 'delayed by the queue') AS sent;
SELECT queue.nack(array_agg(receipt)) FROM queue.receive('l');
SELECT payload FROM queue.dequeue('l');
SET queue.debug_clock_offset = 4747000000;
SELECT payload, retry_count FROM queue.dequeue('l');
SELECT queue.alter_queue('l', retry_delay => '0');

-- extend: the same receipt, counted from now; shorter, too
SELECT pg_temp.send('l', 'long') AS sent;
SELECT receipt AS r FROM queue.receive('l', '1 minute') \gset
SET queue.debug_clock_offset = 4800000000;
SELECT queue.extend(ARRAY[:'r']::uuid[], '10 minutes');
SET queue.debug_clock_offset = 5390000000;
SELECT payload FROM queue.dequeue('l');
SELECT queue.extend(ARRAY[:'r']::uuid[], '2 minutes');
SELECT retry_count FROM l;
SET queue.debug_clock_offset = 5509000000;
SELECT queue.extend(ARRAY[:'r']::uuid[], '1 second');
SET queue.debug_clock_offset = 5511000000;
CALL pg_temp.try(format('SELECT queue.extend(%L::uuid[])', ARRAY[:'r']), true);
SELECT payload, retry_count FROM queue.dequeue('l');

-- several: all or none; one named twice is one; what is left out comes back
SELECT count(pg_temp.send('l', 'b' || i)) FROM generate_series(1, 4) i;
SELECT array_agg(receipt ORDER BY msgid) AS rs FROM queue.receive('l', '1 hour', max_messages => 4) \gset
SELECT queue.ack((:'rs'::uuid[])[1:1]);
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', :'rs'), true);
SELECT count(*) FROM l;
SELECT queue.ack((:'rs'::uuid[])[2:3] || (:'rs'::uuid[])[2]);
SELECT payload FROM l;
SET queue.debug_clock_offset = 9112000000;
SELECT payload, retry_count FROM queue.dequeue('l');

-- rolled back: a delivery has failed; an ack has not happened
SELECT pg_temp.send('l', 'rolled back') AS sent;
BEGIN;
SELECT receipt AS r, retry_count FROM queue.receive('l', '1 hour') \gset
ROLLBACK;
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r']), true);
SELECT receipt AS r, retry_count FROM queue.receive('l', '1 hour') \gset
\echo :retry_count
BEGIN;
SELECT queue.ack(ARRAY[:'r']::uuid[]);
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT queue.nack(ARRAY[:'r']::uuid[], '0');
ROLLBACK TO s;
SELECT payload FROM queue.dequeue('l');
SELECT queue.ack(ARRAY[:'r']::uuid[]);
COMMIT;
SELECT count(*) FROM l;
-- in one transaction, in one statement; what it has received itself it does not get again
SELECT count(pg_temp.send('l', 's' || i)) FROM generate_series(1, 3) i;
SELECT queue.ack(array_agg(receipt)) FROM queue.receive('l', max_messages => 2);
BEGIN;
SELECT payload FROM queue.receive('l', '1 microsecond', max_messages => 10);
SELECT pg_sleep(0.01), payload FROM queue.receive('l', '1 microsecond', max_messages => 10);
COMMIT;
SELECT payload, retry_count FROM queue.dequeue('l', max_messages => 10);
SELECT queue.ack(array_agg(receipt)) FROM queue.receive('l');

-- retention: the journal has it as it was delivered
SELECT pg_temp.send('l_kept', 'kept', delay => '1 second') AS sent;
SET queue.debug_clock_offset = 9114000000;
SELECT queue.nack(array_agg(receipt), '0') FROM queue.receive('l_kept');
SELECT queue.ack(array_agg(receipt)) FROM queue.receive('l_kept');
SELECT user_data, msg_state, retry_count, delay, deq_user_id = current_user AS mine FROM aq$l_qt;
SELECT queue.purge_queue_table('l_qt');

-- expiration goes on under a lease: what is acknowledged in time is, else it is expired when it comes back
SELECT count(pg_temp.send('l', 'x' || i, expiration => '3 hours')) FROM generate_series(1, 2) i;
SELECT array_agg(receipt ORDER BY msgid) AS rs, bool_and(expires_at - enq_time = '3 hours') AS in_three FROM queue.receive('l', '1 hour', max_messages => 2) \gset
\echo :in_three
SET queue.debug_clock_offset = 10900000000;
SELECT queue.ack((:'rs'::uuid[])[1:1]);
SELECT payload, expiration, expires_at - enq_time AS within FROM l;
SET queue.debug_clock_offset = 12720000000;
SELECT payload FROM queue.dequeue('l');
SELECT user_data, msg_state, expiration_reason, retry_count FROM aq$l_qt;
SELECT queue.purge_queue_table('l_qt');

-- a purged message cannot be acknowledged; one of a stopped queue can
SELECT pg_temp.send('l', 'purged') AS sent;
SELECT receipt AS r FROM queue.receive('l') \gset
SELECT queue.purge_queue_table('l_qt');
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', ARRAY[:'r']), true);
SELECT pg_temp.send('l', 'stopped') AS sent;
SELECT receipt AS r FROM queue.receive('l') \gset
SELECT queue.stop_queue('l');
CALL pg_temp.try($$SELECT queue.receive('l')$$);
SELECT queue.ack(ARRAY[:'r']::uuid[]);
SELECT queue.start_queue('l');

-- wrong calls
CALL pg_temp.try($$SELECT queue.receive('l', NULL)$$);
CALL pg_temp.try($$SELECT queue.receive('l', '0')$$);
CALL pg_temp.try($$SELECT queue.receive('l', '-1 second')$$);
CALL pg_temp.try($$SELECT queue.receive('l', '300000 years')$$);
CALL pg_temp.try($$SELECT queue.receive('l', max_messages => 0)$$);
CALL pg_temp.try($$SELECT queue.receive('l', wait => '-1 s')$$);
CALL pg_temp.try($$SELECT queue.receive('l', consumer => 'me')$$);
CALL pg_temp.try($$SELECT queue.receive('"aq$_l_qt_e"')$$);
CALL pg_temp.try($$SELECT queue.receive(NULL)$$);
CALL pg_temp.try($$SELECT queue.nack('{}', '-1 second')$$);
CALL pg_temp.try($$SELECT queue.extend('{}', '0')$$);
CALL pg_temp.try($$SELECT queue.extend('{}', NULL)$$);
CALL pg_temp.try($$SELECT queue.ack('{NULL}')$$);
CALL pg_temp.try($$SELECT queue.ack('{{00000000-0000-0000-0000-000000000000}}')$$);
CALL pg_temp.try($$SELECT queue.ack('{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}')$$);
SELECT queue.ack(NULL), queue.ack('{}'), queue.nack(NULL), queue.extend(NULL);

-- the privilege to dequeue is needed, and enough
CREATE ROLE l_consumer;
CREATE ROLE l_browser;
SELECT queue.grant_queue_privilege('dequeue', 'l', 'l_consumer');
SELECT queue.grant_queue_privilege('browse', 'l', 'l_browser');
SELECT count(pg_temp.send('l', 'p' || i)) FROM generate_series(1, 3) i;
SELECT array_agg(receipt) AS rs FROM queue.receive('l', max_messages => 2) \gset
SET ROLE l_browser;
CALL pg_temp.try($$SELECT queue.receive('l')$$);
CALL pg_temp.try(format('SELECT queue.ack(%L::uuid[])', :'rs'));
SET ROLE l_consumer;
SELECT payload FROM queue.receive('l');
SELECT queue.ack(:'rs');
RESET ROLE;
SELECT payload, state FROM l;
SELECT deq_user_id FROM aq$l_qt;

-- every order of delivery: a message that comes back takes its place; where that is the time of commit, the one of its return
RESET queue.debug_clock_offset;
SELECT queue.create_queue('l_' || n, payload_type => 'text', sort_list => s) FROM unnest(ARRAY['enq_time', 'priority', 'enq_time,priority', 'commit_time', 'priority,commit_time']) WITH ORDINALITY AS t (s, n);
SELECT q, count(queue.enqueue(('l_' || q)::regclass, 'm' || i, priority => i % 2)) FROM generate_series(1, 5) q, generate_series(1, 4) i GROUP BY q ORDER BY q;
SELECT q, array_agg(r.payload #>> '{}' ORDER BY ordinality) FROM generate_series(1, 5) q, queue.receive(('l_' || q)::regclass, '1 minute', max_messages => 2) WITH ORDINALITY r GROUP BY q ORDER BY q;
SET queue.debug_clock_offset = 61000000;
CREATE TEMP TABLE received AS SELECT q, r.* FROM generate_series(1, 5) q, queue.receive(('l_' || q)::regclass, '1 minute', max_messages => 10) WITH ORDINALITY r;
SELECT q, array_agg((payload #>> '{}') || ':' || retry_count ORDER BY ordinality) FROM received GROUP BY q ORDER BY q;
SELECT queue.nack(array_agg(receipt), '0') FROM received;
SELECT q, array_agg((r.payload #>> '{}') || ':' || r.retry_count ORDER BY ordinality) FROM generate_series(1, 5) q, queue.dequeue(('l_' || q)::regclass, max_messages => 10) WITH ORDINALITY r GROUP BY q ORDER BY q;

DROP TABLE received;
SELECT queue.drop_queue_table(t::regclass, force => true) FROM unnest(ARRAY['l_qt', 'l_1_qt', 'l_2_qt', 'l_3_qt', 'l_4_qt', 'l_5_qt']) t;
DROP ROLE l_consumer;
DROP ROLE l_browser;
