/*-------------------------------------------------------------------------
 *
 * attempts.h
 *	  Failed attempts that are not in the rows: counted at the end of an
 *	  aborted dequeue, which cannot write.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ATTEMPTS_H
#define QUEUE_ATTEMPTS_H

#include "nodes/pg_list.h"

#include "queue.h"

typedef struct QueueAttemptKey
{
	Oid			database;
	Oid			queue_table;
	int32		queue_id;
	int32		consumer_id;
	pg_uuid_t	msgid;
} QueueAttemptKey;

/* Where the message lay when the attempt was made. */
typedef struct QueueAttemptPlace
{
	int32		lane;
	int32		track;
	QueueKey	key;
} QueueAttemptPlace;

/* One entry, copied. */
typedef struct QueueAttempt
{
	QueueAttemptKey key;
	QueueAttemptPlace place;
	int32		attempts;
	TimestampTz not_before;
	TimestampTz recorded_at;	/* of the system's clock */
} QueueAttempt;

extern Size queue_attempts_shmem_size(int max_entries);
extern void queue_attempts_shmem_init(int max_entries, int tranche);

/* Reserve a place before a take; false: none is left, it is not counted. */
extern bool queue_attempts_reserve(void);
extern void queue_attempts_unreserve(void);

/*
 * Use up a reservation: one more attempt has failed, beside those that the
 * taker had read (attempts_before), and the message is not to be delivered
 * before the given time (0: at once).  Never fails, never allocates.
 */
extern void queue_attempts_record(const QueueAttemptKey *key,
								  const QueueAttemptPlace *place,
								  int32 attempts_before,
								  TimestampTz not_before);
extern void queue_attempts_forget(const QueueAttemptKey *key);

/* Forget it only if it is still what was copied. */
extern void queue_attempts_forget_copied(const QueueAttempt *copied);

/*
 * Copy entries of one queue table of this database, up to a limit, beginning
 * at *position, which moves on; returns how many.  *position is 0 when all
 * have been seen.
 */
extern int	queue_attempts_list(Oid queue_table, QueueAttempt *list, int max,
								int *position);

/* The queue tables of this database that have entries, palloc'd. */
extern List *queue_attempts_tables(void);

/* False if nothing is known. */
extern bool queue_attempts_find(const QueueAttemptKey *key, int32 *attempts,
								TimestampTz *not_before);
extern bool queue_attempts_is_empty(void);

/* A database has been dropped: its places are free.  Never fails. */
extern void queue_attempts_forget_database(Oid database);

/*
 * Give back the places of queue tables of this database that are gone, as the
 * callback says.  Called where reserving has failed; does nothing if that was
 * a moment ago.
 */
typedef bool (*QueueTableIsGone) (Oid queue_table);
extern void queue_attempts_sweep(QueueTableIsGone is_gone);

#endif							/* QUEUE_ATTEMPTS_H */
