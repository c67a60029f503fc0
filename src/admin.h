/*-------------------------------------------------------------------------
 *
 * admin.h
 *	  Create, alter, start, stop and drop queues and queue tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ADMIN_H
#define QUEUE_ADMIN_H

#include "queue.h"

/* The properties of a new queue table; strings as the user gave them. */
typedef struct QueueTableSpec
{
	Oid			payload_type;
	const char *sort_list;		/* NULL: enq_time */
	bool		multiple_consumers;
	const char *message_grouping;	/* NULL: none */
	const char *comment;		/* or NULL */
	const char *rotation;		/* NULL: safe */
} QueueTableSpec;

/* Settings of a queue; those without their flag stay as they are. */
typedef struct QueueSettings
{
	bool		set_max_retries;
	bool		set_retry_delay;
	bool		set_retention;
	bool		set_comment;
	int64		max_retries;	/* -1: for ever */
	Interval   *retry_delay;	/* NULL: for ever */
	Interval   *retention;		/* NULL: for ever */
	const char *comment;		/* or NULL */
} QueueSettings;

extern Oid	queue_admin_create_table(const char *queue_table,
									 const QueueTableSpec *spec);
extern void queue_admin_alter_table(Oid queue_table, const char *comment,
									const char *rotation);
extern void queue_admin_drop_table(Oid queue_table, bool force);
extern int64 queue_admin_purge_table(Oid queue_table, const char *condition);

/*
 * spec is used when queue_table is NULL; then the queue gets a queue table of
 * its own.
 */
extern Oid	queue_admin_create_queue(const char *queue_name,
									 const char *queue_table,
									 const char *queue_type,
									 const QueueSettings *settings,
									 const QueueTableSpec *spec);
extern void queue_admin_alter_queue(Oid queue, const QueueSettings *settings);
extern void queue_admin_drop_queue(Oid queue);
extern void queue_admin_start_queue(Oid queue, bool enqueue, bool dequeue);
extern void queue_admin_stop_queue(Oid queue, bool enqueue, bool dequeue,
								   bool wait);

/* Register what a partial restore lost; returns how many queues. */
extern int	queue_admin_adopt(Oid queue_table);

/* privilege.c; a grantee is a role's name as the user gave it, or public */
extern void queue_admin_grant_queue(const char *privilege, Oid queue,
									const char *grantee, bool grant_option);
extern void queue_admin_revoke_queue(const char *privilege, Oid queue,
									 const char *grantee);
extern void queue_admin_grant_system(const char *privilege,
									 const char *grantee, bool admin_option);
extern void queue_admin_revoke_system(const char *privilege,
									  const char *grantee);

#endif							/* QUEUE_ADMIN_H */
