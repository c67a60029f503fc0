# shellcheck shell=bash disable=SC2034
# pg-boss: its schema and the statements of its source, without its worker
# Completed jobs stay in its table until its maintenance archives them.
PG_BOSS_VERSION=10.4.2
PG_BOSS_SQL=$QUEUE_WORK/pg_boss
TITLE="pg-boss $PG_BOSS_VERSION"
COUNT="SELECT count(*) FROM pgboss.job WHERE state < 'active'"
FILL="INSERT INTO pgboss.job (name, data) SELECT 'bench', bench.payload(n) FROM generate_series(1, :count) n"
contender_prepare() {
	REASON="npm cannot install pg-boss@$PG_BOSS_VERSION here, or node is too old for it"
	npm_package "pg-boss@$PG_BOSS_VERSION" || return 1
	mkdir -p "$PG_BOSS_SQL" &&
		NODE_PATH=$QUEUE_WORK/npm/node_modules node "$BENCH/contenders/pg_boss.js" "$PG_BOSS_SQL" 2>"$PG_BOSS_SQL/log"
}
contender_setup() {
	sql -f "$PG_BOSS_SQL/setup.sql" >/dev/null
}
if [ -f "$PG_BOSS_SQL/take.sql" ]; then
	SEND=$(<"$PG_BOSS_SQL/send.sql")
	SEND_MANY=$(<"$PG_BOSS_SQL/send_many.sql")
	TAKE=$(<"$PG_BOSS_SQL/take.sql")
	TAKE_MANY=$(<"$PG_BOSS_SQL/take_many.sql")
	ACK=$(<"$PG_BOSS_SQL/ack.sql")
	ACK_MANY=$(<"$PG_BOSS_SQL/ack_many.sql")
fi
