/*-------------------------------------------------------------------------
 *
 * admin.c
 *	  Create, alter, start, stop and drop queues.
 *
 * A queue is a view over its queue table and a row in queue.queue.  The view
 * is the user's, the row is the extension's.  What must come back without the
 * row is noted on the view (admin_adopt.c).
 *
 * Locks.  Whoever enqueues or dequeues holds RowExclusiveLock on the view
 * until the end of its transaction.  Starting and altering take
 * ShareUpdateExclusiveLock, which lets them go on.  Stopping takes
 * ShareRowExclusiveLock: it waits for them, and new ones wait for it and
 * then find the queue stopped.  Dropping takes AccessExclusiveLock.  Each is
 * held to the end of the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "acl.h"
#include "admin_internal.h"
#include "admin_sql.h"
#include "catalog.h"
#include "compat.h"
#include "errors.h"
#include "message_store.h"
#include "name.h"
#include "wakeup.h"

/* -------------------------------------------------------------------------
 * Names and schemas
 * -------------------------------------------------------------------------
 */

/*
 * The schema in which an object will be made, and by whom: the caller, or the
 * schema's owner when only manage_any allows it.
 */
Oid
queue_admin_creation_schema(const char *schema_name, Oid *owner)
{
	Oid			schema;

	if (schema_name == NULL)
	{
		schema = RangeVarGetCreationNamespace(makeRangeVar(NULL, "", -1));
	}
	else
		schema = LookupExplicitNamespace(schema_name, false);
	if (isAnyTempNamespace(schema))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("queues and queue tables cannot be temporary")));

	*owner = GetUserId();
	if (queue_schema_aclcheck(schema, *owner, ACL_CREATE) != ACLCHECK_OK)
	{
		HeapTuple	tuple;

		if (!queue_acl_has_system_privilege(*owner, "manage_any", false))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied for schema %s",
							quote_identifier(get_namespace_name(schema))),
					 errhint("A queue table is made with the privileges that CREATE TABLE and CREATE VIEW need.")));
		tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for schema %u", schema);
		*owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
		ReleaseSysCache(tuple);
	}
	return schema;
}

void
queue_admin_report_duplicate(const char *kind, const char *name, Oid schema)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("cannot create %s \"%s\" because the name is taken",
					kind, name),
			 errdetail("Schema %s has a relation of that name.",
					   quote_identifier(get_namespace_name(schema)))));
}

/*
 * In PG_CATCH: throw the error on, as "the name is taken" if it is what a
 * session gets that makes a relation at the same time as another one.
 */
void
queue_admin_rethrow(MemoryContext context, const char *kind, const char *name,
					Oid schema)
{
	int			code = geterrcode();

	if (code != ERRCODE_UNIQUE_VIOLATION && code != ERRCODE_DUPLICATE_TABLE)
		PG_RE_THROW();
	MemoryContextSwitchTo(context);
	FlushErrorState();
	queue_admin_report_duplicate(kind, name, schema);
}

/* -------------------------------------------------------------------------
 * The view and the row
 * -------------------------------------------------------------------------
 */

static int32
next_queue_id(Oid queue_table)
{
	bool		isnull;

	if (queue_admin_run_catalog_oid("UPDATE queue.queue_table"
									" SET last_queue_id = last_queue_id + 1"
									" WHERE relation = $1"
									" RETURNING last_queue_id",
									queue_table) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("queue table \"%s\" was dropped meanwhile",
						queue_catalog_name(queue_table))));
	return DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, 1, &isnull));
}

static void
insert_queue_row(Oid view, int32 id, const NewQueue *new_queue)
{
	const QueueSettings *settings = new_queue->settings;
	bool		started = !new_queue->is_exception;
	Oid			types[] = {OIDOID, OIDOID, INT4OID, TEXTOID, BOOLOID, INT4OID,
	INTERVALOID, INTERVALOID, BOOLOID, TEXTOID};
	Datum		values[10] = {0};
	char		nulls[11] = "          ";

	values[0] = ObjectIdGetDatum(view);
	values[1] = ObjectIdGetDatum(new_queue->queue_table);
	values[2] = Int32GetDatum(id);
	values[3] = CStringGetTextDatum(new_queue->is_exception ?
									"exception" : "normal");
	values[4] = BoolGetDatum(new_queue->is_default_exception);
	if (settings->max_retries >= 0)
		values[5] = Int32GetDatum((int32) settings->max_retries);
	else
		nulls[5] = 'n';
	if (settings->retry_delay != NULL)
		values[6] = IntervalPGetDatum(settings->retry_delay);
	else
		nulls[6] = 'n';
	if (settings->retention != NULL)
		values[7] = IntervalPGetDatum(settings->retention);
	else
		nulls[7] = 'n';
	values[8] = BoolGetDatum(started);
	if (settings->comment != NULL && settings->comment[0] != '\0')
		values[9] = CStringGetTextDatum(settings->comment);
	else
		nulls[9] = 'n';

	(void) queue_admin_run_catalog("INSERT INTO queue.queue"
								   " (view, queue_table, id, queue_type,"
								   " is_default_exception, max_retries,"
								   " retry_delay, retention_time,"
								   " enqueue_enabled, dequeue_enabled, comment)"
								   " VALUES ($1::regclass, $2::regclass, $3,"
								   " $4, $5, $6, $7, $8, $9, $9, $10)",
								   10, types, values, nulls);
}

static bool
has_default(Oid relation, AttrNumber column)
{
	Oid			types[] = {OIDOID, INT2OID};
	Datum		values[2];

	values[0] = ObjectIdGetDatum(relation);
	values[1] = Int16GetDatum(column);
	return queue_admin_run_catalog("SELECT 1 FROM pg_catalog.pg_attrdef"
								   " WHERE adrelid = $1 AND adnum = $2",
								   2, types, values, NULL) > 0;
}

/*
 * The triggers of a queue's view and the default of its msgid, as far as they
 * are missing.  Without the second trigger the view would be updatable, and a
 * consumer's DELETE would reach the messages.  The default fails where
 * triggers do not fire, so that an INSERT there does not report a success
 * that stores nothing.
 */
void
queue_admin_make_view_triggers(Oid view)
{
	char	   *name = queue_name_qualified(view);
	AttrNumber	msgid = get_attnum(view, "msgid");

	if (msgid != InvalidAttrNumber && !has_default(view, msgid))
		queue_admin_run("ALTER VIEW %s ALTER COLUMN msgid"
						" SET DEFAULT queue._new_msgid()", name);
	if (!OidIsValid(get_trigger_oid(view, QUEUE_TRIGGER_ENQUEUE, true)))
		queue_admin_run("CREATE TRIGGER " QUEUE_TRIGGER_ENQUEUE
						" INSTEAD OF INSERT ON %s FOR EACH ROW"
						" EXECUTE FUNCTION queue._view_insert()", name);
	if (!OidIsValid(get_trigger_oid(view, QUEUE_TRIGGER_REFUSE, true)))
		queue_admin_run("CREATE TRIGGER " QUEUE_TRIGGER_REFUSE
						" INSTEAD OF UPDATE OR DELETE ON %s FOR EACH ROW"
						" EXECUTE FUNCTION queue._view_refuse()", name);
}

Oid
queue_admin_make_queue(const NewQueue *new_queue)
{
	StringInfoData sql;
	int32		id;
	char	   *view;
	Oid			relid;

	id = new_queue->is_default_exception ? QUEUE_DEFAULT_EXCEPTION_ID :
		next_queue_id(new_queue->queue_table);
	view = quote_qualified_identifier(get_namespace_name(new_queue->schema),
									  new_queue->name);
	initStringInfo(&sql);
	queue_admin_append_queue_view(&sql, view, new_queue->queue_table, id,
								  new_queue->is_exception);
	queue_admin_run("%s", sql.data);
	relid = get_relname_relid(new_queue->name, new_queue->schema);
	insert_queue_row(relid, id, new_queue);
	queue_admin_run("ALTER VIEW %s ALTER COLUMN priority SET DEFAULT 1", view);
	queue_admin_make_view_triggers(relid);
	queue_admin_record_settings(relid);
	queue_catalog_invalidate(relid);
	queue_catalog_invalidate(new_queue->queue_table);
	return relid;
}

/* -------------------------------------------------------------------------
 * Settings
 * -------------------------------------------------------------------------
 */

static void
check_interval(const char *argument, const Interval *value)
{
	Interval	zero = {0};

	if (value == NULL)
		return;
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp,
										  IntervalPGetDatum(value),
										  IntervalPGetDatum(&zero))) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be negative", argument),
				 errhint("NULL means for ever.")));
}

static void
check_settings(const QueueSettings *settings)
{
	if (settings->set_max_retries &&
		(settings->max_retries < -1 || settings->max_retries > PG_INT32_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_retries must be between 0 and %d",
						PG_INT32_MAX),
				 errhint("NULL means for ever.")));
	if (settings->set_retry_delay)
		check_interval("retry_delay", settings->retry_delay);
	if (settings->set_retention)
		check_interval("retention_time", settings->retention);
}

static bool
parse_queue_type(const char *queue_type)
{
	if (pg_strcasecmp(queue_type, "normal") == 0)
		return false;
	if (pg_strcasecmp(queue_type, "exception") == 0)
		return true;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid queue_type \"%s\"", queue_type),
			 errhint("Allowed are normal and exception.")));
	return false;				/* keep compiler quiet */
}

/* Messages stay in an exception queue until somebody takes them. */
static void
refuse_exception_settings(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_QUEUE_IS_EXCEPTION_QUEUE),
			 errmsg("exception queue \"%s\" cannot have max_retries, retry_delay or retention_time",
					name),
			 errhint("Leave them out: what is in an exception queue stays until it is dequeued.")));
}

/* -------------------------------------------------------------------------
 * Create
 * -------------------------------------------------------------------------
 */

/*
 * Can this queue table be the one that a queue gets for its own?  So that
 * dropping a queue and making it again finds its table.
 */
static bool
is_unused_table(Oid queue_table, Oid owner, const QueueTableSpec *spec)
{
	QueueTable *table = queue_catalog_find_table(queue_table, true);
	char	   *sort_list = queue_admin_parse_sort_list(spec->sort_list);
	Oid			types[] = {OIDOID, TEXTOID};
	Datum		values[2];

	if (table == NULL || queue_admin_queues_of(queue_table, false) != NIL)
		return false;
	values[0] = ObjectIdGetDatum(queue_table);
	values[1] = CStringGetTextDatum(sort_list);
	if (table->owner != owner || table->payload_type != spec->payload_type ||
		queue_admin_run_catalog("SELECT 1 FROM queue.queue_table"
								" WHERE relation = $1 AND sort_list = $2",
								2, types, values, NULL) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("queue table \"%s\" already exists with another owner, payload type or sort list",
						queue_catalog_name(queue_table)),
				 errhint("Drop it with queue.drop_queue_table(), or name another one with queue_table.")));
	return true;
}

/* A queue table for one queue: <queue>_qt, unless something else is there. */
static Oid
make_own_table(Oid schema, const char *queue, Oid owner,
			   const QueueTableSpec *spec)
{
	char	   *wanted = psprintf("%s_qt", queue);
	Oid			existing = InvalidOid;

	if (strlen(wanted) < NAMEDATALEN)
		existing = get_relname_relid(wanted, schema);
	if (OidIsValid(existing) && is_unused_table(existing, owner, spec))
		return existing;
	return queue_admin_make_table(schema,
								  queue_name_derive("", queue, "_qt", schema),
								  owner, spec);
}

/* The queue table that the caller named, and its owner. */
static Oid
find_given_table(const char *queue_table, Oid *owner)
{
	QueueTable *table;
	char	   *schema;
	char	   *name;
	Oid			relid;

	queue_name_parse("queue_table", queue_table, &schema, &name);
	relid = RangeVarGetRelid(makeRangeVar(schema, name, -1), NoLock, true);
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("queue table \"%s\" does not exist", queue_table),
				 errhint("Make it with queue.create_queue_table(), or leave queue_table out so that the queue gets its own.")));
	table = queue_catalog_find_table(relid, false);
	queue_acl_check_manage(relid);
	*owner = table->owner;
	return relid;
}

Oid
queue_admin_create_queue(const char *queue_name, const char *queue_table,
						 const char *queue_type,
						 const QueueSettings *settings,
						 const QueueTableSpec *spec)
{
	QueueAdminScope scope;
	NewQueue	new_queue = {0};
	QueueSettings exception_settings = {0};
	MemoryContext context = CurrentMemoryContext;
	volatile Oid result = InvalidOid;
	char	   *schema_name;
	char	   *name;
	Oid			owner;

	queue_name_parse("queue_name", queue_name, &schema_name, &name);
	queue_name_check_reserved(name);
	check_settings(settings);
	new_queue.is_exception = parse_queue_type(queue_type);
	new_queue.settings = settings;
	if (new_queue.is_exception)
	{
		Interval   *zero = palloc0(sizeof(Interval));

		if (settings->set_max_retries || settings->set_retry_delay ||
			settings->set_retention)
			refuse_exception_settings(queue_name);
		exception_settings.max_retries = -1;
		exception_settings.retry_delay = zero;
		exception_settings.retention = zero;
		exception_settings.comment = settings->comment;
		new_queue.settings = &exception_settings;
	}
	new_queue.schema = queue_admin_creation_schema(schema_name, &owner);
	new_queue.name = name;
	if (OidIsValid(get_relname_relid(name, new_queue.schema)))
		queue_admin_report_duplicate("queue", name, new_queue.schema);
	if (queue_table != NULL)
		new_queue.queue_table = find_given_table(queue_table, &owner);
	else
		queue_admin_check_spec(spec);

	queue_admin_begin(&scope, owner);
	PG_TRY();
	{
		if (queue_table == NULL)
			new_queue.queue_table = make_own_table(new_queue.schema, name,
												   owner, spec);
		result = queue_admin_make_queue(&new_queue);
	}
	PG_CATCH();
	{
		queue_admin_rethrow(context, "queue", name, new_queue.schema);
	}
	PG_END_TRY();
	queue_admin_end(&scope);
	return result;
}

/* -------------------------------------------------------------------------
 * Alter, start, stop and drop
 * -------------------------------------------------------------------------
 */

/*
 * Lock a queue that the caller may administer.  The right is checked before,
 * so that nobody else can hold it up, and the queue is looked up again after,
 * because it may have been dropped while we waited.
 */
static QueueDesc *
lock_queue(Oid queue, LOCKMODE mode)
{
	(void) queue_catalog_find(queue, false);
	queue_acl_check_manage(queue);
	LockRelationOid(queue, mode);
	return queue_catalog_find(queue, false);
}

/* What is to be kept may have changed: when this commits, look. */
static void
look_at_journal(const QueueDesc *desc)
{
	queue_message_head_of_queue(desc)->next_purge = DT_NOBEGIN;
}

static void
update_settings(Oid queue, const QueueSettings *settings)
{
	Oid			types[] = {OIDOID, BOOLOID, INT4OID, BOOLOID, INTERVALOID,
	BOOLOID, INTERVALOID, BOOLOID, TEXTOID};
	Datum		values[9] = {0};
	char		nulls[10] = "         ";

	values[0] = ObjectIdGetDatum(queue);
	values[1] = BoolGetDatum(settings->set_max_retries);
	values[2] = Int32GetDatum((int32) settings->max_retries);
	if (settings->max_retries < 0)
		nulls[2] = 'n';
	values[3] = BoolGetDatum(settings->set_retry_delay);
	values[4] = IntervalPGetDatum(settings->retry_delay);
	if (settings->retry_delay == NULL)
		nulls[4] = 'n';
	values[5] = BoolGetDatum(settings->set_retention);
	values[6] = IntervalPGetDatum(settings->retention);
	if (settings->retention == NULL)
		nulls[6] = 'n';
	values[7] = BoolGetDatum(settings->set_comment);
	if (settings->comment == NULL)
		nulls[8] = 'n';
	else
		values[8] = CStringGetTextDatum(settings->comment);
	(void) queue_admin_run_catalog("UPDATE queue.queue SET"
								   " max_retries = CASE WHEN $2 THEN $3"
								   " ELSE max_retries END,"
								   " retry_delay = CASE WHEN $4 THEN $5"
								   " ELSE retry_delay END,"
								   " retention_time = CASE WHEN $6 THEN $7"
								   " ELSE retention_time END,"
								   " comment = CASE WHEN $8"
								   " THEN nullif($9, '')"
								   " ELSE comment END"
								   " WHERE view = $1",
								   9, types, values, nulls);
}

void
queue_admin_alter_queue(Oid queue, const QueueSettings *settings)
{
	QueueAdminScope scope;
	QueueDesc  *desc;

	check_settings(settings);
	desc = lock_queue(queue, ShareUpdateExclusiveLock);
	if (desc->is_exception &&
		(settings->set_max_retries || settings->set_retry_delay ||
		 settings->set_retention))
		refuse_exception_settings(queue_catalog_name(queue));
	queue_admin_begin(&scope, desc->owner);
	update_settings(queue, settings);
	queue_admin_record_settings(queue);
	queue_catalog_invalidate(queue);
	queue_wakeup_at_commit(queue);
	queue_admin_end(&scope);
	look_at_journal(desc);
}

/* Set the flags that are asked for to "enabled"; the queue is locked. */
static void
set_enabled(const QueueDesc *desc, bool enqueue, bool dequeue, bool enabled)
{
	QueueAdminScope scope;
	Oid			types[] = {OIDOID, BOOLOID, BOOLOID, BOOLOID};
	Datum		values[4];
	Oid			queue = desc->relid;

	if ((!enqueue || desc->enqueue_enabled == enabled) &&
		(!dequeue || desc->dequeue_enabled == enabled))
		return;
	queue_admin_begin(&scope, desc->owner);
	values[0] = ObjectIdGetDatum(queue);
	values[1] = BoolGetDatum(enqueue);
	values[2] = BoolGetDatum(dequeue);
	values[3] = BoolGetDatum(enabled);
	(void) queue_admin_run_catalog("UPDATE queue.queue SET"
								   " enqueue_enabled = CASE WHEN $2 THEN $4"
								   " ELSE enqueue_enabled END,"
								   " dequeue_enabled = CASE WHEN $3 THEN $4"
								   " ELSE dequeue_enabled END"
								   " WHERE view = $1",
								   4, types, values, NULL);
	queue_admin_record_settings(queue);
	queue_catalog_invalidate(queue);
	queue_wakeup_at_commit(queue);
	queue_admin_end(&scope);
}

void
queue_admin_start_queue(Oid queue, bool enqueue, bool dequeue)
{
	QueueDesc  *desc = lock_queue(queue, ShareUpdateExclusiveLock);

	if (desc->is_exception && enqueue)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_IS_EXCEPTION_QUEUE),
				 errmsg("exception queue \"%s\" cannot be started for enqueue",
						queue_catalog_name(queue)),
				 errhint("Use queue.start_queue(..., enqueue => false).")));
	set_enabled(desc, enqueue, dequeue, true);
}

/*
 * With wait, until the transactions that use the queue have ended; without,
 * ERROR QU006 if there are any.
 */
void
queue_admin_stop_queue(Oid queue, bool enqueue, bool dequeue, bool wait)
{
	(void) queue_catalog_find(queue, false);
	queue_acl_check_manage(queue);
	if (!wait && !ConditionalLockRelationOid(queue, ShareRowExclusiveLock))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_BUSY),
				 errmsg("queue \"%s\" is in use by open transactions",
						queue_catalog_name(queue)),
				 errhint("Use wait => true to wait for their end.")));
	set_enabled(lock_queue(queue, ShareRowExclusiveLock), enqueue, dequeue,
				false);
}

static void
check_stopped(const QueueDesc *desc)
{
	if (desc->enqueue_enabled || desc->dequeue_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_NOT_STOPPED),
				 errmsg("queue \"%s\" is not stopped",
						queue_catalog_name(desc->relid)),
				 errhint("Stop it with queue.stop_queue().")));
}

/*
 * Drop a queue and its messages.  Those that had gone to an exception queue
 * before are that queue's.  Looking at a message table's rows with the latest
 * snapshot matters in REPEATABLE READ: nothing may be left behind.
 */
void
queue_admin_drop_queue(Oid queue)
{
	QueueAdminScope scope;
	QueueDesc  *desc = queue_catalog_find(queue, false);
	Oid			queue_table = desc->queue_table;

	queue_acl_check_manage(queue);
	if (queue_catalog_exception_queue(queue_table) == queue)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop \"%s\" because it is the exception queue of queue table \"%s\"",
						queue_catalog_name(queue),
						queue_catalog_name(queue_table)),
				 errhint("It is dropped together with its queue table.")));
	check_stopped(desc);
	desc = lock_queue(queue, AccessExclusiveLock);
	check_stopped(desc);

	queue_admin_begin(&scope, desc->table->owner);
	queue_admin_run_latest("DELETE FROM %s WHERE queue_id = %d",
						   queue_name_qualified(queue_table), desc->id);
	queue_admin_end(&scope);
	queue_admin_begin(&scope, desc->owner);
	queue_admin_run("DROP VIEW %s", queue_name_qualified(queue));
	/* the event trigger has done it, unless it is turned off */
	(void) queue_admin_run_catalog_oid("DELETE FROM queue.queue"
									   " WHERE view = $1", queue);
	queue_catalog_invalidate(queue_table);
	queue_admin_end(&scope);
}
