/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Current time, and the hybrid clock that gives message ids.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_CLOCK_H
#define QUEUE_CLOCK_H

#include "queue.h"

/* Wall clock; replaceable in tests through queue.debug_clock_offset. */
extern TimestampTz queue_clock_now(void);

/*
 * The next tick: max(now, last + 1) in microseconds, strictly increasing in
 * the whole server, also when the system's clock steps back.
 */
extern TimestampTz queue_clock_tick(void);

/* Raise the clock to at least this time. */
extern void queue_clock_raise(TimestampTz at_least);

/*
 * UUIDv7 (RFC 9562, method 3) of a time: 48 bits of milliseconds since the
 * Unix epoch, the microseconds in rand_a, the rest random, or all zero in
 * the lowest one of that time.
 */
extern void queue_clock_msgid(pg_uuid_t *msgid, TimestampTz at);
extern void queue_clock_lowest_msgid(pg_uuid_t *msgid, TimestampTz at);

/* The time in a message id. */
extern TimestampTz queue_clock_msgid_time(const pg_uuid_t *msgid);

/*
 * An interval's length in microseconds, months as 30 days, days as 24 hours;
 * the largest possible where it is more than that.
 */
extern int64 queue_interval_to_usecs(const Interval *interval);

/* -1, 0 or 1, as PostgreSQL compares intervals. */
extern int	queue_interval_sign(const Interval *interval);

/* from + interval; ERROR 22008, naming the option, if that is no time. */
extern TimestampTz queue_interval_add(TimestampTz from,
									  const Interval *interval,
									  const char *option);

#endif							/* QUEUE_CLOCK_H */
