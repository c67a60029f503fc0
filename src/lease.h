/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  What becomes of messages that were handed out with a receipt.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_LEASE_H
#define QUEUE_LEASE_H

#include "queue.h"

typedef enum QueueLeaseAction
{
	QUEUE_LEASE_ACK,			/* consumed */
	QUEUE_LEASE_NACK,			/* given back, a failed attempt */
	QUEUE_LEASE_EXTEND			/* leased anew, from now on */
} QueueLeaseAction;

/*
 * Settle so many receipts, of any queues; one that is named twice is one.
 * interval: the delay of a nack, NULL for the queue's retry_delay; the new
 * lease of an extend.  Either all are settled, or ERROR: QU012 if some cannot
 * be used any more, 55P03 if somebody else has their messages in his hands.
 * Sorts the array.  Returns their number.
 */
extern int	queue_lease_settle(QueueLeaseAction action, pg_uuid_t *receipts,
							   int count, const Interval *interval);

#endif							/* QUEUE_LEASE_H */
