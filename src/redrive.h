/*-------------------------------------------------------------------------
 *
 * redrive.h
 *	  Send messages back from an exception queue.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_REDRIVE_H
#define QUEUE_REDRIVE_H

#include "queue.h"

/*
 * Send back messages for which the condition (NULL: all) holds, at most so
 * many, to a queue (InvalidOid: each to where it came from).  Checks rights;
 * returns how many.
 */
extern int64 queue_redrive_messages(Oid exception_queue, Oid destination,
									const char *condition,
									int64 max_messages);

#endif							/* QUEUE_REDRIVE_H */
