/*-------------------------------------------------------------------------
 *
 * key.h
 *	  Comparison and successor of ordering keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_KEY_H
#define QUEUE_KEY_H

#include "queue.h"

static inline int
queue_key_cmp(const QueueKey *a, const QueueKey *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return memcmp(a->msgid.data, b->msgid.data, UUID_LEN);
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
