/*-------------------------------------------------------------------------
 *
 * privilege.c
 *	  Grant and revoke privileges on queues, and system privileges.
 *
 * A queue's privileges are GRANTs on its view:
 *
 *	  enqueue	INSERT, and SELECT (msgid) for INSERT ... RETURNING msgid
 *	  dequeue	DELETE
 *	  browse	SELECT
 *	  all		the three
 *
 * so a plain GRANT or REVOKE does as well.  System privileges are rows of
 * queue.system_privilege.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "acl.h"
#include "admin.h"
#include "admin_sql.h"
#include "catalog.h"
#include "compat.h"
#include "name.h"

typedef struct QueuePrivilege
{
	const char *name;
	const char *grants;			/* what GRANT and REVOKE take */
	AclMode		mode;
} QueuePrivilege;

static const QueuePrivilege queue_privileges[] = {
	{"enqueue", "INSERT, SELECT (msgid)", ACL_INSERT},
	{"dequeue", "DELETE", ACL_DELETE},
	{"browse", "SELECT", ACL_SELECT},
	{"all", "INSERT, DELETE, SELECT", ACL_INSERT | ACL_DELETE | ACL_SELECT}
};

static const char *const system_privileges[] = {
	"enqueue_any",
	"dequeue_any",
	"manage_any"
};

/* -------------------------------------------------------------------------
 * Privileges and grantees
 * -------------------------------------------------------------------------
 */

static const QueuePrivilege *
find_queue_privilege(const char *name)
{
	for (int i = 0; i < lengthof(queue_privileges); i++)
	{
		if (pg_strcasecmp(queue_privileges[i].name, name) == 0)
			return &queue_privileges[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized queue privilege \"%s\"", name),
			 errhint("Allowed are enqueue, dequeue, browse and all; system privileges are granted with queue.grant_system_privilege().")));
	return NULL;				/* keep compiler quiet */
}

static const char *
find_system_privilege(const char *name)
{
	for (int i = 0; i < lengthof(system_privileges); i++)
	{
		if (pg_strcasecmp(system_privileges[i], name) == 0)
			return system_privileges[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized system privilege \"%s\"", name),
			 errhint("Allowed are enqueue_any, dequeue_any and manage_any; privileges on one queue are granted with queue.grant_queue_privilege().")));
	return NULL;				/* keep compiler quiet */
}

/*
 * The OID of a grantee, InvalidOid for PUBLIC; *quoted is set to what GRANT
 * takes.
 */
static Oid
find_grantee(const char *grantee, const char **quoted)
{
	char	   *name = queue_name_parse_single("grantee", grantee);

	if (strcmp(name, "public") == 0)
	{
		*quoted = "PUBLIC";
		return InvalidOid;
	}
	*quoted = quote_identifier(name);
	return get_role_oid(name, false);
}

/* -------------------------------------------------------------------------
 * Privileges on a queue
 * -------------------------------------------------------------------------
 */

/*
 * Who grants: the owner, for its members and for manage_any; else the caller,
 * who then must hold the privilege with grant option.
 */
static Oid
find_grantor(const QueueDesc *queue, const QueuePrivilege *privilege)
{
	Oid			me = GetUserId();

	if (queue_relation_ownercheck(queue->relid, me))
		return queue->owner;
	if (pg_class_aclmask(queue->relid, me,
						 ACL_GRANT_OPTION_FOR(privilege->mode),
						 ACLMASK_ALL) == ACL_GRANT_OPTION_FOR(privilege->mode))
		return me;
	if (queue_acl_has_system_privilege(me, "manage_any", false))
		return queue->owner;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to grant or revoke privilege %s on queue \"%s\"",
					privilege->name, queue_catalog_name(queue->relid)),
			 errhint("Its owner may, and whoever holds the privilege with grant option or the system privilege manage_any.")));
	return InvalidOid;			/* keep compiler quiet */
}

void
queue_admin_grant_queue(const char *privilege_name, Oid queue,
						const char *grantee, bool grant_option)
{
	const QueuePrivilege *privilege = find_queue_privilege(privilege_name);
	QueueDesc  *desc = queue_catalog_find(queue, false);
	QueueAdminScope scope;
	const char *role;

	(void) find_grantee(grantee, &role);
	queue_admin_begin(&scope, find_grantor(desc, privilege));
	queue_admin_run("GRANT %s ON %s TO %s%s", privilege->grants,
					queue_name_qualified(queue), role,
					grant_option ? " WITH GRANT OPTION" : "");
	queue_admin_end(&scope);
}

/*
 * REVOKE SELECT takes SELECT (msgid) along, which belongs to enqueue: give it
 * back to whoever still may enqueue.
 */
void
queue_admin_revoke_queue(const char *privilege_name, Oid queue,
						 const char *grantee)
{
	const QueuePrivilege *privilege = find_queue_privilege(privilege_name);
	QueueDesc  *desc = queue_catalog_find(queue, false);
	QueueAdminScope scope;
	const char *role;
	Oid			oid = find_grantee(grantee, &role);

	queue_admin_begin(&scope, find_grantor(desc, privilege));
	queue_admin_run("REVOKE %s ON %s FROM %s CASCADE", privilege->grants,
					queue_name_qualified(queue), role);
	if (privilege->mode == ACL_SELECT && oid != desc->owner &&
		pg_class_aclcheck(queue, OidIsValid(oid) ? oid : ACL_ID_PUBLIC,
						  ACL_INSERT) == ACLCHECK_OK)
		queue_admin_run("GRANT SELECT (msgid) ON %s TO %s",
						queue_name_qualified(queue), role);
	queue_admin_end(&scope);
}

/* -------------------------------------------------------------------------
 * System privileges
 * -------------------------------------------------------------------------
 */

static void
check_may_grant(const char *privilege)
{
	if (queue_acl_has_system_privilege(GetUserId(), privilege, true))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to grant or revoke system privilege %s",
					privilege),
			 errhint("Superusers may, and whoever holds it with admin option.")));
}

/* Rows of roles that are gone go at the next occasion. */
static void
forget_dropped_roles(void)
{
	(void) queue_admin_run_catalog("DELETE FROM queue.system_privilege p"
								   " WHERE p.grantee::oid <> 0"
								   " AND NOT EXISTS (SELECT 1"
								   " FROM pg_catalog.pg_roles r"
								   " WHERE r.oid = p.grantee::oid)",
								   0, NULL, NULL, NULL);
}

void
queue_admin_grant_system(const char *privilege_name, const char *grantee,
						 bool admin_option)
{
	const char *privilege = find_system_privilege(privilege_name);
	Oid			types[] = {OIDOID, TEXTOID, BOOLOID, OIDOID};
	Datum		values[4];
	const char *role;
	QueueAdminScope scope;

	check_may_grant(privilege);
	values[0] = ObjectIdGetDatum(find_grantee(grantee, &role));
	values[1] = CStringGetTextDatum(privilege);
	values[2] = BoolGetDatum(admin_option);
	values[3] = ObjectIdGetDatum(GetUserId());
	queue_admin_begin(&scope, GetUserId());
	forget_dropped_roles();
	(void) queue_admin_run_catalog("INSERT INTO queue.system_privilege AS p"
								   " (grantee, privilege, admin_option, grantor)"
								   " VALUES ($1::regrole, $2, $3, $4::regrole)"
								   " ON CONFLICT (grantee, privilege) DO UPDATE"
								   " SET admin_option = p.admin_option"
								   " OR excluded.admin_option",
								   4, types, values, NULL);
	queue_admin_end(&scope);
}

void
queue_admin_revoke_system(const char *privilege_name, const char *grantee)
{
	const char *privilege = find_system_privilege(privilege_name);
	Oid			types[] = {OIDOID, TEXTOID};
	Datum		values[2];
	const char *role;
	QueueAdminScope scope;

	check_may_grant(privilege);
	values[0] = ObjectIdGetDatum(find_grantee(grantee, &role));
	values[1] = CStringGetTextDatum(privilege);
	queue_admin_begin(&scope, GetUserId());
	forget_dropped_roles();
	(void) queue_admin_run_catalog("DELETE FROM queue.system_privilege"
								   " WHERE grantee = $1 AND privilege = $2",
								   2, types, values, NULL);
	queue_admin_end(&scope);
}
