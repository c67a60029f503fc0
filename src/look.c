/*-------------------------------------------------------------------------
 *
 * look.c
 *	  A look at a queue in its order: floors, candidates, acceptance.
 *
 * A look copies floors, barriers and the registry from the head (rule D1),
 * scans each lane's tracks from the floor with a dirty snapshot, and offers
 * candidates in the order of delivery.  Before one is taken it is accepted
 * under the head's lock (D4): nothing may have been lowered meanwhile, its
 * inserter must have published, no returned or sticky key may come before
 * it, and it must lie below the barrier, or the barrier is raised and the
 * stretch above the old one is looked at once more.  When the look ends the
 * floors move (D7).  src/README.md says why each step is needed.
 *
 * Without a head (no room, recovery, queue.use_heads = off, too many
 * priorities) scans begin at the start and move nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "clock.h"
#include "debug_point.h"
#include "guc.h"
#include "look.h"
#include "shmem.h"

/*
 * A barrier is raised ahead to this long before now where the queue is deep
 * (rule D8), nearer when a look has reached it, and that of waiting messages to this long after now, so that
 * they need not be looked for at each call.
 */
#define READY_BARRIER_LAG	(1 * USECS_PER_SEC)
#define REACHED_BARRIER_LAG	(10 * INT64CONST(1000))
#define DUE_BARRIER_LEAD	(20 * INT64CONST(1000))

/*
 * A scan first looks this many messages ahead, or as many as are wanted, then
 * this many times as many, and then to the end.
 */
#define MIN_BOUND_MESSAGES	4
#define BOUND_GROWTH		16
#define MAX_STRIDE			(1 * USECS_PER_SEC)
#define MAX_STRIDE_GROWTH	4
#define STRIDE_UNIT			16	/* parts of a microsecond */

void
queue_look_init(QueueLook *look)
{
	memset(look, 0, offsetof(QueueLook, skipped));
	look->memory = CurrentMemoryContext;
	InitDirtySnapshot(look->dirty);
}

/* ---------- the begin of a look ---------- */

static const QueueLeaf *
leaf_of_track(const QueueDesc *queue, int number)
{
	if (queue->is_exception)
		return &queue->table->expired;
	return number == QUEUE_TRACK_DUE ? &queue->table->waiting :
		&queue->table->ready[number];
}

static bool
track_is_used(const QueueLook *look, int number)
{
	const QueueDesc *queue = look->queue;

	if (look->only_due && number != QUEUE_TRACK_DUE)
		return false;
	if (queue->is_exception)
		return number == 0;
	if (number == QUEUE_TRACK_DUE)
		return OidIsValid(queue->table->waiting.relid);
	return OidIsValid(queue->table->ready[number].relid);
}

/* Do all leaves tell us of what is inserted (rule T1)? */
static bool
leaves_are_published(const QueueDesc *queue)
{
	const QueueTable *table = queue->table;

	if (queue->is_exception)
		return table->expired.published;
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (!table->ready[i].published)
			return false;
	}
	return table->waiting.published;
}

/* Is there anything to be found in a track's leaf (rule S5)? */
bool
queue_look_leaf_is_used(const QueueDesc *queue, int number)
{
	return queue->is_exception || number == QUEUE_TRACK_DUE ||
		queue_ring_is_used(queue_ring_read(queue_catalog_ring(queue->table)),
						   number);
}

static void
find_lanes_of_leaf(const QueueDesc *queue, const QueueLeaf *leaf, int track,
				   List **lanes)
{
	QueueSort	sort = queue->table->sort;
	QueueStore	store;
	int32		lane = 0;
	bool		first = true;

	if (!queue_store_open(&store, leaf, track, AccessShareLock))
		return;
	while (list_length(*lanes) <= QUEUE_MAX_LANES &&
		   queue_store_next_lane(&store, sort, queue->id,
								 QUEUE_CONSUMER_NONE, first, &lane))
	{
		*lanes = list_append_unique_int(*lanes, lane);
		first = false;
	}
	queue_store_release(&store);
}

/* Rule H4: the priorities in use, found by a skip scan of each leaf. */
static List *
find_lanes(const QueueDesc *queue)
{
	const QueueTable *table = queue->table;
	List	   *lanes = NIL;

	if (!QUEUE_SORT_HAS_LANES(table->sort))
		return list_make1_int(0);
	if (queue->is_exception)
	{
		find_lanes_of_leaf(queue, &table->expired, 0, &lanes);
		return lanes;
	}
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (queue_look_leaf_is_used(queue, i))
			find_lanes_of_leaf(queue, &table->ready[i], i, &lanes);
	}
	find_lanes_of_leaf(queue, &table->waiting, QUEUE_TRACK_DUE, &lanes);
	return lanes;
}

/*
 * Rule H5: a leaf that was changed behind the engine's back, or truncated, has
 * no floor.  Caller holds the head's lock.  False if one had changed.
 */
static bool
match_fingerprints(const QueueDesc *queue, QueueHead *head)
{
	bool		same = true;

	for (int t = 0; t < QUEUE_TRACKS; t++)
	{
		uint64		fingerprint = Max(leaf_of_track(queue, t)->fingerprint, 1);

		if (!OidIsValid(leaf_of_track(queue, t)->relid) ||
			(queue->is_exception && t != 0) ||
			head->fingerprints[t] == fingerprint)
			continue;
		queue_head_reset_track(head, t);
		head->fingerprints[t] = fingerprint;
		same = false;
	}
	return same;
}

/*
 * Lock the head, made if need be, with its lanes known and its floors valid
 * for the leaves as they are.  NULL: scan without it.
 */
static QueueHead *
lock_usable_head(QueueLook *look)
{
	QueueHead  *head;
	List	   *lanes = NIL;
	ListCell   *cell;

	if (look->local == NULL)
		return NULL;
	head = queue_head_lock(&look->local->ref);
	if (head == NULL && queue_head_find(&look->local->ref, true))
		head = queue_head_lock(&look->local->ref);
	if (head == NULL)
		return NULL;
	if (!leaves_are_published(look->queue))
	{
		queue_head_reset(head);
		queue_head_unlock(head);
		return NULL;
	}
	(void) match_fingerprints(look->queue, head);
	if (head->lanes_known)
		return head;

	queue_head_unlock(head);
	lanes = find_lanes(look->queue);
	head = queue_head_lock(&look->local->ref);
	if (head == NULL)
		return NULL;
	foreach(cell, lanes)
		(void) queue_head_lane(head, lfirst_int(cell), true);
	if (match_fingerprints(look->queue, head))
		head->lanes_known = true;
	list_free(lanes);
	return head;
}

/* Memory for so many lanes, kept for later looks of this call. */
static void
reserve_lanes(QueueLook *look, int count)
{
	if (look->lanes == NULL)
		look->lanes = MemoryContextAlloc(look->memory,
										 QUEUE_MAX_LANES *
										 sizeof(QueueLaneLook));
	for (; look->max_lanes < count; look->max_lanes++)
		look->lanes[look->max_lanes].memory =
			MemoryContextAlloc(look->memory,
							   QUEUE_TRACKS * sizeof(QueueTrackLook));
}

static QueueTrackLook *
make_track(QueueLaneLook *lane, int number, const QueueTrack *source)
{
	QueueTrackLook *track = &lane->memory[number];

	memset(track, 0, offsetof(QueueTrackLook, candidate));
	track->lane = lane->priority;
	queue_key_set_min(&track->start);
	if (source != NULL)
	{
		track->with_floor = true;
		track->floor = source->floor;
		track->barrier = source->barrier;
		track->generation = source->generation;
		track->start = source->floor;
	}
	return track;
}

/* Start below the floor where a key lies that is to be found by the scan. */
static void
lower_start(QueueTrackLook *track, int32 lane, int number,
			const QueueHeadKey *keys, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (keys[i].lane == lane && keys[i].track == number &&
			queue_key_cmp(&keys[i].key, &track->start) < 0)
			track->start = keys[i].key;
	}
}

/* The lowest ordering key that a message of this time can have. */
static void
set_key_of_time(QueueKey *key, QueueSort sort, TimestampTz at)
{
	memset(key, 0, sizeof(*key));
	if (QUEUE_SORT_HAS_ORDER_AT(sort))
		key->major = at;
	else
		queue_clock_lowest_msgid(&key->msgid, at);
}

/* Rule D8: raise a barrier ahead, so that one look does. */
static void
raise_barrier_ahead(QueueLook *look, QueueTrack *track, int number)
{
	QueueKey	ahead;

	if (number == QUEUE_TRACK_DUE)
	{
		if (track->barrier.major > look->now)
			return;
		memset(&ahead, 0, sizeof(ahead));
		ahead.major = look->now + DUE_BARRIER_LEAD;
	}
	else
		set_key_of_time(&ahead, look->queue->table->sort,
						look->now - READY_BARRIER_LAG);
	if (queue_key_cmp(&track->barrier, &ahead) < 0)
		track->barrier = ahead;
}

/* Nothing that is due can be above this floor. */
static inline bool
due_track_is_idle(QueueLook *look, const QueueTrackLook *track)
{
	return !queue_key_is_min(&track->start) &&
		track->start.major > look->now;
}

static void
copy_lane(QueueLook *look, QueueHead *head, QueueLane *lane,
		  QueueLaneLook *copy)
{
	copy->priority = lane->priority;
	copy->visited = false;
	for (int t = 0; t < QUEUE_TRACKS; t++)
	{
		bool		idle = queue_key_cmp(&lane->tracks[t].floor,
										 &lane->tracks[t].barrier) == 0;

		copy->tracks[t] = NULL;
		if (!track_is_used(look, t))
			continue;
		raise_barrier_ahead(look, &lane->tracks[t], t);
		copy->tracks[t] = make_track(copy, t, &lane->tracks[t]);
		copy->tracks[t]->idle = idle;
		if (head->track_states[t] == QUEUE_TRACK_EMPTY)
			copy->tracks[t]->exhausted = copy->tracks[t]->known_empty = true;
		if (look->conditional)
			lower_start(copy->tracks[t], lane->priority, t,
						head->returned, head->num_returned);
	}
}

static void
copy_registry(QueueLook *look, QueueHead *head)
{
	look->version = pg_atomic_read_u64(&head->version);
	look->num_registered = head->num_registered;
	memcpy(look->registered, head->registered,
		   head->num_registered * sizeof(QueueRegistered));
}

/* The registry as it is now. */
void
queue_look_refresh(QueueLook *look)
{
	QueueHead  *head;

	if (look->registered == NULL)
		look->registered = MemoryContextAlloc(look->memory,
											  queue_shmem->max_backends *
											  sizeof(QueueRegistered));
	look->num_registered = 0;
	head = look->local == NULL ? NULL : queue_head_lock(&look->local->ref);
	if (head == NULL)
		return;
	copy_registry(look, head);
	queue_head_unlock(head);
}

/* One pass over everything, in index order: no head. */
static void
begin_without_head(QueueLook *look)
{
	QueueLaneLook *lane = &look->lanes[0];

	look->has_head = false;
	look->num_lanes = 1;
	lane->priority = 0;
	lane->visited = false;
	for (int t = 0; t < QUEUE_TRACKS; t++)
		lane->tracks[t] = track_is_used(look, t) ?
			make_track(lane, t, NULL) : NULL;
}

/* What we inserted or locked, which floors may have passed, is found too. */
static void
start_at_own(QueueLook *look)
{
	for (int i = 0; i < look->local->num_touches; i++)
	{
		QueueTouch *touch = &look->local->touches[i];

		if ((touch->kind != QUEUE_TOUCH_INSERTED &&
			 touch->kind != QUEUE_TOUCH_LOCKED) ||
			touch->taken_by != InvalidSubTransactionId)
			continue;
		for (int l = 0; l < look->num_lanes; l++)
		{
			QueueTrackLook *track = look->lanes[l].tracks[touch->track];

			if (look->lanes[l].priority == touch->lane && track != NULL &&
				queue_key_cmp(&touch->key, &track->start) < 0)
				track->start = touch->key;
		}
	}
}

/* Copy the sticky keys whose owners have ended; asked outside the lock. */
static int
find_ended_sticky(QueueLook *look, QueueHeadKey *ended)
{
	QueueHead  *head;
	int			count;
	int			kept = 0;

	head = queue_head_lock(&look->local->ref);
	if (head == NULL)
		return 0;
	count = head->num_sticky;
	memcpy(ended, head->sticky, count * sizeof(QueueHeadKey));
	queue_head_unlock(head);
	for (int i = 0; i < count; i++)
	{
		if (!TransactionIdIsInProgress(ended[i].xid))
			ended[kept++] = ended[i];
	}
	return kept;
}

static void
begin_look(QueueLook *look)
{
	QueueHead  *head;

	if (look->registered == NULL)
		look->registered = MemoryContextAlloc(look->memory,
											  queue_shmem->max_backends *
											  sizeof(QueueRegistered));
	reserve_lanes(look, 1);
	look->active = true;
	look->now = queue_clock_now();
	look->num_registered = 0;
	look->has_keys = false;
	look->next_due = DT_NOEND;
	look->left = false;

	/* a reader sees what is locked, too, which floors have passed */
	head = look->changes ? lock_usable_head(look) : NULL;
	if (head != NULL && look->conditional && head->num_sticky > 0)
	{
		/* the scan begins where returned keys are */
		QueueHeadKey ended[QUEUE_MAX_STICKY];
		int			num_ended;

		queue_head_unlock(head);
		num_ended = find_ended_sticky(look, ended);
		head = lock_usable_head(look);
		for (int i = 0; head != NULL && i < num_ended; i++)
			queue_head_unstick(head, &ended[i]);
	}
	while (head != NULL && head->num_lanes > look->max_lanes)
	{
		int			count = head->num_lanes;

		/* nothing is allocated under the lock */
		queue_head_unlock(head);
		reserve_lanes(look, count);
		head = lock_usable_head(look);
	}
	if (head == NULL)
	{
		begin_without_head(look);
		return;
	}
	copy_registry(look, head);
	look->serial = head->serial;
	look->stride = head->stride;
	if (!queue_guc_use_heads || head->lanes_overflow)
	{
		queue_head_unlock(head);
		begin_without_head(look);
		return;
	}
	look->has_head = true;
	look->has_keys = head->num_returned > 0 || head->num_sticky > 0;
	look->num_lanes = head->num_lanes;
	look->num_head_lanes = head->num_lanes;
	for (int i = 0; i < head->num_lanes; i++)
		copy_lane(look, head, &head->lanes[i], &look->lanes[i]);
	queue_head_unlock(head);

	if (look->local->num_own > 0)
		start_at_own(look);
}

/* ---------- tracks ---------- */

/*
 * An index scan reads every matching entry of a page at once, of which one
 * call may want a single one.  So look first only as far as a few messages
 * are likely to lie, judging by how close together the last ones were.
 */
static bool
set_bound(QueueLook *look, QueueTrackLook *track, int messages)
{
	QueueSort	sort = look->queue->table->sort;
	TimestampTz start;

	if (look->stride <= 0 || !look->has_head || track->idle ||
		track->store.track == QUEUE_TRACK_DUE ||
		QUEUE_SORT_HAS_ORDER_AT(sort) || queue_key_is_min(&track->from))
		return false;
	start = queue_clock_msgid_time(&track->from.msgid);
	if (start >= look->now)
		return false;
	track->bound_messages = messages;
	memset(&track->bound, 0, sizeof(QueueKey));
	queue_clock_lowest_msgid(&track->bound.msgid,
							 start + 1 +
							 look->stride * messages / STRIDE_UNIT);
	return true;
}

/* Scan an open track from a key, as far as it is bounded. */
static void
scan_track(QueueLook *look, QueueTrackLook *track, const int32 *lane)
{
	track->scan = queue_store_scan(&track->store, &look->dirty, &track->keys,
								   look->queue->table->sort, look->queue->id,
								   QUEUE_CONSUMER_NONE, lane, &track->from,
								   track->bounded ? &track->bound : NULL,
								   false);
}

static void
open_track(QueueLook *look, QueueTrackLook *track, int number,
		   const int32 *lane)
{
	const QueueLeaf *leaf = leaf_of_track(look->queue, number);

	/*
	 * A segment that is left out may become current after this.  What is then
	 * put into it is published if it lies below the barrier, which was read
	 * before.
	 */
	if (!queue_look_leaf_is_used(look->queue, number))
	{
		track->store.track = number;
		track->exhausted = true;
		return;
	}
	if (!queue_store_open(&track->store, leaf, number,
						  RecoveryInProgress() ? AccessShareLock :
						  RowExclusiveLock))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("queue \"%s\" has no index yet",
						queue_catalog_name(look->queue->relid)),
				 errdetail("A restore may be under way, or the index was dropped or is not valid."),
				 errhint("Finish the restore, or build the index again.")));

	/* an empty leaf has nothing to scan */
	if (RelationGetNumberOfBlocks(track->store.rel) == 0)
	{
		queue_store_release(&track->store);
		track->exhausted = track->was_empty = true;
		return;
	}
	track->slot = table_slot_create(track->store.rel, NULL);
	track->open = true;
	track->from = track->start;
	track->bounded = set_bound(look, track,
							   Max(look->expected, MIN_BOUND_MESSAGES));
	scan_track(look, track, lane);
}

/* Nothing more below the bound: go on from there. */
static void
continue_beyond_bound(QueueLook *look, QueueTrackLook *track)
{
	int32		lane = track->lane;
	bool		first = track->bound_messages <= Max(look->expected,
													 MIN_BOUND_MESSAGES);

	index_endscan(track->scan);
	track->from = track->bound;
	track->bounded = first &&
		set_bound(look, track, track->bound_messages * BOUND_GROWTH);
	scan_track(look, track, look->has_head ? &lane : NULL);
}

void
queue_look_close_track(QueueTrackLook *track)
{
	if (!track->open)
		return;
	ExecDropSingleTupleTableSlot(track->slot);
	if (track->scan != NULL)
		index_endscan(track->scan);
	if (track->changed)
		queue_store_close(&track->store);
	else
		queue_store_release(&track->store);
	track->open = false;
}

static inline void
note_stop(QueueTrackLook *track, const QueueKey *key)
{
	if (!track->has_stop || queue_key_cmp(key, &track->stop) < 0)
		track->stop = *key;
	track->has_stop = true;
}

/*
 * Rule D3: an owner that nobody knows (plain SQL, a prepared transaction) will
 * not publish.  Its key becomes sticky, or stops the floor.
 */
static QueueVerdict
adopt_sticky(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	QueueRegisteredAnswer answer;
	QueueHead  *head;
	bool		stuck;

	if (!look->has_head || candidate->owner_is_multi)
		return QUEUE_VERDICT_STOP;

	/* it may have entered the registry since we copied it */
	head = queue_head_lock(&look->local->ref);
	if (head == NULL)
		return QUEUE_VERDICT_STOP;
	copy_registry(look, head);
	queue_head_unlock(head);
	answer = queue_registered_find(look->registered, look->num_registered,
								   candidate->owner);
	if (answer != QUEUE_REGISTERED_NO)
		return answer == QUEUE_REGISTERED_YES ? QUEUE_VERDICT_PASS :
			QUEUE_VERDICT_STOP;

	head = queue_head_lock(&look->local->ref);
	if (head == NULL)
		return QUEUE_VERDICT_STOP;
	stuck = queue_head_stick(head, candidate->lane, track->store.track,
							 &candidate->key, candidate->owner);
	queue_head_unlock(head);
	return stuck ? QUEUE_VERDICT_PASS : QUEUE_VERDICT_STOP;
}

/* A message that is not wanted now may be so later: when? */
static void
note_due(QueueLook *look, const QueueCandidate *candidate,
		 QueueVerdict verdict)
{
	if (verdict == QUEUE_VERDICT_BREAK)
		look->next_due = Min(look->next_due, candidate->key.major);
	else if (candidate->not_before > look->now)
		look->next_due = Min(look->next_due, candidate->not_before);
}

/* Advance to the track's next candidate. */
static void
load_candidate(QueueLook *look, QueueTrackLook *track)
{
	while (!track->has_candidate && !track->exhausted)
	{
		QueueVerdict verdict;

		CHECK_FOR_INTERRUPTS();
		if (!index_getnext_slot(track->scan, ForwardScanDirection,
								track->slot))
		{
			if (track->bounded)
			{
				continue_beyond_bound(look, track);
				continue;
			}
			track->exhausted = true;
			break;
		}
		verdict = queue_look_judge(look, track);
		if (!track->has_last ||
			queue_key_cmp(&track->last, &track->candidate.key) < 0)
			track->last = track->candidate.key;
		track->has_last = true;
		if (verdict == QUEUE_VERDICT_STOP || verdict == QUEUE_VERDICT_STICK)
			look->left = true;
		track->has_position = true;
		track->position = track->candidate.key;
		if (verdict == QUEUE_VERDICT_STICK)
			verdict = adopt_sticky(look, track);
		track->candidate.verdict = verdict;
		switch (verdict)
		{
			case QUEUE_VERDICT_PASS:
				break;
			case QUEUE_VERDICT_STOP:
				note_stop(track, &track->candidate.key);
				note_due(look, &track->candidate, verdict);
				break;
			case QUEUE_VERDICT_BREAK:
				note_stop(track, &track->candidate.key);
				note_due(look, &track->candidate, verdict);
				if (look->has_head || !QUEUE_SORT_HAS_LANES(look->queue->table->sort))
					track->exhausted = true;
				break;
			default:
				track->has_candidate = true;
				break;
		}
	}
}

static int
compare_order(int32 lane_a, const QueueKey *a, int32 lane_b,
			  const QueueKey *b)
{
	if (lane_a != lane_b)
		return lane_a < lane_b ? -1 : 1;
	return queue_key_cmp(a, b);
}

static inline bool
comes_before(const QueueTrackLook *track, const QueueTrackLook *best)
{
	return track->has_candidate &&
		(best == NULL ||
		 compare_order(track->candidate.lane, &track->candidate.order,
					   best->candidate.lane, &best->candidate.order) < 0);
}

/*
 * The segment to open next: of those not open yet the one whose floor is
 * lowest, if something before the best candidate may lie in it.  Nothing that
 * is not published lies below a floor.
 */
static QueueTrackLook *
find_unopened(QueueLook *look, QueueLaneLook *lane,
			  const QueueTrackLook *best, int *number)
{
	QueueTrackLook *found = NULL;

	for (int t = 0; t < QUEUE_SEGMENTS; t++)
	{
		QueueTrackLook *track = lane->tracks[t];

		if (track == NULL || track->open || track->exhausted ||
			(found != NULL &&
			 queue_key_cmp(&found->start, &track->start) <= 0))
			continue;
		found = track;
		*number = t;
	}
	if (found != NULL && best != NULL && look->has_head &&
		queue_key_cmp(&best->candidate.order, &found->start) < 0)
		return NULL;
	return found;
}

static QueueTrackLook *
find_best_of_lane(QueueLook *look, QueueLaneLook *lane)
{
	const int32 *priority = look->has_head ? &lane->priority : NULL;
	QueueTrackLook *due = lane->tracks[QUEUE_TRACK_DUE];
	QueueTrackLook *best = NULL;
	QueueTrackLook *track;
	int			number = 0;

	if (due != NULL && !due->open && !due->exhausted)
	{
		if (!look->waits && due_track_is_idle(look, due))
			due->exhausted = true;
		else
			open_track(look, due, QUEUE_TRACK_DUE, priority);
	}
	for (int t = 0; t < QUEUE_TRACKS; t++)
	{
		track = lane->tracks[t];
		if (track == NULL || !track->open)
			continue;
		load_candidate(look, track);
		if (comes_before(track, best))
			best = track;
	}
	while ((track = find_unopened(look, lane, best, &number)) != NULL)
	{
		open_track(look, track, number, priority);
		load_candidate(look, track);
		if (comes_before(track, best))
			best = track;
	}
	return best;
}

/* The first candidate in the order of delivery; NULL: there is none. */
static QueueTrackLook *
find_best(QueueLook *look)
{
	for (int i = 0; i < look->num_lanes; i++)
	{
		QueueTrackLook *best;

		look->lanes[i].visited = true;
		best = find_best_of_lane(look, &look->lanes[i]);
		if (best != NULL)
			return best;
	}
	return NULL;
}

void
queue_look_taken(QueueTrackLook *track)
{
	track->has_candidate = false;
}

void
queue_look_stop(QueueTrackLook *track)
{
	note_stop(track, &track->candidate.key);
	track->has_candidate = false;
}

/* Begin a track's scan anew at a key. */
static void
rescan_track(QueueLook *look, QueueTrackLook *track, int number,
			 const int32 *lane, const QueueKey *from)
{
	queue_look_close_track(track);
	track->has_candidate = false;
	track->has_position = false;
	track->exhausted = false;
	track->start = *from;
	open_track(look, track, number, lane);
}

void
queue_look_retry(QueueLook *look, QueueTrackLook *track)
{
	QueueKey	from = track->candidate.key;
	int			number = track->store.track;

	for (int i = 0; i < look->num_lanes; i++)
	{
		if (look->lanes[i].tracks[number] == track)
		{
			/* without lanes a key does not say where to begin */
			if (!look->has_head && QUEUE_SORT_HAS_LANES(look->queue->table->sort))
				queue_key_set_min(&from);
			rescan_track(look, track, number,
						 look->has_head ? &look->lanes[i].priority : NULL,
						 &from);
			return;
		}
	}
}

/* ---------- acceptance (D4) ---------- */

/* Has a floor been lowered, or a lane been made, since the look began? */
static bool
is_outdated(QueueLook *look, QueueHead *head)
{
	if (head->num_lanes != look->num_head_lanes || !head->lanes_known)
		return true;
	for (int i = 0; i < look->num_lanes; i++)
	{
		if (!look->lanes[i].visited)
			continue;
		for (int t = 0; t < QUEUE_TRACKS; t++)
		{
			QueueTrackLook *track = look->lanes[i].tracks[t];

			if (track != NULL && track->generation !=
				head->lanes[i].tracks[t].generation)
				return true;
		}
	}
	return false;
}

static bool
is_skipped(QueueLook *look, const QueueHeadKey *key)
{
	for (int i = 0; i < look->num_skipped; i++)
	{
		if (look->skipped[i].lane == key->lane &&
			look->skipped[i].track == key->track &&
			queue_key_cmp(&look->skipped[i].key, &key->key) == 0)
			return true;
	}
	return false;
}

static void
set_key_order(QueueKey *order, const QueueHeadKey *key, QueueSort sort)
{
	*order = key->key;
	if (key->track == QUEUE_TRACK_DUE && !QUEUE_SORT_HAS_ORDER_AT(sort))
		order->major = 0;
}

/* May the key be looked at, and does it come before the candidate? */
static bool
is_before(QueueLook *look, const QueueHeadKey *key, QueueTrackLook *best,
		  QueueKey *order)
{
	if (is_skipped(look, key) ||
		(look->only_due && key->track != QUEUE_TRACK_DUE) ||
		(key->track == QUEUE_TRACK_DUE && key->key.major > look->now))
		return false;
	set_key_order(order, key, look->queue->table->sort);
	return best == NULL ||
		compare_order(best->candidate.lane, &best->candidate.order,
					  key->lane, order) >= 0;
}

/* The lowest returned key that is before the candidate. */
static bool
find_hand(QueueLook *look, QueueHead *head, QueueTrackLook *best,
		  QueueHeadKey *hand)
{
	bool		found = false;
	QueueKey	lowest;

	queue_key_set_max(&lowest);
	for (int i = 0; i < head->num_returned; i++)
	{
		QueueHeadKey *key = &head->returned[i];
		QueueKey	order;

		if (!is_before(look, key, best, &order) ||
			(found && compare_order(hand->lane, &lowest,
									key->lane, &order) <= 0))
			continue;
		found = true;
		*hand = *key;
		lowest = order;
	}
	return found;
}

/* Floors have passed what was returned or is sticky: when is that due? */
static void
note_keys_due(QueueLook *look, const QueueHeadKey *keys, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (keys[i].track != QUEUE_TRACK_DUE)
			continue;
		if (keys[i].key.major > look->now)
			look->next_due = Min(look->next_due, keys[i].key.major);
		else
			look->left = true;
	}
}

/* Has a key come back before the candidate since the look began? */
static bool
has_newer(QueueLook *look, QueueHead *head, QueueTrackLook *best)
{
	for (int i = 0; i < head->num_returned; i++)
	{
		QueueKey	order;

		if (head->returned[i].serial > look->serial &&
			is_before(look, &head->returned[i], best, &order))
			return true;
	}
	return false;
}

/*
 * Raise the barriers of the lane above x, which lies in one of its tracks;
 * marks the tracks whose barrier was not above it, to be looked at again.
 */
static bool
raise_barriers(QueueLook *look, QueueHead *head, int32 priority, int number,
			   const QueueKey *x, QueueKey *rescan_from, bool *rescan)
{
	QueueLane  *lane = queue_head_lane(head, priority, false);
	bool		any = false;
	QueueKey	above;
	QueueKey	ahead;

	/* as far as most who have a key have ended: the next call need not (D8) */
	queue_key_set_succ(&above, x);
	if (number != QUEUE_TRACK_DUE)
	{
		set_key_of_time(&ahead, look->queue->table->sort,
						look->now - REACHED_BARRIER_LAG);
		above = *queue_key_higher(&above, &ahead);
	}
	for (int i = 0; i < look->num_lanes; i++)
	{
		if (look->lanes[i].priority != priority)
			continue;
		for (int t = 0; t < QUEUE_TRACKS; t++)
		{
			QueueTrackLook *track = look->lanes[i].tracks[t];

			rescan[t] = false;
			if (track == NULL ||
				(t == QUEUE_TRACK_DUE) != (number == QUEUE_TRACK_DUE) ||
				queue_key_cmp(x, &track->barrier) < 0)
				continue;
			rescan[t] = any = true;
			rescan_from[t] = *queue_key_higher(&track->floor,
											   &track->barrier);
			/* a scan that began below the floor saw those keys already */
			if (queue_key_cmp(&rescan_from[t], &track->start) < 0)
				rescan_from[t] = track->start;
			lane->tracks[t].barrier =
				*queue_key_higher(&lane->tracks[t].barrier, &above);
			track->barrier = lane->tracks[t].barrier;
		}
	}
	return any;
}

static void
rescan_lane(QueueLook *look, int32 priority, const QueueKey *from,
			const bool *rescan)
{
	for (int i = 0; i < look->num_lanes; i++)
	{
		QueueLaneLook *lane = &look->lanes[i];

		if (lane->priority != priority)
			continue;
		for (int t = 0; t < QUEUE_TRACKS; t++)
		{
			if (rescan[t])
				rescan_track(look, lane->tracks[t], t, &lane->priority,
							 &from[t]);
		}
	}
}

/* Is the candidate surely right without the lock? */
static bool
accept_is_plain(QueueLook *look, QueueTrackLook *best)
{
	QueueHead  *head = queue_head_peek(&look->local->ref);

	return best != NULL && !look->has_keys && look->local->registered &&
		look->local->registered_subid == GetCurrentSubTransactionId() &&
		head->incarnation == look->local->ref.incarnation &&
		pg_atomic_read_u64(&head->version) == look->version &&
		queue_key_cmp(&best->candidate.key, &best->barrier) < 0;
}

/* Take a key out of its set and note it as in hand, before it is gone. */
static void
pop_hand(QueueLook *look, QueueHead *head, const QueueHeadKey *hand)
{
	(void) queue_xact_touch(look->local, QUEUE_TOUCH_HAND, hand->lane,
							hand->track, &hand->key);
	queue_head_forget(head, hand->lane, hand->track, &hand->key);
}

static QueueAccept
accept(QueueLook *look, QueueTrackLook *best, QueueHeadKey *hand)
{
	QueueHeadKey ended[QUEUE_MAX_STICKY];
	int			num_ended = 0;
	QueueHead  *head;
	bool		has_hand;
	QueueKey	from[QUEUE_TRACKS];
	bool		rescan[QUEUE_TRACKS];
	int32		lane;

	if (accept_is_plain(look, best))
		return QUEUE_ACCEPT_CANDIDATE;

	/* all that may fail or wait comes before the lock */
	if (best != NULL || look->has_keys)
		(void) GetCurrentTransactionId();
	queue_xact_reserve(look->local, 2);
	if (queue_head_peek(&look->local->ref)->num_sticky > 0)
		num_ended = find_ended_sticky(look, ended);

	head = queue_head_lock(&look->local->ref);
	for (int i = 0; head != NULL && i < num_ended; i++)
		queue_head_unstick(head, &ended[i]);
	if (head == NULL || is_outdated(look, head) ||
		(look->conditional && has_newer(look, head, best)))
	{
		if (head != NULL)
			queue_head_unlock(head);
		queue_look_end(look);
		return QUEUE_ACCEPT_AGAIN;
	}
	has_hand = !look->conditional &&
		TransactionIdIsValid(GetCurrentTransactionIdIfAny()) &&
		find_hand(look, head, best, hand);
	if (best == NULL && !has_hand)
	{
		/* keys that came in since the look began deserve another */
		bool		more = !look->conditional && !look->has_keys &&
		(head->num_returned > 0 || head->num_sticky > 0);

		look->has_keys = head->num_returned > 0 || head->num_sticky > 0;
		note_keys_due(look, head->returned, head->num_returned);
		note_keys_due(look, head->sticky, head->num_sticky);
		queue_head_unlock(head);
		return more ? QUEUE_ACCEPT_AGAIN : QUEUE_ACCEPT_NOTHING;
	}
	queue_xact_register_locked(look->local, head);
	copy_registry(look, head);
	look->has_keys = head->num_returned > 0 || head->num_sticky > 0;
	lane = has_hand ? hand->lane : best->candidate.lane;
	if (raise_barriers(look, head, lane,
					   has_hand ? hand->track : best->store.track,
					   has_hand ? &hand->key : &best->candidate.key,
					   from, rescan))
	{
		queue_head_unlock(head);
		rescan_lane(look, lane, from, rescan);
		return QUEUE_ACCEPT_AGAIN;
	}
	if (has_hand)
		pop_hand(look, head, hand);
	queue_head_unlock(head);
	if (has_hand)
		return QUEUE_ACCEPT_HAND;

	if (!queue_look_still_settled(look, best))
	{
		queue_look_retry(look, best);
		return QUEUE_ACCEPT_AGAIN;
	}
	return QUEUE_ACCEPT_CANDIDATE;
}

QueueAccept
queue_look_next(QueueLook *look, QueueTrackLook **track, QueueHeadKey *hand)
{
	for (;;)
	{
		QueueAccept result;

		CHECK_FOR_INTERRUPTS();
		if (!look->active)
			begin_look(look);
		*track = find_best(look);
		DEBUG_POINT("after_scan");
		if (*track == NULL && !look->has_head)
			return QUEUE_ACCEPT_NOTHING;
		if (!look->changes)
			return QUEUE_ACCEPT_CANDIDATE;
		if (!look->has_head)
		{
			queue_xact_register(look->local);
			if (queue_look_is_settled(look, *track))
				return QUEUE_ACCEPT_CANDIDATE;
			queue_look_retry(look, *track);
			continue;
		}
		result = accept(look, *track, hand);
		if (result != QUEUE_ACCEPT_AGAIN)
			return result;
	}
}

/* ---------- popped keys (D5) ---------- */

bool
queue_look_at_hand(QueueLook *look, const QueueHeadKey *hand,
				   QueueTrackLook *track)
{
	const QueueLeaf *leaf = leaf_of_track(look->queue, hand->track);
	QueueVerdict verdict;

	memset(track, 0, sizeof(*track));
	if (!queue_look_leaf_is_used(look->queue, hand->track))
	{
		queue_look_hand_taken(look, hand);	/* dead (rule S5) */
		return false;
	}
	if (!queue_store_open(&track->store, leaf, hand->track, RowExclusiveLock))
	{
		queue_look_hand_back(look, hand);
		return false;
	}
	track->slot = table_slot_create(track->store.rel, NULL);
	track->open = true;
	track->scan = queue_store_scan(&track->store, &look->dirty, &track->keys,
								   look->queue->table->sort, look->queue->id,
								   QUEUE_CONSUMER_NONE, &hand->lane,
								   &hand->key, NULL, true);
	if (!index_getnext_slot(track->scan, ForwardScanDirection, track->slot))
		verdict = QUEUE_VERDICT_PASS;	/* dead */
	else
		verdict = queue_look_judge(look, track);
	track->candidate.verdict = verdict;
	switch (verdict)
	{
		case QUEUE_VERDICT_DELIVER:
		case QUEUE_VERDICT_EXPIRE:
		case QUEUE_VERDICT_EXHAUST:
			if (queue_look_is_settled(look, track))
				return true;
			queue_look_hand_back(look, hand);
			break;
		case QUEUE_VERDICT_PASS:
			queue_look_hand_taken(look, hand);
			break;
		default:
			note_due(look, &track->candidate, verdict);
			queue_look_hand_back(look, hand);
			break;
	}
	queue_look_close_track(track);
	return false;
}

/* Drop the entry of a key in hand. */
void
queue_look_hand_taken(QueueLook *look, const QueueHeadKey *hand)
{
	QueueLocalHead *local = look->local;

	for (int i = local->num_touches - 1; i >= 0; i--)
	{
		QueueTouch *touch = &local->touches[i];

		if (touch->kind == QUEUE_TOUCH_HAND && touch->lane == hand->lane &&
			touch->track == hand->track &&
			queue_key_cmp(&touch->key, &hand->key) == 0)
		{
			memmove(touch, touch + 1,
					(local->num_touches - i - 1) * sizeof(QueueTouch));
			local->num_touches--;
			return;
		}
	}
}

/* Publish a key in hand again, and leave it alone for the rest of the look. */
void
queue_look_hand_back(QueueLook *look, const QueueHeadKey *hand)
{
	QueueHead  *head = queue_head_lock(&look->local->ref);

	if (head != NULL)
	{
		queue_head_return(head, hand->lane, hand->track, &hand->key);
		queue_head_unlock(head);
	}
	queue_look_hand_taken(look, hand);
	look->left = true;
	if (look->num_skipped < lengthof(look->skipped))
		look->skipped[look->num_skipped++] = *hand;
}

/* ---------- the end of a look (D7) ---------- */

/* How far the scan of a track allows its floor to move. */
static void
set_reach(QueueKey *reach, const QueueTrackLook *track)
{
	if (track->exhausted)
		queue_key_set_max(reach);
	else if (track->has_candidate)
		*reach = track->candidate.key;
	else if (track->has_position)
		queue_key_set_succ(reach, &track->position);
	else
		*reach = track->start;
	if (track->has_stop)
		*reach = *queue_key_lower(reach, &track->stop);
	*reach = *queue_key_lower(reach, &track->barrier);
}

static void
move_floor(QueueTrack *shared, const QueueTrackLook *track)
{
	QueueKey	reach;
	QueueKey	seen;

	set_reach(&reach, track);
	if (shared->generation == track->generation)
		shared->floor = *queue_key_higher(&shared->floor, &reach);
	if (track->has_last)
	{
		queue_key_set_succ(&seen, &track->last);
		shared->barrier = *queue_key_higher(&shared->barrier, &seen);
	}
	shared->barrier = *queue_key_higher(&shared->barrier, &shared->floor);
}

/* Remember how far apart messages are: a moving average. */
static void
note_stride(QueueHead *head, const QueueTrack *shared,
			const QueueTrackLook *track)
{
	int64		gap;

	if (track->store.track == QUEUE_TRACK_DUE || !track->has_last ||
		queue_key_is_min(&shared->floor) ||
		queue_key_cmp(&track->last, &shared->floor) <= 0)
		return;
	gap = queue_clock_msgid_time(&track->last.msgid) -
		queue_clock_msgid_time(&shared->floor.msgid);
	gap = Min(Max(gap, 1), MAX_STRIDE) * STRIDE_UNIT;

	/* a pause between two batches says little of what comes after it */
	if (head->stride != 0)
		gap = Min(gap, head->stride * MAX_STRIDE_GROWTH);
	head->stride = head->stride == 0 ? gap : (head->stride * 7 + gap) / 8;
}

void
queue_look_end(QueueLook *look)
{
	QueueHead  *head = NULL;

	if (!look->active)
		return;
	DEBUG_POINT("before_floor");
	if (look->has_head && look->changes)
		head = queue_head_lock(&look->local->ref);
	for (int i = 0; i < look->num_lanes; i++)
	{
		QueueLane  *lane = NULL;

		if (head != NULL && look->lanes[i].visited)
			lane = queue_head_lane(head, look->lanes[i].priority, false);
		for (int t = 0; lane != NULL && t < QUEUE_TRACKS; t++)
		{
			QueueTrackLook *track = look->lanes[i].tracks[t];

			if (track == NULL ||
				(t == QUEUE_TRACK_DUE && !track->has_last &&
				 due_track_is_idle(look, track)))
				continue;
			note_stride(head, &lane->tracks[t], track);
			move_floor(&lane->tracks[t], track);
			if (track->was_empty &&
				head->track_states[t] == QUEUE_TRACK_UNKNOWN)
				head->track_states[t] = QUEUE_TRACK_EMPTY;
		}
	}
	if (head != NULL)
		queue_head_unlock(head);
	for (int i = 0; i < look->num_lanes; i++)
	{
		for (int t = 0; t < QUEUE_TRACKS; t++)
		{
			if (look->lanes[i].tracks[t] != NULL)
				queue_look_close_track(look->lanes[i].tracks[t]);
		}
	}
	look->num_lanes = 0;
	look->active = false;
	look->num_skipped = 0;
}

bool
queue_look_probe(QueueLook *look)
{
	bool		found;

	begin_look(look);
	found = find_best(look) != NULL;
	queue_look_end(look);
	return found;
}
