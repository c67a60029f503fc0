\echo Use "CREATE EXTENSION queue" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

/*
 * The schema is the extension's, and one that is there already is refused:
 * whoever made it could have put anything into it.  (If the control file
 * named it, it would not be a member, and dumps would make it by themselves.)
 */
CREATE SCHEMA queue;
COMMENT ON SCHEMA queue IS 'message queues';

/*
 * Nothing works unless the library was loaded when the server started: say so
 * now rather than at the first call.
 */
CREATE FUNCTION queue._require_preload()
RETURNS pg_catalog.void
LANGUAGE C VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'queue_internal_require_preload';

SELECT queue._require_preload();
