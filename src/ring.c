/*-------------------------------------------------------------------------
 *
 * ring.c
 *	  The segments of a queue table's ready messages: what shared memory
 *	  knows of them.
 *
 * Ready messages are written to the current segment.  When it is full another
 * one becomes current; a closed one in which every row is dead is EMPTY, then
 * truncated, then FREE to be used again (rotation.c).  Enqueues read which one
 * is current before and after they lock it; dequeues leave out what is EMPTY
 * or FREE.
 *
 * States are forgotten when the server stops: then every segment but the
 * first is closed, until it is looked at.  That is right at any time, so a
 * ring may also be missing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "ring.h"
#include "shmem.h"

#define MAX_RINGS		1024

/* two bits a segment, above them the counter */
#define STATE_BITS		2
#define STATE_MASK		((UINT64CONST(1) << STATE_BITS) - 1)
#define COUNTER_ONE		(UINT64CONST(1) << (STATE_BITS * QUEUE_SEGMENTS))

/* the first segment is current, all others are closed */
#define INITIAL_WORD	((uint64) QUEUE_SEGMENT_CURRENT)

typedef struct RingDirectory
{
	int			num_rings;		/* protected by the directory lock */
	QueueRing	rings[MAX_RINGS];
} RingDirectory;

static RingDirectory *directory = NULL;

Size
queue_ring_shmem_size(void)
{
	return MAXALIGN(sizeof(RingDirectory));
}

void
queue_ring_shmem_init(void)
{
	bool		found;

	directory = ShmemInitStruct("queue rings", queue_ring_shmem_size(),
								&found);
	if (found)
		return;
	memset(directory, 0, sizeof(RingDirectory));
	for (int i = 0; i < MAX_RINGS; i++)
	{
		pg_atomic_init_u64(&directory->rings[i].word, INITIAL_WORD);
		for (int s = 0; s < QUEUE_SEGMENTS; s++)
			pg_atomic_init_u64(&directory->rings[i].uses[s], 0);
		pg_atomic_init_u32(&directory->rings[i].clock_raised, 0);
		pg_atomic_init_u32(&directory->rings[i].turn_wanted, 0);
		for (int t = 0; t < QUEUE_NUM_TIMES; t++)
			pg_atomic_init_u64(&directory->rings[i].times[t],
							   (uint64) DT_NOBEGIN);
		pg_atomic_init_u32(&directory->rings[i].attempts_told, 0);
	}
}

bool
queue_ring_is(const QueueRing *ring, Oid queue_table, const Oid *leaves)
{
	return ring->queue_table == queue_table &&
		ring->database == MyDatabaseId &&
		memcmp(ring->leaves, leaves, sizeof(ring->leaves)) == 0;
}

/* Caller holds the directory lock. */
static QueueRing *
search_directory(Oid queue_table)
{
	for (int i = 0; i < directory->num_rings; i++)
	{
		QueueRing  *ring = &directory->rings[i];

		if (ring->queue_table == queue_table &&
			ring->database == MyDatabaseId)
			return ring;
	}
	return NULL;
}

/* Caller holds the directory lock exclusively. */
static void
claim_ring(QueueRing *ring, Oid queue_table, const Oid *leaves)
{
	/* whoever still holds it for another table sees that it is gone first */
	ring->queue_table = InvalidOid;
	pg_write_barrier();
	pg_atomic_write_u64(&ring->word, INITIAL_WORD);
	pg_atomic_write_u32(&ring->clock_raised, 0);
	pg_atomic_write_u32(&ring->turn_wanted, 0);
	for (int t = 0; t < QUEUE_NUM_TIMES; t++)
		pg_atomic_write_u64(&ring->times[t], (uint64) DT_NOBEGIN);
	pg_atomic_write_u32(&ring->attempts_told, 0);
	memcpy(ring->leaves, leaves, sizeof(ring->leaves));
	ring->database = MyDatabaseId;
	pg_write_barrier();
	ring->queue_table = queue_table;
}

/*
 * A ring of a dropped queue table of this database.  Asking may take locks,
 * so it is done without the directory lock, of one ring after the other.
 */
static QueueRing *
find_unused_ring(bool (*is_gone) (Oid queue_table))
{
	for (int i = 0; i < MAX_RINGS; i++)
	{
		QueueRing  *ring = &directory->rings[i];
		Oid			queue_table = ring->queue_table;

		if (ring->database == MyDatabaseId && OidIsValid(queue_table) &&
			is_gone(queue_table))
			return ring;
	}
	return NULL;
}

QueueRing *
queue_ring_find(Oid queue_table, const Oid *leaves,
				bool (*is_gone) (Oid queue_table))
{
	QueueRing  *ring;
	QueueRing  *unused = NULL;
	Oid			unused_table = InvalidOid;

	if (RecoveryInProgress())
		return NULL;
	LWLockAcquire(&queue_shmem->directory_lock, LW_SHARED);
	ring = search_directory(queue_table);
	if (ring != NULL && !queue_ring_is(ring, queue_table, leaves))
		ring = NULL;
	LWLockRelease(&queue_shmem->directory_lock);
	if (ring != NULL)
		return ring;

	if (directory->num_rings == MAX_RINGS)
	{
		unused = find_unused_ring(is_gone);
		if (unused != NULL)
			unused_table = unused->queue_table;
	}
	LWLockAcquire(&queue_shmem->directory_lock, LW_EXCLUSIVE);
	ring = search_directory(queue_table);
	if (ring == NULL && directory->num_rings < MAX_RINGS)
		ring = &directory->rings[directory->num_rings++];
	if (ring == NULL && unused != NULL &&
		unused->queue_table == unused_table)
		ring = unused;
	if (ring != NULL && !queue_ring_is(ring, queue_table, leaves))
		claim_ring(ring, queue_table, leaves);
	LWLockRelease(&queue_shmem->directory_lock);
	return ring;
}

uint64
queue_ring_read(QueueRing *ring)
{
	return ring == NULL ? INITIAL_WORD : pg_atomic_read_u64(&ring->word);
}

QueueSegmentState
queue_ring_state(uint64 word, int segment)
{
	return (QueueSegmentState) ((word >> (segment * STATE_BITS)) & STATE_MASK);
}

int
queue_ring_current(uint64 word)
{
	for (int i = 0; i < QUEUE_SEGMENTS; i++)
	{
		if (queue_ring_state(word, i) == QUEUE_SEGMENT_CURRENT)
			return i;
	}
	return 0;
}

static uint64
with_state(uint64 word, int segment, QueueSegmentState state)
{
	word &= ~(STATE_MASK << (segment * STATE_BITS));
	return word | ((uint64) state << (segment * STATE_BITS));
}

void
queue_ring_use(QueueRing *ring, int segment)
{
	uint64		word;

	if (ring == NULL)
		return;
	pg_atomic_fetch_add_u64(&ring->uses[segment], 1);
	word = pg_atomic_read_u64(&ring->word);
	for (;;)
	{
		uint64		next = word + COUNTER_ONE;

		if (queue_ring_state(word, segment) == QUEUE_SEGMENT_CURRENT)
			return;
		next = with_state(next, segment, QUEUE_SEGMENT_CLOSED);
		if (pg_atomic_compare_exchange_u64(&ring->word, &word, next))
			return;
	}
}

uint64
queue_ring_uses(QueueRing *ring, int segment)
{
	return pg_atomic_read_u64(&ring->uses[segment]);
}

bool
queue_ring_want_turn(QueueRing *ring)
{
	return ring != NULL &&
		pg_atomic_read_u32(&ring->turn_wanted) == 0 &&
		pg_atomic_exchange_u32(&ring->turn_wanted, 1) == 0;
}

bool
queue_ring_set_state(QueueRing *ring, uint64 *word, int segment,
					 QueueSegmentState state)
{
	uint64		expected = *word;
	uint64		next = with_state(expected, segment, state);

	if (!pg_atomic_compare_exchange_u64(&ring->word, &expected, next))
		return false;
	*word = next;
	return true;
}

bool
queue_ring_turn(QueueRing *ring, uint64 *word, int next)
{
	uint64		expected = *word;
	uint64		turned;

	turned = with_state(expected, queue_ring_current(expected),
						QUEUE_SEGMENT_CLOSED);
	turned = with_state(turned, next, QUEUE_SEGMENT_CURRENT);
	if (!pg_atomic_compare_exchange_u64(&ring->word, &expected, turned))
		return false;
	*word = turned;
	pg_atomic_write_u32(&ring->turn_wanted, 0);
	return true;
}

bool
queue_ring_tell_time(QueueRing *ring, QueueTime which, TimestampTz at)
{
	uint64		old;

	if (ring == NULL)
		return true;
	old = pg_atomic_read_u64(&ring->times[which]);

	/* a new queue table, which the monitor has not looked at so far */
	if ((TimestampTz) old == DT_NOBEGIN)
		return true;
	while (at < (TimestampTz) old)
	{
		if (pg_atomic_compare_exchange_u64(&ring->times[which], &old,
										   (uint64) at))
			return true;
	}
	return false;
}

TimestampTz
queue_ring_time(QueueRing *ring, QueueTime which)
{
	return ring == NULL ? DT_NOBEGIN :
		(TimestampTz) pg_atomic_read_u64(&ring->times[which]);
}

void
queue_ring_take_time(QueueRing *ring, QueueTime which)
{
	if (ring != NULL)
		(void) pg_atomic_exchange_u64(&ring->times[which],
									  (uint64) DT_NOEND);
}

bool
queue_ring_tell_attempts(QueueRing *ring)
{
	return ring == NULL ||
		pg_atomic_exchange_u32(&ring->attempts_told, 1) == 0;
}

void
queue_ring_take_attempts(QueueRing *ring)
{
	if (ring != NULL)
		(void) pg_atomic_exchange_u32(&ring->attempts_told, 0);
}
