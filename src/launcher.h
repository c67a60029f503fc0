/*-------------------------------------------------------------------------
 *
 * launcher.h
 *	  The launcher: finds the databases that have the extension, and keeps a
 *	  monitor running in each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_LAUNCHER_H
#define QUEUE_LAUNCHER_H

/* What the launcher tells a monitor, in bgw_extra. */
typedef struct QueueMonitorOrder
{
	int			slot;
	uint32		generation;
	Oid			database;
} QueueMonitorOrder;

/* Register the launcher with the postmaster. */
extern void queue_launcher_init(void);

#endif							/* QUEUE_LAUNCHER_H */
