/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  Current time, and the hybrid clock that gives message ids.
 *
 * One value is a message's identity, enqueue time and place in the queue: a
 * UUIDv7 whose time is strictly increasing.  The clock is one word of shared
 * memory, moved by compare-and-swap to max(now, last + 1).  It starts at zero
 * when the server starts; whoever first enqueues into a queue table raises it
 * above everything that is stored there (message_store.c), so that the order
 * survives a system clock that was set back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "common/pg_prng.h"
#include "datatype/timestamp.h"
#include "port/pg_bswap.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "guc.h"
#include "shmem.h"

/* from the Unix epoch to PostgreSQL's, in microseconds */
#define EPOCH_DIFFERENCE \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

TimestampTz
queue_clock_now(void)
{
#ifdef QUEUE_DEBUG
	return GetCurrentTimestamp() + (int64) queue_guc_debug_clock_offset;
#else
	return GetCurrentTimestamp();
#endif
}

TimestampTz
queue_clock_tick(void)
{
	pg_atomic_uint64 *clock = &queue_shmem->clock;
	uint64		now = (uint64) queue_clock_now();
	uint64		last = pg_atomic_read_u64(clock);
	uint64		next;

	do
	{
		next = now > last ? now : last + 1;
	} while (!pg_atomic_compare_exchange_u64(clock, &last, next));

	return (TimestampTz) next;
}

void
queue_clock_raise(TimestampTz at_least)
{
	pg_atomic_uint64 *clock = &queue_shmem->clock;
	uint64		last = pg_atomic_read_u64(clock);

	while (last < (uint64) at_least &&
		   !pg_atomic_compare_exchange_u64(clock, &last, (uint64) at_least))
		;
}

/* The 60 bits of time, with version and variant; the rest stays zero. */
void
queue_clock_lowest_msgid(pg_uuid_t *msgid, TimestampTz at)
{
	uint64		unix_us = (uint64) (at + EPOCH_DIFFERENCE);
	uint64		high;

	/* 48 bits of milliseconds, 4 of version, 12 of microseconds */
	high = pg_hton64((unix_us / 1000) << 16 | 0x7000 | unix_us % 1000);
	memset(msgid->data, 0, UUID_LEN);
	memcpy(msgid->data, &high, sizeof(high));
	msgid->data[8] = 0x80;
}

void
queue_clock_msgid(pg_uuid_t *msgid, TimestampTz at)
{
	uint64		random = pg_prng_uint64(&pg_global_prng_state);

	queue_clock_lowest_msgid(msgid, at);
	memcpy(&msgid->data[8], &random, sizeof(random));
	msgid->data[8] = (msgid->data[8] & 0x3F) | 0x80;
}

TimestampTz
queue_clock_msgid_time(const pg_uuid_t *msgid)
{
	uint64		high;

	memcpy(&high, msgid->data, sizeof(high));
	high = pg_ntoh64(high);

	return (TimestampTz) ((high >> 16) * 1000 + (high & 0x0FFF)) -
		EPOCH_DIFFERENCE;
}

int64
queue_interval_to_usecs(const Interval *interval)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		result;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &result) ||
		pg_add_s64_overflow(result, interval->time, &result))
		return PG_INT64_MAX / 4;
	return Min(result, PG_INT64_MAX / 4);
}

int
queue_interval_sign(const Interval *interval)
{
	Interval	zero;

	/* the usual case: no days, no months */
	if (interval->day == 0 && interval->month == 0)
		return interval->time < 0 ? -1 : interval->time > 0;
	memset(&zero, 0, sizeof(zero));
	return DatumGetInt32(DirectFunctionCall2(interval_cmp,
											 IntervalPGetDatum(interval),
											 IntervalPGetDatum(&zero)));
}

TimestampTz
queue_interval_add(TimestampTz from, const Interval *interval,
				   const char *option)
{
	TimestampTz result;

	result = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
													 TimestampTzGetDatum(from),
													 IntervalPGetDatum(interval)));
	if (TIMESTAMP_NOT_FINITE(result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("%s is out of range", option)));
	return result;
}
