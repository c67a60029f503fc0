/*-------------------------------------------------------------------------
 *
 * dequeue.h
 *	  The dequeue verb.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_DEQUEUE_H
#define QUEUE_DEQUEUE_H

#include "catalog.h"
#include "message_store.h"
#include "queue.h"

typedef enum QueueDequeueMode
{
	QUEUE_MODE_BROWSE,
	QUEUE_MODE_LOCKED,
	QUEUE_MODE_REMOVE,
	QUEUE_MODE_REMOVE_NODATA
} QueueDequeueMode;

typedef enum QueueNavigation
{
	QUEUE_NAV_FIRST_MESSAGE,
	QUEUE_NAV_NEXT_MESSAGE,
	QUEUE_NAV_NEXT_TRANSACTION,
	QUEUE_NAV_FIRST_MESSAGE_MULTI_GROUP,
	QUEUE_NAV_NEXT_MESSAGE_MULTI_GROUP
} QueueNavigation;

typedef struct QueueDequeueOptions
{
	QueueDequeueMode mode;
	QueueNavigation navigation;
	bool		wait_forever;
	Interval	wait;			/* zero: do not wait */
	bool		has_msgid;
	pg_uuid_t	msgid;
	const char *correlation;	/* LIKE pattern, or NULL */
	const char *condition;		/* SQL boolean, or NULL */
	int			max_messages;
	bool		has_lease;		/* handed out for so long, not removed */
	Interval	lease;			/* greater than zero */
} QueueDequeueOptions;

/*
 * Called for each delivered message, with what is to be shown: the payload is
 * detoasted (NULL in mode remove_nodata), retry_count is the true one.  Must
 * copy what it keeps.  table is the entry that describes the payload.
 */
typedef void (*QueueDeliver) (void *context, const QueueTable *table,
							  const QueueMessage *message);

/*
 * Lock a queue and check that the caller may dequeue from it, or browse it,
 * and that it is started.
 */
extern QueueDesc *queue_dequeue_find(Oid queue, bool browse);

/*
 * Dequeue up to max_messages.  Takes the queue's lock, checks rights, state
 * and options.  Returns the number delivered.
 */
extern int	queue_dequeue(Oid queue, const QueueDequeueOptions *options,
						  QueueDeliver deliver, void *context);

#endif							/* QUEUE_DEQUEUE_H */
