/*-------------------------------------------------------------------------
 *
 * name.h
 *	  Names that users give, and names derived from them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_NAME_H
#define QUEUE_NAME_H

/*
 * Parse "name" or "schema.name" as regclass does (folded unless quoted), but
 * never cut: longer than 63 bytes is ERROR 42622.  *schema is NULL where none
 * was given.  argument is the SQL argument's name, for messages.
 */
extern void queue_name_parse(const char *argument, const char *input,
							 char **schema, char **name);

/* Parse a single identifier, such as a role's name. */
extern char *queue_name_parse_single(const char *argument, const char *input);

/* ERROR 42939 if the name begins with aq$_, which is reserved. */
extern void queue_name_check_reserved(const char *name);

/*
 * prefix + base + suffix, if that is no longer than 63 bytes and free in the
 * schema; else base is cut and a hash of the whole is put behind it.
 */
extern char *queue_name_derive(const char *prefix, const char *base,
							   const char *suffix, Oid schema);

/* Schema-qualified and quoted, whatever the search_path; palloc'd. */
extern char *queue_name_qualified(Oid relid);

#endif							/* QUEUE_NAME_H */
