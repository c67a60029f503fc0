/*-------------------------------------------------------------------------
 *
 * rotation.c
 *	  Closing, emptying and truncating the segments of queue tables.
 *
 * Ready messages lie in a ring of segments, so that the space of consumed ones
 * comes back without VACUUM (rules S1 to S8).  A segment goes round like this:
 *
 *	CURRENT		full, and another one is free: that one becomes current
 *	CLOSED		when all have ended who could have written to it (drained), its
 *				rows are looked at until every one of them is dead
 *	EMPTY		dequeues leave it out; when no snapshot can see its rows any
 *				more it is truncated, if its lock can be had at once
 *	FREE		may become current
 *
 * Nothing here waits for a lock.  What stands in the way is tried again later,
 * and meanwhile the current segment grows.
 *
 * A few messages that nobody consumes would hold a whole segment.  When there
 * is no free one left they are moved on: deleted here and stored again in the
 * current segment, or among the waiting ones if a failed attempt holds them
 * back, with the same message id.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog.h"
#include "clock.h"
#include "compat.h"
#include "guc.h"
#include "look.h"
#include "message_store.h"
#include "ring.h"
#include "rotation.h"
#include "table_state.h"
#include "take.h"

/* messages moved in one transaction */
#define MAX_MOVED			100

/* move them only when most of the segment can be given back for it */
#define MOVE_AT_MOST_ONE_IN	2

/* by how much a segment has outgrown its size */
#define OUTGROWN			2

/*
 * Messages that stay in a closed segment for this long are moved on; after a
 * refusal it takes longer, because all rows are counted to decide it.
 */
#define MIN_STUCK_MS		2000
#define MAX_STUCK_MS		60000

/* the monitor looks again after this long, doubled while nothing happens */
#define MIN_NAP_MS			250
#define MAX_NAP_MS			60000
#define MAX_PENDING_NAP_MS	2000

/* How far the look at a closed segment has come; this session only. */
typedef struct SegmentWork
{
	bool		known;			/* what follows is of this round */
	uint64		uses;			/* of the segment, when it was begun */
	bool		drained;
	VirtualTransactionId *writers;	/* who may still write to it */
	int			num_writers;
	BlockNumber next_block;		/* all before is dead */
	BlockNumber num_blocks;		/* when every row was found dead */
	uint64		fingerprint;	/* of the leaf when this was begun; it changes
								 * when rows get other addresses */
	TransactionId last_delete;	/* the newest of those, or invalid */
	TimestampTz stuck_since;	/* 0: it is not */
	int			stuck_ms;		/* for how long it may be */
} SegmentWork;

typedef struct TableWork
{
	Oid			queue_table;	/* hash key */
	SegmentWork segments[QUEUE_SEGMENTS];
	TimestampTz next;			/* when the monitor looks again */
	int			nap_ms;
	QueueWorkerErrors errors;
} TableWork;

/* What is in a stretch of a segment. */
typedef struct SegmentCensus
{
	BlockNumber stopped_at;		/* first block with a row that is not dead */
	uint64		num_dead;
	uint64		num_live;
	bool		any_recent;		/* dead, but some snapshot may see it */
	TransactionId last_delete;
} SegmentCensus;

/* One step. */
typedef struct Rotation
{
	const QueueTable *table;
	QueueRing  *ring;
	TableWork  *work;
	bool		force;
	bool		full;			/* the current segment */
	QueueRotationStep *step;
	StringInfo	report;
} Rotation;

static HTAB *works = NULL;

/* for errors: the queue table at work, or "" */
static char current_table[NAMEDATALEN];

/* truncated by the open transaction */
static QueueRing *truncated_ring = NULL;
static int	truncated_segment;

/* ---------- what is remembered ---------- */

static TableWork *
find_work(Oid queue_table)
{
	return queue_table_state(&works, "queue rotation", sizeof(TableWork),
							 queue_table);
}

static void
forget_segment(SegmentWork *work)
{
	if (work->writers != NULL)
		pfree(work->writers);
	memset(work, 0, sizeof(SegmentWork));
}

static void
forget_table(void *state)
{
	TableWork  *work = (TableWork *) state;

	for (int i = 0; i < QUEUE_SEGMENTS; i++)
		forget_segment(&work->segments[i]);
}

static void
report(Rotation *rotation, int segment, const char *what)
{
	if (rotation->report == NULL)
		return;
	if (rotation->report->len > 0)
		appendStringInfoString(rotation->report, ", ");
	appendStringInfo(rotation->report, "%d %s", segment, what);
}

/* ---------- looking at rows ---------- */

static void
count_tuple(SegmentCensus *census, HeapTuple tuple, TransactionId horizon,
			Buffer buffer)
{
	TransactionId xmax;

	switch (HeapTupleSatisfiesVacuum(tuple, horizon, buffer))
	{
		case HEAPTUPLE_DEAD:
			census->num_dead++;
			break;
		case HEAPTUPLE_RECENTLY_DEAD:
			census->num_dead++;
			census->any_recent = true;
			xmax = HeapTupleHeaderGetUpdateXid(tuple->t_data);
			if (!TransactionIdIsValid(census->last_delete) ||
				TransactionIdPrecedes(census->last_delete, xmax))
				census->last_delete = xmax;
			break;
		default:
			census->num_live++;
			break;
	}
}

static void
count_page(SegmentCensus *census, Relation rel, BlockNumber block,
		   TransactionId horizon, BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block,
											RBM_NORMAL, strategy);
	Page		page;
	OffsetNumber max;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	max = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= max; offset++)
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleData tuple;

		if (ItemIdIsDead(item))
			census->num_dead++;
		if (!ItemIdIsNormal(item))
			continue;
		ItemPointerSet(&tuple.t_self, block, offset);
		tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
		tuple.t_len = ItemIdGetLength(item);
		tuple.t_tableOid = RelationGetRelid(rel);
		count_tuple(census, &tuple, horizon, buffer);
	}
	UnlockReleaseBuffer(buffer);
}

/*
 * Look at the rows from a block on, to the first block that has one which is
 * not dead, or to the end.
 */
static void
take_census(SegmentCensus *census, Relation rel, BlockNumber from,
			BlockNumber end, bool to_the_end)
{
	TransactionId horizon = GetOldestNonRemovableTransactionId(rel);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);

	memset(census, 0, sizeof(SegmentCensus));
	census->stopped_at = end;
	for (BlockNumber block = from; block < end; block++)
	{
		CHECK_FOR_INTERRUPTS();
		count_page(census, rel, block, horizon, strategy);
		if (census->num_live > 0 && census->stopped_at == end)
			census->stopped_at = block;
		if (census->num_live > 0 && !to_the_end)
			break;
	}
	FreeAccessStrategy(strategy);
}

/*
 * Open a segment without waiting; NULL: not now.  What the cache says of it is
 * read again once it is locked.
 */
static Relation
open_segment(Rotation *rotation, int segment, LOCKMODE mode)
{
	Oid			relid = rotation->table->ready[segment].relid;
	Relation	rel = NULL;

	if (!OidIsValid(relid))
		return NULL;
	if (!ConditionalLockRelationOid(relid, mode))
	{
		rotation->step->pending = true;
		return NULL;
	}
	rotation->table = queue_catalog_find_table(rotation->table->relid, false);
	if (rotation->table->ready[segment].relid == relid)
		rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(relid, mode);
		return NULL;
	}
	if (rel->rd_rel->relkind != RELKIND_RELATION ||
		rel->rd_rel->relam != HEAP_TABLE_AM_OID)
	{
		relation_close(rel, mode);
		return NULL;
	}
	return rel;
}

/* ---------- draining (S3) ---------- */

/*
 * Who holds a lock on the segment now and may have chosen it before it was
 * closed.  Those who come later have read that it is closed, so that the
 * list can only get shorter, whatever goes on.
 */
static void
list_writers(SegmentWork *work, Oid relid)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	int			count;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	holders = GetLockConflicts(&tag, ShareLock, &count);
	work->writers = MemoryContextAlloc(TopMemoryContext,
									   Max(count, 1) * sizeof(VirtualTransactionId));
	memcpy(work->writers, holders, count * sizeof(VirtualTransactionId));
	work->num_writers = count;
}

static bool
is_drained(SegmentWork *work)
{
	int			left = 0;

	for (int i = 0; i < work->num_writers; i++)
	{
		if (!VirtualXactLock(work->writers[i], false))
			work->writers[left++] = work->writers[i];
	}
	work->num_writers = left;
	work->drained = left == 0;
	return work->drained;
}

/* ---------- moving messages on (E3) ---------- */

static QueueDesc *
find_queue_of(Rotation *rotation, const QueueMessage *message)
{
	Oid			oid;

	oid = queue_catalog_queue_by_id(rotation->table->relid,
									DatumGetInt32(message->values[QUEUE_COL_QUEUE_ID]));
	if (!OidIsValid(oid) ||
		!ConditionalLockRelationOid(oid, RowExclusiveLock))
		return NULL;
	return queue_catalog_find(oid, true);
}

/* Move the message in the track's slot, if it is free to go. */
static bool
move_row(Rotation *rotation, QueueTrackLook *track, QueueDesc *queue)
{
	QueueLook	look;
	QueueCandidate *candidate = &track->candidate;
	QueueMessage copy;
	QueueVerdict verdict;

	queue_look_init(&look);
	look.queue = queue;
	look.changes = true;
	look.now = queue_clock_now();
	look.dirty.xmin = look.dirty.xmax = InvalidTransactionId;
	look.local = queue_message_head(rotation->table, &candidate->message);
	queue_xact_register(look.local);
	queue_look_refresh(&look);
	verdict = queue_look_judge(&look, track);
	if (verdict != QUEUE_VERDICT_DELIVER && verdict != QUEUE_VERDICT_EXPIRE &&
		verdict != QUEUE_VERDICT_EXHAUST &&
		(verdict != QUEUE_VERDICT_STOP || candidate->not_before == 0))
		return false;
	if (queue_look_row_lock(track->slot) != QUEUE_ROW_UNLOCKED ||
		!queue_look_is_settled(&look, track))
		return false;

	if (queue_take_row(&look, track) != TM_Ok)
		return false;
	queue_look_reread_attempts(&look, candidate);
	copy = candidate->message;
	copy.values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(candidate->attempts);
	queue_message_relocate(rotation->table, &copy,
						   candidate->not_before > look.now ?
						   candidate->not_before : 0);
	return true;
}

/* Move what is live, up to a bound; true if a row was moved. */
static bool
move_messages(Rotation *rotation, Relation rel, int segment)
{
	SnapshotData dirty;
	TableScanDesc scan;
	QueueTrackLook track;
	int			moved = 0;
	Oid			save_user;
	int			save_context;

	if (!ConditionalLockRelationOid(RelationGetRelid(rel), RowExclusiveLock))
		return false;
	InitDirtySnapshot(dirty);
	memset(&track, 0, sizeof(track));
	track.store.rel = rel;
	track.store.leaf = &rotation->table->ready[segment];
	track.store.track = segment;
	track.changed = true;
	track.slot = table_slot_create(rel, NULL);

	/* triggers of others run as the owner */
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(rotation->table->owner,
						   save_context | SECURITY_RESTRICTED_OPERATION);
	PushActiveSnapshot(GetTransactionSnapshot());
	scan = table_beginscan(rel, &dirty, 0, NULL);
	while (moved < MAX_MOVED &&
		   table_scan_getnextslot(scan, ForwardScanDirection, track.slot))
	{
		QueueDesc  *queue;

		CHECK_FOR_INTERRUPTS();
		if (TransactionIdIsValid(dirty.xmin) ||
			TransactionIdIsValid(dirty.xmax))
			continue;
		queue_message_from_slot(&track.candidate.message, rotation->table,
								track.slot);
		queue = find_queue_of(rotation, &track.candidate.message);
		if (queue != NULL && move_row(rotation, &track, queue))
			moved++;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(track.slot);
	PopActiveSnapshot();
	SetUserIdAndSecContext(save_user, save_context);
	return moved > 0;
}

/* Is there a segment to go on to, or soon to be? */
static bool
has_free_segment(Rotation *rotation)
{
	uint64		word = queue_ring_read(rotation->ring);

	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (OidIsValid(rotation->table->ready[i].relid) &&
			!queue_ring_is_used(word, i))
			return true;
	}
	return false;
}

/*
 * A closed segment has rows that are not dead.  Shall they be moved on?  Not
 * while there is room, unless it has outgrown its size by far; nor before it
 * has been stuck for a while, nor if most of it would have to be moved, nor if
 * old snapshots keep it anyway.
 */
static bool
should_move(Rotation *rotation, Relation rel, SegmentWork *work)
{
	TimestampTz now = GetCurrentTimestamp();
	SegmentCensus census;

	if (rotation->force)
		return true;
	if ((!rotation->full || has_free_segment(rotation)) &&
		RelationGetNumberOfBlocks(rel) / OUTGROWN <
		(BlockNumber) queue_guc_segment_blocks)
		return false;
	if (work->stuck_since == 0)
	{
		work->stuck_since = now;
		work->stuck_ms = MIN_STUCK_MS;
	}
	if (!TimestampDifferenceExceeds(work->stuck_since, now, work->stuck_ms))
	{
		/* after a refusal the heartbeat will do */
		rotation->step->pending |= work->stuck_ms == MIN_STUCK_MS;
		return false;
	}
	take_census(&census, rel, 0, RelationGetNumberOfBlocks(rel), true);
	if ((rotation->table->eager || !census.any_recent) &&
		census.num_live * MOVE_AT_MOST_ONE_IN <=
		census.num_live + census.num_dead)
		return true;
	work->stuck_since = now;
	work->stuck_ms = Min(work->stuck_ms * 2, MAX_STUCK_MS);
	return false;
}

/* ---------- a closed segment (S3, S4) ---------- */

static void
begin_segment(Rotation *rotation, SegmentWork *work, int segment)
{
	const QueueLeaf *leaf = &rotation->table->ready[segment];
	uint64		uses = queue_ring_uses(rotation->ring, segment);

	if (work->known && work->uses == uses &&
		work->fingerprint == leaf->fingerprint)
		return;
	forget_segment(work);
	work->known = true;
	work->uses = uses;
	work->fingerprint = leaf->fingerprint;
	list_writers(work, leaf->relid);
}

static void
set_emptied(Rotation *rotation, SegmentWork *work, Relation rel, int segment)
{
	uint64		word = queue_ring_read(rotation->ring);
	QueueSegmentState state = work->num_blocks == 0 ? QUEUE_SEGMENT_FREE :
	QUEUE_SEGMENT_EMPTY;

	/* whoever has put a row there meanwhile has counted a use */
	if (queue_ring_state(word, segment) != QUEUE_SEGMENT_CLOSED ||
		queue_ring_uses(rotation->ring, segment) != work->uses ||
		RelationGetNumberOfBlocks(rel) != work->num_blocks ||
		!queue_ring_set_state(rotation->ring, &word, segment, state))
	{
		forget_segment(work);
		rotation->step->pending = true;
		return;
	}
	rotation->step->progress = true;
	report(rotation, segment, state == QUEUE_SEGMENT_FREE ? "free" : "empty");
}

static void
look_at_closed(Rotation *rotation, int segment)
{
	SegmentWork *work = &rotation->work->segments[segment];
	SegmentCensus census;
	Relation	rel = open_segment(rotation, segment, AccessShareLock);

	if (rel == NULL)
		return;
	begin_segment(rotation, work, segment);
	if (!work->drained && !is_drained(work))
	{
		rotation->step->pending = true;
		report(rotation, segment, "not drained");
		table_close(rel, AccessShareLock);
		return;
	}
	work->num_blocks = RelationGetNumberOfBlocks(rel);
	take_census(&census, rel, work->next_block, work->num_blocks, false);
	if (TransactionIdIsValid(census.last_delete) &&
		(!TransactionIdIsValid(work->last_delete) ||
		 TransactionIdPrecedes(work->last_delete, census.last_delete)))
		work->last_delete = census.last_delete;
	if (census.stopped_at > work->next_block)
	{
		rotation->step->progress = true;
		work->stuck_since = 0;
	}
	work->next_block = census.stopped_at;
	if (census.num_live == 0)
		set_emptied(rotation, work, rel, segment);
	else if (should_move(rotation, rel, work) &&
			 move_messages(rotation, rel, segment))
	{
		rotation->step->progress = rotation->step->moved = true;
		report(rotation, segment, "moved");
	}
	else
		report(rotation, segment, "in use");
	table_close(rel, AccessShareLock);
}

/* ---------- an empty segment (S6) ---------- */

/* Can some snapshot still see rows of the segment? */
static bool
is_visible_to_some(Rotation *rotation, SegmentWork *work, Relation rel)
{
	return !rotation->table->eager && work->known &&
		TransactionIdIsValid(work->last_delete) &&
		!TransactionIdPrecedes(work->last_delete,
							   GetOldestNonRemovableTransactionId(rel));
}

/*
 * The lock is ours.  Is the segment what it was when every row in it was found
 * dead?  If that is not known, all rows are looked at once more.
 */
static bool
is_still_empty(Rotation *rotation, SegmentWork *work, Relation rel,
			   int segment)
{
	const QueueLeaf *leaf = &rotation->table->ready[segment];
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	SegmentCensus census;

	if (work->known && leaf->published &&
		work->fingerprint == leaf->fingerprint &&
		work->num_blocks == blocks &&
		work->uses == queue_ring_uses(rotation->ring, segment))
		return true;
	take_census(&census, rel, 0, blocks, false);
	return census.num_live == 0 &&
		(rotation->table->eager || !census.any_recent);
}

static void
truncate_leaf(Rotation *rotation, Relation rel)
{
	Oid			save_user;
	int			save_context;

	/* triggers of others run as the owner */
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(rotation->table->owner,
						   save_context | SECURITY_RESTRICTED_OPERATION);
	PushActiveSnapshot(GetTransactionSnapshot());
	queue_truncate(list_make1(rel), list_make1_oid(RelationGetRelid(rel)));
	PopActiveSnapshot();
	SetUserIdAndSecContext(save_user, save_context);
}

static void
look_at_empty(Rotation *rotation, int segment)
{
	SegmentWork *work = &rotation->work->segments[segment];
	Relation	rel = open_segment(rotation, segment, AccessShareLock);
	uint64		word;
	bool		visible;

	if (rel == NULL)
		return;
	visible = is_visible_to_some(rotation, work, rel);
	table_close(rel, AccessShareLock);
	if (visible)
	{
		report(rotation, segment, "visible to a snapshot");
		rotation->step->pending = true;
		return;
	}
	rel = open_segment(rotation, segment, AccessExclusiveLock);
	if (rel == NULL)
	{
		report(rotation, segment, "locked");
		return;
	}
	word = queue_ring_read(rotation->ring);
	if (!is_still_empty(rotation, work, rel, segment))
	{
		/* somebody has written to it, or a snapshot still sees it */
		forget_segment(work);
		(void) queue_ring_set_state(rotation->ring, &word, segment,
									QUEUE_SEGMENT_CLOSED);
		rotation->step->pending = true;
		report(rotation, segment, "closed again");
		table_close(rel, AccessExclusiveLock);
		return;
	}
	truncated_ring = rotation->ring;
	truncated_segment = segment;
	truncate_leaf(rotation, rel);
	table_close(rel, NoLock);
	forget_segment(work);
	rotation->step->progress = rotation->step->truncated = true;
	report(rotation, segment, "truncated");
}

/* The locks go after this, so nobody looks before the segment is free. */
static void
rotation_callback(XactEvent event, void *arg)
{
	uint64		word;

	if (truncated_ring == NULL ||
		(event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT))
		return;
	if (event == XACT_EVENT_COMMIT)
	{
		word = queue_ring_read(truncated_ring);
		while (queue_ring_state(word, truncated_segment) ==
			   QUEUE_SEGMENT_EMPTY &&
			   !queue_ring_set_state(truncated_ring, &word,
									 truncated_segment, QUEUE_SEGMENT_FREE))
			word = queue_ring_read(truncated_ring);
	}
	truncated_ring = NULL;
}

void
queue_rotation_init(void)
{
	RegisterXactCallback(rotation_callback, NULL);
}

/* ---------- the current segment ---------- */

static bool
current_is_full(Rotation *rotation, int current)
{
	Relation	rel = open_segment(rotation, current, AccessShareLock);
	bool		full;

	if (rel == NULL)
		return false;
	full = RelationGetNumberOfBlocks(rel) >=
		(BlockNumber) queue_guc_segment_blocks;
	table_close(rel, AccessShareLock);
	return full;
}

/* Go on to a free segment if the current one is full. */
static void
turn_ring(Rotation *rotation)
{
	uint64		word = queue_ring_read(rotation->ring);
	int			current = queue_ring_current(word);

	if (!rotation->full)
		return;
	for (int i = 1; i < QUEUE_SEGMENTS; i++)
	{
		int			next = (current + i) % QUEUE_SEGMENTS;

		if (queue_ring_state(word, next) != QUEUE_SEGMENT_FREE ||
			!OidIsValid(rotation->table->ready[next].relid))
			continue;
		if (queue_ring_turn(rotation->ring, &word, next))
		{
			forget_segment(&rotation->work->segments[current]);
			rotation->step->progress = true;
			report(rotation, next, "current");
		}
		else
			rotation->step->pending = true;
		return;
	}

	/* the next insert asks again */
	if (pg_atomic_exchange_u32(&rotation->ring->turn_wanted, 0) != 0)
		rotation->step->pending = true;
	report(rotation, current, "full");
}

void
queue_rotation_step(Oid queue_table, bool force, QueueRotationStep *step,
					StringInfo out)
{
	Rotation	rotation;
	uint64		word;

	memset(step, 0, sizeof(*step));
	memset(&rotation, 0, sizeof(rotation));
	rotation.force = force;
	rotation.step = step;
	rotation.report = out;

	/* one at a time, and not beside DDL */
	if (!ConditionalLockRelationOid(queue_table, ShareUpdateExclusiveLock))
	{
		step->pending = true;
		return;
	}
	rotation.table = queue_catalog_find_table(queue_table, true);
	if (rotation.table == NULL)
		return;
	rotation.ring = queue_catalog_ring(rotation.table);
	if (rotation.ring == NULL)
		return;
	rotation.work = find_work(queue_table);
	word = queue_ring_read(rotation.ring);
	rotation.full = current_is_full(&rotation, queue_ring_current(word));

	for (int i = 0; i < QUEUE_SEGMENTS && !step->moved; i++)
	{
		if (queue_ring_state(word, i) == QUEUE_SEGMENT_CLOSED)
			look_at_closed(&rotation, i);
	}
	turn_ring(&rotation);
	word = queue_ring_read(rotation.ring);
	for (int i = 0; i < QUEUE_SEGMENTS && !step->truncated; i++)
	{
		if (queue_ring_state(word, i) == QUEUE_SEGMENT_EMPTY)
			look_at_empty(&rotation, i);
	}
}

/* ---------- the monitor's job ---------- */

/* When to look again, by what a step has found. */
static void
plan_next(TableWork *work, const QueueRotationStep *step, TimestampTz now)
{
	if (step->progress)
		work->nap_ms = MIN_NAP_MS;
	else
		work->nap_ms = Min(Max(work->nap_ms * 2, MIN_NAP_MS),
						   step->pending ? MAX_PENDING_NAP_MS : MAX_NAP_MS);
	work->next = TimestampTzPlusMilliseconds(now, work->nap_ms);
}

/* Is there anything but the current segment and free ones? */
static bool
has_work(const QueueTable *table, QueueRing *ring)
{
	uint64		word = queue_ring_read(ring);

	if (pg_atomic_read_u32(&ring->turn_wanted) != 0)
		return true;
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (OidIsValid(table->ready[i].relid) &&
			(queue_ring_state(word, i) == QUEUE_SEGMENT_CLOSED ||
			 queue_ring_state(word, i) == QUEUE_SEGMENT_EMPTY))
			return true;
	}
	return false;
}

static void
begin_transaction(void)
{
	StartTransactionCommand();
	XactIsoLevel = XACT_READ_COMMITTED;
	XactReadOnly = false;
}

/* Steps of one table, each in its own transaction, while they make progress. */
static TimestampTz
rotate_table(void *state)
{
	TableWork  *work = (TableWork *) state;
	Oid			queue_table = work->queue_table;
	const QueueTable *table;
	QueueRing  *ring = NULL;
	TimestampTz now = queue_clock_now();
	QueueRotationStep step;

	begin_transaction();
	table = queue_catalog_find_table(queue_table, true);
	if (table != NULL)
	{
		strlcpy(current_table, get_rel_name(queue_table), NAMEDATALEN);
		ring = queue_catalog_ring(table);
	}
	if (ring == NULL || !has_work(table, ring))
	{
		CommitTransactionCommand();
		work->next = 0;
		work->nap_ms = 0;
		return DT_NOEND;
	}
	if (work->next > now)
	{
		CommitTransactionCommand();
		return work->next;
	}
	for (;;)
	{
		queue_rotation_step(queue_table, false, &step, NULL);
		CommitTransactionCommand();
		if (!step.truncated && !step.moved)
			break;
		begin_transaction();
	}
	plan_next(work, &step, now);
	return work->next;
}

TimestampTz
queue_rotation_job(void)
{
	TimestampTz next = DT_NOEND;
	List	   *tables;
	ListCell   *cell;

	if (!queue_guc_rotation)
		return DT_NOEND;
	tables = queue_table_state_list();
	queue_table_state_prune(works, tables, forget_table);
	foreach(cell, tables)
	{
		TableWork  *work = find_work(lfirst_oid(cell));
		TimestampTz table_next = DT_NOEND;
		int			delay = queue_table_state_run("rotation", current_table,
												  &work->errors, rotate_table,
												  work, &table_next);

		/* an error: the others go on, this one later, from the start */
		if (delay > 0)
		{
			forget_table(work);
			table_next = work->next =
				TimestampTzPlusMilliseconds(queue_clock_now(), delay);
		}
		next = Min(next, table_next);
	}
	return next;
}
