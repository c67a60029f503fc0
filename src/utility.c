/*-------------------------------------------------------------------------
 *
 * utility.c
 *	  Commands of the server that workers must know of.
 *
 * DROP DATABASE, ALTER DATABASE ... RENAME and SET TABLESPACE, and CREATE
 * DATABASE with its template, need a database that nobody is connected to.
 * So the monitor is sent away first, and kept out until the transaction ends.
 * (DROP DATABASE WITH (FORCE) would do without for superusers; other owners
 * may not end a process that is not theirs.)  Only those who may run the
 * command on that database do this: nobody else can stop a monitor.
 *
 * DROP EXTENSION, which also comes with DROP OWNED, is seen where the server
 * drops the object, and wakes the monitor at commit, and all who wait for
 * messages.  So does the end of a queue's view or of a queue table.  COMMIT
 * PREPARED may publish any of these, or messages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "compat.h"
#include "utility.h"
#include "wakeup.h"
#include "worker.h"

static ProcessUtility_hook_type prev_utility_hook = NULL;
static object_access_hook_type prev_access_hook = NULL;

static void utility_hook(PlannedStmt *pstmt, const char *query,
						 bool read_only_tree, ProcessUtilityContext context,
						 ParamListInfo params, QueryEnvironment *environment,
						 DestReceiver *dest, QueryCompletion *completion);
static void access_hook(ObjectAccessType access, Oid class_id, Oid object_id,
						int sub_id, void *arg);

void
queue_utility_init(void)
{
	prev_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
	prev_access_hook = object_access_hook;
	object_access_hook = access_hook;
}

static void
access_hook(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id,
			void *arg)
{
	if (prev_access_hook)
		prev_access_hook(access, class_id, object_id, sub_id, arg);
	if (access != OAT_DROP)
		return;
	if (class_id == ExtensionRelationId)
	{
		queue_worker_note_change();
		queue_wakeup_at_commit(InvalidOid);
	}
	else if (class_id == RelationRelationId && sub_id == 0)
		queue_wakeup_at_commit(object_id);
}

static bool
is_template(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID,
										ObjectIdGetDatum(database));
	bool		result = false;

	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
		ReleaseSysCache(tuple);
	}
	return result;
}

static bool
may_create_databases(void)
{
	HeapTuple	tuple;
	bool		result = superuser();

	if (result)
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	if (HeapTupleIsValid(tuple))
	{
		result = ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
		ReleaseSysCache(tuple);
	}
	return result;
}

/* The template that CREATE DATABASE copies. */
static Oid
template_of(const CreatedbStmt *stmt)
{
	const char *name = "template1";
	ListCell   *cell;
	Oid			database;

	foreach(cell, stmt->options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
			name = defGetString(option);
	}
	database = get_database_oid(name, true);
	if (OidIsValid(database) && may_create_databases() &&
		(is_template(database) ||
		 queue_database_ownercheck(database, GetUserId())))
		return database;
	return InvalidOid;
}

static Oid
owned_database(const char *name)
{
	Oid			database = get_database_oid(name, true);

	if (OidIsValid(database) &&
		queue_database_ownercheck(database, GetUserId()))
		return database;
	return InvalidOid;
}

static bool
moves_database(const AlterDatabaseStmt *stmt)
{
	ListCell   *cell;

	foreach(cell, stmt->options)
	{
		if (strcmp(((DefElem *) lfirst(cell))->defname, "tablespace") == 0)
			return true;
	}
	return false;
}

/* The database that a command needs to itself, or InvalidOid. */
static Oid
database_needed(Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_DropdbStmt:
			return owned_database(((DropdbStmt *) stmt)->dbname);

		case T_RenameStmt:
			if (((RenameStmt *) stmt)->renameType == OBJECT_DATABASE)
				return owned_database(((RenameStmt *) stmt)->subname);
			return InvalidOid;

		case T_AlterDatabaseStmt:
			if (moves_database((AlterDatabaseStmt *) stmt))
				return owned_database(((AlterDatabaseStmt *) stmt)->dbname);
			return InvalidOid;

		case T_CreatedbStmt:
			return template_of((CreatedbStmt *) stmt);

		default:
			return InvalidOid;
	}
}

/* A copy of a database with the extension has it, too. */
static void
note_copy(const CreatedbStmt *stmt, Oid source)
{
	Oid			copy;

	if (!queue_worker_knows(source))
		return;
	CommandCounterIncrement();
	copy = get_database_oid(stmt->dbname, true);
	if (OidIsValid(copy))
		queue_worker_note_database(copy);
}

/* What was prepared is visible now. */
static void
note_commit_prepared(void)
{
	queue_worker_note_change();
	if (!queue_worker_is_noted() &&
		OidIsValid(get_extension_oid("queue", true)))
		queue_worker_note_use(true);
}

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	Node	   *stmt = pstmt->utilityStmt;
	TransactionStmtKind kind = IsA(stmt, TransactionStmt) ?
	((TransactionStmt *) stmt)->kind : TRANS_STMT_BEGIN;
	bool		commits_prepared = kind == TRANS_STMT_COMMIT_PREPARED;
	bool		ends_prepared = commits_prepared ||
	kind == TRANS_STMT_ROLLBACK_PREPARED;
	Oid			needed = database_needed(stmt);

	if (OidIsValid(needed))
		queue_worker_close_database(needed, IsA(stmt, DropdbStmt));

	if (prev_utility_hook)
		prev_utility_hook(pstmt, query, read_only_tree, context, params,
						  environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params,
								environment, dest, completion);

	if (OidIsValid(needed) && IsA(stmt, CreatedbStmt))
		note_copy((CreatedbStmt *) stmt, needed);
	if (ends_prepared)
		queue_wakeup_after_prepared();
	if (commits_prepared)
		note_commit_prepared();
}
