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
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/rel.h"
#include "utils/uuid.h"

#include "catalog.h"
#include "guc.h"
#include "head.h"
#include "launcher.h"
#include "message_store.h"
#include "rotation.h"
#include "shmem.h"
#include "utility.h"
#include "wakeup.h"
#include "worker.h"
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
	queue_wakeup_init();
	queue_xact_init();
	queue_message_store_init();
	queue_rotation_init();
	queue_worker_init();
	queue_utility_init();
	queue_launcher_init();
}

/* Called when the extension is created: its database becomes known. */
Datum
queue_internal_require_preload(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	queue_worker_note_use(true);
	PG_RETURN_VOID();
}

/*
 * Rule T1: AFTER INSERT OR UPDATE, and BEFORE UPDATE OR DELETE, on the ordered
 * leaves, enabled always.  What goes through the access methods does not fire
 * them; they are for COPY, replication and plain SQL.  A delete is noted before
 * it is made, because a rollback brings the row back.
 */
Datum
queue_internal_message_published(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Oid			table_oid;
	QueueTable *table;
	QueueState	state;
	int			segment;
	bool		before;
	HeapTuple	result = NULL;
	QueueMessage message;

	queue_require_preload();
	if (!CALLED_AS_TRIGGER(fcinfo) ||
		TRIGGER_FIRED_INSTEAD(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called as a row trigger of a table",
						"queue._message_published")));

	before = TRIGGER_FIRED_BEFORE(trigger->tg_event);
	if (before)
		result = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
			trigger->tg_newtuple : trigger->tg_trigtuple;

	table_oid = queue_catalog_table_of_leaf(RelationGetRelid(trigger->tg_relation));
	table = OidIsValid(table_oid) ?
		queue_catalog_find_table(table_oid, true) : NULL;
	if (table == NULL ||
		!queue_catalog_classify_leaf(table,
									 RelationGetRelid(trigger->tg_relation),
									 &state, &segment))
		return PointerGetDatum(result);

	queue_message_from_slot(&message, table,
							!before && TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
							trigger->tg_newslot : trigger->tg_trigslot);
	queue_message_note(table, state, segment, &message, before);
	return PointerGetDatum(result);
}

#ifdef QUEUE_DEBUG
PG_FUNCTION_INFO_V1(queue_internal_debug_rotate);

/* For tests: one step of rotation; what it did, segment by segment. */
Datum
queue_internal_debug_rotate(PG_FUNCTION_ARGS)
{
	QueueRotationStep step;
	StringInfoData out;

	queue_require_preload();
	initStringInfo(&out);
	queue_rotation_step(PG_GETARG_OID(0), PG_GETARG_BOOL(1), &step, &out);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}

static void
append_key(StringInfo out, const char *name, const QueueKey *key)
{
	Datum		msgid = DirectFunctionCall1(uuid_out,
											UUIDPGetDatum(&key->msgid));

	appendStringInfo(out, "%s " INT64_FORMAT "/%d/%s", name, key->major,
					 key->minor, DatumGetCString(msgid));
}

PG_FUNCTION_INFO_V1(queue_internal_debug_head);

/* For tests: what the head of (queue table, queue id) holds, as text. */
Datum
queue_internal_debug_head(PG_FUNCTION_ARGS)
{
	QueueHeadRef ref;
	QueueHead  *head;
	QueueHead  *copy;
	StringInfoData out;
	Size		size = offsetof(QueueHead, registered);

	memset(&ref, 0, sizeof(ref));
	ref.id.database = MyDatabaseId;
	ref.id.queue_table = PG_GETARG_OID(0);
	ref.id.queue_id = PG_GETARG_INT32(1);
	ref.slot = -1;
	if (!queue_head_find(&ref, false) ||
		(head = queue_head_lock(&ref)) == NULL)
		PG_RETURN_NULL();
	copy = palloc(size);
	queue_head_unlock(head);
	head = queue_head_lock(&ref);
	memcpy(copy, head, size);
	queue_head_unlock(head);

	initStringInfo(&out);
	appendStringInfo(&out, "lanes_known %d overflow %d registered %d\n",
					 copy->lanes_known, copy->lanes_overflow,
					 copy->num_registered);
	for (int i = 0; i < copy->num_lanes; i++)
	{
		for (int t = 0; t < QUEUE_TRACKS; t++)
		{
			QueueTrack *track = &copy->lanes[i].tracks[t];

			appendStringInfo(&out, "lane %d track %d state %d generation %u",
							 copy->lanes[i].priority, t,
							 copy->track_states[t], track->generation);
			append_key(&out, " floor", &track->floor);
			append_key(&out, " barrier", &track->barrier);
			appendStringInfoChar(&out, '\n');
		}
	}
	for (int i = 0; i < copy->num_returned + copy->num_sticky; i++)
	{
		bool		sticky = i >= copy->num_returned;
		QueueHeadKey *key = sticky ? &copy->sticky[i - copy->num_returned] :
		&copy->returned[i];

		appendStringInfo(&out, "%s lane %d track %d xid %u",
						 sticky ? "sticky" : "returned", key->lane,
						 key->track, key->xid);
		append_key(&out, "", &key->key);
		appendStringInfoChar(&out, '\n');
	}
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}
#endif
