/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The launcher: finds the databases that have the extension, and keeps a
 *	  monitor running in each.
 *
 * It is a static worker, connected to no database, so it is in nobody's way.
 * It starts when recovery has ended: on a standby there is none, and
 * promotion starts it.
 *
 * Once in its life it makes a list of the databases and sends a monitor into
 * each, one after the other: this is the probe.  A monitor that finds no
 * extension leaves at once and gives its slot back, and the database is not
 * probed again.  Databases that get the extension later are announced by the
 * session that creates it (worker.c).
 *
 * After that it only reacts: to announcements, to monitors that end (the
 * postmaster signals it, and the monitor wakes it), to settings.  A monitor
 * that failed is started again after a pause that grows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "guc.h"
#include "launcher.h"
#include "worker.h"

/* the launcher itself is started again after this */
#define LAUNCHER_RESTART_S		1

/* a probe that takes longer goes on beside the next one */
#define MAX_PROBE_MS			5000

/*
 * Pause after the server had no worker process to give: short at first, for
 * one may just be ending.
 */
#define FIRST_PROCESS_PAUSE_MS	1000
#define NO_PROCESS_PAUSE_MS		10000

/* datconnlimit of a database whose DROP was interrupted */
#define INVALID_DATABASE		(-2)

/* a monitor that was asked for */
typedef struct Start
{
	BackgroundWorkerHandle *handle; /* NULL: none */
	uint32		generation;
} Start;

PGDLLEXPORT void queue_launcher_main(Datum arg);

static MemoryContext launcher_context = NULL;
static Start *starts = NULL;	/* one for each slot */

/* probing */
static bool listed = false;
static Oid *probes = NULL;
static int	num_probes = 0;
static int	next_probe = 0;
static Oid	probed = InvalidOid;	/* under way */
static TimestampTz probe_ends = 0;

/* no starts before this */
static TimestampTz hold_until = 0;
static bool no_process_again = false;	/* the last start got none, too */
static bool no_process_logged = false;
static bool overflow_logged = false;

void
queue_launcher_init(void)
{
	BackgroundWorker worker;

	/* pg_upgrade wants to be alone */
	if (IsBinaryUpgrade)
		return;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = LAUNCHER_RESTART_S;
	strlcpy(worker.bgw_name, "queue launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "queue launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "queue", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "queue_launcher_main",
			sizeof(worker.bgw_function_name));
	RegisterBackgroundWorker(&worker);
}

/* -------------------------------------------------------------------------
 * Databases
 * -------------------------------------------------------------------------
 */

static bool
accepts_connections(Form_pg_database database)
{
	return database->datallowconn &&
		database->datconnlimit != INVALID_DATABASE;
}

/* All databases that accept connections, in launcher_context. */
static void
list_databases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	int			size = 64;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	probes = MemoryContextAlloc(launcher_context, size * sizeof(Oid));
	num_probes = 0;
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);

		if (!accepts_connections(database))
			continue;
		if (num_probes == size)
		{
			size *= 2;
			probes = repalloc(probes, size * sizeof(Oid));
		}
		probes[num_probes++] = database->oid;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	PopActiveSnapshot();
	CommitTransactionCommand();
	listed = true;
}

typedef enum DatabaseState
{
	DATABASE_GONE,
	DATABASE_REFUSES,
	DATABASE_ACCEPTS
} DatabaseState;

/* name: NAMEDATALEN bytes, filled unless the database is gone */
static DatabaseState
look_at_database(Oid oid, char *name)
{
	DatabaseState state = DATABASE_GONE;
	HeapTuple	tuple;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(oid));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);

		state = accepts_connections(database) ? DATABASE_ACCEPTS :
			DATABASE_REFUSES;
		strlcpy(name, NameStr(database->datname), NAMEDATALEN);
		ReleaseSysCache(tuple);
	}
	CommitTransactionCommand();
	return state;
}

/* -------------------------------------------------------------------------
 * Monitors
 * -------------------------------------------------------------------------
 */

/*
 * Find out about monitors that ended, above all before they attached.  Only
 * then is their process free for another.
 */
static void
reap_monitors(void)
{
	for (int i = 0; i < queue_worker_num_slots(); i++)
	{
		Start	   *start = &starts[i];
		pid_t		pid;

		if (start->handle == NULL ||
			GetBackgroundWorkerPid(start->handle, &pid) != BGWH_STOPPED)
			continue;
		queue_worker_end_start(i, start->generation, true);
		pfree(start->handle);
		start->handle = NULL;
		hold_until = 0;
		no_process_again = false;
	}
}

static bool
register_monitor(int slot, uint32 generation, Oid database,
				 const char *name)
{
	BackgroundWorker worker;
	QueueMonitorOrder order = {slot, generation, database};
	MemoryContext old;
	bool		registered;

	StaticAssertStmt(sizeof(order) <= BGW_EXTRALEN,
					 "an order does not fit into bgw_extra");
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	snprintf(worker.bgw_name, BGW_MAXLEN,
			 "queue monitor for database \"%s\"", name);
	strlcpy(worker.bgw_type, "queue monitor", BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "queue", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "queue_monitor_main",
			sizeof(worker.bgw_function_name));
	memcpy(worker.bgw_extra, &order, sizeof(order));

	old = MemoryContextSwitchTo(launcher_context);
	registered = RegisterDynamicBackgroundWorker(&worker,
												 &starts[slot].handle);
	MemoryContextSwitchTo(old);
	starts[slot].generation = generation;
	return registered;
}

/*
 * The server has no worker process to give: wait, and say so once.  (The
 * postmaster calls a process ended a moment before another can have its
 * place, so the first time means nothing.)
 */
static void
hold_starts(void)
{
	bool		again = no_process_again;

	no_process_again = true;
	hold_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											 again ? NO_PROCESS_PAUSE_MS :
											 FIRST_PROCESS_PAUSE_MS);
	if (!again || no_process_logged)
		return;
	no_process_logged = true;
	ereport(LOG,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("queue launcher: there is no worker process left for a queue monitor"),
			 errhint("It is tried again later. Raise \"max_worker_processes\": each database with the extension takes one, and the launcher another.")));
}

/* Start the monitor of a slot that waits; false: no process left. */
static bool
start_monitor(int slot, Oid database, const char *name)
{
	uint32		generation;

	generation = queue_worker_begin_start(slot, database);
	if (generation == 0)
		return true;

	if (!register_monitor(slot, generation, database, name))
	{
		queue_worker_end_start(slot, generation, false);
		return false;
	}
	no_process_again = false;
	no_process_logged = false;
	return true;
}

/*
 * Start what is due; the time at which something else will be.
 */
static TimestampTz
start_monitors(TimestampTz now)
{
	TimestampTz next = DT_NOEND;

	for (int i = QUEUE_LAUNCHER_SLOT + 1; i < queue_worker_num_slots(); i++)
	{
		QueueWorkerInfo info;
		char		name[NAMEDATALEN];

		/* whoever was here last must have ended: the postmaster tells */
		if (starts[i].handle != NULL)
			continue;
		queue_worker_info(i, &info);
		if (info.state != QUEUE_WORKER_WAITING || info.closed)
			continue;
		if (info.retry_at > now)
		{
			next = Min(next, info.retry_at);
			continue;
		}
		switch (look_at_database(info.database, name))
		{
			case DATABASE_GONE:
				queue_worker_forget(info.database);
				continue;
			case DATABASE_REFUSES:
				continue;		/* looked at again at the heartbeat */
			case DATABASE_ACCEPTS:
				break;
		}
		if (!start_monitor(i, info.database, name))
		{
			hold_starts();
			return hold_until;
		}
	}
	return next;
}

/* -------------------------------------------------------------------------
 * Probes
 * -------------------------------------------------------------------------
 */

/* Has the database under probe been found to have the extension or not? */
static bool
probe_is_over(TimestampTz now)
{
	if (!OidIsValid(probed) || now >= probe_ends)
		return true;
	for (int i = QUEUE_LAUNCHER_SLOT + 1; i < queue_worker_num_slots(); i++)
	{
		QueueWorkerInfo info;

		queue_worker_info(i, &info);
		if (info.database == probed)
			return info.failures > 0 ||
				(info.state != QUEUE_WORKER_WAITING &&
				 info.state != QUEUE_WORKER_STARTING);
	}
	return true;
}

/* Send the next probe if the last one is over; when to look again. */
static TimestampTz
probe_databases(TimestampTz now)
{
	if (!listed)
		list_databases();
	if (next_probe == num_probes && !OidIsValid(probed))
		return DT_NOEND;
	if (!probe_is_over(now))
		return probe_ends;

	probed = InvalidOid;
	if (next_probe < num_probes)
	{
		probed = probes[next_probe++];
		probe_ends = TimestampTzPlusMilliseconds(now, MAX_PROBE_MS);
		(void) queue_worker_announce(probed);
		return probe_ends;
	}
	pfree(probes);
	probes = NULL;
	next_probe = num_probes = 0;
	return DT_NOEND;
}

/* -------------------------------------------------------------------------
 * Main
 * -------------------------------------------------------------------------
 */

static void
report_overflow(void)
{
	if (!queue_worker_take_overflow() || overflow_logged)
		return;
	overflow_logged = true;
	ereport(LOG,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("queue launcher: there is no room for the monitor of another database"),
			 errhint("Raise \"queue.max_monitors\".")));
}

/* The launcher's one job. */
static TimestampTz
supervise(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next;

	reap_monitors();
	if (!queue_guc_monitor)
		return DT_NOEND;
	if (now < hold_until)
		return hold_until;
	next = probe_databases(now);
	next = Min(next, start_monitors(now));
	report_overflow();
	return next;
}

static bool
goes_on(void)
{
	return true;
}

void
queue_launcher_main(Datum arg)
{
	static const QueueWorkerJob jobs[] = {{"supervise", supervise}};

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	(void) queue_worker_attach(QUEUE_LAUNCHER_SLOT, 0, InvalidOid);
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	queue_worker_abandon_starts();

	launcher_context = AllocSetContextCreate(TopMemoryContext,
											 "queue launcher",
											 ALLOCSET_DEFAULT_SIZES);
	starts = MemoryContextAllocZero(launcher_context,
									queue_worker_num_slots() * sizeof(Start));
	queue_worker_loop(jobs, lengthof(jobs), goes_on);
}
