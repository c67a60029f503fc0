/*-------------------------------------------------------------------------
 *
 * table_state.h
 *	  What a job of the monitor keeps of each queue table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_TABLE_STATE_H
#define QUEUE_TABLE_STATE_H

#include "nodes/pg_list.h"
#include "utils/hsearch.h"

#include "worker.h"

/*
 * A queue table's state, which begins with its OID; zeroed when it is new.  The
 * table of states is made at the first use, and lasts as long as the session.
 */
extern void *queue_table_state(HTAB **states, const char *name, Size size,
							   Oid queue_table);

/* Forget those of queue tables that are not in the list. */
extern void queue_table_state_prune(HTAB *states, List *queue_tables,
									void (*forget) (void *state));

/*
 * One queue table's turn of a job.  An error is contained, so that the others
 * go on: returns for how many milliseconds to leave the table alone, or 0 and
 * in *next what the turn has returned.  table_name is for errors; the turn
 * fills it in.
 */
extern int	queue_table_state_run(const char *job, char *table_name,
								  QueueWorkerErrors *errors,
								  TimestampTz (*turn) (void *state),
								  void *state, TimestampTz *next);

/* The queue tables, in the current context; in a transaction of its own. */
extern List *queue_table_state_list(void);

#endif							/* QUEUE_TABLE_STATE_H */
