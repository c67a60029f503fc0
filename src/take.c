/*-------------------------------------------------------------------------
 *
 * take.c
 *	  Take one row of a queue: lock or delete it, and find where it goes.
 *
 * What a dequeue, the monitor and other movers do alike.  What follows from the
 * delete is the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/varlena.h"

#include "debug_point.h"
#include "errors.h"
#include "name.h"
#include "take.h"

Oid
queue_take_find_named(const char *name)
{
	List	   *parts;
	Oid			schema;

	if (!SplitIdentifierString(pstrdup(name), '.', &parts) ||
		list_length(parts) != 2)
		return InvalidOid;
	schema = get_namespace_oid(linitial(parts), true);
	return OidIsValid(schema) ?
		get_relname_relid(lsecond(parts), schema) : InvalidOid;
}

QueueDesc *
queue_take_exception_queue(const QueueDesc *queue, const QueueMessage *message)
{
	const QueueTable *table = queue->table;
	QueueDesc  *found = NULL;
	Oid			oid;

	if (!message->nulls[QUEUE_COL_EXCEPTION_QUEUE])
	{
		char	   *name = TextDatumGetCString(message->values[QUEUE_COL_EXCEPTION_QUEUE]);

		oid = queue_take_find_named(name);
		if (OidIsValid(oid))
			found = queue_catalog_find(oid, true);
		if (found != NULL && found->is_exception &&
			found->table->payload_type == table->payload_type &&
			found->table->payload_typmod == table->payload_typmod)
			return found;
		ereport(LOG,
				(errmsg("exception queue %s of a message in queue \"%s\" cannot be used, the default one is",
						name, queue_catalog_name(queue->relid))));
	}
	oid = queue_catalog_exception_queue(table->relid);
	found = OidIsValid(oid) ? queue_catalog_find(oid, true) : NULL;
	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("queue table \"%s\" has lost its exception queue",
						queue_catalog_name(table->relid)),
				 errhint("Make it again with queue.adopt().")));
	return found;
}

/* Make a row of our own, stored by this command, deletable. */
static void
advance_command(QueueTrackLook *track)
{
	HeapTupleHeader tuple = ((BufferHeapTupleTableSlot *) track->slot)->base.tuple->t_data;

	if (track->candidate.own &&
		HeapTupleHeaderGetRawCommandId(tuple) >= GetCurrentCommandId(false))
		CommandCounterIncrement();
}

TM_Result
queue_take_lock(QueueTrackLook *track)
{
	TupleTableSlot *slot = table_slot_create(track->store.rel, NULL);
	TM_FailureData failure;
	TM_Result	result;

	advance_command(track);
	result = table_tuple_lock(track->store.rel, &track->slot->tts_tid,
							  GetActiveSnapshot(), slot,
							  GetCurrentCommandId(true), LockTupleExclusive,
							  LockWaitSkip, 0, &failure);
	ExecDropSingleTupleTableSlot(slot);
	return result;
}

/* Rule D6.  TM_Ok: it is ours. */
static TM_Result
delete_row(QueueTrackLook *track)
{
	TM_FailureData failure;

	return table_tuple_delete(track->store.rel, &track->slot->tts_tid,
							  GetCurrentCommandId(true), GetActiveSnapshot(),
							  InvalidSnapshot,
							  queue_look_row_lock(track->slot) ==
							  QUEUE_ROW_LOCKED_BY_US,
							  &failure, false);
}

/*
 * Delete through the executor, as the owner of the queue table: the leaf has
 * triggers or policies of somebody else.  The row is locked first, so that
 * nothing is waited for.
 */
static TM_Result
delete_by_executor(const QueueDesc *queue, QueueTrackLook *track)
{
	TM_Result	result = queue_take_lock(track);
	Oid			types[1] = {TIDOID};
	Datum		values[1];
	char	   *sql;
	Oid			save_user;
	int			save_context;

	if (result != TM_Ok)
		return result;
	values[0] = PointerGetDatum(&track->slot->tts_tid);
	sql = psprintf("DELETE FROM ONLY %s WHERE ctid OPERATOR(pg_catalog.=) $1",
				   queue_name_qualified(RelationGetRelid(track->store.rel)));
	GetUserIdAndSecContext(&save_user, &save_context);
	SetUserIdAndSecContext(queue->table->owner,
						   save_context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	if (SPI_execute_with_args(sql, 1, types, values, NULL, false,
							  0) != SPI_OK_DELETE || SPI_processed != 1)
		ereport(ERROR,
				(errcode(IsolationUsesXactSnapshot() ?
						 ERRCODE_T_R_SERIALIZATION_FAILURE :
						 ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("could not delete a message of queue \"%s\"",
						queue_catalog_name(queue->relid)),
				 errdetail("Partition \"%s\" has triggers or policies of its own, or the message is newer than this transaction's snapshot.",
						   RelationGetRelationName(track->store.rel))));
	SPI_finish();
	SetUserIdAndSecContext(save_user, save_context);
	pfree(sql);
	return TM_Ok;
}

TM_Result
queue_take_delete(const QueueDesc *queue, QueueTrackLook *track)
{
	advance_command(track);
	return track->store.leaf->direct ? delete_row(track) :
		delete_by_executor(queue, track);
}

TM_Result
queue_take_row(QueueLook *look, QueueTrackLook *track)
{
	QueueCandidate *candidate = &track->candidate;
	TM_Result	result;

	track->changed = true;
	(void) queue_xact_touch(look->local, QUEUE_TOUCH_TAKEN, candidate->lane,
							track->store.track, &candidate->key);
	DEBUG_POINT("before_take");
	result = queue_take_delete(look->queue, track);
	if (result != TM_Ok)
	{
		queue_xact_untouch(look->local);
		return result;
	}
	queue_xact_confirm(look->local, candidate->lane, track->store.track,
					   &candidate->key);
	if (candidate->own)
		queue_xact_mark_own_taken(look->local, candidate->lane,
								  track->store.track, &candidate->key);
	return TM_Ok;
}
