\set ON_ERROR_STOP on
\set QUIET on
\pset footer off
\pset null '-'
\pset linestyle ascii
SET timezone = 'UTC';
\set QUIET off

\echo '== 1. Install, and make a queue'
\echo '-- One call makes the queue, and a queue table for it.'
\set ECHO queries
CREATE EXTENSION queue;
SELECT queue.create_queue('inbox',
    sort_list      => 'priority,enq_time',
    max_retries    => 1,
    retention_time => '1 day');
\set ECHO none

\echo
\echo '== 2. Messages in'
\echo '-- A queue is a relation: COPY and INSERT enqueue.  (COPY inbox (payload) FROM'
\echo '-- would do; the detour gives every tenth message a better priority.)'
\set ECHO queries
CREATE TEMP TABLE line (n int GENERATED ALWAYS AS IDENTITY, body jsonb);
\set ECHO none
\echo '\\copy line (body) FROM' :'source' 'WITH (FORMAT csv, ...)'
-- Format csv with characters that JSON cannot hold: each line as it is.
\copy line (body) FROM pstdin WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
\set ECHO queries
INSERT INTO inbox (payload, priority, correlation)
SELECT body, CASE WHEN n % 10 = 0 THEN 1 ELSE 5 END, body->>'event'
FROM line
ORDER BY n;
\set ECHO none
\echo
\echo '-- Or by function.  These two are the most urgent; one is due in two seconds.'
\set ECHO queries
SELECT queue.enqueue('inbox', '{"event": "urgent"}', priority => 0);
SELECT queue.enqueue('inbox', '{"event": "urgent, but later"}', priority => 0, delay => '2 seconds');
SELECT state, priority, count(*), pg_size_pretty(sum(pg_column_size(payload))) AS size
FROM inbox
GROUP BY state, priority
ORDER BY state, priority;
\set ECHO none

-- a very short file must leave one message for step 4
SELECT least(3, count(*)) AS first, least(2, count(*) + 1 - least(3, count(*))) AS second
FROM line \gset

\echo
\echo '== 3. Messages out, in order of priority and due time'
\echo '-- Low numbers first.  The message that is not due yet stays behind.'
\set ECHO queries
SELECT priority, enq_time::time(3), left(payload::text, 50) AS payload
FROM queue.dequeue('inbox', max_messages => :first);
SELECT pg_sleep_until(max(deliver_at)) FROM inbox;
SELECT priority, enq_time::time(3), left(payload::text, 50) AS payload
FROM queue.dequeue('inbox', max_messages => :second);
\set ECHO none

\echo
\echo '== 4. A message that cannot be processed'
\echo '-- A dequeue belongs to its transaction: after a ROLLBACK the message is back,'
\echo '-- and the failed attempt is counted.'
\set ECHO queries
SELECT msgid AS bad FROM queue.dequeue('inbox', mode => 'browse')
\gset
BEGIN;
SELECT retry_count, left(payload::text, 50) AS payload
FROM queue.dequeue('inbox', msgid => :'bad');
ROLLBACK;
BEGIN;
SELECT retry_count, left(payload::text, 50) AS payload
FROM queue.dequeue('inbox', msgid => :'bad');
ROLLBACK;
\set ECHO none
\echo '-- That was one attempt more than max_retries: it is not delivered again (the next'
\echo '-- message is, if there is one) and lies in the exception queue of the queue table.'
\set ECHO queries
SELECT msgid = :'bad' AS is_the_bad_one, left(payload::text, 50) AS payload
FROM queue.dequeue('inbox');
SELECT original_queue_name, expiration_reason, retry_count, left(user_data::text, 50) AS payload
FROM aq$inbox_qt
WHERE msg_state = 'EXPIRED';
SELECT queue.start_queue('aq$_inbox_qt_e', enqueue => false);
SELECT msgid = :'bad' AS is_the_bad_one, retry_count
FROM queue.dequeue('aq$_inbox_qt_e', mode => 'browse');
\set ECHO none

\echo
\echo '== 5. The rest, in one transaction'
\set ECHO queries
BEGIN;
SELECT count(*), min(priority), max(priority)
FROM queue.dequeue('inbox', max_messages => 100000);
COMMIT;
\set ECHO none

\echo
\echo '== 6. The journal'
\echo '-- What was consumed is kept for retention_time.'
\set ECHO queries
SELECT msg_state, count(*) FROM aq$inbox_qt GROUP BY msg_state;
SELECT corr_id, msg_priority, deq_time - enq_time AS took, deq_user_id
FROM aq$inbox_qt
ORDER BY deq_time, msg_id
LIMIT 5;
\set ECHO none
\echo
\echo '-- Every message is accounted for.'
\set ECHO queries
SELECT (SELECT count(*) FROM line) + 2 AS sent,
    count(*) FILTER (WHERE msg_state = 'PROCESSED') AS consumed,
    count(*) FILTER (WHERE msg_state = 'EXPIRED') AS failed
FROM aq$inbox_qt;
\set ECHO none
SELECT count(*) FILTER (WHERE msg_state = 'PROCESSED') = (SELECT count(*) FROM line) + 1
    AND count(*) FILTER (WHERE msg_state = 'EXPIRED') = 1 AND count(*) = (SELECT count(*) FROM line) + 2 AS ok
FROM aq$inbox_qt \gset
\if :ok
\else
DO $$ BEGIN RAISE EXCEPTION 'the numbers above do not add up'; END $$;
\endif
\echo
\echo '-- ./dev psql gives a server to try more; docs/ says the rest.'
