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
	t.comment
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
