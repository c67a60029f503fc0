-- Proves: queue tables are made, altered and dropped with all their options, and bad calls change nothing.
-- How: each option and each error of create_, alter_ and drop_queue_table.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
-- defaults
SELECT queue.create_queue_table('t_default');
SELECT payload_type, sort_list, multiple_consumers, message_grouping, comment
FROM queue.queue_table WHERE relation = 't_default'::regclass;
-- its columns, in order
SELECT attname, format_type(atttypid, atttypmod) AS type, attnotnull
FROM pg_attribute WHERE attrelid = 't_default'::regclass AND attnum > 0
ORDER BY attnum;
-- its partitions: four ready, one waiting, four processed, one expired
SELECT level, isleaf, count(*) FROM pg_partition_tree('t_default')
GROUP BY 1, 2 ORDER BY 1, 2;
-- the views that come with it
SELECT relname, relkind FROM pg_class WHERE relname LIKE 'aq$%t\_default%' ORDER BY 1;
SELECT queue_type, is_default_exception, enqueue_enabled, dequeue_enabled
FROM queue.queue WHERE queue_table = 't_default'::regclass;
-- all members of the user, none of the extension
SELECT count(*) FROM pg_depend d JOIN pg_partition_tree('t_default') t
ON d.classid = 'pg_class'::regclass AND d.objid = t.relid WHERE d.deptype = 'e';

-- options, in any case
SELECT queue.create_queue_table('t_options', payload_type => 'text',
	sort_list => 'PRIORITY, ENQ_TIME', message_grouping => 'NONE',
	comment => 'for tests');
SELECT payload_type, sort_list, message_grouping, comment
FROM queue.queue_table WHERE relation = 't_options'::regclass;

-- comment
SELECT queue.alter_queue_table('t_options', comment => 'changed');
SELECT comment FROM queue.queue_table WHERE relation = 't_options'::regclass;
SELECT queue.alter_queue_table('t_options');
SELECT comment FROM queue.queue_table WHERE relation = 't_options'::regclass;

-- rotation, alone and with a comment
SELECT queue.alter_queue_table('t_options', rotation => 'Eager');
SELECT comment, rotation FROM queue.queue_tables WHERE queue_table = 't_options'::regclass;
SELECT queue.alter_queue_table('t_options', comment => '', rotation => 'safe');
SELECT comment, rotation FROM queue.queue_tables WHERE queue_table = 't_options'::regclass;
SELECT queue.create_queue('t_eager', rotation => 'eager');
SELECT rotation FROM queue.queue_tables WHERE queue_table = 't_eager_qt'::regclass;
SELECT queue.drop_queue_table('t_eager_qt', force => true);

-- errors of create_queue_table
CALL pg_temp.try($$SELECT queue.create_queue_table('t_default')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table(NULL)$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', sort_list => 'msgid')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', sort_list => 'commit_time,priority')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', message_grouping => 'sometimes')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', message_grouping => 'transactional')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', multiple_consumers => true)$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', payload_type => 'record')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', payload_type => 'anyelement')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('t_bad', payload_type => 'no_such_type')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('no_such_schema.t_bad')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('a.b.c.d')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('aq$_bad')$$);
CALL pg_temp.try($$SELECT queue.create_queue_table('pg_temp.t_bad')$$);
SELECT relname FROM pg_class WHERE relname LIKE '%t\_bad%' ORDER BY 1;

-- errors of the others
CREATE TABLE not_a_queue (n int);
CALL pg_temp.try($$SELECT queue.alter_queue_table('not_a_queue', comment => 'x')$$);
CALL pg_temp.try($$SELECT queue.alter_queue_table('no_such_table', comment => 'x')$$);
CALL pg_temp.try($$SELECT queue.alter_queue_table(NULL, comment => 'x')$$);
CALL pg_temp.try($$SELECT queue.drop_queue_table('not_a_queue')$$);
CALL pg_temp.try($$SELECT queue.drop_queue_table('no_such_table')$$);
CALL pg_temp.try($$SELECT queue.drop_queue_table(NULL)$$);
CALL pg_temp.try($$SELECT queue.purge_queue_table('not_a_queue')$$);

-- dropping: not while it has queues, unless forced; the default exception
-- queue goes with it
SELECT queue.create_queue('t_queue', 't_options');
SELECT queue.enqueue('t_queue', 'one') IS NOT NULL AS sent;
CALL pg_temp.try($$SELECT queue.drop_queue_table('t_options')$$);
SELECT queue.drop_queue_table('t_options', force => true);
SELECT queue.drop_queue_table('t_default');
SELECT count(*) FROM queue.queue_table;
SELECT count(*) FROM queue.queue;
SELECT relname FROM pg_class WHERE relname ~ '(t_default|t_options|t_queue)' ORDER BY 1;

-- plain DROP TABLE and DROP SCHEMA clean the catalog
CREATE SCHEMA q_schema;
SELECT queue.create_queue('q_schema.q1');
SELECT queue.create_queue_table('q_schema.t2');
DROP TABLE q_schema.t2 CASCADE;
SELECT queue_table::text, view::text FROM queue.queue ORDER BY 2;
DROP SCHEMA q_schema CASCADE;
SELECT count(*) FROM queue.queue_table;
SELECT count(*) FROM queue.queue;

-- a rollback undoes all of it
BEGIN;
SELECT queue.create_queue('t_rolled_back');
ROLLBACK;
SELECT to_regclass('t_rolled_back'), to_regclass('t_rolled_back_qt');
BEGIN;
SELECT queue.create_queue('t_kept');
SAVEPOINT s;
SELECT queue.drop_queue_table('t_kept_qt', force => true);
ROLLBACK TO s;
SELECT queue.enqueue('t_kept', '1') IS NOT NULL AS sent;
COMMIT;
SELECT payload FROM queue.dequeue('t_kept');
SELECT queue.drop_queue_table('t_kept_qt', force => true);
DROP TABLE not_a_queue;
