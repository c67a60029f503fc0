/*
 * Administration.  Text arguments that name new objects are identifiers, with
 * or without schema, folded to lower case unless quoted.  NULL for a number
 * or an interval means for ever.
 */

CREATE FUNCTION queue.create_queue_table(
	queue_table			pg_catalog.text,
	payload_type		pg_catalog.regtype DEFAULT 'jsonb',
	sort_list			pg_catalog.text DEFAULT 'enq_time',
	multiple_consumers	pg_catalog.bool DEFAULT false,
	message_grouping	pg_catalog.text DEFAULT 'none',
	comment				pg_catalog.text DEFAULT NULL,
	rotation			pg_catalog.text DEFAULT 'safe')
RETURNS pg_catalog.regclass
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_create_queue_table';
COMMENT ON FUNCTION queue.create_queue_table IS 'make a queue table for messages of one payload type';

CREATE FUNCTION queue.alter_queue_table(
	queue_table			pg_catalog.regclass,
	comment				pg_catalog.text DEFAULT NULL,
	rotation			pg_catalog.text DEFAULT NULL)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_alter_queue_table';
COMMENT ON FUNCTION queue.alter_queue_table IS 'change the comment or the rotation of a queue table; NULL leaves it, an empty comment removes it';

CREATE FUNCTION queue.drop_queue_table(
	queue_table			pg_catalog.regclass,
	force				pg_catalog.bool DEFAULT false)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_drop_queue_table';
COMMENT ON FUNCTION queue.drop_queue_table IS 'drop a queue table with its messages; with force, its queues as well';

CREATE FUNCTION queue.purge_queue_table(
	queue_table			pg_catalog.regclass,
	condition			pg_catalog.text DEFAULT NULL)
RETURNS pg_catalog.int8
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_purge_queue_table';
COMMENT ON FUNCTION queue.purge_queue_table IS 'delete messages in any state for which the condition over the columns of aq$<queue_table> holds; returns how many';

CREATE FUNCTION queue.redrive(
	exception_queue		pg_catalog.regclass,
	destination			pg_catalog.regclass DEFAULT NULL,
	condition			pg_catalog.text DEFAULT NULL,
	max_messages		pg_catalog.int8 DEFAULT NULL)
RETURNS pg_catalog.int8
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_redrive';
COMMENT ON FUNCTION queue.redrive IS 'send messages of an exception queue to a queue, or back to where each came from, with their failed attempts forgotten; returns how many';

CREATE FUNCTION queue.create_queue(
	queue_name			pg_catalog.text,
	queue_table			pg_catalog.text DEFAULT NULL,
	queue_type			pg_catalog.text DEFAULT 'normal',
	max_retries			pg_catalog.int8 DEFAULT 5,
	retry_delay			pg_catalog.interval DEFAULT '0',
	retention_time		pg_catalog.interval DEFAULT '0',
	comment				pg_catalog.text DEFAULT NULL,
	payload_type		pg_catalog.regtype DEFAULT NULL,
	sort_list			pg_catalog.text DEFAULT NULL,
	multiple_consumers	pg_catalog.bool DEFAULT NULL,
	message_grouping	pg_catalog.text DEFAULT NULL,
	rotation			pg_catalog.text DEFAULT NULL)
RETURNS pg_catalog.regclass
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_create_queue';
COMMENT ON FUNCTION queue.create_queue IS 'make a queue, started; without queue_table it gets a queue table of its own, made with the last five arguments';

/* The defaults here mean "as it is": NULL means for ever. */
CREATE FUNCTION queue.alter_queue(
	queue				pg_catalog.regclass,
	max_retries			pg_catalog.int8 DEFAULT -2147483648,
	retry_delay			pg_catalog.interval DEFAULT '-2147483648 days',
	retention_time		pg_catalog.interval DEFAULT '-2147483648 days',
	comment				pg_catalog.text DEFAULT NULL)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_alter_queue';
COMMENT ON FUNCTION queue.alter_queue IS 'change settings of a queue; those not named stay, NULL is for ever (for the comment: stays, an empty one removes it)';

CREATE FUNCTION queue.drop_queue(
	queue				pg_catalog.regclass)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_drop_queue';
COMMENT ON FUNCTION queue.drop_queue IS 'drop a stopped queue with its messages; its queue table stays';

CREATE FUNCTION queue.start_queue(
	queue				pg_catalog.regclass,
	enqueue				pg_catalog.bool DEFAULT true,
	dequeue				pg_catalog.bool DEFAULT true)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_start_queue';
COMMENT ON FUNCTION queue.start_queue IS 'enable enqueue, dequeue or both; false leaves it as it is';

CREATE FUNCTION queue.stop_queue(
	queue				pg_catalog.regclass,
	enqueue				pg_catalog.bool DEFAULT true,
	dequeue				pg_catalog.bool DEFAULT true,
	wait				pg_catalog.bool DEFAULT true)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_stop_queue';
COMMENT ON FUNCTION queue.stop_queue IS 'disable enqueue, dequeue or both; waits for open transactions on the queue, or fails if there are any';

CREATE FUNCTION queue.grant_queue_privilege(
	privilege			pg_catalog.text,
	queue				pg_catalog.regclass,
	grantee				pg_catalog.text,
	grant_option		pg_catalog.bool DEFAULT false)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_grant_queue_privilege';
COMMENT ON FUNCTION queue.grant_queue_privilege IS 'grant enqueue, dequeue, browse or all on a queue';

CREATE FUNCTION queue.revoke_queue_privilege(
	privilege			pg_catalog.text,
	queue				pg_catalog.regclass,
	grantee				pg_catalog.text)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_revoke_queue_privilege';
COMMENT ON FUNCTION queue.revoke_queue_privilege IS 'revoke enqueue, dequeue, browse or all on a queue, also from those to whom the grantee has granted it';

CREATE FUNCTION queue.grant_system_privilege(
	privilege			pg_catalog.text,
	grantee				pg_catalog.text,
	admin_option		pg_catalog.bool DEFAULT false)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_grant_system_privilege';
COMMENT ON FUNCTION queue.grant_system_privilege IS 'grant enqueue_any, dequeue_any or manage_any';

CREATE FUNCTION queue.revoke_system_privilege(
	privilege			pg_catalog.text,
	grantee				pg_catalog.text)
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_revoke_system_privilege';
COMMENT ON FUNCTION queue.revoke_system_privilege IS 'revoke enqueue_any, dequeue_any or manage_any';

CREATE FUNCTION queue.adopt(
	queue_table			pg_catalog.regclass)
RETURNS pg_catalog.int4
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_adopt';
COMMENT ON FUNCTION queue.adopt IS 'register a queue table and its queues again that a partial restore brought without their catalog rows; returns how many queues';
