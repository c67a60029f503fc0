/*-------------------------------------------------------------------------
 *
 * look_judge.c
 *	  What one entry of a queue's index means to a look.
 *
 * A dirty snapshot has just seen the row.  It is available, in progress by an
 * owner who publishes or by one nobody knows, or live but not wanted (rules
 * D2 and D3).  Before a candidate is taken the registry is read again, because
 * what the look saw and the registry it had copied are of different times.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/rel.h"

#include "attempts.h"
#include "look.h"

/* Who of several lockers is still there?  Members may have aborted updates. */
static QueueRowLock
find_multi_lock(HeapTupleHeader tuple, MultiXactId multi)
{
	MultiXactMember *members = NULL;
	QueueRowLock result = QUEUE_ROW_UNLOCKED;
	int			count;

	count = GetMultiXactIdMembers(multi, &members, false,
								  HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask));
	for (int i = 0; i < count; i++)
	{
		if (TransactionIdIsCurrentTransactionId(members[i].xid))
		{
			if (result == QUEUE_ROW_UNLOCKED)
				result = QUEUE_ROW_LOCKED_BY_US;
		}
		else if (TransactionIdIsInProgress(members[i].xid))
			result = QUEUE_ROW_LOCKED_BY_OTHER;
	}
	if (members != NULL)
		pfree(members);
	return result;
}

/*
 * Who holds a lock on a row that looks live?  A row whose deleter's
 * subtransaction has aborted may still be locked by an outer one.
 */
QueueRowLock
queue_look_row_lock(TupleTableSlot *slot)
{
	HeapTupleHeader tuple = ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_data;
	TransactionId xmax = HeapTupleHeaderGetRawXmax(tuple);

	if ((tuple->t_infomask & HEAP_XMAX_INVALID) ||
		!TransactionIdIsValid(xmax) ||
		HEAP_LOCKED_UPGRADED(tuple->t_infomask))
		return QUEUE_ROW_UNLOCKED;
	if (tuple->t_infomask & HEAP_XMAX_IS_MULTI)
		return find_multi_lock(tuple, xmax);
	if (!HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask))
		return QUEUE_ROW_UNLOCKED;
	if (TransactionIdIsCurrentTransactionId(xmax))
		return QUEUE_ROW_LOCKED_BY_US;
	return TransactionIdIsInProgress(xmax) ? QUEUE_ROW_LOCKED_BY_OTHER :
		QUEUE_ROW_UNLOCKED;
}

/* A place in the order of delivery that ready and due messages share. */
static void
set_order(QueueCandidate *candidate, QueueSort sort, bool due)
{
	if (!due)
	{
		candidate->order = candidate->key;
		return;
	}

	/*
	 * A delayed message keeps its place by message id; where the order is
	 * that of transactions it takes the place of its due time.
	 */
	candidate->order = candidate->key;
	if (!QUEUE_SORT_HAS_ORDER_AT(sort))
		candidate->order.major = 0;
}

/* Failed attempts and the time before which it is held back (A2, A4). */
static bool
is_held_back(QueueLook *look, QueueCandidate *candidate)
{
	QueueAttemptKey key;
	int32		attempts;
	TimestampTz not_before = 0;

	candidate->attempts =
		DatumGetInt32(candidate->message.values[QUEUE_COL_RETRY_COUNT]);
	candidate->not_before = 0;
	if (queue_attempts_is_empty())
		return false;
	memset(&key, 0, sizeof(key));
	key.database = MyDatabaseId;
	key.queue_table = look->queue->queue_table;
	key.queue_id = look->queue->id;
	key.consumer_id = QUEUE_CONSUMER_NONE;
	key.msgid = candidate->key.msgid;
	if (!queue_attempts_find(&key, &attempts, &not_before))
		return false;
	candidate->attempts = Max(candidate->attempts, attempts);
	candidate->not_before = not_before;

	/* one attempt too many: nothing is gained by waiting */
	if (look->queue->max_retries >= 0 &&
		candidate->attempts > look->queue->max_retries)
		return false;
	return not_before > look->now;
}

/* A live row: deliver it, expire it, or let it be? */
static QueueVerdict
judge_live(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	const QueueDesc *queue = look->queue;
	QueueMessage *message = &candidate->message;

	if (look->changes &&
		queue_look_row_lock(track->slot) == QUEUE_ROW_LOCKED_BY_OTHER)
		return QUEUE_VERDICT_STOP;
	if (!queue->is_exception && look->local != NULL)
	{
		bool		held = is_held_back(look, candidate);
		bool		expired;

		expired = !message->nulls[QUEUE_COL_EXPIRES_AT] &&
			DatumGetTimestampTz(message->values[QUEUE_COL_EXPIRES_AT]) <= look->now;
		if (expired)
			return look->changes ? QUEUE_VERDICT_EXPIRE : QUEUE_VERDICT_STOP;
		if (queue->max_retries >= 0 &&
			candidate->attempts > queue->max_retries)
			return look->changes ? QUEUE_VERDICT_EXHAUST : QUEUE_VERDICT_STOP;
		if (held && look->changes)
			return QUEUE_VERDICT_STOP;
	}
	else
		candidate->attempts =
			DatumGetInt32(message->values[QUEUE_COL_RETRY_COUNT]);
	if (look->wanted != NULL && !look->wanted(look->context, candidate))
		return QUEUE_VERDICT_STOP;
	return QUEUE_VERDICT_DELIVER;
}

/*
 * Is the transaction that deleted a row, which looks live again, still in the
 * registry?  The hint bits may say already that xmax is void.
 */
static bool
deleter_is_registered(QueueLook *look, HeapTupleHeader tuple)
{
	TransactionId xid = HeapTupleHeaderGetRawXmax(tuple);

	if (HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask))
		return false;
	if (tuple->t_infomask & HEAP_XMAX_IS_MULTI)
	{
		if (tuple->t_infomask & HEAP_XMAX_INVALID)
			return false;
		xid = HeapTupleGetUpdateXid(tuple);
	}
	return !TransactionIdIsCurrentTransactionId(xid) &&
		queue_registered_has(look->registered, look->num_registered, xid);
}

/*
 * Is what we saw of a candidate true beside the registry as copied after that
 * look?  Its inserter may have entered since the last copy (D2).  A deleter may
 * have come and aborted: either it is still in the registry, or it has
 * recorded its failed attempt, which then differs from what we read.
 */
bool
queue_look_still_settled(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	HeapTupleHeader tuple = ((BufferHeapTupleTableSlot *) track->slot)->base.tuple->t_data;
	int32		attempts = candidate->attempts;

	if (!candidate->own &&
		queue_registered_find(look->registered, look->num_registered,
							  candidate->xmin) != QUEUE_REGISTERED_NO)
		return false;
	if (deleter_is_registered(look, tuple))
		return false;
	if (look->queue->is_exception)
		return true;
	(void) is_held_back(look, candidate);
	return candidate->attempts == attempts;
}

/*
 * Between our last look and the delete others may have taken the row and
 * given it back.
 */
void
queue_look_reread_attempts(QueueLook *look, QueueCandidate *candidate)
{
	if (look->queue->is_exception)
		return;
	(void) is_held_back(look, candidate);
	if (look->queue->max_retries >= 0 &&
		candidate->attempts > look->queue->max_retries)
		candidate->verdict = QUEUE_VERDICT_EXHAUST;
}

bool
queue_look_is_settled(QueueLook *look, QueueTrackLook *track)
{
	queue_look_refresh(look);
	return queue_look_still_settled(look, track);
}

/*
 * A waiting row ends the scan if it is not due.  Only its receipt takes a
 * message before its lease ends; and this transaction does not get again what
 * it has handed out itself, however short the lease.
 */
static QueueVerdict
judge_due(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	bool		leased;

	if (track->store.track != QUEUE_TRACK_DUE || look->by_receipt)
		return judge_live(look, track);
	leased = look->changes && !candidate->message.nulls[QUEUE_COL_RECEIPT];
	if (candidate->key.major > look->now && (leased || !look->ignore_due))
		return QUEUE_VERDICT_BREAK;
	if (leased && candidate->own)
		return QUEUE_VERDICT_STOP;
	return judge_live(look, track);
}

/*
 * What is the row in the track's slot, as the dirty snapshot has just seen
 * it?  Fills the track's candidate.
 */
QueueVerdict
queue_look_judge(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	const QueueTable *table = look->queue->table;
	HeapTupleHeader tuple;
	bool		due = track->store.track == QUEUE_TRACK_DUE;
	QueueRegisteredAnswer answer;

	tuple = ((BufferHeapTupleTableSlot *) track->slot)->base.tuple->t_data;
	candidate->owner = TransactionIdIsValid(look->dirty.xmax) ?
		look->dirty.xmax : look->dirty.xmin;
	candidate->owner_is_multi = TransactionIdIsValid(look->dirty.xmax) &&
		(tuple->t_infomask & HEAP_XMAX_IS_MULTI) != 0;
	candidate->xmin = HeapTupleHeaderGetXmin(tuple);
	candidate->own = TransactionIdIsCurrentTransactionId(candidate->xmin);

	queue_message_from_slot(&candidate->message, table, track->slot);
	if (due)
		queue_message_due_key(&candidate->key, &candidate->message);
	else
		queue_message_key(&candidate->key, table->sort, &candidate->message);
	candidate->lane = QUEUE_SORT_HAS_LANES(table->sort) ?
		DatumGetInt32(candidate->message.values[QUEUE_COL_PRIORITY]) : 0;
	set_order(candidate, table->sort, due);

	/* being deleted: a reader still sees it */
	if (TransactionIdIsValid(look->dirty.xmax) && !look->changes &&
		!TransactionIdIsValid(look->dirty.xmin))
		candidate->owner = InvalidTransactionId;
	if (TransactionIdIsValid(candidate->owner))
	{
		answer = queue_registered_find(look->registered,
									   look->num_registered,
									   candidate->owner);
		if (answer == QUEUE_REGISTERED_MAYBE)
			return QUEUE_VERDICT_STOP;
		return answer == QUEUE_REGISTERED_YES ? QUEUE_VERDICT_PASS :
			QUEUE_VERDICT_STICK;
	}
	if (!candidate->own)
	{
		/* ended, but not yet published: as if in progress (D2) */
		answer = queue_registered_find(look->registered,
									   look->num_registered,
									   candidate->xmin);
		if (answer != QUEUE_REGISTERED_NO)
			return answer == QUEUE_REGISTERED_YES ? QUEUE_VERDICT_PASS :
				QUEUE_VERDICT_STOP;
	}

	/*
	 * Its deleter has aborted, but not yet published: the failed attempt is
	 * not recorded yet.
	 */
	if (look->changes && look->num_registered > 0 &&
		deleter_is_registered(look, tuple))
		return QUEUE_VERDICT_PASS;
	return judge_due(look, track);
}
