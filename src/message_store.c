/*-------------------------------------------------------------------------
 *
 * message_store.c
 *	  Insert, look up and move the rows of a queue table.
 *
 * The hot path calls the access methods: heap_insert and index_insert, with
 * what the executor would have checked being checked by the callers.  A leaf
 * that has an index, trigger, constraint or column beyond ours is written
 * through the executor instead (insert_by_executor), as the owner of the
 * queue table, so that nothing is skipped silently.
 *
 * Every insert first enters the queue's head (rule O1), then notes the key
 * (O2), then stores the row and its index entries (E1).  Queues that order by
 * commit time keep their messages in memory and store them when the
 * transaction commits, under a lock on the queue, so that keys are given in
 * the order of commits (C3).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "clock.h"
#include "compat.h"
#include "debug_point.h"
#include "errors.h"
#include "guc.h"
#include "key.h"
#include "message_store.h"
#include "name.h"
#include "worker.h"
#include "xact.h"

#define MAX_LEAF_INDEXES	8

/* A message of a queue that orders by commit time, until the commit. */
typedef struct DeferredMessage
{
	Oid			queue;
	SubTransactionId subid;
	QueueMessage message;
	struct DeferredMessage *next;
} DeferredMessage;

static DeferredMessage *deferred_first = NULL;
static DeferredMessage *deferred_last = NULL;

/* the last queue table whose clock was raised by this session */
static Oid	raised_table = InvalidOid;

static void store_callback(XactEvent event, void *arg);
static void store_subxact_callback(SubXactEvent event,
								   SubTransactionId my_subid,
								   SubTransactionId parent_subid, void *arg);

void
queue_message_store_init(void)
{
	RegisterXactCallback(store_callback, NULL);
	RegisterSubXactCallback(store_subxact_callback, NULL);
}

void
queue_message_init(QueueMessage *message)
{
	memset(message->values, 0, sizeof(message->values));
	memset(message->nulls, true, sizeof(message->nulls));
}

static inline void
set_value(QueueMessage *message, QueueColumn column, Datum value)
{
	message->values[column] = value;
	message->nulls[column] = false;
}

void
queue_message_from_slot(QueueMessage *message, const QueueTable *table,
						TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	if (likely(table->in_order))
	{
		memcpy(message->values, slot->tts_values, sizeof(message->values));
		memcpy(message->nulls, slot->tts_isnull, sizeof(message->nulls));
		return;
	}
	for (int i = 0; i < QUEUE_NUM_COLS; i++)
	{
		AttrNumber	attnum = table->attnum[i];

		if (attnum == InvalidAttrNumber)
		{
			message->nulls[i] = true;
			continue;
		}
		message->values[i] = slot->tts_values[attnum - 1];
		message->nulls[i] = slot->tts_isnull[attnum - 1];
	}
}

void
queue_message_key(QueueKey *key, QueueSort sort, const QueueMessage *message)
{
	memset(key, 0, sizeof(*key));
	if (QUEUE_SORT_HAS_ORDER_AT(sort) &&
		!message->nulls[QUEUE_COL_ORDER_AT])
		key->major = DatumGetInt64(message->values[QUEUE_COL_ORDER_AT]);
	if (sort == QUEUE_SORT_ENQ_TIME_PRIORITY)
		key->minor = DatumGetInt32(message->values[QUEUE_COL_PRIORITY]);
	key->msgid = *DatumGetUUIDP(message->values[QUEUE_COL_MSGID]);
}

void
queue_message_due_key(QueueKey *key, const QueueMessage *message)
{
	memset(key, 0, sizeof(*key));
	key->major = message->nulls[QUEUE_COL_DUE_AT] ? 0 :
		DatumGetTimestampTz(message->values[QUEUE_COL_DUE_AT]);
	key->msgid = *DatumGetUUIDP(message->values[QUEUE_COL_MSGID]);
}

static int32
message_lane(QueueSort sort, const QueueMessage *message)
{
	return QUEUE_SORT_HAS_LANES(sort) ?
		DatumGetInt32(message->values[QUEUE_COL_PRIORITY]) : 0;
}

/* ---------- scans ---------- */

/* The leaf with this OID, as the cache knows it now. */
static const QueueLeaf *
find_leaf(const QueueTable *table, Oid relid)
{
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (table->ready[i].relid == relid)
			return &table->ready[i];
		if (table->processed[i].relid == relid)
			return &table->processed[i];
	}
	if (table->waiting.relid == relid)
		return &table->waiting;
	return table->expired.relid == relid ? &table->expired : NULL;
}

bool
queue_store_open(QueueStore *store, const QueueLeaf *leaf, int track,
				 LOCKMODE mode)
{
	QueueTable *table;

	if (!OidIsValid(leaf->relid))
		return false;
	store->track = track;
	store->mode = mode;
	store->rel = table_open(leaf->relid, mode);

	/* its index may have been replaced before the lock was ours */
	table = queue_catalog_find_table(leaf->queue_table, true);
	store->leaf = table == NULL ? NULL : find_leaf(table, leaf->relid);
	if (store->leaf == NULL || !OidIsValid(store->leaf->key_index))
	{
		table_close(store->rel, NoLock);
		return false;
	}
	store->index = index_open(store->leaf->key_index, mode);
	return true;
}

void
queue_store_close(QueueStore *store)
{
	if (store->index != NULL)
		index_close(store->index, NoLock);
	table_close(store->rel, NoLock);
}

void
queue_store_release(QueueStore *store)
{
	if (store->index != NULL)
		index_close(store->index, store->mode);
	table_close(store->rel, store->mode);
}

/* Is it an index on msgid alone? */
static bool
is_msgid_index(Oid index_oid, const QueueTable *table)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	bool		result;

	result = index->rd_index->indnkeyatts == 1 &&
		index->rd_index->indisvalid &&
		index->rd_index->indkey.values[0] == table->attnum[QUEUE_COL_MSGID];
	index_close(index, AccessShareLock);
	return result;
}

bool
queue_store_open_by_msgid(QueueStore *store, const QueueTable *table,
						  const QueueLeaf *leaf, int track, LOCKMODE mode)
{
	List	   *indexes;
	ListCell   *cell;
	Oid			found = InvalidOid;

	if (!OidIsValid(leaf->relid))
		return false;
	store->leaf = leaf;
	store->track = track;
	store->mode = mode;
	store->rel = table_open(leaf->relid, mode);
	indexes = RelationGetIndexList(store->rel);
	foreach(cell, indexes)
	{
		if (is_msgid_index(lfirst_oid(cell), table))
		{
			found = lfirst_oid(cell);
			break;
		}
	}
	list_free(indexes);
	if (!OidIsValid(found))
	{
		table_close(store->rel, NoLock);
		return false;
	}
	store->index = index_open(found, mode);
	return true;
}

IndexScanDesc
queue_store_scan_msgid(QueueStore *store, Snapshot snapshot, ScanKey key,
					   const pg_uuid_t *msgid)
{
	IndexScanDesc scan;

	ScanKeyInit(key, 1, BTEqualStrategyNumber, F_UUID_EQ,
				UUIDPGetDatum(msgid));
	scan = queue_index_beginscan(store->rel, store->index, snapshot, 1);
	index_rescan(scan, key, 1, NULL, 0);
	return scan;
}

/* Columns of the key after queue, consumer and, with lanes, priority. */
static int
key_columns(QueueSort sort, bool due, Oid *types, Datum *values,
			const QueueKey *from)
{
	int			n = 0;

	if (due || QUEUE_SORT_HAS_ORDER_AT(sort))
	{
		types[n] = due ? TIMESTAMPTZOID : INT8OID;
		values[n++] = Int64GetDatum(from->major);
	}
	if (!due && sort == QUEUE_SORT_ENQ_TIME_PRIORITY)
	{
		types[n] = INT4OID;
		values[n++] = Int32GetDatum(from->minor);
	}
	types[n] = UUIDOID;
	values[n++] = UUIDPGetDatum(&from->msgid);
	return n;
}

static RegProcedure
compare_procedure(Oid type)
{
	switch (type)
	{
		case INT4OID:
			return F_BTINT4CMP;
		case INT8OID:
			return F_BTINT8CMP;
		case TIMESTAMPTZOID:
			return F_TIMESTAMPTZ_CMP;
		default:
			return F_UUID_CMP;
	}
}

static RegProcedure
operator_procedure(Oid type, bool exact)
{
	switch (type)
	{
		case INT4OID:
			return exact ? F_INT4EQ : F_INT4GE;
		case INT8OID:
			return exact ? F_INT8EQ : F_INT8GE;
		case TIMESTAMPTZOID:
			return exact ? F_TIMESTAMPTZ_EQ : F_TIMESTAMPTZ_GE;
		default:
			return exact ? F_UUID_EQ : F_UUID_GE;
	}
}

IndexScanDesc
queue_store_scan(QueueStore *store, Snapshot snapshot, QueueScanKeys *keys,
				 QueueSort sort, int32 queue_id, int32 consumer_id,
				 const int32 *lane, const QueueKey *from,
				 const QueueKey *below, bool exact)
{
	bool		due = store->track == QUEUE_TRACK_DUE;
	IndexScanDesc scan;
	Oid			types[3];
	Datum		values[3];
	int			n = 0;
	AttrNumber	attno;

	ScanKeyInit(&keys->keys[n++], 1, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(queue_id));
	ScanKeyInit(&keys->keys[n++], 2, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(consumer_id));
	if (lane != NULL && QUEUE_SORT_HAS_LANES(sort))
		ScanKeyInit(&keys->keys[n++], 3, BTEqualStrategyNumber, F_INT4EQ,
					Int32GetDatum(*lane));
	attno = QUEUE_SORT_HAS_LANES(sort) ? 4 : 3;

	if (from != NULL && !queue_key_is_min(from))
	{
		int			columns = key_columns(sort, due, types, values, from);

		if (exact || columns == 1)
		{
			for (int i = 0; i < columns; i++)
				ScanKeyInit(&keys->keys[n++], attno + i,
							exact ? BTEqualStrategyNumber :
							BTGreaterEqualStrategyNumber,
							operator_procedure(types[i], exact), values[i]);
		}
		else
		{
			/* (a, b, c) >= (x, y, z), as the executor builds it */
			ScanKey		header = &keys->keys[n++];

			for (int i = 0; i < columns; i++)
				ScanKeyEntryInitialize(&keys->row[i],
									   SK_ROW_MEMBER |
									   (i == columns - 1 ? SK_ROW_END : 0),
									   attno + i,
									   BTGreaterEqualStrategyNumber,
									   InvalidOid, InvalidOid,
									   compare_procedure(types[i]),
									   values[i]);
			MemSet(header, 0, sizeof(ScanKeyData));
			header->sk_flags = SK_ROW_HEADER;
			header->sk_attno = attno;
			header->sk_strategy = BTGreaterEqualStrategyNumber;
			header->sk_argument = PointerGetDatum(&keys->row[0]);
		}
	}

	if (below != NULL)
		ScanKeyInit(&keys->keys[n++], attno, BTLessStrategyNumber, F_UUID_LT,
					UUIDPGetDatum(&below->msgid));

	scan = queue_index_beginscan(store->rel, store->index, snapshot, n);
	index_rescan(scan, keys->keys, n, NULL, 0);
	return scan;
}

bool
queue_store_next_lane(QueueStore *store, QueueSort sort, int32 queue_id,
					  int32 consumer_id, bool first, int32 *lane)
{
	ScanKeyData keys[3];
	IndexScanDesc scan;
	TupleTableSlot *slot;
	AttrNumber	heap_attno = store->index->rd_index->indkey.values[2];
	int			n = 2;
	bool		found;
	bool		isnull;

	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(queue_id));
	ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(consumer_id));
	if (!first)
		ScanKeyInit(&keys[n++], 3, BTGreaterStrategyNumber, F_INT4GT,
					Int32GetDatum(*lane));

	slot = table_slot_create(store->rel, NULL);
	scan = queue_index_beginscan(store->rel, store->index, SnapshotAny, n);
	index_rescan(scan, keys, n, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, slot);
	if (found)
		*lane = DatumGetInt32(slot_getattr(slot, heap_attno, &isnull));
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return found;
}

/* ---------- the clock of a queue table ---------- */

/* Raise the clock above the last message of one leaf's index, if any. */
static void
raise_from_index_end(Relation rel, Oid index_oid, const QueueTable *table)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	IndexScanDesc scan;

	scan = queue_index_beginscan(rel, index, SnapshotAny, 0);
	index_rescan(scan, NULL, 0, NULL, 0);
	if (index_getnext_slot(scan, BackwardScanDirection, slot))
	{
		bool		isnull;
		Datum		msgid;

		msgid = slot_getattr(slot, table->attnum[QUEUE_COL_MSGID], &isnull);
		if (!isnull)
			queue_clock_raise(queue_clock_msgid_time(DatumGetUUIDP(msgid)));
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, AccessShareLock);
}

/* Waiting and processed leaves have an index on msgid. */
static void
raise_from_msgid_leaf(const QueueLeaf *leaf, const QueueTable *table)
{
	QueueStore	store;

	if (!queue_store_open_by_msgid(&store, table, leaf, 0, AccessShareLock))
		return;
	raise_from_index_end(store.rel, RelationGetRelid(store.index), table);
	queue_store_release(&store);
}

/*
 * Ordered leaves: step backward through the groups (queue, consumer and,
 * with lanes, priority) of the index; each ends with its latest message.
 */
static void
raise_from_ordered_leaf(const QueueLeaf *leaf, const QueueTable *table)
{
	int			columns = QUEUE_SORT_HAS_LANES(table->sort) ? 3 : 2;
	int32		group[3] = {0, 0, 0};
	bool		first = true;
	QueueStore	store;
	TupleTableSlot *slot;

	if (!queue_store_open(&store, leaf, 0, AccessShareLock))
		return;
	slot = table_slot_create(store.rel, NULL);
	for (;;)
	{
		ScanKeyData header;
		ScanKeyData row[3];
		IndexScanDesc scan;
		QueueMessage message;
		bool		found;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < columns; i++)
			ScanKeyEntryInitialize(&row[i],
								   SK_ROW_MEMBER |
								   (i == columns - 1 ? SK_ROW_END : 0),
								   i + 1, BTLessStrategyNumber,
								   InvalidOid, InvalidOid,
								   F_BTINT4CMP, Int32GetDatum(group[i]));
		MemSet(&header, 0, sizeof(header));
		header.sk_flags = SK_ROW_HEADER;
		header.sk_attno = 1;
		header.sk_strategy = BTLessStrategyNumber;
		header.sk_argument = PointerGetDatum(row);

		scan = queue_index_beginscan(store.rel, store.index, SnapshotAny,
									 first ? 0 : 1);
		index_rescan(scan, first ? NULL : &header, first ? 0 : 1, NULL, 0);
		found = index_getnext_slot(scan, BackwardScanDirection, slot);
		if (found)
		{
			queue_message_from_slot(&message, table, slot);
			queue_clock_raise(queue_clock_msgid_time(DatumGetUUIDP(message.values[QUEUE_COL_MSGID])));
			if (!message.nulls[QUEUE_COL_ORDER_AT])
				queue_clock_raise(DatumGetInt64(message.values[QUEUE_COL_ORDER_AT]));
			group[0] = DatumGetInt32(message.values[QUEUE_COL_QUEUE_ID]);
			group[1] = DatumGetInt32(message.values[QUEUE_COL_CONSUMER_ID]);
			group[2] = DatumGetInt32(message.values[QUEUE_COL_PRIORITY]);
			ExecClearTuple(slot);
		}
		index_endscan(scan);
		if (!found)
			break;
		first = false;
	}
	ExecDropSingleTupleTableSlot(slot);
	queue_store_release(&store);
}

/* Rule E2: once for each queue table after a start. */
static void
raise_clock(const QueueTable *table)
{
	QueueRing  *ring = queue_catalog_ring(table);

	if (ring == NULL ? raised_table == table->relid :
		pg_atomic_read_u32(&ring->clock_raised) != 0)
		return;
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		raise_from_ordered_leaf(&table->ready[i], table);
		raise_from_msgid_leaf(&table->processed[i], table);
	}
	raise_from_ordered_leaf(&table->expired, table);
	raise_from_msgid_leaf(&table->waiting, table);
	if (ring != NULL)
		pg_atomic_write_u32(&ring->clock_raised, 1);
	raised_table = table->relid;
}

/* ---------- inserts ---------- */

/* rows of one heap_multi_insert() */
#define MAX_BATCH_ROWS		64
#define MAX_BATCH_BYTES		(64 * 1024)

/* Rows of an array, noted but not stored yet. */
typedef struct InsertBatch
{
	int			count;
	int			num_slots;
	Size		bytes;
	const QueueMessage *messages[MAX_BATCH_ROWS];
	TupleTableSlot *slots[MAX_BATCH_ROWS];
} InsertBatch;

/* A leaf with all its indexes, open for insert. */
typedef struct InsertTarget
{
	const QueueTable *table;
	bool		direct;			/* by the access methods */
	int			segment;		/* of the ready ring; -1: another leaf */
	InsertBatch *batch;			/* NULL: each row is stored at once */
	Relation	rel;
	int			num_indexes;
	Relation	indexes[MAX_LEAF_INDEXES];
} InsertTarget;

/* An index that takes columns as they are and checks nothing. */
static bool
index_is_plain(Relation index)
{
	if (index->rd_rel->relam != BTREE_AM_OID ||
		index->rd_index->indisunique || index->rd_index->indisexclusion ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		if (index->rd_index->indkey.values[i] <= 0)
			return false;
	}
	return index->rd_index->indnatts == index->rd_index->indnkeyatts;
}

static void
open_target(InsertTarget *target, const QueueTable *table,
			const QueueLeaf *leaf)
{
	ListCell   *cell;
	List	   *indexes;

	if (!OidIsValid(leaf->relid) || !OidIsValid(table->payload_type))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("queue table \"%s\" has lost a part",
						queue_catalog_name(table->relid)),
				 errdetail("A partition or the payload column is missing."),
				 errhint("Restore it, or drop the queue table with queue.drop_queue_table(..., force => true).")));

	/*
	 * What the cache says may have changed before the lock was ours: ask
	 * again now that it is.
	 */
	target->rel = table_open(leaf->relid, RowExclusiveLock);
	target->table = queue_catalog_find_table(table->relid, false);
	leaf = find_leaf(target->table, RelationGetRelid(target->rel));
	target->segment = -1;
	target->batch = NULL;
	target->num_indexes = 0;
	target->direct = leaf != NULL && leaf->direct;
	if (!target->direct)
		return;
	indexes = RelationGetIndexList(target->rel);
	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		/* one that is being built concurrently may not take entries yet */
		if (!index->rd_index->indisready)
		{
			index_close(index, NoLock);
			continue;
		}
		if (target->num_indexes == MAX_LEAF_INDEXES || !index_is_plain(index))
		{
			index_close(index, NoLock);
			target->direct = false;
			break;
		}
		target->indexes[target->num_indexes++] = index;
	}
	list_free(indexes);
}

static void
close_target(InsertTarget *target, LOCKMODE mode)
{
	for (int i = 0; i < target->num_indexes; i++)
		index_close(target->indexes[i], mode);
	table_close(target->rel, mode);
}

/*
 * Open the current segment (rule S2).  Which one that is is read again once it
 * is locked: whoever closes it then waits for the end of this transaction.
 */
static void
open_current_segment(InsertTarget *target, const QueueTable *table)
{
	QueueRing  *ring = queue_catalog_ring(table);

	for (;;)
	{
		int			segment = queue_ring_current(queue_ring_read(ring));

		DEBUG_POINT("before_lock");
		open_target(target, table, &table->ready[segment]);
		if (queue_ring_current(queue_ring_read(ring)) == segment)
		{
			target->segment = segment;
			return;
		}
		close_target(target, RowExclusiveLock);
	}
}

/* The current segment has so many blocks: is it full? */
static inline void
note_size(const InsertTarget *target, BlockNumber blocks)
{
	if (blocks >= (BlockNumber) queue_guc_segment_blocks &&
		queue_ring_want_turn(queue_catalog_ring(target->table)))
		queue_monitor_wake(MyDatabaseId);
}

static HeapTuple
form_tuple(const InsertTarget *target, const QueueMessage *message)
{
	Datum		values[QUEUE_NUM_COLS];
	bool		nulls[QUEUE_NUM_COLS];
	HeapTuple	tuple;

	for (int i = 0; i < QUEUE_NUM_COLS; i++)
	{
		AttrNumber	attnum = target->table->attnum[i];

		values[attnum - 1] = message->values[i];
		nulls[attnum - 1] = message->nulls[i];
	}
	tuple = heap_form_tuple(RelationGetDescr(target->rel), values, nulls);
	tuple->t_tableOid = RelationGetRelid(target->rel);
	return tuple;
}

static inline int
column_of_attribute(const QueueTable *table, AttrNumber attnum)
{
	int			column = attnum - 1;

	if (likely(table->in_order))
		return column;
	for (column = 0; table->attnum[column] != attnum; column++)
		Assert(column < QUEUE_NUM_COLS - 1);
	return column;
}

/* Rule E1: an entry in each index of a row that has just been stored. */
static void
insert_entries(InsertTarget *target, const QueueMessage *message,
			   ItemPointer tid)
{
	for (int i = 0; i < target->num_indexes; i++)
	{
		Relation	index = target->indexes[i];
		int			n = index->rd_index->indnkeyatts;
		Datum		values[INDEX_MAX_KEYS];
		bool		nulls[INDEX_MAX_KEYS];

		for (int k = 0; k < n; k++)
		{
			int			column = column_of_attribute(target->table,
													 index->rd_index->indkey.values[k]);

			values[k] = message->values[column];
			nulls[k] = message->nulls[column];
		}
		index_insert(index, values, nulls, tid, target->rel,
					 UNIQUE_CHECK_NO, false, NULL);
	}
	if (target->segment >= 0)
		note_size(target, ItemPointerGetBlockNumber(tid));
}

/* Store one row through heap_insert and index_insert. */
static void
insert_directly(InsertTarget *target, const QueueMessage *message)
{
	HeapTuple	tuple = form_tuple(target, message);

	DEBUG_POINT("before_insert");
	heap_insert(target->rel, tuple, GetCurrentCommandId(true), 0, NULL);
	insert_entries(target, message, &tuple->t_self);
	heap_freetuple(tuple);
	DEBUG_POINT("after_insert");
}

/* Store the rows of a batch: one record in the log for each page they fill. */
static void
flush_batch(InsertTarget *target)
{
	InsertBatch *batch = target->batch;

	if (batch == NULL || batch->count == 0)
		return;
	DEBUG_POINT("before_insert");
	heap_multi_insert(target->rel, batch->slots, batch->count,
					  GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < batch->count; i++)
	{
		insert_entries(target, batch->messages[i], &batch->slots[i]->tts_tid);
		ExecClearTuple(batch->slots[i]);
	}
	batch->count = 0;
	batch->bytes = 0;
	DEBUG_POINT("after_insert");
}

/* The message must stay as it is until the batch is stored. */
static void
add_to_batch(InsertTarget *target, const QueueMessage *message)
{
	InsertBatch *batch = target->batch;
	HeapTuple	tuple = form_tuple(target, message);

	if (batch->count == batch->num_slots)
		batch->slots[batch->num_slots++] =
			MakeSingleTupleTableSlot(RelationGetDescr(target->rel),
									 &TTSOpsHeapTuple);
	ExecStoreHeapTuple(tuple, batch->slots[batch->count], true);
	batch->messages[batch->count++] = message;
	batch->bytes += tuple->t_len;
	if (batch->count == MAX_BATCH_ROWS || batch->bytes >= MAX_BATCH_BYTES)
		flush_batch(target);
}

/* Store the rows that come now together, if they can be. */
static void
begin_batch(InsertTarget *target)
{
	if (!target->direct)
		return;
	target->batch = palloc(sizeof(InsertBatch));
	target->batch->count = 0;
	target->batch->num_slots = 0;
	target->batch->bytes = 0;
}

static void
end_batch(InsertTarget *target)
{
	if (target->batch == NULL)
		return;
	flush_batch(target);
	for (int i = 0; i < target->batch->num_slots; i++)
		ExecDropSingleTupleTableSlot(target->batch->slots[i]);
	pfree(target->batch);
}

/*
 * Store one row through the executor, as the owner of the queue table: the
 * leaf has something that only the executor knows how to serve.
 */
static void
insert_by_executor(InsertTarget *target, const QueueMessage *message)
{
	StringInfoData sql;
	Oid			types[QUEUE_NUM_COLS];
	Datum		values[QUEUE_NUM_COLS];
	char		nulls[QUEUE_NUM_COLS];
	TupleDesc	desc = RelationGetDescr(target->rel);
	Oid			save_user;
	int			save_context;
	int			n = 0;

	initStringInfo(&sql);
	appendStringInfo(&sql, "INSERT INTO %s (",
					 queue_name_qualified(RelationGetRelid(target->rel)));
	for (int i = 0; i < QUEUE_NUM_COLS; i++)
	{
		AttrNumber	attnum = get_attnum(RelationGetRelid(target->rel),
										queue_column_names[i]);

		if (attnum == InvalidAttrNumber)
			continue;
		appendStringInfo(&sql, "%s%s", n > 0 ? ", " : "",
						 queue_column_names[i]);
		types[n] = TupleDescAttr(desc, attnum - 1)->atttypid;
		values[n] = message->values[i];
		nulls[n] = message->nulls[i] ? 'n' : ' ';
		n++;
	}
	appendStringInfoString(&sql, ") VALUES (");
	for (int i = 0; i < n; i++)
		appendStringInfo(&sql, "%s$%d", i > 0 ? ", " : "", i + 1);
	appendStringInfoChar(&sql, ')');

	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(target->table->owner,
						   save_context | SECURITY_LOCAL_USERID_CHANGE);
	DEBUG_POINT("before_insert");
	SPI_connect();
	if (SPI_execute_with_args(sql.data, n, types, values, nulls,
							  false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not insert into queue table \"%s\"",
			 RelationGetRelationName(target->rel));
	SPI_finish();
	SetUserIdAndSecContext(save_user, save_context);
	pfree(sql.data);
	if (target->segment >= 0)
		note_size(target, RelationGetNumberOfBlocks(target->rel));
	DEBUG_POINT("after_insert");
}

static QueueLocalHead *
find_head(const QueueTable *table, int32 queue_id, int32 consumer_id)
{
	QueueHeadId id;
	QueueLocalHead *local;

	memset(&id, 0, sizeof(id));
	id.database = MyDatabaseId;
	id.queue_table = table->relid;
	id.queue_id = queue_id;
	id.consumer_id = consumer_id;
	local = queue_xact_head(&id);
	local->ring = queue_catalog_ring(table);
	return local;
}

QueueLocalHead *
queue_message_head(const QueueTable *table, const QueueMessage *message)
{
	return find_head(table,
					 DatumGetInt32(message->values[QUEUE_COL_QUEUE_ID]),
					 DatumGetInt32(message->values[QUEUE_COL_CONSUMER_ID]));
}

QueueLocalHead *
queue_message_head_of_queue(const QueueDesc *queue)
{
	return find_head(queue->table, queue->id, QUEUE_CONSUMER_NONE);
}

/* Is it in an exception queue? */
static bool
is_expired(const QueueMessage *message)
{
	return DatumGetInt16(message->values[QUEUE_COL_STATE]) ==
		QUEUE_STATE_EXPIRED;
}

/* Note the key of a row that is, or is about to be, stored. */
static void
note_key(const QueueTable *table, int track, const QueueMessage *message,
		 QueueTouchKind kind)
{
	QueueLocalHead *local = queue_message_head(table, message);
	QueueKey	key;

	queue_xact_register(local);
	queue_xact_use_track(local, track);
	if (kind == QUEUE_TOUCH_INSERTED &&
		!message->nulls[QUEUE_COL_EXPIRES_AT] && !is_expired(message))
		local->next_expiry = Min(local->next_expiry,
								 DatumGetTimestampTz(message->values[QUEUE_COL_EXPIRES_AT]));
	if (track == QUEUE_TRACK_DUE)
		queue_message_due_key(&key, message);
	else
		queue_message_key(&key, table->sort, message);
	queue_xact_touch(local, kind, message_lane(table->sort, message), track,
					 &key);
}

/*
 * Store one row: track -1 for the journal, which has no head.  What the
 * executor inserts is noted by our trigger (T1).
 */
static void
insert_row(InsertTarget *target, int track, const QueueMessage *message)
{
	if (!target->direct)
	{
		insert_by_executor(target, message);
		return;
	}
	if (track >= 0)
		note_key(target->table, track, message, QUEUE_TOUCH_INSERTED);
	if (target->batch != NULL)
		add_to_batch(target, message);
	else
		insert_directly(target, message);
}

/* Is the message to wait? */
static bool
is_waiting(const QueueMessage *message)
{
	return DatumGetInt16(message->values[QUEUE_COL_STATE]) ==
		QUEUE_STATE_WAITING;
}

/* many: more follow, which may be stored together with it. */
static void
store_message(InsertTarget *ready, InsertTarget *waiting,
			  const QueueTable *table, QueueMessage *message, bool many)
{
	bool		waits = is_waiting(message);
	InsertTarget *target = waits ? waiting : ready;

	if (target->rel == NULL)
	{
		if (waits)
			open_target(target, table, &table->waiting);
		else
			open_current_segment(target, table);
		if (many)
			begin_batch(target);
	}
	set_value(message, QUEUE_COL_SEGMENT,
			  Int16GetDatum(waits ? 0 : target->segment));
	insert_row(target, waits ? QUEUE_TRACK_DUE : target->segment, message);
}

/* Store what is left, and close what was opened. */
static void
close_stores(InsertTarget *ready, InsertTarget *waiting)
{
	if (ready->rel != NULL)
	{
		end_batch(ready);
		close_target(ready, NoLock);
	}
	if (waiting->rel != NULL)
	{
		end_batch(waiting);
		close_target(waiting, NoLock);
	}
}

/* Keep a copy until the commit. */
static void
defer_message(Oid queue, const QueueTable *table, const QueueMessage *message)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	DeferredMessage *deferred = palloc(sizeof(DeferredMessage));
	Relation	rel = table_open(table->relid, AccessShareLock);

	deferred->queue = queue;
	deferred->subid = GetCurrentSubTransactionId();
	deferred->message = *message;
	deferred->next = NULL;
	for (int i = 0; i < QUEUE_NUM_COLS; i++)
	{
		Form_pg_attribute att;

		if (message->nulls[i] || table->attnum[i] == InvalidAttrNumber)
			continue;
		att = TupleDescAttr(RelationGetDescr(rel), table->attnum[i] - 1);
		deferred->message.values[i] = datumCopy(message->values[i],
												att->attbyval, att->attlen);
	}
	table_close(rel, NoLock);
	if (deferred_last == NULL)
		deferred_first = deferred;
	else
		deferred_last->next = deferred;
	deferred_last = deferred;
	MemoryContextSwitchTo(old);
}

void
queue_message_identify(const QueueDesc *queue, QueueMessage *message)
{
	const QueueTable *table = queue->table;
	pg_uuid_t  *msgid = palloc(sizeof(pg_uuid_t));
	TimestampTz tick;

	raise_clock(table);
	tick = queue_clock_tick();
	queue_clock_msgid(msgid, tick);
	set_value(message, QUEUE_COL_MSGID, UUIDPGetDatum(msgid));
	set_value(message, QUEUE_COL_QUEUE_ID, Int32GetDatum(queue->id));
	if (table->sort == QUEUE_SORT_ENQ_TIME_PRIORITY)
		set_value(message, QUEUE_COL_ORDER_AT,
				  Int64GetDatum(GetCurrentTransactionStartTimestamp()));
	else if (QUEUE_SORT_AT_COMMIT(table->sort))
		set_value(message, QUEUE_COL_ORDER_AT, Int64GetDatum(tick));
}

void
queue_message_insert(const QueueDesc *queue, QueueMessage *messages, int count)
{
	const QueueTable *table = queue->table;
	InsertTarget ready;
	InsertTarget waiting;
	Oid			queue_oid = queue->relid;

	ready.rel = waiting.rel = NULL;
	for (int i = 0; i < count; i++)
	{
		QueueMessage *message = &messages[i];

		set_value(message, QUEUE_COL_ENQ_XID,
				  FullTransactionIdGetDatum(GetTopFullTransactionId()));
		if (QUEUE_SORT_AT_COMMIT(table->sort) && !is_waiting(message))
			defer_message(queue_oid, table, message);
		else
			store_message(&ready, &waiting, table, message, count > 1);
	}
	close_stores(&ready, &waiting);
}

/* Rule C3: the keys of one commit, in a lock on the queue. */
static void
store_deferred_of(Oid queue_oid)
{
	QueueDesc  *queue;
	InsertTarget ready;
	InsertTarget waiting;

	/* conflicts with itself only, and not with enqueuers and dequeuers */
	LockRelationOid(queue_oid, ShareUpdateExclusiveLock);
	queue = queue_catalog_find(queue_oid, false);
	ready.rel = waiting.rel = NULL;
	for (DeferredMessage *d = deferred_first; d != NULL; d = d->next)
	{
		if (d->queue != queue_oid)
			continue;
		d->message.values[QUEUE_COL_ORDER_AT] =
			Int64GetDatum(queue_clock_tick());
		store_message(&ready, &waiting, queue->table, &d->message, true);
		d->queue = InvalidOid;
	}
	close_stores(&ready, &waiting);
}

static void
store_deferred(bool is_prepare)
{
	if (deferred_first == NULL)
		return;
	if (is_prepare)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot prepare a transaction that has enqueued into a queue ordered by commit time"),
				 errhint("The order of such messages is the order of commits; use COMMIT.")));

	PushActiveSnapshot(GetTransactionSnapshot());
	for (;;)
	{
		Oid			lowest = InvalidOid;

		/* in the order of their ids, so that two commits cannot deadlock */
		for (DeferredMessage *d = deferred_first; d != NULL; d = d->next)
		{
			if (OidIsValid(d->queue) &&
				(!OidIsValid(lowest) || d->queue < lowest))
				lowest = d->queue;
		}
		if (!OidIsValid(lowest))
			break;
		store_deferred_of(lowest);
	}
	PopActiveSnapshot();
	deferred_first = deferred_last = NULL;
}

static void
store_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			store_deferred(event == XACT_EVENT_PRE_PREPARE);
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			/* the memory goes with the transaction */
			deferred_first = deferred_last = NULL;
			break;
		default:
			break;
	}
}

static void
store_subxact_callback(SubXactEvent event, SubTransactionId my_subid,
					   SubTransactionId parent_subid, void *arg)
{
	DeferredMessage **link = &deferred_first;
	bool		aborted = event == SUBXACT_EVENT_ABORT_SUB;

	if (deferred_first == NULL ||
		(!aborted && event != SUBXACT_EVENT_COMMIT_SUB))
		return;
	deferred_last = NULL;
	while (*link != NULL)
	{
		DeferredMessage *d = *link;

		if (d->subid >= my_subid && aborted)
		{
			*link = d->next;
			continue;
		}
		if (d->subid >= my_subid)
			d->subid = parent_subid;
		deferred_last = d;
		link = &d->next;
	}
}

/* Who holds the message by a lease, and since when: nobody. */
static void
clear_lease(QueueMessage *message)
{
	message->nulls[QUEUE_COL_RECEIPT] = true;
	message->nulls[QUEUE_COL_DEQ_TIME] = true;
	message->nulls[QUEUE_COL_DEQ_XID] = true;
	message->nulls[QUEUE_COL_DEQ_USER] = true;
}

static void
set_taker(QueueMessage *message)
{
	char	   *user = GetUserNameFromId(GetUserId(), false);

	set_value(message, QUEUE_COL_DEQ_TIME,
			  TimestampTzGetDatum(queue_clock_now()));
	set_value(message, QUEUE_COL_DEQ_USER, CStringGetTextDatum(user));
	set_value(message, QUEUE_COL_DEQ_XID,
			  FullTransactionIdGetDatum(GetTopFullTransactionId()));
}

void
queue_message_expire(const QueueDesc *from, const QueueDesc *to,
					 const char *reason, QueueMessage *message)
{
	InsertTarget target;

	set_value(message, QUEUE_COL_STATE, Int16GetDatum(QUEUE_STATE_EXPIRED));
	set_value(message, QUEUE_COL_SEGMENT, Int16GetDatum(0));
	set_value(message, QUEUE_COL_QUEUE_ID, Int32GetDatum(to->id));
	set_value(message, QUEUE_COL_EXPIRATION_REASON, CStringGetTextDatum(reason));
	clear_lease(message);

	/* ids are local to a queue table, so another table's is kept by name */
	if (from->queue_table == to->queue_table)
		set_value(message, QUEUE_COL_ORIGINAL_QUEUE_ID,
				  Int32GetDatum(from->id));
	else
		set_value(message, QUEUE_COL_SOURCE,
				  CStringGetTextDatum(queue_name_qualified(from->relid)));
	if (QUEUE_SORT_HAS_ORDER_AT(to->table->sort) &&
		message->nulls[QUEUE_COL_ORDER_AT])
		set_value(message, QUEUE_COL_ORDER_AT,
				  Int64GetDatum(queue_clock_now()));

	open_target(&target, to->table, &to->table->expired);
	insert_row(&target, 0, message);
	close_target(&target, NoLock);
}

/* Into the leaf of its state. */
static void
store_again(const QueueTable *table, QueueMessage *message)
{
	InsertTarget ready;
	InsertTarget waiting;

	ready.rel = waiting.rel = NULL;
	store_message(&ready, &waiting, table, message, false);
	close_stores(&ready, &waiting);
}

void
queue_message_relocate(const QueueTable *table, QueueMessage *message,
					   TimestampTz not_before)
{
	clear_lease(message);
	set_value(message, QUEUE_COL_STATE,
			  Int16GetDatum(not_before != 0 ? QUEUE_STATE_WAITING :
							QUEUE_STATE_READY));
	if (not_before != 0)
		set_value(message, QUEUE_COL_DUE_AT, TimestampTzGetDatum(not_before));
	store_again(table, message);
}

void
queue_message_lease(const QueueTable *table, QueueMessage *message,
					const pg_uuid_t *receipt, TimestampTz until)
{
	if (message->nulls[QUEUE_COL_RECEIPT] ||
		memcmp(DatumGetUUIDP(message->values[QUEUE_COL_RECEIPT]), receipt,
			   UUID_LEN) != 0)
		set_taker(message);
	set_value(message, QUEUE_COL_RECEIPT, UUIDPGetDatum(receipt));
	set_value(message, QUEUE_COL_STATE, Int16GetDatum(QUEUE_STATE_WAITING));
	set_value(message, QUEUE_COL_DUE_AT, TimestampTzGetDatum(until));
	store_again(table, message);
}

void
queue_message_journal(const QueueTable *table, QueueMessage *message)
{
	InsertTarget target;

	clear_lease(message);
	set_taker(message);
	set_value(message, QUEUE_COL_STATE, Int16GetDatum(QUEUE_STATE_PROCESSED));
	set_value(message, QUEUE_COL_SEGMENT, Int16GetDatum(0));
	open_target(&target, table, &table->processed[0]);
	insert_row(&target, -1, message);
	close_target(&target, NoLock);
}

void
queue_message_note(const QueueTable *table, QueueState state, int segment,
				   const QueueMessage *message, bool deleted)
{
	int			track = state == QUEUE_STATE_WAITING ? QUEUE_TRACK_DUE :
	state == QUEUE_STATE_READY ? segment : 0;

	if (state == QUEUE_STATE_PROCESSED)
		return;
	if (state == QUEUE_STATE_READY && !deleted)
		queue_ring_use(queue_catalog_ring(table), segment);
	note_key(table, track, message,
			 deleted ? QUEUE_TOUCH_TAKEN : QUEUE_TOUCH_INSERTED);
}
