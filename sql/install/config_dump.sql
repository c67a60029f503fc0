/*
 * The catalog is data of the user's: pg_dump dumps it.  Rows whose relation
 * or role is gone are left out, because they would be dumped as bare numbers
 * that may name something else where they are restored.
 */
SELECT pg_catalog.pg_extension_config_dump('queue.queue_table',
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = relation::pg_catalog.oid)');
SELECT pg_catalog.pg_extension_config_dump('queue.queue',
	'WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = view::pg_catalog.oid)'
	' AND EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = queue_table::pg_catalog.oid)');
SELECT pg_catalog.pg_extension_config_dump('queue.system_privilege',
	'WHERE grantee::pg_catalog.oid = 0'
	' OR EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid = grantee::pg_catalog.oid)');
