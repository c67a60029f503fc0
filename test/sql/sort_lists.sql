-- Proves: each sort list gives its order of delivery.
-- How: the same messages in a queue of each of the six, by single calls, in an array, by browsing.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
CREATE FUNCTION pg_temp.fill(q regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM queue.enqueue(q, 'a', priority => 3);
	PERFORM queue.enqueue(q, 'b', priority => 1);
	PERFORM queue.enqueue(q, 'c', priority => -5);
	PERFORM queue.enqueue(q, 'd', priority => 1);
	PERFORM queue.enqueue(q, 'e');
	PERFORM queue.enqueue(q, 'f', priority => 2147483647);
	PERFORM queue.enqueue(q, 'g', priority => -2147483648);
END $$;
CREATE FUNCTION pg_temp.one_by_one(q regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	one text;
	result text = '';
BEGIN
	LOOP
		SELECT payload INTO one FROM queue.dequeue_as(NULL::text, q);
		EXIT WHEN NOT FOUND;
		result = result || one;
	END LOOP;
	RETURN result;
END $$;
CREATE FUNCTION pg_temp.at_once(q regclass, mode text) RETURNS text LANGUAGE sql VOLATILE
AS $$ SELECT string_agg(payload, '') FROM queue.dequeue_as(NULL::text, q, max_messages => 100, mode => mode) $$;

SELECT queue.create_queue('s_enq_time', payload_type => 'text', sort_list => 'enq_time');
SELECT queue.create_queue('s_priority', payload_type => 'text', sort_list => 'priority');
SELECT queue.create_queue('s_priority_enq_time', payload_type => 'text', sort_list => 'priority,enq_time');
SELECT queue.create_queue('s_enq_time_priority', payload_type => 'text', sort_list => 'enq_time,priority');
SELECT queue.create_queue('s_commit_time', payload_type => 'text', sort_list => 'commit_time');
SELECT queue.create_queue('s_priority_commit_time', payload_type => 'text', sort_list => 'priority,commit_time');

-- one transaction for all
SELECT count(pg_temp.fill(view)) FROM queue.queue WHERE queue_type = 'normal';
SELECT view, pg_temp.at_once(view, 'browse') FROM queue.queue WHERE queue_type = 'normal' ORDER BY id, view::text;
SELECT view, pg_temp.one_by_one(view) FROM queue.queue WHERE queue_type = 'normal' ORDER BY view::text;
-- once more, as an array
SELECT count(pg_temp.fill(view)) FROM queue.queue WHERE queue_type = 'normal';
SELECT view, pg_temp.at_once(view, 'remove') FROM queue.queue WHERE queue_type = 'normal' ORDER BY view::text;

-- two transactions: enq_time,priority orders by the transaction first
SELECT queue.enqueue('s_enq_time_priority', 'a', priority => 9) IS NOT NULL AS sent;
BEGIN;
SELECT queue.enqueue('s_enq_time_priority', 'b', priority => 5) IS NOT NULL AS sent;
SELECT queue.enqueue('s_enq_time_priority', 'c', priority => 2) IS NOT NULL AS sent;
SELECT queue.enqueue('s_enq_time_priority', 'd', priority => 2) IS NOT NULL AS sent;
COMMIT;
SELECT pg_temp.one_by_one('s_enq_time_priority');

-- commit_time: nobody sees a message before its commit, its sender included
BEGIN;
SELECT queue.enqueue('s_commit_time', 'a') IS NOT NULL AS sent;
SELECT queue.enqueue('s_commit_time', 'b') IS NOT NULL AS sent;
SAVEPOINT s;
SELECT queue.enqueue('s_commit_time', 'c') IS NOT NULL AS sent;
ROLLBACK TO s;
SELECT queue.enqueue('s_commit_time', 'd') IS NOT NULL AS sent;
SELECT count(*) FROM s_commit_time;
SELECT pg_temp.one_by_one('s_commit_time');
COMMIT;
SELECT pg_temp.one_by_one('s_commit_time');

-- new levels after others were drained, and an old level again
SELECT queue.enqueue('s_priority', 'a', priority => 5) IS NOT NULL AS sent;
SELECT pg_temp.one_by_one('s_priority');
SELECT queue.enqueue('s_priority', 'b', priority => 5) IS NOT NULL AS sent;
SELECT queue.enqueue('s_priority', 'c', priority => 0) IS NOT NULL AS sent;
SELECT queue.enqueue('s_priority', 'd', priority => 7) IS NOT NULL AS sent;
SELECT pg_temp.one_by_one('s_priority');

-- more levels than a head has lanes
SELECT count(queue.enqueue('s_priority', n::text, priority => -n)) FROM generate_series(1, 300) n;
SELECT payload FROM queue.dequeue_as(NULL::text, 's_priority');
SELECT payload FROM queue.dequeue_as(NULL::text, 's_priority');
SELECT count(*), bool_and(n = 299 - place) AS in_order FROM (
	SELECT payload::int AS n, row_number() OVER () AS place
	FROM queue.dequeue_as(NULL::text, 's_priority', max_messages => 1000)) m;

-- many messages, FIFO
SELECT count(queue.enqueue('s_enq_time', n::text)) FROM generate_series(1, 3000) n;
SELECT count(*), bool_and(n = place) AS in_order FROM (
	SELECT payload::int AS n, row_number() OVER () AS place
	FROM queue.dequeue_as(NULL::text, 's_enq_time', max_messages => 5000)) m;

DO $$
DECLARE
	t regclass;
BEGIN
	FOR t IN SELECT relation FROM queue.queue_table LOOP
		PERFORM queue.drop_queue_table(t, force => true);
	END LOOP;
END $$;
