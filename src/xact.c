/*-------------------------------------------------------------------------
 *
 * xact.c
 *	  What this transaction has done to heads, and its publication.
 *
 * Each key that a transaction inserts, takes, locks or has in hand stands in
 * a list in its own memory.  At the end of the transaction, when its end is
 * visible to others, the keys that need a second look go into the head and
 * the transaction leaves the head's registry, all in one critical section
 * (rules P1 to P4).
 *
 * The callbacks must not fail: they run after the commit is done.  They use
 * only memory that is there already.
 *
 * A list is sorted by subtransaction, because subtransactions nest: the newest
 * one's entries are at its end.  So the end of a subtransaction looks at its
 * own entries only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "clock.h"
#include "debug_point.h"
#include "wakeup.h"
#include "worker.h"
#include "xact.h"

/* above this, the entries of a subtransaction are collapsed to their lowest */
#define MAX_LISTED_TOUCHES	1000

/* a take is noted by us, and by our trigger where the executor deletes */
#define MAX_NOTES_OF_ONE_TAKE	2

/* kinds, lanes and tracks that are collapsed; others stay listed */
#define MAX_COLLAPSED		128

static QueueLocalHead *local_heads = NULL;

static void xact_callback(XactEvent event, void *arg);
static void subxact_callback(SubXactEvent event, SubTransactionId my_subid,
							 SubTransactionId parent_subid, void *arg);

void
queue_xact_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}

QueueLocalHead *
queue_xact_head(const QueueHeadId *id)
{
	QueueLocalHead *local;

	for (local = local_heads; local != NULL; local = local->next)
	{
		if (memcmp(&local->ref.id, id, sizeof(QueueHeadId)) == 0)
			return local;
	}

	local = MemoryContextAllocZero(TopTransactionContext,
								   sizeof(QueueLocalHead));
	local->ref.id = *id;
	local->ref.slot = -1;
	local->next_expiry = local->next_purge = DT_NOEND;
	local->next = local_heads;
	local_heads = local;
	return local;
}

void
queue_xact_register_locked(QueueLocalHead *local, QueueHead *head)
{
	TransactionId xid = GetTopTransactionIdIfAny();
	TransactionId current = GetCurrentTransactionIdIfAny();

	Assert(TransactionIdIsValid(xid) && TransactionIdIsValid(current));
	queue_head_register(head, xid,
						current == xid ? InvalidTransactionId : current);
	local->registered = true;
	local->registered_subid = GetCurrentSubTransactionId();
}

void
queue_xact_register(QueueLocalHead *local)
{
	QueueHead  *head;

	if (local->registered &&
		local->registered_subid == GetCurrentSubTransactionId())
		return;

	(void) GetCurrentTransactionId();
	head = queue_head_lock(&local->ref);
	if (head == NULL && queue_head_find(&local->ref, true))
		head = queue_head_lock(&local->ref);
	if (head == NULL)
		return;					/* no room: published by id, if one is made */
	queue_xact_register_locked(local, head);
	queue_head_unlock(head);
}

/* The collapsed entry that takes in a touch; NULL if there is none yet. */
static QueueTouch *
find_collapsed(QueueTouch **collapsed, int count, const QueueTouch *touch)
{
	for (int i = 0; i < count; i++)
	{
		if (collapsed[i]->kind == touch->kind &&
			collapsed[i]->lane == touch->lane &&
			collapsed[i]->track == touch->track)
			return collapsed[i];
	}
	return NULL;
}

/* Fold the entries of the current subtransaction into their lowest. */
static void
collapse_touches(QueueLocalHead *local)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	QueueTouch *collapsed[MAX_COLLAPSED];
	int			num_collapsed = 0;
	int			first = local->num_touches;
	int			kept;

	while (first > 0 && local->touches[first - 1].subid == subid)
		first--;
	if (local->num_touches - first < MAX_LISTED_TOUCHES)
		return;

	kept = first;
	for (int i = first; i < local->num_touches; i++)
	{
		QueueTouch *touch = &local->touches[i];
		QueueTouch *target = NULL;

		if (touch->kind != QUEUE_TOUCH_HAND && !touch->reserved)
			target = find_collapsed(collapsed, num_collapsed, touch);
		if (target == NULL)
		{
			local->touches[kept] = *touch;
			if (touch->kind != QUEUE_TOUCH_HAND && !touch->reserved &&
				num_collapsed < MAX_COLLAPSED)
			{
				local->touches[kept].collapsed = true;
				local->touches[kept].taken_by = InvalidSubTransactionId;
				collapsed[num_collapsed++] = &local->touches[kept];
			}
			kept++;
			continue;
		}
		if (queue_key_cmp(&touch->key, &target->key) < 0)
			target->key = touch->key;
	}
	local->num_touches = kept;
}

void
queue_xact_reserve(QueueLocalHead *local, int n)
{
	int			needed = local->num_touches + n;
	int			size = Max(local->max_touches, 8);

	if (needed <= local->max_touches)
		return;
	if (local->num_touches >= MAX_LISTED_TOUCHES)
	{
		collapse_touches(local);
		needed = local->num_touches + n;
		if (needed <= local->max_touches)
			return;
	}
	while (size < needed)
		size *= 2;
	if (local->touches == NULL)
		local->touches = MemoryContextAllocHuge(TopTransactionContext,
												size * sizeof(QueueTouch));
	else
		local->touches = repalloc_huge(local->touches,
									   size * sizeof(QueueTouch));
	local->max_touches = size;
}

QueueTouch *
queue_xact_touch(QueueLocalHead *local, QueueTouchKind kind, int32 lane,
				 int track, const QueueKey *key)
{
	QueueTouch *touch;

	queue_xact_reserve(local, 1);
	touch = &local->touches[local->num_touches++];
	touch->kind = kind;
	touch->subid = GetCurrentSubTransactionId();
	touch->taken_by = InvalidSubTransactionId;
	touch->collapsed = false;
	touch->reserved = false;
	touch->made = false;
	touch->own = false;
	touch->lane = lane;
	touch->track = track;
	touch->attempts = 0;
	touch->retry_delay = 0;
	touch->key = *key;
	if (kind == QUEUE_TOUCH_INSERTED || kind == QUEUE_TOUCH_LOCKED)
		local->num_own++;
	return touch;
}

void
queue_xact_confirm(QueueLocalHead *local, int32 lane, int track,
				   const QueueKey *key)
{
	int			last = Max(local->num_touches - MAX_NOTES_OF_ONE_TAKE, 0);

	for (int i = local->num_touches - 1; i >= last; i--)
	{
		QueueTouch *touch = &local->touches[i];

		if (touch->lane == lane && touch->track == track &&
			queue_key_cmp(&touch->key, key) == 0)
			touch->made = true;
	}
}

void
queue_xact_untouch(QueueLocalHead *local)
{
	QueueTouch *touch;

	Assert(local->num_touches > 0);
	touch = &local->touches[--local->num_touches];
	if (touch->reserved)
		queue_attempts_unreserve();
}

void
queue_xact_mark_own_taken(QueueLocalHead *local, int32 lane, int track,
						  const QueueKey *key)
{
	for (int i = local->num_touches - 1; i >= 0; i--)
	{
		QueueTouch *touch = &local->touches[i];

		if (touch->kind == QUEUE_TOUCH_INSERTED && !touch->collapsed &&
			touch->lane == lane && touch->track == track &&
			queue_key_cmp(&touch->key, key) == 0)
		{
			touch->taken_by = GetCurrentSubTransactionId();
			return;
		}
	}
}

void
queue_xact_use_track(QueueLocalHead *local, int track)
{
	QueueHead  *head;

	if (local->used_tracks & (1 << track))
		return;
	head = queue_head_lock(&local->ref);
	if (head == NULL)
		return;					/* published by id at the end */
	queue_head_use_track(head, track);
	queue_head_unlock(head);
	local->used_tracks |= 1 << track;
}

static void
make_attempt_key(QueueAttemptKey *result, const QueueHeadId *id,
				 const QueueKey *key)
{
	memset(result, 0, sizeof(*result));
	result->database = id->database;
	result->queue_table = id->queue_table;
	result->queue_id = id->queue_id;
	result->consumer_id = id->consumer_id;
	result->msgid = key->msgid;
}

/* Does the entry, perhaps a collapsed one, stand for the key's insert? */
static inline bool
is_insert_of(const QueueTouch *touch, const QueueTouch *taken)
{
	int			cmp;

	if (touch->kind != QUEUE_TOUCH_INSERTED ||
		touch->lane != taken->lane || touch->track != taken->track)
		return false;
	cmp = queue_key_cmp(&touch->key, &taken->key);
	return cmp == 0 || (touch->collapsed && cmp < 0);
}

/*
 * Is the key's insert among the first entries, which an abort leaves
 * standing?  One that is listed with the others is theirs.
 */
static bool
insert_survives(QueueLocalHead *local, int first, const QueueTouch *taken)
{
	for (int i = first; i < local->num_touches; i++)
	{
		if (is_insert_of(&local->touches[i], taken))
			return false;
	}
	for (int i = 0; i < first; i++)
	{
		if (is_insert_of(&local->touches[i], taken))
			return true;
	}
	return false;
}

/*
 * Count failed attempts (rule A1), or settle them, for the entries from
 * first on.  Done before publication: whoever finds the key again reads it.
 */
static void
settle_attempts(QueueLocalHead *local, int first, bool failed)
{
	TimestampTz now = 0;
	bool		recorded = false;

	for (int i = first; i < local->num_touches; i++)
	{
		QueueTouch *touch = &local->touches[i];
		QueueAttemptKey key;
		QueueAttemptPlace place;
		TimestampTz not_before = 0;

		if (touch->kind != QUEUE_TOUCH_TAKEN)
			continue;
		if (!failed)
		{
			if (!queue_attempts_is_empty())
			{
				make_attempt_key(&key, &local->ref.id, &touch->key);
				queue_attempts_forget(&key);
			}
			if (touch->reserved)
				queue_attempts_unreserve();
			touch->reserved = false;
			continue;
		}
		if (!touch->reserved)
			continue;
		touch->reserved = false;
		if (proc_exit_inprogress || !touch->made ||
			(touch->own && !insert_survives(local, first, touch)))
		{
			queue_attempts_unreserve();
			continue;
		}
		if (touch->retry_delay < 0)
			not_before = DT_NOEND;
		else if (touch->retry_delay > 0)
		{
			if (now == 0)
				now = queue_clock_now();
			not_before = now + touch->retry_delay;
		}
		make_attempt_key(&key, &local->ref.id, &touch->key);
		place.track = touch->track;
		place.lane = touch->lane;
		place.key = touch->key;
		queue_attempts_record(&key, &place, touch->attempts, not_before);
		recorded = true;
	}
	if (recorded && queue_ring_tell_attempts(local->ring))
		queue_monitor_wake(MyDatabaseId);
}

/*
 * Tell the monitor when to look at the earliest: at what is waiting again, and
 * with committed at what expires or goes out of the journal.  Spurious times
 * do no harm.
 */
static void
tell_times(QueueLocalHead *local, TimestampTz due, bool committed)
{
	bool		news = false;

	if (due != DT_NOEND)
		news = queue_ring_tell_time(local->ring, QUEUE_TIME_DUE, due);
	if (committed && local->next_expiry != DT_NOEND)
		news |= queue_ring_tell_time(local->ring, QUEUE_TIME_EXPIRY,
									 local->next_expiry);
	if (committed && local->next_purge != DT_NOEND)
		news |= queue_ring_tell_time(local->ring, QUEUE_TIME_PURGE,
									 local->next_purge);
	if (news)
		queue_monitor_wake(MyDatabaseId);
}

/* The due time of an entry, or the earlier one. */
static inline TimestampTz
earlier_due(TimestampTz due, const QueueTouch *touch)
{
	return touch->track == QUEUE_TRACK_DUE ? Min(due, touch->key.major) : due;
}

/* Publish one entry; the caller holds the head's lock. */
static void
publish_touch(QueueHead *head, const QueueTouch *touch)
{
	QueueLane  *lane;

	if (!touch->collapsed)
	{
		queue_head_return(head, touch->lane, touch->track, &touch->key);
		return;
	}
	lane = queue_head_lane(head, touch->lane, true);
	if (lane != NULL &&
		queue_key_cmp(&touch->key, &lane->tracks[touch->track].barrier) < 0)
		queue_head_lower(head, touch->lane, touch->track, &touch->key);
}

/* Lock the local head's head, looking it up again if the slot was reused. */
static QueueHead *
lock_for_publication(QueueLocalHead *local)
{
	QueueHead  *head = queue_head_lock(&local->ref);

	if (head == NULL && queue_head_find(&local->ref, false))
		head = queue_head_lock(&local->ref);
	return head;
}

/* How many waiters to wake for an entry, beside those for others. */
static int32
count_wakes(int32 others, const QueueTouch *touch)
{
	if (touch->collapsed || others == QUEUE_WAKE_ALL)
		return QUEUE_WAKE_ALL;

	/* not due yet: somebody must know when it will be */
	if (touch->track == QUEUE_TRACK_DUE &&
		touch->kind == QUEUE_TOUCH_INSERTED)
		return Max(others, 1);
	return others + 1;
}

/*
 * Rules P2, P3, P4: all keys, and leaving, in one critical section.  Then
 * waiters are woken (W2), whether there is a head or not.
 */
static void
publish_head(QueueLocalHead *local, bool committed)
{
	QueueHead  *head;
	int32		wakes = 0;
	TimestampTz due = DT_NOEND;

	settle_attempts(local, 0, !committed);
	head = lock_for_publication(local);
	for (int i = 0; i < local->num_touches; i++)
	{
		QueueTouch *touch = &local->touches[i];

		if (touch->kind == QUEUE_TOUCH_INSERTED ?
			!committed || touch->taken_by != InvalidSubTransactionId :
			touch->kind == QUEUE_TOUCH_TAKEN && committed)
			continue;
		wakes = count_wakes(wakes, touch);
		due = earlier_due(due, touch);
		if (head != NULL)
			publish_touch(head, touch);
	}
	if (head != NULL)
	{
		queue_head_leave(head);
		queue_head_unlock(head);
	}
	if (wakes > 0)
		queue_wakeup_wake(&local->ref.id, wakes);
	tell_times(local, due, committed);
}

/* Rule X5: every key becomes sticky, whatever side of the barrier it is on. */
static void
publish_prepared(QueueLocalHead *local, TransactionId xid)
{
	QueueHead  *head;
	TimestampTz due = DT_NOEND;

	for (int i = 0; i < local->num_touches; i++)
	{
		if (local->touches[i].reserved)
			queue_attempts_unreserve();
		local->touches[i].reserved = false;
		due = earlier_due(due, &local->touches[i]);
	}
	tell_times(local, due, true);
	head = lock_for_publication(local);
	if (head == NULL)
		return;
	for (int i = 0; i < local->num_touches; i++)
	{
		QueueTouch *touch = &local->touches[i];

		/* sticky even if it speaks of several: its end wakes waiters */
		if (!queue_head_stick(head, touch->lane, touch->track, &touch->key,
							  xid) ||
			touch->collapsed)
			queue_head_lower(head, touch->lane, touch->track, &touch->key);
	}
	queue_head_leave(head);
	queue_head_unlock(head);
}

static TransactionId prepared_xid = InvalidTransactionId;

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			prepared_xid = GetTopTransactionIdIfAny();
			return;

		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
			if (local_heads != NULL)
				DEBUG_POINT("before_publish");
			for (QueueLocalHead *local = local_heads; local; local = local->next)
				publish_head(local, event == XACT_EVENT_COMMIT);
			if (local_heads != NULL)
				DEBUG_POINT("after_publish");
			break;

		case XACT_EVENT_PREPARE:
			for (QueueLocalHead *local = local_heads; local; local = local->next)
				publish_prepared(local, prepared_xid);
			break;

		default:
			return;
	}
	local_heads = NULL;			/* its memory goes with the transaction */
}

/* The entries of an aborted subtransaction are published and dropped. */
static void
abort_subxact(QueueLocalHead *local, SubTransactionId subid)
{
	QueueHead  *head = NULL;
	int			first = local->num_touches;
	int32		wakes = 0;
	TimestampTz due = DT_NOEND;

	/* locks on the leaves go */
	local->has_ahead = false;
	while (first > 0 && local->touches[first - 1].subid >= subid)
		first--;
	for (int i = 0; i < first; i++)
	{
		if (local->touches[i].taken_by >= subid)
			local->touches[i].taken_by = InvalidSubTransactionId;
	}
	if (first == local->num_touches && !local->registered)
		return;

	settle_attempts(local, first, true);
	head = lock_for_publication(local);
	for (int i = first; i < local->num_touches; i++)
	{
		if (local->touches[i].kind == QUEUE_TOUCH_INSERTED)
			continue;
		wakes = count_wakes(wakes, &local->touches[i]);
		due = earlier_due(due, &local->touches[i]);
		if (head != NULL)
			publish_touch(head, &local->touches[i]);
	}
	if (head != NULL)
	{
		queue_head_leave_subxact(head, GetCurrentTransactionIdIfAny());
		queue_head_unlock(head);
	}
	if (wakes > 0)
		queue_wakeup_wake(&local->ref.id, wakes);
	tell_times(local, due, false);
	local->num_touches = first;
}

static void
commit_subxact(QueueLocalHead *local, SubTransactionId subid,
			   SubTransactionId parent)
{
	for (int i = local->num_touches - 1; i >= 0; i--)
	{
		if (local->touches[i].subid < subid)
			break;
		local->touches[i].subid = parent;
	}
	for (int i = 0; i < local->num_touches; i++)
	{
		if (local->touches[i].taken_by == subid)
			local->touches[i].taken_by = parent;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	bool		aborted = event == SUBXACT_EVENT_ABORT_SUB;

	if (!aborted && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	if (aborted && local_heads != NULL)
		DEBUG_POINT("before_publish");
	for (QueueLocalHead *local = local_heads; local; local = local->next)
	{
		if (aborted)
			abort_subxact(local, my_subid);
		else
			commit_subxact(local, my_subid, parent_subid);
	}
}
