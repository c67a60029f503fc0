/*
 * Messages: enqueue and dequeue.
 *
 * There are two overloads by the payload, text and any type: untyped
 * literals, varchar and a driver's parameters are text and are read by the
 * payload type's input function; everything else keeps its type.  There must
 * be no shorter overload beside them, which would be ambiguous with whatever
 * is untyped.  Integers are bigint and range-checked, so that a driver's
 * longs fit.
 */

CREATE FUNCTION queue.enq_time(
	msgid				pg_catalog.uuid)
RETURNS pg_catalog.timestamptz
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'queue_enq_time';
COMMENT ON FUNCTION queue.enq_time IS 'the time of enqueue, read from a message id';

/* What the planner makes of enqueue(queue, payload, priority): the same, without arguments that have their defaults. */
CREATE FUNCTION queue._enqueue(
	queue				pg_catalog.regclass,
	payload				pg_catalog.text,
	priority			pg_catalog.int8)
RETURNS pg_catalog.uuid
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_enqueue_text';

CREATE FUNCTION queue._enqueue(
	queue				pg_catalog.regclass,
	payload				pg_catalog.anyelement,
	priority			pg_catalog.int8)
RETURNS pg_catalog.uuid
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_enqueue_any';

CREATE FUNCTION queue._enqueue_support(pg_catalog.internal)
RETURNS pg_catalog.internal
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_enqueue_support';

CREATE FUNCTION queue.enqueue(
	queue				pg_catalog.regclass,
	payload				pg_catalog.text,
	priority			pg_catalog.int8 DEFAULT 1,
	delay				pg_catalog.interval DEFAULT NULL,
	deliver_at			pg_catalog.timestamptz DEFAULT NULL,
	expiration			pg_catalog.interval DEFAULT NULL,
	correlation			pg_catalog.text DEFAULT NULL,
	properties			pg_catalog.jsonb DEFAULT NULL,
	recipients			queue.agent[] DEFAULT NULL,
	exception_queue		pg_catalog.text DEFAULT NULL,
	sender				pg_catalog.text DEFAULT NULL,
	group_key			pg_catalog.text DEFAULT NULL,
	dedup_key			pg_catalog.text DEFAULT NULL,
	reply_to			pg_catalog.text DEFAULT NULL,
	routing_key			pg_catalog.text DEFAULT NULL,
	relative_msgid		pg_catalog.uuid DEFAULT NULL,
	sequence_deviation	pg_catalog.text DEFAULT NULL,
	visibility			pg_catalog.text DEFAULT 'on_commit',
	delivery_mode		pg_catalog.text DEFAULT 'persistent')
RETURNS pg_catalog.uuid
LANGUAGE C VOLATILE PARALLEL UNSAFE
SUPPORT queue._enqueue_support
AS 'MODULE_PATHNAME', 'queue_enqueue_text';

CREATE FUNCTION queue.enqueue(
	queue				pg_catalog.regclass,
	payload				pg_catalog.anyelement,
	priority			pg_catalog.int8 DEFAULT 1,
	delay				pg_catalog.interval DEFAULT NULL,
	deliver_at			pg_catalog.timestamptz DEFAULT NULL,
	expiration			pg_catalog.interval DEFAULT NULL,
	correlation			pg_catalog.text DEFAULT NULL,
	properties			pg_catalog.jsonb DEFAULT NULL,
	recipients			queue.agent[] DEFAULT NULL,
	exception_queue		pg_catalog.text DEFAULT NULL,
	sender				pg_catalog.text DEFAULT NULL,
	group_key			pg_catalog.text DEFAULT NULL,
	dedup_key			pg_catalog.text DEFAULT NULL,
	reply_to			pg_catalog.text DEFAULT NULL,
	routing_key			pg_catalog.text DEFAULT NULL,
	relative_msgid		pg_catalog.uuid DEFAULT NULL,
	sequence_deviation	pg_catalog.text DEFAULT NULL,
	visibility			pg_catalog.text DEFAULT 'on_commit',
	delivery_mode		pg_catalog.text DEFAULT 'persistent')
RETURNS pg_catalog.uuid
LANGUAGE C VOLATILE PARALLEL UNSAFE
SUPPORT queue._enqueue_support
AS 'MODULE_PATHNAME', 'queue_enqueue_any';

COMMENT ON FUNCTION queue.enqueue(pg_catalog.regclass, pg_catalog.text, pg_catalog.int8, pg_catalog.interval, pg_catalog.timestamptz, pg_catalog.interval, pg_catalog.text, pg_catalog.jsonb, queue.agent[], pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.uuid, pg_catalog.text, pg_catalog.text, pg_catalog.text) IS 'enqueue a message whose payload is given as text; returns its id';

COMMENT ON FUNCTION queue.enqueue(pg_catalog.regclass, pg_catalog.anyelement, pg_catalog.int8, pg_catalog.interval, pg_catalog.timestamptz, pg_catalog.interval, pg_catalog.text, pg_catalog.jsonb, queue.agent[], pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.uuid, pg_catalog.text, pg_catalog.text, pg_catalog.text) IS 'enqueue a message; returns its id';

CREATE FUNCTION queue.enqueue_array(
	queue				pg_catalog.regclass,
	payloads			pg_catalog.text,
	properties			queue.message_properties[] DEFAULT NULL)
RETURNS pg_catalog.uuid[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_enqueue_array_text';

CREATE FUNCTION queue.enqueue_array(
	queue				pg_catalog.regclass,
	payloads			pg_catalog.anyarray,
	properties			queue.message_properties[] DEFAULT NULL)
RETURNS pg_catalog.uuid[]
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_enqueue_array_any';

COMMENT ON FUNCTION queue.enqueue_array(pg_catalog.regclass, pg_catalog.text, queue.message_properties[]) IS 'enqueue many messages, payloads given as an array literal; returns their ids';

COMMENT ON FUNCTION queue.enqueue_array(pg_catalog.regclass, pg_catalog.anyarray, queue.message_properties[]) IS 'enqueue many messages; returns their ids';

/* What the planner makes of dequeue(queue): the same, without arguments that have their defaults. */
CREATE FUNCTION queue._dequeue(
	queue				pg_catalog.regclass)
RETURNS SETOF queue.message
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_dequeue';

CREATE FUNCTION queue._dequeue_support(pg_catalog.internal)
RETURNS pg_catalog.internal
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_dequeue_support';

/* Materialized: a LIMIT outside does not change what is taken. */
CREATE FUNCTION queue.dequeue(
	queue				pg_catalog.regclass,
	consumer			pg_catalog.text DEFAULT NULL,
	mode				pg_catalog.text DEFAULT 'remove',
	navigation			pg_catalog.text DEFAULT 'first_message',
	wait				pg_catalog.interval DEFAULT '0',
	msgid				pg_catalog.uuid DEFAULT NULL,
	correlation			pg_catalog.text DEFAULT NULL,
	condition			pg_catalog.text DEFAULT NULL,
	max_messages		pg_catalog.int8 DEFAULT 1,
	visibility			pg_catalog.text DEFAULT 'on_commit',
	delivery_mode		pg_catalog.text DEFAULT 'persistent')
RETURNS SETOF queue.message
LANGUAGE C VOLATILE PARALLEL UNSAFE
SUPPORT queue._dequeue_support
AS 'MODULE_PATHNAME', 'queue_dequeue_sql';
COMMENT ON FUNCTION queue.dequeue IS 'take messages from a queue (or browse it), the payload shown as jsonb; no row if there is none';

CREATE PROCEDURE queue.wait(
	queue				pg_catalog.regclass,
	consumer			pg_catalog.text DEFAULT NULL,
	timeout				pg_catalog.interval DEFAULT NULL)
LANGUAGE C
AS 'MODULE_PATHNAME', 'queue_wait_sql';
COMMENT ON PROCEDURE queue.wait IS 'wait until a queue has a message, or for the timeout; takes nothing, and holds no snapshot and no transaction id meanwhile';

CREATE FUNCTION queue.listen(
	agents				queue.agent[],
	timeout				pg_catalog.interval DEFAULT NULL)
RETURNS queue.agent
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_listen';
COMMENT ON FUNCTION queue.listen IS 'wait until one of several queues has a message: the agent whose address it is; NULL when the timeout is over';

CREATE FUNCTION queue.dequeue_as(
	payload_type		pg_catalog.anyelement,
	queue				pg_catalog.regclass,
	consumer			pg_catalog.text DEFAULT NULL,
	mode				pg_catalog.text DEFAULT 'remove',
	navigation			pg_catalog.text DEFAULT 'first_message',
	wait				pg_catalog.interval DEFAULT '0',
	msgid				pg_catalog.uuid DEFAULT NULL,
	correlation			pg_catalog.text DEFAULT NULL,
	condition			pg_catalog.text DEFAULT NULL,
	max_messages		pg_catalog.int8 DEFAULT 1,
	visibility			pg_catalog.text DEFAULT 'on_commit',
	delivery_mode		pg_catalog.text DEFAULT 'persistent')
RETURNS TABLE (
	msgid				pg_catalog.uuid,
	payload				pg_catalog.anyelement,
	priority			pg_catalog.int4,
	correlation			pg_catalog.text,
	enq_time			pg_catalog.timestamptz,
	retry_count			pg_catalog.int4,
	properties			pg_catalog.jsonb,
	sender				queue.agent,
	group_id			pg_catalog.uuid,
	step				pg_catalog.int4,
	original_msgid		pg_catalog.uuid,
	expires_at			pg_catalog.timestamptz,
	reply_to			pg_catalog.text,
	routing_key			pg_catalog.text,
	group_key			pg_catalog.text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_dequeue_as';
COMMENT ON FUNCTION queue.dequeue_as IS 'take messages from a queue, the payload with its type: pass a NULL of that type first';

/* Leases: a message is handed out with a receipt, and comes back unless that is acknowledged in time. */
CREATE FUNCTION queue.receive(
	queue				pg_catalog.regclass,
	lease				pg_catalog.interval DEFAULT '30 seconds',
	consumer			pg_catalog.text DEFAULT NULL,
	max_messages		pg_catalog.int8 DEFAULT 1,
	wait				pg_catalog.interval DEFAULT '0',
	condition			pg_catalog.text DEFAULT NULL)
RETURNS TABLE (
	receipt				pg_catalog.uuid,
	msgid				pg_catalog.uuid,
	payload				pg_catalog.jsonb,
	priority			pg_catalog.int4,
	correlation			pg_catalog.text,
	enq_time			pg_catalog.timestamptz,
	retry_count			pg_catalog.int4,
	properties			pg_catalog.jsonb,
	sender				queue.agent,
	group_id			pg_catalog.uuid,
	step				pg_catalog.int4,
	original_msgid		pg_catalog.uuid,
	expires_at			pg_catalog.timestamptz,
	reply_to			pg_catalog.text,
	routing_key			pg_catalog.text,
	group_key			pg_catalog.text)
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_receive';
COMMENT ON FUNCTION queue.receive IS 'hand out messages for the time of a lease, each with a receipt; they come back unless they are acknowledged';

CREATE FUNCTION queue.ack(
	receipts			pg_catalog.uuid[])
RETURNS pg_catalog.int4
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_ack';
COMMENT ON FUNCTION queue.ack IS 'acknowledge messages that were received: they are consumed; all or none';

CREATE FUNCTION queue.nack(
	receipts			pg_catalog.uuid[],
	delay				pg_catalog.interval DEFAULT NULL)
RETURNS pg_catalog.int4
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_nack';
COMMENT ON FUNCTION queue.nack IS 'give messages that were received back as failed, to be delivered again after a delay (NULL: the retry_delay of their queue); all or none';

CREATE FUNCTION queue.extend(
	receipts			pg_catalog.uuid[],
	lease				pg_catalog.interval DEFAULT '30 seconds')
RETURNS pg_catalog.int4
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_extend';
COMMENT ON FUNCTION queue.extend IS 'lease messages that were received for another while, counted from now; all or none';
