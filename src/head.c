/*-------------------------------------------------------------------------
 *
 * head.c
 *	  The head of a queue: what shared memory knows of one queue's order.
 *
 * src/README.md tells the algorithm.  This file holds the memory and the
 * steps that are one critical section each; scans are in dequeue.c, the end
 * of a transaction in xact.c.
 *
 * A head only saves work: floors and barriers at minus infinity are right at
 * any time.  So heads may be missing, may be evicted while nobody is
 * registered in them, and are empty after a crash.
 *
 * Locking: the directory lock, then one head's lock, never two.  Under a
 * head's lock nothing is allocated, nothing is waited for and no error is
 * raised, because the end of a transaction takes it too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "guc.h"
#include "head.h"
#include "shmem.h"

static char *heads = NULL;
static Size head_size = 0;

static inline QueueHead *
head_at(int slot)
{
	return (QueueHead *) (heads + slot * head_size);
}

static Size
size_of_head(int max_backends)
{
	return CACHELINEALIGN(add_size(offsetof(QueueHead, registered),
								   mul_size(max_backends,
											sizeof(QueueRegistered))));
}

Size
queue_head_shmem_size(int num_heads, int max_backends)
{
	return mul_size(num_heads, size_of_head(max_backends));
}

void
queue_head_shmem_init(int num_heads, int max_backends, int tranche)
{
	bool		found;

	head_size = size_of_head(max_backends);
	heads = ShmemInitStruct("queue heads",
							queue_head_shmem_size(num_heads, max_backends),
							&found);
	if (found)
		return;

	memset(heads, 0, num_heads * head_size);
	for (int i = 0; i < num_heads; i++)
	{
		LWLockInitialize(&head_at(i)->lock, tranche);
		pg_atomic_init_u64(&head_at(i)->version, 0);
	}
}

static inline bool
same_id(const QueueHeadId *a, const QueueHeadId *b)
{
	return a->queue_table == b->queue_table &&
		a->queue_id == b->queue_id &&
		a->consumer_id == b->consumer_id &&
		a->database == b->database;
}

/* Caller holds the directory lock.  -1: there is none. */
static int
search_directory(const QueueHeadId *id)
{
	for (int i = 0; i < queue_shmem->num_heads; i++)
	{
		QueueHead  *head = head_at(i);

		if (head->in_use && same_id(&head->id, id))
			return i;
	}
	return -1;
}

/*
 * A slot for a new head: a free one, else that of a head in which nobody is
 * registered, going round.  Caller holds the directory lock exclusively.  The
 * chosen head is returned locked; NULL if all are busy.
 */
static QueueHead *
choose_slot(int *slot)
{
	for (int i = 0; i < queue_shmem->num_heads; i++)
	{
		if (!head_at(i)->in_use)
		{
			*slot = i;
			LWLockAcquire(&head_at(i)->lock, LW_EXCLUSIVE);
			return head_at(i);
		}
	}
	for (int i = 0; i < queue_shmem->num_heads; i++)
	{
		int			victim = queue_shmem->clock_hand;

		queue_shmem->clock_hand = (victim + 1) % queue_shmem->num_heads;
		LWLockAcquire(&head_at(victim)->lock, LW_EXCLUSIVE);
		if (head_at(victim)->num_registered == 0)
		{
			*slot = victim;
			return head_at(victim);
		}
		LWLockRelease(&head_at(victim)->lock);
	}
	return NULL;
}

bool
queue_head_find(QueueHeadRef *ref, bool create)
{
	QueueHead  *head;

	LWLockAcquire(&queue_shmem->directory_lock, LW_SHARED);
	ref->slot = search_directory(&ref->id);
	if (ref->slot >= 0)
		ref->incarnation = head_at(ref->slot)->incarnation;
	LWLockRelease(&queue_shmem->directory_lock);
	if (ref->slot >= 0 || !create)
		return ref->slot >= 0;

	LWLockAcquire(&queue_shmem->directory_lock, LW_EXCLUSIVE);
	ref->slot = search_directory(&ref->id);
	if (ref->slot >= 0)
		ref->incarnation = head_at(ref->slot)->incarnation;
	else if ((head = choose_slot(&ref->slot)) != NULL)
	{
		head->id = ref->id;
		head->in_use = true;
		ref->incarnation = ++head->incarnation;
		head->lanes_known = false;
		head->lanes_overflow = false;
		memset(head->fingerprints, 0, sizeof(head->fingerprints));
		head->num_lanes = 0;
		head->num_returned = 0;
		head->num_sticky = 0;
		head->stride = 0;
		memset(head->track_states, QUEUE_TRACK_UNKNOWN, QUEUE_TRACKS);
		queue_head_changed(head);
		LWLockRelease(&head->lock);
	}
	else
		ref->slot = -1;
	LWLockRelease(&queue_shmem->directory_lock);

	return ref->slot >= 0;
}

QueueHead *
queue_head_lock(const QueueHeadRef *ref)
{
	QueueHead  *head;

	if (ref->slot < 0)
		return NULL;
	head = head_at(ref->slot);
	LWLockAcquire(&head->lock, LW_EXCLUSIVE);
	if (head->incarnation == ref->incarnation && head->in_use)
		return head;
	LWLockRelease(&head->lock);
	return NULL;
}

QueueHead *
queue_head_peek(const QueueHeadRef *ref)
{
	return ref->slot < 0 ? NULL : head_at(ref->slot);
}

#ifdef QUEUE_DEBUG
/* Assert() of a server without assertions does nothing; this does. */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			write_stderr("queue: head invariant violated: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

/* What holds whenever nobody has the lock. */
static void
check_invariants(QueueHead *head)
{
	CHECK(LWLockHeldByMeInMode(&head->lock, LW_EXCLUSIVE));
	CHECK(head->num_lanes >= 0 && head->num_lanes <= QUEUE_MAX_LANES);
	CHECK(head->num_returned >= 0);
	CHECK(head->num_returned <= QUEUE_MAX_RETURNED);
	CHECK(head->num_sticky >= 0 && head->num_sticky <= QUEUE_MAX_STICKY);
	CHECK(head->num_registered >= 0);
	CHECK(head->num_registered <= queue_shmem->max_backends);
	for (int i = 0; i < head->num_lanes; i++)
	{
		QueueLane  *lane = &head->lanes[i];

		CHECK(i == 0 || head->lanes[i - 1].priority < lane->priority);
		for (int t = 0; t < QUEUE_TRACKS; t++)
			CHECK(queue_key_cmp(&lane->tracks[t].floor,
								&lane->tracks[t].barrier) <= 0);
	}
	for (int i = 0; i < head->num_registered; i++)
		CHECK(TransactionIdIsValid(head->registered[i].xid));
}
#endif

void
queue_head_unlock(QueueHead *head)
{
#ifdef QUEUE_DEBUG
	check_invariants(head);
#endif
	LWLockRelease(&head->lock);
}

void
queue_head_changed(QueueHead *head)
{
	pg_atomic_write_u64(&head->version,
						pg_atomic_read_u64(&head->version) + 1);
}

static void
init_lane(QueueLane *lane, int32 priority)
{
	memset(lane, 0, sizeof(QueueLane));
	lane->priority = priority;
	for (int t = 0; t < QUEUE_TRACKS; t++)
	{
		queue_key_set_min(&lane->tracks[t].floor);
		queue_key_set_min(&lane->tracks[t].barrier);
	}
}

/*
 * The lane of a priority.  Where it must be made and there is no room, the
 * head gives up its floors for good (lanes_overflow) and NULL is returned.
 */
QueueLane *
queue_head_lane(QueueHead *head, int32 priority, bool create)
{
	int			i;

	for (i = 0; i < head->num_lanes; i++)
	{
		if (head->lanes[i].priority == priority)
			return &head->lanes[i];
		if (head->lanes[i].priority > priority)
			break;
	}
	if (!create)
		return NULL;

	queue_head_changed(head);
	if (head->num_lanes == QUEUE_MAX_LANES)
	{
		head->lanes_overflow = true;
		return NULL;
	}
	memmove(&head->lanes[i + 1], &head->lanes[i],
			(head->num_lanes - i) * sizeof(QueueLane));
	head->num_lanes++;
	init_lane(&head->lanes[i], priority);
	return &head->lanes[i];
}

/*
 * A track's floors and barriers to minus infinity; scans under way notice.
 * The leaf may hold priorities that are not known yet.
 */
void
queue_head_reset_track(QueueHead *head, int track)
{
	for (int i = 0; i < head->num_lanes; i++)
	{
		QueueTrack *shared = &head->lanes[i].tracks[track];

		queue_key_set_min(&shared->floor);
		queue_key_set_min(&shared->barrier);
		shared->generation++;
	}
	head->track_states[track] = QUEUE_TRACK_UNKNOWN;
	head->lanes_known = false;
	queue_head_changed(head);
}

void
queue_head_reset(QueueHead *head)
{
	for (int t = 0; t < QUEUE_TRACKS; t++)
	{
		queue_head_reset_track(head, t);
		head->fingerprints[t] = 0;
	}
}

/* Somebody inserts, or has touched a row there: it is no longer empty. */
void
queue_head_use_track(QueueHead *head, int track)
{
	if (head->track_states[track] == QUEUE_TRACK_USED)
		return;
	head->track_states[track] = QUEUE_TRACK_USED;
	queue_head_changed(head);
}

static inline bool
is_key(const QueueHeadKey *entry, int32 lane, int track, const QueueKey *key)
{
	return entry->lane == lane && entry->track == track &&
		queue_key_cmp(&entry->key, key) == 0;
}

void
queue_head_lower(QueueHead *head, int32 lane_priority, int track,
				 const QueueKey *key)
{
	QueueLane  *lane = queue_head_lane(head, lane_priority, true);

	queue_head_use_track(head, track);
	if (lane == NULL)
		return;
	if (queue_key_cmp(key, &lane->tracks[track].floor) < 0)
		lane->tracks[track].floor = *key;
	lane->tracks[track].generation++;
	queue_head_changed(head);
}

/*
 * A key needs a second look if it is below the barrier: put it into the
 * returned set, or lower the floor when that is full.
 */
void
queue_head_return(QueueHead *head, int32 lane_priority, int track,
				  const QueueKey *key)
{
	QueueLane  *lane = queue_head_lane(head, lane_priority, true);
	QueueHeadKey *entry;

	queue_head_use_track(head, track);
	if (lane == NULL || queue_key_cmp(key, &lane->tracks[track].barrier) >= 0)
		return;
	for (int i = 0; i < head->num_returned; i++)
	{
		if (is_key(&head->returned[i], lane_priority, track, key))
		{
			head->returned[i].serial = ++head->serial;
			queue_head_changed(head);
			return;
		}
	}
	if (head->num_returned >= queue_guc_returned_keys)
	{
		queue_head_lower(head, lane_priority, track, key);
		return;
	}
	entry = &head->returned[head->num_returned++];
	entry->lane = lane_priority;
	entry->track = track;
	entry->key = *key;
	entry->xid = InvalidTransactionId;
	entry->serial = ++head->serial;
	queue_head_changed(head);
}

bool
queue_head_stick(QueueHead *head, int32 lane, int track, const QueueKey *key,
				 TransactionId xid)
{
	QueueHeadKey *entry;

	/* who looks without popping finds it by its lane */
	(void) queue_head_lane(head, lane, true);
	queue_head_use_track(head, track);
	for (int i = 0; i < head->num_sticky; i++)
	{
		if (is_key(&head->sticky[i], lane, track, key))
		{
			head->sticky[i].xid = xid;
			return true;
		}
	}
	if (head->num_sticky == QUEUE_MAX_STICKY)
		return false;
	entry = &head->sticky[head->num_sticky++];
	entry->lane = lane;
	entry->track = track;
	entry->key = *key;
	entry->xid = xid;
	entry->serial = 0;
	queue_head_changed(head);
	return true;
}

/* Take a key out of the returned set. */
void
queue_head_forget(QueueHead *head, int32 lane, int track,
				  const QueueKey *key)
{
	for (int i = 0; i < head->num_returned; i++)
	{
		if (is_key(&head->returned[i], lane, track, key))
		{
			head->returned[i] = head->returned[--head->num_returned];
			queue_head_changed(head);
			return;
		}
	}
}

/*
 * The owner of a sticky key has ended: publish the key for it.  Nothing if
 * somebody has done so, or if the key has another owner by now.
 */
void
queue_head_unstick(QueueHead *head, const QueueHeadKey *ended)
{
	for (int i = 0; i < head->num_sticky; i++)
	{
		if (head->sticky[i].xid == ended->xid &&
			is_key(&head->sticky[i], ended->lane, ended->track, &ended->key))
		{
			head->sticky[i] = head->sticky[--head->num_sticky];
			queue_head_changed(head);
			queue_head_return(head, ended->lane, ended->track, &ended->key);
			return;
		}
	}
}

bool
queue_head_next_sticky(int *slot, QueueHeadId *id, int *count)
{
	for (; *slot < queue_shmem->num_heads; ++*slot)
	{
		QueueHead  *head = head_at(*slot);

		if (!head->in_use || head->num_sticky == 0)
			continue;
		LWLockAcquire(&head->lock, LW_EXCLUSIVE);
		*id = head->id;
		*count = head->in_use ? head->num_sticky : 0;
		LWLockRelease(&head->lock);
		if (*count == 0 || id->database != MyDatabaseId)
			continue;
		if (*count == QUEUE_MAX_STICKY)
			*count = PG_INT32_MAX;
		++*slot;
		return true;
	}
	return false;
}

static QueueRegistered *
find_my_place(QueueHead *head)
{
	for (int i = 0; i < head->num_registered; i++)
	{
		if (head->registered[i].backend == queue_my_backend_index())
			return &head->registered[i];
	}
	return NULL;
}

/* Enter, or add a subtransaction to, this backend's place. */
void
queue_head_register(QueueHead *head, TransactionId xid, TransactionId subxid)
{
	QueueRegistered *place = find_my_place(head);

	if (place == NULL)
	{
		place = &head->registered[head->num_registered++];
		place->backend = queue_my_backend_index();
		place->xid = xid;
		place->num_subxids = 0;
		queue_head_changed(head);
	}
	if (!TransactionIdIsValid(subxid) ||
		place->num_subxids > QUEUE_MAX_SUBXIDS)
		return;
	for (int i = 0; i < place->num_subxids; i++)
	{
		if (place->subxids[i] == subxid)
			return;
	}
	if (place->num_subxids < QUEUE_MAX_SUBXIDS)
		place->subxids[place->num_subxids] = subxid;
	place->num_subxids++;
	queue_head_changed(head);
}

void
queue_head_leave(QueueHead *head)
{
	QueueRegistered *place = find_my_place(head);

	if (place != NULL)
		*place = head->registered[--head->num_registered];
}

/*
 * A subtransaction has aborted: it leaves with all below it, whose ids are
 * higher, when their keys have been published.
 */
void
queue_head_leave_subxact(QueueHead *head, TransactionId subxid)
{
	QueueRegistered *place = find_my_place(head);
	int			kept = 0;

	if (place == NULL || !TransactionIdIsValid(subxid))
		return;
	for (int i = 0; i < Min(place->num_subxids, QUEUE_MAX_SUBXIDS); i++)
	{
		if (TransactionIdPrecedes(place->subxids[i], subxid))
			place->subxids[kept++] = place->subxids[i];
	}
	if (place->num_subxids <= QUEUE_MAX_SUBXIDS)
		place->num_subxids = kept;
	else
	{
		/* overflowed for good: clear what is gone */
		while (kept < QUEUE_MAX_SUBXIDS)
			place->subxids[kept++] = InvalidTransactionId;
	}
}

/* Is xid below the overflowed place's transaction? */
static QueueRegisteredAnswer
look_in_subtrans(const QueueRegistered *place, TransactionId xid)
{
	if (TransactionIdPrecedesOrEquals(xid, place->xid))
		return QUEUE_REGISTERED_NO;
	if (TransactionIdFollowsOrEquals(xid, TransactionXmin))
		return SubTransGetTopmostTransaction(xid) == place->xid ?
			QUEUE_REGISTERED_YES : QUEUE_REGISTERED_NO;

	/*
	 * xid had ended when our snapshot was taken, so pg_subtrans may not know
	 * it any more.  If the place's own transaction is at or above our xmin,
	 * its subtransactions are too, and xid is none of them.  Else that
	 * transaction has ended as well and is about to publish.
	 */
	return TransactionIdFollowsOrEquals(place->xid, TransactionXmin) ?
		QUEUE_REGISTERED_NO : QUEUE_REGISTERED_MAYBE;
}

/*
 * The list is a copy taken under the head's lock: pg_subtrans may have to be
 * read, which must not happen under it.
 */
QueueRegisteredAnswer
queue_registered_find(const QueueRegistered *list, int count,
					  TransactionId xid)
{
	QueueRegisteredAnswer answer = QUEUE_REGISTERED_NO;

	if (!TransactionIdIsNormal(xid))
		return QUEUE_REGISTERED_NO;
	for (int i = 0; i < count; i++)
	{
		const QueueRegistered *place = &list[i];
		QueueRegisteredAnswer one = QUEUE_REGISTERED_NO;

		if (place->xid == xid)
			return QUEUE_REGISTERED_YES;
		if (place->num_subxids > QUEUE_MAX_SUBXIDS)
			one = look_in_subtrans(place, xid);
		else
		{
			for (int s = 0; s < place->num_subxids; s++)
			{
				if (place->subxids[s] == xid)
					return QUEUE_REGISTERED_YES;
			}
		}
		if (one == QUEUE_REGISTERED_YES)
			return one;
		if (one == QUEUE_REGISTERED_MAYBE)
			answer = one;
	}
	return answer;
}

bool
queue_registered_has(const QueueRegistered *list, int count,
					 TransactionId xid)
{
	if (!TransactionIdIsNormal(xid))
		return false;
	for (int i = 0; i < count; i++)
	{
		if (list[i].xid == xid)
			return true;
		for (int s = 0; s < Min(list[i].num_subxids, QUEUE_MAX_SUBXIDS); s++)
		{
			if (list[i].subxids[s] == xid)
				return true;
		}
	}
	return false;
}
