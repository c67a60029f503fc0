-- Proves: delay, deliver_at and expiration are kept by the dequeuer itself, and senseless times are refused.
-- How: the session's clock is moved (queue.debug_clock_offset) instead of waiting.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('t', payload_type => 'text');
SELECT queue.start_queue('"aq$_t_qt_e"', enqueue => false);

-- delay: out of sight until it is over, then in the place of its enqueue
SELECT queue.enqueue('t', 'delayed', delay => '1 hour') AS delayed \gset
SELECT queue.enqueue('t', 'at once') IS NOT NULL AS sent;
SELECT queue.enqueue('t', 'at', deliver_at => now() + interval '2 hours') AS at \gset
SELECT payload, state, delay, deliver_at - enq_time BETWEEN '59 minutes' AND '61 minutes' AS in_an_hour,
	deliver_at - enq_time BETWEEN '119 minutes' AND '121 minutes' AS in_two FROM t ORDER BY msgid;
SELECT payload FROM queue.dequeue('t', max_messages => 10);
SELECT payload FROM queue.dequeue('t', max_messages => 10);
SET queue.debug_clock_offset = 3590000000;
SELECT payload FROM queue.dequeue('t');
SET queue.debug_clock_offset = 3610000000;
SELECT payload, retry_count FROM queue.dequeue('t', max_messages => 10);
SET queue.debug_clock_offset = 7210000000;
SELECT payload FROM queue.dequeue('t', max_messages => 10);
RESET queue.debug_clock_offset;

-- by msgid a delayed message is there at once
SELECT queue.enqueue('t', 'direct', delay => '1 day') AS id \gset
SELECT payload FROM queue.dequeue('t', mode => 'browse', msgid => :'id');
SELECT payload FROM queue.dequeue('t', msgid => :'id');
SELECT count(*) FROM t;

-- zero and the past: now
SELECT queue.enqueue('t', 'zero', delay => '0') IS NOT NULL AS sent;
SELECT queue.enqueue('t', 'past', deliver_at => now() - interval '1 day') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('t', max_messages => 10);

-- several delayed ones: when all are due they come by the queue's order
SELECT queue.enqueue('t', 'third', delay => '3 minutes') IS NOT NULL AS sent;
SELECT queue.enqueue('t', 'first', delay => '1 minute') IS NOT NULL AS sent;
SELECT queue.enqueue('t', 'second', delay => '2 minutes') IS NOT NULL AS sent;
SET queue.debug_clock_offset = 61000000;
SELECT payload FROM queue.dequeue('t', max_messages => 10);
SET queue.debug_clock_offset = 121000000;
SELECT payload FROM queue.dequeue('t', max_messages => 10);
SET queue.debug_clock_offset = 181000000;
SELECT payload FROM queue.dequeue('t', max_messages => 10);
RESET queue.debug_clock_offset;

-- rollback of a delayed message leaves nothing
BEGIN;
SELECT queue.enqueue('t', 'never', delay => '1 minute') IS NOT NULL AS sent;
ROLLBACK;
SET queue.debug_clock_offset = 61000000;
SELECT count(*) FROM queue.dequeue('t');
RESET queue.debug_clock_offset;
-- a due message that is taken and rolled back is there again
SELECT queue.enqueue('t', 'again', delay => '1 minute') IS NOT NULL AS sent;
SET queue.debug_clock_offset = 61000000;
BEGIN;
SELECT payload FROM queue.dequeue('t');
ROLLBACK;
SELECT payload, retry_count FROM queue.dequeue('t');
RESET queue.debug_clock_offset;

-- expiration: never delivered afterwards, found in the exception queue, once
SELECT queue.enqueue('t', 'short', expiration => '1 minute') IS NOT NULL AS sent;
SELECT queue.enqueue('t', 'long', expiration => '1 hour') IS NOT NULL AS sent;
SELECT payload, expiration, expires_at - enq_time AS after FROM t ORDER BY msgid;
SET queue.debug_clock_offset = 61000000;
SELECT payload FROM queue.dequeue('t', mode => 'browse', max_messages => 10);
SELECT payload FROM queue.dequeue('t', max_messages => 10);
SELECT payload, state, expiration FROM "aq$_t_qt_e";
SELECT user_data, msg_state, expiration_reason, original_queue_name, queue FROM aq$t_qt;
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"', max_messages => 10);
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"', max_messages => 10);
RESET queue.debug_clock_offset;

-- it is counted from the end of the delay
SELECT queue.enqueue('t', 'both', delay => '1 hour', expiration => '1 minute') IS NOT NULL AS sent;
SELECT payload, expiration, expires_at - deliver_at AS after FROM t;
SET queue.debug_clock_offset = 3630000000;
SELECT payload FROM queue.dequeue('t');
RESET queue.debug_clock_offset;
SELECT queue.enqueue('t', 'both', delay => '1 hour', expiration => '1 minute') IS NOT NULL AS sent;
SET queue.debug_clock_offset = 3670000000;
SELECT payload FROM queue.dequeue('t');
SELECT payload, state, deliver_at, expiration FROM "aq$_t_qt_e";
SELECT user_data, delay - enq_time AS delay, expiration, expiration_reason FROM aq$t_qt;
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"');
RESET queue.debug_clock_offset;

-- what was given is what is shown, to the microsecond: by the views, by RETURNING, in conditions, for arrays
INSERT INTO t (payload, expiration) VALUES ('returned', '1 hour 0.000001 s') RETURNING expiration, expires_at - enq_time AS after;
INSERT INTO t (payload, delay, expiration) VALUES ('waits', '1 day', '2 hours') RETURNING deliver_at - enq_time AS delay, expiration, expires_at - deliver_at AS after;
INSERT INTO t (payload, expiration) VALUES ('month', '1 month 36 hours') RETURNING expiration;
SELECT cardinality(queue.enqueue_array('t', '{a1,a2}', array_fill(jsonb_populate_record(NULL::queue.message_properties, '{"expiration": "3 hours"}'), '{2}')));
SELECT payload, expiration, deliver_at - enq_time AS delay FROM t ORDER BY msgid;
SELECT user_data, expiration, delay - enq_time AS delay FROM aq$t_qt ORDER BY enq_time;
SELECT payload FROM queue.dequeue('t', max_messages => 10, condition => $$expiration = '3 hours' AND deliver_at IS NULL$$);
SELECT payload FROM queue.dequeue('t', max_messages => 10, condition => $$expiration = '1 hour 0.000001 s' OR expiration > '30 days'$$);
SELECT queue.purge_queue_table('t_qt', $$expiration = '2 hours' AND deliver_at = enq_time + '1 day'::interval$$);

-- expired nearly at once; expired by msgid
SELECT queue.enqueue('t', 'zero', expiration => '1 us') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('t');
SELECT queue.enqueue('t', 'by id', expiration => '1 minute') AS id \gset
SET queue.debug_clock_offset = 61000000;
SELECT payload FROM queue.dequeue('t', msgid => :'id');
RESET queue.debug_clock_offset;
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"', max_messages => 10);
SELECT count(*) FROM t_qt;

-- an exception queue of the message's own
SELECT queue.create_queue('t_exc', 't_qt', queue_type => 'exception');
SELECT queue.start_queue('t_exc', enqueue => false);
SELECT queue.enqueue('t', 'own', expiration => '1 us', exception_queue => 't_exc') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('t');
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"');
SELECT payload FROM queue.dequeue('t_exc');
-- one that is gone when it is needed: the default one
SELECT queue.enqueue('t', 'gone', expiration => '1 minute', exception_queue => 't_exc') IS NOT NULL AS sent;
SELECT queue.stop_queue('t_exc');
SELECT queue.drop_queue('t_exc');
SET queue.debug_clock_offset = 61000000;
SELECT payload FROM queue.dequeue('t');
RESET queue.debug_clock_offset;
SELECT payload FROM queue.dequeue('"aq$_t_qt_e"');

-- refused
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', delay => '-1 s')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', delay => '1 day', deliver_at => now())$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', deliver_at => 'infinity')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', deliver_at => '-infinity')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', delay => '300000 years')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', expiration => '-1 s')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', expiration => '0')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', expiration => '300000 years')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', delay => '290000 years', expiration => '290000 years')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', exception_queue => 'no_such_queue', expiration => '1 us')$$);
CALL pg_temp.try($$SELECT queue.enqueue('t', 'x', exception_queue => 't')$$);
CALL pg_temp.try($$INSERT INTO t (payload, delay) VALUES ('x', '-1 s')$$);
CALL pg_temp.try($$INSERT INTO t (payload, delay, deliver_at) VALUES ('x', '1 s', now())$$);
CALL pg_temp.try($$INSERT INTO t (payload, deliver_at) VALUES ('x', 'infinity')$$);
CALL pg_temp.try($$SELECT queue.dequeue('t', wait => '-1 s')$$);
SELECT count(*) FROM t;
SELECT queue.drop_queue_table('t_qt', force => true);

-- a waiting message of a high priority comes first when it is due
SELECT queue.create_queue('t_prio', sort_list => 'priority,enq_time');
SELECT queue.enqueue('t_prio', '"low"', priority => 9) IS NOT NULL AS sent;
SELECT queue.enqueue('t_prio', '"high, later"', priority => 1, delay => '1 minute') IS NOT NULL AS sent;
SELECT queue.enqueue('t_prio', '"middle"', priority => 5) IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('t_prio');
SET queue.debug_clock_offset = 61000000;
SELECT payload FROM queue.dequeue('t_prio');
SELECT payload FROM queue.dequeue('t_prio');
RESET queue.debug_clock_offset;
SELECT queue.drop_queue_table('t_prio_qt', force => true);
