/*-------------------------------------------------------------------------
 *
 * catalog.h
 *	  Catalog rows of queues and queue tables as C structs, cached for each
 *	  backend.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_CATALOG_H
#define QUEUE_CATALOG_H

#include "access/attnum.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "queue.h"
#include "ring.h"

/* columns of a queue table, in the order in which they are made */
typedef enum QueueColumn
{
	QUEUE_COL_QUEUE_ID,
	QUEUE_COL_CONSUMER_ID,
	QUEUE_COL_MSGID,
	QUEUE_COL_PRIORITY,
	QUEUE_COL_STATE,
	QUEUE_COL_SEGMENT,
	QUEUE_COL_RETRY_COUNT,
	QUEUE_COL_ORDER_AT,
	QUEUE_COL_DUE_AT,
	QUEUE_COL_EXPIRES_AT,
	QUEUE_COL_EXPIRATION,
	QUEUE_COL_ENQ_XID,
	QUEUE_COL_DEQ_TIME,
	QUEUE_COL_DEQ_XID,
	QUEUE_COL_ORIGINAL_MSGID,
	QUEUE_COL_GROUP_ID,
	QUEUE_COL_STEP,
	QUEUE_COL_ORIGINAL_QUEUE_ID,
	QUEUE_COL_RECEIPT,
	QUEUE_COL_ENQ_USER,
	QUEUE_COL_DEQ_USER,
	QUEUE_COL_CORRELATION,
	QUEUE_COL_EXCEPTION_QUEUE,
	QUEUE_COL_EXPIRATION_REASON,
	QUEUE_COL_SENDER_NAME,
	QUEUE_COL_SENDER_ADDRESS,
	QUEUE_COL_SENDER_PROTOCOL,
	QUEUE_COL_REPLY_TO,
	QUEUE_COL_ROUTING_KEY,
	QUEUE_COL_GROUP_KEY,
	QUEUE_COL_DEDUP_KEY,
	QUEUE_COL_SOURCE,
	QUEUE_COL_PROPERTIES,
	QUEUE_COL_PAYLOAD,
	QUEUE_NUM_COLS
} QueueColumn;

extern const char *const queue_column_names[QUEUE_NUM_COLS];

/* One leaf of a queue table. */
typedef struct QueueLeaf
{
	Oid			relid;			/* InvalidOid: the leaf is missing */
	Oid			queue_table;
	Oid			key_index;		/* valid index by the leaf's ordering key, or
								 * InvalidOid (restore under way) */
	bool		direct;			/* no index, trigger, constraint, column,
								 * policy or access method beyond ours: the
								 * access methods may be called directly */
	bool		published;		/* carries our trigger (rule T1), so a head
								 * may be used */
	uint64		fingerprint;	/* changes when the leaf is changed behind the
								 * engine's back (rule H5) */
} QueueLeaf;

typedef struct QueueTable
{
	Oid			relid;			/* the partitioned table */
	Oid			owner;
	QueueSort	sort;
	bool		eager;			/* rotation does not wait for old snapshots */
	QueueRing  *ring;			/* see queue_catalog_ring() */
	Oid			payload_type;	/* of the payload column, as it is now */
	int32		payload_typmod;
	Oid			payload_collation;
	int			natts;			/* of the row type; > QUEUE_NUM_COLS if the
								 * user has added columns */
	AttrNumber	attnum[QUEUE_NUM_COLS];
	bool		in_order;		/* our columns come first, in our order */
	QueueLeaf	ready[QUEUE_SEGMENTS];
	QueueLeaf	waiting;
	QueueLeaf	processed[QUEUE_SEGMENTS];
	QueueLeaf	expired;
} QueueTable;

typedef struct QueueDesc
{
	Oid			relid;			/* the queue's view */
	Oid			owner;
	Oid			queue_table;
	int32		id;				/* unique in its queue table */
	bool		is_exception;
	bool		enqueue_enabled;
	bool		dequeue_enabled;
	int64		max_retries;	/* -1: for ever */
	bool		retry_delay_forever;
	Interval	retry_delay;
	bool		retention_forever;
	Interval	retention;		/* zero: not kept */
	QueueTable *table;			/* its table's entry */
} QueueDesc;

/*
 * Finders.  A struct stays readable until the end of the transaction, even if
 * it is invalidated meanwhile: then the next find makes a new one.  "No such
 * queue" is an error (42P01, with a hint) unless missing_ok.  The names in
 * errors are as the user would write them.  A row whose relation is gone
 * counts as missing.
 */
extern QueueDesc *queue_catalog_find(Oid queue, bool missing_ok);
extern QueueTable *queue_catalog_find_table(Oid queue_table, bool missing_ok);

/*
 * The ring of a queue table in shared memory, made if need be; NULL if there
 * is no room or recovery is under way.
 */
extern QueueRing *queue_catalog_ring(const QueueTable *table);

/* Does no such relation exist any more? */
extern bool queue_catalog_table_is_gone(Oid queue_table);

/* The queue table of which relid is a leaf, or InvalidOid. */
extern Oid	queue_catalog_table_of_leaf(Oid relid);

/* The default exception queue of a queue table, or InvalidOid. */
extern Oid	queue_catalog_exception_queue(Oid queue_table);

/* The queue with this id in a queue table, or InvalidOid. */
extern Oid	queue_catalog_queue_by_id(Oid queue_table, int32 id);

/* The queues of a queue table, its exception queues too. */
extern List *queue_catalog_queues(Oid queue_table);

/* The queue tables of this database; none without the extension. */
extern List *queue_catalog_tables(void);

/*
 * Which leaf of the table is relid, and which segment?  *state is a
 * QueueState.  False if it is none.
 */
extern bool queue_catalog_classify_leaf(const QueueTable *table, Oid relid,
										QueueState *state, int *segment);

/*
 * The relation's name for messages, with its schema where the search_path does
 * not find it; palloc'd.  Messages put it in quotes.
 */
extern char *queue_catalog_name(Oid relid);

/* OIDs of the extension's own objects; error if it is not installed. */
extern Oid	queue_catalog_schema(void);
extern Oid	queue_catalog_relation(const char *name);
extern Oid	queue_catalog_type(const char *name);

/* Forget the cached entry of a queue or queue table in every session. */
extern void queue_catalog_invalidate(Oid relid);

extern void queue_catalog_init(void);

#endif							/* QUEUE_CATALOG_H */
