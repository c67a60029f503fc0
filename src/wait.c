/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Wait until a queue has a message, without taking it.
 *
 * The session becomes a waiter of each queue, looks at each, and sleeps.  A
 * look here takes nothing and needs no transaction id; between looks no
 * snapshot is held where PostgreSQL can do without, and no lock.
 *
 * Whoever is woken here counts as one who takes a message, though it is the
 * client that will: the wake-up is promised to its next dequeue from that
 * queue, and handed on if the session waits again or ends instead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "clock.h"
#include "dequeue.h"
#include "look.h"
#include "message_store.h"
#include "wait.h"
#include "wakeup.h"

/*
 * Let go of the snapshot that the statement's portal holds, as COMMIT in a
 * procedure does.  Kept where it is needed: in REPEATABLE READ, and where a
 * function or a query is what calls.
 */
static bool
drop_portal_snapshot(void)
{
	if (IsolationUsesXactSnapshot() || ActivePortal == NULL ||
		ActivePortal->portalSnapshot == NULL || !ActiveSnapshotSet() ||
		ActivePortal->portalSnapshot != GetActiveSnapshot())
		return false;
	PopActiveSnapshot();
	ActivePortal->portalSnapshot = NULL;
	InvalidateCatalogSnapshot();
	return true;
}

/* Find the queue and its identity, and check that one may dequeue from it. */
static QueueDesc *
find_queue(Oid queue_oid, QueueHeadId *id)
{
	QueueDesc  *queue = queue_dequeue_find(queue_oid, false);

	*id = queue_message_head_of_queue(queue)->ref.id;
	return queue;
}

/* Has the queue a message?  Else *next is when one may become due. */
static bool
probe(Oid queue_oid, TimestampTz *next)
{
	QueueLook	look;
	QueueHeadId id;
	bool		found;

	queue_look_init(&look);
	look.queue = find_queue(queue_oid, &id);
	look.local = queue_message_head_of_queue(look.queue);
	look.changes = true;
	look.conditional = true;
	look.waits = true;
	found = queue_look_probe(&look);
	UnlockRelationOid(queue_oid, RowExclusiveLock);
	*next = Min(*next, look.next_due);
	return found;
}

/* The first queue that has a message, or -1. */
static int
probe_all(const Oid *queues, int count, TimestampTz *next,
		  MemoryContext memory)
{
	MemoryContext old = MemoryContextSwitchTo(memory);
	int			found = -1;

	PushActiveSnapshot(GetTransactionSnapshot());
	for (int i = 0; i < count && found < 0; i++)
	{
		if (probe(queues[i], next))
			found = i;
	}
	PopActiveSnapshot();
	InvalidateCatalogSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextReset(memory);
	return found;
}

/* Who the queues are: the catalog is looked at with a snapshot. */
static void
identify(const Oid *queues, int count, QueueHeadId *ids)
{
	PushActiveSnapshot(GetTransactionSnapshot());
	for (int i = 0; i < count; i++)
	{
		(void) find_queue(queues[i], &ids[i]);
		UnlockRelationOid(queues[i], RowExclusiveLock);
	}
	PopActiveSnapshot();
	InvalidateCatalogSnapshot();
}

int
queue_wait(const Oid *queues, int count, TimestampTz deadline,
		   bool drop_snapshot)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "queue wait",
												 ALLOCSET_DEFAULT_SIZES);
	QueueHeadId *ids = palloc(count * sizeof(QueueHeadId));
	bool		dropped = drop_snapshot && drop_portal_snapshot();
	bool		late = false;
	int			found;

	for (;;)
	{
		TimestampTz next = DT_NOEND;

		identify(queues, count, ids);
		queue_wakeup_register(ids, queues, count, false);
		found = probe_all(queues, count, &next, memory);
		if (found >= 0 || late)
			break;
		queue_wakeup_looked();
		(void) queue_wakeup_sleep(Min(deadline, next));
		late = queue_clock_now() >= deadline;
	}
	if (found >= 0)
		queue_wakeup_promise();
	queue_wakeup_leave(false);
	if (dropped)
		EnsurePortalSnapshotExists();
	MemoryContextDelete(memory);
	return found;
}
