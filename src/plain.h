/*-------------------------------------------------------------------------
 *
 * plain.h
 *	  Calls of queue.enqueue() and queue.dequeue() that give little.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_PLAIN_H
#define QUEUE_PLAIN_H

/* The functions that have a plain form. */
typedef enum QueuePlainCall
{
	QUEUE_PLAIN_DEQUEUE,
	QUEUE_PLAIN_ENQUEUE_TEXT,
	QUEUE_PLAIN_ENQUEUE_ANY
} QueuePlainCall;

#define QUEUE_NUM_PLAIN_CALLS	(QUEUE_PLAIN_ENQUEUE_ANY + 1)

/*
 * May the current user execute the function that the plain one stands for?
 * ERROR 42501 if not.
 */
extern void queue_plain_check_execute(QueuePlainCall call);

#endif							/* QUEUE_PLAIN_H */
