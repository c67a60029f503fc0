-- Proves: who may do what: enqueue, dequeue, browse, manage, grant on; and that PUBLIC may nothing it should not.
-- How: roles made here call each function, and the catalog is asked; everything is rolled back.
\set ECHO none
\set QUIET 1
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS queue;
SELECT * FROM no_plan();

CREATE ROLE p_owner;
CREATE ROLE p_enqueuer;
CREATE ROLE p_dequeuer;
CREATE ROLE p_browser;
CREATE ROLE p_nobody;
CREATE ROLE p_any;
CREATE ROLE p_member IN ROLE p_enqueuer;
CREATE ROLE "P Quoted" IN ROLE p_nobody;
CREATE SCHEMA p AUTHORIZATION p_owner;
GRANT USAGE ON SCHEMA p TO PUBLIC;

-- SQLSTATE of a statement run as a role, 00000 if it succeeds
CREATE FUNCTION pg_temp.as_role(role text, statement text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SET LOCAL ROLE %I', role);
	EXECUTE statement;
	RESET ROLE;
	RETURN '00000';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;

SELECT is(pg_temp.as_role('p_owner', $$
	SELECT queue.create_queue('p.q');
	SELECT queue.create_queue('p.other', 'p.q_qt');
	SELECT queue.start_queue('p.other');
	SELECT queue.enqueue('p.q', '{"n": 1}') FROM generate_series(1, 50);
	SELECT queue.enqueue('p.other', '{"secret": 1}');
	$$), '00000', 'an ordinary role makes and uses its own queue');
SELECT view_owner_is('p', 'q', 'p_owner', 'and owns its view');
SELECT table_owner_is('p', 'q_qt', 'p_owner', 'and its table');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.create_queue('p.mine')$$), '42501',
	'not in a schema where it may not create');

-- what each may do: verb, SQL
CREATE TEMP TABLE verb (name text, statement text);
INSERT INTO verb VALUES
('enqueue', $$SELECT queue.enqueue('p.q', '{}')$$),
('enqueue', $$SELECT queue.enqueue('p.q', '{}'::jsonb)$$),
('enqueue', $$SELECT queue.enqueue_array('p.q', '{"{}"}')$$),
('enqueue', $$SELECT queue.enqueue_array('p.q', '{"{}"}'::jsonb[])$$),
('enqueue', $$INSERT INTO p.q (payload) VALUES ('{}')$$),
('enqueue', $$INSERT INTO p.q (payload) VALUES ('{}') RETURNING msgid$$),
('dequeue', $$SELECT * FROM queue.dequeue('p.q')$$),
('dequeue', $$SELECT * FROM queue.dequeue('p.q', mode => 'locked')$$),
('dequeue', $$SELECT * FROM queue.dequeue('p.q', mode => 'remove_nodata')$$),
('dequeue', $$SELECT * FROM queue.dequeue_as(NULL::jsonb, 'p.q')$$),
('browse', $$SELECT * FROM queue.dequeue('p.q', mode => 'browse')$$),
('select', $$SELECT * FROM p.q$$),
('manage', $$SELECT queue.alter_queue('p.q', max_retries => 3)$$),
('manage', $$SELECT queue.alter_queue_table('p.q_qt', 'x')$$),
('manage', $$SELECT queue.stop_queue('p.other')$$),
('manage', $$SELECT queue.start_queue('p.other')$$),
('manage', $$SELECT queue.purge_queue_table('p.q_qt', 'corr_id = ''none''')$$),
('manage', $$SELECT queue.grant_queue_privilege('enqueue', 'p.q', 'p_browser')$$),
('manage', $$SELECT queue.revoke_queue_privilege('enqueue', 'p.q', 'p_browser')$$),
('destroy', $$SELECT queue.drop_queue('p.other')$$),
('destroy', $$SELECT queue.drop_queue_table('p.q_qt', true)$$),
('table', $$SELECT * FROM p.q_qt$$),
('table', $$INSERT INTO p.q_qt SELECT * FROM p.q_qt$$),
('table', $$SELECT * FROM p."aq$q_qt"$$),
('catalog', $$INSERT INTO queue.system_privilege VALUES ('p_nobody', 'manage_any', true, 'p_nobody')$$),
('catalog', $$UPDATE queue.queue SET dequeue_enabled = true$$),
('catalog', $$DELETE FROM queue.queue_table$$),
('catalog', $$TRUNCATE queue.queue$$),
('system', $$SELECT queue.grant_system_privilege('manage_any', 'p_nobody')$$),
('system', $$SELECT queue.revoke_system_privilege('manage_any', 'p_any')$$);

-- a role may exactly these verbs; the rest is 42501
CREATE FUNCTION pg_temp.may(role text, verbs text[]) RETURNS SETOF text
LANGUAGE sql AS $$
	SELECT is(pg_temp.as_role(role, v.statement),
		CASE WHEN v.name = ANY (verbs) THEN '00000' ELSE '42501' END,
		role || ': ' || v.statement)
	FROM verb v WHERE v.name <> 'destroy' OR NOT v.name = ANY (verbs)
$$;

SELECT * FROM pg_temp.may('p_nobody', '{}');
SELECT pg_temp.as_role('p_owner', $$
	SELECT queue.grant_queue_privilege('ENQUEUE', 'p.q', 'p_enqueuer');
	SELECT queue.grant_queue_privilege('Dequeue', 'p.q', 'p_dequeuer');
	SELECT queue.grant_queue_privilege('browse', 'p.q', 'p_browser');
	$$);
SELECT * FROM pg_temp.may('p_enqueuer', '{enqueue}');
SELECT * FROM pg_temp.may('p_member', '{enqueue}');
SELECT * FROM pg_temp.may('p_dequeuer', '{dequeue,browse}');
SELECT pg_temp.as_role('p_owner', $$SELECT queue.grant_queue_privilege('browse', 'p.q', 'p_browser')$$);
SELECT * FROM pg_temp.may('p_browser', '{browse,select}');
SELECT is(pg_temp.as_role('p_browser', $$SELECT * FROM p.other$$), '42501',
	'not the neighbour in the same table');
SELECT is(pg_temp.as_role('p_dequeuer', 'DELETE FROM p.q'), '0A000',
	'a consumer''s DELETE does not wipe the queue');
SELECT is(pg_temp.as_role('p_owner', 'UPDATE p.q SET priority = 1'), '0A000', 'nor an UPDATE');
SELECT isnt((SELECT count(*) FROM p.q), 0::bigint, 'messages are still there');
SELECT is(pg_catalog.has_table_privilege('p_enqueuer', 'p.q', 'SELECT'), false,
	'who may enqueue does not browse');

-- plain GRANT is the same thing
GRANT DELETE ON p.other TO p_browser;
SELECT is(pg_temp.as_role('p_browser', $$SELECT * FROM queue.dequeue('p.other')$$), '00000',
	'GRANT DELETE is dequeue');
REVOKE DELETE ON p.other FROM p_browser;
SELECT is(pg_temp.as_role('p_browser', $$SELECT * FROM queue.dequeue('p.other')$$), '42501',
	'REVOKE takes it');

-- grant option, and revoking what was granted on
SELECT is(pg_temp.as_role('p_enqueuer',
	$$SELECT queue.grant_queue_privilege('enqueue', 'p.q', '"P Quoted"')$$), '42501',
	'without grant option nothing is granted on');
SELECT pg_temp.as_role('p_owner', $$
	SELECT queue.grant_queue_privilege('enqueue', 'p.q', 'p_enqueuer', true)$$);
SELECT is(pg_temp.as_role('p_enqueuer',
	$$SELECT queue.grant_queue_privilege('enqueue', 'p.q', '"P Quoted"')$$), '00000',
	'with it, it is');
SELECT is(pg_temp.as_role('P Quoted', $$SELECT queue.enqueue('p.q', '{}')$$), '00000', 'and holds');
SELECT is(pg_temp.as_role('p_enqueuer',
	$$SELECT queue.grant_queue_privilege('dequeue', 'p.q', '"P Quoted"')$$), '42501',
	'but not for another privilege');
SELECT pg_temp.as_role('p_owner', $$SELECT queue.revoke_queue_privilege('enqueue', 'p.q', 'p_enqueuer')$$);
SELECT is(pg_temp.as_role('p_enqueuer', $$SELECT queue.enqueue('p.q', '{}')$$), '42501', 'revoked');
SELECT is(pg_temp.as_role('P Quoted', $$SELECT queue.enqueue('p.q', '{}')$$), '42501',
	'and what was granted on, too');
SELECT is(pg_temp.as_role('P Quoted', $$INSERT INTO p.q (payload) VALUES ('{}') RETURNING msgid$$), '42501',
	'the column too');

-- browse and enqueue share SELECT (msgid); revoking one leaves the other whole
SELECT pg_temp.as_role('p_owner', $$
	SELECT queue.grant_queue_privilege('all', 'p.q', 'p_enqueuer');
	SELECT queue.revoke_queue_privilege('browse', 'p.q', 'p_enqueuer')$$);
SELECT is(pg_temp.as_role('p_enqueuer', $$INSERT INTO p.q (payload) VALUES ('{}') RETURNING msgid$$),
	'00000', 'revoking browse leaves RETURNING msgid');
SELECT is(pg_temp.as_role('p_enqueuer', 'SELECT payload FROM p.q'), '42501', 'and takes the rest');
SELECT pg_temp.as_role('p_owner', $$SELECT queue.revoke_queue_privilege('all', 'p.q', 'p_enqueuer')$$);
SELECT is_empty($$SELECT 1 FROM pg_class c, aclexplode(c.relacl) a
	WHERE c.oid = 'p.q'::regclass AND a.grantee = 'p_enqueuer'::regrole
	UNION ALL
	SELECT 1 FROM pg_attribute c, aclexplode(c.attacl) a
	WHERE c.attrelid = 'p.q'::regclass AND a.grantee = 'p_enqueuer'::regrole$$,
	'revoking all leaves nothing');

-- everybody
SELECT pg_temp.as_role('p_owner', $$SELECT queue.grant_queue_privilege('enqueue', 'p.q', 'public')$$);
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.enqueue('p.q', '{}')$$), '00000', 'public may');
SELECT pg_temp.as_role('p_owner', $$SELECT queue.revoke_queue_privilege('enqueue', 'p.q', 'public')$$);
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.enqueue('p.q', '{}')$$), '42501', 'and no longer');

-- system privileges
SELECT queue.grant_system_privilege('enqueue_any', 'p_any', false);
SELECT is(pg_temp.as_role('p_any', $$SELECT queue.enqueue('p.q', '{}')$$), '00000', 'enqueue_any');
SELECT is(pg_temp.as_role('p_any', $$SELECT * FROM queue.dequeue('p.q')$$), '42501', 'is not dequeue_any');
SELECT queue.grant_system_privilege('DEQUEUE_ANY', 'p_any');
SELECT is(pg_temp.as_role('p_any', $$SELECT * FROM queue.dequeue('p.q')$$), '00000', 'dequeue_any');
SELECT is(pg_temp.as_role('p_any', $$SELECT queue.stop_queue('p.other')$$), '42501', 'is not manage_any');
SELECT is(pg_temp.as_role('p_any', $$SELECT queue.grant_system_privilege('enqueue_any', 'p_nobody')$$),
	'42501', 'without admin option it is not granted on');
SELECT queue.grant_system_privilege('manage_any', 'p_any', true);
SELECT is(pg_temp.as_role('p_any', v.statement), '00000', 'manage_any: ' || v.statement)
FROM verb v WHERE v.name = 'manage';
SELECT is(pg_temp.as_role('p_any', v.statement), '42501', 'manage_any: ' || v.statement)
FROM verb v WHERE v.name = 'catalog';
SELECT is(pg_temp.as_role('p_any', $$SELECT queue.grant_system_privilege('manage_any', 'p_nobody')$$),
	'00000', 'with admin option it is');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.stop_queue('p.other')$$), '00000', 'and holds');
SELECT is(pg_temp.as_role('P Quoted', $$SELECT queue.start_queue('p.other')$$), '00000', 'for members');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.grant_system_privilege('manage_any', 'p_browser')$$),
	'42501', 'admin option is not inherited from the grantor');
SELECT queue.revoke_system_privilege('manage_any', 'p_nobody');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT queue.stop_queue('p.other')$$), '42501', 'revoked');
SELECT queue.grant_system_privilege('dequeue_any', 'public');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT * FROM queue.dequeue('p.q')$$), '00000', 'any for everybody');
SELECT queue.revoke_system_privilege('dequeue_any', 'public');
SELECT is(pg_temp.as_role('p_nobody', $$SELECT * FROM queue.dequeue('p.q')$$), '42501', 'and no longer');

-- a queue made by manage_any in the owner's table belongs to the owner
SELECT is(pg_temp.as_role('p_any', $$SELECT queue.create_queue('p.made', 'p.q_qt')$$), '00000',
	'manage_any makes a queue in another''s table');
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE oid = to_regclass('p.made')), 'p_owner',
	'it belongs to the table''s owner');

-- ownership moves
SELECT is(pg_temp.as_role('p_owner', $$SELECT queue.grant_queue_privilege('dequeue', 'p.q', 'p_dequeuer')$$),
	'00000', 'owner');
REASSIGN OWNED BY p_owner TO p_browser;
SELECT is(pg_temp.as_role('p_browser', $$SELECT queue.alter_queue('p.q', max_retries => 1)$$), '00000',
	'the new owner manages');
SELECT is(pg_temp.as_role('p_owner', $$SELECT queue.alter_queue('p.q', max_retries => 1)$$), '42501',
	'the old one does not');
SELECT is(pg_temp.as_role('p_dequeuer', $$SELECT * FROM queue.dequeue('p.q')$$), '00000', 'grants stay');
DROP OWNED BY p_dequeuer;
SELECT is(pg_temp.as_role('p_dequeuer', $$SELECT * FROM queue.dequeue('p.q')$$), '42501',
	'DROP OWNED revokes');

-- the extension's own objects
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'queue'::regnamespace AND p.prosecdef
	  AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
	$$, 'SECURITY DEFINER functions have a pinned search_path');
SELECT set_eq($$
	SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = 'queue'::regnamespace AND p.prosecdef
	$$, ARRAY['_clean_dropped'], 'and this is the only one');
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
	WHERE p.pronamespace = 'queue'::regnamespace AND l.lanname IN ('sql', 'plpgsql')
	  AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
	$$, 'no SQL or PL/pgSQL function uses the caller''s search_path');
SELECT is_empty($$
	SELECT p.oid::regprocedure
	FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
	WHERE p.pronamespace = 'queue'::regnamespace AND a.grantee = 0 AND p.proname LIKE '\_%'
	  AND p.proname NOT IN ('_dequeue', '_enqueue', '_message_published', '_new_msgid', '_view_insert', '_view_refuse', '_workers')
	$$, 'PUBLIC executes no internal function but those of users'' own objects and of views');
SELECT is_empty($$
	SELECT c.oid::regclass, a.privilege_type
	FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
	WHERE c.relnamespace = 'queue'::regnamespace AND a.grantee = 0
	  AND c.relkind <> 'c' AND a.privilege_type <> 'SELECT'
	$$, 'PUBLIC only reads the extension''s tables');
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'queue'::regnamespace
	  AND 'internal'::regtype = ANY (p.proargtypes::oid[])
	  AND p.oid NOT IN (SELECT prosupport FROM pg_proc)
	$$, 'no function but the planner''s takes internal arguments');
SELECT is((SELECT has_schema_privilege('p_nobody', 'queue', 'CREATE')), false,
	'nobody adds to the schema');
SELECT is(pg_temp.as_role('p_nobody', 'SELECT count(*) FROM queue.queues, queue.queue_tables, queue.queue, queue.queue_table'),
	'00000', 'everybody reads the catalog: dumps need it');
SELECT is(pg_temp.as_role('p_nobody', 'SELECT count(*) FROM queue.workers'), '00000',
	'everybody sees the workers');

-- triggers and views hung up elsewhere get nowhere
SELECT is(pg_temp.as_role('p_nobody', $$
	CREATE TEMP VIEW mine AS SELECT NULL::jsonb AS payload;
	CREATE TRIGGER t INSTEAD OF INSERT ON mine FOR EACH ROW
		EXECUTE FUNCTION queue._view_insert('1', 'normal', '5', '0', '0');
	INSERT INTO mine VALUES ('{}')$$), '42P01',
	'the insert trigger on a view of one''s own');
SELECT isnt(pg_temp.as_role('p_nobody', $$
	CREATE TEMP TABLE mine (payload jsonb, msgid uuid, queue_id int);
	CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION queue._message_published();
	INSERT INTO mine VALUES ('{}')$$), 'XX000', 'the publishing trigger on a table of one''s own');

-- RLS does not open the table; a view made by a browser shows one queue only
SELECT is(pg_temp.as_role('p_nobody', 'SELECT msgid FROM p.q'), '42501', 'no column either');

SELECT * FROM finish();
ROLLBACK;
