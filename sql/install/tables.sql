/*
 * Catalog tables.  References are regclass, regtype and regrole, so that
 * dumps carry names.  There are no foreign keys: a parallel restore loads the
 * tables in any order.
 */

/*
 * Queue tables.
 *
 *	relation			the partitioned table
 *	payload_type		type of the payload as it was named at creation
 *	sort_list			order of delivery
 *	multiple_consumers	has its queues' messages one recipient or many
 *	message_grouping	none or transactional
 *	rotation			safe or eager truncation of segments
 *	last_queue_id		the highest queue id ever given in this table; that of
 *						its default exception queue is 1
 *	created_at			when it was made
 *	comment				free text
 */
CREATE TABLE queue.queue_table (
	relation			pg_catalog.regclass NOT NULL PRIMARY KEY,
	payload_type		pg_catalog.regtype NOT NULL,
	sort_list			pg_catalog.text NOT NULL DEFAULT 'enq_time'
						CHECK (sort_list IN ('enq_time', 'priority',
							'priority,enq_time', 'enq_time,priority',
							'commit_time', 'priority,commit_time')),
	multiple_consumers	pg_catalog.bool NOT NULL DEFAULT false,
	message_grouping	pg_catalog.text NOT NULL DEFAULT 'none'
						CHECK (message_grouping IN ('none', 'transactional')),
	rotation			pg_catalog.text NOT NULL DEFAULT 'safe'
						CHECK (rotation IN ('safe', 'eager')),
	last_queue_id		pg_catalog.int4 NOT NULL DEFAULT 1
						CHECK (last_queue_id >= 1),
	created_at			pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
	comment				pg_catalog.text
);

/*
 * Queues.
 *
 *	view				the queue's view: its name, owner and privileges
 *	queue_table			where its messages lie
 *	id					unique in its queue table only, so that restores into
 *						a database with other queues do not collide
 *	queue_type			normal or exception
 *	is_default_exception	the exception queue that came with the queue table
 *	max_retries			failed attempts before the exception queue; NULL for ever
 *	retry_delay			wait after a failed attempt; NULL for ever
 *	retention_time		how long a consumed message is kept; NULL for ever
 *	enqueue_enabled, dequeue_enabled	started
 *	created_at, comment	as above
 */
CREATE TABLE queue.queue (
	view				pg_catalog.regclass NOT NULL PRIMARY KEY,
	queue_table			pg_catalog.regclass NOT NULL,
	id					pg_catalog.int4 NOT NULL CHECK (id > 0),
	queue_type			pg_catalog.text NOT NULL DEFAULT 'normal'
						CHECK (queue_type IN ('normal', 'exception')),
	is_default_exception	pg_catalog.bool NOT NULL DEFAULT false,
	max_retries			pg_catalog.int4 DEFAULT 5 CHECK (max_retries >= 0),
	retry_delay			pg_catalog.interval DEFAULT '0',
	retention_time		pg_catalog.interval DEFAULT '0',
	enqueue_enabled		pg_catalog.bool NOT NULL DEFAULT false,
	dequeue_enabled		pg_catalog.bool NOT NULL DEFAULT false,
	created_at			pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now(),
	comment				pg_catalog.text,
	CONSTRAINT queue_queue_table_id_key UNIQUE (queue_table, id)
);

/*
 * System privileges: enqueue_any, dequeue_any, manage_any.
 *
 *	grantee, privilege	who has which
 *	admin_option		may the grantee grant it on
 *	grantor				who granted it
 */
CREATE TABLE queue.system_privilege (
	grantee				pg_catalog.regrole NOT NULL,
	privilege			pg_catalog.text NOT NULL
						CHECK (privilege IN ('enqueue_any', 'dequeue_any',
							'manage_any')),
	admin_option		pg_catalog.bool NOT NULL DEFAULT false,
	grantor				pg_catalog.regrole NOT NULL,
	PRIMARY KEY (grantee, privilege)
);


COMMENT ON TABLE queue.queue_table IS 'queue tables; queue.queue_tables shows them';
COMMENT ON TABLE queue.queue IS 'queues; queue.queues shows them';
COMMENT ON TABLE queue.system_privilege IS 'who holds enqueue_any, dequeue_any and manage_any; the grantee - is everybody';
