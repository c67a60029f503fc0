/*-------------------------------------------------------------------------
 *
 * receipt.h
 *	  What a receipt of a leased message is made of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_RECEIPT_H
#define QUEUE_RECEIPT_H

#include "queue.h"

/*
 * A receipt for one delivery of a message, which has failed so often before.
 */
extern void queue_receipt_make(pg_uuid_t *receipt, Oid queue,
							   const pg_uuid_t *msgid, int32 attempts);

/* The queue's view; it may be any number if somebody made the receipt up. */
extern Oid	queue_receipt_queue(const pg_uuid_t *receipt);

/* The message's id is one of these, the limits included. */
extern void queue_receipt_msgids(const pg_uuid_t *receipt, pg_uuid_t *lowest,
								 pg_uuid_t *highest);

#endif							/* QUEUE_RECEIPT_H */
