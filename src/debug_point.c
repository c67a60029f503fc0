/*-------------------------------------------------------------------------
 *
 * debug_point.c
 *	  Named points at which a test can hold a session.
 *
 * A session lists points in queue.debug_points; at each it takes, and gives
 * back, the advisory lock (81, hashtext(name)) in share mode.  A test that
 * holds the lock exclusively stops it there, and the isolation tester sees it
 * wait.  The lock is a session lock, which needs no resource owner, so a
 * point may also lie in the callback at the end of a transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "debug_point.h"

#ifdef QUEUE_DEBUG

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "guc.h"

#define DEBUG_POINT_CLASS	81

/* is name in the comma-separated list? */
static bool
list_contains(const char *list, const char *name)
{
	size_t		len = strlen(name);
	const char *p = list;

	while (p != NULL && *p != '\0')
	{
		while (*p == ' ' || *p == ',')
			p++;
		if (strncmp(p, name, len) == 0 &&
			(p[len] == '\0' || p[len] == ',' || p[len] == ' '))
			return true;
		p = strchr(p, ',');
	}
	return false;
}

void
queue_debug_point_reach(const char *name)
{
	LOCKTAG		tag;

	if (queue_guc_debug_points == NULL || queue_guc_debug_points[0] == '\0')
		return;
	if (!list_contains(queue_guc_debug_points, name))
		return;

	/* the key that pg_advisory_lock(81, hashtext(name)) has */
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, DEBUG_POINT_CLASS,
						 hash_bytes((const unsigned char *) name,
									strlen(name)),
						 2);
	(void) LockAcquire(&tag, ShareLock, true, false);
	LockRelease(&tag, ShareLock, true);
}

#endif							/* QUEUE_DEBUG */
