/*
 * An agent: a producer or consumer.
 *
 *	name		its name, such as a consumer's
 *	address		the queue that it is reached by; NULL for a local one
 *	protocol	0 or NULL: a queue of this extension
 */
CREATE TYPE queue.agent AS (
	name		pg_catalog.text,
	address		pg_catalog.text,
	protocol	pg_catalog.int4
);
COMMENT ON TYPE queue.agent IS 'a producer or consumer: name, address, protocol';

/*
 * What a producer may say of each message of queue.enqueue_array(): one field
 * for each argument of queue.enqueue() from priority on.
 */
CREATE TYPE queue.message_properties AS (
	priority			pg_catalog.int8,
	delay				pg_catalog.interval,
	deliver_at			pg_catalog.timestamptz,
	expiration			pg_catalog.interval,
	correlation			pg_catalog.text,
	properties			pg_catalog.jsonb,
	recipients			queue.agent[],
	exception_queue		pg_catalog.text,
	sender				pg_catalog.text,
	group_key			pg_catalog.text,
	dedup_key			pg_catalog.text,
	reply_to			pg_catalog.text,
	routing_key			pg_catalog.text,
	relative_msgid		pg_catalog.uuid,
	sequence_deviation	pg_catalog.text,
	visibility			pg_catalog.text,
	delivery_mode		pg_catalog.text
);
COMMENT ON TYPE queue.message_properties IS 'what a producer may say of one message of queue.enqueue_array()';

/* A message as queue.dequeue() returns it. */
CREATE TYPE queue.message AS (
	msgid			pg_catalog.uuid,
	payload			pg_catalog.jsonb,
	priority		pg_catalog.int4,
	correlation		pg_catalog.text,
	enq_time		pg_catalog.timestamptz,
	retry_count		pg_catalog.int4,
	properties		pg_catalog.jsonb,
	sender			queue.agent,
	group_id		pg_catalog.uuid,
	step			pg_catalog.int4,
	original_msgid	pg_catalog.uuid,
	expires_at		pg_catalog.timestamptz,
	reply_to		pg_catalog.text,
	routing_key		pg_catalog.text,
	group_key		pg_catalog.text
);
COMMENT ON TYPE queue.message IS 'a message as queue.dequeue() returns it';
