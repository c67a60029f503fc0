/*-------------------------------------------------------------------------
 *
 * acl.c
 *	  May this role administer, enqueue, dequeue or browse?
 *
 * Rights on one queue are PostgreSQL's own, on its view, so that GRANT,
 * REVOKE, DROP OWNED and pg_dump need nothing from us.  Whoever fails there
 * may still hold a system privilege; those are few and looked up only then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "acl.h"
#include "catalog.h"
#include "compat.h"
#include "queue.h"

/* columns of queue.system_privilege as they are made in tables.sql */
enum
{
	ANUM_SYSTEM_PRIVILEGE_GRANTEE = 1,
	ANUM_SYSTEM_PRIVILEGE_PRIVILEGE,
	ANUM_SYSTEM_PRIVILEGE_ADMIN_OPTION
};

/*
 * Does the role hold a system privilege, itself or by membership?  Superusers
 * hold all.  The grantee InvalidOid is PUBLIC.
 */
bool
queue_acl_has_system_privilege(Oid role, const char *privilege,
							   bool with_admin_option)
{
	Relation	catalog;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	if (superuser_arg(role))
		return true;
	catalog = table_open(queue_catalog_relation("system_privilege"),
						 AccessShareLock);
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		TupleDesc	desc = RelationGetDescr(catalog);
		bool		isnull;
		Datum		name;
		Oid			grantee;

		name = heap_getattr(tuple, ANUM_SYSTEM_PRIVILEGE_PRIVILEGE, desc,
							&isnull);
		if (strcmp(TextDatumGetCString(name), privilege) != 0)
			continue;
		if (with_admin_option &&
			!DatumGetBool(heap_getattr(tuple,
									   ANUM_SYSTEM_PRIVILEGE_ADMIN_OPTION,
									   desc, &isnull)))
			continue;
		grantee = DatumGetObjectId(heap_getattr(tuple,
												ANUM_SYSTEM_PRIVILEGE_GRANTEE,
												desc, &isnull));
		found = !OidIsValid(grantee) || has_privs_of_role(role, grantee);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

static bool
has_queue_privilege(const QueueDesc *queue, AclMode mode)
{
	return pg_class_aclcheck(queue->relid, GetUserId(), mode) == ACLCHECK_OK;
}

void
queue_acl_check_enqueue(const QueueDesc *queue)
{
	if (has_queue_privilege(queue, ACL_INSERT) ||
		queue_acl_has_system_privilege(GetUserId(), "enqueue_any", false))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to enqueue into queue \"%s\"",
					queue_catalog_name(queue->relid)),
			 errhint("Its owner can grant it with queue.grant_queue_privilege('enqueue', ...).")));
}

void
queue_acl_check_dequeue(const QueueDesc *queue)
{
	if (has_queue_privilege(queue, ACL_DELETE) ||
		queue_acl_has_system_privilege(GetUserId(), "dequeue_any", false))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to dequeue from queue \"%s\"",
					queue_catalog_name(queue->relid)),
			 errhint("Its owner can grant it with queue.grant_queue_privilege('dequeue', ...).")));
}

/*
 * Whoever may take messages may look at them first: it sees nothing that a
 * dequeue and a rollback would not show.
 */
void
queue_acl_check_browse(const QueueDesc *queue)
{
	if (has_queue_privilege(queue, ACL_SELECT) ||
		has_queue_privilege(queue, ACL_DELETE) ||
		queue_acl_has_system_privilege(GetUserId(), "dequeue_any", false))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to browse queue \"%s\"",
					queue_catalog_name(queue->relid)),
			 errhint("Its owner can grant it with queue.grant_queue_privilege('browse', ...).")));
}

/* Owner of a queue or queue table, or manage_any. */
void
queue_acl_check_manage(Oid relid)
{
	if (queue_relation_ownercheck(relid, GetUserId()) ||
		queue_acl_has_system_privilege(GetUserId(), "manage_any", false))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("must be owner of %s \"%s\"",
					get_rel_relkind(relid) == RELKIND_VIEW ?
					"queue" : "queue table",
					queue_catalog_name(relid)),
			 errhint("The system privilege manage_any would allow it, too.")));
}
