# shellcheck shell=bash disable=SC2034
# 4 producers and 4 consumers, one message per transaction, 1,000 waiting
# Beside it, what 8 clients commit with plain INSERTs.

workload_steady() {
	step "steady: 4 + 4 clients, backlog of 1,000"
	each_round steady_round insert queue skip_locked pgmq graphile_worker pg_boss
}

steady_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION")
	fresh
	if [ -z "$TAKE" ]; then
		producing 8
		load "${ARGUMENTS[@]}"
		record steady on rate "$(got sent_rate)"
		return 0
	fi
	fill 1000
	producing 4
	consuming 4
	load "${ARGUMENTS[@]}" --backlog 900:1100 --backlog-start 1000
	record steady on rate "$(got received_rate)"
	record steady on p50_ms "$(got_ms latency_p50_us)"
	record steady on p99_ms "$(got_ms latency_p99_us)"
}
