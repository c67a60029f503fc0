/*-------------------------------------------------------------------------
 *
 * maintenance.h
 *	  The monitor's jobs for messages whose time has come.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_MAINTENANCE_H
#define QUEUE_MAINTENANCE_H

#include "datatype/timestamp.h"

/* Each is a QueueWorkerJob: returns when it wants to be called again. */
extern TimestampTz queue_maintenance_due(void);
extern TimestampTz queue_maintenance_expiry(void);
extern TimestampTz queue_maintenance_journal(void);
extern TimestampTz queue_maintenance_attempts(void);

#endif							/* QUEUE_MAINTENANCE_H */
