/*-------------------------------------------------------------------------
 *
 * message_store.h
 *	  Insert, look up, claim and move the rows of a queue table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_MESSAGE_STORE_H
#define QUEUE_MESSAGE_STORE_H

#include "executor/tuptable.h"
#include "storage/lock.h"
#include "utils/relcache.h"

#include "catalog.h"
#include "queue.h"

/* A row of a queue table in memory: values by QueueColumn. */
typedef struct QueueMessage
{
	Datum		values[QUEUE_NUM_COLS];
	bool		nulls[QUEUE_NUM_COLS];
} QueueMessage;

extern void queue_message_init(QueueMessage *message);
extern void queue_message_from_slot(QueueMessage *message,
									const QueueTable *table,
									TupleTableSlot *slot);

/* The ordering key of a message in a ready or expired leaf. */
extern void queue_message_key(QueueKey *key, QueueSort sort,
							  const QueueMessage *message);

/* The key of a message in the waiting leaf: due time, msgid. */
extern void queue_message_due_key(QueueKey *key, const QueueMessage *message);

/*
 * Store messages of one queue: state and segment are computed here, and the
 * heads learn of it.  All messages go to the same leaf kind or not; order is
 * kept.  The caller holds the queue's lock and has checked everything.
 */
extern void queue_message_insert(const QueueDesc *queue,
								 QueueMessage *messages, int count);

#endif							/* QUEUE_MESSAGE_STORE_H */
