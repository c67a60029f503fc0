-- Proves: what the executor would have checked is checked, and one session's own messages behave in every kind of transaction.
-- How: read-only transactions, replica role, one statement, savepoints, blocks, cursors, functions, isolation levels.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('x');
SELECT queue.enqueue('x', n::text) IS NOT NULL AS sent FROM generate_series(1, 3) n;

-- read-only: browse only
BEGIN READ ONLY;
SELECT payload FROM queue.dequeue('x', mode => 'browse');
SELECT payload FROM x ORDER BY msgid LIMIT 1;
CALL pg_temp.try($$SELECT queue.enqueue('x', '9')$$);
CALL pg_temp.try($$SELECT queue.enqueue_array('x', '{9}')$$);
CALL pg_temp.try($$SELECT queue.dequeue('x')$$);
CALL pg_temp.try($$SELECT queue.dequeue('x', mode => 'remove_nodata')$$);
CALL pg_temp.try($$SELECT queue.dequeue('x', mode => 'locked')$$);
CALL pg_temp.try($$SELECT queue.dequeue_as(NULL::jsonb, 'x')$$);
CALL pg_temp.try($$INSERT INTO x (payload) VALUES ('9')$$);
CALL pg_temp.try($$SELECT queue.stop_queue('x')$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('x_qt')$$);
ROLLBACK;
SELECT payload FROM x ORDER BY msgid;

-- replica role: INSERT into the view would store nothing, so it is refused; the calls work
SET session_replication_role = replica;
CALL pg_temp.try($$INSERT INTO x (payload) VALUES ('"lost"')$$);
COPY x (payload) FROM stdin;
1
\.
SELECT queue.enqueue('x', '4') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('x');
RESET session_replication_role;
SELECT payload FROM x ORDER BY msgid;

-- enqueue and dequeue in one statement
SELECT payload FROM queue.dequeue('x', max_messages => 10);
SELECT d.payload, d.msgid = e.msgid AS same
FROM (SELECT queue.enqueue('x', '5') AS msgid OFFSET 0) e,
	LATERAL queue.dequeue('x', max_messages => (e.msgid IS NOT NULL)::int) d;
WITH e AS MATERIALIZED (SELECT queue.enqueue('x', n::text) AS msgid FROM generate_series(6, 8) n)
SELECT d.payload FROM (SELECT count(msgid)::int AS n FROM e) c, LATERAL queue.dequeue('x', max_messages => c.n) d;
-- a trigger that enqueues, a statement that dequeues what it has sent
CREATE TABLE source (n int);
CREATE FUNCTION send() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM queue.enqueue('x', to_jsonb(NEW.n)); RETURN NULL; END $$;
CREATE TRIGGER send AFTER INSERT ON source FOR EACH ROW EXECUTE FUNCTION send();
INSERT INTO source VALUES (1), (2);
SELECT payload FROM queue.dequeue('x', max_messages => 10);
-- deferred to the commit
DROP TRIGGER send ON source;
CREATE CONSTRAINT TRIGGER send AFTER INSERT ON source DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION send();
BEGIN;
INSERT INTO source VALUES (3);
SELECT count(*) FROM x;
COMMIT;
SELECT payload FROM queue.dequeue('x', max_messages => 10);
-- in a function that is wrongly declared STABLE
CREATE FUNCTION stable_take() RETURNS SETOF jsonb LANGUAGE sql STABLE AS $$ SELECT payload FROM queue.dequeue('x') $$;
SELECT queue.enqueue('x', '9') IS NOT NULL AS sent;
SELECT * FROM stable_take();
SELECT count(*) FROM x;
SELECT payload FROM queue.dequeue('x', max_messages => 10);

-- savepoints
BEGIN;
SELECT queue.enqueue('x', '1') IS NOT NULL AS sent;
SAVEPOINT a;
SELECT queue.enqueue('x', '2') IS NOT NULL AS sent;
SAVEPOINT b;
SELECT queue.enqueue('x', '3') IS NOT NULL AS sent;
ROLLBACK TO b;
SELECT queue.enqueue('x', '4') IS NOT NULL AS sent;
RELEASE a;
SAVEPOINT c;
SELECT payload FROM queue.dequeue('x');
ROLLBACK TO c;
SELECT payload FROM queue.dequeue('x');
COMMIT;
SELECT payload, retry_count FROM queue.dequeue('x', max_messages => 10);
-- a block that fails after both
DO $$
BEGIN
	PERFORM queue.enqueue('x', '1');
	BEGIN
		PERFORM queue.enqueue('x', '2');
		PERFORM FROM queue.dequeue('x');
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM queue.enqueue('x', '3');
	END;
END $$;
SELECT payload FROM queue.dequeue('x', max_messages => 10);
-- many subtransactions
DO $$
BEGIN
	FOR i IN 1..200 LOOP
		BEGIN
			PERFORM queue.enqueue('x', to_jsonb(i));
			IF i % 2 = 0 THEN
				RAISE division_by_zero;
			END IF;
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
END $$;
SELECT count(*), min(payload::int), max(payload::int), bool_and(payload::int % 2 = 1) AS odd FROM queue.dequeue('x', max_messages => 1000);
-- nested rollbacks of dequeues give all back, in order
SELECT count(queue.enqueue('x', n::text)) FROM generate_series(1, 6) n;
BEGIN;
SELECT payload FROM queue.dequeue('x');
SAVEPOINT a;
SELECT payload FROM queue.dequeue('x');
SAVEPOINT b;
SELECT payload FROM queue.dequeue('x', max_messages => 2);
RELEASE b;
SELECT payload FROM queue.dequeue('x');
ROLLBACK TO a;
SELECT payload FROM queue.dequeue('x');
ROLLBACK;
SELECT payload FROM queue.dequeue('x', max_messages => 10);

-- a procedure that commits as it goes
SELECT count(queue.enqueue('x', n::text)) FROM generate_series(1, 3) n;
DO $$
DECLARE
	m record;
BEGIN
	FOR i IN 1..3 LOOP
		SELECT * INTO m FROM queue.dequeue('x');
		RAISE INFO 'got %', m.payload;
		IF i = 2 THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
END $$;
SELECT payload, retry_count FROM queue.dequeue('x', max_messages => 10);

-- isolation levels see the queue as it is
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM x;
SELECT queue.enqueue('x', '1') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('x');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT queue.enqueue('x', '2') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('x');
COMMIT;

-- queue.use_heads changes nothing but the way
SET queue.use_heads = off;
SELECT queue.enqueue('x', n::text) IS NOT NULL AS sent FROM generate_series(1, 2) n;
SELECT payload FROM queue.dequeue('x');
RESET queue.use_heads;
SELECT payload FROM queue.dequeue('x');
SELECT payload FROM queue.dequeue('x');

-- a queue made, used and dropped in one transaction
BEGIN;
SELECT queue.create_queue('x_new');
SELECT queue.enqueue('x_new', '1') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('x_new');
SELECT queue.enqueue('x_new', '2') IS NOT NULL AS sent;
SELECT queue.drop_queue_table('x_new_qt', force => true);
COMMIT;
BEGIN;
SELECT queue.create_queue('x_new');
SELECT queue.enqueue('x_new', '1') IS NOT NULL AS sent;
COMMIT;
SELECT payload FROM queue.dequeue('x_new');
SELECT queue.drop_queue_table('x_new_qt', force => true);

DROP FUNCTION stable_take;
DROP TABLE source;
DROP FUNCTION send;
SELECT queue.drop_queue_table('x_qt', force => true);
