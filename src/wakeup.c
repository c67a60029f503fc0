/*-------------------------------------------------------------------------
 *
 * wakeup.c
 *	  Sessions that wait for messages, and how they are woken.
 *
 * A waiter first enters the list of its queue, then looks at the queue, then
 * sleeps on its latch.  Whoever makes messages available publishes them and
 * then wakes as many waiters as there are messages: it takes them off the list
 * and sets their flag, then their latch.  So either the waiter's look sees the
 * message or the publisher sees the waiter.  The flag is what counts: other
 * code in the process may reset the latch.
 *
 * A waiter that was woken and leaves without a message, however it leaves,
 * wakes the next one.
 *
 * The lists are hashed by queue, with one lock for each bucket; whoever
 * publishes reads a counter first, so that it costs nothing where nobody waits.
 *
 * Locking: a bucket's lock is taken after no other and before no other, but
 * for the latch of whoever is woken.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "debug_point.h"
#include "shmem.h"
#include "wakeup.h"

#define NUM_BUCKETS		256		/* a power of two */

/* a latch is waited for no longer than this at a time */
#define MAX_SLEEP_MS	(3600 * 1000)

#define NOBODY			(-1)

/* One session in the list of one queue. */
typedef struct WaitEntry
{
	QueueHeadId id;
	Oid			view;
	bool		listed;
	bool		conditional;
	int			next;
	int			previous;
	TimestampTz since;
} WaitEntry;

typedef struct WaitBucket
{
	LWLock		lock;

	/* atomic: written under the lock, read without it */
	pg_atomic_uint32 count;

	/* protected by lock: in the order in which they came */
	int			first;
	int			last;
} WaitBucket;

/* One backend; its entries are protected by their buckets' locks. */
typedef struct WaitBackend
{
	/* atomic: which of its entries was taken off, and one more; 0: none */
	pg_atomic_uint32 woken;
	int			pid;			/* written by its owner */
	int			procno;
} WaitBackend;

typedef struct WaitState
{
	int			max_backends;

	/*
	 * atomic, any backend: a transaction that changed or dropped queues has
	 * been prepared since the server started.  What it was is not kept, so
	 * from then on the end of any prepared one wakes all waiters of its
	 * database.
	 */
	pg_atomic_uint32 prepared_changes;

	WaitBucket	buckets[NUM_BUCKETS];
} WaitState;

/* Relations whose waiters are to be woken at commit. */
typedef struct PendingWake
{
	Oid			relation;		/* InvalidOid: all of the database's */
	SubTransactionId subid;
	struct PendingWake *next;
} PendingWake;

static WaitState *state = NULL;
static WaitBackend *backends = NULL;
static WaitEntry *entries = NULL;

/* how many entries this backend has made; they may be off the lists */
static int	num_registered = 0;

/*
 * A wake-up that this session has taken and not used so far: it is looking
 * (owed), or it has told its client to look (promised).
 */
static bool owed = false;
static bool promised = false;
static QueueHeadId owed_id;
static QueueHeadId promised_id;

static PendingWake *pending = NULL;
static bool pending_prepared = false;

static void xact_callback(XactEvent event, void *arg);
static void subxact_callback(SubXactEvent event, SubTransactionId my_subid,
							 SubTransactionId parent_subid, void *arg);

/* ---------- memory ---------- */

static Size
size_of_entries(int max_backends)
{
	return mul_size(max_backends,
					mul_size(QUEUE_MAX_LISTENED, sizeof(WaitEntry)));
}

Size
queue_wakeup_shmem_size(int max_backends)
{
	Size		size = MAXALIGN(sizeof(WaitState));

	size = add_size(size, MAXALIGN(mul_size(max_backends,
											sizeof(WaitBackend))));
	return add_size(size, size_of_entries(max_backends));
}

void
queue_wakeup_shmem_init(int max_backends, int tranche)
{
	bool		found;
	char	   *memory;

	memory = ShmemInitStruct("queue waiters",
							 queue_wakeup_shmem_size(max_backends), &found);
	state = (WaitState *) memory;
	memory += MAXALIGN(sizeof(WaitState));
	backends = (WaitBackend *) memory;
	memory += MAXALIGN(max_backends * sizeof(WaitBackend));
	entries = (WaitEntry *) memory;
	if (found)
		return;

	state->max_backends = max_backends;
	pg_atomic_init_u32(&state->prepared_changes, 0);
	memset(entries, 0, size_of_entries(max_backends));
	for (int i = 0; i < max_backends; i++)
		pg_atomic_init_u32(&backends[i].woken, 0);
	for (int i = 0; i < NUM_BUCKETS; i++)
	{
		LWLockInitialize(&state->buckets[i].lock, tranche);
		pg_atomic_init_u32(&state->buckets[i].count, 0);
		state->buckets[i].first = state->buckets[i].last = NOBODY;
	}
}

void
queue_wakeup_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}

static inline WaitBucket *
bucket_of(const QueueHeadId *id)
{
	uint32		hash = hash_bytes((const unsigned char *) id, sizeof(*id));

	return &state->buckets[hash & (NUM_BUCKETS - 1)];
}

static inline bool
same_queue(const QueueHeadId *a, const QueueHeadId *b)
{
	return memcmp(a, b, sizeof(QueueHeadId)) == 0;
}

static inline int
my_backend(void)
{
	return queue_my_backend_index();
}

/* ---------- lists; the caller holds the bucket's lock ---------- */

static void
append_entry(WaitBucket *bucket, int number)
{
	WaitEntry  *entry = &entries[number];

	entry->listed = true;
	entry->next = NOBODY;
	entry->previous = bucket->last;
	if (bucket->last == NOBODY)
		bucket->first = number;
	else
		entries[bucket->last].next = number;
	bucket->last = number;
	pg_atomic_write_u32(&bucket->count,
						pg_atomic_read_u32(&bucket->count) + 1);
}

static void
remove_entry(WaitBucket *bucket, int number)
{
	WaitEntry  *entry = &entries[number];

	if (entry->previous == NOBODY)
		bucket->first = entry->next;
	else
		entries[entry->previous].next = entry->next;
	if (entry->next == NOBODY)
		bucket->last = entry->previous;
	else
		entries[entry->next].previous = entry->previous;
	entry->listed = false;
	pg_atomic_write_u32(&bucket->count,
						pg_atomic_read_u32(&bucket->count) - 1);
}

/*
 * Take a waiter off and wake it.  Its other entries stay in their lists until
 * it sees its flag; a second wake-up by one of those goes to the next waiter.
 */
static bool
wake_entry(WaitBucket *bucket, int number)
{
	WaitBackend *backend = &backends[number / QUEUE_MAX_LISTENED];
	uint32		none = 0;
	bool		first;

	remove_entry(bucket, number);
	first = pg_atomic_compare_exchange_u32(&backend->woken, &none,
										   number % QUEUE_MAX_LISTENED + 1);
	SetLatch(&ProcGlobal->allProcs[backend->procno].procLatch);
	return first;
}

/* ---------- waiters ---------- */

TimestampTz
queue_wakeup_deadline(bool forever, const Interval *timeout)
{
	if (forever)
		return DT_NOEND;
	return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												   TimestampTzGetDatum(queue_clock_now()),
												   IntervalPGetDatum(timeout)));
}

void
queue_wakeup_register(const QueueHeadId *ids, const Oid *views, int count,
					  bool conditional)
{
	int			me = my_backend();
	TimestampTz now = GetCurrentTimestamp();

	Assert(num_registered == 0 && count <= QUEUE_MAX_LISTENED);
	pg_atomic_write_u32(&backends[me].woken, 0);
	backends[me].pid = MyProcPid;
	backends[me].procno = queue_my_proc_number();
	for (int i = 0; i < count; i++)
	{
		WaitEntry  *entry = &entries[me * QUEUE_MAX_LISTENED + i];
		WaitBucket *bucket = bucket_of(&ids[i]);

		LWLockAcquire(&bucket->lock, LW_EXCLUSIVE);
		entry->id = ids[i];
		entry->view = views[i];
		entry->conditional = conditional;
		entry->since = now;
		append_entry(bucket, me * QUEUE_MAX_LISTENED + i);
		num_registered = i + 1;
		LWLockRelease(&bucket->lock);
	}
	/* the counters are seen before this session looks */
	pg_memory_barrier();
}

static void
unregister(void)
{
	int			me = my_backend();

	for (int i = 0; i < num_registered; i++)
	{
		int			number = me * QUEUE_MAX_LISTENED + i;
		WaitBucket *bucket = bucket_of(&entries[number].id);

		LWLockAcquire(&bucket->lock, LW_EXCLUSIVE);
		if (entries[number].listed)
			remove_entry(bucket, number);
		LWLockRelease(&bucket->lock);
	}
	num_registered = 0;
}

/* Off all lists.  True: it had been woken, for this queue. */
static bool
take_wakeup(QueueHeadId *id)
{
	uint32		woken;

	unregister();
	woken = pg_atomic_exchange_u32(&backends[my_backend()].woken, 0);
	if (woken == 0)
		return false;
	*id = entries[my_backend() * QUEUE_MAX_LISTENED + woken - 1].id;
	return true;
}

bool
queue_wakeup_sleep(TimestampTz until)
{
	WaitBackend *me = &backends[my_backend()];

	for (;;)
	{
		long		timeout = MAX_SLEEP_MS;

		CHECK_FOR_INTERRUPTS();
		if (pg_atomic_read_u32(&me->woken) != 0)
			break;
		if (until != DT_NOEND)
		{
			timeout = TimestampDifferenceMilliseconds(queue_clock_now(),
													  until);
			if (timeout <= 0)
				break;
			timeout = Min(timeout, MAX_SLEEP_MS);
		}
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 timeout, queue_wait_event());
		ResetLatch(MyLatch);
	}
	DEBUG_POINT("woken");
	owed = take_wakeup(&owed_id);
	return owed;
}

void
queue_wakeup_looked(void)
{
	owed = false;
}

static void
break_promise(int code, Datum arg)
{
	if (promised)
	{
		promised = false;
		queue_wakeup_wake(&promised_id, 1);
	}
}

void
queue_wakeup_promise(void)
{
	static bool hooked = false;

	/* one promise at a time: an earlier one is not going to be kept */
	break_promise(0, (Datum) 0);
	if (!owed)
		return;
	if (!hooked)
		on_shmem_exit(break_promise, (Datum) 0);
	hooked = true;
	promised = true;
	promised_id = owed_id;
	owed = false;
}

void
queue_wakeup_keep_promise(const QueueHeadId *id)
{
	if (unlikely(promised) && same_queue(id, &promised_id))
		promised = false;
}

void
queue_wakeup_leave(bool satisfied)
{
	QueueHeadId id;

	if (num_registered > 0 && take_wakeup(&id) && !satisfied)
		queue_wakeup_wake(&id, 1);
	if (owed && !satisfied)
		queue_wakeup_wake(&owed_id, 1);
	owed = false;
}

/* ---------- those who wake ---------- */

void
queue_wakeup_wake(const QueueHeadId *id, int32 count)
{
	WaitBucket *bucket = bucket_of(id);
	int			number;

	pg_memory_barrier();
	if (likely(pg_atomic_read_u32(&bucket->count) == 0))
		return;
	LWLockAcquire(&bucket->lock, LW_EXCLUSIVE);
	for (number = bucket->first; number != NOBODY;)
	{
		WaitEntry  *entry = &entries[number];
		int			next = entry->next;

		if (same_queue(&entry->id, id) && (entry->conditional || count > 0))
		{
			bool		counts = !entry->conditional;

			if (wake_entry(bucket, number) && counts &&
				count != QUEUE_WAKE_ALL)
				count--;
		}
		number = next;
	}
	LWLockRelease(&bucket->lock);
}

static bool
concerns(const WaitEntry *entry, Oid relation)
{
	return entry->id.database == MyDatabaseId &&
		(!OidIsValid(relation) || entry->id.queue_table == relation ||
		 entry->view == relation);
}

static void
wake_relation(Oid relation)
{
	for (int i = 0; i < NUM_BUCKETS; i++)
	{
		WaitBucket *bucket = &state->buckets[i];
		int			number;

		if (pg_atomic_read_u32(&bucket->count) == 0)
			continue;
		LWLockAcquire(&bucket->lock, LW_EXCLUSIVE);
		for (number = bucket->first; number != NOBODY;)
		{
			int			next = entries[number].next;

			if (concerns(&entries[number], relation))
				(void) wake_entry(bucket, number);
			number = next;
		}
		LWLockRelease(&bucket->lock);
	}
}

void
queue_wakeup_at_commit(Oid relation)
{
	PendingWake *wake = MemoryContextAlloc(TopTransactionContext,
										   sizeof(PendingWake));

	wake->relation = relation;
	wake->subid = GetCurrentSubTransactionId();
	wake->next = pending;
	pending = wake;
}

void
queue_wakeup_after_prepared(void)
{
	pending_prepared = true;
}

/* As many as there are sticky keys: which of their owners ended is not known. */
static void
wake_prepared(void)
{
	QueueHeadId id;
	int			slot = 0;
	int			count;

	pending_prepared = false;
	if (pg_atomic_read_u32(&state->prepared_changes) != 0)
	{
		wake_relation(InvalidOid);
		return;
	}
	while (queue_head_next_sticky(&slot, &id, &count))
		queue_wakeup_wake(&id, count);
}

/* The memory of what is pending goes with the transaction. */
static void
xact_callback(XactEvent event, void *arg)
{
	if (pending_prepared &&
		(event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT))
		wake_prepared();
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			for (PendingWake *wake = pending; wake != NULL; wake = wake->next)
				wake_relation(wake->relation);
			pending = NULL;
			break;
		case XACT_EVENT_ABORT:
			queue_wakeup_leave(false);
			pending = NULL;
			break;
		case XACT_EVENT_PREPARE:
			if (pending != NULL)
				pg_atomic_write_u32(&state->prepared_changes, 1);
			pending = NULL;
			break;
		default:
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId my_subid,
				 SubTransactionId parent_subid, void *arg)
{
	PendingWake **link = &pending;

	if (event != SUBXACT_EVENT_ABORT_SUB &&
		event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	if (event == SUBXACT_EVENT_ABORT_SUB)
		queue_wakeup_leave(false);
	while (*link != NULL)
	{
		PendingWake *wake = *link;

		if (wake->subid >= my_subid && event == SUBXACT_EVENT_ABORT_SUB)
		{
			*link = wake->next;
			continue;
		}
		if (wake->subid >= my_subid)
			wake->subid = parent_subid;
		link = &wake->next;
	}
}

/* ---------- for views ---------- */

int
queue_wakeup_num_entries(void)
{
	return state->max_backends * QUEUE_MAX_LISTENED;
}

bool
queue_wakeup_info(int number, QueueWaiterInfo *info)
{
	WaitEntry  *entry = &entries[number];
	QueueHeadId id = entry->id;
	WaitBucket *bucket = bucket_of(&id);
	bool		listed;

	if (!entry->listed)
		return false;
	LWLockAcquire(&bucket->lock, LW_SHARED);
	listed = entry->listed && same_queue(&entry->id, &id);
	info->id = entry->id;
	info->view = entry->view;
	info->conditional = entry->conditional;
	info->since = entry->since;
	info->pid = backends[number / QUEUE_MAX_LISTENED].pid;
	LWLockRelease(&bucket->lock);
	return listed;
}

int
queue_wakeup_count(const QueueHeadId *id)
{
	WaitBucket *bucket = bucket_of(id);
	int			count = 0;

	LWLockAcquire(&bucket->lock, LW_SHARED);
	for (int i = bucket->first; i != NOBODY; i = entries[i].next)
	{
		if (same_queue(&entries[i].id, id))
			count++;
	}
	LWLockRelease(&bucket->lock);
	return count;
}
