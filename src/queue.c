/*-------------------------------------------------------------------------
 *
 * queue.c
 *	  Module start, and the trigger that tells heads of other people's work.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "catalog.h"
#include "guc.h"
#include "message_store.h"
#include "shmem.h"
#include "xact.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(queue_internal_require_preload);
PG_FUNCTION_INFO_V1(queue_internal_message_published);

void
_PG_init(void)
{
	/*
	 * Without shared memory nothing works: each function says so, and which
	 * line to add (queue_require_preload).
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	queue_guc_init();
	queue_shmem_init();

	/* callbacks run last-registered first: the cache's memory goes last */
	queue_catalog_init();
	queue_xact_init();
	queue_message_store_init();
}

Datum
queue_internal_require_preload(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	PG_RETURN_VOID();
}

/*
 * Rule T1: AFTER INSERT OR UPDATE on the ordered leaves, enabled always.
 * What the access methods store does not fire it; this is for COPY,
 * replication and plain SQL.
 */
Datum
queue_internal_message_published(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Oid			table_oid;
	QueueTable *table;
	QueueState	state;
	int			segment;
	TupleTableSlot *slot;
	QueueMessage message;

	queue_require_preload();
	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_AFTER(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called as an AFTER ROW trigger",
						"queue._message_published")));

	table_oid = queue_catalog_table_of_leaf(RelationGetRelid(trigger->tg_relation));
	table = OidIsValid(table_oid) ?
		queue_catalog_find_table(table_oid, true) : NULL;
	if (table == NULL ||
		!queue_catalog_classify_leaf(table,
									 RelationGetRelid(trigger->tg_relation),
									 &state, &segment))
		PG_RETURN_POINTER(NULL);

	slot = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newslot : trigger->tg_trigslot;
	queue_message_from_slot(&message, table, slot);
	queue_message_note_insert(table, state, segment, &message);

	PG_RETURN_POINTER(NULL);
}
