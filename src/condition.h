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
 * ERROR unless a text is one SQL expression, which can stand in a query in
 * parentheses and does not end them.
 */
extern void queue_condition_check(const char *text);

/*
 * Between the two, errors found in a query that contains a condition, behind
 * these words, are shown as errors in the condition.  Only for parsing and
 * preparing: what runs may have errors with queries of their own.
 */
#define QUEUE_CONDITION_WHERE	"WHERE (\n"

typedef struct QueueConditionErrors
{
	ErrorContextCallback callback;
	const char *text;
	int			prefix;			/* characters before it in the query */
} QueueConditionErrors;

extern void queue_condition_begin_errors(QueueConditionErrors *errors,
										 const char *text,
										 const char *query);
extern void queue_condition_end_errors(QueueConditionErrors *errors);

/*
 * Prepare a condition for the messages of a queue.  It may name the
 * columns of the queue's view and Oracle's (msgid, priority, correlation or
 * corrid, enq_time, delay, expiration, state, retry_count, properties,
 * payload, tab.user_data ...).  It is parsed as one expression and run with
 * the caller's rights.  Allocated in the current context, or kept for the
 * session where a plan is cached.
 */
extern QueueCondition *queue_condition_prepare(const QueueDesc *queue,
											   const char *text);

/* Is it true (not false, not NULL)?  Errors of the expression pass through. */
extern bool queue_condition_matches(QueueCondition *condition,
									const QueueTable *table,
									const QueueMessage *message);

#endif							/* QUEUE_CONDITION_H */
