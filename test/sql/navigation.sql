-- Proves: first_message starts over, next_message goes on from the session's position; the outcomes are the reference's.
-- How: browse and locked step through a queue; changed criteria, arrivals, other queues, groups.
\set ECHO none
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/try.psql'
\i :include
SELECT queue.create_queue('n', payload_type => 'text', sort_list => 'priority,enq_time');
SELECT queue.create_queue('n2', payload_type => 'text');
SELECT queue.enqueue('n', x, priority => 5, correlation => 'c') IS NOT NULL AS sent FROM unnest('{a,b,c}'::text[]) x;
SELECT queue.enqueue('n2', x) IS NOT NULL AS sent FROM unnest('{x,y}'::text[]) x;

-- the first call is a first_message; then step by step to the end
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
-- each queue has its own position
SELECT payload FROM queue.dequeue('n2', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n2', mode => 'browse', navigation => 'next_message');
-- first_message starts over
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse');
SELECT payload FROM queue.dequeue('n', mode => 'browse');

-- a message of a higher priority that comes later: first_message sees it, next_message not before the end
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message');
SELECT queue.enqueue('n', 'urgent', priority => 1, correlation => 'u') IS NOT NULL AS sent;
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message');
-- several at a time
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message', max_messages => 2);
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message', max_messages => 10);

-- changing the search between next_message calls is refused; first_message may
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message');
CALL pg_temp.try($$SELECT queue.dequeue('n', mode => 'browse', navigation => 'next_message', correlation => 'c')$$);
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'first_message', correlation => 'c');
SELECT payload FROM queue.dequeue('n', mode => 'browse', navigation => 'next_message', correlation => 'c');
CALL pg_temp.try($$SELECT queue.dequeue('n', mode => 'browse', navigation => 'next_message')$$);

-- remove with next_message
SELECT payload FROM queue.dequeue('n', navigation => 'first_message');
SELECT payload FROM queue.dequeue('n', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', navigation => 'next_message');
SELECT payload FROM queue.dequeue('n', navigation => 'next_message');
SELECT count(*) FROM n;

-- groups come with message_grouping
CALL pg_temp.try($$SELECT queue.dequeue('n', navigation => 'next_transaction')$$);
CALL pg_temp.try($$SELECT queue.dequeue('n', navigation => 'first_message_multi_group')$$);
CALL pg_temp.try($$SELECT queue.dequeue('n', navigation => 'next_message_multi_group')$$);
SELECT queue.drop_queue_table('n_qt', force => true);
SELECT queue.drop_queue_table('n2_qt', force => true);
