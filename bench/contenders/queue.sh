# shellcheck shell=bash disable=SC2034
# this extension: a queue of jsonb in the order of the enqueue calls
TITLE="queue"
SETUP="CREATE EXTENSION queue; SELECT queue.create_queue('bench')"
SEND="SELECT queue.enqueue('bench', \$1::jsonb)"
SEND_MANY="SELECT cardinality(queue.enqueue_array('bench', \$1::jsonb[]))"
TAKE="SELECT payload FROM queue.dequeue('bench')"
TAKE_WAITING="SELECT payload FROM queue.dequeue('bench', wait => '1 s')"
TAKE_MANY="SELECT payload FROM queue.dequeue('bench', max_messages => 100)"
FILL="SELECT cardinality(queue.enqueue_array('bench', ARRAY(SELECT bench.payload(n) FROM generate_series(1, :count) n)))"
COUNT="SELECT count(*) FROM bench"
