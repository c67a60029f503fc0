/*-------------------------------------------------------------------------
 *
 * admin_view.c
 *	  The definitions of the views that belong to queues and queue tables.
 *
 * They are built with search_path pinned to pg_catalog, so operators and
 * types need no schema.  m is the queue table in all of them.
 *
 * The views are their owner's and outlive the extension: DROP EXTENSION ...
 * CASCADE would take along whatever depends on a type, function or relation
 * of its.  So nothing but the queue table and pg_catalog is named here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "admin_internal.h"
#include "name.h"

/*
 * When the message was enqueued, exact to the microsecond: the UUIDv7's 48
 * bits of milliseconds, and the 12 bits of microseconds behind the version
 * (see clock.c).
 */
#define ENQ_TIME \
"(to_timestamp(0)" \
" + ('x' || substr(m.msgid::text, 1, 8) || substr(m.msgid::text, 10, 4))" \
"::bit(48)::int8 * interval '1 millisecond'" \
" + ('x' || substr(m.msgid::text, 16, 3))" \
"::bit(12)::int4 * interval '1 microsecond')"

/* the columns of a queue's view; see docs/ for what they mean */
static const char queue_columns[] =
"m.msgid,"
" m.payload,"
" m.priority,"
" m.correlation,"
" m.properties,"
" NULL::interval AS delay,"
" CASE m.state WHEN 1 THEN m.due_at END AS deliver_at,"
" m.expiration,"
" m.exception_queue,"
" m.sender_name AS sender,"
" m.group_key,"
" m.dedup_key,"
" m.reply_to,"
" m.routing_key,"
" CASE m.state WHEN 0 THEN 'ready' WHEN 1 THEN 'waiting'"
" WHEN 2 THEN 'processed' WHEN 3 THEN 'expired' END AS state,"
" " ENQ_TIME " AS enq_time,"
" m.expires_at,"
" m.retry_count,"
" m.original_msgid,"
" m.group_id,"
" m.step";

/*
 * CREATE VIEW of a queue.  A security barrier, because its queue table holds
 * other queues' messages as well.  The state is said, so that the planner
 * opens no other partitions.
 */
void
queue_admin_append_queue_view(StringInfo sql, const char *view,
							  Oid queue_table, int32 id, bool is_exception)
{
	appendStringInfo(sql,
					 "CREATE VIEW %s WITH (security_barrier) AS"
					 " SELECT %s FROM %s m"
					 " WHERE m.queue_id = %d AND m.state %s",
					 view, queue_columns, queue_name_qualified(queue_table),
					 id,
					 is_exception ? "= 3::smallint" :
					 "IN (0::smallint, 1::smallint)");
}

/*
 * FROM and WHERE of a query for the queues of a table, an SQL expression of
 * type regclass or oid: v is the view's row in pg_class, and c.description
 * what queue_admin_record_settings() has noted on it.  Anybody may make a
 * view over the table and write such a comment, so the owner matters.
 */
char *
queue_admin_queues_source(const char *queue_table)
{
	return psprintf(" FROM pg_depend d"
					" JOIN pg_rewrite r ON r.oid = d.objid"
					" JOIN pg_class v ON v.oid = r.ev_class"
					" JOIN pg_class t"
					" ON t.oid = d.refobjid AND t.relowner = v.relowner"
					" JOIN pg_description c ON c.objoid = v.oid"
					" WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass"
					" AND d.refclassid = 'pg_catalog.pg_class'::regclass"
					" AND d.refobjid = %s"
					" AND v.relkind = 'v'"
					" AND c.classoid = 'pg_catalog.pg_class'::regclass"
					" AND c.objsubid > 0"
					" AND c.description ~ '" QUEUE_SETTINGS_PATTERN "'",
					queue_table);
}

/*
 * A queue's view, as oid, by its id: a look into a map that is made once for
 * a query.
 */
static char *
queue_by_id(const char *source, const char *id)
{
	return psprintf("((SELECT jsonb_object_agg("
					"substring(c.description FROM '" QUEUE_SETTINGS_PATTERN "'),"
					" v.oid)%s) ->> %s::text)::oid",
					source, id);
}

static char *
default_exception_queue(const char *source)
{
	return psprintf("(SELECT max(v.oid)%s AND c.description ~ '"
					QUEUE_SETTINGS_DEFAULT_PATTERN "')",
					source);
}

/*
 * The relation whose qualified name a message holds, as oid.  Not by
 * to_regclass(), which is an error for who may not look into that schema.
 */
static const char named_exception_queue[] =
"(SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
" WHERE c.relname = (parse_ident(m.exception_queue))[2]::name"
" AND n.nspname = (parse_ident(m.exception_queue))[1]::name)";

/* The owner of a relation, an expression of type oid. */
static char *
owner_of(const char *relation)
{
	return psprintf("(SELECT pg_get_userbyid(o.relowner)::text"
					" FROM pg_class o WHERE o.oid = %s)", relation);
}

/*
 * The columns of aq$<queue_table>: Oracle's, by their names.  Subselects
 * rather than joins, so that nothing is looked up for a column that is not
 * asked for, and rows can be locked through them.
 *
 * How a queue's name is written depends on search_path.  raw_names: leave
 * that to a later statement, queue_admin_append_names(), which runs with
 * another one.
 */
void
queue_admin_append_table_columns(StringInfo sql, Oid queue_table,
								 bool raw_names)
{
	char	   *source;
	char	   *current;
	char	   *original;
	char	   *exception;

	source = psprintf("%s::regclass",
					  quote_literal_cstr(queue_name_qualified(queue_table)));
	source = queue_admin_queues_source(source);
	current = queue_by_id(source, "m.queue_id");
	original = queue_by_id(source, "m.original_queue_id");
	exception = default_exception_queue(source);

	if (raw_names)
		appendStringInfo(sql,
						 "%s::regclass AS _queue,"
						 " CASE WHEN m.state = 3 THEN %s::regclass END"
						 " AS _original,"
						 " CASE WHEN m.state <> 3 THEN %s::regclass END"
						 " AS _default,"
						 " CASE WHEN m.state <> 3 THEN %s::regclass END"
						 " AS _named,"
						 " CASE WHEN m.state <> 3 THEN m.exception_queue END"
						 " AS _exception, ",
						 current, original, exception,
						 named_exception_queue);
	else
		appendStringInfo(sql, "%s::regclass::text AS queue, ",
						 current);
	appendStringInfoString(sql,
						   "m.msgid AS msg_id,"
						   " m.correlation AS corr_id,"
						   " m.priority AS msg_priority,"
						   " CASE m.state WHEN 0 THEN 'READY' WHEN 1 THEN 'WAIT'"
						   " WHEN 2 THEN 'PROCESSED' WHEN 3 THEN 'EXPIRED' END"
						   " AS msg_state,"
						   " m.due_at AS delay,"
						   " m.due_at AS delay_timestamp,"
						   " m.expiration,"
						   " " ENQ_TIME " AS enq_time,"
						   " " ENQ_TIME " AS enq_timestamp,"
						   " m.enq_user AS enq_user_id,"
						   " m.enq_xid::text AS enq_txn_id,"
						   " m.deq_time,"
						   " m.deq_time AS deq_timestamp,"
						   " m.deq_user AS deq_user_id,"
						   " m.deq_xid::text AS deq_txn_id,"
						   " m.retry_count,");
	appendStringInfo(sql,
					 " CASE WHEN m.state <> 3 THEN"
					 " CASE WHEN m.exception_queue IS NULL THEN %s"
					 " ELSE %s END END AS exception_queue_owner,",
					 owner_of(exception),
					 owner_of(named_exception_queue));
	if (!raw_names)
		appendStringInfo(sql,
						 " CASE WHEN m.state <> 3 THEN"
						 " coalesce(%s::regclass::text, m.exception_queue,"
						 " %s::regclass::text)"
						 " END AS exception_queue,",
						 named_exception_queue, exception);
	appendStringInfoString(sql, " m.payload AS user_data, m.original_msgid,");
	if (!raw_names)
		appendStringInfo(sql,
						 " CASE WHEN m.state = 3 THEN %s::regclass::text END"
						 " AS original_queue_name,",
						 original);
	appendStringInfo(sql,
					 " CASE WHEN m.state = 3 THEN %s END"
					 " AS original_queue_owner,"
					 " m.expiration_reason,"
					 " m.sender_name,"
					 " m.sender_address,"
					 " m.sender_protocol,"
					 " m.properties",
					 owner_of(original));
}

/* What raw_names has left out; m is the rows from there. */
void
queue_admin_append_names(StringInfo sql)
{
	appendStringInfoString(sql,
						   "m._queue::pg_catalog.text AS queue,"
						   " coalesce(m._named::pg_catalog.text, m._exception,"
						   " m._default::pg_catalog.text) AS exception_queue,"
						   " m._original::pg_catalog.text"
						   " AS original_queue_name");
}

/*
 * What a condition may name beside those: the columns of a queue's view that
 * have other names.
 */
void
queue_admin_append_message_columns(StringInfo sql)
{
	appendStringInfoString(sql,
						   "m.msgid,"
						   " m.payload,"
						   " m.priority,"
						   " m.correlation,"
						   " m.correlation AS corrid,"
						   " CASE m.state WHEN 1 THEN m.due_at END"
						   " AS deliver_at,"
						   " CASE m.state WHEN 0 THEN 'ready'"
						   " WHEN 1 THEN 'waiting' WHEN 2 THEN 'processed'"
						   " WHEN 3 THEN 'expired' END AS state,"
						   " m.expires_at,"
						   " m.group_id,"
						   " m.step,"
						   " m.group_key,"
						   " m.dedup_key,"
						   " m.reply_to,"
						   " m.routing_key");
}
