/*-------------------------------------------------------------------------
 *
 * wakeup.h
 *	  Sessions that wait for messages, and how they are woken.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_WAKEUP_H
#define QUEUE_WAKEUP_H

#include "head.h"

/* how many queues one session can wait for at a time */
#define QUEUE_MAX_LISTENED	64

/* every waiter of a queue */
#define QUEUE_WAKE_ALL		PG_INT32_MAX

extern Size queue_wakeup_shmem_size(int max_backends);
extern void queue_wakeup_shmem_init(int max_backends, int tranche);
extern void queue_wakeup_init(void);

/* When a wait that begins now ends. */
extern TimestampTz queue_wakeup_deadline(bool forever,
										 const Interval *timeout);

/*
 * Become a waiter of these queues (rule W1); look after this, not before.
 * conditional: wants certain messages only, and is woken for each.
 */
extern void queue_wakeup_register(const QueueHeadId *ids, const Oid *views,
								  int count, bool conditional);

/*
 * Sleep until woken, or until a time (DT_NOEND: none).  The session is no
 * waiter any more then; woken or not, it has to look.  Errors come from
 * CHECK_FOR_INTERRUPTS.
 */
extern bool queue_wakeup_sleep(TimestampTz until);

/*
 * What the session was woken for last has been looked for, by itself or, after
 * queue_wakeup_promise(), by a later call for that queue.
 */
extern void queue_wakeup_looked(void);
extern void queue_wakeup_promise(void);
extern void queue_wakeup_keep_promise(const QueueHeadId *id);

/*
 * Be a waiter no more.  satisfied: a message was found; else a wake-up that
 * has come is handed on (W4).
 */
extern void queue_wakeup_leave(bool satisfied);

/*
 * So many messages of a queue have become available (W2).  Fixed memory, no
 * error: called at the end of a transaction, after publication.
 */
extern void queue_wakeup_wake(const QueueHeadId *id, int32 count);

/*
 * When this transaction commits, wake all who wait for a queue with this view
 * or in this queue table; InvalidOid: all of this database.
 */
extern void queue_wakeup_at_commit(Oid relation);

/* When this transaction ends, wake those who wait for what was prepared. */
extern void queue_wakeup_after_prepared(void);

/* For views: one waiter's entry; false if there is none at this place. */
typedef struct QueueWaiterInfo
{
	QueueHeadId id;
	Oid			view;
	int			pid;
	bool		conditional;
	TimestampTz since;
} QueueWaiterInfo;

extern int	queue_wakeup_num_entries(void);
extern bool queue_wakeup_info(int entry, QueueWaiterInfo *info);
extern int	queue_wakeup_count(const QueueHeadId *id);

#endif							/* QUEUE_WAKEUP_H */
