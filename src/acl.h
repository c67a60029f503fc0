/*-------------------------------------------------------------------------
 *
 * acl.h
 *	  May this role administer, enqueue, dequeue or browse?
 *
 * A queue's privileges are those of its view: INSERT is enqueue, DELETE is
 * dequeue, SELECT is browse.  The system privileges enqueue_any, dequeue_any
 * and manage_any stand in queue.system_privilege.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ACL_H
#define QUEUE_ACL_H

#include "catalog.h"

/* ERROR 42501 unless the current user may. */
extern void queue_acl_check_enqueue(const QueueDesc *queue);
extern void queue_acl_check_dequeue(const QueueDesc *queue);
extern void queue_acl_check_browse(const QueueDesc *queue);

/* Owner of the relation, or manage_any. */
extern void queue_acl_check_manage(Oid relid);
extern bool queue_acl_has_system_privilege(Oid role, const char *privilege,
										   bool with_admin_option);

#endif							/* QUEUE_ACL_H */
