/*-------------------------------------------------------------------------
 *
 * look.h
 *	  A look at a queue in its order: floors, candidates, acceptance.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_LOOK_H
#define QUEUE_LOOK_H

#include "access/genam.h"
#include "access/relscan.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"

#include "head.h"
#include "message_store.h"
#include "xact.h"

/* What is to become of a candidate. */
typedef enum QueueVerdict
{
	QUEUE_VERDICT_DELIVER,
	QUEUE_VERDICT_EXPIRE,		/* its time is over: to the exception queue */
	QUEUE_VERDICT_EXHAUST,		/* too many failed attempts: likewise */
	QUEUE_VERDICT_PASS,			/* not available now; its owner publishes */
	QUEUE_VERDICT_STOP,			/* live but not wanted: the floor stops here */
	QUEUE_VERDICT_STICK,		/* in progress, by an owner nobody knows */
	QUEUE_VERDICT_BREAK			/* waiting: neither this nor a later one is
								 * due */
} QueueVerdict;

/* A candidate of one track, and what is known of it. */
typedef struct QueueCandidate
{
	QueueVerdict verdict;
	QueueMessage message;		/* points into the slot */
	QueueKey	key;			/* in its track */
	int32		lane;
	QueueKey	order;			/* place in the order of delivery */
	TransactionId xmin;
	bool		own;			/* inserted by this transaction */
	TransactionId owner;		/* in progress: who */
	bool		owner_is_multi;
	int32		attempts;
	TimestampTz not_before;		/* held back by a failed attempt; 0: not */
} QueueCandidate;

typedef struct QueueTrackLook
{
	QueueStore	store;
	int32		lane;
	bool		open;
	bool		with_floor;		/* floor, barrier and generation are valid */
	bool		idle;			/* the last look found nothing above the floor */
	QueueKey	floor;
	QueueKey	barrier;
	uint32		generation;
	QueueKey	start;
	QueueKey	from;			/* where the scan began */
	bool		bounded;		/* it ends at bound */
	int			bound_messages; /* so many are likely to lie before that */
	QueueKey	bound;
	bool		has_stop;
	QueueKey	stop;
	bool		has_last;		/* highest key seen */
	QueueKey	last;
	bool		has_position;	/* key at which the scan stands */
	QueueKey	position;
	bool		exhausted;
	bool		was_empty;		/* the leaf has no block */
	bool		changed;		/* rows were taken: the locks are kept */
	bool		known_empty;	/* the head says so, and hears of an insert */
	bool		has_candidate;
	IndexScanDesc scan;
	TupleTableSlot *slot;

	/* not set until the scan begins: make_track() leaves it as it is */
	QueueCandidate candidate;
	QueueScanKeys keys;
} QueueTrackLook;

typedef struct QueueLaneLook
{
	int32		priority;
	bool		visited;
	QueueTrackLook *tracks[QUEUE_TRACKS];	/* NULL: not looked at */
	QueueTrackLook *memory;		/* for all of them */
} QueueLaneLook;

/* Is this message wanted?  Called for what is live, due and unexpired. */
typedef bool (*QueueWanted) (void *context, const QueueCandidate *candidate);

typedef struct QueueLook
{
	/* set by the caller */
	const QueueDesc *queue;
	QueueLocalHead *local;		/* NULL during recovery */
	bool		changes;		/* takes or locks messages */
	bool		conditional;	/* not simply the first one */
	bool		ignore_due;		/* asked for by name: delay is no obstacle */
	bool		by_receipt;		/* nor is a lease */
	bool		waits;			/* next_due will be asked for */
	bool		only_due;		/* of those that wait, not of the ready ones */
	int			expected;		/* how many messages are likely to be wanted */
	QueueWanted wanted;			/* with conditional; may be NULL */
	void	   *context;

	/* state of the look */
	bool		active;
	bool		has_head;		/* floors and barriers are in use */
	TimestampTz now;
	TimestampTz next_due;		/* what was seen and is not due yet: when */
	bool		left;			/* something due could not be had, and nobody
								 * may tell of it */
	int64		stride;			/* of the head, when the look began */
	uint64		version;
	uint64		serial;			/* keys returned later are not seen */
	int			num_lanes;
	int			num_head_lanes;
	int			max_lanes;		/* so many have memory for their tracks */
	QueueLaneLook *lanes;
	int			num_registered;
	QueueRegistered *registered;
	bool		has_keys;		/* returned or sticky keys were there */
	SnapshotData dirty;
	MemoryContext memory;
	int			num_skipped;
	QueueHeadKey skipped[QUEUE_MAX_RETURNED + QUEUE_MAX_STICKY];
} QueueLook;

typedef enum QueueAccept
{
	QUEUE_ACCEPT_NOTHING,
	QUEUE_ACCEPT_CANDIDATE,
	QUEUE_ACCEPT_HAND,
	QUEUE_ACCEPT_AGAIN			/* look again */
} QueueAccept;

extern void queue_look_init(QueueLook *look);

/* May a track's leaf hold messages (rule S5)? */
extern bool queue_look_leaf_is_used(const QueueDesc *queue, int number);

/*
 * The next message to decide on.  CANDIDATE: *track has it.  HAND: a popped
 * key, noted in the transaction's list as in hand; queue_look_at_hand() looks
 * at it.
 */
extern QueueAccept queue_look_next(QueueLook *look, QueueTrackLook **track,
								   QueueHeadKey *hand);

/*
 * One look at a popped key.  True: *track holds it as a candidate, open until
 * queue_look_close_track().  False: it was dropped or put back.
 */
extern bool queue_look_at_hand(QueueLook *look, const QueueHeadKey *hand,
							   QueueTrackLook *track);
extern void queue_look_hand_taken(QueueLook *look, const QueueHeadKey *hand);
extern void queue_look_hand_back(QueueLook *look, const QueueHeadKey *hand);

/* The candidate was taken; or it could not be, and is looked at again. */
extern void queue_look_taken(QueueTrackLook *track);
extern void queue_look_retry(QueueLook *look, QueueTrackLook *track);
extern void queue_look_stop(QueueTrackLook *track);

typedef enum QueueRowLock
{
	QUEUE_ROW_UNLOCKED,
	QUEUE_ROW_LOCKED_BY_US,
	QUEUE_ROW_LOCKED_BY_OTHER
} QueueRowLock;

extern QueueRowLock queue_look_row_lock(TupleTableSlot *slot);

extern QueueVerdict queue_look_judge(QueueLook *look, QueueTrackLook *track);

/*
 * The registry as it is now; and whether a candidate is still what it was, by
 * the registry read now or by the one that the look has.
 */
extern void queue_look_refresh(QueueLook *look);
extern bool queue_look_is_settled(QueueLook *look, QueueTrackLook *track);
extern bool queue_look_still_settled(QueueLook *look, QueueTrackLook *track);

/* The row is ours: read its failed attempts again.  May change the verdict. */
extern void queue_look_reread_attempts(QueueLook *look,
									   QueueCandidate *candidate);

/* Is there something that could be delivered?  Needs no transaction id. */
extern bool queue_look_probe(QueueLook *look);

/* Move the floors and end the look. */
extern void queue_look_end(QueueLook *look);
extern void queue_look_close_track(QueueTrackLook *track);

#endif							/* QUEUE_LOOK_H */
