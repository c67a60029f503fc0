/*
 * Nothing to PUBLIC but what is granted here.  Functions run with the
 * caller's rights and check what those are on the queue; the one that runs
 * with the owner's, queue._clean_dropped(), is an event trigger's and cannot
 * be called.
 *
 * Everybody may read the catalog, so that users can dump what they own:
 * nothing secret may stand in it.
 */
GRANT USAGE ON SCHEMA queue TO PUBLIC;

REVOKE ALL ON ALL TABLES IN SCHEMA queue FROM PUBLIC;
GRANT SELECT ON
	queue.queue_table,
	queue.queue,
	queue.system_privilege,
	queue.queue_tables,
	queue.queues,
	queue.workers
TO PUBLIC;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA queue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	queue._dequeue,
	queue._message_published,
	queue._new_msgid,
	queue._view_insert,
	queue._view_refuse,
	queue._workers,
	queue.ack,
	queue.adopt,
	queue.alter_queue,
	queue.alter_queue_table,
	queue.create_queue,
	queue.create_queue_table,
	queue.dequeue,
	queue.dequeue_as,
	queue.drop_queue,
	queue.drop_queue_table,
	queue.enq_time,
	queue.extend,
	queue.grant_queue_privilege,
	queue.grant_system_privilege,
	queue.listen,
	queue.nack,
	queue.purge_queue_table,
	queue.receive,
	queue.redrive,
	queue.revoke_queue_privilege,
	queue.revoke_system_privilege,
	queue.start_queue,
	queue.stop_queue
TO PUBLIC;

GRANT EXECUTE ON PROCEDURE queue.wait TO PUBLIC;

/* overloaded ones need their arguments */
DO $$
DECLARE
	function	pg_catalog.regprocedure;
BEGIN
	FOR function IN
		SELECT p.oid::pg_catalog.regprocedure
		FROM pg_catalog.pg_proc AS p
		WHERE p.pronamespace = 'queue'::pg_catalog.regnamespace
			AND p.proname IN ('_enqueue', 'enqueue', 'enqueue_array')
	LOOP
		EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', function);
	END LOOP;
END;
$$;
