-- Proves: the functions, types and views are exactly the published ones, described, and marked as what they do.
-- How: catalog queries compared with the lists written here; everything is rolled back.
\set ECHO none
\set QUIET 1
BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS queue;
SELECT * FROM no_plan();

CREATE TEMP TABLE contract (name text, arguments text, result text);
INSERT INTO contract VALUES
('adopt', 'queue_table regclass', 'integer'),
('alter_queue', 'queue regclass, max_retries bigint DEFAULT ''-2147483648''::integer, retry_delay interval DEFAULT ''-2147483648 days''::interval, retention_time interval DEFAULT ''-2147483648 days''::interval, comment text DEFAULT NULL::text', 'void'),
('alter_queue_table', 'queue_table regclass, comment text DEFAULT NULL::text, rotation text DEFAULT NULL::text', 'void'),
('create_queue', 'queue_name text, queue_table text DEFAULT NULL::text, queue_type text DEFAULT ''normal''::text, max_retries bigint DEFAULT 5, retry_delay interval DEFAULT ''00:00:00''::interval, retention_time interval DEFAULT ''00:00:00''::interval, comment text DEFAULT NULL::text, payload_type regtype DEFAULT NULL::regtype, sort_list text DEFAULT NULL::text, multiple_consumers boolean DEFAULT NULL::boolean, message_grouping text DEFAULT NULL::text, rotation text DEFAULT NULL::text', 'regclass'),
('create_queue_table', 'queue_table text, payload_type regtype DEFAULT ''jsonb''::regtype, sort_list text DEFAULT ''enq_time''::text, multiple_consumers boolean DEFAULT false, message_grouping text DEFAULT ''none''::text, comment text DEFAULT NULL::text, rotation text DEFAULT ''safe''::text', 'regclass'),
('dequeue', 'queue regclass, consumer text DEFAULT NULL::text, mode text DEFAULT ''remove''::text, navigation text DEFAULT ''first_message''::text, wait interval DEFAULT ''00:00:00''::interval, msgid uuid DEFAULT NULL::uuid, correlation text DEFAULT NULL::text, condition text DEFAULT NULL::text, max_messages bigint DEFAULT 1, visibility text DEFAULT ''on_commit''::text, delivery_mode text DEFAULT ''persistent''::text', 'SETOF queue.message'),
('dequeue_as', 'payload_type anyelement, queue regclass, consumer text DEFAULT NULL::text, mode text DEFAULT ''remove''::text, navigation text DEFAULT ''first_message''::text, wait interval DEFAULT ''00:00:00''::interval, msgid uuid DEFAULT NULL::uuid, correlation text DEFAULT NULL::text, condition text DEFAULT NULL::text, max_messages bigint DEFAULT 1, visibility text DEFAULT ''on_commit''::text, delivery_mode text DEFAULT ''persistent''::text', 'TABLE(msgid uuid, payload anyelement, priority integer, correlation text, enq_time timestamp with time zone, retry_count integer, properties jsonb, sender queue.agent, group_id uuid, step integer, original_msgid uuid, expires_at timestamp with time zone, reply_to text, routing_key text, group_key text)'),
('receive', 'queue regclass, lease interval DEFAULT ''00:00:30''::interval, consumer text DEFAULT NULL::text, max_messages bigint DEFAULT 1, wait interval DEFAULT ''00:00:00''::interval, condition text DEFAULT NULL::text', 'TABLE(receipt uuid, msgid uuid, payload jsonb, priority integer, correlation text, enq_time timestamp with time zone, retry_count integer, properties jsonb, sender queue.agent, group_id uuid, step integer, original_msgid uuid, expires_at timestamp with time zone, reply_to text, routing_key text, group_key text)'),
('ack', 'receipts uuid[]', 'integer'),
('nack', 'receipts uuid[], delay interval DEFAULT NULL::interval', 'integer'),
('extend', 'receipts uuid[], lease interval DEFAULT ''00:00:30''::interval', 'integer'),
('listen', 'agents queue.agent[], timeout interval DEFAULT NULL::interval', 'queue.agent'),
('wait', 'IN queue regclass, IN consumer text DEFAULT NULL::text, IN timeout interval DEFAULT NULL::interval', NULL),
('drop_queue', 'queue regclass', 'void'),
('drop_queue_table', 'queue_table regclass, force boolean DEFAULT false', 'void'),
('enq_time', 'msgid uuid', 'timestamp with time zone'),
('enqueue', 'queue regclass, payload anyelement, priority bigint DEFAULT 1, delay interval DEFAULT NULL::interval, deliver_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, recipients queue.agent[] DEFAULT NULL::queue.agent[], exception_queue text DEFAULT NULL::text, sender text DEFAULT NULL::text, group_key text DEFAULT NULL::text, dedup_key text DEFAULT NULL::text, reply_to text DEFAULT NULL::text, routing_key text DEFAULT NULL::text, relative_msgid uuid DEFAULT NULL::uuid, sequence_deviation text DEFAULT NULL::text, visibility text DEFAULT ''on_commit''::text, delivery_mode text DEFAULT ''persistent''::text', 'uuid'),
('enqueue', 'queue regclass, payload text, priority bigint DEFAULT 1, delay interval DEFAULT NULL::interval, deliver_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expiration interval DEFAULT NULL::interval, correlation text DEFAULT NULL::text, properties jsonb DEFAULT NULL::jsonb, recipients queue.agent[] DEFAULT NULL::queue.agent[], exception_queue text DEFAULT NULL::text, sender text DEFAULT NULL::text, group_key text DEFAULT NULL::text, dedup_key text DEFAULT NULL::text, reply_to text DEFAULT NULL::text, routing_key text DEFAULT NULL::text, relative_msgid uuid DEFAULT NULL::uuid, sequence_deviation text DEFAULT NULL::text, visibility text DEFAULT ''on_commit''::text, delivery_mode text DEFAULT ''persistent''::text', 'uuid'),
('enqueue_array', 'queue regclass, payloads anyarray, properties queue.message_properties[] DEFAULT NULL::queue.message_properties[]', 'uuid[]'),
('enqueue_array', 'queue regclass, payloads text, properties queue.message_properties[] DEFAULT NULL::queue.message_properties[]', 'uuid[]'),
('grant_queue_privilege', 'privilege text, queue regclass, grantee text, grant_option boolean DEFAULT false', 'void'),
('grant_system_privilege', 'privilege text, grantee text, admin_option boolean DEFAULT false', 'void'),
('purge_queue_table', 'queue_table regclass, condition text DEFAULT NULL::text', 'bigint'),
('redrive', 'exception_queue regclass, destination regclass DEFAULT NULL::regclass, condition text DEFAULT NULL::text, max_messages bigint DEFAULT NULL::bigint', 'bigint'),
('revoke_queue_privilege', 'privilege text, queue regclass, grantee text', 'void'),
('revoke_system_privilege', 'privilege text, grantee text', 'void'),
('start_queue', 'queue regclass, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true', 'void'),
('stop_queue', 'queue regclass, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true, wait boolean DEFAULT true', 'void');

-- as it is when nothing but pg_catalog is on the path
CREATE TEMP VIEW actual AS
SELECT p.oid, p.proname::text AS name, pg_get_function_arguments(p.oid) AS arguments,
	pg_get_function_result(p.oid) AS result
FROM pg_proc p
WHERE p.pronamespace = 'queue'::regnamespace AND p.proname NOT LIKE '\_%';

SELECT is(a.arguments, c.arguments, 'arguments of ' || c.name)
FROM contract c LEFT JOIN actual a ON a.name = c.name
	AND (a.arguments = c.arguments
		 OR (SELECT count(*) FROM contract o WHERE o.name = c.name) = 1)
ORDER BY c.name, c.arguments;
SELECT is(a.result, c.result, 'result of ' || c.name)
FROM contract c JOIN actual a USING (name, arguments)
ORDER BY c.name, c.arguments;
SELECT set_eq('SELECT name, arguments FROM actual', 'SELECT name, arguments FROM contract',
	'there is no public function beside these');

-- volatility and parallel safety
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'queue'::regnamespace
	  AND p.proname NOT IN ('enq_time', '_require_preload')
	  AND (p.provolatile <> 'v' OR p.proparallel <> 'u')
	$$, 'what changes or shows queues is VOLATILE and PARALLEL UNSAFE');
SELECT results_eq($$
	SELECT provolatile::text, proparallel::text, proisstrict FROM pg_proc
	WHERE proname = 'enq_time' AND pronamespace = 'queue'::regnamespace
	$$, $$ VALUES ('i', 's', true) $$, 'enq_time can stand in an index');
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'queue'::regnamespace AND p.proisstrict
	  AND p.proname <> 'enq_time'
	$$, 'no other is STRICT: a NULL must not pass for success');

-- comments
SELECT is_empty($$
	SELECT p.oid::regprocedure FROM pg_proc p
	WHERE p.pronamespace = 'queue'::regnamespace AND p.proname NOT LIKE '\_%'
	  AND obj_description(p.oid, 'pg_proc') IS NULL
	$$, 'each function has a comment');
SELECT is_empty($$
	SELECT c.oid::regclass FROM pg_class c
	WHERE c.relnamespace = 'queue'::regnamespace AND c.relkind IN ('r', 'v', 'p')
	  AND c.relname NOT LIKE '\_%' AND obj_description(c.oid, 'pg_class') IS NULL
	$$, 'each table and view has a comment');
SELECT is_empty($$
	SELECT t.oid::regtype FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
	WHERE t.typnamespace = 'queue'::regnamespace AND c.relkind = 'c'
	  AND obj_description(t.oid, 'pg_type') IS NULL
	$$, 'each type has a comment');
SELECT isnt(obj_description(oid, 'pg_extension'), NULL, 'the extension has a comment')
FROM pg_extension WHERE extname = 'queue';

-- types and views
SELECT columns_are('queue', 'agent', ARRAY['name', 'address', 'protocol']);
SELECT is((SELECT array_agg(attname::text || ' ' || format_type(atttypid, atttypmod) ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'queue.message'::regclass AND attnum > 0),
	ARRAY['msgid uuid', 'payload jsonb', 'priority integer', 'correlation text',
		'enq_time timestamp with time zone', 'retry_count integer', 'properties jsonb',
		'sender queue.agent', 'group_id uuid', 'step integer', 'original_msgid uuid',
		'expires_at timestamp with time zone', 'reply_to text', 'routing_key text', 'group_key text'],
	'queue.message');
SELECT is((SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = 'queue.message_properties'::regclass AND attnum > 0),
	ARRAY['priority', 'delay', 'deliver_at', 'expiration', 'correlation', 'properties', 'recipients',
		'exception_queue', 'sender', 'group_key', 'dedup_key', 'reply_to', 'routing_key',
		'relative_msgid', 'sequence_deviation', 'visibility', 'delivery_mode'],
	'queue.message_properties has a field for each argument of enqueue from priority on');
SELECT has_view('queue', 'queues', 'view queues');
SELECT has_view('queue', 'queue_tables', 'view queue_tables');
SELECT columns_are('queue', 'workers', ARRAY['pid', 'kind', 'database', 'state', 'started_at', 'starts',
	'last_run', 'next_run', 'runs', 'errors', 'last_error', 'last_error_sqlstate', 'last_error_job',
	'last_error_at']);

-- what create_queue makes
SELECT queue.create_queue('contract_q');
SELECT is((SELECT array_agg(attname::text || ' ' || format_type(atttypid, atttypmod) ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'contract_q'::regclass AND attnum > 0 AND NOT attisdropped),
	ARRAY['msgid uuid', 'payload jsonb', 'priority integer', 'correlation text', 'properties jsonb',
		'delay interval', 'deliver_at timestamp with time zone', 'expiration interval',
		'exception_queue text', 'sender text', 'group_key text', 'dedup_key text',
		'reply_to text', 'routing_key text', 'state text', 'enq_time timestamp with time zone',
		'expires_at timestamp with time zone', 'retry_count integer', 'original_msgid uuid',
		'group_id uuid', 'step integer'], 'columns of a queue''s view');
SELECT ok('security_barrier=true' = ANY (reloptions), 'the view is a security barrier')
FROM pg_class WHERE oid = 'contract_q'::regclass;
SELECT has_view('aq$contract_q_qt', 'the view of all messages');
SELECT has_view('aq$_contract_q_qt_e', 'the exception queue');
SELECT is((SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = '"aq$contract_q_qt"'::regclass AND attnum > 0),
	ARRAY['queue', 'msg_id', 'corr_id', 'msg_priority', 'msg_state', 'delay', 'delay_timestamp',
		'expiration', 'enq_time', 'enq_timestamp', 'enq_user_id', 'enq_txn_id', 'deq_time',
		'deq_timestamp', 'deq_user_id', 'deq_txn_id', 'retry_count', 'exception_queue_owner',
		'exception_queue', 'user_data', 'original_msgid', 'original_queue_name',
		'original_queue_owner', 'expiration_reason', 'sender_name', 'sender_address',
		'sender_protocol', 'properties'], 'columns of the view of all messages');
SELECT is((SELECT count(*) FROM pg_depend WHERE deptype = 'e'
		AND objid IN (SELECT relid FROM pg_partition_tree('contract_q_qt'))), 0::bigint,
	'a queue table is no member of the extension: it is dumped');
SELECT is_empty($$
	SELECT p.relid::regclass FROM pg_partition_tree('contract_q_qt') p
	WHERE p.isleaf AND pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = p.relid), p.relid) IS NOT NULL
	  AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = p.relid AND t.tgenabled = 'A')
	  AND EXISTS (SELECT FROM pg_class c WHERE c.oid = p.relid AND NOT (
			SELECT p.relid = ANY (array_agg(l.relid)) FROM pg_inherits i, pg_partition_tree(i.inhrelid) l
			 WHERE i.inhparent = 'contract_q_qt'::regclass AND l.isleaf
			   AND pg_get_expr((SELECT relpartbound FROM pg_class WHERE oid = i.inhrelid), i.inhrelid) LIKE '%(''2'')%'))
	$$, 'each leaf but the journal''s tells of rows that come by plain SQL');

SELECT * FROM finish();
ROLLBACK;
