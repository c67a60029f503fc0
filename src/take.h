/*-------------------------------------------------------------------------
 *
 * take.h
 *	  Take one row of a queue: lock or delete it, and find where it goes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_TAKE_H
#define QUEUE_TAKE_H

#include "access/tableam.h"

#include "look.h"

/*
 * Rule D6, for the row in the track's slot.  TM_Ok: it is ours; nothing is
 * waited for.  Needs an active snapshot.
 */
extern TM_Result queue_take_lock(QueueTrackLook *track);
extern TM_Result queue_take_delete(const QueueDesc *queue,
								   QueueTrackLook *track);

/*
 * The whole of it for a candidate that is no delivery: noted (rule O2), deleted,
 * confirmed; no failed attempt is counted if it is rolled back.
 */
extern TM_Result queue_take_row(QueueLook *look, QueueTrackLook *track);

/*
 * The relation with this qualified name, as messages have it, or InvalidOid.
 * The producer may name it; the consumer who comes by needs no rights there.
 */
extern Oid	queue_take_find_named(const char *name);

/* The exception queue a message goes to: its own, else the table's. */
extern QueueDesc *queue_take_exception_queue(const QueueDesc *queue,
											 const QueueMessage *message);

#endif							/* QUEUE_TAKE_H */
