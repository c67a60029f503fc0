/*-------------------------------------------------------------------------
 *
 * debug_point.h
 *	  Named points at which a test can hold a session.
 *
 * Compiled out of release builds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_DEBUG_POINT_H
#define QUEUE_DEBUG_POINT_H

#ifdef QUEUE_DEBUG
extern void queue_debug_point_reach(const char *name);

#define DEBUG_POINT(name)	queue_debug_point_reach(name)
#else
#define DEBUG_POINT(name)	((void) 0)
#endif

#endif							/* QUEUE_DEBUG_POINT_H */
