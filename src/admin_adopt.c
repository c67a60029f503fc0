/*-------------------------------------------------------------------------
 *
 * admin_adopt.c
 *	  Register again what is left without its catalog rows: by a partial
 *	  restore, or by DROP EXTENSION ... CASCADE.
 *
 * Everything is read from objects that only the table's owner can have made:
 * the table's columns, and views of the same owner that depend on it and
 * carry our note.  The note is a comment on one of the view's columns, a JSON
 * object with the queue's id, its settings and the table's sort list.  A
 * comment goes where its view goes (renames, dumps, also partial ones), needs
 * no function of the extension, and is written under a lock that lets
 * producers and consumers go on.  It stands on a column, because the comment
 * on the view is the user's.
 *
 * Triggers and defaults go with the extension; adopting makes them again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "admin_internal.h"
#include "admin_sql.h"
#include "catalog.h"
#include "compat.h"
#include "errors.h"
#include "name.h"

/*
 * The column that carries the note, by number because it may be renamed:
 * step, the last one, which users are the least likely to comment.
 */
#define SETTINGS_COLUMN		21

typedef struct FoundQueue
{
	Oid			view;
	char	   *settings;		/* JSON */
} FoundQueue;

/* QUEUE_SETTINGS_PATTERN says how the result begins. */
static char *
settings_text(Oid queue)
{
	if (queue_admin_run_catalog_oid("SELECT json_build_object("
									"'queue_id', q.id,"
									" 'default', q.is_default_exception,"
									" 'queue_type', q.queue_type,"
									" 'max_retries', q.max_retries,"
									" 'retry_delay', q.retry_delay,"
									" 'retention_time', q.retention_time,"
									" 'enqueue_enabled', q.enqueue_enabled,"
									" 'dequeue_enabled', q.dequeue_enabled,"
									" 'comment', q.comment,"
									" 'sort_list', t.sort_list)"
									" FROM queue.queue q"
									" JOIN queue.queue_table t"
									" ON t.relation = q.queue_table"
									" WHERE q.view = $1",
									queue) != 1)
		elog(ERROR, "queue %u has no catalog row", queue);
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

void
queue_admin_record_settings(Oid queue)
{
	char	   *column = get_attname(queue, SETTINGS_COLUMN, true);

	if (column == NULL)
		return;					/* not the view that we made */
	queue_admin_run("COMMENT ON COLUMN %s.%s IS %s",
					queue_name_qualified(queue), quote_identifier(column),
					quote_literal_cstr(settings_text(queue)));
}

/* The queues of the table; a list of FoundQueue. */
static List *
find_queues(Oid queue_table)
{
	List	   *result = NIL;
	char	   *query = psprintf("SELECT DISTINCT v.oid, c.description%s"
								 " ORDER BY 1",
								 queue_admin_queues_source("$1"));

	(void) queue_admin_run_catalog_oid(query, queue_table);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		FoundQueue *found = palloc(sizeof(FoundQueue));
		bool		isnull;

		found->view = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		found->settings = SPI_getvalue(tuple, desc, 2);
		result = lappend(result, found);
	}
	return result;
}

/* Returns how many rows it made: none if the queue is registered already. */
static int
register_queue(Oid queue_table, const FoundQueue *found)
{
	Oid			types[] = {OIDOID, OIDOID, TEXTOID};
	Datum		values[3];

	values[0] = ObjectIdGetDatum(found->view);
	values[1] = ObjectIdGetDatum(queue_table);
	values[2] = CStringGetTextDatum(found->settings);
	return queue_admin_run_catalog("INSERT INTO queue.queue"
								   " (view, queue_table, id, queue_type,"
								   " is_default_exception, max_retries,"
								   " retry_delay, retention_time,"
								   " enqueue_enabled, dequeue_enabled, comment)"
								   " SELECT $1::regclass, $2::regclass,"
								   " s.queue_id, s.queue_type, s.\"default\","
								   " s.max_retries, s.retry_delay,"
								   " s.retention_time, s.enqueue_enabled,"
								   " s.dequeue_enabled, s.comment"
								   " FROM json_to_record($3::json)"
								   " AS s(queue_id int4, queue_type text,"
								   " \"default\" bool, max_retries int4,"
								   " retry_delay interval,"
								   " retention_time interval,"
								   " enqueue_enabled bool,"
								   " dequeue_enabled bool, comment text)"
								   " ON CONFLICT DO NOTHING",
								   3, types, values, NULL);
}

/* All queues of a table have noted the same sort list. */
static void
register_table(Oid queue_table, const FoundQueue *found)
{
	Oid			types[] = {OIDOID, TEXTOID, OIDOID};
	Datum		values[3];
	Oid			payload_type = InvalidOid;
	AttrNumber	attnum;

	attnum = get_attnum(queue_table, queue_column_names[QUEUE_COL_PAYLOAD]);
	if (attnum != InvalidAttrNumber)
		payload_type = get_atttype(queue_table, attnum);
	values[0] = ObjectIdGetDatum(queue_table);
	values[1] = CStringGetTextDatum(found->settings);
	values[2] = ObjectIdGetDatum(payload_type);
	(void) queue_admin_run_catalog("INSERT INTO queue.queue_table"
								   " (relation, sort_list, payload_type)"
								   " VALUES ($1::regclass,"
								   " $2::json ->> 'sort_list', $3::regtype)"
								   " ON CONFLICT DO NOTHING",
								   3, types, values, NULL);
}

/* No id may be given again that a queue or a message has. */
static void
raise_last_queue_id(Oid queue_table)
{
	char	   *command;

	command = psprintf("SELECT coalesce(max(queue_id), 0) FROM %s",
					   queue_name_qualified(queue_table));
	if (SPI_execute(command, true, 0) == SPI_OK_SELECT)
	{
		Oid			types[] = {OIDOID, INT4OID};
		Datum		values[2];
		bool		isnull;

		values[0] = ObjectIdGetDatum(queue_table);
		values[1] = SPI_getbinval(SPI_tuptable->vals[0],
								  SPI_tuptable->tupdesc, 1, &isnull);
		(void) queue_admin_run_catalog("UPDATE queue.queue_table t"
									   " SET last_queue_id = greatest("
									   "t.last_queue_id, $2,"
									   " (SELECT max(q.id) FROM queue.queue q"
									   " WHERE q.queue_table = t.relation))"
									   " WHERE t.relation = $1",
									   2, types, values, NULL);
	}
}

/* The owner of a table that the caller may adopt. */
static Oid
check_adoptable(Oid queue_table)
{
	HeapTuple	tuple;
	Oid			owner;

	if (get_rel_relkind(queue_table) != RELKIND_PARTITIONED_TABLE)
		(void) queue_catalog_find_table(queue_table, false);
	if (!queue_relation_ownercheck(queue_table, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue table \"%s\"",
						queue_catalog_name(queue_table))));
	LockRelationOid(queue_table, ShareUpdateExclusiveLock);

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(queue_table));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", queue_table);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* Somebody has dropped its view, or not restored it. */
static void
make_missing_exception_queue(Oid queue_table)
{
	Oid			queue = queue_catalog_exception_queue(queue_table);

	if (OidIsValid(queue) && get_rel_relkind(queue) == RELKIND_VIEW)
		return;
	if (OidIsValid(queue))
		(void) queue_admin_run_catalog_oid("DELETE FROM queue.queue"
										   " WHERE view = $1", queue);
	queue_admin_make_exception_queue(queue_table);
}

int
queue_admin_adopt(Oid queue_table)
{
	QueueAdminScope scope;
	List	   *queues;
	ListCell   *cell;
	int			adopted = 0;

	queue_admin_begin(&scope, check_adoptable(queue_table));
	queues = find_queues(queue_table);
	if (queues == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("\"%s\" has no queues to adopt",
						queue_catalog_name(queue_table)),
				 errdetail("There is no view over it, of the same owner, with the comment on its last column that queue.create_queue() makes.")));
	register_table(queue_table, linitial(queues));
	queue_catalog_invalidate(queue_table);
	/* is it really a queue table?  This reports what is missing. */
	queue_admin_make_leaf_triggers(queue_catalog_find_table(queue_table,
															false));
	foreach(cell, queues)
	{
		FoundQueue *found = lfirst(cell);

		adopted += register_queue(queue_table, found);
		queue_admin_make_view_triggers(found->view);
		queue_catalog_invalidate(found->view);
	}
	raise_last_queue_id(queue_table);
	make_missing_exception_queue(queue_table);
	queue_admin_end(&scope);
	return adopted;
}
