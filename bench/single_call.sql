-- The measured loops of bench/single_call.sh.  Each is one call, so one
-- transaction, and returns microseconds a message; what it warms up with is
-- not measured.

CREATE SCHEMA bench;

CREATE FUNCTION bench.payload() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT '{"order": 1001, "customer": "Ada Lovelace", "total": 129.90}'::jsonb
$$;

CREATE FUNCTION bench.enqueue(queue regclass, calls int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	payload jsonb := bench.payload();
	start timestamptz;
	id uuid;
BEGIN
	FOR i IN 1 .. 200 LOOP
		id := queue.enqueue(queue, payload);
	END LOOP;
	start := clock_timestamp();
	FOR i IN 1 .. calls LOOP
		id := queue.enqueue(queue, payload);
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / calls;
END $$;

CREATE FUNCTION bench.dequeue(queue regclass, calls int) RETURNS float8
LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz;
	message record;
BEGIN
	FOR i IN 1 .. 200 LOOP
		SELECT msgid, payload INTO message FROM queue.dequeue(queue);
	END LOOP;
	start := clock_timestamp();
	FOR i IN 1 .. calls LOOP
		SELECT msgid, payload INTO STRICT message FROM queue.dequeue(queue);
	END LOOP;
	RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / calls;
END $$;

-- Makes bench.insert(calls): an INSERT of the very row that enqueue has made,
-- column by column, into the given table; only the msgid differs.  Ids rise,
-- as they do in a queue, and are made before the clock starts.
CREATE FUNCTION bench.make_insert(target regclass, queue regclass, function text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	queue_table regclass := (SELECT q.queue_table FROM queue.queue q WHERE q.view = queue);
	columns text;
	row_values text;
BEGIN
	PERFORM queue.enqueue(queue, bench.payload());
	EXECUTE format($q$
		SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
			string_agg(CASE a.attname WHEN 'msgid' THEN 'ids[i]' WHEN 'payload' THEN 'payload'
				ELSE quote_literal(r.value) || '::' || format_type(a.atttypid, a.atttypmod) END,
				', ' ORDER BY a.attnum)
		FROM (SELECT to_jsonb(m) AS row FROM %s m WHERE queue_id = (SELECT id FROM queue.queue WHERE view = %L::regclass) LIMIT 1) m,
			jsonb_each_text(m.row) r
			JOIN pg_attribute a ON a.attrelid = %L::regclass AND a.attname = r.key
		WHERE r.value IS NOT NULL$q$, queue_table, queue, queue_table)
	INTO columns, row_values;
	EXECUTE format($f$
		CREATE FUNCTION bench.%I(calls int) RETURNS float8 LANGUAGE plpgsql AS $b$
		DECLARE
			payload jsonb := bench.payload();
			ids uuid[] := ARRAY(SELECT lpad(to_hex(extract(epoch FROM clock_timestamp())::int8), 12, '0')::text
				|| '7000a000' || lpad(to_hex(n), 12, '0') FROM generate_series(1, calls + 200) n);
			start timestamptz;
		BEGIN
			FOR i IN 1 .. 200 LOOP
				INSERT INTO %s (%s) VALUES (%s);
			END LOOP;
			start := clock_timestamp();
			FOR i IN 201 .. calls + 200 LOOP
				INSERT INTO %2$s (%3$s) VALUES (%4$s);
			END LOOP;
			RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / calls;
		END $b$ $f$, function, target, columns, row_values);
END $$;

CREATE PROCEDURE bench.fill(queue regclass, messages int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. messages / 10000 LOOP
		PERFORM queue.enqueue_array(queue, array_fill(bench.payload(), ARRAY[10000]));
		COMMIT;
	END LOOP;
	PERFORM queue.enqueue_array(queue, array_fill(bench.payload(), ARRAY[messages % 10000]))
	WHERE messages % 10000 > 0;
END $$;

CREATE PROCEDURE bench.consume(queue regclass, messages int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. messages / 10000 LOOP
		PERFORM count(*) FROM queue.dequeue(queue, max_messages => 10000);
		COMMIT;
	END LOOP;
END $$;
