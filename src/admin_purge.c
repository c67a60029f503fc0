/*-------------------------------------------------------------------------
 *
 * admin_purge.c
 *	  Delete messages of a queue table by a condition.
 *
 * The condition is the caller's: it runs with the caller's rights and
 * search_path, never with those of the table's owner.  For the owner and its
 * members that is one statement.  For a caller who may only manage the table
 * (manage_any) it is three: the messages are read as the owner, the condition
 * is asked as the caller, and what it picked is deleted as the owner.  Rows
 * pass from one to the next in tuplestores, which go to disk when they are
 * large, and are seen by SQL as relations without a name in the catalog.
 *
 * Messages that somebody has dequeued or locked are passed over.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/tuplestore.h"

#include "admin_internal.h"
#include "admin_sql.h"
#include "catalog.h"
#include "catalog.h"
#include "compat.h"
#include "condition.h"
#include "name.h"

/* rows on their way from one statement to the next */
typedef struct RowSet
{
	Tuplestorestate *rows;
	TupleDesc	desc;
} RowSet;

/* All messages of a table, with the columns that a condition may name. */
static char *
messages_query(Oid queue_table, bool raw_names)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql,
						   "SELECT m.tableoid AS _table, m.ctid AS _row, ");
	queue_admin_append_table_columns(&sql, queue_table, raw_names);
	appendStringInfoString(&sql, ", ");
	queue_admin_append_message_columns(&sql);
	appendStringInfo(&sql, " FROM %s m", queue_name_qualified(queue_table));
	return sql.data;
}

/* Where are those of the registered messages for which a condition holds? */
static char *
condition_query(const char *condition)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql,
						   "SELECT qtview._table, qtview._row"
						   " FROM (SELECT m.*, ");
	queue_admin_append_names(&sql);
	appendStringInfo(&sql,
					 " FROM messages m) qtview " QUEUE_CONDITION_WHERE "%s\n)",
					 condition);
	return sql.data;
}

/* Delete the messages at these places, which "picked" gives. */
static char *
delete_command(Oid queue_table, const char *picked)
{
	return psprintf("WITH picked AS MATERIALIZED (%s)"
					" DELETE FROM %s m USING picked p"
					" WHERE m.tableoid OPERATOR(pg_catalog.=) p._table"
					" AND m.ctid OPERATOR(pg_catalog.=) p._row",
					picked, queue_name_qualified(queue_table));
}

/* Let errors in the condition, if there is one, be shown as such. */
static SPIPlanPtr
prepare(const char *command, const char *condition)
{
	QueueConditionErrors errors;
	SPIPlanPtr	plan;

	if (condition != NULL)
		queue_condition_begin_errors(&errors, condition, command);
	plan = SPI_prepare(command, 0, NULL);
	if (condition != NULL)
		queue_condition_end_errors(&errors);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s",
			 SPI_result_code_string(SPI_result));
	return plan;
}

/* Everything, or what a condition names that runs as the current user. */
static int64
purge_at_once(Oid queue_table, const char *condition)
{
	char	   *picked;
	SPIPlanPtr	plan;

	if (condition == NULL)
		picked = psprintf("SELECT m.tableoid AS _table, m.ctid AS _row"
						  " FROM %s m FOR UPDATE OF m SKIP LOCKED",
						  queue_name_qualified(queue_table));
	else
		picked = psprintf("SELECT qtview._table, qtview._row"
						  " FROM (%s) qtview " QUEUE_CONDITION_WHERE "%s\n)"
						  " FOR UPDATE OF qtview SKIP LOCKED",
						  messages_query(queue_table, false), condition);
	plan = prepare(delete_command(queue_table, picked), condition);
	if (SPI_execute_plan(plan, NULL, NULL, false, 0) != SPI_OK_DELETE)
		elog(ERROR, "could not purge a queue table");
	return SPI_processed;
}

/* Let statements of this SPI connection see rows under a name. */
static void
register_rows(const char *name, const RowSet *set)
{
	EphemeralNamedRelation relation = palloc0(sizeof(*relation));

	relation->md.name = pstrdup(name);
	relation->md.reliddesc = InvalidOid;
	relation->md.tupdesc = set->desc;
	relation->md.enrtype = ENR_NAMED_TUPLESTORE;
	relation->md.enrtuples = tuplestore_tuple_count(set->rows);
	relation->reldata = set->rows;
	if (SPI_register_relation(relation) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not register rows");
}

/* Run a query and keep its rows; set->rows is there, desc is set. */
static void
query_into(const char *command, const char *condition, RowSet *set,
		   MemoryContext context)
{
	SPIPlanPtr	plan = prepare(command, condition);
	SPIExecuteOptions options = {0};
	CachedPlanSource *source;
	MemoryContext old;

	source = linitial(SPI_plan_get_plan_sources(plan));
	old = MemoryContextSwitchTo(context);
	set->desc = CreateTupleDescCopy(source->resultDesc);
	MemoryContextSwitchTo(old);

	options.dest = CreateDestReceiver(DestTuplestore);
	SetTuplestoreDestReceiverParams(options.dest, set->rows, context, false,
									NULL, NULL);
	if (SPI_execute_plan_extended(plan, &options) < 0)
		elog(ERROR, "SPI_execute_plan_extended failed");
}

/*
 * The condition is asked as the caller, all else done as the owner.  The
 * caller's own snapshot, which is active all the while, keeps the rows from
 * being vacuumed away and their places from being used again.
 */
static int64
purge_in_steps(Oid queue_table, Oid owner, const char *condition)
{
	MemoryContext context = CurrentMemoryContext;
	QueueAdminScope scope;
	RowSet		messages;
	RowSet		picked;
	char	   *lock_rows;
	int64		count;

	messages.rows = tuplestore_begin_heap(false, false, work_mem);
	picked.rows = tuplestore_begin_heap(false, false, work_mem);

	queue_admin_begin(&scope, owner);
	query_into(messages_query(queue_table, true), NULL, &messages, context);
	queue_admin_end(&scope);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	register_rows("messages", &messages);
	query_into(condition_query(condition), condition, &picked, context);
	SPI_finish();

	queue_admin_begin(&scope, owner);
	register_rows("chosen", &picked);
	lock_rows = psprintf("SELECT m.tableoid AS _table, m.ctid AS _row"
						 " FROM %s m JOIN chosen c"
						 " ON m.tableoid = c._table AND m.ctid = c._row"
						 " FOR UPDATE OF m SKIP LOCKED",
						 queue_name_qualified(queue_table));
	if (SPI_execute(delete_command(queue_table, lock_rows), false, 0) !=
		SPI_OK_DELETE)
		elog(ERROR, "could not purge a queue table");
	count = SPI_processed;
	queue_admin_end(&scope);

	tuplestore_end(messages.rows);
	tuplestore_end(picked.rows);
	return count;
}

static void
condition_error_callback(void *arg)
{
	errcontext("condition for messages of queue table \"%s\"", (char *) arg);
}

/* As the caller wants it. */
static int64
purge_by_condition(Oid queue_table, Oid owner, const char *condition)
{
	ErrorContextCallback callback;
	int64		count;

	callback.callback = condition_error_callback;
	callback.arg = queue_catalog_name(queue_table);
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	queue_condition_check(condition);
	if (!has_privs_of_role(GetUserId(), owner))
		count = purge_in_steps(queue_table, owner, condition);
	else
	{
		if (SPI_connect() != SPI_OK_CONNECT)
			elog(ERROR, "SPI_connect failed");
		count = purge_at_once(queue_table, condition);
		SPI_finish();
	}

	error_context_stack = callback.previous;
	return count;
}

int64
queue_admin_purge_table(Oid queue_table, const char *condition)
{
	QueueAdminScope scope;
	Oid			owner = queue_admin_check_table(queue_table);
	int64		count;

	if (condition != NULL)
		return purge_by_condition(queue_table, owner, condition);
	queue_admin_begin(&scope, owner);
	count = purge_at_once(queue_table, NULL);
	queue_admin_end(&scope);
	return count;
}
