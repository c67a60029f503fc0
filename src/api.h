/*-------------------------------------------------------------------------
 *
 * api.h
 *	  What the SQL-callable functions of enqueue and dequeue share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_API_H
#define QUEUE_API_H

#include "fmgr.h"

#include "queue.h"

/* A word that an argument may have, in any case, and what it means. */
typedef struct QueueWord
{
	const char *word;
	int			value;
} QueueWord;

/*
 * The meaning of a word; ERROR 22023 with the allowed ones in the hint if it
 * is none of them.
 */
extern int	queue_api_word(const char *argument, Datum value,
						   const QueueWord *words, int num_words);

/*
 * The lease argument; ERROR 22004 if it is NULL, 22023 unless it is finite and
 * greater than zero.
 */
extern void queue_api_lease(FunctionCallInfo fcinfo, int argno,
							Interval *lease);

/* The queue argument; ERROR 22004 if it is NULL. */
extern Oid	queue_api_queue(FunctionCallInfo fcinfo, int argno);

/*
 * Visibility of an enqueue or dequeue: on_commit, or immediate outside a
 * transaction block, where it is the same.
 */
extern void queue_api_check_visibility(Datum value);

#endif							/* QUEUE_API_H */
