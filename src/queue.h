/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  Types and constants shared by all modules.
 *
 * A message lives as one row of a queue table, a partitioned table whose
 * leaves are: the ready ring (one leaf for each segment), the waiting leaf,
 * the processed ring (the retention journal) and the expired leaf (the
 * exception table).  A QueueKey is the position of a row within one of the
 * ordered leaves; a QueueMessage is a row in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#define QUEUE_SCHEMA		"queue"
#define QUEUE_VERSION		"0.1.0"

/* leaves of each ring */
#define QUEUE_SEGMENTS		4

/*
 * Tracks of one lane of a head: one for each ready segment, and one for the
 * messages that wait to become due.
 */
#define QUEUE_TRACK_DUE		QUEUE_SEGMENTS
#define QUEUE_TRACKS		(QUEUE_SEGMENTS + 1)

/* the most messages one call may enqueue or dequeue */
#define QUEUE_MAX_BATCH		1000000

/* in single-consumer queue tables every row has this consumer */
#define QUEUE_CONSUMER_NONE	0

/* Message states; the numbers are Oracle's and are stored. */
typedef enum QueueState
{
	QUEUE_STATE_READY = 0,
	QUEUE_STATE_WAITING = 1,
	QUEUE_STATE_PROCESSED = 2,
	QUEUE_STATE_EXPIRED = 3
} QueueState;

/* Order of delivery, fixed for a queue table. */
typedef enum QueueSort
{
	QUEUE_SORT_ENQ_TIME,		/* msgid */
	QUEUE_SORT_PRIORITY,		/* priority, msgid: also priority,enq_time */
	QUEUE_SORT_ENQ_TIME_PRIORITY,	/* order_at, priority, msgid */
	QUEUE_SORT_COMMIT_TIME,		/* order_at, msgid */
	QUEUE_SORT_PRIORITY_COMMIT_TIME /* priority, order_at, msgid */
} QueueSort;

/* does the sort list begin with priority: has a head one lane for each? */
#define QUEUE_SORT_HAS_LANES(sort) \
	((sort) == QUEUE_SORT_PRIORITY || (sort) == QUEUE_SORT_PRIORITY_COMMIT_TIME)

/* are ordering keys given when the transaction commits? */
#define QUEUE_SORT_AT_COMMIT(sort) \
	((sort) == QUEUE_SORT_COMMIT_TIME || (sort) == QUEUE_SORT_PRIORITY_COMMIT_TIME)

/* is order_at part of the key? */
#define QUEUE_SORT_HAS_ORDER_AT(sort) \
	((sort) >= QUEUE_SORT_ENQ_TIME_PRIORITY)

/*
 * The whole key of the ordering index after (queue, consumer[, priority]).
 * major is order_at, or the due time of a waiting message; minor is the
 * priority where it follows order_at.  Both are 0 where the sort list has
 * none.  All bits zero but major and minor at their minimum is minus
 * infinity (queue_key_min).
 */
typedef struct QueueKey
{
	int64		major;
	int32		minor;
	pg_uuid_t	msgid;
} QueueKey;

#endif							/* QUEUE_H */
