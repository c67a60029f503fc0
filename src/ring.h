/*-------------------------------------------------------------------------
 *
 * ring.h
 *	  The segments of a queue table's ready messages: what shared memory
 *	  knows of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_RING_H
#define QUEUE_RING_H

#include "port/atomics.h"

#include "queue.h"

/* What a segment is used for (rule S1). */
typedef enum QueueSegmentState
{
	QUEUE_SEGMENT_CLOSED,		/* not written to; may hold messages */
	QUEUE_SEGMENT_CURRENT,		/* messages are written to it */
	QUEUE_SEGMENT_EMPTY,		/* every row in it is dead and stays dead */
	QUEUE_SEGMENT_FREE			/* not a block in it */
} QueueSegmentState;

/* What the monitor looks for in a queue table, at its time. */
typedef enum QueueTime
{
	QUEUE_TIME_DUE,				/* a waiting message is due */
	QUEUE_TIME_EXPIRY,			/* a message expires */
	QUEUE_TIME_PURGE,			/* a processed message has been kept enough */
	QUEUE_NUM_TIMES
} QueueTime;

/*
 * One queue table.  The word holds the states of the segments and a counter
 * that moves with each use of a segment that is not the current one; it is
 * changed by compare-and-swap only, so a change that did not see a use fails.
 */
typedef struct QueueRing
{
	/* written under the directory lock; checked by whoever uses the ring */
	Oid			database;
	Oid			queue_table;
	Oid			leaves[QUEUE_SEGMENTS];

	pg_atomic_uint64 word;
	pg_atomic_uint64 uses[QUEUE_SEGMENTS];	/* while not the current one */
	pg_atomic_uint32 clock_raised;	/* the clock is above what is stored */
	pg_atomic_uint32 turn_wanted;	/* the current segment is full */

	/* the monitor is to look no later than at these times; may be too early */
	pg_atomic_uint64 times[QUEUE_NUM_TIMES];
	pg_atomic_uint32 attempts_told; /* failed attempts are to be written */
} QueueRing;

extern Size queue_ring_shmem_size(void);
extern void queue_ring_shmem_init(void);

/* Is the ring that of this table of this database? */
extern bool queue_ring_is(const QueueRing *ring, Oid queue_table,
						  const Oid *leaves);

/*
 * Find the ring of a queue table, or make it: the first segment is current,
 * the others are closed.  is_gone says of a queue table of this database
 * whether it was dropped.  NULL: there is no room, or recovery is under way;
 * such a table writes to its first segment.
 */
extern QueueRing *queue_ring_find(Oid queue_table, const Oid *leaves,
								  bool (*is_gone) (Oid queue_table));

/* The word; for a table that has no ring, that of a new one. */
extern uint64 queue_ring_read(QueueRing *ring);
extern int	queue_ring_current(uint64 word);
extern QueueSegmentState queue_ring_state(uint64 word, int segment);

/* May a segment hold messages? */
static inline bool
queue_ring_is_used(uint64 word, int segment)
{
	return queue_ring_state(word, segment) <= QUEUE_SEGMENT_CURRENT;
}

/* A row was put into a segment by other means than an enqueue. */
extern void queue_ring_use(QueueRing *ring, int segment);
extern uint64 queue_ring_uses(QueueRing *ring, int segment);

/* The current segment is full; true for the first who says so. */
extern bool queue_ring_want_turn(QueueRing *ring);

/*
 * The monitor is to look at this time, or before: true if nothing told it so
 * yet.  Told when a message is visible, so whoever takes a time off and then
 * looks sees the message, or the time again.  Atomic; NULL: true.
 */
extern bool queue_ring_tell_time(QueueRing *ring, QueueTime which,
								 TimestampTz at);
extern TimestampTz queue_ring_time(QueueRing *ring, QueueTime which);
extern void queue_ring_take_time(QueueRing *ring, QueueTime which);

/* Failed attempts are to be written; true for the first who says so. */
extern bool queue_ring_tell_attempts(QueueRing *ring);
extern void queue_ring_take_attempts(QueueRing *ring);

/*
 * Change a segment's state, or which one is current, if the word is still
 * what it was.  Then *word is the new one; else it is left alone.
 */
extern bool queue_ring_set_state(QueueRing *ring, uint64 *word, int segment,
								 QueueSegmentState state);
extern bool queue_ring_turn(QueueRing *ring, uint64 *word, int next);

#endif							/* QUEUE_RING_H */
