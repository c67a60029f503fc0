/*-------------------------------------------------------------------------
 *
 * admin_internal.h
 *	  What the administrative modules share among themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ADMIN_INTERNAL_H
#define QUEUE_ADMIN_INTERNAL_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

#include "admin.h"
#include "catalog.h"

/* names of our triggers */
#define QUEUE_TRIGGER_ENQUEUE	"queue_enqueue"
#define QUEUE_TRIGGER_REFUSE	"queue_refuse"
#define QUEUE_TRIGGER_PUBLISHED	"queue_message_published"
#define QUEUE_TRIGGER_WITHDRAWN	"queue_message_withdrawn"

/*
 * How the comment begins that queue_admin_record_settings() writes: the
 * queue's id, and whether it is the default exception queue.
 */
#define QUEUE_SETTINGS_PATTERN	"^[{]\"queue_id\" : ([0-9]+), "
#define QUEUE_SETTINGS_DEFAULT_PATTERN \
	"^[{]\"queue_id\" : [0-9]+, \"default\" : true, "

/* what is said of a new queue in one place */
typedef struct NewQueue
{
	Oid			queue_table;
	Oid			schema;
	const char *name;
	bool		is_exception;
	bool		is_default_exception;	/* its id is known */
	const QueueSettings *settings;
} NewQueue;

/* the id of a queue table's default exception queue, which is made first */
#define QUEUE_DEFAULT_EXCEPTION_ID	1

/* admin.c */
/* Make the view and the row of a queue; the caller has begun a command. */
extern Oid	queue_admin_make_queue(const NewQueue *new_queue);

/* Make those triggers of a queue's view that it does not have. */
extern void queue_admin_make_view_triggers(Oid view);

/* The schema of a new object, and the role that will own it. */
extern Oid	queue_admin_creation_schema(const char *schema, Oid *owner);
extern void queue_admin_report_duplicate(const char *kind, const char *name,
										 Oid schema);
extern void queue_admin_rethrow(MemoryContext context, const char *kind,
								const char *name, Oid schema);

/* admin_table.c */
extern char *queue_admin_parse_sort_list(const char *sort_list);
extern Oid	queue_admin_make_table(Oid schema, const char *name, Oid owner,
								   const QueueTableSpec *spec);
extern void queue_admin_make_exception_queue(Oid queue_table);
extern void queue_admin_check_spec(const QueueTableSpec *spec);
extern Oid	queue_admin_check_table(Oid queue_table);

/* Views that are queues of the table; the rows may be stale. */
extern List *queue_admin_queues_of(Oid queue_table, bool with_default);

/* Make those triggers of a queue table's leaves that they do not have. */
extern void queue_admin_make_leaf_triggers(const QueueTable *table);

/* admin_adopt.c */
/* Note on a queue's view what queue.adopt() needs; called in a command. */
extern void queue_admin_record_settings(Oid queue);

/* admin_view.c */
extern char *queue_admin_queues_source(const char *queue_table);
extern void queue_admin_append_queue_view(StringInfo sql, const char *view,
										  Oid queue_table, int32 id,
										  bool is_exception);
extern void queue_admin_append_table_columns(StringInfo sql,
											 Oid queue_table, bool raw_names);
extern void queue_admin_append_names(StringInfo sql);
extern void queue_admin_append_message_columns(StringInfo sql);

#endif							/* QUEUE_ADMIN_INTERNAL_H */
