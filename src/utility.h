/*-------------------------------------------------------------------------
 *
 * utility.h
 *	  Commands of the server that workers must know of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_UTILITY_H
#define QUEUE_UTILITY_H

extern void queue_utility_init(void);

#endif							/* QUEUE_UTILITY_H */
