/*-------------------------------------------------------------------------
 *
 * admin_view.c
 *	  The definitions of the views that belong to queues and queue tables.
 *
 * They are built with search_path pinned to pg_catalog, so operators and
 * types need no schema.  m is the queue table in all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "admin_internal.h"
#include "name.h"

/* the columns of a queue's view; see docs/ for what they mean */
static const char queue_columns[] =
"m.msgid,"
" m.payload,"
" m.priority,"
" m.correlation,"
" m.properties,"
" NULL::interval AS delay,"
" m.due_at AS deliver_at,"
" m.expires_at - coalesce(m.due_at, queue.enq_time(m.msgid)) AS expiration,"
" m.exception_queue,"
" CASE WHEN m.sender_name IS NULL AND m.sender_address IS NULL"
" AND m.sender_protocol IS NULL THEN NULL::queue.agent"
" ELSE ROW(m.sender_name, m.sender_address,"
" m.sender_protocol)::queue.agent END AS sender,"
" m.group_key,"
" m.dedup_key,"
" m.reply_to,"
" m.routing_key,"
" CASE m.state WHEN 0 THEN 'ready' WHEN 1 THEN 'waiting'"
" WHEN 2 THEN 'processed' WHEN 3 THEN 'expired' END AS state,"
" queue.enq_time(m.msgid) AS enq_time,"
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

/* A scalar subselect over the queue that a condition names. */
static char *
queue_lookup(const char *result, Oid queue_table, const char *condition)
{
	return psprintf("(SELECT %s FROM queue.queue q"
					" JOIN pg_catalog.pg_class c ON c.oid = q.view::oid"
					" WHERE q.queue_table = %s::pg_catalog.regclass"
					" AND %s)",
					result,
					quote_literal_cstr(queue_name_qualified(queue_table)),
					condition);
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
	char	   *current = queue_lookup("q.view", queue_table,
									   "q.id = m.queue_id");
	char	   *original = queue_lookup("q.view", queue_table,
										"q.id = m.original_queue_id");
	char	   *exception = queue_lookup("q.view", queue_table,
										 "q.is_default_exception");
	const char *owner_name = "pg_catalog.pg_get_userbyid(c.relowner)::text";

	if (raw_names)
		appendStringInfo(sql,
						 "%s AS _queue,"
						 " CASE WHEN m.state = 3 THEN %s END AS _original,"
						 " CASE WHEN m.state <> 3 THEN %s END AS _default,"
						 " CASE WHEN m.state <> 3 THEN m.exception_queue END"
						 " AS _exception, ",
						 current, original, exception);
	else
		appendStringInfo(sql, "%s::text AS queue, ", current);
	appendStringInfoString(sql,
						   "m.msgid AS msg_id,"
						   " m.correlation AS corr_id,"
						   " m.priority AS msg_priority,"
						   " CASE m.state WHEN 0 THEN 'READY' WHEN 1 THEN 'WAIT'"
						   " WHEN 2 THEN 'PROCESSED' WHEN 3 THEN 'EXPIRED' END"
						   " AS msg_state,"
						   " m.due_at AS delay,"
						   " m.due_at AS delay_timestamp,"
						   " m.expires_at - coalesce(m.due_at,"
						   " queue.enq_time(m.msgid)) AS expiration,"
						   " queue.enq_time(m.msgid) AS enq_time,"
						   " queue.enq_time(m.msgid) AS enq_timestamp,"
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
					 " ELSE (SELECT pg_catalog.pg_get_userbyid(c.relowner)::text"
					 " FROM pg_catalog.pg_class c WHERE c.oid ="
					 " pg_catalog.to_regclass(m.exception_queue)::oid)"
					 " END END AS exception_queue_owner,",
					 queue_lookup(owner_name, queue_table,
								  "q.is_default_exception"));
	if (!raw_names)
		appendStringInfo(sql,
						 " CASE WHEN m.state <> 3 THEN"
						 " coalesce(m.exception_queue, %s::text) END"
						 " AS exception_queue,",
						 exception);
	appendStringInfoString(sql, " m.payload AS user_data, m.original_msgid,");
	if (!raw_names)
		appendStringInfo(sql,
						 " CASE WHEN m.state = 3 THEN %s::text END"
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
					 queue_lookup(owner_name, queue_table,
								  "q.id = m.original_queue_id"));
}

/* What raw_names has left out; m is the rows from there. */
void
queue_admin_append_names(StringInfo sql)
{
	appendStringInfoString(sql,
						   "m._queue::pg_catalog.text AS queue,"
						   " coalesce(m._exception,"
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
						   " m.due_at AS deliver_at,"
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
