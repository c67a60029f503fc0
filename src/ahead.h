/*-------------------------------------------------------------------------
 *
 * ahead.h
 *	  Messages read ahead, for the next call of the same transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_AHEAD_H
#define QUEUE_AHEAD_H

#include "look.h"

/* How many messages a look should expect to be wanted after its first. */
extern int	queue_ahead_expected(const QueueLocalHead *local);

/*
 * The look is about to end; track's candidate was the last one taken.
 * Remember what follows it, if that is what a next look would find.
 */
extern void queue_ahead_note(QueueLook *look, QueueTrackLook *track);

/*
 * The next message that was read ahead.  True: *track holds it as a
 * candidate, accepted, open until queue_look_close_track().  False: there is
 * none that can be trusted, a look is needed.  The look is not active.
 */
extern bool queue_ahead_next(QueueLook *look, QueueTrackLook *track);

/* It could not be taken. */
extern void queue_ahead_drop(QueueLocalHead *local);

#endif							/* QUEUE_AHEAD_H */
