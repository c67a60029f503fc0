/* Views for administrators.  A row whose relation is gone is not shown. */

CREATE VIEW queue.queue_tables AS
SELECT
	t.relation AS queue_table,
	c.relowner::pg_catalog.regrole AS owner,
	t.payload_type,
	t.sort_list,
	t.multiple_consumers,
	t.message_grouping,
	(SELECT pg_catalog.count(*)
		FROM queue.queue AS q
		WHERE q.queue_table = t.relation AND NOT q.is_default_exception
	) AS queues,
	(SELECT q.view
		FROM queue.queue AS q
		WHERE q.queue_table = t.relation AND q.is_default_exception
	) AS exception_queue,
	t.created_at,
	t.comment,
	t.rotation
FROM queue.queue_table AS t
	JOIN pg_catalog.pg_class AS c ON c.oid = t.relation::pg_catalog.oid;
COMMENT ON VIEW queue.queue_tables IS 'queue tables and their properties';

CREATE VIEW queue.queues AS
SELECT
	q.view AS queue,
	c.relowner::pg_catalog.regrole AS owner,
	q.queue_table,
	q.queue_type,
	q.max_retries,
	q.retry_delay,
	q.retention_time,
	q.enqueue_enabled,
	q.dequeue_enabled,
	t.payload_type,
	t.sort_list,
	q.created_at,
	q.comment
FROM queue.queue AS q
	JOIN queue.queue_table AS t ON t.relation = q.queue_table
	JOIN pg_catalog.pg_class AS c ON c.oid = q.view::pg_catalog.oid;
COMMENT ON VIEW queue.queues IS 'queues and their settings; NULL is for ever';

/* Workers, from shared memory.  Error texts: for pg_read_all_stats only. */
CREATE FUNCTION queue._workers(
	OUT kind				pg_catalog.text,
	OUT database			pg_catalog.oid,
	OUT pid					pg_catalog.int4,
	OUT state				pg_catalog.text,
	OUT started_at			pg_catalog.timestamptz,
	OUT starts				pg_catalog.int8,
	OUT last_run			pg_catalog.timestamptz,
	OUT next_run			pg_catalog.timestamptz,
	OUT runs				pg_catalog.int8,
	OUT errors				pg_catalog.int8,
	OUT last_error			pg_catalog.text,
	OUT last_error_sqlstate	pg_catalog.text,
	OUT last_error_job		pg_catalog.text,
	OUT last_error_at		pg_catalog.timestamptz)
RETURNS SETOF pg_catalog.record
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_workers';

CREATE VIEW queue.workers AS
SELECT
	w.pid,
	w.kind,
	d.datname AS database,
	w.state,
	w.started_at,
	w.starts,
	w.last_run,
	w.next_run,
	w.runs,
	w.errors,
	w.last_error,
	w.last_error_sqlstate,
	w.last_error_job,
	w.last_error_at
FROM queue._workers() AS w
	LEFT JOIN pg_catalog.pg_database AS d ON d.oid = w.database;
COMMENT ON VIEW queue.workers IS 'the launcher and the monitors of all databases, and how they fare';
