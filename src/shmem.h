/*-------------------------------------------------------------------------
 *
 * shmem.h
 *	  Fixed shared memory of the extension.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_SHMEM_H
#define QUEUE_SHMEM_H

#include "port/atomics.h"
#include "storage/lwlock.h"

#include "queue.h"

typedef struct QueueShmem
{
	/* atomic, any backend: the last tick given (clock.c) */
	pg_atomic_uint64 clock;

	/*
	 * Protects the identities of all heads (id, incarnation, used) and rings
	 * against being made or evicted, and the fields below.  Taken before a
	 * head's own lock, never after it.
	 */
	LWLock		directory_lock;

	/* protected by directory_lock */
	int			clock_hand;		/* where the search for a victim goes on */

	/* immutable after start */
	int			num_heads;
	int			max_backends;
	int			lock_tranche;
} QueueShmem;

extern QueueShmem *queue_shmem;

extern void queue_shmem_init(void);

/*
 * ERROR 55000, naming the line for postgresql.conf, unless the library was in
 * shared_preload_libraries.  Every function called from SQL begins with it; so
 * this is also where a session's first use of the extension is noticed.
 */
extern void queue_require_preload(void);

#endif							/* QUEUE_SHMEM_H */
