/*-------------------------------------------------------------------------
 *
 * rotation.h
 *	  Closing, emptying and truncating the segments of queue tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ROTATION_H
#define QUEUE_ROTATION_H

#include "lib/stringinfo.h"

#include "catalog.h"

/* What one step has found. */
typedef struct QueueRotationStep
{
	bool		progress;		/* something was done */
	bool		pending;		/* a segment waits for transactions to end */
	bool		truncated;		/* commit before the next step */
	bool		moved;			/* likewise */
} QueueRotationStep;

/*
 * One step for one queue table, in the caller's transaction, which should do
 * nothing else and end soon.  force: move messages out of closed segments
 * without waiting for them to be consumed.  report may be NULL.
 */
extern void queue_rotation_step(Oid queue_table, bool force,
								QueueRotationStep *step, StringInfo report);

/* The queue monitor's job: returns when it wants to be called again. */
extern TimestampTz queue_rotation_job(void);

extern void queue_rotation_init(void);

#endif							/* QUEUE_ROTATION_H */
