/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  The monitor of one database: does in the background what no session
 *	  waits for.
 *
 * What it does stands in the table of jobs.  It is also the launcher's probe:
 * where it finds no extension it leaves at once.  It looks again at the
 * beginning of each turn, and whoever drops the extension wakes it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "attempts.h"
#include "catalog.h"
#include "clock.h"
#include "debug_point.h"
#include "guc.h"
#include "launcher.h"
#include "maintenance.h"
#include "rotation.h"
#include "worker.h"

/* how often failed attempts of what is gone are looked for */
#define SWEEP_PERIOD_MS		60000

PGDLLEXPORT void queue_monitor_main(Datum arg);

/* Give back the places of failed attempts whose queue table is gone. */
static TimestampTz
sweep_attempts(void)
{
	static TimestampTz next = 0;
	TimestampTz now = queue_clock_now();

	if (queue_attempts_is_empty())
		return DT_NOEND;
	if (now < next && next - now <= SWEEP_PERIOD_MS * INT64CONST(1000))
		return next;
	next = TimestampTzPlusMilliseconds(now, SWEEP_PERIOD_MS);
	StartTransactionCommand();
	queue_attempts_sweep(queue_catalog_table_is_gone);
	CommitTransactionCommand();
	return next;
}

#ifdef QUEUE_DEBUG
/* For tests: fails with the message of the setting. */
static TimestampTz
fail_on_demand(void)
{
	if (queue_guc_debug_job_error[0] != '\0')
	{
		StartTransactionCommand();
		elog(ERROR, "%s", queue_guc_debug_job_error);
	}
	return DT_NOEND;
}
#endif

static const QueueWorkerJob jobs[] = {
#ifdef QUEUE_DEBUG
	{"debug", fail_on_demand},
#endif
	{"rotation", queue_rotation_job},
	{"due messages", queue_maintenance_due},
	{"expiration", queue_maintenance_expiry},
	{"failed attempts", queue_maintenance_attempts},
	{"journal", queue_maintenance_journal},
	{"dropped queue tables", sweep_attempts}
};

/*
 * The beginning of a turn: is this monitor wanted?  The number of
 * announcements is read first: one that comes after it, comes after what is
 * looked at here.
 */
static bool
is_wanted(void)
{
	uint32		announcements = queue_worker_announcements();
	bool		installed;

	if (!queue_guc_monitor || queue_worker_is_closed())
	{
		queue_worker_stops();
		return false;
	}

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	installed = OidIsValid(get_extension_oid("queue", true));
	PopActiveSnapshot();
	CommitTransactionCommand();
	if (!installed)
	{
		DEBUG_POINT("before_give_up");
		queue_worker_gives_up(announcements);
		return false;
	}
	queue_worker_confirm();
	return true;
}

void
queue_monitor_main(Datum arg)
{
	QueueMonitorOrder order;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));

	/* die: DROP DATABASE ... WITH (FORCE) relies on it, in a long job too */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	if (!queue_worker_attach(order.slot, order.generation, order.database))
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(order.database, InvalidOid, 0);
	queue_worker_reset_settings();

	queue_worker_loop(jobs, lengthof(jobs), is_wanted);
	proc_exit(0);
}
