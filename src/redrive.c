/*-------------------------------------------------------------------------
 *
 * redrive.c
 *	  Send messages back from an exception queue.
 *
 * The messages are looked at as a dequeue does, and moved as the monitor
 * does: noted, deleted, stored, in the caller's transaction.  They keep their
 * ids, and with them their place; what counts against them begins anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "acl.h"
#include "catalog.h"
#include "clock.h"
#include "condition.h"
#include "enqueue.h"
#include "errors.h"
#include "look.h"
#include "redrive.h"
#include "take.h"

/* One call. */
typedef struct Redrive
{
	QueueDesc  *from;
	QueueDesc  *to;				/* NULL: each to where it came from */
	QueueCondition *condition;
	int64		moved;
	QueueLook	look;
} Redrive;

static bool
is_wanted(void *context, const QueueCandidate *candidate)
{
	Redrive    *redrive = (Redrive *) context;

	return redrive->condition == NULL ||
		queue_condition_matches(redrive->condition, redrive->from->table,
								&candidate->message);
}

/* A queue that messages may be sent to by this user, locked. */
static QueueDesc *
open_destination(const QueueDesc *from, Oid oid)
{
	QueueDesc  *to = queue_enqueue_begin(oid, true);

	if (to->table->payload_type != from->table->payload_type ||
		to->table->payload_typmod != from->table->payload_typmod)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_PAYLOAD_MISMATCH),
				 errmsg("queue \"%s\" has another payload type than exception queue \"%s\"",
						queue_catalog_name(oid),
						queue_catalog_name(from->relid)),
				 errhint("Name a queue with the same payload type.")));
	return to;
}

/* Where the message came from; NULL: that is gone. */
static QueueDesc *
find_origin(Redrive *redrive, const QueueMessage *message)
{
	Oid			oid = InvalidOid;

	if (!message->nulls[QUEUE_COL_ORIGINAL_QUEUE_ID])
		oid = queue_catalog_queue_by_id(redrive->from->queue_table,
										DatumGetInt32(message->values[QUEUE_COL_ORIGINAL_QUEUE_ID]));
	else if (!message->nulls[QUEUE_COL_SOURCE])
		oid = queue_take_find_named(TextDatumGetCString(message->values[QUEUE_COL_SOURCE]));
	if (!OidIsValid(oid) || queue_catalog_find(oid, true) == NULL)
		return NULL;
	return open_destination(redrive->from, oid);
}

/* What counted against the message begins anew. */
static void
reset_message(const QueueDesc *to, QueueMessage *message)
{
	static const QueueColumn cleared[] = {
		QUEUE_COL_DUE_AT, QUEUE_COL_EXPIRES_AT, QUEUE_COL_EXPIRATION_REASON,
		QUEUE_COL_ORIGINAL_QUEUE_ID, QUEUE_COL_SOURCE
	};

	for (int i = 0; i < lengthof(cleared); i++)
		message->nulls[cleared[i]] = true;
	message->values[QUEUE_COL_QUEUE_ID] = Int32GetDatum(to->id);
	message->values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(0);
	if (!message->nulls[QUEUE_COL_EXPIRATION])
	{
		message->values[QUEUE_COL_EXPIRES_AT] =
			DirectFunctionCall2(timestamptz_pl_interval,
								TimestampTzGetDatum(queue_clock_now()),
								message->values[QUEUE_COL_EXPIRATION]);
		message->nulls[QUEUE_COL_EXPIRES_AT] = false;
	}
	message->nulls[QUEUE_COL_ORDER_AT] =
		!QUEUE_SORT_HAS_ORDER_AT(to->table->sort);
	if (!message->nulls[QUEUE_COL_ORDER_AT])
		message->values[QUEUE_COL_ORDER_AT] =
			Int64GetDatum(queue_clock_tick());
}

static TM_Result
send_back(Redrive *redrive, QueueTrackLook *track)
{
	QueueMessage copy = track->candidate.message;
	QueueDesc  *to = redrive->to;
	TM_Result	result;

	if (to == NULL)
		to = find_origin(redrive, &copy);
	if (to == NULL)
		return TM_WouldBlock;
	result = queue_take_row(&redrive->look, track);
	if (result != TM_Ok)
		return result;
	reset_message(to, &copy);
	queue_message_relocate(to->table, &copy, 0);
	redrive->moved++;
	return TM_Ok;
}

static void
redrive_queue(Redrive *redrive, int64 max_messages)
{
	QueueLook  *look = &redrive->look;
	QueueTrackLook *track;
	QueueHeadKey hand;

	/* conditional: keys that have come back are found by the scan */
	look->conditional = true;
	look->wanted = is_wanted;
	look->context = redrive;
	while (redrive->moved < max_messages &&
		   queue_look_next(look, &track, &hand) == QUEUE_ACCEPT_CANDIDATE)
	{
		switch (send_back(redrive, track))
		{
			case TM_Ok:
				queue_look_taken(track);
				break;
			case TM_WouldBlock:
				queue_look_stop(track);
				break;
			default:
				queue_look_retry(look, track);
				break;
		}
	}
	queue_look_end(look);
}

int64
queue_redrive_messages(Oid exception_queue, Oid destination,
					   const char *condition, int64 max_messages)
{
	Redrive		redrive;

	PreventCommandIfReadOnly("redrive()");
	PreventCommandDuringRecovery("redrive()");
	memset(&redrive, 0, offsetof(Redrive, look));
	LockRelationOid(exception_queue, RowExclusiveLock);
	redrive.from = queue_catalog_find(exception_queue, false);
	queue_acl_check_dequeue(redrive.from);
	if (!redrive.from->is_exception)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue \"%s\" is not an exception queue",
						queue_catalog_name(exception_queue)),
				 errhint("Name a queue made with queue_type => 'exception', or that of a queue table.")));
	if (OidIsValid(destination))
		redrive.to = open_destination(redrive.from, destination);
	if (condition != NULL)
		redrive.condition = queue_condition_prepare(redrive.from, condition);
	PushActiveSnapshot(GetTransactionSnapshot());
	queue_look_init(&redrive.look);
	redrive.look.queue = redrive.from;
	redrive.look.changes = true;
	redrive.look.local = queue_message_head_of_queue(redrive.from);
	redrive_queue(&redrive, max_messages);
	PopActiveSnapshot();
	return redrive.moved;
}
