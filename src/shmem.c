/*-------------------------------------------------------------------------
 *
 * shmem.c
 *	  Fixed shared memory of the extension.
 *
 * Everything lies in the main segment, sized by settings at start: the
 * callbacks at the end of a transaction run after its commit is done, where
 * an error is a PANIC, so they must find their memory there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "attempts.h"
#include "guc.h"
#include "head.h"
#include "ring.h"
#include "shmem.h"
#include "wakeup.h"
#include "worker.h"

QueueShmem *queue_shmem = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void request_memory(void);
static void start_memory(void);

void
queue_shmem_init(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_memory;
}

static void
request_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(MAXALIGN(sizeof(QueueShmem)));
	RequestAddinShmemSpace(queue_head_shmem_size(queue_guc_max_heads,
												 MaxBackends));
	RequestAddinShmemSpace(queue_ring_shmem_size());
	RequestAddinShmemSpace(queue_wakeup_shmem_size(MaxBackends));
	RequestAddinShmemSpace(queue_attempts_shmem_size(queue_guc_max_failed_attempts));
	RequestAddinShmemSpace(queue_worker_shmem_size(queue_guc_max_monitors));
}

static void
start_memory(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	queue_shmem = ShmemInitStruct("queue", sizeof(QueueShmem), &found);
	if (!found)
	{
		memset(queue_shmem, 0, sizeof(QueueShmem));
		pg_atomic_init_u64(&queue_shmem->clock, 0);
		queue_shmem->num_heads = queue_guc_max_heads;
		queue_shmem->max_backends = MaxBackends;
		queue_shmem->lock_tranche = LWLockNewTrancheId();
		LWLockInitialize(&queue_shmem->directory_lock,
						 queue_shmem->lock_tranche);
	}
	queue_head_shmem_init(queue_shmem->num_heads, queue_shmem->max_backends,
						  queue_shmem->lock_tranche);
	queue_ring_shmem_init();
	queue_wakeup_shmem_init(queue_shmem->max_backends,
							queue_shmem->lock_tranche);
	queue_attempts_shmem_init(queue_guc_max_failed_attempts,
							  queue_shmem->lock_tranche);
	queue_worker_shmem_init(queue_guc_max_monitors,
							queue_shmem->lock_tranche);
	LWLockRelease(AddinShmemInitLock);

	LWLockRegisterTranche(queue_shmem->lock_tranche, "queue");
}

void
queue_require_preload(void)
{
	if (likely(queue_shmem != NULL))
	{
		queue_worker_note_use(false);
		return;
	}

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("extension \"queue\" must be loaded when the server starts"),
			 errhint("Add \"queue\" to shared_preload_libraries in postgresql.conf (shared_preload_libraries = 'queue') and restart the server.")));
}
