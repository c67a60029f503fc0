/*-------------------------------------------------------------------------
 *
 * message_store.h
 *	  Insert, look up, claim and move the rows of a queue table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_MESSAGE_STORE_H
#define QUEUE_MESSAGE_STORE_H

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "storage/lock.h"
#include "utils/relcache.h"

#include "catalog.h"
#include "queue.h"
#include "xact.h"

/* A row of a queue table in memory: values by QueueColumn. */
typedef struct QueueMessage
{
	Datum		values[QUEUE_NUM_COLS];
	bool		nulls[QUEUE_NUM_COLS];
} QueueMessage;

extern void queue_message_init(QueueMessage *message);
extern void queue_message_from_slot(QueueMessage *message,
									const QueueTable *table,
									TupleTableSlot *slot);

/* The ordering key of a message in a ready or expired leaf. */
extern void queue_message_key(QueueKey *key, QueueSort sort,
							  const QueueMessage *message);

/* The key of a message in the waiting leaf: due time, msgid. */
extern void queue_message_due_key(QueueKey *key, const QueueMessage *message);

/*
 * Give a new message its id, and with it its place in the queue: msgid,
 * order_at and queue_id are set.  The id is palloc'd in the current context.
 */
extern void queue_message_identify(const QueueDesc *queue,
								   QueueMessage *message);

/*
 * Store messages of one queue that have their ids and states, ready or
 * waiting: segment and enq_xid are set here, and the heads learn of it.
 * Order is kept.  The caller holds the queue's lock and has checked
 * everything.
 */
extern void queue_message_insert(const QueueDesc *queue,
								 QueueMessage *messages, int count);

/*
 * Store a row that has been deleted elsewhere by this transaction (rule E3):
 * in the expired leaf, for an exception queue; in the current segment, or
 * among the waiting ones if not_before is not 0; or in the journal.
 */
extern void queue_message_expire(const QueueDesc *from, const QueueDesc *to,
								 const char *reason, QueueMessage *message);
extern void queue_message_relocate(const QueueTable *table,
								   QueueMessage *message,
								   TimestampTz not_before);
extern void queue_message_journal(const QueueTable *table,
								  QueueMessage *message);

/*
 * Likewise, for a message that is handed out: among the waiting ones, with the
 * receipt, until the lease ends.  A receipt that the row has had already
 * means that the lease is another one of the same delivery.
 */
extern void queue_message_lease(const QueueTable *table,
								QueueMessage *message,
								const pg_uuid_t *receipt, TimestampTz until);

/* One ordered leaf, open. */
typedef struct QueueStore
{
	const QueueLeaf *leaf;
	int			track;			/* segment, or QUEUE_TRACK_DUE */
	LOCKMODE	mode;
	Relation	rel;
	Relation	index;			/* NULL: rows are read by their addresses */
} QueueStore;

/*
 * Open a leaf with its key index, keeping the locks to the end of the
 * transaction.  False if it has no usable index (a restore is under way).
 */
extern bool queue_store_open(QueueStore *store, const QueueLeaf *leaf,
							 int track, LOCKMODE mode);
extern bool queue_store_open_by_msgid(QueueStore *store,
									  const QueueTable *table,
									  const QueueLeaf *leaf, int track,
									  LOCKMODE mode);
extern void queue_store_close(QueueStore *store);

/* Nothing was changed in it: the locks go, too. */
extern void queue_store_release(QueueStore *store);
extern IndexScanDesc queue_store_scan_msgid(QueueStore *store,
											Snapshot snapshot,
											ScanKey key,
											const pg_uuid_t *msgid);

/*
 * Scan a leaf in order for one queue and consumer.  lane NULL: all
 * priorities.  from NULL or minus infinity: from the start; below NULL: to the
 * end (only for keys that are a message id); exact: only that key.  The scan keys are kept in *keys, which must live as long as the scan.
 */
typedef struct QueueScanKeys
{
	ScanKeyData keys[6];
	ScanKeyData row[3];
} QueueScanKeys;

extern IndexScanDesc queue_store_scan(QueueStore *store, Snapshot snapshot,
									  QueueScanKeys *keys, QueueSort sort,
									  int32 queue_id, int32 consumer_id,
									  const int32 *lane,
									  const QueueKey *from,
									  const QueueKey *below, bool exact);

/* The priority after *lane that has rows, visible or not; false: none. */
extern bool queue_store_next_lane(QueueStore *store, QueueSort sort,
								  int32 queue_id, int32 consumer_id,
								  bool first, int32 *lane);

/*
 * Note a row that is inserted, or about to be deleted, by other means (rule
 * T1): what is published at the end of the transaction.
 */
extern void queue_message_note(const QueueTable *table,
							   QueueState state, int segment,
							   const QueueMessage *message, bool deleted);

/*
 * This transaction's state for the head of a row's queue and consumer, or of a
 * queue; it knows the ring that the monitor is told through.
 */
extern QueueLocalHead *queue_message_head(const QueueTable *table,
										  const QueueMessage *message);
extern QueueLocalHead *queue_message_head_of_queue(const QueueDesc *queue);

extern void queue_message_store_init(void);

#endif							/* QUEUE_MESSAGE_STORE_H */
