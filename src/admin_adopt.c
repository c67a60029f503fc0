/*-------------------------------------------------------------------------
 *
 * admin_adopt.c
 *	  Register again what a partial restore brought without its catalog rows.
 *
 * Everything is read from objects that only the table's owner can have made:
 * the table's columns, and views of the same owner that depend on it and
 * carry our trigger.  The trigger's arguments are the queue's id, its type,
 * "default" for the default exception queue, the table's sort list, and the
 * settings as text; a comment on the trigger has later settings.  Anybody
 * may hang our trigger on a view of his own, so the owner matters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "admin_internal.h"
#include "admin_sql.h"
#include "catalog.h"
#include "compat.h"
#include "errors.h"
#include "name.h"

/* places of the arguments of queue._view_insert() */
enum
{
	ARG_ID,
	ARG_QUEUE_TYPE,
	ARG_DEFAULT,
	ARG_SORT_LIST,
	ARG_SETTINGS,
	NUM_ARGS
};

/* keys of the settings, in the order of their parameters */
static const char *const setting_keys[] = {
	"max_retries",
	"retry_delay",
	"retention_time",
	"enqueue_enabled",
	"dequeue_enabled",
	"comment"
};

#define NUM_SETTINGS	lengthof(setting_keys)

typedef struct FoundQueue
{
	Oid			view;
	char	   *args[NUM_ARGS];
	char	   *comment;		/* of the trigger, or NULL */
} FoundQueue;

/*
 * The value of a setting, or NULL if it is empty or not there.  The last key
 * has the rest of the text, which may have several lines.
 */
static char *
find_setting(const char *settings, int key)
{
	char	   *mark = psprintf("\n%s=", setting_keys[key]);
	const char *value = strstr(settings, mark);
	const char *end;

	if (value == NULL)
		return NULL;
	value += strlen(mark);
	end = strchr(value, '\n');
	if (end == NULL || key == NUM_SETTINGS - 1)
		end = value + strlen(value);
	if (end == value)
		return NULL;
	return pnstrdup(value, end - value);
}

/* Our trigger of a view, with its arguments; false if it has none. */
static bool
read_trigger(Oid view, FoundQueue *found)
{
	Relation	rel = try_relation_open(view, AccessShareLock);
	bool		result = false;

	if (rel == NULL)
		return false;
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers;
		 i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (strcmp(trigger->tgname, QUEUE_TRIGGER_ENQUEUE) != 0 ||
			trigger->tgnargs != NUM_ARGS ||
			get_func_namespace(trigger->tgfoid) != queue_catalog_schema() ||
			strcmp(get_func_name(trigger->tgfoid), "_view_insert") != 0)
			continue;
		found->view = view;
		for (int arg = 0; arg < NUM_ARGS; arg++)
			found->args[arg] = pstrdup(trigger->tgargs[arg]);
		found->comment = GetComment(trigger->tgoid, TriggerRelationId, 0);
		result = true;
	}
	relation_close(rel, AccessShareLock);
	return result;
}

/* Queue views of the table's owner that show this table. */
static List *
find_queues(Oid queue_table)
{
	List	   *views = NIL;
	List	   *result = NIL;
	ListCell   *cell;

	(void) queue_admin_run_catalog_oid("SELECT DISTINCT v.oid"
									   " FROM pg_catalog.pg_depend d"
									   " JOIN pg_catalog.pg_rewrite r"
									   " ON r.oid = d.objid"
									   " JOIN pg_catalog.pg_class v"
									   " ON v.oid = r.ev_class"
									   " JOIN pg_catalog.pg_class t"
									   " ON t.oid = d.refobjid"
									   " WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass"
									   " AND d.refclassid = 'pg_catalog.pg_class'::regclass"
									   " AND d.refobjid = $1"
									   " AND v.relkind = 'v'"
									   " AND v.relowner = t.relowner"
									   " ORDER BY v.oid", queue_table);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;

		views = lappend_oid(views,
							DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i],
														   SPI_tuptable->tupdesc,
														   1, &isnull)));
	}
	foreach(cell, views)
	{
		FoundQueue *found = palloc0(sizeof(FoundQueue));

		if (read_trigger(lfirst_oid(cell), found))
			result = lappend(result, found);
	}
	return result;
}

static void
set_text(Datum *values, char *nulls, int place, const char *value)
{
	nulls[place] = value == NULL ? 'n' : ' ';
	values[place] = value == NULL ? (Datum) 0 : CStringGetTextDatum(value);
}

/* Returns how many rows it made: none if the queue is registered already. */
static int
register_queue(Oid queue_table, const FoundQueue *found)
{
	const char *settings = found->args[ARG_SETTINGS];
	Oid			types[5 + NUM_SETTINGS];
	Datum		values[5 + NUM_SETTINGS];
	char		nulls[5 + NUM_SETTINGS + 1];

	memset(nulls, 0, sizeof(nulls));
	if (found->comment != NULL &&
		strstr(found->comment, "\nmax_retries=") != NULL)
		settings = found->comment;
	for (int i = 0; i < lengthof(types); i++)
		types[i] = i < 2 ? OIDOID : TEXTOID;
	values[0] = ObjectIdGetDatum(found->view);
	values[1] = ObjectIdGetDatum(queue_table);
	nulls[0] = nulls[1] = ' ';
	set_text(values, nulls, 2, found->args[ARG_ID]);
	set_text(values, nulls, 3, found->args[ARG_QUEUE_TYPE]);
	set_text(values, nulls, 4, found->args[ARG_DEFAULT]);
	for (int i = 0; i < NUM_SETTINGS; i++)
		set_text(values, nulls, 5 + i, find_setting(settings, i));

	return queue_admin_run_catalog("INSERT INTO queue.queue"
								   " (view, queue_table, id, queue_type,"
								   " is_default_exception, max_retries,"
								   " retry_delay, retention_time,"
								   " enqueue_enabled, dequeue_enabled, comment)"
								   " VALUES ($1::regclass, $2::regclass,"
								   " $3::int4, $4, $5 = 'default', $6::int4,"
								   " $7::interval, $8::interval,"
								   " coalesce($9::bool, false),"
								   " coalesce($10::bool, false), $11)"
								   " ON CONFLICT DO NOTHING",
								   lengthof(types), types, values, nulls);
}

static void
register_table(Oid queue_table, const char *sort_list)
{
	Oid			types[] = {OIDOID, TEXTOID, OIDOID};
	Datum		values[3];
	Oid			payload_type = InvalidOid;
	AttrNumber	attnum;

	attnum = get_attnum(queue_table, queue_column_names[QUEUE_COL_PAYLOAD]);
	if (attnum != InvalidAttrNumber)
		payload_type = get_atttype(queue_table, attnum);
	values[0] = ObjectIdGetDatum(queue_table);
	values[1] = CStringGetTextDatum(queue_admin_parse_sort_list(sort_list));
	values[2] = ObjectIdGetDatum(payload_type);
	(void) queue_admin_run_catalog("INSERT INTO queue.queue_table"
								   " (relation, sort_list, payload_type)"
								   " VALUES ($1::regclass, $2, $3::regtype)"
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

int
queue_admin_adopt(Oid queue_table)
{
	QueueAdminScope scope;
	List	   *queues;
	ListCell   *cell;
	int			adopted = 0;

	if (get_rel_relkind(queue_table) != RELKIND_PARTITIONED_TABLE)
		(void) queue_catalog_find_table(queue_table, false);
	if (!queue_relation_ownercheck(queue_table, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of queue table \"%s\"",
						queue_catalog_name(queue_table))));
	LockRelationOid(queue_table, ShareUpdateExclusiveLock);

	queue_admin_begin(&scope, GetUserId());
	queues = find_queues(queue_table);
	if (queues == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("\"%s\" has no queues to adopt",
						queue_catalog_name(queue_table)),
				 errdetail("There is no view over it, of the same owner, with the trigger that queue.create_queue() makes.")));
	register_table(queue_table,
				   ((FoundQueue *) linitial(queues))->args[ARG_SORT_LIST]);
	queue_catalog_invalidate(queue_table);
	/* is it really a queue table?  This reports what is missing. */
	(void) queue_catalog_find_table(queue_table, false);
	foreach(cell, queues)
	{
		FoundQueue *found = lfirst(cell);

		adopted += register_queue(queue_table, found);
		queue_catalog_invalidate(found->view);
	}
	raise_last_queue_id(queue_table);
	queue_admin_end(&scope);
	return adopted;
}
