/*-------------------------------------------------------------------------
 *
 * key.h
 *	  Comparison and successor of ordering keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_KEY_H
#define QUEUE_KEY_H

#include "port/pg_bswap.h"

#include "queue.h"

/* as memcmp() orders them */
static inline int
queue_msgid_cmp(const pg_uuid_t *a, const pg_uuid_t *b)
{
	uint64		x;
	uint64		y;

	memcpy(&x, &a->data[0], sizeof(x));
	memcpy(&y, &b->data[0], sizeof(y));
	if (x == y)
	{
		memcpy(&x, &a->data[8], sizeof(x));
		memcpy(&y, &b->data[8], sizeof(y));
		if (x == y)
			return 0;
	}
	return pg_ntoh64(x) < pg_ntoh64(y) ? -1 : 1;
}

static inline int
queue_key_cmp(const QueueKey *a, const QueueKey *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return queue_msgid_cmp(&a->msgid, &b->msgid);
}

static inline void
queue_key_set_min(QueueKey *key)
{
	key->major = PG_INT64_MIN;
	key->minor = PG_INT32_MIN;
	memset(key->msgid.data, 0, UUID_LEN);
}

static inline bool
queue_key_is_min(const QueueKey *key)
{
	return key->major == PG_INT64_MIN;
}

static inline void
queue_key_set_max(QueueKey *key)
{
	key->major = PG_INT64_MAX;
	key->minor = PG_INT32_MAX;
	memset(key->msgid.data, 0xFF, UUID_LEN);
}

/* The next key after *key: nothing lies between the two. */
static inline void
queue_key_set_succ(QueueKey *result, const QueueKey *key)
{
	*result = *key;
	for (int i = UUID_LEN - 1; i >= 0; i--)
	{
		if (++result->msgid.data[i] != 0)
			return;
	}
	/* all bits were set: stay at the last one */
	memset(result->msgid.data, 0xFF, UUID_LEN);
}

static inline const QueueKey *
queue_key_lower(const QueueKey *a, const QueueKey *b)
{
	return queue_key_cmp(a, b) <= 0 ? a : b;
}

static inline const QueueKey *
queue_key_higher(const QueueKey *a, const QueueKey *b)
{
	return queue_key_cmp(a, b) >= 0 ? a : b;
}

#endif							/* QUEUE_KEY_H */
