/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  The monitor's jobs for messages whose time has come.
 *
 *	due			waiting messages become ready, in the order of their due times
 *	expiry		expired messages go to their exception queue
 *	journal		processed messages are deleted when kept long enough
 *	attempts	failed attempts are written into the rows
 *
 * When there is something to do is told through the queue table's ring: the
 * earliest time at which the monitor has to look.  Sessions lower it when
 * their messages are visible; a job takes it off, looks, and puts back what it
 * has found.  A monitor that is new looks at everything once.
 *
 * A move is like any change of state (rule E3): noted, deleted, stored, in one
 * transaction.  A transaction moves a bounded number of messages of one queue
 * table, as its owner, and waits for no lock: what is locked or in progress is
 * left for later.  A queue table in which an error occurs is left alone for a
 * growing time, and the others go on.
 *
 * Due messages are found through the index, from the head's floor on.
 * Expired and kept ones have no index: all rows are read, but only when one's
 * time has come, and for a small part of the time (SWEEP_SHARE).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "attempts.h"
#include "catalog.h"
#include "clock.h"
#include "look.h"
#include "maintenance.h"
#include "message_store.h"
#include "ring.h"
#include "table_state.h"
#include "take.h"
#include "worker.h"

/* messages moved in one transaction, and transactions of one turn */
#define MAX_MOVED			200
#define MAX_BATCHES			10

/* blocks read in one transaction of a sweep */
#define SWEEP_BLOCKS		512

/* after a sweep, this many times as long without one; and no sooner than */
#define SWEEP_SHARE			20
#define MIN_SWEEP_PAUSE_MS	1000

/* what could not be had is tried again after this long, doubled in a sweep */
#define RETRY_MS			1000
#define MAX_RETRY_MS		60000

/* a message that can be delivered is left to those who dequeue for so long */
#define ATTEMPT_AGE_MS		1000

typedef enum Job
{
	/* as their times in the ring */
	JOB_DUE = QUEUE_TIME_DUE,
	JOB_EXPIRY = QUEUE_TIME_EXPIRY,
	JOB_JOURNAL = QUEUE_TIME_PURGE,
	JOB_ATTEMPTS,
	NUM_JOBS
} Job;

static const char *const job_names[NUM_JOBS] = {
	"due messages", "expiration", "journal", "failed attempts"
};

/* How one job fares with one queue table. */
typedef struct JobWork
{
	bool		known;			/* the time in the ring is ours */
	TimestampTz paused_until;	/* of the system's clock */
	QueueWorkerErrors errors;

	/* a sweep under way, or 0: expiry and journal */
	bool		sweeping;
	int			leaf;
	BlockNumber block;
	TimestampTz next;			/* first that is not over */
	bool		left;			/* something could not be had */
	bool		moved;
	int			retry_ms;
	int64		spent;			/* microseconds */

	int			position;		/* among the failed attempts */
} JobWork;

typedef struct TableWork
{
	Oid			queue_table;	/* hash key */
	JobWork		jobs[NUM_JOBS];
} TableWork;

/* One transaction. */
typedef struct Batch
{
	const QueueTable *table;
	QueueRing  *ring;
	TimestampTz now;
	int			moved;
	Oid			save_user;
	int			save_context;

	/* the queue looked at last */
	int32		queue_id;
	QueueDesc  *queue;			/* NULL: not to be had */
	QueueLook	look;
} Batch;

static HTAB *works = NULL;

/* for errors: the queue table at work, or "" */
static char current_table[NAMEDATALEN];

/* ---------- one queue table ---------- */

static TableWork *
find_work(Oid queue_table)
{
	return queue_table_state(&works, "queue maintenance", sizeof(TableWork),
							 queue_table);
}

/* A time of the system's clock, as the queue's clock has it. */
static TimestampTz
at_system_time(TimestampTz at)
{
	return queue_clock_now() + Max(at - GetCurrentTimestamp(), 0);
}

/* Begin a transaction for a queue table; false, and none: it is gone. */
static bool
begin_batch(Batch *batch, Oid queue_table)
{
	memset(batch, 0, offsetof(Batch, look));
	batch->queue_id = -1;
	StartTransactionCommand();
	XactIsoLevel = XACT_READ_COMMITTED;
	XactReadOnly = false;
	batch->table = queue_catalog_find_table(queue_table, true);
	if (batch->table == NULL)
	{
		CommitTransactionCommand();
		return false;
	}
	strlcpy(current_table, get_rel_name(queue_table), NAMEDATALEN);
	batch->ring = queue_catalog_ring(batch->table);
	batch->now = queue_clock_now();

	/* triggers of others run as the owner, none of them at the commit */
	GetUserIdAndSecContext(&batch->save_user, &batch->save_context);
	SetUserIdAndSecContext(batch->table->owner,
						   batch->save_context |
						   SECURITY_RESTRICTED_OPERATION);
	PushActiveSnapshot(GetTransactionSnapshot());
	return true;
}

static void
end_batch(Batch *batch)
{
	PopActiveSnapshot();
	SetUserIdAndSecContext(batch->save_user, batch->save_context);
	CommitTransactionCommand();
	current_table[0] = '\0';
}

static bool
lock_leaf(const QueueLeaf *leaf)
{
	return !OidIsValid(leaf->relid) ||
		ConditionalLockRelationOid(leaf->relid, RowExclusiveLock);
}

/* Lock, without waiting, what messages may have to be stored in. */
static bool
lock_targets(Batch *batch)
{
	int			current = queue_ring_current(queue_ring_read(batch->ring));

	return lock_leaf(&batch->table->ready[current]) &&
		lock_leaf(&batch->table->waiting) &&
		lock_leaf(&batch->table->expired);
}

/* Look at a queue from now on; false: it is gone, or locked. */
static bool
use_queue(Batch *batch, Oid oid, int32 id)
{
	batch->queue_id = id;
	batch->queue = NULL;
	if (!OidIsValid(oid) ||
		!ConditionalLockRelationOid(oid, RowExclusiveLock))
		return false;
	batch->queue = queue_catalog_find(oid, true);
	if (batch->queue == NULL)
		return false;
	queue_look_init(&batch->look);
	batch->look.queue = batch->queue;
	batch->look.changes = true;
	batch->look.now = batch->now;
	batch->look.local = queue_message_head_of_queue(batch->queue);
	return true;
}

/* Likewise, by the id that is in a row. */
static bool
use_queue_by_id(Batch *batch, int32 id)
{
	if (batch->queue_id == id)
		return batch->queue != NULL;
	return use_queue(batch, queue_catalog_queue_by_id(batch->table->relid, id),
					 id);
}

/* ---------- moving a message (E3) ---------- */

/* The exception queue, if its leaf can be locked at once; else NULL. */
static QueueDesc *
find_exception_queue(const QueueDesc *queue, const QueueMessage *message)
{
	QueueDesc  *found = queue_take_exception_queue(queue, message);

	return lock_leaf(&found->table->expired) ? found : NULL;
}

/* Store it again: ready, or waiting until it may be delivered. */
static void
store_again(QueueLook *look, const QueueTrackLook *track,
			QueueMessage *message)
{
	const QueueCandidate *candidate = &track->candidate;
	bool		waited = track->store.track == QUEUE_TRACK_DUE;
	TimestampTz until = candidate->not_before;

	if (waited)
		until = Max(until, candidate->key.major);
	if (until <= look->now)
		until = 0;

	/* where the order is that of transactions its place is the due time */
	if (waited && until == 0 &&
		QUEUE_SORT_HAS_ORDER_AT(look->queue->table->sort))
	{
		message->values[QUEUE_COL_ORDER_AT] =
			Int64GetDatum(candidate->key.major);
		message->nulls[QUEUE_COL_ORDER_AT] = false;
	}
	queue_message_relocate(look->queue->table, message, until);
}

static bool
has_failed(QueueVerdict verdict)
{
	return verdict == QUEUE_VERDICT_EXPIRE ||
		verdict == QUEUE_VERDICT_EXHAUST;
}

/* Move the track's candidate to where it belongs.  TM_Ok: done. */
static TM_Result
move_message(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	const QueueDesc *queue = look->queue;
	QueueDesc  *exception = NULL;
	QueueMessage copy;
	TM_Result	result;

	if (has_failed(candidate->verdict) &&
		(exception = find_exception_queue(queue,
										  &candidate->message)) == NULL)
		return TM_WouldBlock;
	result = queue_take_row(look, track);
	if (result != TM_Ok)
		return result;
	queue_look_reread_attempts(look, candidate);
	copy = candidate->message;
	copy.values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(candidate->attempts);
	if (!has_failed(candidate->verdict))
	{
		store_again(look, track, &copy);
		return TM_Ok;
	}
	if (exception == NULL)
		exception = queue_take_exception_queue(queue, &copy);
	queue_message_expire(queue, exception,
						 candidate->verdict == QUEUE_VERDICT_EXPIRE ?
						 "TIME_EXPIRATION" : "MAX_RETRY_EXCEEDED", &copy);
	return TM_Ok;
}

/*
 * The verdict on the row in the track's slot, found outside of a look; PASS:
 * it is not free to go.
 */
static QueueVerdict
judge_row(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;

	look->ignore_due = true;
	queue_xact_register(look->local);
	queue_look_refresh(look);
	candidate->verdict = queue_look_judge(look, track);
	if (candidate->verdict == QUEUE_VERDICT_STOP &&
		candidate->not_before > look->now)
		candidate->verdict = QUEUE_VERDICT_DELIVER;
	if ((candidate->verdict != QUEUE_VERDICT_DELIVER &&
		 !has_failed(candidate->verdict)) ||
		queue_look_row_lock(track->slot) != QUEUE_ROW_UNLOCKED ||
		!queue_look_is_settled(look, track))
		return QUEUE_VERDICT_PASS;
	return candidate->verdict;
}

/* ---------- due messages ---------- */

static void
promote_hand(Batch *batch, const QueueHeadKey *hand)
{
	QueueLook  *look = &batch->look;
	QueueTrackLook track;

	if (!queue_look_at_hand(look, hand, &track))
		return;
	if (move_message(look, &track) == TM_Ok)
	{
		queue_look_hand_taken(look, hand);
		batch->moved++;
	}
	else
		queue_look_hand_back(look, hand);
	queue_look_close_track(&track);
}

/* Move what is due in the batch's queue, as many as may be moved. */
static void
promote_queue(Batch *batch)
{
	QueueLook  *look = &batch->look;
	QueueTrackLook *track;
	QueueHeadKey hand;

	look->only_due = true;
	look->waits = true;
	look->expected = MAX_MOVED;
	while (batch->moved < MAX_MOVED)
	{
		QueueAccept accept = queue_look_next(look, &track, &hand);
		TM_Result	result;

		if (accept == QUEUE_ACCEPT_NOTHING)
			break;
		if (accept == QUEUE_ACCEPT_HAND)
		{
			promote_hand(batch, &hand);
			continue;
		}
		result = move_message(look, track);
		if (result == TM_Ok)
		{
			queue_look_taken(track);
			batch->moved++;
		}
		else if (result == TM_WouldBlock)
		{
			look->left = true;
			queue_look_stop(track);
		}
		else
			queue_look_retry(look, track);
	}
	queue_look_end(look);
}

/* All queues of a table; when the next message is due. */
static TimestampTz
promote_queues(Batch *batch)
{
	TimestampTz next = DT_NOEND;
	TimestampTz later = TimestampTzPlusMilliseconds(batch->now, RETRY_MS);
	ListCell   *cell;

	foreach(cell, queue_catalog_queues(batch->table->relid))
	{
		Oid			oid = lfirst_oid(cell);
		QueueDesc  *queue = queue_catalog_find(oid, true);

		if (queue == NULL || queue->is_exception)
			continue;
		if (batch->moved >= MAX_MOVED)
			return batch->now;
		if (!use_queue(batch, oid, queue->id))
		{
			next = Min(next, later);
			continue;
		}
		promote_queue(batch);
		next = Min(next, batch->look.next_due);
		if (batch->look.left)
			next = Min(next, later);
	}
	return batch->moved >= MAX_MOVED ? batch->now : next;
}

static TimestampTz
run_due(void *state)
{
	TableWork  *work = (TableWork *) state;
	JobWork    *job = &work->jobs[JOB_DUE];
	TimestampTz next = DT_NOEND;
	Batch		batch;

	for (int i = 0; i < MAX_BATCHES; i++)
	{
		if (!begin_batch(&batch, work->queue_table))
			return DT_NOEND;
		next = queue_ring_time(batch.ring, QUEUE_TIME_DUE);
		if (job->known && next > batch.now)
		{
			end_batch(&batch);
			return next;
		}
		if (!lock_targets(&batch))
		{
			end_batch(&batch);
			return TimestampTzPlusMilliseconds(batch.now, RETRY_MS);
		}
		job->known = true;
		queue_ring_take_time(batch.ring, QUEUE_TIME_DUE);
		next = promote_queues(&batch);
		end_batch(&batch);
		(void) queue_ring_tell_time(batch.ring, QUEUE_TIME_DUE, next);
		if (batch.ring != NULL)
			next = queue_ring_time(batch.ring, QUEUE_TIME_DUE);
		if (next > batch.now)
			break;
	}
	return next;
}

/* ---------- sweeps ---------- */

/* The leaves of a sweep, one after the other; NULL: no more. */
static const QueueLeaf *
leaf_of_sweep(const QueueTable *table, Job kind, int number)
{
	if (number < QUEUE_SEGMENTS)
		return kind == JOB_EXPIRY ? &table->ready[number] :
			&table->processed[number];
	return kind == JOB_EXPIRY && number == QUEUE_SEGMENTS ?
		&table->waiting : NULL;
}

/* A value of the row in the slot; false: NULL. */
static bool
get_column(const Batch *batch, TupleTableSlot *slot, QueueColumn column,
		   Datum *value)
{
	AttrNumber	attnum = batch->table->attnum[column];
	bool		isnull = true;

	if (attnum != InvalidAttrNumber)
		*value = slot_getattr(slot, attnum, &isnull);
	return !isnull;
}

/* When is the row's time over?  False: never. */
static bool
end_of_row(Batch *batch, Job kind, TupleTableSlot *slot, TimestampTz *end)
{
	Datum		value;

	if (kind == JOB_EXPIRY)
	{
		if (!get_column(batch, slot, QUEUE_COL_EXPIRES_AT, &value))
			return false;
		*end = DatumGetTimestampTz(value);
		return true;
	}
	if (!get_column(batch, slot, QUEUE_COL_DEQ_TIME, &value))
		return false;
	*end = DatumGetTimestampTz(value);
	if (!get_column(batch, slot, QUEUE_COL_QUEUE_ID, &value) ||
		!use_queue_by_id(batch, DatumGetInt32(value)) ||
		batch->queue->retention_forever)
		return false;
	*end += queue_interval_to_usecs(&batch->queue->retention);
	return true;
}

/* A row whose time is over; false: it could not be had. */
static bool
end_row(Batch *batch, Job kind, QueueTrackLook *track)
{
	Datum		id;

	if (!get_column(batch, track->slot, QUEUE_COL_QUEUE_ID, &id) ||
		!use_queue_by_id(batch, DatumGetInt32(id)))
		return false;
	if (kind == JOB_JOURNAL)
		return queue_look_row_lock(track->slot) == QUEUE_ROW_UNLOCKED &&
			queue_take_delete(batch->queue, track) == TM_Ok;
	batch->look.dirty.xmin = batch->look.dirty.xmax = InvalidTransactionId;
	return has_failed(judge_row(&batch->look, track)) &&
		move_message(&batch->look, track) == TM_Ok;
}

static void
sweep_row(Batch *batch, JobWork *job, Job kind, QueueTrackLook *track,
		  bool in_progress)
{
	TimestampTz end;

	if (!end_of_row(batch, kind, track->slot, &end))
		return;
	if (end > batch->now)
		job->next = Min(job->next, end);
	else if (!in_progress && end_row(batch, kind, track))
	{
		batch->moved++;
		job->moved = true;
	}
	else
		job->left = true;
}

/* Look at a stretch of a leaf; true if it is done with. */
static bool
sweep_stretch(Batch *batch, JobWork *job, Job kind, const QueueLeaf *leaf,
			  Relation rel)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	BlockNumber count = Min(blocks - Min(job->block, blocks), SWEEP_BLOCKS);
	QueueTrackLook track;
	SnapshotData dirty;
	TableScanDesc scan;

	if (count == 0)
		return true;
	InitDirtySnapshot(dirty);
	memset(&track, 0, sizeof(track));
	track.store.rel = rel;
	track.store.leaf = leaf;
	track.store.track = job->leaf;
	track.slot = table_slot_create(rel, NULL);
	scan = table_beginscan_strat(rel, &dirty, 0, NULL, true, false);
	heap_setscanlimits(scan, job->block, count);
	while (batch->moved < MAX_MOVED &&
		   table_scan_getnextslot(scan, ForwardScanDirection, track.slot))
	{
		CHECK_FOR_INTERRUPTS();
		sweep_row(batch, job, kind, &track,
				  TransactionIdIsValid(dirty.xmin) ||
				  TransactionIdIsValid(dirty.xmax));
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(track.slot);

	/* what was moved is dead: the same stretch again if there was too much */
	if (batch->moved < MAX_MOVED)
		job->block += count;
	return job->block >= blocks;
}

/* One transaction's part of a sweep; false: it is at its end. */
static bool
sweep_part(Batch *batch, JobWork *job, Job kind)
{
	const QueueLeaf *leaf = leaf_of_sweep(batch->table, kind, job->leaf);
	Relation	rel = NULL;
	bool		done = true;

	if (leaf == NULL)
		return false;
	if (OidIsValid(leaf->relid) &&
		(kind != JOB_EXPIRY || job->leaf == QUEUE_SEGMENTS ||
		 queue_ring_is_used(queue_ring_read(batch->ring), job->leaf)))
	{
		if (!lock_leaf(leaf))
			job->left = true;
		else
			rel = try_relation_open(leaf->relid, NoLock);
	}
	if (rel != NULL)
	{
		if (rel->rd_rel->relkind == RELKIND_RELATION &&
			rel->rd_rel->relam == HEAP_TABLE_AM_OID)
			done = sweep_stretch(batch, job, kind, leaf, rel);
		relation_close(rel, NoLock);
	}
	if (done)
	{
		job->leaf++;
		job->block = 0;
	}
	return true;
}

/* A sweep is over: when is the next one? */
static void
end_sweep(JobWork *job, QueueRing *ring, Job kind, TimestampTz now)
{
	int64		pause = Max(job->spent * SWEEP_SHARE,
							MIN_SWEEP_PAUSE_MS * INT64CONST(1000));

	job->sweeping = false;
	job->paused_until = GetCurrentTimestamp() + pause;
	if (!job->left)
		job->retry_ms = 0;
	else
	{
		job->retry_ms = job->moved ? RETRY_MS :
			Min(Max(job->retry_ms * 2, RETRY_MS), MAX_RETRY_MS);
		job->next = Min(job->next,
						TimestampTzPlusMilliseconds(now, job->retry_ms));
	}
	(void) queue_ring_tell_time(ring, (QueueTime) kind, job->next);
}

static void
begin_sweep(JobWork *job, QueueRing *ring, Job kind)
{
	job->known = job->sweeping = true;
	job->leaf = 0;
	job->block = 0;
	job->next = DT_NOEND;
	job->left = job->moved = false;
	job->spent = 0;
	queue_ring_take_time(ring, (QueueTime) kind);
}

static TimestampTz
run_sweep(TableWork *work, Job kind)
{
	JobWork    *job = &work->jobs[kind];
	Batch		batch;

	for (int i = 0; i < MAX_BATCHES; i++)
	{
		TimestampTz begun = GetCurrentTimestamp();
		TimestampTz next;
		bool		more;

		if (!begin_batch(&batch, work->queue_table))
			return DT_NOEND;
		next = queue_ring_time(batch.ring, (QueueTime) kind);
		if (!job->sweeping && job->known && next > batch.now)
		{
			end_batch(&batch);
			return next;
		}
		if (!lock_targets(&batch))
		{
			end_batch(&batch);
			return TimestampTzPlusMilliseconds(batch.now, RETRY_MS);
		}
		if (!job->sweeping)
			begin_sweep(job, batch.ring, kind);
		more = sweep_part(&batch, job, kind);
		end_batch(&batch);
		job->spent += GetCurrentTimestamp() - begun;
		if (!more)
		{
			end_sweep(job, batch.ring, kind, batch.now);
			if (batch.ring != NULL)
				job->next = queue_ring_time(batch.ring, (QueueTime) kind);
			return Max(job->next, at_system_time(job->paused_until));
		}
	}
	return queue_clock_now();
}

static TimestampTz
run_expiry(void *state)
{
	return run_sweep((TableWork *) state, JOB_EXPIRY);
}

static TimestampTz
run_journal(void *state)
{
	return run_sweep((TableWork *) state, JOB_JOURNAL);
}

/* ---------- failed attempts (A1 to A4) ---------- */

/* Write the entry of the row in the track's slot; false: not now. */
static bool
write_attempt(Batch *batch, const QueueAttempt *attempt,
			  QueueTrackLook *track)
{
	QueueLook  *look = &batch->look;

	if (TransactionIdIsValid(look->dirty.xmin) ||
		TransactionIdIsValid(look->dirty.xmax))
		return false;
	switch (judge_row(look, track))
	{
		case QUEUE_VERDICT_DELIVER:

			/* a move takes it from those who dequeue, for a moment */
			if (track->candidate.not_before <= look->now &&
				!TimestampDifferenceExceeds(attempt->recorded_at,
											GetCurrentTimestamp(),
											ATTEMPT_AGE_MS))
				return false;
			break;
		case QUEUE_VERDICT_EXPIRE:
		case QUEUE_VERDICT_EXHAUST:
			break;
		default:
			return false;
	}
	if (move_message(look, track) != TM_Ok)
		return false;
	batch->moved++;
	return true;
}

/*
 * Find the message where the attempt was made: whoever moves it elsewhere
 * writes the attempts himself, and the entry is gone.  False: not now.
 */
static bool
settle_attempt(Batch *batch, const QueueAttempt *attempt)
{
	const QueueAttemptPlace *place = &attempt->place;
	const QueueLeaf *leaf = place->track == QUEUE_TRACK_DUE ?
	&batch->table->waiting : &batch->table->ready[place->track];
	QueueTrackLook track;
	bool		found = false;
	bool		settled = false;

	if (!use_queue_by_id(batch, attempt->key.queue_id))
		return false;
	if (queue_look_leaf_is_used(batch->queue, place->track))
	{
		memset(&track, 0, sizeof(track));
		if (!lock_leaf(leaf) ||
			!queue_store_open(&track.store, leaf, place->track,
							  RowExclusiveLock))
			return false;
		track.slot = table_slot_create(track.store.rel, NULL);
		track.open = track.changed = true;
		track.scan = queue_store_scan(&track.store, &batch->look.dirty,
									  &track.keys, batch->table->sort,
									  batch->queue->id, QUEUE_CONSUMER_NONE,
									  &place->lane, &place->key, NULL, true);
		found = index_getnext_slot(track.scan, ForwardScanDirection,
								   track.slot);
		if (found)
			settled = write_attempt(batch, attempt, &track);
		queue_look_close_track(&track);
	}
	if (found)
		return settled;
	queue_attempts_forget_copied(attempt);
	return true;
}

static TimestampTz
run_attempts(void *state)
{
	TableWork  *work = (TableWork *) state;
	JobWork    *job = &work->jobs[JOB_ATTEMPTS];
	bool		left = false;
	Batch		batch;

	for (int i = 0; i < MAX_BATCHES; i++)
	{
		QueueAttempt *list;
		int			count;

		if (!begin_batch(&batch, work->queue_table))
			return DT_NOEND;
		queue_ring_take_attempts(batch.ring);
		if (!lock_targets(&batch))
		{
			end_batch(&batch);
			return TimestampTzPlusMilliseconds(batch.now, RETRY_MS);
		}
		list = palloc(MAX_MOVED * sizeof(QueueAttempt));
		count = queue_attempts_list(work->queue_table, list, MAX_MOVED,
									&job->position);
		for (int k = 0; k < count; k++)
		{
			if (!settle_attempt(&batch, &list[k]))
				left = true;
		}
		end_batch(&batch);
		if (job->position == 0)
			break;
	}
	left |= job->position != 0;
	return left ? TimestampTzPlusMilliseconds(queue_clock_now(), RETRY_MS) :
		DT_NOEND;
}

/* ---------- the jobs ---------- */

static TimestampTz (*const runs[NUM_JOBS]) (void *state) =
{
	run_due, run_expiry, run_journal, run_attempts
};

/* One table's turn, unless an error or a sweep has made it pause. */
static TimestampTz
run_table(Job kind, Oid queue_table)
{
	TableWork  *work = find_work(queue_table);
	JobWork    *job = &work->jobs[kind];
	TimestampTz next = DT_NOEND;
	int			delay;

	if (job->paused_until > GetCurrentTimestamp())
		return at_system_time(job->paused_until);
	delay = queue_table_state_run(job_names[kind], current_table, &job->errors,
								  runs[kind], work, &next);
	if (delay == 0)
		return next;
	job->known = job->sweeping = false;
	job->paused_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													delay);
	return at_system_time(job->paused_until);
}

static TimestampTz
run_tables(Job kind, List *tables)
{
	TimestampTz next = DT_NOEND;
	ListCell   *cell;

	foreach(cell, tables)
	{
		TimestampTz table_next = run_table(kind, lfirst_oid(cell));

		next = Min(next, table_next);
	}
	return next;
}

static List *
list_tables(void)
{
	List	   *tables = queue_table_state_list();

	queue_table_state_prune(works, tables, NULL);
	return tables;
}

TimestampTz
queue_maintenance_due(void)
{
	return run_tables(JOB_DUE, list_tables());
}

TimestampTz
queue_maintenance_expiry(void)
{
	return run_tables(JOB_EXPIRY, list_tables());
}

TimestampTz
queue_maintenance_journal(void)
{
	return run_tables(JOB_JOURNAL, list_tables());
}

TimestampTz
queue_maintenance_attempts(void)
{
	if (queue_attempts_is_empty())
		return DT_NOEND;
	return run_tables(JOB_ATTEMPTS, queue_attempts_tables());
}
