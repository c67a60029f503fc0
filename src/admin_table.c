/*-------------------------------------------------------------------------
 *
 * admin_table.c
 *	  Create, alter and drop queue tables.
 *
 * A queue table is one partitioned table, by state, with its busy states
 * partitioned once more into rings of segments.  It is an ordinary table of
 * the user's, not a member of the extension: pg_dump dumps the messages.
 * Nothing depends on the names of partitions and indexes; they are derived
 * from the table's only to be readable.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "acl.h"
#include "admin_internal.h"
#include "admin_sql.h"
#include "catalog.h"
#include "compat.h"
#include "errors.h"
#include "name.h"

/* columns of a queue table before the payload, in the order of QueueColumn */
static const char column_definitions[] =
"queue_id int4 NOT NULL,"
" consumer_id int4 NOT NULL,"
" msgid uuid NOT NULL,"
" priority int4 NOT NULL,"
" state int2 NOT NULL,"
" segment int2 NOT NULL,"
" retry_count int4 NOT NULL,"
" order_at int8,"
" due_at timestamptz,"
" expires_at timestamptz,"
" expiration interval,"
" enq_xid xid8,"
" deq_time timestamptz,"
" deq_xid xid8,"
" original_msgid uuid,"
" group_id uuid,"
" step int4,"
" original_queue_id int4,"
" receipt uuid,"
" enq_user text,"
" deq_user text,"
" correlation text,"
" exception_queue text,"
" expiration_reason text,"
" sender_name text,"
" sender_address text,"
" sender_protocol int4,"
" reply_to text,"
" routing_key text,"
" group_key text,"
" dedup_key text,"
" source text,"
" properties jsonb";

/*
 * Sort lists, with the keys of the indexes that follow from them: on ready
 * and expired messages, and on waiting ones.  catalog.c recognizes the indexes
 * by these columns.
 */
typedef struct SortList
{
	const char *name;
	const char *key;
	const char *due_key;
} SortList;

static const SortList sort_lists[] = {
	{"enq_time",
		"queue_id, consumer_id, msgid",
	"queue_id, consumer_id, due_at, msgid"},
	{"priority",
		"queue_id, consumer_id, priority, msgid",
	"queue_id, consumer_id, priority, due_at, msgid"},
	{"priority,enq_time",
		"queue_id, consumer_id, priority, msgid",
	"queue_id, consumer_id, priority, due_at, msgid"},
	{"enq_time,priority",
		"queue_id, consumer_id, order_at, priority, msgid",
	"queue_id, consumer_id, due_at, msgid"},
	{"commit_time",
		"queue_id, consumer_id, order_at, msgid",
	"queue_id, consumer_id, due_at, msgid"},
	{"priority,commit_time",
		"queue_id, consumer_id, priority, order_at, msgid",
	"queue_id, consumer_id, priority, due_at, msgid"}
};

/* -------------------------------------------------------------------------
 * Checks
 * -------------------------------------------------------------------------
 */

/* Lower case without spaces, so that "Priority, Enq_Time" is known as well. */
static char *
normalize_word(const char *input)
{
	char	   *result = palloc(strlen(input) + 1);
	char	   *out = result;

	for (const char *in = input; *in != '\0'; in++)
	{
		if (*in == ' ' || *in == '\t')
			continue;
		*out++ = pg_tolower((unsigned char) *in);
	}
	*out = '\0';
	return result;
}

static const SortList *
find_sort_list(const char *sort_list)
{
	char	   *word = normalize_word(sort_list == NULL ? "enq_time" :
									  sort_list);

	for (int i = 0; i < lengthof(sort_lists); i++)
	{
		if (strcmp(sort_lists[i].name, word) == 0)
			return &sort_lists[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid sort_list \"%s\"", sort_list),
			 errhint("Allowed are enq_time, priority, \"priority,enq_time\", \"enq_time,priority\", commit_time and \"priority,commit_time\".")));
	return NULL;				/* keep compiler quiet */
}

/* The sort list as it is stored; ERROR 22023 if there is no such one. */
char *
queue_admin_parse_sort_list(const char *sort_list)
{
	return pstrdup(find_sort_list(sort_list)->name);
}

static void
check_message_grouping(const char *message_grouping)
{
	char	   *word;

	if (message_grouping == NULL)
		return;
	word = normalize_word(message_grouping);
	if (strcmp(word, "none") == 0)
		return;
	if (strcmp(word, "transactional") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("message_grouping \"transactional\" is not supported in this version"),
				 errhint("Use message_grouping => 'none'.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid message_grouping \"%s\"", message_grouping),
			 errhint("Allowed are none and transactional.")));
}

/* As it stands in the catalog; NULL gives the default. */
static const char *
parse_rotation(const char *rotation)
{
	char	   *word;

	if (rotation == NULL)
		return "safe";
	word = normalize_word(rotation);
	if (strcmp(word, "safe") != 0 && strcmp(word, "eager") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid rotation \"%s\"", rotation),
				 errhint("Allowed are safe and eager.")));
	return word;
}

/* Any base, domain, enum, range, array or composite type may be a payload. */
static void
check_payload_type(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Form_pg_type form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("payload type with OID %u does not exist", type)));
	form = (Form_pg_type) GETSTRUCT(tuple);
	if (!form->typisdefined)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("payload type \"%s\" is only a shell",
						format_type_be(type))));
	if (form->typtype == TYPTYPE_PSEUDO)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("payload type \"%s\" is a pseudo-type",
						format_type_be(type)),
				 errhint("A payload has a base, domain or composite type, such as jsonb, text or bytea.")));
	if (isAnyTempNamespace(form->typnamespace))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("payload type \"%s\" is temporary",
						format_type_be(type)),
				 errdetail("The queue table would lose its payloads at the end of the session.")));
	ReleaseSysCache(tuple);
}

/* ERROR unless such a queue table can be made. */
void
queue_admin_check_spec(const QueueTableSpec *spec)
{
	(void) find_sort_list(spec->sort_list);
	check_message_grouping(spec->message_grouping);
	(void) parse_rotation(spec->rotation);
	if (spec->multiple_consumers)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("multiple_consumers is not supported in this version"),
				 errhint("Use multiple_consumers => false.")));
	check_payload_type(spec->payload_type);
}

/* -------------------------------------------------------------------------
 * Create
 * -------------------------------------------------------------------------
 */

static char *
derived_relation(Oid schema, const char *base, const char *suffix)
{
	return quote_qualified_identifier(get_namespace_name(schema),
									  queue_name_derive("", base, suffix,
														schema));
}

/* ALWAYS, so that restores and replication are noticed as well. */
static void
make_leaf_trigger(const char *leaf, const char *trigger, const char *events)
{
	queue_admin_run("CREATE TRIGGER %s %s ON %s FOR EACH ROW"
					" EXECUTE FUNCTION queue._message_published()",
					trigger, events, leaf);
	queue_admin_run("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", leaf, trigger);
}

static void
make_missing_leaf_triggers(Oid leaf)
{
	char	   *name = queue_name_qualified(leaf);

	if (!OidIsValid(get_trigger_oid(leaf, QUEUE_TRIGGER_PUBLISHED, true)))
		make_leaf_trigger(name, QUEUE_TRIGGER_PUBLISHED,
						  "AFTER INSERT OR UPDATE");
	if (!OidIsValid(get_trigger_oid(leaf, QUEUE_TRIGGER_WITHDRAWN, true)))
		make_leaf_trigger(name, QUEUE_TRIGGER_WITHDRAWN,
						  "BEFORE UPDATE OR DELETE");
}

void
queue_admin_make_leaf_triggers(const QueueTable *table)
{
	for (int segment = 0; segment < QUEUE_SEGMENTS; segment++)
	{
		if (OidIsValid(table->ready[segment].relid))
			make_missing_leaf_triggers(table->ready[segment].relid);
	}
	if (OidIsValid(table->waiting.relid))
		make_missing_leaf_triggers(table->waiting.relid);
	if (OidIsValid(table->expired.relid))
		make_missing_leaf_triggers(table->expired.relid);
}

/*
 * A leaf; with_trigger: readers must learn of rows that come into it by other
 * ways than our own functions (rule T1 in src/README.md); rotated: its space
 * comes back by truncation, so autovacuum would only stand in the way.
 */
static void
make_leaf(Oid schema, const char *base, const char *suffix,
		  const char *parent, int value, bool with_trigger, bool rotated)
{
	char	   *name = queue_name_derive("", base, suffix, schema);

	queue_admin_run("CREATE TABLE %s PARTITION OF %s FOR VALUES IN (%d)"
					" USING heap%s",
					quote_qualified_identifier(get_namespace_name(schema),
											   name),
					parent, value,
					rotated ? " WITH (autovacuum_enabled = off,"
					" toast.autovacuum_enabled = off)" : "");
	if (with_trigger)
		make_missing_leaf_triggers(get_relname_relid(name, schema));
}

/* A ring of segments, with an index over all of them. */
static void
make_ring(Oid schema, const char *base, const char *suffix,
		  const char *parent, int state, const char *key, bool with_trigger)
{
	char	   *ring = derived_relation(schema, base, suffix);

	queue_admin_run("CREATE TABLE %s PARTITION OF %s FOR VALUES IN (%d)"
					" PARTITION BY LIST (segment)", ring, parent, state);
	for (int segment = 0; segment < QUEUE_SEGMENTS; segment++)
		make_leaf(schema, base, psprintf("%s_%d", suffix, segment), ring,
				  segment, with_trigger, state == QUEUE_STATE_READY);
	queue_admin_run("CREATE INDEX ON %s (%s)", ring, key);
}

/* A state with a single leaf. */
static void
make_single_leaf(Oid schema, const char *base, const char *suffix,
				 const char *parent, int state, const char *key)
{
	char	   *leaf = derived_relation(schema, base, suffix);

	make_leaf(schema, base, suffix, parent, state, true, false);
	queue_admin_run("CREATE INDEX ON %s (%s)", leaf, key);
	if (state == QUEUE_STATE_WAITING)
		queue_admin_run("CREATE INDEX ON %s (msgid)", leaf);
}

static Oid
make_partitioned_table(Oid schema, const char *name,
					   const QueueTableSpec *spec)
{
	const SortList *sort = find_sort_list(spec->sort_list);
	char	   *table = quote_qualified_identifier(get_namespace_name(schema),
												   name);

	queue_admin_run("CREATE TABLE %s (%s, payload %s)"
					" PARTITION BY LIST (state)",
					table, column_definitions,
					format_type_extended(spec->payload_type, -1,
										 FORMAT_TYPE_FORCE_QUALIFY));
	make_ring(schema, name, "_ready", table, QUEUE_STATE_READY, sort->key,
			  true);
	make_single_leaf(schema, name, "_waiting", table, QUEUE_STATE_WAITING,
					 sort->due_key);
	make_ring(schema, name, "_processed", table, QUEUE_STATE_PROCESSED,
			  "msgid", false);
	make_single_leaf(schema, name, "_expired", table, QUEUE_STATE_EXPIRED,
					 sort->key);
	return get_relname_relid(name, schema);
}

/* The view aq$<queue_table>, of all its messages. */
static void
make_message_view(Oid queue_table, Oid schema, const char *name)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE VIEW %s AS SELECT ",
					 quote_qualified_identifier(get_namespace_name(schema),
												queue_name_derive("aq$", name,
																  "",
																  schema)));
	queue_admin_append_table_columns(&sql, queue_table, false);
	appendStringInfo(&sql, " FROM %s m", queue_name_qualified(queue_table));
	queue_admin_run("%s", sql.data);
}

static void
insert_table_row(Oid queue_table, const QueueTableSpec *spec)
{
	Oid			types[] = {OIDOID, OIDOID, TEXTOID, TEXTOID, TEXTOID};
	Datum		values[5];
	char		nulls[6] = "     ";

	values[0] = ObjectIdGetDatum(queue_table);
	values[1] = ObjectIdGetDatum(spec->payload_type);
	values[2] = CStringGetTextDatum(find_sort_list(spec->sort_list)->name);
	values[3] = (Datum) 0;
	if (spec->comment != NULL && spec->comment[0] != '\0')
		values[3] = CStringGetTextDatum(spec->comment);
	else
		nulls[3] = 'n';
	values[4] = CStringGetTextDatum(parse_rotation(spec->rotation));
	(void) queue_admin_run_catalog("INSERT INTO queue.queue_table"
								   " (relation, payload_type, sort_list,"
								   " comment, rotation)"
								   " VALUES ($1::regclass, $2::regtype, $3, $4,"
								   " $5)",
								   5, types, values, nulls);
}

/*
 * Make the default exception queue of a queue table.  One that takes the
 * place of another has its messages.
 */
void
queue_admin_make_exception_queue(Oid queue_table)
{
	Oid			schema = get_rel_namespace(queue_table);
	NewQueue	new_queue = {0};
	QueueSettings settings = {0};

	settings.max_retries = -1;
	settings.retry_delay = palloc0(sizeof(Interval));
	settings.retention = palloc0(sizeof(Interval));
	new_queue.queue_table = queue_table;
	new_queue.schema = schema;
	new_queue.name = queue_name_derive("aq$_", get_rel_name(queue_table), "_e",
									   schema);
	new_queue.is_exception = true;
	new_queue.is_default_exception = true;
	new_queue.settings = &settings;
	(void) queue_admin_make_queue(&new_queue);
}

/*
 * Make a queue table and everything that belongs to it.  The caller has begun
 * a command as the owner and has checked spec and name.
 */
Oid
queue_admin_make_table(Oid schema, const char *name, Oid owner,
					   const QueueTableSpec *spec)
{
	Oid			queue_table;

	queue_table = make_partitioned_table(schema, name, spec);
	insert_table_row(queue_table, spec);
	make_message_view(queue_table, schema, name);
	queue_admin_make_exception_queue(queue_table);
	queue_catalog_invalidate(queue_table);
	return queue_table;
}

Oid
queue_admin_create_table(const char *queue_table, const QueueTableSpec *spec)
{
	QueueAdminScope scope;
	MemoryContext context = CurrentMemoryContext;
	volatile Oid result = InvalidOid;
	char	   *schema_name;
	char	   *name;
	Oid			schema;
	Oid			owner;

	queue_name_parse("queue_table", queue_table, &schema_name, &name);
	queue_name_check_reserved(name);
	queue_admin_check_spec(spec);
	schema = queue_admin_creation_schema(schema_name, &owner);
	if (OidIsValid(get_relname_relid(name, schema)))
		queue_admin_report_duplicate("queue table", name, schema);

	queue_admin_begin(&scope, owner);
	PG_TRY();
	{
		result = queue_admin_make_table(schema, name, owner, spec);
	}
	PG_CATCH();
	{
		queue_admin_rethrow(context, "queue table", name, schema);
	}
	PG_END_TRY();
	queue_admin_end(&scope);
	return result;
}

/* -------------------------------------------------------------------------
 * Alter and drop
 * -------------------------------------------------------------------------
 */

/*
 * The queue table's owner, when the caller may administer it.  Does not need
 * its columns and leaves to be sound.
 */
Oid
queue_admin_check_table(Oid queue_table)
{
	HeapTuple	tuple;
	Oid			owner;
	uint64		found;
	QueueAdminScope scope;

	queue_admin_begin(&scope, GetUserId());
	found = queue_admin_run_catalog_oid("SELECT 1 FROM queue.queue_table"
										" WHERE relation = $1", queue_table);
	queue_admin_end(&scope);
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(queue_table));
	if (found == 0 || !HeapTupleIsValid(tuple))
	{
		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		(void) queue_catalog_find_table(queue_table, false);
		elog(ERROR, "queue table %u is not visible", queue_table);
	}
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	queue_acl_check_manage(queue_table);
	return owner;
}

void
queue_admin_alter_table(Oid queue_table, const char *comment,
						const char *rotation)
{
	QueueAdminScope scope;
	Oid			types[] = {OIDOID, TEXTOID, TEXTOID};
	Datum		values[3];
	char		nulls[4] = "   ";

	(void) queue_admin_check_table(queue_table);
	if (comment == NULL && rotation == NULL)
		return;
	values[0] = ObjectIdGetDatum(queue_table);
	values[1] = values[2] = (Datum) 0;
	if (comment != NULL)
		values[1] = CStringGetTextDatum(comment);
	else
		nulls[1] = 'n';
	if (rotation != NULL)
		values[2] = CStringGetTextDatum(parse_rotation(rotation));
	else
		nulls[2] = 'n';
	queue_admin_begin(&scope, GetUserId());
	(void) queue_admin_run_catalog("UPDATE queue.queue_table"
								   " SET comment = CASE WHEN $2 IS NULL"
								   " THEN comment ELSE nullif($2, '') END,"
								   " rotation = coalesce($3, rotation)"
								   " WHERE relation = $1",
								   3, types, values, nulls);
	queue_catalog_invalidate(queue_table);
	queue_admin_end(&scope);
}

/* Views of its queues in the order of their ids; those that exist. */
List *
queue_admin_queues_of(Oid queue_table, bool with_default)
{
	List	   *result = NIL;
	MemoryContext context = CurrentMemoryContext;
	QueueAdminScope scope;

	queue_admin_begin(&scope, GetUserId());
	(void) queue_admin_run_catalog_oid("SELECT q.view::oid, q.is_default_exception"
									   " FROM queue.queue q"
									   " JOIN pg_catalog.pg_class c"
									   " ON c.oid = q.view::oid"
									   " WHERE q.queue_table = $1"
									   " ORDER BY q.id", queue_table);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		Oid			view = DatumGetObjectId(SPI_getbinval(tuple, desc, 1,
														  &isnull));
		MemoryContext old;

		if (!with_default &&
			DatumGetBool(SPI_getbinval(tuple, desc, 2, &isnull)))
			continue;
		old = MemoryContextSwitchTo(context);
		result = lappend_oid(result, view);
		MemoryContextSwitchTo(old);
	}
	queue_admin_end(&scope);
	return result;
}

/*
 * The views that only show what is in the table: aq$... views of the table's
 * owner that depend on it and are no queues.
 */
static List *
message_views_of(Oid queue_table)
{
	List	   *result = NIL;

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
									   " AND v.relname LIKE 'aq$%'"
									   " ORDER BY v.oid", queue_table);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;

		result = lappend_oid(result,
							 DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[i],
															SPI_tuptable->tupdesc,
															1, &isnull)));
	}
	return result;
}

static void
append_names(StringInfo sql, List *relids)
{
	ListCell   *cell;

	foreach(cell, relids)
	{
		if (sql->len > 0)
			appendStringInfoString(sql, ", ");
		appendStringInfoString(sql, queue_name_qualified(lfirst_oid(cell)));
	}
}

/* Drop views and table; other objects that depend on them are an error. */
static void
drop_relations(Oid queue_table, List *queues)
{
	StringInfoData names;
	List	   *views;

	views = list_concat_unique_oid(list_copy(queues),
								   message_views_of(queue_table));
	initStringInfo(&names);
	append_names(&names, views);
	if (names.len > 0)
		queue_admin_run("DROP VIEW %s", names.data);
	queue_admin_run("DROP TABLE %s", queue_name_qualified(queue_table));
}

static void
check_no_queues(Oid queue_table)
{
	if (queue_admin_queues_of(queue_table, false) == NIL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_QUEUE_TABLE_NOT_EMPTY),
			 errmsg("queue table \"%s\" still has queues",
					queue_catalog_name(queue_table)),
			 errhint("Drop them with queue.drop_queue(), or use force => true.")));
}

void
queue_admin_drop_table(Oid queue_table, bool force)
{
	QueueAdminScope scope;
	Oid			owner = queue_admin_check_table(queue_table);
	List	   *queues;
	ListCell   *cell;

	if (!force)
		check_no_queues(queue_table);
	queues = queue_admin_queues_of(queue_table, true);
	foreach(cell, queues)
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
	LockRelationOid(queue_table, AccessExclusiveLock);
	/* once more: somebody may have made a queue or dropped one meanwhile */
	(void) queue_admin_check_table(queue_table);
	if (!force)
		check_no_queues(queue_table);
	queues = queue_admin_queues_of(queue_table, true);

	queue_admin_begin(&scope, owner);
	drop_relations(queue_table, queues);
	/* the event trigger has done it, unless it is turned off */
	(void) queue_admin_run_catalog_oid("DELETE FROM queue.queue"
									   " WHERE queue_table = $1", queue_table);
	(void) queue_admin_run_catalog_oid("DELETE FROM queue.queue_table"
									   " WHERE relation = $1", queue_table);
	queue_admin_end(&scope);
}
