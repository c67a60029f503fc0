/*-------------------------------------------------------------------------
 *
 * wait.h
 *	  Wait until a queue has a message, without taking it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_WAIT_H
#define QUEUE_WAIT_H

#include "queue.h"

/*
 * Wait until one of these queues has a message that could be dequeued, or
 * until a time (DT_NOEND: none).  Returns the number of the queue; -1: none.
 * Checks rights and states of all of them.  drop_snapshot: the caller is a
 * procedure and needs no snapshot meanwhile.
 */
extern int	queue_wait(const Oid *queues, int count, TimestampTz deadline,
					   bool drop_snapshot);

#endif							/* QUEUE_WAIT_H */
