/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  Background workers: the registry of databases and their monitors, and
 *	  the main loop that all workers share.
 *
 * The registry is an array of slots in fixed shared memory: one for the
 * launcher, and one for each database that is known to have the extension,
 * whether its monitor runs or not.  Databases become known by announcement:
 * by the launcher when the server starts, and by a session that has used the
 * extension when its transaction commits.  A monitor that finds no extension
 * in its database gives its slot up.
 *
 * Who starts a worker remembers the slot's generation, which is raised by
 * each start and when the slot changes hands.  So these cases are told apart:
 *
 *	- never started: the server has no worker process to give; the launcher
 *	  sees it at once and puts the slot back to WAITING
 *	- started and gone: the worker itself does that when it leaves
 *	- ended before it attached: the launcher's handle says so, the generation
 *	  is the one it began with, and the state is still STARTING
 *	- the launcher itself was started again and has no handles: it raises the
 *	  generation of what is STARTING; a worker that comes late finds that its
 *	  generation is gone, and leaves
 *	- the slot was used again: the generation differs; nothing is done
 *
 * An announcement can meet a monitor that has just found no extension.  Each
 * is counted in the slot, and a monitor gives up only if none has come since
 * before it looked.  Whenever a slot is given up "forgotten" is raised, and
 * every session announces its database once more when it next uses the
 * extension: so a session that thought its database known need not be told.
 *
 * Latches are not state: waiting for a lock eats the set latch.  What a
 * worker is woken for stands in "woken", which is looked at again before it
 * sleeps.
 *
 * A command that needs a database to itself (DROP DATABASE and others) closes
 * it: an entry in a small table, which belongs to the command's backend until
 * its transaction ends.  Nobody attaches to a closed database.
 *
 * Callbacks at the end of a transaction take the registry's lock, atomics and
 * latches only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "attempts.h"
#include "clock.h"
#include "guc.h"
#include "worker.h"

/* databases that can be closed at the same time; more are not kept out */
#define MAX_CLOSED			16

/* how long a command waits for a monitor to leave */
#define MAX_LEAVE_WAIT_MS	5000

/* a worker that fails is started again after 1 s, 2 s, 4 s, ... 5 min */
#define MIN_BACKOFF_MS		1000
#define MAX_BACKOFF_MS		300000

/* one that has lived for so long begins with the shortest pause again */
#define HEALTHY_AFTER_MS	60000

typedef struct WorkerSlot
{
	/* atomic; changed under the lock, read by any backend without it */
	pg_atomic_uint32 database;	/* InvalidOid: free */
	pg_atomic_uint32 proc;		/* 1 + number of the PGPROC; 0: none */

	/* atomic, any backend: there is something to do */
	pg_atomic_uint32 woken;

	/* protected by lock */
	uint32		announcements;
	QueueWorkerInfo info;
} WorkerSlot;

typedef struct ClosedDatabase
{
	Oid			database;		/* InvalidOid: free */
	int			pid;			/* who has closed it */
	bool		forget;			/* it is being dropped */
} ClosedDatabase;

typedef struct Workers
{
	LWLock		lock;

	/* immutable after start */
	int			num_slots;

	/* atomic, any backend: how often a slot was given up; begins with 1 */
	pg_atomic_uint32 forgotten;

	/* signalled when a worker has left its database */
	ConditionVariable left;

	/* protected by lock */
	bool		overflow;		/* a database found no slot */
	ClosedDatabase closed[MAX_CLOSED];
	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} Workers;

/* How a job fares, in the worker's own memory. */
typedef struct JobState
{
	TimestampTz due;
	QueueWorkerErrors errors;
} JobState;

static Workers *workers = NULL;

/* of a session */
static enum
{
	ENDING_NOT,
	ENDING_COMMITTED,
	ENDING_NOT_COMMITTED
}			ending = ENDING_NOT;
static uint32 noted = 0;		/* value of "forgotten" when announced */
static bool announce_at_commit = false;
static bool announce_again = false;
static bool wake_at_commit = false;
static Oid	announce_other = InvalidOid;
static bool has_closed = false;

/* of a worker */
static WorkerSlot *my_slot = NULL;
static uint32 my_generation;
static bool stops = false;
static bool gives_up = false;
static uint32 seen_announcements;

static void xact_callback(XactEvent event, void *arg);
static void release_callback(ResourceReleasePhase phase, bool is_commit,
							 bool is_top_level, void *arg);

/* -------------------------------------------------------------------------
 * Memory
 * -------------------------------------------------------------------------
 */

Size
queue_worker_shmem_size(int max_monitors)
{
	return add_size(offsetof(Workers, slots),
					mul_size(1 + max_monitors, sizeof(WorkerSlot)));
}

void
queue_worker_shmem_init(int max_monitors, int tranche)
{
	bool		found;
	Size		size = queue_worker_shmem_size(max_monitors);

	workers = ShmemInitStruct("queue workers", size, &found);
	if (found)
		return;

	memset(workers, 0, size);
	LWLockInitialize(&workers->lock, tranche);
	workers->num_slots = 1 + max_monitors;
	pg_atomic_init_u32(&workers->forgotten, 1);
	ConditionVariableInit(&workers->left);
	for (int i = 0; i < workers->num_slots; i++)
	{
		pg_atomic_init_u32(&workers->slots[i].database, InvalidOid);
		pg_atomic_init_u32(&workers->slots[i].proc, 0);
		pg_atomic_init_u32(&workers->slots[i].woken, 0);
	}
}

void
queue_worker_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterResourceReleaseCallback(release_callback, NULL);
}

/* -------------------------------------------------------------------------
 * Slots.  Unless they say otherwise, the caller holds the lock.
 * -------------------------------------------------------------------------
 */

static void
wake_slot(WorkerSlot *slot)
{
	uint32		proc;

	pg_atomic_write_u32(&slot->woken, 1);
	pg_memory_barrier();
	proc = pg_atomic_read_u32(&slot->proc);
	if (proc != 0)
		SetLatch(&GetPGProcByNumber(proc - 1)->procLatch);
}

static WorkerSlot *
find_slot(Oid database)
{
	for (int i = QUEUE_LAUNCHER_SLOT + 1; i < workers->num_slots; i++)
	{
		if (pg_atomic_read_u32(&workers->slots[i].database) == database)
			return &workers->slots[i];
	}
	return NULL;
}

static bool
is_closed(Oid database)
{
	for (int i = 0; i < MAX_CLOSED; i++)
	{
		if (workers->closed[i].database == database)
			return true;
	}
	return false;
}

/*
 * Make a database known.  With again, one that is known already is looked at
 * once more: a monitor that is about to give up does not, and one that waits
 * after a failure waits no longer.
 */
static WorkerSlot *
announce_locked(Oid database, bool again)
{
	WorkerSlot *slot = find_slot(database);

	if (slot != NULL)
	{
		if (!again)
			return slot;
		slot->announcements++;
		slot->info.failures = 0;
		slot->info.retry_at = 0;
	}
	else if ((slot = find_slot(InvalidOid)) != NULL)
	{
		uint32		generation = slot->info.generation;

		memset(&slot->info, 0, sizeof(slot->info));
		slot->info.generation = generation + 1;
		slot->info.database = database;
		slot->info.state = QUEUE_WORKER_WAITING;
		pg_atomic_write_u32(&slot->database, database);
	}
	else
		workers->overflow = true;
	wake_slot(&workers->slots[QUEUE_LAUNCHER_SLOT]);
	return slot;
}

static void
free_slot(WorkerSlot *slot)
{
	slot->info.state = QUEUE_WORKER_FREE;
	slot->info.database = InvalidOid;
	slot->info.generation++;
	pg_atomic_write_u32(&slot->database, InvalidOid);
	pg_atomic_fetch_add_u32(&workers->forgotten, 1);
}

/* The worker is gone: to be started again, later if it has failed. */
static void
set_waiting(WorkerSlot *slot, bool failed)
{
	TimestampTz now = GetCurrentTimestamp();
	int			delay = 0;

	if (failed)
	{
		if (slot->info.started_at != 0 &&
			TimestampDifferenceExceeds(slot->info.started_at, now,
									   HEALTHY_AFTER_MS))
			slot->info.failures = 0;
		delay = Min(MIN_BACKOFF_MS << Min(slot->info.failures, 16),
					MAX_BACKOFF_MS);
		slot->info.failures++;
	}
	slot->info.state = QUEUE_WORKER_WAITING;
	slot->info.retry_at = TimestampTzPlusMilliseconds(now, delay);
	wake_slot(&workers->slots[QUEUE_LAUNCHER_SLOT]);
}

/* -------------------------------------------------------------------------
 * Sessions
 * -------------------------------------------------------------------------
 */

bool
queue_worker_is_noted(void)
{
	return noted == pg_atomic_read_u32(&workers->forgotten);
}

void
queue_worker_note_use(bool again)
{
	if (likely(!again && queue_worker_is_noted()))
		return;
	if (RecoveryInProgress())
		return;
	announce_at_commit = true;
	announce_again |= again;
}

bool
queue_worker_knows(Oid database)
{
	return find_slot(database) != NULL;
}

void
queue_worker_note_database(Oid database)
{
	announce_other = database;
}

void
queue_worker_note_change(void)
{
	wake_at_commit = true;
}

void
queue_monitor_wake(Oid database)
{
	static WorkerSlot *last = NULL;

	if (last == NULL || pg_atomic_read_u32(&last->database) != database)
		last = find_slot(database);
	if (last != NULL)
		wake_slot(last);
}

/* Send the worker away that is in the database; its pid, or 0. */
static int
evict_worker(Oid database)
{
	WorkerSlot *slot;
	int			pid = 0;

	LWLockAcquire(&workers->lock, LW_SHARED);
	slot = find_slot(database);
	if (slot != NULL && slot->info.pid != 0)
	{
		pid = slot->info.pid;
		kill(pid, SIGTERM);
	}
	LWLockRelease(&workers->lock);
	return pid;
}

void
queue_worker_close_database(Oid database, bool forget)
{
	TimestampTz start = GetCurrentTimestamp();
	bool		closed = false;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MAX_CLOSED && !closed; i++)
	{
		ClosedDatabase *entry = &workers->closed[i];

		if (OidIsValid(entry->database))
			continue;
		entry->database = database;
		entry->pid = MyProcPid;
		entry->forget = forget;
		closed = true;
	}
	LWLockRelease(&workers->lock);
	has_closed |= closed;

	ConditionVariablePrepareToSleep(&workers->left);
	while (evict_worker(database) != 0 &&
		   !TimestampDifferenceExceeds(start, GetCurrentTimestamp(),
									   MAX_LEAVE_WAIT_MS))
		(void) ConditionVariableTimedSleep(&workers->left, MAX_LEAVE_WAIT_MS,
										   PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
}

/* The transaction ends: what it had closed is open again, or gone. */
static void
reopen_databases(bool committed)
{
	Oid			gone[MAX_CLOSED];
	int			num_gone = 0;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	for (int i = 0; i < MAX_CLOSED; i++)
	{
		ClosedDatabase *entry = &workers->closed[i];
		WorkerSlot *slot;

		if (!OidIsValid(entry->database) || entry->pid != MyProcPid)
			continue;
		slot = find_slot(entry->database);
		if (committed && entry->forget)
		{
			gone[num_gone++] = entry->database;
			if (slot != NULL)
				free_slot(slot);
		}
		entry->database = InvalidOid;
	}
	wake_slot(&workers->slots[QUEUE_LAUNCHER_SLOT]);
	LWLockRelease(&workers->lock);

	for (int i = 0; i < num_gone; i++)
		queue_attempts_forget_database(gone[i]);
}

static void
announce_what_was_noted(void)
{
	uint32		forgotten = pg_atomic_read_u32(&workers->forgotten);

	/* the usual first use: the database is known, no lock is needed */
	if (announce_at_commit && !announce_again && !OidIsValid(announce_other) &&
		find_slot(MyDatabaseId) != NULL)
	{
		noted = forgotten;
		return;
	}

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	forgotten = pg_atomic_read_u32(&workers->forgotten);
	if (announce_at_commit)
	{
		(void) announce_locked(MyDatabaseId, announce_again);
		noted = forgotten;
	}
	if (OidIsValid(announce_other))
		(void) announce_locked(announce_other, false);
	LWLockRelease(&workers->lock);
}

/*
 * The transaction has ended.  What there is to do for workers is done by
 * release_callback, a little later: whoever is woken here would not find the
 * invalidations of this transaction yet, nor its locks released, and would
 * see in its caches what was before.
 */
static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			ending = ENDING_COMMITTED;
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			ending = ENDING_NOT_COMMITTED;
			break;
		default:
			break;
	}
}

static void
release_callback(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
				 void *arg)
{
	bool		committed = ending == ENDING_COMMITTED;

	if (ending == ENDING_NOT || phase != RESOURCE_RELEASE_AFTER_LOCKS ||
		!is_top_level)
		return;
	ending = ENDING_NOT;

	if (committed && (announce_at_commit || OidIsValid(announce_other)))
		announce_what_was_noted();
	if (committed && wake_at_commit)
		queue_monitor_wake(MyDatabaseId);
	if (has_closed)
		reopen_databases(committed);
	announce_at_commit = false;
	announce_again = false;
	wake_at_commit = false;
	announce_other = InvalidOid;
	has_closed = false;
}

/* -------------------------------------------------------------------------
 * The launcher
 * -------------------------------------------------------------------------
 */

int
queue_worker_num_slots(void)
{
	return workers->num_slots;
}

void
queue_worker_info(int slot, QueueWorkerInfo *info)
{
	LWLockAcquire(&workers->lock, LW_SHARED);
	*info = workers->slots[slot].info;
	info->closed = OidIsValid(info->database) && is_closed(info->database);
	LWLockRelease(&workers->lock);
}

int
queue_worker_announce(Oid database)
{
	WorkerSlot *slot;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	slot = announce_locked(database, false);
	LWLockRelease(&workers->lock);
	return slot != NULL ? slot - workers->slots : -1;
}

/* Has a database found no slot since this was last asked? */
bool
queue_worker_take_overflow(void)
{
	bool		overflow;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	overflow = workers->overflow;
	workers->overflow = false;
	LWLockRelease(&workers->lock);
	return overflow;
}

uint32
queue_worker_begin_start(int slot, Oid database)
{
	QueueWorkerInfo *info = &workers->slots[slot].info;
	uint32		generation = 0;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	if (info->database == database && info->state == QUEUE_WORKER_WAITING &&
		!is_closed(database))
	{
		if (++info->generation == 0)
			info->generation = 1;
		generation = info->generation;
		info->state = QUEUE_WORKER_STARTING;
		info->starts++;
		info->started_at = 0;
	}
	LWLockRelease(&workers->lock);
	return generation;
}

void
queue_worker_end_start(int slot, uint32 generation, bool failed)
{
	WorkerSlot *it = &workers->slots[slot];

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	if (it->info.generation == generation && it->info.pid == 0 &&
		it->info.state == QUEUE_WORKER_STARTING)
		set_waiting(it, failed && !is_closed(it->info.database));
	LWLockRelease(&workers->lock);
}

/* The database is gone. */
void
queue_worker_forget(Oid database)
{
	WorkerSlot *slot;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	slot = find_slot(database);
	if (slot != NULL && slot->info.pid == 0)
		free_slot(slot);
	LWLockRelease(&workers->lock);
}

/* Starts of a launcher that is no more: whoever still comes is sent away. */
void
queue_worker_abandon_starts(void)
{
	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	for (int i = QUEUE_LAUNCHER_SLOT + 1; i < workers->num_slots; i++)
	{
		WorkerSlot *slot = &workers->slots[i];

		if (slot->info.state != QUEUE_WORKER_STARTING || slot->info.pid != 0)
			continue;
		slot->info.generation++;
		set_waiting(slot, false);
	}
	LWLockRelease(&workers->lock);
}

/* -------------------------------------------------------------------------
 * Every worker
 * -------------------------------------------------------------------------
 */

/*
 * Leave the slot.  This runs after the process has left the array of
 * processes (it was registered before it got there): who waits for "left"
 * finds the database free.
 */
static void
detach(int code, Datum arg)
{
	Oid			database;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	database = my_slot->info.database;
	Assert(my_slot->info.generation == my_generation);
	pg_atomic_write_u32(&my_slot->proc, 0);
	my_slot->info.pid = 0;
	if (!OidIsValid(database))
		my_slot->info.state = QUEUE_WORKER_WAITING;
	else if (gives_up && my_slot->announcements == seen_announcements)
	{
		free_slot(my_slot);
		wake_slot(&workers->slots[QUEUE_LAUNCHER_SLOT]);
	}
	else
		set_waiting(my_slot, !stops && !is_closed(database));
	LWLockRelease(&workers->lock);
	ConditionVariableBroadcast(&workers->left);
}

bool
queue_worker_attach(int slot, uint32 generation, Oid database)
{
	WorkerSlot *it = &workers->slots[slot];
	bool		mine;

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	if (slot == QUEUE_LAUNCHER_SLOT)
	{
		generation = it->info.generation + 1;
		memset(&it->info, 0, sizeof(it->info));
		it->info.generation = generation;
		it->info.state = QUEUE_WORKER_RUNNING;
		it->info.starts = 1;
		mine = true;
	}
	else
		mine = it->info.generation == generation &&
			it->info.database == database &&
			it->info.state == QUEUE_WORKER_STARTING && !is_closed(database);
	if (mine)
	{
		it->info.pid = MyProcPid;
		it->info.started_at = GetCurrentTimestamp();
		it->info.last_run = it->info.next_run = 0;
		it->info.runs = 0;
		pg_atomic_write_u32(&it->proc, MyProc - ProcGlobal->allProcs + 1);
	}
	LWLockRelease(&workers->lock);

	if (mine)
	{
		my_slot = it;
		my_generation = generation;
		on_shmem_exit(detach, (Datum) 0);
	}
	return mine;
}

void
queue_worker_reset_settings(void)
{
	static const char *const settings[][2] = {
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"idle_in_transaction_session_timeout", "0"},
		{"lock_timeout", "0"},
		{"search_path", "pg_catalog, pg_temp"},
		{"session_replication_role", "origin"},
		{"statement_timeout", "0"},
		{"synchronous_commit", "local"},
		{"transaction_timeout", "0"},
		{"zero_damaged_pages", "off"}
	};

	for (int i = 0; i < lengthof(settings); i++)
	{
		/* not every server knows each of them */
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
							PGC_S_OVERRIDE);
	}
}

void
queue_worker_confirm(void)
{
	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	if (my_slot->info.state == QUEUE_WORKER_STARTING)
		my_slot->info.state = QUEUE_WORKER_RUNNING;
	wake_slot(&workers->slots[QUEUE_LAUNCHER_SLOT]);
	LWLockRelease(&workers->lock);
}

uint32
queue_worker_announcements(void)
{
	uint32		announcements;

	LWLockAcquire(&workers->lock, LW_SHARED);
	announcements = my_slot->announcements;
	LWLockRelease(&workers->lock);
	return announcements;
}

void
queue_worker_gives_up(uint32 announcements)
{
	stops = true;
	gives_up = true;
	seen_announcements = announcements;
}

void
queue_worker_stops(void)
{
	stops = true;
}

bool
queue_worker_is_closed(void)
{
	bool		closed;

	LWLockAcquire(&workers->lock, LW_SHARED);
	closed = is_closed(my_slot->info.database);
	LWLockRelease(&workers->lock);
	return closed;
}

/* -------------------------------------------------------------------------
 * The main loop
 * -------------------------------------------------------------------------
 */

static void
report_state(QueueWorkerState state, TimestampTz next)
{
	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	my_slot->info.state = state;
	my_slot->info.next_run = next;
	if (state == QUEUE_WORKER_RUNNING)
	{
		my_slot->info.runs++;
		my_slot->info.last_run = GetCurrentTimestamp();
	}
	LWLockRelease(&workers->lock);
}

static void
record_error(const char *job, const ErrorData *error)
{
	QueueWorkerInfo *info = &my_slot->info;
	const char *message = error->message ? error->message : "";
	int			length = pg_mbcliplen(message, strlen(message),
									  QUEUE_WORKER_ERROR_LEN - 1);

	LWLockAcquire(&workers->lock, LW_EXCLUSIVE);
	info->errors++;
	info->last_error_at = GetCurrentTimestamp();
	info->last_error_code = error->sqlerrcode;
	info->last_error_encoding = GetDatabaseEncoding();
	strlcpy(info->last_error_job, job, QUEUE_WORKER_JOB_LEN);
	memcpy(info->last_error, message, length);
	info->last_error[length] = '\0';
	LWLockRelease(&workers->lock);
}

/* Is the message new among the latest of this job? */
static bool
remember_message(QueueWorkerErrors *errors, const ErrorData *error)
{
	const char *message = error->message ? error->message : "";
	uint32		hash = hash_bytes((const unsigned char *) message,
								  strlen(message));

	hash = hash_combine(hash, hash_uint32(error->sqlerrcode));
	for (int i = 0; i < Min(errors->num_logged, QUEUE_WORKER_MAX_LOGGED); i++)
	{
		if (errors->logged[i] == hash)
			return false;
	}
	errors->logged[errors->num_logged++ % QUEUE_WORKER_MAX_LOGGED] = hash;
	return true;
}

int
queue_worker_handle_error(const char *job, QueueWorkerErrors *errors)
{
	ErrorData  *error;
	int			delay;

	HOLD_INTERRUPTS();
	error = CopyErrorData();
	FlushErrorState();
	AbortOutOfAnyTransaction();
	LWLockReleaseAll();
	ConditionVariableCancelSleep();

	record_error(job, error);
	if (remember_message(errors, error))
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("%s: job \"%s\" failed: %s", MyBgworkerEntry->bgw_name,
						job, error->message ? error->message : ""),
				 error->detail_log ? errdetail_internal("%s", error->detail_log) :
				 error->detail ? errdetail_internal("%s", error->detail) : 0,
				 error->context ? errcontext("%s", error->context) : 0,
				 errhint("It is tried again later; the same message is not logged again. The view queue.workers counts errors.")));
	RESUME_INTERRUPTS();

	delay = Min(MIN_BACKOFF_MS << Min(errors->failures, 16), MAX_BACKOFF_MS);
	errors->failures++;
	return delay;
}

static void
run_job(const QueueWorkerJob *job, JobState *state, MemoryContext turn)
{
	Assert(!IsTransactionState());

	MemoryContextSwitchTo(turn);
	SetCurrentStatementStartTimestamp();
	pgstat_report_activity(STATE_RUNNING, job->name);
	PG_TRY();
	{
		state->due = job->run();
		state->errors.failures = 0;
	}
	PG_CATCH();
	{
		int			delay;

		MemoryContextSwitchTo(turn);
		delay = queue_worker_handle_error(job->name, &state->errors);
		state->due = TimestampTzPlusMilliseconds(queue_clock_now(), delay);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(turn);
}

/*
 * What signals ask for.  A worker that is told to end between two turns does
 * so without a word in the log; within a job the interrupt is an error.
 */
static void
handle_signals(void)
{
	if (ProcDiePending)
		proc_exit(my_slot == &workers->slots[QUEUE_LAUNCHER_SLOT] ? 1 : 0);

	/* there is nothing to cancel between two turns */
	QueryCancelPending = false;
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* Sleep until the time given or the latch is set; true: the latch was. */
static bool
sleep_until(TimestampTz until)
{
	long		timeout;
	int			rc;

	if (pg_atomic_read_u32(&my_slot->woken) != 0)
		return true;
	timeout = TimestampDifferenceMilliseconds(queue_clock_now(), until);
	rc = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
				   timeout, PG_WAIT_EXTENSION);
	return (rc & WL_LATCH_SET) != 0;
}

/*
 * Is the job to be called in this turn?  One that has failed is not, before
 * its pause is over, even where all are; but no pause is longer than that,
 * also when the system's clock was set back.
 */
static bool
is_due(const JobState *state, TimestampTz now, bool all)
{
	if (state->due <= now)
		return true;
	if (state->errors.failures > 0)
		return state->due - now > MAX_BACKOFF_MS * INT64CONST(1000);
	return all;
}

void
queue_worker_loop(const QueueWorkerJob *jobs, int num_jobs,
				  bool (*goes_on) (void))
{
	MemoryContext turn = AllocSetContextCreate(TopMemoryContext,
											   "queue worker turn",
											   ALLOCSET_DEFAULT_SIZES);
	JobState   *states = MemoryContextAllocZero(TopMemoryContext,
												num_jobs * sizeof(JobState));
	TimestampTz heartbeat = 0;	/* when every job is called at the latest */
	bool		woken = true;

	for (;;)
	{
		int64		nap;
		TimestampTz now;
		TimestampTz next;
		bool		all;

		ResetLatch(MyLatch);
		handle_signals();
		SetCurrentStatementStartTimestamp();
		/* a latch that was set just when the time was over counts as well */
		if (pg_atomic_exchange_u32(&my_slot->woken, 0) != 0)
			woken = true;
		if (!goes_on())
			break;
		report_state(QUEUE_WORKER_RUNNING, 0);

		nap = queue_guc_monitor_naptime * USECS_PER_SEC;
		now = queue_clock_now();
		/* also when the system's clock was set back */
		all = woken || now >= heartbeat || heartbeat - now > nap;
		for (int i = 0; i < num_jobs; i++)
		{
			if (is_due(&states[i], now, all))
				run_job(&jobs[i], &states[i], turn);
			handle_signals();
		}
		MemoryContextSwitchTo(TopMemoryContext);
		MemoryContextReset(turn);
		pgstat_report_stat(true);
		pgstat_report_activity(STATE_IDLE, NULL);

		if (all)
			heartbeat = now + nap;
		next = heartbeat;
		for (int i = 0; i < num_jobs; i++)
			next = Min(next, states[i].due);
		report_state(QUEUE_WORKER_SLEEPING, next);
		woken = sleep_until(next);
	}
}
