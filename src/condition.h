/*-------------------------------------------------------------------------
 *
 * condition.h
 *	  Conditions of dequeue and purge: an SQL boolean over a message.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_CONDITION_H
#define QUEUE_CONDITION_H

#include "message_store.h"

typedef struct QueueCondition QueueCondition;

/*
 * Prepare a condition for the messages of a queue table.  It may name the
 * columns of the queue's view and Oracle's (msgid, priority, correlation or
 * corrid, enq_time, delay, expiration, state, retry_count, properties,
 * payload, tab.user_data ...).  It is parsed as one expression and run with
 * the caller's rights.  Allocated in the current context, or kept for the
 * session where a plan is cached.
 */
extern QueueCondition *queue_condition_prepare(const QueueTable *table,
											   const char *text);

/* Is it true (not false, not NULL)?  Errors of the expression pass through. */
extern bool queue_condition_matches(QueueCondition *condition,
									const QueueTable *table,
									const QueueMessage *message);

#endif							/* QUEUE_CONDITION_H */
