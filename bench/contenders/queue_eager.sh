# shellcheck shell=bash disable=SC2034
# this extension: segments are given back although old snapshots need them
TITLE="queue, eager"
# shellcheck source=queue.sh
. "$BENCH/contenders/queue.sh"
SETUP="CREATE EXTENSION queue; SELECT queue.create_queue_table('bench_qt', rotation => 'eager');
	SELECT queue.create_queue('bench', 'bench_qt')"
contender_prepare() {
	REASON="this version has no eager rotation"
	grep -q rotation "$TOP"/sql/install/admin.sql
}
