/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The only place that knows server versions: 15, 17 and 18 from one
 *	  source.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_COMPAT_H
#define QUEUE_COMPAT_H

#include "access/genam.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/acl.h"

#if PG_VERSION_NUM < 150000
#error "queue needs PostgreSQL 15 or newer"
#endif

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* early minor releases of 15 lack it */
#ifndef palloc_array
#define palloc_array(type, count) ((type *) palloc(sizeof(type) * (count)))
#endif

/* functions that do not return say so in front of their declaration */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* index_beginscan gained an instrumentation argument in 18 */
#if PG_VERSION_NUM >= 180000
#define queue_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define queue_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/* relation ownership */
#if PG_VERSION_NUM >= 160000
#define queue_relation_ownercheck(relid, role) \
	object_ownercheck(RelationRelationId, relid, role)
#define queue_schema_aclcheck(schema, role, mode) \
	object_aclcheck(NamespaceRelationId, schema, role, mode)
#define queue_function_aclcheck(function, role, mode) \
	object_aclcheck(ProcedureRelationId, function, role, mode)
#define queue_relation_filenumber(rel) ((rel)->rd_locator.relNumber)
#define queue_database_ownercheck(database, role) \
	object_ownercheck(DatabaseRelationId, database, role)
#else
#define queue_relation_ownercheck(relid, role) \
	pg_class_ownercheck(relid, role)
#define queue_schema_aclcheck(schema, role, mode) \
	pg_namespace_aclcheck(schema, role, mode)
#define queue_function_aclcheck(function, role, mode) \
	pg_proc_aclcheck(function, role, mode)
#define queue_relation_filenumber(rel) ((rel)->rd_node.relNode)
#define queue_database_ownercheck(database, role) \
	pg_database_ownercheck(database, role)
#endif

/* an index of the caller's process below MaxBackends */
#if PG_VERSION_NUM >= 170000
#define queue_my_backend_index()	(MyProcNumber)
#else
#define queue_my_backend_index()	(MyBackendId - 1)
#endif

/* its number among all processes */
#if PG_VERSION_NUM >= 170000
#define queue_my_proc_number()	(MyProcNumber)
#else
#define queue_my_proc_number()	(MyProc->pgprocno)
#endif

/* what a session that waits for messages is shown to wait for */
#if PG_VERSION_NUM >= 170000
static inline uint32
queue_wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("QueueWait");
	return event;
}
#else
#define queue_wait_event()	PG_WAIT_EXTENSION
#endif

/* materialized results */
#if PG_VERSION_NUM >= 160000
#define queue_init_srf(fcinfo, flags) InitMaterializedSRF(fcinfo, flags)
#else
#define queue_init_srf(fcinfo, flags) SetSingleFuncCall(fcinfo, flags)
#endif

/* truncation of a relation that is open and locked, not logged logically */
#if PG_VERSION_NUM >= 160000
#define queue_truncate(rels, relids) \
	ExecuteTruncateGuts(rels, relids, NIL, DROP_RESTRICT, false, false)
#else
#define queue_truncate(rels, relids) \
	ExecuteTruncateGuts(rels, relids, NIL, DROP_RESTRICT, false)
#endif

/* intervals can be infinite from 17 on */
#if PG_VERSION_NUM >= 170000
#define queue_interval_not_finite(interval) INTERVAL_NOT_FINITE(interval)
#define queue_interval_is_forever(interval) INTERVAL_IS_NOEND(interval)
#else
#define queue_interval_not_finite(interval) (false)
#define queue_interval_is_forever(interval) (false)
#endif

#endif							/* QUEUE_COMPAT_H */
