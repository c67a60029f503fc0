/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  Settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_GUC_H
#define QUEUE_GUC_H

#include "queue.h"

/* postmaster */
extern int	queue_guc_max_heads;
extern int	queue_guc_max_failed_attempts;
extern int	queue_guc_max_monitors;

/* reload */
extern bool queue_guc_monitor;
extern int	queue_guc_monitor_naptime;

/* server, changed by a reload */
extern bool queue_guc_rotation;
extern int	queue_guc_segment_blocks;

/* session */
extern bool queue_guc_use_heads;

/* debug builds only; constants elsewhere */
extern int	queue_guc_returned_keys;
extern char *queue_guc_debug_points;
extern double queue_guc_debug_clock_offset;
extern char *queue_guc_debug_job_error;

extern void queue_guc_init(void);

#endif							/* QUEUE_GUC_H */
