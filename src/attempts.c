/*-------------------------------------------------------------------------
 *
 * attempts.c
 *	  Failed attempts that are not in the rows.
 *
 * An aborted dequeue is a failed attempt, and is recorded by the callback at
 * the end of the transaction, which cannot write rows.  So shared memory
 * holds, for each message concerned, the absolute number of attempts and the
 * time before which it must not be delivered; whoever takes the message reads
 * the larger of this and its row.  Each failed attempt adds one to the larger
 * of what is here and what its taker had read: an aborted take is live for
 * others a moment before it is recorded, so the next taker may have read a
 * number that is one short.  What a crash of the server loses was lost to a crash, and is
 * by definition not counted.
 *
 * The memory is a fixed hash table with a free list.  A place is reserved
 * before each take, so that recording at the end always finds one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/atomics.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "attempts.h"

/* so many queue tables are told of at a time, or swept, and no sooner than this again */
#define MAX_SWEPT_TABLES	64
#define SWEEP_INTERVAL_MS	10000

typedef struct AttemptEntry
{
	QueueAttempt attempt;
	int32		next;			/* in its chain, or in the free list; -1 ends */
} AttemptEntry;

typedef struct QueueAttempts
{
	/* atomic, any backend: places in use or reserved */
	pg_atomic_uint32 claimed;

	/* atomic, read without the lock: places in use */
	pg_atomic_uint32 used;

	/* immutable after start */
	int			max_entries;
	int			num_buckets;	/* a power of two */

	LWLock		lock;

	/* protected by lock */
	int32		free_head;
	AttemptEntry entries[FLEXIBLE_ARRAY_MEMBER];
	/* followed by int32 buckets[num_buckets], protected by lock */
} QueueAttempts;

static QueueAttempts *attempts_table = NULL;
static int32 *attempts_buckets = NULL;

static int
count_buckets(int max_entries)
{
	int			n = 64;

	while (n < max_entries)
		n *= 2;
	return n;
}

static Size
size_of_entries(int max_entries)
{
	return MAXALIGN(add_size(offsetof(QueueAttempts, entries),
							 mul_size(max_entries, sizeof(AttemptEntry))));
}

Size
queue_attempts_shmem_size(int max_entries)
{
	return add_size(size_of_entries(max_entries),
					mul_size(count_buckets(max_entries), sizeof(int32)));
}

void
queue_attempts_shmem_init(int max_entries, int tranche)
{
	bool		found;

	attempts_table = ShmemInitStruct("queue failed attempts",
									 queue_attempts_shmem_size(max_entries),
									 &found);
	attempts_buckets = (int32 *) ((char *) attempts_table +
								  size_of_entries(max_entries));
	if (found)
		return;

	pg_atomic_init_u32(&attempts_table->claimed, 0);
	pg_atomic_init_u32(&attempts_table->used, 0);
	attempts_table->max_entries = max_entries;
	attempts_table->num_buckets = count_buckets(max_entries);
	LWLockInitialize(&attempts_table->lock, tranche);
	for (int i = 0; i < max_entries; i++)
		attempts_table->entries[i].next = i + 1 < max_entries ? i + 1 : -1;
	attempts_table->free_head = 0;
	for (int i = 0; i < attempts_table->num_buckets; i++)
		attempts_buckets[i] = -1;
}

bool
queue_attempts_reserve(void)
{
	uint32		claimed = pg_atomic_read_u32(&attempts_table->claimed);

	while (claimed < (uint32) attempts_table->max_entries)
	{
		if (pg_atomic_compare_exchange_u32(&attempts_table->claimed,
										   &claimed, claimed + 1))
			return true;
	}
	return false;
}

void
queue_attempts_unreserve(void)
{
	pg_atomic_fetch_sub_u32(&attempts_table->claimed, 1);
}

/* The link that points to the key's entry, or to where its chain ends. */
static int32 *
find_link(const QueueAttemptKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) key, sizeof(*key));
	int32	   *link;

	Assert(LWLockHeldByMe(&attempts_table->lock));

	link = &attempts_buckets[hash & (attempts_table->num_buckets - 1)];
	while (*link >= 0 &&
		   memcmp(&attempts_table->entries[*link].attempt.key, key, sizeof(*key)) != 0)
		link = &attempts_table->entries[*link].next;
	return link;
}

void
queue_attempts_record(const QueueAttemptKey *key,
					  const QueueAttemptPlace *place, int32 attempts_before,
					  TimestampTz not_before)
{
	TimestampTz now = GetCurrentTimestamp();
	int32	   *link;
	AttemptEntry *entry;

	LWLockAcquire(&attempts_table->lock, LW_EXCLUSIVE);
	link = find_link(key);
	if (*link >= 0)
	{
		/* it has a place already: give the reserved one back */
		entry = &attempts_table->entries[*link];
		pg_atomic_fetch_sub_u32(&attempts_table->claimed, 1);
	}
	else
	{
		int32		free = attempts_table->free_head;

		entry = &attempts_table->entries[free];
		attempts_table->free_head = entry->next;
		entry->attempt.key = *key;
		entry->attempt.attempts = 0;
		entry->next = -1;
		*link = free;
		pg_atomic_fetch_add_u32(&attempts_table->used, 1);
	}
	entry->attempt.attempts = Max(entry->attempt.attempts,
								  attempts_before) + 1;
	entry->attempt.not_before = not_before;
	entry->attempt.place = *place;
	entry->attempt.recorded_at = now;
	LWLockRelease(&attempts_table->lock);
}

/* Take an entry out of its chain; the caller holds the lock exclusively. */
static void
free_entry(int32 *link)
{
	int32		gone = *link;

	*link = attempts_table->entries[gone].next;
	attempts_table->entries[gone].next = attempts_table->free_head;
	attempts_table->free_head = gone;
	pg_atomic_fetch_sub_u32(&attempts_table->used, 1);
	pg_atomic_fetch_sub_u32(&attempts_table->claimed, 1);
}

void
queue_attempts_forget(const QueueAttemptKey *key)
{
	int32	   *link;

	if (queue_attempts_is_empty())
		return;

	LWLockAcquire(&attempts_table->lock, LW_EXCLUSIVE);
	link = find_link(key);
	if (*link >= 0)
		free_entry(link);
	LWLockRelease(&attempts_table->lock);
}

void
queue_attempts_forget_copied(const QueueAttempt *copied)
{
	int32	   *link;

	LWLockAcquire(&attempts_table->lock, LW_EXCLUSIVE);
	link = find_link(&copied->key);
	if (*link >= 0 &&
		attempts_table->entries[*link].attempt.attempts == copied->attempts &&
		attempts_table->entries[*link].attempt.recorded_at ==
		copied->recorded_at)
		free_entry(link);
	LWLockRelease(&attempts_table->lock);
}

int
queue_attempts_list(Oid queue_table, QueueAttempt *list, int max,
					int *position)
{
	int			count = 0;

	LWLockAcquire(&attempts_table->lock, LW_SHARED);
	for (; *position < attempts_table->num_buckets && count < max;
		 (*position)++)
	{
		for (int32 e = attempts_buckets[*position]; e >= 0 && count < max;
			 e = attempts_table->entries[e].next)
		{
			const QueueAttempt *attempt = &attempts_table->entries[e].attempt;

			if (attempt->key.database == MyDatabaseId &&
				attempt->key.queue_table == queue_table)
				list[count++] = *attempt;
		}
	}
	if (*position == attempts_table->num_buckets)
		*position = 0;
	LWLockRelease(&attempts_table->lock);
	return count;
}

bool
queue_attempts_find(const QueueAttemptKey *key, int32 *attempts,
					TimestampTz *not_before)
{
	int32		found;

	if (queue_attempts_is_empty())
		return false;

	LWLockAcquire(&attempts_table->lock, LW_SHARED);
	found = *find_link(key);
	if (found >= 0)
	{
		*attempts = attempts_table->entries[found].attempt.attempts;
		*not_before = attempts_table->entries[found].attempt.not_before;
	}
	LWLockRelease(&attempts_table->lock);

	return found >= 0;
}

bool
queue_attempts_is_empty(void)
{
	return pg_atomic_read_u32(&attempts_table->used) == 0;
}

/* The queue tables of this database that have entries, up to a limit. */
static int
list_tables(Oid *tables)
{
	int			count = 0;

	LWLockAcquire(&attempts_table->lock, LW_SHARED);
	for (int b = 0; b < attempts_table->num_buckets; b++)
	{
		for (int32 e = attempts_buckets[b]; e >= 0;
			 e = attempts_table->entries[e].next)
		{
			const QueueAttemptKey *key = &attempts_table->entries[e].attempt.key;
			int			i = 0;

			if (key->database != MyDatabaseId)
				continue;
			while (i < count && tables[i] != key->queue_table)
				i++;
			if (i == count && count < MAX_SWEPT_TABLES)
				tables[count++] = key->queue_table;
		}
	}
	LWLockRelease(&attempts_table->lock);
	return count;
}

List *
queue_attempts_tables(void)
{
	Oid			tables[MAX_SWEPT_TABLES];
	int			count = list_tables(tables);
	List	   *result = NIL;

	for (int i = 0; i < count; i++)
		result = lappend_oid(result, tables[i]);
	return result;
}

/* Give back the places of a queue table, or of all of a database. */
static void
forget_entries(Oid database, Oid queue_table)
{
	LWLockAcquire(&attempts_table->lock, LW_EXCLUSIVE);
	for (int b = 0; b < attempts_table->num_buckets; b++)
	{
		int32	   *link = &attempts_buckets[b];

		while (*link >= 0)
		{
			AttemptEntry *entry = &attempts_table->entries[*link];

			if (entry->attempt.key.database != database ||
				(OidIsValid(queue_table) &&
				 entry->attempt.key.queue_table != queue_table))
			{
				link = &entry->next;
				continue;
			}
			free_entry(link);
		}
	}
	LWLockRelease(&attempts_table->lock);
}

void
queue_attempts_forget_database(Oid database)
{
	if (!queue_attempts_is_empty())
		forget_entries(database, InvalidOid);
}

void
queue_attempts_sweep(QueueTableIsGone is_gone)
{
	static TimestampTz last_sweep = 0;
	TimestampTz now = GetCurrentTimestamp();
	Oid			tables[MAX_SWEPT_TABLES];
	int			count;

	if (!TimestampDifferenceExceeds(last_sweep, now, SWEEP_INTERVAL_MS))
		return;
	last_sweep = now;
	count = list_tables(tables);
	for (int i = 0; i < count; i++)
	{
		if (is_gone(tables[i]))
			forget_entries(MyDatabaseId, tables[i]);
	}
}
