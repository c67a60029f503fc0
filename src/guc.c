/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  Settings, in alphabetical order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "utils/guc.h"

#include "guc.h"
#include "head.h"

#define MIN_HEADS			16
#define DEFAULT_HEADS		256
#define MAX_HEADS			65536
#define MIN_SEGMENT_BLOCKS		1
#define DEFAULT_SEGMENT_BLOCKS	(16 * 1024 * 1024 / BLCKSZ)
#define MAX_SEGMENT_BLOCKS		(1024 * 1024 * 1024 / BLCKSZ)
#define MIN_ATTEMPTS		100
#define DEFAULT_ATTEMPTS	10000
#define MAX_ATTEMPTS		10000000
#define MIN_MONITORS		1
#define DEFAULT_MONITORS	32
#define MAX_MONITORS		4096
#define MIN_NAPTIME_S		1
#define DEFAULT_NAPTIME_S	60
#define MAX_NAPTIME_S		86400

int			queue_guc_max_heads = DEFAULT_HEADS;
int			queue_guc_max_failed_attempts = DEFAULT_ATTEMPTS;
bool		queue_guc_rotation = true;
int			queue_guc_segment_blocks = DEFAULT_SEGMENT_BLOCKS;
int			queue_guc_max_monitors = DEFAULT_MONITORS;
bool		queue_guc_monitor = true;
int			queue_guc_monitor_naptime = DEFAULT_NAPTIME_S;
bool		queue_guc_use_heads = true;
int			queue_guc_returned_keys = QUEUE_MAX_RETURNED;
char	   *queue_guc_debug_points = NULL;
double		queue_guc_debug_clock_offset = 0;
char	   *queue_guc_debug_job_error = NULL;

#ifdef QUEUE_DEBUG
static void
define_debug_settings(void)
{
	DefineCustomRealVariable("queue.debug_clock_offset",
							 "Microseconds added to the queue's clock.",
							 "For tests: moves the clock that orders, delays and expires messages.",
							 &queue_guc_debug_clock_offset,
							 0, -1e18, 1e18,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("queue.debug_job_error",
							   "Message with which a job of every monitor fails.",
							   "For tests: empty: it does not fail.",
							   &queue_guc_debug_job_error,
							   "",
							   PGC_SIGHUP, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	DefineCustomStringVariable("queue.debug_points",
							   "Named points at which this session stops.",
							   "For tests: at each point the advisory lock (81, hashtext(name)) is taken and released.",
							   &queue_guc_debug_points,
							   "",
							   PGC_USERSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	DefineCustomIntVariable("queue.returned_keys",
							"Room for returned messages in a queue's head.",
							"For tests: a smaller room is full sooner.",
							&queue_guc_returned_keys,
							QUEUE_MAX_RETURNED, 1, QUEUE_MAX_RETURNED,
							PGC_USERSET, GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);
}
#endif

void
queue_guc_init(void)
{
#ifdef QUEUE_DEBUG
	define_debug_settings();
#endif
	DefineCustomIntVariable("queue.max_failed_attempts",
							"Failed attempts that shared memory can remember.",
							"An attempt for which there is no room is not counted.",
							&queue_guc_max_failed_attempts,
							DEFAULT_ATTEMPTS, MIN_ATTEMPTS, MAX_ATTEMPTS,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("queue.max_heads",
							"Queue heads that shared memory can hold, one for each queue and consumer in use.",
							"A queue without a head works, but a dequeue searches from the start of its index.",
							&queue_guc_max_heads,
							DEFAULT_HEADS, MIN_HEADS, MAX_HEADS,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("queue.max_monitors",
							"Databases that can have a monitor.",
							"Each running monitor also takes one of max_worker_processes.",
							&queue_guc_max_monitors,
							DEFAULT_MONITORS, MIN_MONITORS, MAX_MONITORS,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("queue.monitor",
							 "Runs a monitor in each database that has the extension.",
							 "Off: none runs; what monitors do in the background is not done.",
							 &queue_guc_monitor,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("queue.monitor_naptime",
							"Longest sleep of a monitor and of the launcher.",
							"When nothing is due and nothing happens, each wakes up once in this time.",
							&queue_guc_monitor_naptime,
							DEFAULT_NAPTIME_S, MIN_NAPTIME_S, MAX_NAPTIME_S,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("queue.rotation",
							 "Truncates segments whose messages are all consumed and uses them again.",
							 "Off: the current segment grows, and its space comes back when this is on again.",
							 &queue_guc_rotation,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("queue.segment_size",
							"Size at which a queue table goes on to its next segment.",
							"A smaller segment is given back sooner, a larger one is truncated less often.",
							&queue_guc_segment_blocks,
							DEFAULT_SEGMENT_BLOCKS, MIN_SEGMENT_BLOCKS,
							MAX_SEGMENT_BLOCKS,
							PGC_SIGHUP, GUC_UNIT_BLOCKS,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("queue.use_heads",
							 "Starts a dequeue at the floor that shared memory remembers.",
							 "Off: each dequeue searches from the start of the index. What others are told of this session's messages does not change.",
							 &queue_guc_use_heads,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("queue");
}
