/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Catalog rows of queues and queue tables as C structs, cached for each
 *	  backend.
 *
 * Two hash tables, by the OID of a queue's view and of a queue table, point
 * to entries that each live in a memory context of their own.  An entry is
 * built from the row in queue.queue or queue.queue_table and from the
 * relations themselves; nothing is remembered about what does not exist.
 *
 * Invalidation.  Changes of catalog rows are announced as changes of the
 * relation they describe (queue_catalog_invalidate), so that the server's
 * own relcache messages carry them to every session, in order with the locks
 * taken on that relation.  A queue table also depends on its leaves and their
 * indexes: the hash table "dependents" leads from those back to the table.
 * The callback only clears flags; the next find builds anew.  What it
 * replaces goes to the list of retired entries and is freed when the
 * transaction ends, because callers may still hold pointers to it.
 *
 * Rows are read with a catalog snapshot, never with the transaction's, so
 * that a queue stopped a moment ago is stopped in REPEATABLE READ as well.
 *
 * Locks: callers lock the queue's view before they find it.  A build locks
 * the queue table, then its leaves, for the time of the build only: a lock
 * kept to the end of the transaction would hold up rotation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "catalog.h"
#include "compat.h"
#include "errors.h"
#include "queue.h"

/* how often a build is repeated because something changed during it */
#define MAX_BUILD_ATTEMPTS	3

/* how many columns the longest of our index keys has */
#define MAX_KEY_COLUMNS		5

/* the extension's own relations that are read here */
typedef enum OwnRelation
{
	OWN_QUEUE,
	OWN_QUEUE_PKEY,
	OWN_QUEUE_BY_ID,
	OWN_QUEUE_TABLE,
	OWN_QUEUE_TABLE_PKEY,
	OWN_NUM_RELATIONS
} OwnRelation;

static const char *const own_relation_names[OWN_NUM_RELATIONS] = {
	"queue",
	"queue_pkey",
	"queue_queue_table_id_key",
	"queue_table",
	"queue_table_pkey"
};

/* OIDs of the extension's objects; valid = false: look again */
typedef struct OwnObjects
{
	bool		valid;
	Oid			schema;
	Oid			relations[OWN_NUM_RELATIONS];
	Oid			published_function; /* queue._message_published */
} OwnObjects;

/* columns of queue.queue as they are made in tables.sql */
enum
{
	ANUM_QUEUE_VIEW = 1,
	ANUM_QUEUE_QUEUE_TABLE,
	ANUM_QUEUE_ID,
	ANUM_QUEUE_QUEUE_TYPE,
	ANUM_QUEUE_IS_DEFAULT_EXCEPTION,
	ANUM_QUEUE_MAX_RETRIES,
	ANUM_QUEUE_RETRY_DELAY,
	ANUM_QUEUE_RETENTION_TIME,
	ANUM_QUEUE_ENQUEUE_ENABLED,
	ANUM_QUEUE_DEQUEUE_ENABLED
};

/* and of queue.queue_table */
enum
{
	ANUM_QUEUE_TABLE_RELATION = 1,
	ANUM_QUEUE_TABLE_PAYLOAD_TYPE,
	ANUM_QUEUE_TABLE_SORT_LIST,
	ANUM_QUEUE_TABLE_MULTIPLE_CONSUMERS,
	ANUM_QUEUE_TABLE_MESSAGE_GROUPING,
	ANUM_QUEUE_TABLE_ROTATION
};

/* a struct in a context of its own */
typedef struct CacheItem
{
	MemoryContext context;
	struct CacheItem *next_retired;
	union
	{
		QueueDesc	queue;
		QueueTable	table;
	}			u;
} CacheItem;

/* entry of either hash table */
typedef struct CacheEntry
{
	Oid			relid;			/* hash key */
	bool		valid;
	CacheItem  *item;			/* NULL: never built */
} CacheEntry;

/* what a queue table depends on */
typedef struct Dependent
{
	Oid			relid;			/* hash key: leaf, sub-parent or index */
	Oid			queue_table;
	bool		is_leaf;
} Dependent;

typedef bool (*BuildFunction) (CacheItem *item, Oid relid, bool missing_ok);

const char *const queue_column_names[QUEUE_NUM_COLS] = {
	"queue_id",
	"consumer_id",
	"msgid",
	"priority",
	"state",
	"segment",
	"retry_count",
	"order_at",
	"due_at",
	"expires_at",
	"expiration",
	"enq_xid",
	"deq_time",
	"deq_xid",
	"original_msgid",
	"group_id",
	"step",
	"original_queue_id",
	"receipt",
	"enq_user",
	"deq_user",
	"correlation",
	"exception_queue",
	"expiration_reason",
	"sender_name",
	"sender_address",
	"sender_protocol",
	"reply_to",
	"routing_key",
	"group_key",
	"dedup_key",
	"source",
	"properties",
	"payload"
};

/* their types, but for the payload's */
static const Oid column_types[QUEUE_NUM_COLS] = {
	INT4OID, INT4OID, UUIDOID, INT4OID, INT2OID, INT2OID, INT4OID, INT8OID,
	TIMESTAMPTZOID, TIMESTAMPTZOID, INTERVALOID, XID8OID,
	TIMESTAMPTZOID, XID8OID, UUIDOID, UUIDOID, INT4OID, INT4OID,
	UUIDOID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	INT4OID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	JSONBOID, InvalidOid
};

static HTAB *queue_cache = NULL;
static HTAB *table_cache = NULL;
static HTAB *dependents = NULL;
static CacheItem *retired = NULL;
static OwnObjects own;

/* the entry that was found last in each cache: mostly it is asked for again */
static CacheEntry *last_queue_entry = NULL;
static CacheEntry *last_table_entry = NULL;

/* counts invalidations, so that a build notices one */
static uint64 invalidations = 0;

static void invalidate_callback(Datum arg, Oid relid);
static void forget_functions(Datum arg, int cacheid, uint32 hashvalue);
static void xact_callback(XactEvent event, void *arg);
static bool find_own_objects(bool missing_ok);
static CacheItem *find_item(HTAB *cache, Oid relid, BuildFunction build,
							bool missing_ok);
static bool build_queue(CacheItem *item, Oid relid, bool missing_ok);
static bool build_table(CacheItem *item, Oid relid, bool missing_ok);

/* -------------------------------------------------------------------------
 * Start, invalidation, end of transaction
 * -------------------------------------------------------------------------
 */

static HTAB *
create_cache(const char *name, Size entry_size)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = entry_size;
	ctl.hcxt = CacheMemoryContext;
	return hash_create(name, 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Make the caches and hook them up, at the first use in a backend: when the
 * library is loaded there is no CacheMemoryContext yet, and a callback that
 * the postmaster registered would be inherited without it.
 */
static void
ensure_caches(void)
{
	static bool registered = false;

	if (registered)
		return;
	if (CacheMemoryContext == NULL)
		CreateCacheMemoryContext();
	if (queue_cache == NULL)
		queue_cache = create_cache("queue: queues", sizeof(CacheEntry));
	if (table_cache == NULL)
		table_cache = create_cache("queue: queue tables", sizeof(CacheEntry));
	if (dependents == NULL)
		dependents = create_cache("queue: leaves", sizeof(Dependent));
	CacheRegisterRelcacheCallback(invalidate_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, forget_functions, (Datum) 0);
	registered = true;
}

/*
 * Called when the library is loaded.  Transaction callbacks run in the
 * reverse order of their registration: this one is registered first and so
 * frees last, after the other modules have used what it frees.
 */
void
queue_catalog_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			return;
		default:
			break;
	}

	while (retired != NULL)
	{
		CacheItem  *item = retired;

		retired = item->next_retired;
		MemoryContextDelete(item->context);
	}
}

static void
invalidate_all(HTAB *cache)
{
	HASH_SEQ_STATUS scan;
	CacheEntry *entry;

	hash_seq_init(&scan, cache);
	while ((entry = hash_seq_search(&scan)) != NULL)
		entry->valid = false;
}

static void
invalidate_one(HTAB *cache, Oid relid)
{
	CacheEntry *entry;

	entry = hash_search(cache, &relid, HASH_FIND, NULL);
	if (entry != NULL)
		entry->valid = false;
}

/* A relation (InvalidOid: any) has changed.  Must not fail or allocate. */
static void
invalidate_callback(Datum arg, Oid relid)
{
	Dependent  *dependent;

	invalidations++;
	if (!OidIsValid(relid))
	{
		invalidate_all(queue_cache);
		invalidate_all(table_cache);
		own.valid = false;
		return;
	}

	invalidate_one(queue_cache, relid);
	invalidate_one(table_cache, relid);
	dependent = hash_search(dependents, &relid, HASH_FIND, NULL);
	if (dependent != NULL)
		invalidate_one(table_cache, dependent->queue_table);
	if (own.valid)
	{
		for (int i = 0; i < OWN_NUM_RELATIONS; i++)
		{
			if (own.relations[i] == relid)
				own.valid = false;
		}
	}
}

static void
forget_functions(Datum arg, int cacheid, uint32 hashvalue)
{
	invalidations++;
	own.valid = false;
}

/*
 * Forget the entry of a queue or queue table in every session, when this
 * transaction commits, and in this one at once.  The command counter is
 * advanced so that a rollback undoes it here: messages of the command under
 * way are not replayed by an abort.
 */
void
queue_catalog_invalidate(Oid relid)
{
	ensure_caches();
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		CacheInvalidateRelcacheByRelid(relid);
	CommandCounterIncrement();
	invalidate_callback((Datum) 0, relid);
}

/* -------------------------------------------------------------------------
 * The extension's own objects
 * -------------------------------------------------------------------------
 */

static bool
report_not_installed(bool missing_ok)
{
	if (!missing_ok)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"queue\" is not installed in this database"),
				 errhint("Install it with CREATE EXTENSION queue.")));
	return false;
}

/* Fill "own"; false if the extension is not (completely) there. */
static bool
find_own_objects(bool missing_ok)
{
	OwnObjects	found;
	uint64		before;

	ensure_caches();
	if (own.valid)
		return true;

	before = invalidations;
	memset(&found, 0, sizeof(found));
	if (!OidIsValid(get_extension_oid("queue", true)))
		return report_not_installed(missing_ok);
	found.schema = get_namespace_oid(QUEUE_SCHEMA, true);
	if (!OidIsValid(found.schema))
		return report_not_installed(missing_ok);
	for (int i = 0; i < OWN_NUM_RELATIONS; i++)
	{
		found.relations[i] = get_relname_relid(own_relation_names[i],
											   found.schema);
		if (!OidIsValid(found.relations[i]))
			return report_not_installed(missing_ok);
	}
	found.published_function =
		LookupFuncName(list_make2(makeString(pstrdup(QUEUE_SCHEMA)),
								  makeString(pstrdup("_message_published"))),
					   0, NULL, true);
	found.valid = (before == invalidations);
	own = found;
	return true;
}

Oid
queue_catalog_schema(void)
{
	(void) find_own_objects(false);
	return own.schema;
}

Oid
queue_catalog_relation(const char *name)
{
	Oid			relid;

	relid = get_relname_relid(name, queue_catalog_schema());
	if (!OidIsValid(relid))
		(void) report_not_installed(false);
	return relid;
}

Oid
queue_catalog_type(const char *name)
{
	Oid			type;

	type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						   CStringGetDatum(name),
						   ObjectIdGetDatum(queue_catalog_schema()));
	if (!OidIsValid(type))
		(void) report_not_installed(false);
	return type;
}

/*
 * The name of a relation as the user would write it now; palloc'd.  A
 * relation that is gone is named by its OID.
 */
char *
queue_catalog_name(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema;

	if (name == NULL)
		return psprintf("%u", relid);
	if (RelationIsVisible(relid))
		return name;
	schema = get_namespace_name(get_rel_namespace(relid));
	return psprintf("%s.%s", schema, name);
}

/* -------------------------------------------------------------------------
 * Cache entries
 * -------------------------------------------------------------------------
 */

static CacheItem *
new_item(const char *name)
{
	MemoryContext context;
	CacheItem  *item;

	context = AllocSetContextCreate(CurrentMemoryContext, "queue catalog",
									ALLOCSET_SMALL_SIZES);
	item = MemoryContextAllocZero(context, sizeof(CacheItem));
	item->context = context;
	return item;
}

static void
retire_item(CacheItem *item)
{
	if (item == NULL)
		return;
	item->next_retired = retired;
	retired = item;
}

/* Put an item into the cache; valid unless something changed meanwhile. */
static void
store_item(HTAB *cache, Oid relid, CacheItem *item, bool valid)
{
	CacheEntry *entry;
	bool		found;

	entry = hash_search(cache, &relid, HASH_ENTER, &found);
	if (!found)
		entry->item = NULL;
	retire_item(entry->item);
	MemoryContextSetParent(item->context, CacheMemoryContext);
	entry->item = item;
	entry->valid = valid;
}

static void
forget_item(HTAB *cache, Oid relid)
{
	CacheEntry *entry;

	entry = hash_search(cache, &relid, HASH_FIND, NULL);
	if (entry == NULL)
		return;
	retire_item(entry->item);
	hash_search(cache, &relid, HASH_REMOVE, NULL);
	last_queue_entry = last_table_entry = NULL;
}

/* NULL: there is none. */
static CacheEntry *
find_entry(HTAB *cache, Oid relid)
{
	CacheEntry **last = cache == queue_cache ? &last_queue_entry :
	&last_table_entry;

	if (*last == NULL || (*last)->relid != relid)
		*last = hash_search(cache, &relid, HASH_FIND, NULL);
	return *last;
}

/* The valid entry's item, or a new one; NULL if there is no such row. */
static CacheItem *
find_item(HTAB *cache, Oid relid, BuildFunction build, bool missing_ok)
{
	CacheEntry *entry;
	CacheItem  *item = NULL;
	bool		valid = false;

	entry = find_entry(cache, relid);
	if (entry != NULL && entry->valid)
		return entry->item;

	for (int i = 0; i < MAX_BUILD_ATTEMPTS && !valid; i++)
	{
		uint64		before = invalidations;

		if (item != NULL)
			MemoryContextDelete(item->context);
		item = new_item("queue catalog");
		if (!build(item, relid, missing_ok))
		{
			MemoryContextDelete(item->context);
			forget_item(cache, relid);
			return NULL;
		}
		valid = (before == invalidations);
	}
	store_item(cache, relid, item, valid);
	return item;
}

/* -------------------------------------------------------------------------
 * Queues
 * -------------------------------------------------------------------------
 */

static bool
report_no_queue(Oid relid, bool missing_ok)
{
	if (missing_ok)
		return false;
	if (get_rel_name(relid) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("queue with OID %u does not exist", relid)));
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("\"%s\" is not a queue", queue_catalog_name(relid)),
			 errhint("The view queue.queues lists the queues. A queue is made with queue.create_queue(); one that was restored without its catalog rows is registered with queue.adopt().")));
	return false;				/* keep compiler quiet */
}

/* NULL is "for ever", as is infinity from version 17 on. */
static bool
interval_is_forever(Datum value, bool isnull)
{
	if (isnull)
		return true;
#ifdef INTERVAL_IS_NOEND
	if (INTERVAL_IS_NOEND(DatumGetIntervalP(value)))
		return true;
#endif
	return false;
}

static void
deform_queue(QueueDesc *queue, HeapTuple tuple, TupleDesc desc)
{
	Datum		value;
	bool		isnull;

	queue->queue_table =
		DatumGetObjectId(heap_getattr(tuple, ANUM_QUEUE_QUEUE_TABLE, desc,
									  &isnull));
	queue->id = DatumGetInt32(heap_getattr(tuple, ANUM_QUEUE_ID, desc,
										   &isnull));
	value = heap_getattr(tuple, ANUM_QUEUE_QUEUE_TYPE, desc, &isnull);
	queue->is_exception = !isnull &&
		strcmp(TextDatumGetCString(value), "exception") == 0;
	queue->enqueue_enabled =
		DatumGetBool(heap_getattr(tuple, ANUM_QUEUE_ENQUEUE_ENABLED, desc,
								  &isnull));
	queue->dequeue_enabled =
		DatumGetBool(heap_getattr(tuple, ANUM_QUEUE_DEQUEUE_ENABLED, desc,
								  &isnull));

	value = heap_getattr(tuple, ANUM_QUEUE_MAX_RETRIES, desc, &isnull);
	queue->max_retries = isnull ? -1 : (int64) DatumGetInt32(value);

	value = heap_getattr(tuple, ANUM_QUEUE_RETRY_DELAY, desc, &isnull);
	queue->retry_delay_forever = interval_is_forever(value, isnull);
	if (!queue->retry_delay_forever)
		queue->retry_delay = *DatumGetIntervalP(value);

	value = heap_getattr(tuple, ANUM_QUEUE_RETENTION_TIME, desc, &isnull);
	queue->retention_forever = interval_is_forever(value, isnull);
	if (!queue->retention_forever)
		queue->retention = *DatumGetIntervalP(value);
}

/* Read the row of a view; false if there is none. */
static bool
read_queue_row(QueueDesc *queue, Oid relid)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key[1];
	HeapTuple	tuple;
	bool		found = false;

	catalog = try_relation_open(own.relations[OWN_QUEUE], AccessShareLock);
	if (catalog == NULL)
		return false;
	ScanKeyInit(&key[0], ANUM_QUEUE_VIEW, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, own.relations[OWN_QUEUE_PKEY], true,
							  NULL, 1, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		deform_queue(queue, tuple, RelationGetDescr(catalog));
		found = true;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* Owner of a relation of this kind; false if there is no such relation. */
static bool
find_owner(Oid relid, char relkind, Oid *owner)
{
	HeapTuple	tuple;
	Form_pg_class form;
	bool		found;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	*owner = form->relowner;
	found = (form->relkind == relkind);
	ReleaseSysCache(tuple);
	return found;
}

static bool
build_queue(CacheItem *item, Oid relid, bool missing_ok)
{
	QueueDesc  *queue = &item->u.queue;

	if (!find_own_objects(missing_ok))
		return false;
	if (!find_owner(relid, RELKIND_VIEW, &queue->owner) ||
		!read_queue_row(queue, relid))
		return report_no_queue(relid, missing_ok);
	queue->relid = relid;
	queue->table = queue_catalog_find_table(queue->queue_table, true);
	if (queue->table == NULL)
	{
		if (missing_ok)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("the queue table of queue \"%s\" is missing",
						queue_catalog_name(relid)),
				 errhint("If the queue table exists, register it with queue.adopt().")));
	}
	return true;
}

QueueDesc *
queue_catalog_find(Oid queue, bool missing_ok)
{
	CacheItem  *item;

	ensure_caches();
	for (int i = 0; i < MAX_BUILD_ATTEMPTS; i++)
	{
		CacheEntry *table_entry;

		item = find_item(queue_cache, queue, build_queue, missing_ok);
		if (item == NULL)
			return NULL;
		table_entry = find_entry(table_cache, item->u.queue.queue_table);
		if (table_entry != NULL && table_entry->valid &&
			&table_entry->item->u.table == item->u.queue.table)
			break;
		/* its queue table has changed: make a new one that points there */
		invalidate_one(queue_cache, queue);
	}
	return &item->u.queue;
}

/* The default exception queue of a queue table, or InvalidOid. */
Oid
queue_catalog_exception_queue(Oid queue_table)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key[1];
	HeapTuple	tuple;
	Oid			view = InvalidOid;
	Oid			owner;
	bool		isnull;

	if (!find_own_objects(true))
		return InvalidOid;
	catalog = try_relation_open(own.relations[OWN_QUEUE], AccessShareLock);
	if (catalog == NULL)
		return InvalidOid;
	ScanKeyInit(&key[0], ANUM_QUEUE_QUEUE_TABLE, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(queue_table));
	scan = systable_beginscan(catalog, own.relations[OWN_QUEUE_BY_ID], true,
							  NULL, 1, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		TupleDesc	desc = RelationGetDescr(catalog);

		if (!DatumGetBool(heap_getattr(tuple, ANUM_QUEUE_IS_DEFAULT_EXCEPTION,
									   desc, &isnull)))
			continue;
		view = DatumGetObjectId(heap_getattr(tuple, ANUM_QUEUE_VIEW, desc,
											 &isnull));
		break;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return find_owner(view, RELKIND_VIEW, &owner) ? view : InvalidOid;
}

/* The queue with this id in a queue table, or InvalidOid. */
Oid
queue_catalog_queue_by_id(Oid queue_table, int32 id)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple	tuple;
	Oid			view = InvalidOid;
	Oid			owner;
	bool		isnull;

	if (!find_own_objects(true))
		return InvalidOid;
	catalog = try_relation_open(own.relations[OWN_QUEUE], AccessShareLock);
	if (catalog == NULL)
		return InvalidOid;
	ScanKeyInit(&key[0], ANUM_QUEUE_QUEUE_TABLE, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(queue_table));
	ScanKeyInit(&key[1], ANUM_QUEUE_ID, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(id));
	scan = systable_beginscan(catalog, own.relations[OWN_QUEUE_BY_ID], true,
							  NULL, 2, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		view = DatumGetObjectId(heap_getattr(tuple, ANUM_QUEUE_VIEW,
											 RelationGetDescr(catalog),
											 &isnull));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return find_owner(view, RELKIND_VIEW, &owner) ? view : InvalidOid;
}

List *
queue_catalog_queues(Oid queue_table)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	List	   *result = NIL;
	bool		isnull;

	if (!find_own_objects(true))
		return NIL;
	catalog = try_relation_open(own.relations[OWN_QUEUE], AccessShareLock);
	if (catalog == NULL)
		return NIL;
	ScanKeyInit(&key, ANUM_QUEUE_QUEUE_TABLE, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(queue_table));
	scan = systable_beginscan(catalog, own.relations[OWN_QUEUE_BY_ID], true,
							  NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		result = lappend_oid(result,
							 DatumGetObjectId(heap_getattr(tuple,
														   ANUM_QUEUE_VIEW,
														   RelationGetDescr(catalog),
														   &isnull)));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return result;
}

/* All queue tables of the database; empty without the extension. */
List *
queue_catalog_tables(void)
{
	Relation	catalog;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *result = NIL;
	bool		isnull;

	if (!find_own_objects(true))
		return NIL;
	catalog = try_relation_open(own.relations[OWN_QUEUE_TABLE],
								AccessShareLock);
	if (catalog == NULL)
		return NIL;
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		result = lappend_oid(result,
							 DatumGetObjectId(heap_getattr(tuple,
														   ANUM_QUEUE_TABLE_RELATION,
														   RelationGetDescr(catalog),
														   &isnull)));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return result;
}

/* -------------------------------------------------------------------------
 * Queue tables: rows and columns
 * -------------------------------------------------------------------------
 */

static bool
parse_sort_list(const char *sort_list, QueueSort *sort)
{
	static const struct
	{
		const char *name;
		QueueSort	sort;
	}			sorts[] = {
		{"enq_time", QUEUE_SORT_ENQ_TIME},
		{"priority", QUEUE_SORT_PRIORITY},
		{"priority,enq_time", QUEUE_SORT_PRIORITY},
		{"enq_time,priority", QUEUE_SORT_ENQ_TIME_PRIORITY},
		{"commit_time", QUEUE_SORT_COMMIT_TIME},
		{"priority,commit_time", QUEUE_SORT_PRIORITY_COMMIT_TIME}
	};

	for (int i = 0; i < lengthof(sorts); i++)
	{
		if (strcmp(sort_list, sorts[i].name) == 0)
		{
			*sort = sorts[i].sort;
			return true;
		}
	}
	return false;
}

/* Read the row of a queue table; false if there is none. */
static bool
read_table_row(QueueTable *table, Oid relid)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key[1];
	HeapTuple	tuple;
	bool		found = false;
	bool		isnull;

	catalog = try_relation_open(own.relations[OWN_QUEUE_TABLE],
								AccessShareLock);
	if (catalog == NULL)
		return false;
	ScanKeyInit(&key[0], ANUM_QUEUE_TABLE_RELATION, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, own.relations[OWN_QUEUE_TABLE_PKEY],
							  true, NULL, 1, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Datum		value = heap_getattr(tuple, ANUM_QUEUE_TABLE_SORT_LIST,
										 RelationGetDescr(catalog), &isnull);
		char	   *sort_list = TextDatumGetCString(value);

		found = true;
		if (!parse_sort_list(sort_list, &table->sort))
			ereport(ERROR,
					(errcode(ERRCODE_QUEUE_DAMAGED),
					 errmsg("queue table \"%s\" has the unknown sort list \"%s\"",
							queue_catalog_name(relid), sort_list)));
		value = heap_getattr(tuple, ANUM_QUEUE_TABLE_ROTATION,
							 RelationGetDescr(catalog), &isnull);
		table->eager = strcmp(TextDatumGetCString(value), "eager") == 0;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

static bool
report_no_table(Oid relid, bool missing_ok)
{
	if (missing_ok)
		return false;
	if (get_rel_name(relid) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("queue table with OID %u does not exist", relid)));
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("\"%s\" is not a queue table", queue_catalog_name(relid)),
			 errhint("The view queue.queue_tables lists the queue tables. One is made with queue.create_queue_table(); one that was restored without its catalog rows is registered with queue.adopt().")));
	return false;				/* keep compiler quiet */
}

/* Where are the columns?  All but the payload must be as they were made. */
static void
find_columns(QueueTable *table, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	table->natts = desc->natts;
	table->in_order = true;
	table->payload_type = InvalidOid;
	table->payload_typmod = -1;
	for (int column = 0; column < QUEUE_NUM_COLS; column++)
	{
		const char *name = queue_column_names[column];
		Form_pg_attribute attr = NULL;

		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute candidate = TupleDescAttr(desc, i);

			if (!candidate->attisdropped &&
				strcmp(NameStr(candidate->attname), name) == 0)
				attr = candidate;
		}
		if (attr == NULL || attr->attnum != column + 1)
			table->in_order = false;
		if (column == QUEUE_COL_PAYLOAD)
		{
			if (attr == NULL)
				continue;		/* its type was dropped; callers report it */
			table->payload_type = attr->atttypid;
			table->payload_typmod = attr->atttypmod;
			table->payload_collation = attr->attcollation;
		}
		else if (attr == NULL || attr->atttypid != column_types[column])
			ereport(ERROR,
					(errcode(ERRCODE_QUEUE_DAMAGED),
					 errmsg("queue table \"%s\" has no column \"%s\" of type %s",
							queue_catalog_name(table->relid), name,
							format_type_be(column_types[column]))));
		table->attnum[column] = attr->attnum;
	}
}

/* -------------------------------------------------------------------------
 * Queue tables: leaves
 * -------------------------------------------------------------------------
 */

/*
 * The columns of our indexes on a leaf.  The first list is the leaf's
 * ordering key.  Returns how many lists there are; each ends with -1.
 */
static int
index_columns(QueueSort sort, QueueState state,
			  int columns[2][MAX_KEY_COLUMNS + 1])
{
	int			n = 0;

	if (state == QUEUE_STATE_PROCESSED)
	{
		columns[0][n++] = QUEUE_COL_MSGID;
		columns[0][n] = -1;
		return 1;
	}

	columns[0][n++] = QUEUE_COL_QUEUE_ID;
	columns[0][n++] = QUEUE_COL_CONSUMER_ID;
	if (QUEUE_SORT_HAS_LANES(sort))
		columns[0][n++] = QUEUE_COL_PRIORITY;
	if (state == QUEUE_STATE_WAITING)
		columns[0][n++] = QUEUE_COL_DUE_AT;
	else if (QUEUE_SORT_HAS_ORDER_AT(sort))
	{
		columns[0][n++] = QUEUE_COL_ORDER_AT;
		if (sort == QUEUE_SORT_ENQ_TIME_PRIORITY)
			columns[0][n++] = QUEUE_COL_PRIORITY;
	}
	columns[0][n++] = QUEUE_COL_MSGID;
	columns[0][n] = -1;
	if (state != QUEUE_STATE_WAITING)
		return 1;

	columns[1][0] = QUEUE_COL_MSGID;
	columns[1][1] = -1;
	return 2;
}

/* Is it a plain ascending btree over just these columns? */
static bool
index_has_columns(Relation index, const QueueTable *table, const int *columns)
{
	Form_pg_index form = index->rd_index;
	int			n;

	for (n = 0; columns[n] >= 0; n++)
	{
		TypeCacheEntry *type;

		if (n >= form->indnkeyatts ||
			form->indkey.values[n] != table->attnum[columns[n]] ||
			index->rd_indoption[n] != 0)
			return false;
		type = lookup_type_cache(column_types[columns[n]],
								 TYPECACHE_BTREE_OPFAMILY);
		if (type->btree_opf != index->rd_opfamily[n])
			return false;
	}
	return form->indnatts == n &&
		index->rd_rel->relam == BTREE_AM_OID &&
		!form->indisunique &&
		!form->indisexclusion &&
		RelationGetIndexPredicate(index) == NIL &&
		RelationGetIndexExpressions(index) == NIL;
}

static void
remember_dependent(Oid relid, Oid queue_table, bool is_leaf)
{
	Dependent  *dependent;

	dependent = hash_search(dependents, &relid, HASH_ENTER, NULL);
	dependent->queue_table = queue_table;
	dependent->is_leaf = is_leaf;
}

/*
 * Look at the indexes of a leaf: the one by the ordering key, how many there
 * are, whether all are ours.  Returns the key index's file, for the
 * fingerprint.
 */
static uint32
find_indexes(QueueLeaf *leaf, const QueueTable *table, Relation rel,
			 QueueState state, bool *only_ours)
{
	int			columns[2][MAX_KEY_COLUMNS + 1];
	int			num_lists = index_columns(table->sort, state, columns);
	List	   *indexes = RelationGetIndexList(rel);
	uint32		file = 0;
	ListCell   *cell;

	leaf->key_index = InvalidOid;
	foreach(cell, indexes)
	{
		Oid			index_id = lfirst_oid(cell);
		Relation	index = try_relation_open(index_id, AccessShareLock);
		int			match = -1;

		if (index == NULL)
			continue;
		remember_dependent(index_id, table->relid, false);
		for (int i = 0; i < num_lists && match < 0; i++)
		{
			if (index_has_columns(index, table, columns[i]))
				match = i;
		}
		if (match < 0)
			*only_ours = false;
		if (match == 0 && index->rd_index->indisvalid &&
			index->rd_index->indisready && !OidIsValid(leaf->key_index))
		{
			leaf->key_index = index_id;
			file = (uint32) queue_relation_filenumber(index);
		}
		relation_close(index, AccessShareLock);
	}
	list_free(indexes);
	return file;
}

/* One of our triggers, for any row, always. */
static bool
is_whole_trigger(const Trigger *trigger)
{
	return OidIsValid(own.published_function) &&
		trigger->tgfoid == own.published_function &&
		trigger->tgenabled == TRIGGER_FIRES_ALWAYS &&
		TRIGGER_FOR_ROW(trigger->tgtype) &&
		TRIGGER_FOR_UPDATE(trigger->tgtype) &&
		trigger->tgnattr == 0 &&
		trigger->tgqual == NULL;
}

/* Rule T1: after insert and update. */
static bool
is_published_trigger(const Trigger *trigger)
{
	return is_whole_trigger(trigger) &&
		TRIGGER_FOR_AFTER(trigger->tgtype) &&
		TRIGGER_FOR_INSERT(trigger->tgtype);
}

/* And before update and delete, which a rollback undoes. */
static bool
is_withdrawn_trigger(const Trigger *trigger)
{
	return is_whole_trigger(trigger) &&
		TRIGGER_FOR_BEFORE(trigger->tgtype) &&
		TRIGGER_FOR_DELETE(trigger->tgtype);
}

/* Inserting transaction of the current version of a trigger's row. */
static TransactionId
trigger_xmin(Oid trigger)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key[1];
	HeapTuple	tuple;
	TransactionId xmin = InvalidTransactionId;

	catalog = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(catalog, TriggerOidIndexId, true, NULL, 1, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return xmin;
}

/* Look at the triggers; returns the OID of the first of ours. */
static Oid
find_triggers(QueueLeaf *leaf, Relation rel, bool *only_ours)
{
	TriggerDesc *triggers = rel->trigdesc;
	Oid			ours = InvalidOid;
	bool		published = false;
	bool		withdrawn = false;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgfoid != own.published_function)
			*only_ours = false;
		if (is_published_trigger(trigger))
		{
			published = true;
			ours = trigger->tgoid;
		}
		else if (is_withdrawn_trigger(trigger))
			withdrawn = true;
	}
	leaf->published = published && withdrawn;
	return ours;
}

/* Which columns of a queue table are made NOT NULL? */
static bool
column_is_not_null(int column)
{
	return column <= QUEUE_COL_RETRY_COUNT;
}

/*
 * May rows of this leaf be formed by position, with nothing computed or
 * checked that we do not know of?
 */
static bool
layout_is_ours(const QueueTable *table, TupleDesc leaf, TupleDesc parent)
{
	TupleConstr *constr = leaf->constr;

	if (leaf->natts != QUEUE_NUM_COLS || parent->natts != QUEUE_NUM_COLS ||
		!OidIsValid(table->payload_type))
		return false;
	if (constr != NULL &&
		(constr->num_check > 0 || constr->num_defval > 0 ||
		 constr->has_generated_stored))
		return false;
	for (int column = 0; column < QUEUE_NUM_COLS; column++)
	{
		Form_pg_attribute a = TupleDescAttr(leaf, table->attnum[column] - 1);
		Form_pg_attribute b = TupleDescAttr(parent,
											table->attnum[column] - 1);

		if (a->attisdropped || a->atthasdef || a->atthasmissing ||
			a->attgenerated != '\0' || a->attidentity != '\0' ||
			a->atttypid != b->atttypid || a->atttypmod != b->atttypmod ||
			a->attcollation != b->attcollation ||
			a->attnotnull != column_is_not_null(column) ||
			strcmp(NameStr(a->attname), queue_column_names[column]) != 0)
			return false;
	}
	return true;
}

/* Rules and row security are applied by the planner only. */
static bool
relation_is_plain(Relation rel)
{
	return !rel->rd_rel->relhasrules &&
		!rel->rd_rel->relrowsecurity;
}

static uint64
fingerprint_leaf(const QueueLeaf *leaf, uint32 file, Oid trigger,
				 uint32 index_file)
{
	uint32		parts[6];

	parts[0] = leaf->relid;
	parts[1] = file;
	parts[2] = trigger;
	parts[3] = OidIsValid(trigger) ? trigger_xmin(trigger) : 0;
	parts[4] = leaf->key_index;
	parts[5] = index_file;
	return hash_bytes_extended((const unsigned char *) parts, sizeof(parts),
							   0);
}

static void
examine_leaf(QueueLeaf *leaf, const QueueTable *table, Relation parent,
			 Oid relid, QueueState state)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	bool		only_ours = true;
	uint32		index_file;
	Oid			trigger;

	if (rel == NULL)
		return;
	remember_dependent(relid, table->relid, true);
	leaf->relid = relid;
	leaf->queue_table = table->relid;
	index_file = find_indexes(leaf, table, rel, state, &only_ours);
	trigger = find_triggers(leaf, rel, &only_ours);
	leaf->direct = only_ours &&
		rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		relation_is_plain(rel) &&
		relation_is_plain(parent) &&
		parent->trigdesc == NULL &&
		layout_is_ours(table, RelationGetDescr(rel),
					   RelationGetDescr(parent));
	leaf->fingerprint =
		fingerprint_leaf(leaf, (uint32) queue_relation_filenumber(rel),
						 trigger, index_file);
	relation_close(rel, AccessShareLock);
}

/* The partition of rel for this value of its list key, or InvalidOid. */
static Oid
partition_for(Relation rel, int16 value)
{
	PartitionDesc partitions;
	PartitionBoundInfo bounds;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return InvalidOid;
	partitions = RelationGetPartitionDesc(rel, true);
	bounds = partitions->boundinfo;
	if (partitions->nparts == 0 || bounds->strategy != PARTITION_STRATEGY_LIST)
		return InvalidOid;
	for (int i = 0; i < bounds->ndatums; i++)
	{
		if (DatumGetInt16(bounds->datums[i][0]) == value)
			return partitions->oids[bounds->indexes[i]];
	}
	return InvalidOid;
}

/* The leaves of one state: a single one, or a ring of segments. */
static void
find_leaves(QueueTable *table, Relation parent, QueueState state,
			QueueLeaf *leaves, int num_leaves)
{
	Oid			relid = partition_for(parent, (int16) state);
	Relation	ring;

	if (!OidIsValid(relid))
		return;
	if (num_leaves == 1)
	{
		examine_leaf(leaves, table, parent, relid, state);
		return;
	}
	ring = try_relation_open(relid, AccessShareLock);
	if (ring == NULL)
		return;
	remember_dependent(relid, table->relid, false);
	for (int segment = 0; segment < num_leaves; segment++)
	{
		Oid			leaf = partition_for(ring, (int16) segment);

		if (OidIsValid(leaf))
			examine_leaf(&leaves[segment], table, parent, leaf, state);
	}
	relation_close(ring, AccessShareLock);
}

static bool
build_table(CacheItem *item, Oid relid, bool missing_ok)
{
	QueueTable *table = &item->u.table;
	Relation	rel;

	if (!find_own_objects(missing_ok))
		return false;
	if (!find_owner(relid, RELKIND_PARTITIONED_TABLE, &table->owner) ||
		!read_table_row(table, relid))
		return report_no_table(relid, missing_ok);
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		return report_no_table(relid, missing_ok);

	table->relid = relid;
	table->owner = rel->rd_rel->relowner;
	find_columns(table, rel);
	find_leaves(table, rel, QUEUE_STATE_READY, table->ready, QUEUE_SEGMENTS);
	find_leaves(table, rel, QUEUE_STATE_WAITING, &table->waiting, 1);
	find_leaves(table, rel, QUEUE_STATE_PROCESSED, table->processed,
				QUEUE_SEGMENTS);
	find_leaves(table, rel, QUEUE_STATE_EXPIRED, &table->expired, 1);
	relation_close(rel, AccessShareLock);
	return true;
}

QueueTable *
queue_catalog_find_table(Oid queue_table, bool missing_ok)
{
	CacheItem  *item;

	ensure_caches();
	item = find_item(table_cache, queue_table, build_table, missing_ok);
	return item != NULL ? &item->u.table : NULL;
}

bool
queue_catalog_table_is_gone(Oid queue_table)
{
	return !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(queue_table));
}

QueueRing *
queue_catalog_ring(const QueueTable *table)
{
	Oid			leaves[QUEUE_SEGMENTS];

	for (int i = 0; i < QUEUE_SEGMENTS; i++)
		leaves[i] = table->ready[i].relid;
	if (table->ring != NULL &&
		queue_ring_is(table->ring, table->relid, leaves))
		return table->ring;

	/* remembered in the entry; that it is a cache is nobody's concern */
	((QueueTable *) table)->ring = queue_ring_find(table->relid, leaves,
												   queue_catalog_table_is_gone);
	return table->ring;
}

bool
queue_catalog_classify_leaf(const QueueTable *table, Oid relid,
							QueueState *state, int *segment)
{
	*segment = 0;
	if (!OidIsValid(relid))
		return false;
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (table->ready[i].relid == relid)
			*state = QUEUE_STATE_READY;
		else if (table->processed[i].relid == relid)
			*state = QUEUE_STATE_PROCESSED;
		else
			continue;
		*segment = i;
		return true;
	}
	if (table->waiting.relid == relid)
		*state = QUEUE_STATE_WAITING;
	else if (table->expired.relid == relid)
		*state = QUEUE_STATE_EXPIRED;
	else
		return false;
	return true;
}

/* The queue table of which relid is a leaf, or InvalidOid. */
Oid
queue_catalog_table_of_leaf(Oid relid)
{
	Dependent  *dependent;
	QueueTable *table;
	QueueState	state;
	int			segment;
	List	   *ancestors;

	ensure_caches();
	dependent = hash_search(dependents, &relid, HASH_FIND, NULL);
	if (dependent != NULL && dependent->is_leaf)
	{
		CacheEntry *entry = hash_search(table_cache, &dependent->queue_table,
										HASH_FIND, NULL);

		if (entry != NULL && entry->valid &&
			queue_catalog_classify_leaf(&entry->item->u.table, relid, &state,
										&segment))
			return dependent->queue_table;
	}

	if (!get_rel_relispartition(relid))
		return InvalidOid;
	ancestors = get_partition_ancestors(relid);
	table = ancestors == NIL ? NULL :
		queue_catalog_find_table(llast_oid(ancestors), true);
	list_free(ancestors);
	if (table != NULL &&
		queue_catalog_classify_leaf(table, relid, &state, &segment))
		return table->relid;
	return InvalidOid;
}
