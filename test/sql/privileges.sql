-- Proves: who may administer, enqueue, dequeue and browse: the owner, those it grants to, and holders of system privileges; nobody else.
-- How: roles with nothing, with each queue privilege, with each system privilege, with and without admin option.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
CREATE ROLE regress_queue_owner;
CREATE ROLE regress_queue_user;
CREATE ROLE regress_queue_group;
CREATE ROLE regress_queue_member IN ROLE regress_queue_group;
CREATE SCHEMA g AUTHORIZATION regress_queue_owner;
GRANT USAGE ON SCHEMA g TO PUBLIC;
SET ROLE regress_queue_owner;
SELECT queue.create_queue('g.q');
SELECT queue.create_queue('g.q2', 'g.q_qt');
SELECT queue.enqueue('g.q', n::text) IS NOT NULL AS sent FROM generate_series(1, 9) n;
-- the owner of everything is the caller
SELECT DISTINCT c.relowner::regrole FROM pg_class c WHERE c.relnamespace = 'g'::regnamespace AND c.relkind IN ('r', 'p', 'v');

-- nothing granted, nothing allowed
SET ROLE regress_queue_user;
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1')$$);
CALL pg_temp.try($$INSERT INTO g.q (payload) VALUES ('1')$$);
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue.dequeue('g.q', mode => 'browse')$$);
CALL pg_temp.try($$SELECT * FROM g.q$$);
CALL pg_temp.try($$SELECT queue.stop_queue('g.q')$$);
CALL pg_temp.try($$SELECT queue.start_queue('g.q')$$);
CALL pg_temp.try($$SELECT queue.alter_queue('g.q', max_retries => 1)$$);
CALL pg_temp.try($$SELECT queue.drop_queue('g.q')$$);
CALL pg_temp.try($$SELECT queue.create_queue('g.q3', 'g.q_qt')$$);
CALL pg_temp.try($$SELECT queue.create_queue('g.q4')$$);
CALL pg_temp.try($$SELECT queue.alter_queue_table('g.q_qt', comment => 'x')$$);
CALL pg_temp.try($$SELECT queue.drop_queue_table('g.q_qt', force => true)$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('g.q_qt')$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('all', 'g.q', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_system_privilege('manage_any', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.revoke_system_privilege('manage_any', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.adopt('g.q_qt')$$);
CALL pg_temp.try($$INSERT INTO queue.system_privilege VALUES ('regress_queue_user', 'manage_any', true, 'regress_queue_user')$$);
CALL pg_temp.try($$DELETE FROM queue.queue$$);
CALL pg_temp.try($$UPDATE queue.queue SET dequeue_enabled = true$$);

-- enqueue: and no more
SET ROLE regress_queue_owner;
SELECT queue.grant_queue_privilege('ENQUEUE', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q', '10') IS NOT NULL AS sent;
INSERT INTO g.q (payload) VALUES ('11') RETURNING msgid IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue.dequeue('g.q', mode => 'browse')$$);
CALL pg_temp.try($$SELECT payload FROM g.q$$);
CALL pg_temp.try($$SELECT queue.enqueue('g.q2', '1')$$);
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('enqueue', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1')$$);

-- dequeue
SET ROLE regress_queue_owner;
SELECT queue.grant_queue_privilege('dequeue', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT payload FROM queue.dequeue('g.q');
SELECT payload FROM queue.dequeue('g.q', mode => 'browse');
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1')$$);
CALL pg_temp.try($$DELETE FROM g.q$$);
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('dequeue', 'g.q', 'regress_queue_user');

-- browse
SELECT queue.grant_queue_privilege('browse', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT payload FROM queue.dequeue('g.q', mode => 'browse');
SELECT count(*) FROM g.q;
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue.dequeue('g.q', mode => 'locked')$$);
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('browse', 'g.q', 'regress_queue_user');

-- all, with grant option, to a group; revoked it cascades
SELECT queue.grant_queue_privilege('all', 'g.q', 'regress_queue_group', grant_option => true);
SET ROLE regress_queue_member;
SELECT queue.enqueue('g.q', '12') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('g.q');
SET ROLE regress_queue_group;
SELECT queue.grant_queue_privilege('dequeue', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT payload FROM queue.dequeue('g.q');
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('all', 'g.q', 'regress_queue_group');
SET ROLE regress_queue_user;
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
-- plain GRANT is the same thing
SET ROLE regress_queue_owner;
GRANT INSERT, DELETE ON g.q TO regress_queue_user;
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q', '13') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('g.q');
SET ROLE regress_queue_owner;
REVOKE ALL ON g.q FROM regress_queue_user;
-- to PUBLIC
SELECT queue.grant_queue_privilege('enqueue', 'g.q2', 'public');
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q2', '1') IS NOT NULL AS sent;
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('enqueue', 'g.q2', 'public');
-- bad calls
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('select', 'g.q', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege(NULL, 'g.q', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('enqueue', 'g.q', 'no_such_role')$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('enqueue', 'g.q', NULL)$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('enqueue', 'g.q_qt', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_queue_privilege('enqueue', NULL, 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.revoke_queue_privilege('nothing', 'g.q', 'regress_queue_user')$$);

-- system privileges
RESET ROLE;
SELECT queue.grant_system_privilege('enqueue_any', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q', '14') IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue.grant_system_privilege('enqueue_any', 'regress_queue_member')$$);
RESET ROLE;
SELECT queue.revoke_system_privilege('enqueue_any', 'regress_queue_user');
SELECT queue.grant_system_privilege('DEQUEUE_ANY', 'regress_queue_user', admin_option => true);
SET ROLE regress_queue_user;
SELECT payload FROM queue.dequeue('g.q');
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1')$$);
SELECT queue.grant_system_privilege('dequeue_any', 'regress_queue_group');
SET ROLE regress_queue_member;
SELECT payload FROM queue.dequeue('g.q');
SET ROLE regress_queue_user;
SELECT queue.revoke_system_privilege('dequeue_any', 'regress_queue_group');
SET ROLE regress_queue_member;
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
RESET ROLE;
SELECT queue.revoke_system_privilege('dequeue_any', 'regress_queue_user');
SELECT queue.grant_system_privilege('manage_any', 'regress_queue_user');
SELECT grantee, privilege, admin_option FROM queue.system_privilege ORDER BY 1, 2;
SET ROLE regress_queue_user;
SELECT queue.stop_queue('g.q');
SELECT queue.alter_queue('g.q', max_retries => 1);
SELECT queue.create_queue('g.q3', 'g.q_qt');
SELECT queue.create_queue('g.q5');
SELECT queue.start_queue('g.q');
SELECT queue.stop_queue('g.q3');
SELECT queue.drop_queue('g.q3');
SELECT queue.grant_queue_privilege('dequeue', 'g.q', 'regress_queue_member');
SELECT queue.revoke_queue_privilege('dequeue', 'g.q', 'regress_queue_member');
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
SELECT queue.purge_queue_table('g.q5_qt');
SELECT queue.drop_queue_table('g.q5_qt', force => true);
RESET ROLE;
-- what a manager makes in another's schema belongs to that other
SELECT DISTINCT c.relowner::regrole FROM pg_class c WHERE c.relnamespace = 'g'::regnamespace AND c.relkind IN ('r', 'p', 'v');
SELECT queue.revoke_system_privilege('manage_any', 'regress_queue_user');
CALL pg_temp.try($$SELECT queue.grant_system_privilege('fly', 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_system_privilege(NULL, 'regress_queue_user')$$);
CALL pg_temp.try($$SELECT queue.grant_system_privilege('enqueue_any', 'no_such_role')$$);
CALL pg_temp.try($$SELECT queue.grant_system_privilege('enqueue_any', NULL)$$);
CALL pg_temp.try($$SELECT queue.revoke_system_privilege('enqueue_any', 'regress_queue_user')$$);
SELECT count(*) FROM queue.system_privilege;

-- a right that is lost while a statement is prepared is lost at the next call
SET ROLE regress_queue_owner;
SELECT queue.grant_queue_privilege('dequeue', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
PREPARE take AS SELECT count(payload) FROM queue.dequeue('g.q');
EXECUTE take;
SET ROLE regress_queue_owner;
SELECT queue.revoke_queue_privilege('dequeue', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
EXECUTE take;
DEALLOCATE take;
RESET ROLE;

-- a user who may use a queue needs no right on its table, its journal or its exception queue
SET ROLE regress_queue_owner;
SELECT queue.alter_queue('g.q', retention_time => '1 day', max_retries => 0);
SELECT queue.grant_queue_privilege('all', 'g.q', 'regress_queue_user');
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q', '"expired"', expiration => '1 us') IS NOT NULL AS sent;
SELECT count(*) FROM queue.dequeue('g.q', max_messages => 100);
BEGIN;
SELECT queue.enqueue('g.q', '"failed"') IS NOT NULL AS sent;
COMMIT;
BEGIN;
SELECT payload FROM queue.dequeue('g.q');
ROLLBACK;
SELECT count(*) FROM queue.dequeue('g.q');
RESET ROLE;
SELECT payload FROM g."aq$_q_qt_e" ORDER BY msgid;
SELECT count(*) FROM g.q_qt WHERE state = 2;
-- nor on the schema of the one that a message names; where that is not used, the names are shown all the same
CREATE SCHEMA g_hidden AUTHORIZATION regress_queue_owner;
SET ROLE regress_queue_owner;
SELECT queue.create_queue('g_hidden.exc', 'g.q_qt', queue_type => 'exception');
SELECT queue.enqueue('g.q', '"named"', expiration => '1 us', exception_queue => 'g_hidden.exc') IS NOT NULL AS sent;
SELECT queue.enqueue('g.q', '"kept"', exception_queue => 'g_hidden.exc') IS NOT NULL AS sent;
GRANT SELECT ON g.aq$q_qt TO regress_queue_user;
SET ROLE regress_queue_user;
SELECT payload FROM queue.dequeue('g.q', mode => 'browse', max_messages => 10);
SELECT count(*) FROM queue.dequeue('g.q', condition => 'payload = ''"none"''');
SELECT queue, exception_queue, exception_queue_owner FROM g.aq$q_qt WHERE user_data = '"kept"';
SELECT queue, original_queue_name FROM g.aq$q_qt WHERE user_data = '"named"';
SELECT payload FROM queue.dequeue('g.q');
RESET ROLE;
SELECT payload FROM g_hidden.exc;
SELECT queue.drop_queue('g_hidden.exc');
DROP SCHEMA g_hidden;

-- the planner calls another function for a call that gives little; rights on the one called by name count
EXPLAIN (VERBOSE, COSTS OFF) SELECT payload FROM queue.dequeue('g.q');
EXPLAIN (VERBOSE, COSTS OFF) SELECT payload FROM queue.dequeue('g.q', max_messages => 2);
PREPARE take AS SELECT payload FROM queue.dequeue('g.q');
SELECT queue.enqueue('g.q', n::text) IS NOT NULL AS sent FROM generate_series(101, 103) n;
EXECUTE take;
REVOKE EXECUTE ON FUNCTION queue.dequeue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION queue.dequeue TO regress_queue_group;
SET ROLE regress_queue_owner;
CALL pg_temp.try($$SELECT payload FROM queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue.dequeue('g.q')$$);
CALL pg_temp.try($$SELECT queue._dequeue('g.q')$$);
CALL pg_temp.try($$EXECUTE take$$);
CALL pg_temp.try($$SELECT payload FROM queue.dequeue('g.q', max_messages => 2)$$);
SELECT queue.grant_queue_privilege('dequeue', 'g.q', 'regress_queue_member');
SET ROLE regress_queue_member;
SELECT payload FROM queue.dequeue('g.q');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION queue.dequeue FROM regress_queue_group;
GRANT EXECUTE ON FUNCTION queue.dequeue TO PUBLIC;
SET ROLE regress_queue_owner;
EXECUTE take;
RESET ROLE;
DEALLOCATE take;
EXPLAIN (VERBOSE, COSTS OFF) SELECT queue.enqueue('g.q', '1');
EXPLAIN (VERBOSE, COSTS OFF) SELECT queue.enqueue('g.q', '1'::jsonb, priority => 5, delay => NULL);
EXPLAIN (VERBOSE, COSTS OFF) SELECT queue.enqueue('g.q', '1', correlation => 'c');
EXPLAIN (VERBOSE, COSTS OFF) SELECT queue.enqueue('g.q', '1', visibility => 'immediate');
PREPARE send AS SELECT queue.enqueue('g.q', '5', priority => $1) IS NOT NULL AS sent;
EXECUTE send(7);
EXECUTE send(NULL);
EXECUTE send(3000000000);
SELECT payload, priority FROM queue.dequeue('g.q', max_messages => 10);
DO $$
DECLARE
	function	regprocedure;
BEGIN
	FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = 'queue'::regnamespace AND proname = 'enqueue'
	LOOP
		EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
	END LOOP;
END
$$;
SET ROLE regress_queue_owner;
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1')$$);
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1'::jsonb)$$);
CALL pg_temp.try($$SELECT queue.enqueue('g.q', '1', correlation => 'c')$$);
CALL pg_temp.try($$SELECT queue._enqueue('g.q', '1', 1)$$);
CALL pg_temp.try($$SELECT queue._enqueue('g.q', '1'::jsonb, 1)$$);
CALL pg_temp.try($$EXECUTE send(1)$$);
RESET ROLE;
DO $$
DECLARE
	function	regprocedure;
BEGIN
	FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = 'queue'::regnamespace AND proname = 'enqueue'
	LOOP
		EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', function);
	END LOOP;
END
$$;
DEALLOCATE send;

-- owners change and go
REASSIGN OWNED BY regress_queue_owner TO regress_queue_user;
SET ROLE regress_queue_user;
SELECT queue.enqueue('g.q', '1') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('g.q');
RESET ROLE;
DROP OWNED BY regress_queue_user;
SELECT count(*) FROM queue.queue;
SELECT count(*) FROM queue.queue_table;
DROP ROLE regress_queue_owner, regress_queue_user, regress_queue_member, regress_queue_group;
