# shellcheck shell=bash disable=SC2034
# this extension: messages of better priority first
TITLE="queue, priority"
SETUP="CREATE EXTENSION queue; SELECT queue.create_queue('bench', sort_list => 'priority,enq_time')"
SEND="SELECT queue.enqueue('bench', \$1::jsonb, priority => \$2::int)"
TAKE="SELECT payload FROM queue.dequeue('bench')"
FILL="INSERT INTO bench (payload, priority) SELECT bench.payload(n), n % 10 FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM bench"
