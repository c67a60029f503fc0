/*-------------------------------------------------------------------------
 *
 * admin_sql.h
 *	  How the administrative modules run SQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ADMIN_SQL_H
#define QUEUE_ADMIN_SQL_H

/* What is restored at the end of an administrative command. */
typedef struct QueueAdminScope
{
	Oid			user;
	int			security_context;
	int			guc_nest_level;
} QueueAdminScope;

/*
 * Begin a command: connect to SPI, pin search_path, and act as a role (the
 * owner of what is administered; the caller's right to do so has been
 * checked).  On error the transaction's end restores all of it.
 */
extern void queue_admin_begin(QueueAdminScope *scope, Oid role);
extern void queue_admin_end(QueueAdminScope *scope);

/* Run one command without parameters or result. */
extern void queue_admin_run(const char *format,...) pg_attribute_printf(1, 2);

/* The same, with a new snapshot in REPEATABLE READ as well. */
extern void queue_admin_run_latest(const char *format,...) pg_attribute_printf(1, 2);

/*
 * Run one command on the catalog tables, as their owner.  Returns how many
 * rows it touched; its rows are in SPI_tuptable.
 */
extern uint64 queue_admin_run_catalog(const char *command, int nargs,
									  Oid *types, Datum *values,
									  const char *nulls);

/* the same with one OID as parameter */
extern uint64 queue_admin_run_catalog_oid(const char *command, Oid oid);

#endif							/* QUEUE_ADMIN_SQL_H */
