/*-------------------------------------------------------------------------
 *
 * api_monitor.c
 *	  Functions behind the views that show what shared memory knows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "guc.h"
#include "shmem.h"
#include "wakeup.h"
#include "worker.h"

/* columns of queue._workers() */
typedef enum WorkerColumn
{
	WORKER_KIND,
	WORKER_DATABASE,
	WORKER_PID,
	WORKER_STATE,
	WORKER_STARTED_AT,
	WORKER_STARTS,
	WORKER_LAST_RUN,
	WORKER_NEXT_RUN,
	WORKER_RUNS,
	WORKER_ERRORS,
	WORKER_LAST_ERROR,
	WORKER_LAST_ERROR_SQLSTATE,
	WORKER_LAST_ERROR_JOB,
	WORKER_LAST_ERROR_AT,
	WORKER_NUM_COLUMNS
} WorkerColumn;

PG_FUNCTION_INFO_V1(queue_internal_workers);

static const char *
worker_state(int slot, const QueueWorkerInfo *info)
{
	switch (info->state)
	{
		case QUEUE_WORKER_FREE:
			return "stopped";
		case QUEUE_WORKER_WAITING:
			if (slot != QUEUE_LAUNCHER_SLOT && !queue_guc_monitor)
				return "off";
			return info->closed ? "closed" : "waiting";
		case QUEUE_WORKER_STARTING:
			return "starting";
		case QUEUE_WORKER_RUNNING:
			return "running";
		case QUEUE_WORKER_SLEEPING:
			return "sleeping";
	}
	return NULL;				/* keep compiler quiet */
}

static void
set_time(Datum *value, bool *isnull, TimestampTz time)
{
	*value = TimestampTzGetDatum(time);
	*isnull = time == 0;
}

/*
 * The error's text as the worker's database has it: where that is encoded
 * otherwise than this one, all but ASCII is replaced.
 */
static Datum
error_text(const QueueWorkerInfo *info)
{
	char	   *message = pstrdup(info->last_error);

	if (info->last_error_encoding != GetDatabaseEncoding())
	{
		for (char *p = message; *p != '\0'; p++)
		{
			if (IS_HIGHBIT_SET(*p))
				*p = '?';
		}
	}
	return CStringGetTextDatum(message);
}

static void
fill_worker(int slot, const QueueWorkerInfo *info, Datum *values, bool *nulls)
{
	bool		is_launcher = slot == QUEUE_LAUNCHER_SLOT;

	values[WORKER_KIND] = CStringGetTextDatum(is_launcher ? "launcher" :
											  "monitor");
	values[WORKER_DATABASE] = ObjectIdGetDatum(info->database);
	nulls[WORKER_DATABASE] = is_launcher;
	values[WORKER_PID] = Int32GetDatum(info->pid);
	nulls[WORKER_PID] = info->pid == 0;
	values[WORKER_STATE] = CStringGetTextDatum(worker_state(slot, info));
	set_time(&values[WORKER_STARTED_AT], &nulls[WORKER_STARTED_AT],
			 info->started_at);
	values[WORKER_STARTS] = Int64GetDatum(info->starts);
	set_time(&values[WORKER_LAST_RUN], &nulls[WORKER_LAST_RUN],
			 info->last_run);
	set_time(&values[WORKER_NEXT_RUN], &nulls[WORKER_NEXT_RUN],
			 info->pid != 0 ? info->next_run : info->retry_at);
	values[WORKER_RUNS] = Int64GetDatum(info->runs);
	values[WORKER_ERRORS] = Int64GetDatum(info->errors);
	set_time(&values[WORKER_LAST_ERROR_AT], &nulls[WORKER_LAST_ERROR_AT],
			 info->last_error_at);
	if (info->last_error_at == 0 ||
		!has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
	{
		nulls[WORKER_LAST_ERROR] = true;
		nulls[WORKER_LAST_ERROR_SQLSTATE] = true;
		nulls[WORKER_LAST_ERROR_JOB] = true;
		return;
	}
	values[WORKER_LAST_ERROR] = error_text(info);
	values[WORKER_LAST_ERROR_SQLSTATE] =
		CStringGetTextDatum(unpack_sql_state(info->last_error_code));
	values[WORKER_LAST_ERROR_JOB] = CStringGetTextDatum(info->last_error_job);
}

/* A session that waits for messages; one that listens has several rows. */
static void
fill_waiter(const QueueWaiterInfo *info, Datum *values, bool *nulls)
{
	memset(nulls, true, WORKER_NUM_COLUMNS);
	values[WORKER_KIND] = CStringGetTextDatum("waiter");
	values[WORKER_DATABASE] = ObjectIdGetDatum(info->id.database);
	values[WORKER_PID] = Int32GetDatum(info->pid);
	values[WORKER_STATE] = CStringGetTextDatum("waiting");
	values[WORKER_STARTED_AT] = TimestampTzGetDatum(info->since);
	nulls[WORKER_KIND] = nulls[WORKER_DATABASE] = nulls[WORKER_PID] =
		nulls[WORKER_STATE] = nulls[WORKER_STARTED_AT] = false;
}

/* One row for each worker that runs or should, and for each waiter. */
Datum
queue_internal_workers(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	queue_require_preload();
	queue_init_srf(fcinfo, 0);
	for (int i = 0; i < queue_worker_num_slots(); i++)
	{
		QueueWorkerInfo info;
		Datum		values[WORKER_NUM_COLUMNS] = {0};
		bool		nulls[WORKER_NUM_COLUMNS] = {0};

		queue_worker_info(i, &info);
		if (i != QUEUE_LAUNCHER_SLOT && info.state == QUEUE_WORKER_FREE)
			continue;
		fill_worker(i, &info, values, nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	for (int i = 0; i < queue_wakeup_num_entries(); i++)
	{
		QueueWaiterInfo info;
		Datum		values[WORKER_NUM_COLUMNS] = {0};
		bool		nulls[WORKER_NUM_COLUMNS];

		if (!queue_wakeup_info(i, &info))
			continue;
		fill_waiter(&info, values, nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
