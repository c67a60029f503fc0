/*-------------------------------------------------------------------------
 *
 * receipt.c
 *	  What a receipt of a leased message is made of.
 *
 * The row has the receipt of its last delivery, and only the whole receipt
 * counts.  What is in it serves to find the row without an index of its own,
 * and to make two deliveries of a message differ:
 *
 *	 64 bits	the first half of the message's id, which is its time
 *	  2 bits	the variant of UUIDs, so that it is one, of version 7
 *	 32 bits	OID of the queue's view
 *	 10 bits	how often the delivery of the message has failed before
 *	 20 bits	random
 *
 * Deliveries that follow one another have different counts.  Chance is only
 * needed where a count was forgotten (the server crashed after the roll-back
 * of a delivery).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "port/pg_bswap.h"

#include "receipt.h"

#define VARIANT			(UINT64CONST(2) << 62)
#define QUEUE_SHIFT		30
#define ATTEMPTS_SHIFT	20
#define ATTEMPTS_MASK	0x3FF
#define RANDOM_MASK		0xFFFFF

void
queue_receipt_make(pg_uuid_t *receipt, Oid queue, const pg_uuid_t *msgid,
				   int32 attempts)
{
	uint64		low = VARIANT;

	low |= (uint64) queue << QUEUE_SHIFT;
	low |= (uint64) (attempts & ATTEMPTS_MASK) << ATTEMPTS_SHIFT;
	low |= pg_prng_uint64(&pg_global_prng_state) & RANDOM_MASK;
	low = pg_hton64(low);
	memcpy(receipt->data, msgid->data, sizeof(uint64));
	memcpy(&receipt->data[sizeof(uint64)], &low, sizeof(low));
}

Oid
queue_receipt_queue(const pg_uuid_t *receipt)
{
	uint64		low;

	memcpy(&low, &receipt->data[sizeof(uint64)], sizeof(low));
	return (Oid) (pg_ntoh64(low) >> QUEUE_SHIFT);
}

void
queue_receipt_msgids(const pg_uuid_t *receipt, pg_uuid_t *lowest,
					 pg_uuid_t *highest)
{
	*lowest = *highest = *receipt;
	memset(&lowest->data[sizeof(uint64)], 0, sizeof(uint64));
	memset(&highest->data[sizeof(uint64)], 0xFF, sizeof(uint64));
}
