/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  Background workers: the registry of databases and their monitors, and
 *	  the main loop that all workers share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_WORKER_H
#define QUEUE_WORKER_H

#include "port/atomics.h"

#include "queue.h"

/* limits of what is kept of an error */
#define QUEUE_WORKER_JOB_LEN	32
#define QUEUE_WORKER_ERROR_LEN	256

/* the launcher's slot; those of monitors follow */
#define QUEUE_LAUNCHER_SLOT		0

/*
 * The life of a slot; src/README.md draws it.  A worker that has attached but
 * does not know yet whether its database has the extension is still STARTING.
 */
typedef enum QueueWorkerState
{
	QUEUE_WORKER_FREE,			/* nobody's */
	QUEUE_WORKER_WAITING,		/* to be started, not before retry_at */
	QUEUE_WORKER_STARTING,		/* asked for */
	QUEUE_WORKER_RUNNING,		/* in a turn of its loop */
	QUEUE_WORKER_SLEEPING		/* until something is due or it is woken */
} QueueWorkerState;

/* One worker, for others to read. */
typedef struct QueueWorkerInfo
{
	Oid			database;		/* InvalidOid: the launcher's, or free */
	QueueWorkerState state;
	bool		closed;			/* a command needs the database to itself */
	uint32		generation;		/* raised by each start and each new owner */
	int			pid;			/* 0: not attached */
	int			failures;		/* in a row */
	int64		starts;
	TimestampTz retry_at;
	TimestampTz started_at;
	TimestampTz last_run;
	TimestampTz next_run;
	int64		runs;			/* turns of the loop since it was started */
	int64		errors;
	TimestampTz last_error_at;	/* 0: none */
	int			last_error_code;
	int			last_error_encoding;
	char		last_error_job[QUEUE_WORKER_JOB_LEN];
	char		last_error[QUEUE_WORKER_ERROR_LEN];
} QueueWorkerInfo;

/*
 * A job of a worker.  Called outside of any transaction, in a memory context
 * that lives for one turn; does a bounded amount of work, in transactions of
 * its own, and returns the time of queue_clock_now() at which it wants to be
 * called again: now if there is more to do, DT_NOEND if only when the worker
 * is woken (or at its heartbeat, which calls every job).
 */
typedef struct QueueWorkerJob
{
	const char *name;
	TimestampTz (*run) (void);
} QueueWorkerJob;

/* messages that are remembered as logged */
#define QUEUE_WORKER_MAX_LOGGED	16

/* How a job, or one part of its work, fails; zero to begin with. */
typedef struct QueueWorkerErrors
{
	int			failures;		/* in a row; reset by the owner */
	int			num_logged;
	uint32		logged[QUEUE_WORKER_MAX_LOGGED];	/* hashes of messages */
} QueueWorkerErrors;

extern Size queue_worker_shmem_size(int max_monitors);
extern void queue_worker_shmem_init(int max_monitors, int tranche);
extern void queue_worker_init(void);

/* -- sessions -- */

/*
 * This session uses the extension: its database becomes known when the
 * transaction commits.  Cheap when that has been done.  With again, also
 * where it is thought to be known: the extension is being created.
 */
extern void queue_worker_note_use(bool again);

/* Has the session's database been made known by it? */
extern bool queue_worker_is_noted(void);

/* Is the database known? */
extern bool queue_worker_knows(Oid database);

/*
 * Make another database known, or wake this one's monitor, when the
 * transaction has committed and its invalidations have been sent: the way to
 * tell a monitor of changes in the catalog.
 */
extern void queue_worker_note_database(Oid database);
extern void queue_worker_note_change(void);

/*
 * Wake the monitor of a database.  Fixed memory, no lock, no error: may be
 * called at the end of a transaction.  Does nothing where there is none.  A
 * monitor woken from a callback of the commit sees its rows, but may not see
 * its changes in the catalog yet.
 */
extern void queue_monitor_wake(Oid database);

/*
 * Keep workers out of a database until the end of this transaction, and wait
 * until those that are there have left.  With forget it is no longer known
 * once the transaction has committed.
 */
extern void queue_worker_close_database(Oid database, bool forget);

/* -- the launcher -- */

extern int	queue_worker_num_slots(void);
extern void queue_worker_info(int slot, QueueWorkerInfo *info);

/* Make a database known; the slot, or -1: no room. */
extern int	queue_worker_announce(Oid database);
extern bool queue_worker_take_overflow(void);

/*
 * Begin a start: STARTING, and the generation that the worker must show; 0:
 * the slot is not waiting any more.
 */
extern uint32 queue_worker_begin_start(int slot, Oid database);

/* It did not come to anything, or has ended: try again, later if it failed. */
extern void queue_worker_end_start(int slot, uint32 generation, bool failed);
extern void queue_worker_forget(Oid database);
extern void queue_worker_abandon_starts(void);

/* -- every worker -- */

/* Take the slot.  False: it is not this worker's any more; leave quietly. */
extern bool queue_worker_attach(int slot, uint32 generation, Oid database);

/* Settings that a database or role may have are not for workers. */
extern void queue_worker_reset_settings(void);

/*
 * The database has the extension; or, as seen after so many announcements,
 * has not: the worker ends, and unless somebody has announced the database
 * again meanwhile, the slot is free.
 */
extern void queue_worker_confirm(void);
extern uint32 queue_worker_announcements(void);
extern void queue_worker_gives_up(uint32 announcements);

/* This worker ends because it is told to: no failure. */
extern void queue_worker_stops(void);
extern bool queue_worker_is_closed(void);

/*
 * In PG_CATCH(), in a memory context that survives: clean up after the failed
 * transaction, count the error for queue.workers, and log it unless that has
 * been done.  Returns for how many milliseconds to leave it alone.
 */
extern int	queue_worker_handle_error(const char *job,
									  QueueWorkerErrors *errors);

/*
 * The main loop: returns when goes_on, asked at the beginning of each turn
 * outside of any transaction, says no.
 */
extern void queue_worker_loop(const QueueWorkerJob *jobs, int num_jobs,
							  bool (*goes_on) (void));

#endif							/* QUEUE_WORKER_H */
