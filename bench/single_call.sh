#!/usr/bin/env bash
#
# single_call.sh: what a single-message call costs.
#
# Calls in a PL/pgSQL loop inside one transaction, so neither the client's
# round trip nor the commit is measured.  What is compared runs on the same
# server in turns, and each figure is the median of the rounds.

set -euo pipefail
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../test/server.sh
. "$TOP/test/server.sh"

ROUNDS=${ROUNDS:-7}
CALLS=${CALLS:-20000}		# in each round of enqueue and INSERT
DEPTH=${DEPTH:-1000000}		# messages behind, and consumed before
SHORT=$((CALLS / 4))		# calls in each round of the depth comparison

sql() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
step() { queue_say "bench: $*"; }

queue_begin
queue_packages run
queue_server release "shared_buffers = '1GB'" "max_wal_size = '16GB'" \
	"checkpoint_timeout = '1h'" "autovacuum = ${AUTOVACUUM:-on}"
sql -c 'CREATE EXTENSION queue'
sql -f "$TOP/bench/single_call.sql"

# ---- enqueue, INSERT, dequeue -------------------------------------------------

sql >/dev/null <<'SQL'
SELECT queue.create_queue_table('bench_qt');
SELECT queue.create_queue('called', 'bench_qt');
SELECT queue.create_queue('inserted', 'bench_qt');
SELECT bench.make_insert('bench_qt', 'inserted', 'insert');
-- the same columns and index, but no partitions and no trigger
CREATE TABLE bench.plain (LIKE bench_qt);
CREATE INDEX ON bench.plain (queue_id, consumer_id, msgid);
SELECT bench.make_insert('bench.plain', 'inserted', 'insert_plain');
SQL
step "$ROUNDS rounds of $CALLS calls"
for ((round = 1; round <= ROUNDS; round++)); do
	sql -c "SELECT bench.insert($CALLS)" >>"$QUEUE_WORK/insert"
	sql -c "SELECT bench.insert_plain($CALLS)" >>"$QUEUE_WORK/plain"
	sql -c "SELECT bench.enqueue('called', $CALLS)" >>"$QUEUE_WORK/enqueue"
	sql -c "SELECT bench.dequeue('called', $CALLS)" >>"$QUEUE_WORK/dequeue"
	sql -c 'TRUNCATE bench.plain'
	sql -c 'CHECKPOINT'
done

# ---- depth and history ----------------------------------------------------------

rest=$((ROUNDS * (SHORT + 200)))
step "filling: $DEPTH messages behind, and $DEPTH to be consumed under a snapshot"
sql >/dev/null <<SQL
SELECT queue.create_queue('few');
SELECT queue.create_queue('many');
SELECT queue.create_queue('used');
CALL bench.fill('few', $((rest + 1000)));
CALL bench.fill('many', $((rest + DEPTH)));
CALL bench.fill('used', $((rest + 1000 + DEPTH)));
SQL
# another session holds a snapshot from before the first dequeue to the end
mkfifo "$QUEUE_WORK/holder"
sql <"$QUEUE_WORK/holder" >/dev/null &
holder=$!
exec 8>"$QUEUE_WORK/holder"
printf 'BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 1;\n' >&8
until [ "$(sql -c "SELECT count(*) FROM pg_stat_activity
	WHERE state = 'idle in transaction' AND backend_xmin IS NOT NULL")" -ge 1 ]; do
	:
done
step "consuming $DEPTH"
sql -c "CALL bench.consume('used', $DEPTH)"
sql -c 'CHECKPOINT'
step "$ROUNDS rounds of $SHORT calls"
for ((round = 1; round <= ROUNDS; round++)); do
	for queue in few many used; do
		sql -c "SELECT bench.dequeue('$queue', $SHORT)" >>"$QUEUE_WORK/$queue"
	done
done
printf 'COMMIT;\n' >&8
exec 8>&-
wait "$holder"

# ---- report -----------------------------------------------------------------

figure() { median <"$QUEUE_WORK/$1"; }
row() {				# text figure
	printf '%-58s %7.2f us\n' "$1" "$2"
}
ratio() {			# text a b limit
	awk -v text="$1" -v a="$2" -v b="$3" -v limit="$4" 'BEGIN {
		printf "%-58s %7.2f    (wanted: %s)\n", text, a / b, limit }'
}
insert=$(figure insert) plain=$(figure plain) enqueue=$(figure enqueue)
dequeue=$(figure dequeue) few=$(figure few) many=$(figure many)
used=$(figure used)
sql -c "SELECT version()"
echo
row "plain INSERT of the same row, same table" "$insert"
row "  the same into a table without partitions and trigger" "$plain"
row "queue.enqueue()" "$enqueue"
row "queue.dequeue()" "$dequeue"
row "queue.dequeue(), 1000 messages behind" "$few"
row "queue.dequeue(), $DEPTH messages behind" "$many"
row "queue.dequeue(), $DEPTH consumed, snapshot held" "$used"
echo
ratio "enqueue / INSERT" "$enqueue" "$insert" "at most 1.5"
ratio "enqueue / INSERT without partitions and trigger" "$enqueue" "$plain" "for comparison"
ratio "dequeue / enqueue" "$dequeue" "$enqueue" "at most 1.5"
ratio "dequeue, $DEPTH behind / 1000 behind" "$many" "$few" "0.8 to 1.2"
ratio "dequeue, $DEPTH consumed under a snapshot / not" "$used" "$few" "0.8 to 1.2"
