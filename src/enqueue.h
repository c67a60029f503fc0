/*-------------------------------------------------------------------------
 *
 * enqueue.h
 *	  The enqueue verb.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ENQUEUE_H
#define QUEUE_ENQUEUE_H

#include "catalog.h"
#include "message_store.h"
#include "queue.h"

/* limits, in bytes */
#define QUEUE_MAX_NAME_LENGTH			512 /* senders and keys */
#define QUEUE_MAX_CORRELATION_LENGTH	1024	/* and addresses */

/*
 * What a producer says of one message beside its payload.  Strings are NULL
 * and times have their flag unset where nothing was said.
 */
typedef struct QueueEnqueueOptions
{
	int32		priority;		/* default 1 */
	bool		has_delay;
	Interval	delay;
	bool		has_deliver_at;
	TimestampTz deliver_at;
	bool		has_expiration;
	Interval	expiration;
	const char *correlation;
	bool		has_properties;
	Datum		properties;		/* jsonb */
	const char *exception_queue;
	const char *sender_name;
	const char *sender_address;
	bool		has_sender_protocol;
	int32		sender_protocol;
	const char *group_key;
	const char *dedup_key;
	const char *reply_to;
	const char *routing_key;
} QueueEnqueueOptions;

#define QUEUE_DEFAULT_PRIORITY	1

extern void queue_enqueue_options_init(QueueEnqueueOptions *options);

/*
 * Begin to enqueue: take the queue's lock, kept to the end of the
 * transaction, and check that it may be done here and now.  The privilege is
 * checked unless the executor has done it (INSERT into the view).
 */
extern QueueDesc *queue_enqueue_begin(Oid queue, bool check_privilege);

/*
 * Enqueue one message.  It is left in *message as it was stored.  The payload
 * is a value of payload_type and is converted here.  ERROR before anything is
 * stored if an option is wrong.  Allocates in the current context.
 */
extern void queue_enqueue_one(const QueueDesc *queue, Datum payload,
							  bool payload_null, Oid payload_type,
							  const QueueEnqueueOptions *options,
							  QueueMessage *message);

/*
 * Enqueue count messages, in order, and set msgids[].  options has one entry
 * for each message, or is one for all if shared.
 */
extern void queue_enqueue_many(const QueueDesc *queue, int count,
							   const Datum *payloads,
							   const bool *payload_nulls, Oid payload_type,
							   const QueueEnqueueOptions *options,
							   bool shared, pg_uuid_t *msgids);

#endif							/* QUEUE_ENQUEUE_H */
