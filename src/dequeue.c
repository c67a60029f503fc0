/*-------------------------------------------------------------------------
 *
 * dequeue.c
 *	  The dequeue verb.
 *
 * A call checks rights and state, then looks at the queue (look.c) and takes
 * what is wanted.  table_tuple_delete(wait = false) decides who wins a
 * message, nothing else (rule D6).  A message whose time is over, or whose
 * attempts are used up, is moved to its exception queue when it is seen; a
 * queue with a retention time writes what it delivers into the journal.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "acl.h"
#include "ahead.h"
#include "clock.h"
#include "compat.h"
#include "condition.h"
#include "debug_point.h"
#include "dequeue.h"
#include "errors.h"
#include "look.h"
#include "name.h"
#include "receipt.h"
#include "take.h"
#include "wakeup.h"

/* how often a waiting call on a standby looks again, in milliseconds */
#define RECOVERY_STEP_MS	200

/* Where a session's next_message goes on, for each queue. */
typedef struct QueuePosition
{
	Oid			queue;			/* hash key */
	bool		active;
	int32		lane;
	QueueKey	order;
	TimestampTz as_of;			/* messages enqueued later come later */
	char	   *correlation;
	char	   *condition;
} QueuePosition;

/* One call. */
typedef struct Dequeue
{
	const QueueDequeueOptions *options;
	QueueDesc  *queue;
	QueueDeliver deliver;
	void	   *context;
	int			delivered;
	QueueCondition *condition;
	QueuePosition *position;	/* next_message only */
	pg_uuid_t	receipt;		/* of the message that is being handed out */
	MemoryContext memory;
	QueueLook	look;
} Dequeue;

static HTAB *positions = NULL;
static QueuePosition *last_position = NULL; /* mostly it is asked for again */

/* ---------- navigation ---------- */

static QueuePosition *
find_position(Oid queue)
{
	QueuePosition *position;
	bool		found;

	if (last_position != NULL && last_position->queue == queue)
		return last_position;
	if (positions == NULL)
	{
		HASHCTL		ctl;

		memset(&ctl, 0, sizeof(ctl));
		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(QueuePosition);
		/* a position belongs to the session */
		ctl.hcxt = TopMemoryContext;
		positions = hash_create("queue positions", 16, &ctl,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	position = hash_search(positions, &queue, HASH_ENTER, &found);
	if (!found)
	{
		position->active = false;
		position->correlation = NULL;
		position->condition = NULL;
	}
	last_position = position;
	return position;
}

static void
replace_string(char **target, const char *source)
{
	if (*target != NULL)
		pfree(*target);
	*target = source == NULL ? NULL :
		MemoryContextStrdup(TopMemoryContext, source);
}

static bool
same_string(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

/* Begin at the start of the queue as it is now. */
static void
reset_position(Dequeue *dequeue, QueuePosition *position)
{
	position->active = false;
	position->lane = PG_INT32_MIN;
	queue_key_set_min(&position->order);
	position->as_of = DT_NOEND;
	replace_string(&position->correlation, dequeue->options->correlation);
	replace_string(&position->condition, dequeue->options->condition);
}

static void
prepare_navigation(Dequeue *dequeue)
{
	const QueueDequeueOptions *options = dequeue->options;
	QueuePosition *position = find_position(dequeue->queue->relid);

	if (options->has_msgid || options->has_lease)
		return;
	if (options->navigation != QUEUE_NAV_NEXT_MESSAGE || !position->active)
		reset_position(dequeue, position);
	else if (!same_string(position->correlation, options->correlation) ||
			 !same_string(position->condition, options->condition))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_CRITERIA_CHANGED),
				 errmsg("cannot change the search criteria of queue \"%s\" between calls that navigate by next_message",
						queue_catalog_name(dequeue->queue->relid)),
				 errhint("Begin a new search with navigation => 'first_message'.")));
	dequeue->position = position;
}

/* ---------- criteria ---------- */

static bool
correlation_matches(const char *pattern, const QueueMessage *message)
{
	if (message->nulls[QUEUE_COL_CORRELATION])
		return false;
	return DatumGetBool(DirectFunctionCall2Coll(textlike,
												C_COLLATION_OID,
												message->values[QUEUE_COL_CORRELATION],
												CStringGetTextDatum(pattern)));
}

/* Has the session been past this message, or is it newer than its search? */
static bool
is_behind_position(const QueuePosition *position,
				   const QueueCandidate *candidate)
{
	if (!position->active)
		return false;
	if (candidate->lane != position->lane)
	{
		if (candidate->lane < position->lane)
			return true;
	}
	else if (queue_key_cmp(&candidate->order, &position->order) <= 0)
		return true;
	return queue_clock_msgid_time(&candidate->key.msgid) > position->as_of;
}

static bool
is_wanted(void *context, const QueueCandidate *candidate)
{
	Dequeue    *dequeue = (Dequeue *) context;
	const QueueDequeueOptions *options = dequeue->options;
	const QueueMessage *message = &candidate->message;

	if (options->has_msgid &&
		memcmp(&candidate->key.msgid, &options->msgid, UUID_LEN) != 0)
		return false;
	if (options->navigation == QUEUE_NAV_NEXT_MESSAGE &&
		dequeue->position != NULL &&
		is_behind_position(dequeue->position, candidate))
		return false;
	if (options->correlation != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(dequeue->memory);
		bool		matches = correlation_matches(options->correlation,
												  message);

		MemoryContextSwitchTo(old);
		MemoryContextReset(dequeue->memory);
		if (!matches)
			return false;
	}
	if (dequeue->condition != NULL &&
		!queue_condition_matches(dequeue->condition, dequeue->queue->table,
								 message))
		return false;
	return true;
}

/* ---------- taking ---------- */

/*
 * Every value out of line is fetched: its row may be gone soon.  The columns
 * before enq_user are of fixed length.
 */
static void
detoast_message(const QueueTable *table, Relation rel, QueueMessage *message,
				bool with_payload)
{
	TupleDesc	desc = RelationGetDescr(rel);

	if (!with_payload)
		message->nulls[QUEUE_COL_PAYLOAD] = true;
	for (int i = QUEUE_COL_ENQ_USER; i < QUEUE_NUM_COLS; i++)
	{
		struct varlena *value;

		if (message->nulls[i] || table->attnum[i] == InvalidAttrNumber ||
			TupleDescAttr(desc, table->attnum[i] - 1)->attlen != -1)
			continue;
		value = (struct varlena *) DatumGetPointer(message->values[i]);
		if (VARATT_IS_EXTERNAL(value) ||
			(i == QUEUE_COL_PAYLOAD && VARATT_IS_EXTENDED(value)))
			message->values[i] = PointerGetDatum(pg_detoast_datum(value));
	}
}

/* A place for a failed attempt; those of dropped queue tables are found. */
static bool
reserve_attempt(void)
{
	if (queue_attempts_reserve())
		return true;
	queue_attempts_sweep(queue_catalog_table_is_gone);
	return queue_attempts_reserve();
}

/* Note a take before it is made (O2, A1). */
static void
note_take(Dequeue *dequeue, const QueueCandidate *candidate, int track,
		  QueueTouchKind kind)
{
	const QueueDesc *queue = dequeue->queue;
	QueueTouch *touch;

	touch = queue_xact_touch(dequeue->look.local, kind, candidate->lane,
							 track, &candidate->key);
	if (kind != QUEUE_TOUCH_TAKEN ||
		candidate->verdict != QUEUE_VERDICT_DELIVER ||
		queue->is_exception)
		return;
	touch->own = candidate->own;
	touch->attempts = candidate->attempts;
	touch->retry_delay = queue->retry_delay_forever ? -1 :
		queue_interval_to_usecs(&queue->retry_delay);
	touch->reserved = reserve_attempt();
}

/*
 * Give it to the caller for a while: it waits until the lease ends, with its
 * count raised, and comes back by itself.
 */
static void
hand_out(Dequeue *dequeue, QueueCandidate *candidate)
{
	const QueueDesc *queue = dequeue->queue;
	QueueMessage copy;
	TimestampTz until;

	until = queue_interval_add(queue_clock_now(), &dequeue->options->lease,
							   "lease");
	queue_receipt_make(&dequeue->receipt, queue->relid,
					   DatumGetUUIDP(candidate->message.values[QUEUE_COL_MSGID]),
					   candidate->attempts);
	copy = candidate->message;
	copy.nulls[QUEUE_COL_RECEIPT] = true;
	copy.values[QUEUE_COL_RETRY_COUNT] =
		Int32GetDatum(candidate->attempts + 1);
	queue_message_lease(queue->table, &copy, &dequeue->receipt, until);
	candidate->message.values[QUEUE_COL_RECEIPT] =
		UUIDPGetDatum(&dequeue->receipt);
	candidate->message.nulls[QUEUE_COL_RECEIPT] = false;
}

/* What follows from a delete: the exception table, the journal, or a lease. */
static void
move_message(Dequeue *dequeue, QueueCandidate *candidate)
{
	QueueMessage copy;
	QueueDesc  *queue = dequeue->queue;

	if (candidate->verdict == QUEUE_VERDICT_DELIVER &&
		dequeue->options->has_lease)
	{
		hand_out(dequeue, candidate);
		return;
	}
	if (candidate->verdict == QUEUE_VERDICT_DELIVER &&
		!queue->retention_forever &&
		queue_interval_to_usecs(&queue->retention) <= 0)
		return;
	copy = candidate->message;
	copy.values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(candidate->attempts);
	switch (candidate->verdict)
	{
		case QUEUE_VERDICT_EXPIRE:
			queue_message_expire(queue, queue_take_exception_queue(queue, &copy),
								 "TIME_EXPIRATION", &copy);
			break;
		case QUEUE_VERDICT_EXHAUST:
			queue_message_expire(queue, queue_take_exception_queue(queue, &copy),
								 "MAX_RETRY_EXCEEDED", &copy);
			break;
		default:
			queue_message_journal(queue->table, &copy);
			if (!queue->retention_forever)
				dequeue->look.local->next_purge =
					Min(dequeue->look.local->next_purge,
						DatumGetTimestampTz(copy.values[QUEUE_COL_DEQ_TIME]) +
						queue_interval_to_usecs(&queue->retention));
			break;
	}
}

static void
deliver_message(Dequeue *dequeue, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	QueueMessage copy = candidate->message;
	MemoryContext old = MemoryContextSwitchTo(dequeue->memory);
	QueuePosition *position = dequeue->position;

	copy.values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(candidate->attempts);
	detoast_message(dequeue->queue->table, track->store.rel, &copy,
					dequeue->options->mode != QUEUE_MODE_REMOVE_NODATA);
	MemoryContextSwitchTo(old);
	dequeue->deliver(dequeue->context, dequeue->queue->table, &copy);
	dequeue->delivered++;
	MemoryContextReset(dequeue->memory);
	if (position != NULL)
	{
		if (!position->active)
			position->as_of = dequeue->look.now;
		position->active = true;
		position->lane = candidate->lane;
		position->order = candidate->order;
	}
}

/*
 * Take the track's candidate.  TM_Ok: it is ours, and was delivered or moved.
 */
static TM_Result
take_candidate(Dequeue *dequeue, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	bool		deliver = candidate->verdict == QUEUE_VERDICT_DELIVER;
	bool		lock = deliver &&
	dequeue->options->mode == QUEUE_MODE_LOCKED;
	QueueTouchKind kind = lock ? QUEUE_TOUCH_LOCKED : QUEUE_TOUCH_TAKEN;
	TM_Result	result;

	track->changed = true;
	note_take(dequeue, candidate, track->store.track, kind);
	DEBUG_POINT("before_take");
	result = lock ? queue_take_lock(track) :
		queue_take_delete(dequeue->queue, track);
	if (result != TM_Ok)
	{
		queue_xact_untouch(dequeue->look.local);
		return result;
	}
	queue_xact_confirm(dequeue->look.local, candidate->lane,
					   track->store.track, &candidate->key);
	if (kind == QUEUE_TOUCH_TAKEN && candidate->own)
		queue_xact_mark_own_taken(dequeue->look.local, candidate->lane,
								  track->store.track, &candidate->key);
	if (kind == QUEUE_TOUCH_TAKEN)
	{
		if (deliver)
			queue_look_reread_attempts(&dequeue->look, candidate);
		move_message(dequeue, candidate);
	}
	if (candidate->verdict == QUEUE_VERDICT_DELIVER)
		deliver_message(dequeue, track);
	return TM_Ok;
}

static void
take_hand(Dequeue *dequeue, const QueueHeadKey *hand)
{
	QueueLook  *look = &dequeue->look;
	QueueTrackLook track;

	DEBUG_POINT("before_take");
	if (!queue_look_at_hand(look, hand, &track))
		return;
	if (take_candidate(dequeue, &track) == TM_Ok)
		queue_look_hand_taken(look, hand);
	else
		queue_look_hand_back(look, hand);
	queue_look_close_track(&track);
}

/* Deliver from a look without changing anything. */
static void
browse_candidate(Dequeue *dequeue, QueueTrackLook *track)
{
	deliver_message(dequeue, track);
	queue_look_taken(track);
}

/* Deliver a message that an earlier call has read ahead, if there is one. */
static bool
take_ahead(Dequeue *dequeue)
{
	QueueTrackLook track;

	if (!queue_ahead_next(&dequeue->look, &track))
		return false;
	if (take_candidate(dequeue, &track) != TM_Ok)
		queue_ahead_drop(dequeue->look.local);
	queue_look_close_track(&track);
	return dequeue->delivered > 0;
}

/* Deliver up to max_messages of what is there. */
static void
take_messages(Dequeue *dequeue)
{
	QueueLook  *look = &dequeue->look;
	QueueTrackLook *track;
	QueueHeadKey hand;

	if (dequeue->options->max_messages == 1 &&
		!dequeue->options->has_lease && take_ahead(dequeue))
		return;
	while (dequeue->delivered < dequeue->options->max_messages)
	{
		QueueAccept accept = queue_look_next(look, &track, &hand);

		if (accept == QUEUE_ACCEPT_NOTHING)
			break;
		if (accept == QUEUE_ACCEPT_HAND)
			take_hand(dequeue, &hand);
		else if (!look->changes)
			browse_candidate(dequeue, track);
		else
		{
			TM_Result	result = take_candidate(dequeue, track);

			if (result == TM_Ok)
			{
				queue_look_taken(track);
				if (dequeue->options->max_messages == 1 &&
					!dequeue->options->has_lease &&
					dequeue->delivered == 1)
					queue_ahead_note(look, track);
			}
			else if (result == TM_WouldBlock)
				queue_look_stop(track);
			else
				queue_look_retry(look, track);
		}
	}
	queue_look_end(look);
}

/* ---------- by message id ---------- */

/*
 * Look in one leaf, by its key or msgid index.  True: found, and delivered if
 * it can be had.
 */
static bool
take_from_leaf(Dequeue *dequeue, const QueueLeaf *leaf, int track_number,
			   bool by_msgid, const int32 *lane)
{
	QueueLook  *look = &dequeue->look;
	QueueTrackLook track;
	LOCKMODE	mode = look->changes ? RowExclusiveLock : AccessShareLock;
	ScanKeyData scan_key;
	bool		done = false;

	memset(&track, 0, sizeof(track));
	if (by_msgid ?
		!queue_store_open_by_msgid(&track.store, dequeue->queue->table, leaf,
								   track_number, mode) :
		!queue_store_open(&track.store, leaf, track_number, mode))
		return false;
	track.slot = table_slot_create(track.store.rel, NULL);
	track.open = true;
	if (by_msgid)
		track.scan = queue_store_scan_msgid(&track.store, &look->dirty,
											&scan_key,
											&dequeue->options->msgid);
	else
	{
		QueueKey	key;

		memset(&key, 0, sizeof(key));
		key.msgid = dequeue->options->msgid;
		track.scan = queue_store_scan(&track.store, &look->dirty, &track.keys,
									  dequeue->queue->table->sort,
									  dequeue->queue->id,
									  QUEUE_CONSUMER_NONE, lane, &key, NULL,
									  true);
	}
	while (!done && index_getnext_slot(track.scan, ForwardScanDirection,
									   track.slot))
	{
		QueueVerdict verdict;

		verdict = queue_look_judge(look, &track);
		if (DatumGetInt32(track.candidate.message.values[QUEUE_COL_QUEUE_ID]) !=
			dequeue->queue->id)
			continue;
		track.candidate.verdict = verdict;
		if (verdict != QUEUE_VERDICT_DELIVER &&
			verdict != QUEUE_VERDICT_EXPIRE &&
			verdict != QUEUE_VERDICT_EXHAUST)
			continue;
		if (!look->changes)
			deliver_message(dequeue, &track);
		else if (queue_look_is_settled(look, &track))
			(void) take_candidate(dequeue, &track);
		done = true;
	}
	queue_look_close_track(&track);
	return done;
}

/* The ready leaves, lane by lane where the key begins with priority. */
static bool
take_from_ordered_leaf(Dequeue *dequeue, const QueueLeaf *leaf, int number)
{
	QueueSort	sort = dequeue->queue->table->sort;
	bool		first = true;
	bool		done = false;
	int32		lane = 0;
	QueueStore	store;

	if (!QUEUE_SORT_HAS_LANES(sort))
		return take_from_leaf(dequeue, leaf, number, false, NULL);
	if (!queue_store_open(&store, leaf, number, AccessShareLock))
		return false;
	while (!done &&
		   queue_store_next_lane(&store, sort, dequeue->queue->id,
								 QUEUE_CONSUMER_NONE, first, &lane))
	{
		first = false;
		done = take_from_leaf(dequeue, leaf, number, false, &lane);
	}
	queue_store_release(&store);
	return done;
}

static void
take_by_msgid(Dequeue *dequeue)
{
	const QueueDesc *queue = dequeue->queue;
	const QueueTable *table = queue->table;
	QueueLook  *look = &dequeue->look;
	bool		done = false;

	look->now = queue_clock_now();
	look->ignore_due = true;
	if (look->changes)
	{
		queue_xact_register(look->local);
		queue_look_refresh(look);
	}
	if (queue->is_exception)
	{
		if (!QUEUE_SORT_HAS_ORDER_AT(table->sort))
			(void) take_from_ordered_leaf(dequeue, &table->expired, 0);
		else
			take_messages(dequeue);
		return;
	}
	done = take_from_leaf(dequeue, &table->waiting, QUEUE_TRACK_DUE, true,
						  NULL);
	if (!done && QUEUE_SORT_HAS_ORDER_AT(table->sort))
	{
		take_messages(dequeue);
		done = dequeue->delivered > 0;
	}
	else
	{
		for (int i = 0; i < QUEUE_SEGMENTS && !done; i++)
			done = queue_look_leaf_is_used(queue, i) &&
				take_from_ordered_leaf(dequeue, &table->ready[i], i);
	}
	if (dequeue->options->mode != QUEUE_MODE_BROWSE)
		return;
	for (int i = 0; i < QUEUE_SEGMENTS && !done; i++)
		done = take_from_leaf(dequeue, &table->processed[i], 0, true, NULL);
}

/* ---------- the call ---------- */

static void
check_call(const QueueDequeueOptions *options)
{
	if (options->mode == QUEUE_MODE_BROWSE)
		return;
	PreventCommandIfReadOnly("dequeue()");
	PreventCommandDuringRecovery("dequeue()");
	PreventCommandIfParallelMode("dequeue()");
}

QueueDesc *
queue_dequeue_find(Oid queue_oid, bool browse)
{
	QueueDesc  *queue;

	LockRelationOid(queue_oid, browse ? AccessShareLock : RowExclusiveLock);
	queue = queue_catalog_find(queue_oid, false);
	if (browse)
		queue_acl_check_browse(queue);
	else
		queue_acl_check_dequeue(queue);
	if (!queue->dequeue_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DEQUEUE_DISABLED),
				 errmsg("queue \"%s\" is not enabled for dequeue",
						queue_catalog_name(queue_oid)),
				 queue->is_exception ?
				 errhint("Start it with queue.start_queue(..., enqueue => false).") :
				 errhint("Start it with queue.start_queue().")));
	if (!OidIsValid(queue->table->payload_type))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("queue table \"%s\" has lost its column \"payload\"",
						queue_catalog_name(queue->queue_table)),
				 errdetail("The column or its type has been dropped, or it has another name."),
				 errhint("Restore it, or drop the queue table with queue.drop_queue_table(..., force => true).")));
	return queue;
}

static void
init_dequeue(Dequeue *dequeue, const QueueDequeueOptions *options)
{
	QueueLook  *look = &dequeue->look;

	queue_look_init(look);
	look->queue = dequeue->queue;
	look->changes = options->mode != QUEUE_MODE_BROWSE;
	look->expected = options->max_messages;
	look->conditional = !look->changes || options->has_msgid ||
		options->correlation != NULL || options->condition != NULL ||
		options->navigation == QUEUE_NAV_NEXT_MESSAGE ||
		options->mode == QUEUE_MODE_LOCKED;
	look->wanted = look->conditional ? is_wanted : NULL;
	look->context = dequeue;
	if (!RecoveryInProgress())
	{
		look->local = queue_message_head_of_queue(dequeue->queue);
		look->expected = Max(look->expected,
							 queue_ahead_expected(look->local));
	}
}

static bool
may_wait(const QueueDequeueOptions *options)
{
	const Interval *wait = &options->wait;

	return options->wait_forever || wait->time != 0 || wait->day != 0 ||
		wait->month != 0;
}

static void
take(Dequeue *dequeue)
{
	if (dequeue->options->has_msgid)
		take_by_msgid(dequeue);
	else
		take_messages(dequeue);
	if (dequeue->delivered == 0 && dequeue->position != NULL)
		reset_position(dequeue, dequeue->position);
}

/* During recovery nobody tells of what comes in. */
static void
poll_messages(Dequeue *dequeue, TimestampTz deadline)
{
	while (dequeue->delivered == 0 && queue_clock_now() < deadline)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 RECOVERY_STEP_MS, queue_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		take(dequeue);
	}
}

/*
 * Wait for a message (rules W1 to W6).  The lock on the queue is given up
 * while asleep, so that it can be stopped and dropped; then it is found anew.
 */
static void
wait_for_messages(Dequeue *dequeue)
{
	const QueueDequeueOptions *options = dequeue->options;
	Oid			queue_oid = dequeue->queue->relid;
	LOCKMODE	mode = options->mode == QUEUE_MODE_BROWSE ? AccessShareLock :
	RowExclusiveLock;
	QueueLook  *look = &dequeue->look;
	TimestampTz deadline = queue_wakeup_deadline(options->wait_forever,
												 &options->wait);
	bool		late = false;

	if (look->local == NULL)
	{
		poll_messages(dequeue, deadline);
		return;
	}
	look->waits = true;
	for (;;)
	{
		queue_wakeup_register(&look->local->ref.id, &queue_oid, 1,
							  look->conditional);
		take(dequeue);
		queue_wakeup_looked();
		if (dequeue->delivered > 0 || late)
			break;
		UnlockRelationOid(queue_oid, mode);
		(void) queue_wakeup_sleep(Min(deadline, look->next_due));
		late = queue_clock_now() >= deadline;
		dequeue->queue = queue_dequeue_find(queue_oid,
											options->mode == QUEUE_MODE_BROWSE);
		look->queue = dequeue->queue;
	}
	queue_wakeup_leave(dequeue->delivered > 0);

	/* what is due next was ours to wait for */
	if (dequeue->delivered > 0 && look->next_due != DT_NOEND)
		queue_wakeup_wake(&look->local->ref.id, 1);
}

int
queue_dequeue(Oid queue_oid, const QueueDequeueOptions *options,
			  QueueDeliver deliver, void *context)
{
	Dequeue		dequeue;
	bool		pushed = false;

	check_call(options);
	memset(&dequeue, 0, offsetof(Dequeue, look));
	dequeue.options = options;
	dequeue.queue = queue_dequeue_find(queue_oid,
									   options->mode == QUEUE_MODE_BROWSE);
	if (options->has_lease && dequeue.queue->is_exception)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_IS_EXCEPTION_QUEUE),
				 errmsg("cannot receive from exception queue \"%s\"",
						queue_catalog_name(queue_oid)),
				 errhint("Its messages are not delivered again; use queue.dequeue().")));
	dequeue.deliver = deliver;
	dequeue.context = context;
	dequeue.memory = AllocSetContextCreate(CurrentMemoryContext,
										   "queue dequeue",
										   ALLOCSET_START_SMALL_SIZES);
	if (options->condition != NULL)
		dequeue.condition = queue_condition_prepare(dequeue.queue,
													options->condition);
	prepare_navigation(&dequeue);

	/* rule D0: a snapshot from before the look until after the delete */
	if (!ActiveSnapshotSet())
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		pushed = true;
	}
	init_dequeue(&dequeue, options);
	take(&dequeue);
	if (dequeue.delivered == 0 && may_wait(options))
		wait_for_messages(&dequeue);
	if (dequeue.look.local != NULL)
		queue_wakeup_keep_promise(&dequeue.look.local->ref.id);
	if (pushed)
		PopActiveSnapshot();
	MemoryContextDelete(dequeue.memory);
	return dequeue.delivered;
}
