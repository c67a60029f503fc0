/*-------------------------------------------------------------------------
 *
 * api_admin.c
 *	  SQL functions of administration: decode arguments, call down.
 *
 * "Unnamed ones stay" needs a default that nobody would pass: NULL means for
 * ever.  It is the lowest value of the type for a number, and as many days
 * for an interval (see sql/install/admin.sql).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/timestamp.h"

#include "admin.h"
#include "api.h"
#include "compat.h"
#include "redrive.h"
#include "shmem.h"

#define UNCHANGED			PG_INT32_MIN

#define DEFAULT_MAX_RETRIES	5

PG_FUNCTION_INFO_V1(queue_create_queue_table);
PG_FUNCTION_INFO_V1(queue_alter_queue_table);
PG_FUNCTION_INFO_V1(queue_drop_queue_table);
PG_FUNCTION_INFO_V1(queue_purge_queue_table);
PG_FUNCTION_INFO_V1(queue_redrive);
PG_FUNCTION_INFO_V1(queue_create_queue);
PG_FUNCTION_INFO_V1(queue_alter_queue);
PG_FUNCTION_INFO_V1(queue_drop_queue);
PG_FUNCTION_INFO_V1(queue_start_queue);
PG_FUNCTION_INFO_V1(queue_stop_queue);
PG_FUNCTION_INFO_V1(queue_grant_queue_privilege);
PG_FUNCTION_INFO_V1(queue_revoke_queue_privilege);
PG_FUNCTION_INFO_V1(queue_grant_system_privilege);
PG_FUNCTION_INFO_V1(queue_revoke_system_privilege);
PG_FUNCTION_INFO_V1(queue_adopt);

/* -------------------------------------------------------------------------
 * Arguments
 * -------------------------------------------------------------------------
 */

/*
 * Every one of these functions writes; name is for messages.  What others have
 * changed is taken notice of before the first check, not only when a lock is
 * taken after it.
 */
static void
begin_call(const char *name)
{
	queue_require_preload();
	AcceptInvalidationMessages();
	PreventCommandIfReadOnly(name);
	PreventCommandIfParallelMode(name);
	PreventCommandDuringRecovery(name);
}

static void
check_not_null(FunctionCallInfo fcinfo, int n, const char *argument)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", argument)));
}

static char *
optional_text(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

static char *
required_text(FunctionCallInfo fcinfo, int n, const char *argument)
{
	char	   *result;

	check_not_null(fcinfo, n, argument);
	result = optional_text(fcinfo, n);
	if (result[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", argument)));
	return result;
}

static bool
required_bool(FunctionCallInfo fcinfo, int n, const char *argument)
{
	check_not_null(fcinfo, n, argument);
	return PG_GETARG_BOOL(n);
}

static Oid
required_oid(FunctionCallInfo fcinfo, int n, const char *argument)
{
	check_not_null(fcinfo, n, argument);
	return PG_GETARG_OID(n);
}

/* NULL and, from version 17 on, infinity are for ever: a null pointer. */
static Interval *
optional_interval(FunctionCallInfo fcinfo, int n)
{
	Interval   *result;

	if (PG_ARGISNULL(n))
		return NULL;
	result = PG_GETARG_INTERVAL_P(n);
#ifdef INTERVAL_IS_NOEND
	if (INTERVAL_IS_NOEND(result))
		return NULL;
#endif
	return result;
}

static bool
interval_is_unchanged(const Interval *value)
{
	return value != NULL && value->time == 0 && value->month == 0 &&
		value->day == UNCHANGED;
}

static bool
interval_is_zero(const Interval *value)
{
	return value != NULL && value->time == 0 && value->month == 0 &&
		value->day == 0;
}

/* NULL is for ever; -1, as in C it would mean that, is out of range here. */
static int64
optional_max_retries(FunctionCallInfo fcinfo, int n)
{
	int64		value;

	if (PG_ARGISNULL(n))
		return -1;
	value = PG_GETARG_INT64(n);
	if (value != UNCHANGED && (value < 0 || value > PG_INT32_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_retries must be between 0 and %d, not " INT64_FORMAT,
						PG_INT32_MAX, value),
				 errhint("NULL means for ever.")));
	return value;
}

/* -------------------------------------------------------------------------
 * Queue tables
 * -------------------------------------------------------------------------
 */

/* create_queue_table(queue_table, payload_type, sort_list,
 * multiple_consumers, message_grouping, comment, rotation) */
Datum
queue_create_queue_table(PG_FUNCTION_ARGS)
{
	QueueTableSpec spec;
	char	   *name;

	begin_call("queue.create_queue_table()");
	name = required_text(fcinfo, 0, "queue_table");
	spec.payload_type = required_oid(fcinfo, 1, "payload_type");
	spec.sort_list = optional_text(fcinfo, 2);
	spec.multiple_consumers = required_bool(fcinfo, 3, "multiple_consumers");
	spec.message_grouping = optional_text(fcinfo, 4);
	spec.comment = optional_text(fcinfo, 5);
	spec.rotation = optional_text(fcinfo, 6);
	PG_RETURN_OID(queue_admin_create_table(name, &spec));
}

/* alter_queue_table(queue_table, comment, rotation) */
Datum
queue_alter_queue_table(PG_FUNCTION_ARGS)
{
	begin_call("queue.alter_queue_table()");
	queue_admin_alter_table(required_oid(fcinfo, 0, "queue_table"),
							optional_text(fcinfo, 1),
							optional_text(fcinfo, 2));
	PG_RETURN_VOID();
}

/* drop_queue_table(queue_table, force) */
Datum
queue_drop_queue_table(PG_FUNCTION_ARGS)
{
	begin_call("queue.drop_queue_table()");
	queue_admin_drop_table(required_oid(fcinfo, 0, "queue_table"),
						   required_bool(fcinfo, 1, "force"));
	PG_RETURN_VOID();
}

/* purge_queue_table(queue_table, condition) */
Datum
queue_purge_queue_table(PG_FUNCTION_ARGS)
{
	Oid			queue_table;

	begin_call("queue.purge_queue_table()");
	queue_table = required_oid(fcinfo, 0, "queue_table");
	PG_RETURN_INT64(queue_admin_purge_table(queue_table,
											optional_text(fcinfo, 1)));
}

/* redrive(exception_queue, destination, condition, max_messages) */
Datum
queue_redrive(PG_FUNCTION_ARGS)
{
	Oid			queue;
	int64		max_messages = PG_INT64_MAX;

	begin_call("queue.redrive()");
	queue = required_oid(fcinfo, 0, "exception_queue");
	if (!PG_ARGISNULL(3))
		max_messages = PG_GETARG_INT64(3);
	if (max_messages < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"max_messages\" must be at least 1"),
				 errhint("Leave it NULL to send back all.")));
	PG_RETURN_INT64(queue_redrive_messages(queue,
										   PG_ARGISNULL(1) ? InvalidOid :
										   PG_GETARG_OID(1),
										   optional_text(fcinfo, 2),
										   max_messages));
}

/* adopt(queue_table) */
Datum
queue_adopt(PG_FUNCTION_ARGS)
{
	begin_call("queue.adopt()");
	PG_RETURN_INT32(queue_admin_adopt(required_oid(fcinfo, 0,
												   "queue_table")));
}

/* -------------------------------------------------------------------------
 * Queues
 * -------------------------------------------------------------------------
 */

/*
 * The properties of a queue's own queue table: arguments from the eighth on,
 * NULL where nothing was said.  With a queue table given they have no
 * meaning, and saying one is an error rather than no effect.
 */
static void
decode_own_table(FunctionCallInfo fcinfo, bool table_given,
				 QueueTableSpec *spec)
{
	static const char *const names[] = {
		"payload_type", "sort_list", "multiple_consumers", "message_grouping",
		"rotation"
	};

	for (int i = 0; table_given && i < lengthof(names); i++)
	{
		if (!PG_ARGISNULL(7 + i))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("%s cannot be given together with queue_table",
							names[i]),
					 errdetail("It is a property of the queue table."),
					 errhint("Give it to queue.create_queue_table().")));
	}
	memset(spec, 0, sizeof(*spec));
	spec->payload_type = PG_ARGISNULL(7) ? JSONBOID : PG_GETARG_OID(7);
	spec->sort_list = optional_text(fcinfo, 8);
	spec->multiple_consumers = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);
	spec->message_grouping = optional_text(fcinfo, 10);
	spec->rotation = optional_text(fcinfo, 11);
}

/*
 * create_queue(queue_name, queue_table, queue_type, max_retries, retry_delay,
 * retention_time, comment, payload_type, sort_list, multiple_consumers,
 * message_grouping, rotation)
 */
Datum
queue_create_queue(PG_FUNCTION_ARGS)
{
	QueueSettings settings = {0};
	QueueTableSpec spec;
	char	   *queue_name;
	char	   *queue_table = NULL;
	char	   *queue_type;

	begin_call("queue.create_queue()");
	queue_name = required_text(fcinfo, 0, "queue_name");
	if (!PG_ARGISNULL(1))
		queue_table = required_text(fcinfo, 1, "queue_table");
	queue_type = required_text(fcinfo, 2, "queue_type");
	settings.max_retries = optional_max_retries(fcinfo, 3);
	if (settings.max_retries == UNCHANGED)
		settings.max_retries = DEFAULT_MAX_RETRIES;
	settings.retry_delay = optional_interval(fcinfo, 4);
	settings.retention = optional_interval(fcinfo, 5);
	settings.comment = optional_text(fcinfo, 6);
	/* was anything said that is not the default? */
	settings.set_max_retries = settings.max_retries != DEFAULT_MAX_RETRIES;
	settings.set_retry_delay = !interval_is_zero(settings.retry_delay);
	settings.set_retention = !interval_is_zero(settings.retention);
	decode_own_table(fcinfo, queue_table != NULL, &spec);
	PG_RETURN_OID(queue_admin_create_queue(queue_name, queue_table,
										   queue_type, &settings, &spec));
}

/* alter_queue(queue, max_retries, retry_delay, retention_time, comment) */
Datum
queue_alter_queue(PG_FUNCTION_ARGS)
{
	QueueSettings settings = {0};
	Oid			queue;

	begin_call("queue.alter_queue()");
	queue = queue_api_queue(fcinfo, 0);
	settings.max_retries = optional_max_retries(fcinfo, 1);
	settings.set_max_retries = settings.max_retries != UNCHANGED;
	settings.retry_delay = optional_interval(fcinfo, 2);
	settings.set_retry_delay = !interval_is_unchanged(settings.retry_delay);
	settings.retention = optional_interval(fcinfo, 3);
	settings.set_retention = !interval_is_unchanged(settings.retention);
	settings.comment = optional_text(fcinfo, 4);
	settings.set_comment = settings.comment != NULL;
	queue_admin_alter_queue(queue, &settings);
	PG_RETURN_VOID();
}

/* drop_queue(queue) */
Datum
queue_drop_queue(PG_FUNCTION_ARGS)
{
	begin_call("queue.drop_queue()");
	queue_admin_drop_queue(queue_api_queue(fcinfo, 0));
	PG_RETURN_VOID();
}

/* start_queue(queue, enqueue, dequeue) */
Datum
queue_start_queue(PG_FUNCTION_ARGS)
{
	begin_call("queue.start_queue()");
	queue_admin_start_queue(queue_api_queue(fcinfo, 0),
							required_bool(fcinfo, 1, "enqueue"),
							required_bool(fcinfo, 2, "dequeue"));
	PG_RETURN_VOID();
}

/* stop_queue(queue, enqueue, dequeue, wait) */
Datum
queue_stop_queue(PG_FUNCTION_ARGS)
{
	begin_call("queue.stop_queue()");
	queue_admin_stop_queue(queue_api_queue(fcinfo, 0),
						   required_bool(fcinfo, 1, "enqueue"),
						   required_bool(fcinfo, 2, "dequeue"),
						   required_bool(fcinfo, 3, "wait"));
	PG_RETURN_VOID();
}

/* -------------------------------------------------------------------------
 * Privileges
 * -------------------------------------------------------------------------
 */

/* grant_queue_privilege(privilege, queue, grantee, grant_option) */
Datum
queue_grant_queue_privilege(PG_FUNCTION_ARGS)
{
	char	   *privilege;
	char	   *grantee;
	Oid			queue;

	begin_call("queue.grant_queue_privilege()");
	privilege = required_text(fcinfo, 0, "privilege");
	queue = queue_api_queue(fcinfo, 1);
	grantee = required_text(fcinfo, 2, "grantee");
	queue_admin_grant_queue(privilege, queue, grantee,
							required_bool(fcinfo, 3, "grant_option"));
	PG_RETURN_VOID();
}

/* revoke_queue_privilege(privilege, queue, grantee) */
Datum
queue_revoke_queue_privilege(PG_FUNCTION_ARGS)
{
	char	   *privilege;
	char	   *grantee;
	Oid			queue;

	begin_call("queue.revoke_queue_privilege()");
	privilege = required_text(fcinfo, 0, "privilege");
	queue = queue_api_queue(fcinfo, 1);
	grantee = required_text(fcinfo, 2, "grantee");
	queue_admin_revoke_queue(privilege, queue, grantee);
	PG_RETURN_VOID();
}

/* grant_system_privilege(privilege, grantee, admin_option) */
Datum
queue_grant_system_privilege(PG_FUNCTION_ARGS)
{
	char	   *privilege;
	char	   *grantee;

	begin_call("queue.grant_system_privilege()");
	privilege = required_text(fcinfo, 0, "privilege");
	grantee = required_text(fcinfo, 1, "grantee");
	queue_admin_grant_system(privilege, grantee,
							 required_bool(fcinfo, 2, "admin_option"));
	PG_RETURN_VOID();
}

/* revoke_system_privilege(privilege, grantee) */
Datum
queue_revoke_system_privilege(PG_FUNCTION_ARGS)
{
	char	   *privilege;
	char	   *grantee;

	begin_call("queue.revoke_system_privilege()");
	privilege = required_text(fcinfo, 0, "privilege");
	grantee = required_text(fcinfo, 1, "grantee");
	queue_admin_revoke_system(privilege, grantee);
	PG_RETURN_VOID();
}
