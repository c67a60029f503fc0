/*-------------------------------------------------------------------------
 *
 * name.c
 *	  Names that users give, and names derived from them.
 *
 * The server's own parser of qualified names cuts identifiers at 63 bytes
 * without a word, and what it cuts may collide with another queue.  So names
 * are parsed here, by the same rules otherwise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "name.h"

#define RESERVED_PREFIX		"aq$_"

/* how many names are tried before a derivation gives up */
#define MAX_DERIVATIONS		1000

static void
report_syntax(const char *argument, const char *input)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_NAME),
			 errmsg("invalid name syntax in %s: \"%s\"", argument, input),
			 errhint("Names are folded to lower case unless quoted; quote_ident() and format('%%I') quote them.")));
}

/* One identifier at *cursor, which is moved behind it. */
static char *
parse_identifier(const char *argument, const char *input, const char **cursor)
{
	const char *p = *cursor;
	char	   *result;

	while (scanner_isspace(*p))
		p++;
	if (*p == '"')
	{
		StringInfoData buffer;

		initStringInfo(&buffer);
		for (p++; *p != '\0'; p++)
		{
			if (*p == '"')
			{
				if (p[1] != '"')
					break;
				p++;
			}
			appendStringInfoChar(&buffer, *p);
		}
		if (*p != '"' || buffer.len == 0)
			report_syntax(argument, input);
		p++;
		result = buffer.data;
	}
	else
	{
		const char *start = p;

		while (*p != '\0' && *p != '.' && *p != '"' && !scanner_isspace(*p))
			p++;
		if (p == start)
			report_syntax(argument, input);
		result = downcase_identifier(start, p - start, false, false);
	}
	while (scanner_isspace(*p))
		p++;

	if (strlen(result) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("%s is too long: \"%s\"", argument, result),
				 errdetail("Names have at most %d bytes, this one has %zu.",
						   NAMEDATALEN - 1, strlen(result))));
	*cursor = p;
	return result;
}

void
queue_name_parse(const char *argument, const char *input, char **schema,
				 char **name)
{
	const char *cursor = input;

	*schema = NULL;
	*name = parse_identifier(argument, input, &cursor);
	if (*cursor == '.')
	{
		cursor++;
		*schema = *name;
		*name = parse_identifier(argument, input, &cursor);
	}
	if (*cursor != '\0')
		report_syntax(argument, input);
}

char *
queue_name_parse_single(const char *argument, const char *input)
{
	const char *cursor = input;
	char	   *name = parse_identifier(argument, input, &cursor);

	if (*cursor != '\0')
		report_syntax(argument, input);
	return name;
}

void
queue_name_check_reserved(const char *name)
{
	if (pg_strncasecmp(name, RESERVED_PREFIX, strlen(RESERVED_PREFIX)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("unacceptable name \"%s\"", name),
				 errdetail("The prefix \"%s\" is reserved for objects that belong to a queue table.",
						   RESERVED_PREFIX)));
}

static bool
name_is_free(const char *name, Oid schema)
{
	return !OidIsValid(get_relname_relid(name, schema));
}

char *
queue_name_derive(const char *prefix, const char *base, const char *suffix,
				  Oid schema)
{
	char	   *whole = psprintf("%s%s%s", prefix, base, suffix);
	uint32		hash;

	if (strlen(whole) < NAMEDATALEN && name_is_free(whole, schema))
		return whole;

	hash = hash_bytes((const unsigned char *) whole, strlen(whole));
	for (int i = 0; i < MAX_DERIVATIONS; i++)
	{
		char	   *mark = psprintf("_%08x", hash + i);
		int			taken = strlen(prefix) + strlen(mark) + strlen(suffix);
		int			length = pg_mbcliplen(base, strlen(base),
										  NAMEDATALEN - 1 - taken);
		char	   *name = psprintf("%s%.*s%s%s", prefix, length, base, mark,
									suffix);

		if (name_is_free(name, schema))
			return name;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("could not find a free name for \"%s\"", whole)));
	return NULL;				/* keep compiler quiet */
}

char *
queue_name_qualified(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		elog(ERROR, "relation with OID %u does not exist", relid);
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  name);
}
