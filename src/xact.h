/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  What this transaction has done to heads, and its publication.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_XACT_H
#define QUEUE_XACT_H

#include "access/xact.h"

#include "attempts.h"
#include "head.h"
#include "ring.h"

typedef enum QueueTouchKind
{
	QUEUE_TOUCH_INSERTED,		/* published if the transaction commits */
	QUEUE_TOUCH_TAKEN,			/* deleted: published if it aborts */
	QUEUE_TOUCH_LOCKED,			/* stays live: published in any case */
	QUEUE_TOUCH_HAND			/* popped, not decided: published in any case */
} QueueTouchKind;

/* One key that this transaction has touched. */
typedef struct QueueTouch
{
	QueueTouchKind kind;
	SubTransactionId subid;
	SubTransactionId taken_by;	/* inserted: subtransaction that took it again */
	bool		collapsed;		/* key is the lowest of several */
	bool		reserved;		/* taken: a place for a failed attempt */
	bool		made;			/* taken: the delete was done */
	bool		own;			/* taken: inserted by this transaction */
	int32		lane;
	int32		track;
	int32		attempts;		/* taken: failed attempts before this one */
	int64		retry_delay;	/* taken: microseconds; -1 for ever */
	QueueKey	key;
} QueueTouch;

/* What this transaction has done in one head. */
typedef struct QueueLocalHead
{
	QueueHeadRef ref;
	bool		registered;
	SubTransactionId registered_subid;	/* last one made known */
	uint32		used_tracks;	/* bits: known to the head as in use */
	QueueRing  *ring;			/* of the queue table; NULL: none, or no need */
	TimestampTz next_expiry;	/* first of what was inserted; DT_NOEND */
	TimestampTz next_purge;		/* first of what went into the journal */
	int			num_own;		/* inserted and locked entries */
	int			num_touches;
	int			max_touches;
	QueueTouch *touches;		/* sorted by subid */
	bool		has_ahead;		/* something was read ahead */
	struct QueueAhead *ahead;	/* what; NULL: nothing so far */
	struct QueueLocalHead *next;
} QueueLocalHead;

/* This transaction's state for a head; made where there is none. */
extern QueueLocalHead *queue_xact_head(const QueueHeadId *id);

/* Enter the head's registry (rule O1).  Assigns a transaction id. */
extern void queue_xact_register(QueueLocalHead *local);

/* As above, where the caller holds the lock and has assigned the ids. */
extern void queue_xact_register_locked(QueueLocalHead *local,
									   QueueHead *head);

/* Make a list entry before the change itself (rule O2). */
extern QueueTouch *queue_xact_touch(QueueLocalHead *local,
									QueueTouchKind kind, int32 lane,
									int track, const QueueKey *key);

/* Memory for n more entries, so that the next touches cannot fail. */
extern void queue_xact_reserve(QueueLocalHead *local, int n);

/*
 * The change was made for which this key was noted; the executor may have
 * fired our own trigger, which noted it once more.
 */
extern void queue_xact_confirm(QueueLocalHead *local, int32 lane, int track,
							   const QueueKey *key);

/* Take the newest entry back: the change was not made. */
extern void queue_xact_untouch(QueueLocalHead *local);

/* An own insert was deleted again by this transaction. */
extern void queue_xact_mark_own_taken(QueueLocalHead *local, int32 lane,
									  int track, const QueueKey *key);

/* Tell the head that a track is about to be inserted into. */
extern void queue_xact_use_track(QueueLocalHead *local, int track);

extern void queue_xact_init(void);

#endif							/* QUEUE_XACT_H */
