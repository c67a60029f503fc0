-- Proves: no object of a user, whatever its name and wherever on the search_path, is called by the extension's code.
-- How: a schema of traps (functions, operators, tables, types that raise when used) stands first on the path of every call; everything is rolled back.
\set ECHO none
\set QUIET 1
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS queue;
SELECT * FROM no_plan();

CREATE SCHEMA trap;
CREATE ROLE t_user;
CREATE SCHEMA own AUTHORIZATION t_user;
GRANT USAGE ON SCHEMA trap TO PUBLIC;

-- operators that raise
DO $$
DECLARE
	o record;
	n int := 0;
BEGIN
	FOR o IN
		SELECT DISTINCT op.oprname, format_type(op.oprleft, NULL) AS l, format_type(op.oprright, NULL) AS r,
			format_type(op.oprresult, NULL) AS result
		FROM pg_operator op
		WHERE op.oprkind = 'b' AND op.oprnamespace = 'pg_catalog'::regnamespace
		  AND op.oprname IN ('=', '<>', '<', '>', '<=', '>=', '||', '+', '-', '~~', '->', '->>', '@>')
		  AND (op.oprleft IN ('text'::regtype, 'name'::regtype, 'oid'::regtype, 'int4'::regtype, 'int2'::regtype,
				'int8'::regtype, 'uuid'::regtype, 'timestamptz'::regtype, 'interval'::regtype, 'bool'::regtype,
				'jsonb'::regtype, 'anyarray'::regtype, 'xid8'::regtype, '"char"'::regtype))
	LOOP
		n := n + 1;
		EXECUTE format($f$CREATE FUNCTION trap.op%s(a %s, b %s) RETURNS %s LANGUAGE plpgsql
			AS 'BEGIN RAISE EXCEPTION ''trapped'' USING ERRCODE = ''ZZ999''; END'$f$, n, o.l, o.r,
			CASE WHEN o.result LIKE 'any%' THEN 'boolean' ELSE o.result END);
		EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.op%s, LEFTARG = %s, RIGHTARG = %s)',
			o.oprname, n, o.l, o.r);
	END LOOP;
END $$;

-- functions that raise
DO $$
DECLARE
	f record;
BEGIN
	FOR f IN
		SELECT DISTINCT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
			format_type(p.prorettype, NULL) AS result
		FROM pg_proc p
		WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset
		  AND p.proname IN ('now', 'clock_timestamp', 'format', 'quote_ident', 'quote_literal', 'to_jsonb',
			'jsonb_build_object', 'lower', 'upper', 'length', 'octet_length', 'concat', 'array_to_string',
			'set_config', 'current_setting', 'pg_get_userbyid', 'obj_description', 'to_regclass', 'coalesce',
			'has_table_privilege', 'pg_has_role', 'nullif', 'strpos', 'substr', 'replace', 'array_length',
			'texteq', 'uuid_eq', 'int4eq', 'oideq', 'timestamptz_pl_interval', 'like', 'textlike')
		  AND pg_get_function_identity_arguments(p.oid) NOT LIKE '%OUT%'
		  AND pg_get_function_identity_arguments(p.oid) NOT LIKE '%VARIADIC%'
		  AND format_type(p.prorettype, NULL) NOT LIKE 'any%'
	LOOP
		EXECUTE format($f$CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql
			AS 'BEGIN RAISE EXCEPTION ''trapped'' USING ERRCODE = ''ZZ999''; END'$f$,
			f.proname, f.arguments, f.result);
	END LOOP;
END $$;

-- relations and types that lead astray
CREATE TABLE trap.pg_class (oid oid, relname name);
CREATE TABLE trap.pg_inherits (inhrelid oid, inhparent oid);
CREATE TABLE trap.pg_roles (oid oid);
CREATE TABLE trap.queue (view regclass);
CREATE TABLE trap.queue_table (relation regclass);
CREATE TABLE trap.system_privilege (grantee regrole, privilege text, admin_option bool);
CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false);
CREATE DOMAIN trap.jsonb AS pg_catalog.jsonb CHECK (false);
CREATE DOMAIN trap.uuid AS pg_catalog.uuid CHECK (false);
CREATE DOMAIN trap.interval AS pg_catalog.interval CHECK (false);
CREATE DOMAIN trap.regclass AS pg_catalog.regclass CHECK (false);
CREATE DOMAIN trap.int4 AS pg_catalog.int4 CHECK (false);
CREATE TYPE trap.message AS (a pg_catalog.int4);
CREATE TEMP TABLE queue_table (relation regclass);
CREATE TEMP TABLE system_privilege (grantee regrole, privilege pg_catalog.text, admin_option bool);
GRANT ALL ON ALL TABLES IN SCHEMA trap TO PUBLIC;

-- run with the traps first on the path; SQLSTATE and message, or OK
CREATE FUNCTION pg_temp.trapped(statement text, role text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	IF role IS NOT NULL THEN
		EXECUTE pg_catalog.concat('SET LOCAL ROLE ', role);
	END IF;
	PERFORM pg_catalog.set_config('search_path', 'trap, pg_temp, pg_catalog, own, public', true);
	EXECUTE statement;
	PERFORM pg_catalog.set_config('search_path', 'public', true);
	RESET ROLE;
	RETURN 'OK';
EXCEPTION WHEN OTHERS THEN
	RETURN pg_catalog.concat(SQLSTATE, ' ', SQLERRM);
END $$;

SELECT is(pg_temp.trapped('SELECT ''a''::pg_catalog.text = ''b'''), 'ZZ999 trapped', 'the operator traps work');
SELECT is(pg_temp.trapped('SELECT now()'), 'ZZ999 trapped', 'the function traps work');
SELECT isnt(pg_temp.trapped('SELECT ''{}''::jsonb'), 'OK', 'the type traps work');

CREATE TEMP TABLE call (n serial, statement text);
INSERT INTO call (statement) VALUES
($$SELECT queue.create_queue_table('own.t_qt', 'pg_catalog.jsonb', sort_list => 'priority,enq_time', comment => 'x')$$),
($$SELECT queue.create_queue('own.t', 'own.t_qt', max_retries => 2, retry_delay => '1 s', retention_time => '1 day', comment => 'c')$$),
($$SELECT queue.start_queue('own.t')$$),
($$SELECT queue.create_queue('own.c', sort_list => 'commit_time')$$),
($$SELECT queue.create_queue('own.b', payload_type => 'pg_catalog.bytea', sort_list => 'enq_time,priority')$$),
($$SELECT queue.alter_queue('own.t', max_retries => 3, retention_time => '2 days', comment => 'd')$$),
($$SELECT queue.alter_queue_table('own.t_qt', 'y')$$),
($$SELECT queue.enqueue('own.t', '{"a": 1}', priority => 2, delay => '1 hour', expiration => '2 hours',
	correlation => 'c', properties => '{"p": 1}', exception_queue => 'own."aq$_t_qt_e"', sender => 's')$$),
($$SELECT queue.enqueue('own.t', '{"a": 2}'::pg_catalog.jsonb)$$),
($$SELECT queue.enqueue('own.b', '\x01'::pg_catalog.bytea)$$),
($$SELECT queue.enqueue('own.c', '{}')$$),
($$SELECT queue.enqueue_array('own.t', '{"{}", "{}"}')$$),
($$SELECT queue.enqueue_array('own.t', ARRAY['{}', '{}']::pg_catalog.jsonb[])$$),
($$INSERT INTO own.t (payload, priority) VALUES ('{}', 1) RETURNING msgid$$),
($$SELECT count(*) FROM own.t$$),
($$SELECT count(*) FROM own."aq$t_qt"$$),
($$SELECT * FROM queue.dequeue('own.t')$$),
($$SELECT * FROM queue.dequeue('own.t', mode => 'browse', max_messages => 5)$$),
($$SELECT * FROM queue.dequeue('own.t', mode => 'locked')$$),
($$SELECT * FROM queue.dequeue('own.t', correlation => 'c%')$$),
($$SELECT * FROM queue.dequeue_as(NULL::pg_catalog.bytea, 'own.b')$$),
($$SELECT * FROM queue.dequeue('own.c')$$),
($$SELECT queue.enqueue('own.t', '{"x": 1}', expiration => '1 microsecond')$$),
($$SELECT * FROM queue.dequeue('own.t', max_messages => 100)$$),
($$SELECT queue.grant_queue_privilege('all', 'own.t', 'public')$$),
($$SELECT queue.revoke_queue_privilege('all', 'own.t', 'public')$$),
($$SELECT queue.purge_queue_table('own.t_qt')$$),
($$SELECT count(*) FROM queue.queues$$),
($$SELECT count(*) FROM queue.queue_tables$$),
($$SELECT count(*) FROM queue.workers$$),
($$SELECT queue.enq_time('019999a0-0000-7000-8000-000000000000'::pg_catalog.uuid)$$),
($$SELECT queue.adopt('own.t_qt')$$),
($$SELECT queue.stop_queue('own.t')$$),
($$SELECT queue.drop_queue('own.t')$$),
($$SELECT queue.drop_queue_table('own.t_qt')$$),
($$SELECT queue.drop_queue_table('own.c_qt', true)$$),
($$DROP VIEW own.b$$),
($$DROP TABLE own.b_qt CASCADE$$);

SELECT is(pg_temp.trapped(statement), 'OK', 'superuser: ' || statement) FROM call ORDER BY n;
SELECT is(pg_temp.trapped(statement, 't_user'), 'OK', 't_user: ' || statement) FROM call ORDER BY n;
SELECT is(pg_temp.trapped(statement), 'OK', statement) FROM (VALUES
	($$SELECT queue.grant_system_privilege('enqueue_any', 't_user', true)$$),
	($$SELECT queue.revoke_system_privilege('enqueue_any', 't_user')$$)) v (statement);

SELECT * FROM finish();
ROLLBACK;
