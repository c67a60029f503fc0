/*-------------------------------------------------------------------------
 *
 * ahead.c
 *	  Messages read ahead, for the next call of the same transaction.
 *
 * An index scan reads a page of entries to deliver one message.  When one
 * transaction dequeues message after message, the addresses of the rows that
 * follow are kept from one call to the next, so that a look is needed only
 * once in a while.  In effect the look goes on: each message is judged when
 * its turn comes, by its row, beside the registry as it is then.  It is
 * delivered only if all holds that makes acceptance plain (rule D4):
 *
 * - the head's version is what it was: no key was returned or became sticky,
 *	 no floor was lowered, no lane was made, nobody has entered the registry;
 * - its key is below every barrier of its lane, and before whatever another
 *	 segment held: what has come in without changing the version comes after
 *	 it;
 * - nothing stopped the floor, no waiting message has become due, and the
 *	 transaction has put nothing into the queue since.
 *
 * Else what was read ahead is dropped, and the call looks as usual.
 *
 * Addresses are kept without a snapshot, which rule D0 asks for so that VACUUM
 * does not free a line pointer that is used again.  Here that does no harm: a
 * row that looks live, whose inserter is not in the registry, was inserted by
 * somebody who was in it before the addresses were read, for to enter it
 * changes the version.  So it was there already, and is the row whose address
 * it was.  The leaf's lock is kept to the end of the transaction, or of the
 * subtransaction that forgets the addresses when it aborts, so the file is
 * not truncated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "ahead.h"
#include "clock.h"
#include "debug_point.h"
#include "guc.h"

/* doubled when all of it was used, the least when it could not be */
#define MIN_AHEAD		4
#define MAX_AHEAD		64

/* with more transactions in the registry a look copies it as well */
#define MAX_REGISTERED	8

typedef struct QueueAhead
{
	int			size;			/* how many to read next time */
	int			count;
	int			next;
	const QueueTable *table;	/* as it was; another one: it has changed */
	uint64		version;		/* of the head */
	int			num_own;		/* of the transaction's state for it */
	int			track;
	int32		lane;
	QueueKey	last;			/* of the message taken last */
	QueueKey	limit;			/* all keys are below it */
	TimestampTz due_until;		/* no waiting message is due before */
	ItemPointerData tids[MAX_AHEAD];
	QueueRegistered registered[MAX_REGISTERED];
} QueueAhead;

int
queue_ahead_expected(const QueueLocalHead *local)
{
	return local->ahead == NULL ? 0 : local->ahead->size;
}

void
queue_ahead_drop(QueueLocalHead *local)
{
	local->has_ahead = false;
	local->ahead->size = MIN_AHEAD;
}

/* ---------- read ahead ---------- */

/*
 * All ready messages below *limit come from the track itself.  False: one
 * that stopped the floor may come first.
 */
static bool
find_limit(const QueueLaneLook *lane, const QueueTrackLook *track,
		   QueueKey *limit)
{
	*limit = track->barrier;
	for (int t = 0; t < QUEUE_SEGMENTS; t++)
	{
		const QueueTrackLook *other = lane->tracks[t];

		if (other == NULL)
			continue;
		if (other->has_stop)
			return false;
		*limit = *queue_key_lower(limit, &other->barrier);
		if (other == track)
			continue;
		if (other->has_candidate)
			*limit = *queue_key_lower(limit, &other->candidate.key);
		else if (!other->open && !other->exhausted)
			*limit = *queue_key_lower(limit, &other->start);
	}
	return true;
}

/* The time before which no waiting message of the lane is due. */
static TimestampTz
find_due_time(const QueueLook *look, const QueueTrackLook *due)
{
	TimestampTz result;

	/* the first insert into an empty leaf changes the head's version */
	if (due == NULL || due->known_empty)
		return DT_NOEND;
	if (!queue_key_is_min(&due->start) && due->start.major > look->now)
		return due->start.major;
	if (!due->exhausted || due->has_candidate)
		return DT_NOBEGIN;
	result = due->barrier.major;
	if (due->has_stop)
		result = Min(result, due->stop.major);
	return result;
}

void
queue_ahead_note(QueueLook *look, QueueTrackLook *track)
{
	QueueLocalHead *local = look->local;
	const QueueLaneLook *lane = &look->lanes[0];
	QueueAhead *ahead = local->ahead;
	QueueKey	limit;
	TimestampTz due_until;
	ItemPointer tid;

	local->has_ahead = false;

	/* whoever takes a single message need not pay for this */
	if (local->num_touches < 2)
		return;

	/* a message of another lane must not come first */
	if (!look->has_head || look->conditional || look->has_keys ||
		lane->tracks[track->store.track] != track || track->has_candidate ||
		track->exhausted || !find_limit(lane, track, &limit))
		return;
	due_until = find_due_time(look, lane->tracks[QUEUE_TRACK_DUE]);
	if (track->store.track == QUEUE_TRACK_DUE || due_until <= look->now)
		return;

	if (ahead == NULL)
	{
		ahead = local->ahead = MemoryContextAlloc(TopTransactionContext,
												  sizeof(QueueAhead));
		ahead->size = MIN_AHEAD;
	}
	ahead->count = 0;
	while (ahead->count < ahead->size &&
		   (tid = index_getnext_tid(track->scan, ForwardScanDirection)) != NULL)
		ahead->tids[ahead->count++] = *tid;
	ahead->next = 0;
	ahead->table = look->queue->table;
	ahead->version = look->version;
	ahead->num_own = local->num_own;
	ahead->track = track->store.track;
	ahead->lane = lane->priority;
	ahead->last = track->candidate.key;
	ahead->limit = limit;
	ahead->due_until = due_until;
	local->has_ahead = ahead->count > 0;
}

/* ---------- use ---------- */

/* May what was read ahead be used, as far as can be said without a lock? */
static bool
is_usable(QueueLook *look, const QueueAhead *ahead)
{
	return !look->conditional && queue_guc_use_heads &&
		look->local->registered &&
		look->local->registered_subid == GetCurrentSubTransactionId() &&
		look->local->num_own == ahead->num_own &&
		look->queue->table == ahead->table && look->now < ahead->due_until;
}

/*
 * Copy the registry, and let the floor follow what was taken before (rule
 * D7).  False: something has changed.
 */
static bool
begin_use(QueueLook *look, QueueAhead *ahead)
{
	QueueHead  *head = queue_head_lock(&look->local->ref);
	QueueLane  *lane;
	bool		same;

	if (head == NULL)
		return false;
	lane = queue_head_lane(head, ahead->lane, false);
	same = lane != NULL && head->num_registered <= MAX_REGISTERED &&
		pg_atomic_read_u64(&head->version) == ahead->version;
	if (same)
	{
		QueueTrack *track = &lane->tracks[ahead->track];
		QueueKey	reach;

		look->num_registered = head->num_registered;
		memcpy(ahead->registered, head->registered,
			   head->num_registered * sizeof(QueueRegistered));
		queue_key_set_succ(&reach, &ahead->last);
		track->floor = *queue_key_higher(&track->floor, &reach);
	}
	queue_head_unlock(head);
	return same;
}

/* Open the leaf, whose lock this transaction holds. */
static bool
open_leaf(QueueLook *look, const QueueAhead *ahead, QueueTrackLook *track)
{
	const QueueLeaf *leaf = look->queue->is_exception ?
	&look->queue->table->expired : &look->queue->table->ready[ahead->track];

	memset(track, 0, offsetof(QueueTrackLook, candidate));
	track->store.leaf = leaf;
	track->store.track = ahead->track;
	track->store.mode = RowExclusiveLock;
	track->store.rel = table_open(leaf->relid, RowExclusiveLock);
	if (queue_catalog_find_table(leaf->queue_table, true) != ahead->table)
	{
		table_close(track->store.rel, RowExclusiveLock);
		return false;
	}
	track->slot = table_slot_create(track->store.rel, NULL);
	track->open = true;
	return true;
}

/* Read the row and judge it: is it a message that may be delivered now? */
static bool
load_row(QueueLook *look, QueueAhead *ahead, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;

	if (!table_tuple_fetch_row_version(track->store.rel,
									   &ahead->tids[ahead->next++],
									   &look->dirty, track->slot))
		return false;
	candidate->verdict = queue_look_judge(look, track);
	DEBUG_POINT("after_scan");
	return candidate->verdict == QUEUE_VERDICT_DELIVER &&
		DatumGetInt32(candidate->message.values[QUEUE_COL_QUEUE_ID]) ==
		look->queue->id &&
		candidate->lane == ahead->lane &&
		queue_key_cmp(&ahead->last, &candidate->key) < 0 &&
		queue_key_cmp(&candidate->key, &ahead->limit) < 0 &&
		pg_atomic_read_u64(&queue_head_peek(&look->local->ref)->version) ==
		ahead->version;
}

bool
queue_ahead_next(QueueLook *look, QueueTrackLook *track)
{
	QueueAhead *ahead;
	bool		found;

	if (look->local == NULL || !look->local->has_ahead)
		return false;
	ahead = look->local->ahead;
	look->now = queue_clock_now();
	DEBUG_POINT("before_floor");
	if (!is_usable(look, ahead) || !begin_use(look, ahead) ||
		!open_leaf(look, ahead, track))
	{
		queue_ahead_drop(look->local);
		return false;
	}
	look->registered = ahead->registered;
	found = load_row(look, ahead, track);
	look->registered = NULL;
	if (!found)
	{
		queue_look_close_track(track);
		queue_ahead_drop(look->local);
		return false;
	}
	ahead->last = track->candidate.key;
	if (ahead->next == ahead->count)
	{
		look->local->has_ahead = false;
		ahead->size = Min(ahead->size * 2, MAX_AHEAD);
	}
	return true;
}
