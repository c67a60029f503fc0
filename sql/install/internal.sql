/*
 * Functions that the objects of users call: triggers, defaults and columns of
 * queues' views.  They are not meant to be called otherwise.
 */

/* INSERT and COPY into a queue's view. */
CREATE FUNCTION queue._view_insert()
RETURNS pg_catalog.trigger
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_view_insert';

/* UPDATE and DELETE of a queue's view: an error that names the right call. */
CREATE FUNCTION queue._view_refuse()
RETURNS pg_catalog.trigger
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_view_refuse';

/* Tells readers of messages that came into a queue table by plain SQL. */
CREATE FUNCTION queue._message_published()
RETURNS pg_catalog.trigger
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_message_published';

/*
 * Default of msgid in queues' views: NULL, or an error where triggers do not
 * fire, because then an INSERT would store nothing and report success.
 */
CREATE FUNCTION queue._new_msgid()
RETURNS pg_catalog.uuid
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'queue_internal_new_msgid';

/*
 * Catalog rows of relations that were dropped, whichever way, go with them.
 * It only cleans and never refuses: that would break pg_restore --clean.
 * Runs as the extension's owner, because whoever may drop a queue's view may
 * not write the catalog.
 */
CREATE FUNCTION queue._clean_dropped()
RETURNS pg_catalog.event_trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	dropped	pg_catalog.oid[];
BEGIN
	SELECT pg_catalog.array_agg(o.objid) INTO dropped
	FROM pg_catalog.pg_event_trigger_dropped_objects() AS o
	WHERE o.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
		AND o.objsubid = 0
		AND o.object_type IN ('view', 'table');

	IF dropped IS NULL THEN
		RETURN;
	END IF;
	DELETE FROM queue.queue
	WHERE view::pg_catalog.oid = ANY (dropped)
		OR queue_table::pg_catalog.oid = ANY (dropped);
	DELETE FROM queue.queue_table
	WHERE relation::pg_catalog.oid = ANY (dropped);
END;
$$;

CREATE EVENT TRIGGER queue_clean_dropped ON sql_drop
	EXECUTE FUNCTION queue._clean_dropped();
COMMENT ON EVENT TRIGGER queue_clean_dropped IS 'removes the catalog rows of queues and queue tables that are dropped';
