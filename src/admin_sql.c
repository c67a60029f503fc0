/*-------------------------------------------------------------------------
 *
 * admin_sql.c
 *	  How the administrative modules run SQL.
 *
 * Administration is rare, so it is written in SQL and goes through SPI.  The
 * objects of users are made and dropped as their owner; the rows of the
 * catalog are written as the owner of the extension, for that part only.
 * search_path is pinned: no operator or function in what is created can be
 * somebody else's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "admin_sql.h"
#include "catalog.h"

static void
pin_setting(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Act as a role.  Restricted, because that role's own triggers may run: they
 * must not leave anything behind that is executed later as the caller.
 */
static void
become(Oid role)
{
	Oid			user;
	int			security_context;

	GetUserIdAndSecContext(&user, &security_context);
	SetUserIdAndSecContext(role,
						   security_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
}

void
queue_admin_begin(QueueAdminScope *scope, Oid role)
{
	scope->guc_nest_level = NewGUCNestLevel();
	pin_setting("search_path", "pg_catalog, pg_temp");
	pin_setting("IntervalStyle", "iso_8601");
	GetUserIdAndSecContext(&scope->user, &scope->security_context);
	if (role != scope->user)
		become(role);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

void
queue_admin_end(QueueAdminScope *scope)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	SetUserIdAndSecContext(scope->user, scope->security_context);
	AtEOXact_GUC(false, scope->guc_nest_level);
}

static char *format_command(const char *format, va_list *args, int *needed)
			pg_attribute_printf(1, 0);

static char *
format_command(const char *format, va_list *args, int *needed)
{
	StringInfoData command;

	initStringInfo(&command);
	if (*needed > 0)
		enlargeStringInfo(&command, *needed);
	*needed = appendStringInfoVA(&command, format, *args);
	return command.data;
}

/* Format a command into "command", whatever its length. */
#define FORMAT_COMMAND(command, format) \
	do { \
		int			needed = 0; \
		do { \
			va_list		args; \
			va_start(args, format); \
			(command) = format_command(format, &args, &needed); \
			va_end(args); \
		} while (needed > 0); \
	} while (0)

void
queue_admin_run(const char *format,...)
{
	char	   *command;
	int			result;

	FORMAT_COMMAND(command, format);
	result = SPI_execute(command, false, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute failed: %s",
			 SPI_result_code_string(result));
}

void
queue_admin_run_latest(const char *format,...)
{
	char	   *command;
	SPIPlanPtr	plan;
	int			result;

	FORMAT_COMMAND(command, format);
	plan = SPI_prepare(command, 0, NULL);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s",
			 SPI_result_code_string(SPI_result));
	CommandCounterIncrement();
	result = SPI_execute_snapshot(plan, NULL, NULL, GetLatestSnapshot(),
								  InvalidSnapshot, false, true, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s",
			 SPI_result_code_string(result));
}

/* Owner of the extension's tables. */
static Oid
catalog_owner(void)
{
	HeapTuple	tuple;
	Oid			owner;
	Oid			relid = queue_catalog_relation("queue");

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

uint64
queue_admin_run_catalog(const char *command, int nargs, Oid *types,
						Datum *values, const char *nulls)
{
	Oid			user;
	int			security_context;
	int			result;

	GetUserIdAndSecContext(&user, &security_context);
	become(catalog_owner());
	result = SPI_execute_with_args(command, nargs, types, values, nulls,
								   false, 0);
	SetUserIdAndSecContext(user, security_context);
	if (result < 0)
		elog(ERROR, "SPI_execute failed: %s",
			 SPI_result_code_string(result));
	return SPI_processed;
}

uint64
queue_admin_run_catalog_oid(const char *command, Oid oid)
{
	Oid			type = OIDOID;
	Datum		value = ObjectIdGetDatum(oid);

	return queue_admin_run_catalog(command, 1, &type, &value, NULL);
}
