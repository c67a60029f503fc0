/*-------------------------------------------------------------------------
 *
 * head.h
 *	  The head of a queue: what shared memory knows of one queue's order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_HEAD_H
#define QUEUE_HEAD_H

#include "port/atomics.h"
#include "storage/lwlock.h"

#include "key.h"
#include "queue.h"

#define QUEUE_MAX_LANES		32
#define QUEUE_MAX_RETURNED	32
#define QUEUE_MAX_STICKY	32
#define QUEUE_MAX_SUBXIDS	16

/* Does a leaf have anything in it? */
typedef enum QueueTrackState
{
	QUEUE_TRACK_UNKNOWN,		/* not looked at since the head was made */
	QUEUE_TRACK_USED,
	QUEUE_TRACK_EMPTY			/* not a block, and no insert since */
} QueueTrackState;

/* Whose head it is. */
typedef struct QueueHeadId
{
	Oid			database;
	Oid			queue_table;
	int32		queue_id;
	int32		consumer_id;
} QueueHeadId;

/* One ordered leaf as one lane sees it; protected by the head's lock. */
typedef struct QueueTrack
{
	QueueKey	floor;			/* nothing live and unpublished lies below */
	QueueKey	barrier;		/* who becomes available below it publishes */
	uint32		generation;		/* how often the floor was lowered */
} QueueTrack;

typedef struct QueueLane
{
	int32		priority;		/* 0 where the sort list has no lanes */
	QueueTrack	tracks[QUEUE_TRACKS];
} QueueLane;

/* A key in the returned or the sticky set. */
typedef struct QueueHeadKey
{
	int32		lane;			/* priority of the lane */
	int32		track;
	QueueKey	key;
	TransactionId xid;			/* sticky: who may still end */
	uint64		serial;			/* returned: when, in the head's count */
} QueueHeadKey;

/* A transaction that has work in the head and has not published it. */
typedef struct QueueRegistered
{
	int			backend;
	TransactionId xid;			/* top level */
	int			num_subxids;	/* > QUEUE_MAX_SUBXIDS: see pg_subtrans */
	TransactionId subxids[QUEUE_MAX_SUBXIDS];
} QueueRegistered;

typedef struct QueueHead
{
	LWLock		lock;

	/* atomic: moves with every change below that a scan must notice */
	pg_atomic_uint64 version;

	/* changed under the directory lock and the head's lock, read under either */
	QueueHeadId id;
	uint32		incarnation;	/* raised whenever the slot changes hands */
	bool		in_use;

	/* protected by lock */
	bool		lanes_known;	/* every priority in use has its lane */
	bool		lanes_overflow; /* more priorities than lanes: floors unused */
	uint64		fingerprints[QUEUE_TRACKS]; /* of the leaves that the floors
											 * speak of; 0: none */
	int			num_lanes;		/* sorted by priority */
	int			num_returned;
	int			num_sticky;
	int			num_registered;
	uint8		track_states[QUEUE_TRACKS]; /* QueueTrackState */
	int64		stride;			/* between messages, roughly; in sixteenths of
								 * a microsecond */
	uint64		serial;			/* how often a key was returned */
	QueueLane	lanes[QUEUE_MAX_LANES];
	QueueHeadKey returned[QUEUE_MAX_RETURNED];
	QueueHeadKey sticky[QUEUE_MAX_STICKY];
	QueueRegistered registered[FLEXIBLE_ARRAY_MEMBER];	/* one per backend */
} QueueHead;

/* How a backend refers to a head: slots are used again, so it is checked. */
typedef struct QueueHeadRef
{
	QueueHeadId id;
	int			slot;			/* -1: none known */
	uint32		incarnation;
} QueueHeadRef;

extern Size queue_head_shmem_size(int num_heads, int max_backends);
extern void queue_head_shmem_init(int num_heads, int max_backends,
								  int tranche);

/*
 * Find the head, or make it where there is room.  False: it has none.  Not to
 * be called during recovery.
 */
extern bool queue_head_find(QueueHeadRef *ref, bool create);

/*
 * Lock the head exclusively, or return NULL if the slot has changed hands.
 * Nothing but fixed memory is touched until queue_head_unlock.
 */
extern QueueHead *queue_head_lock(const QueueHeadRef *ref);
extern void queue_head_unlock(QueueHead *head);

/* The head without its lock, for its version only. */
extern QueueHead *queue_head_peek(const QueueHeadRef *ref);

/* All below: the caller holds the head's lock. */
extern QueueLane *queue_head_lane(QueueHead *head, int32 priority,
								  bool create);
extern void queue_head_reset(QueueHead *head);
extern void queue_head_reset_track(QueueHead *head, int track);
extern void queue_head_return(QueueHead *head, int32 lane, int track,
							  const QueueKey *key);
extern void queue_head_lower(QueueHead *head, int32 lane, int track,
							 const QueueKey *key);
extern bool queue_head_stick(QueueHead *head, int32 lane, int track,
							 const QueueKey *key, TransactionId xid);
extern void queue_head_forget(QueueHead *head, int32 lane, int track,
							  const QueueKey *key);
extern void queue_head_unstick(QueueHead *head, const QueueHeadKey *ended);

/*
 * The heads of this database that have sticky keys, one after the other: the
 * next one's identity, and how many.  Start with *slot = 0.  No lock is held.
 */
extern bool queue_head_next_sticky(int *slot, QueueHeadId *id, int *count);
extern void queue_head_use_track(QueueHead *head, int track);
extern void queue_head_register(QueueHead *head, TransactionId xid,
								TransactionId subxid);
extern void queue_head_leave(QueueHead *head);
extern void queue_head_leave_subxact(QueueHead *head, TransactionId subxid);
extern void queue_head_changed(QueueHead *head);

/*
 * Does the transaction that is or was known as xid still stand in this list?
 * QUEUE_REGISTERED_MAYBE only where a list of subtransactions overflowed and
 * its owner is just ending.
 */
typedef enum QueueRegisteredAnswer
{
	QUEUE_REGISTERED_NO,
	QUEUE_REGISTERED_YES,
	QUEUE_REGISTERED_MAYBE
} QueueRegisteredAnswer;

extern QueueRegisteredAnswer queue_registered_find(const QueueRegistered *list,
												   int count,
												   TransactionId xid);

/*
 * Does xid itself stand in the list?  Asked of the deleter of a row that looks
 * live: it has aborted, and is about to publish.
 */
extern bool queue_registered_has(const QueueRegistered *list, int count,
								 TransactionId xid);

#endif							/* QUEUE_HEAD_H */
