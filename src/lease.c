/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  What becomes of messages that were handed out with a receipt.
 *
 * A leased message lies among the waiting ones, due when the lease ends, and
 * its row has the receipt of its delivery (dequeue.c puts it there).  So it
 * comes back by itself, whatever becomes of the receiver.  To settle it is to
 * delete that row, and to store another one unless the message is consumed;
 * the delete decides between a receipt and whoever takes the message when its
 * lease has ended.  Nothing here waits for another transaction.
 *
 * A receipt is good while a live row has it and the lease has not ended.
 * Whatever moves the row but an extension of the lease takes the receipt away,
 * and a new delivery gives it another one.
 *
 * Roll-backs are no failed attempts here: the row is back as it was.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "acl.h"
#include "clock.h"
#include "compat.h"
#include "debug_point.h"
#include "errors.h"
#include "key.h"
#include "lease.h"
#include "look.h"
#include "message_store.h"
#include "receipt.h"
#include "take.h"

/* so many receipts are named in an error */
#define MAX_NAMED	100

typedef enum Outcome
{
	OUTCOME_SETTLED,
	OUTCOME_REFUSED,			/* cannot be used any more */
	OUTCOME_BUSY				/* somebody else has it in his hands */
} Outcome;

/* One call. */
typedef struct Settle
{
	QueueLeaseAction action;
	const Interval *interval;
	int			count;			/* receipts that differ */
	int			refused;
	int			busy;
	StringInfoData refused_list;
	StringInfoData busy_list;
	MemoryContext memory;		/* for one message */
} Settle;

/* The receipts of one queue. */
typedef struct SettleQueue
{
	QueueDesc  *queue;
	QueueStore	store;			/* the leaf of waiting messages */
	TupleTableSlot *slot;
	QueueLook	look;
	bool		changed;
} SettleQueue;

/* By queue, because locks are taken in the order of OIDs. */
static int
compare_receipts(const void *a, const void *b)
{
	Oid			x = queue_receipt_queue(a);
	Oid			y = queue_receipt_queue(b);

	if (x != y)
		return x < y ? -1 : 1;
	return queue_msgid_cmp(a, b);
}

/* Sort, and drop what is there twice. */
static int
sort_receipts(pg_uuid_t *receipts, int count)
{
	int			n = 0;

	qsort(receipts, count, sizeof(pg_uuid_t), compare_receipts);
	for (int i = 0; i < count; i++)
	{
		if (n == 0 || queue_msgid_cmp(&receipts[n - 1], &receipts[i]) != 0)
			receipts[n++] = receipts[i];
	}
	return n;
}

static void
note_failure(int *failures, StringInfo list, const pg_uuid_t *receipt)
{
	if (++*failures > MAX_NAMED)
		return;
	appendStringInfo(list, "%s%s", *failures > 1 ? ", " : "",
					 DatumGetCString(DirectFunctionCall1(uuid_out,
														 UUIDPGetDatum(receipt))));
}

/* ---------- one receipt ---------- */

/*
 * The row with this receipt, live or in somebody's hands: its verdict, and the
 * track's candidate.  False: there is none.
 */
static bool
find_leased(SettleQueue *in, const pg_uuid_t *receipt, QueueTrackLook *track,
			QueueVerdict *verdict)
{
	pg_uuid_t	lowest;
	pg_uuid_t	highest;
	ScanKeyData keys[2];
	IndexScanDesc scan;
	bool		found = false;

	queue_receipt_msgids(receipt, &lowest, &highest);
	ScanKeyInit(&keys[0], 1, BTGreaterEqualStrategyNumber, F_UUID_GE,
				UUIDPGetDatum(&lowest));
	ScanKeyInit(&keys[1], 1, BTLessEqualStrategyNumber, F_UUID_LE,
				UUIDPGetDatum(&highest));
	scan = queue_index_beginscan(in->store.rel, in->store.index,
								 &in->look.dirty, 2);
	index_rescan(scan, keys, 2, NULL, 0);
	while (!found && index_getnext_slot(scan, ForwardScanDirection, in->slot))
	{
		QueueMessage *message = &track->candidate.message;

		*verdict = queue_look_judge(&in->look, track);
		found = !message->nulls[QUEUE_COL_RECEIPT] &&
			DatumGetInt32(message->values[QUEUE_COL_QUEUE_ID]) ==
			in->queue->id &&
			queue_msgid_cmp(DatumGetUUIDP(message->values[QUEUE_COL_RECEIPT]),
							receipt) == 0;
	}
	index_endscan(scan);
	return found;
}

/* Consumed: into the journal, as it was delivered. */
static void
consume(QueueLocalHead *local, const QueueDesc *queue, QueueMessage *message)
{
	int32		count = DatumGetInt32(message->values[QUEUE_COL_RETRY_COUNT]);

	if (!queue->retention_forever &&
		queue_interval_to_usecs(&queue->retention) <= 0)
		return;
	message->values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(Max(count - 1, 0));
	message->nulls[QUEUE_COL_DUE_AT] = true;
	queue_message_journal(queue->table, message);
	if (!queue->retention_forever)
		local->next_purge =
			Min(local->next_purge,
				DatumGetTimestampTz(message->values[QUEUE_COL_DEQ_TIME]) +
				queue_interval_to_usecs(&queue->retention));
}

/* Given back: ready at once, or after the delay. */
static void
give_back(const Settle *settle, const QueueDesc *queue, QueueMessage *message,
		  TimestampTz now)
{
	int32		count = DatumGetInt32(message->values[QUEUE_COL_RETRY_COUNT]);
	const Interval *delay = settle->interval;
	TimestampTz due = 0;

	if (queue->max_retries >= 0 && count > queue->max_retries)
	{
		queue_message_expire(queue,
							 queue_take_exception_queue(queue, message),
							 "MAX_RETRY_EXCEEDED", message);
		return;
	}
	if (delay == NULL && queue->retry_delay_forever)
		due = DT_NOEND;
	else
	{
		if (delay == NULL)
			delay = &queue->retry_delay;
		if (queue_interval_sign(delay) > 0)
			due = queue_interval_add(now, delay, "delay");
	}
	message->nulls[QUEUE_COL_DUE_AT] = true;
	queue_message_relocate(queue->table, message, due);
}

/* The row is deleted: what follows? */
static void
store_outcome(const Settle *settle, QueueLocalHead *local,
			  const QueueDesc *queue, const pg_uuid_t *receipt,
			  QueueMessage *message, TimestampTz now)
{
	switch (settle->action)
	{
		case QUEUE_LEASE_ACK:
			consume(local, queue, message);
			break;
		case QUEUE_LEASE_NACK:
			give_back(settle, queue, message, now);
			break;
		case QUEUE_LEASE_EXTEND:
			queue_message_lease(queue->table, message, receipt,
								queue_interval_add(now, settle->interval,
												   "lease"));
			break;
	}
}

static Outcome
settle_one(const Settle *settle, SettleQueue *in, const pg_uuid_t *receipt)
{
	QueueLook  *look = &in->look;
	QueueTrackLook track;
	QueueCandidate *candidate = &track.candidate;
	QueueMessage message;
	QueueVerdict verdict = QUEUE_VERDICT_PASS;

	memset(&track, 0, sizeof(track));
	track.store = in->store;
	track.slot = in->slot;
	look->now = queue_clock_now();
	queue_look_refresh(look);
	if (!find_leased(in, receipt, &track, &verdict))
		return OUTCOME_REFUSED;
	if (verdict != QUEUE_VERDICT_DELIVER && verdict != QUEUE_VERDICT_EXPIRE &&
		verdict != QUEUE_VERDICT_EXHAUST)
		return OUTCOME_BUSY;
	if (candidate->key.major <= look->now)
		return OUTCOME_REFUSED;
	if (!queue_look_is_settled(look, &track))
		return OUTCOME_BUSY;

	in->changed = true;
	if (queue_take_row(look, &track) != TM_Ok)
		return OUTCOME_BUSY;
	message = candidate->message;
	store_outcome(settle, look->local, in->queue, receipt, &message,
				  look->now);
	return OUTCOME_SETTLED;
}

/* ---------- the call ---------- */

/*
 * The receipts' queue, locked; NULL if it is none any more.  It need not be
 * started: what was handed out can be brought to its end.
 */
static QueueDesc *
find_queue(Oid queue_oid)
{
	QueueDesc  *queue = queue_catalog_find(queue_oid, true);

	if (queue == NULL)
		return NULL;
	queue_acl_check_dequeue(queue);
	LockRelationOid(queue_oid, RowExclusiveLock);
	queue = queue_catalog_find(queue_oid, true);
	if (queue != NULL)
		queue_acl_check_dequeue(queue);
	return queue;
}

static bool
open_queue(SettleQueue *in, Oid queue_oid)
{
	QueueLook  *look = &in->look;

	in->changed = false;
	in->queue = find_queue(queue_oid);
	if (in->queue == NULL ||
		!queue_store_open_by_msgid(&in->store, in->queue->table,
								   &in->queue->table->waiting,
								   QUEUE_TRACK_DUE, RowExclusiveLock))
		return false;
	in->slot = table_slot_create(in->store.rel, NULL);
	queue_look_init(look);
	look->queue = in->queue;
	look->changes = true;
	look->by_receipt = true;
	look->dirty.xmin = look->dirty.xmax = InvalidTransactionId;
	look->local = queue_message_head_of_queue(in->queue);
	queue_xact_register(look->local);
	return true;
}

static void
close_queue(SettleQueue *in)
{
	ExecDropSingleTupleTableSlot(in->slot);
	if (in->changed)
		queue_store_close(&in->store);
	else
		queue_store_release(&in->store);
}

static void
settle_queue(Settle *settle, Oid queue_oid, const pg_uuid_t *receipts,
			 int count)
{
	SettleQueue in;
	bool		is_open = open_queue(&in, queue_oid);

	for (int i = 0; i < count; i++)
	{
		Outcome		outcome = OUTCOME_REFUSED;

		CHECK_FOR_INTERRUPTS();
		if (is_open)
		{
			MemoryContext old = MemoryContextSwitchTo(settle->memory);

			outcome = settle_one(settle, &in, &receipts[i]);
			MemoryContextSwitchTo(old);
			MemoryContextReset(settle->memory);
		}
		if (outcome == OUTCOME_REFUSED)
			note_failure(&settle->refused, &settle->refused_list,
						 &receipts[i]);
		else if (outcome == OUTCOME_BUSY)
			note_failure(&settle->busy, &settle->busy_list, &receipts[i]);
	}
	if (is_open)
		close_queue(&in);
}

/* All or nothing: what was done is undone by the error. */
static void
report_failures(const Settle *settle)
{
	if (settle->refused > 0)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_RECEIPT_REFUSED),
				 errmsg("%d of %d receipts cannot be used any more",
						settle->refused, settle->count),
				 errdetail("Their leases have ended, or their messages were acknowledged or delivered again: %s.",
						   settle->refused_list.data),
				 errhint("Nothing was changed. Call again without them; a message that was not acknowledged is delivered again.")));
	if (settle->busy > 0)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("messages of %d of %d receipts are being changed by another transaction",
						settle->busy, settle->count),
				 errdetail("Their receipts: %s.", settle->busy_list.data),
				 errhint("Nothing was changed. Call again without them, or later.")));
}

int
queue_lease_settle(QueueLeaseAction action, pg_uuid_t *receipts, int count,
				   const Interval *interval)
{
	Settle		settle;
	bool		pushed = false;
	int			end;

	memset(&settle, 0, sizeof(settle));
	settle.action = action;
	settle.interval = interval;
	settle.count = sort_receipts(receipts, count);
	initStringInfo(&settle.refused_list);
	initStringInfo(&settle.busy_list);
	settle.memory = AllocSetContextCreate(CurrentMemoryContext, "queue lease",
										  ALLOCSET_DEFAULT_SIZES);

	/* rule D0 */
	if (!ActiveSnapshotSet())
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		pushed = true;
	}
	for (int begin = 0; begin < settle.count; begin = end)
	{
		Oid			queue = queue_receipt_queue(&receipts[begin]);

		end = begin + 1;
		while (end < settle.count &&
			   queue_receipt_queue(&receipts[end]) == queue)
			end++;
		settle_queue(&settle, queue, &receipts[begin], end - begin);
	}
	if (pushed)
		PopActiveSnapshot();
	report_failures(&settle);
	MemoryContextDelete(settle.memory);
	return settle.count;
}
