# shellcheck shell=bash disable=SC2034
# 4 producers of single messages, consumers take up to 100 a call
# A consumer that got fewer waits for 5 ms.  PgQ with several ticks and its one
# consumer.

workload_steady_100() {
	local tick contenders=(queue skip_locked pgmq)
	for tick in $TICKS; do
		contenders+=("pgq_$tick")
	done
	step "steady_100: 4 producers, consumers take 100 a call"
	each_round steady_100_round "${contenders[@]}"
}

steady_100_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION")
	fresh
	producing 4
	consuming_many 4
	load "${ARGUMENTS[@]}" --backlog 0:10000 --short-idle 5000
	record steady_100 on rate "$(got received_rate)"
	record steady_100 on p50_ms "$(got_ms latency_p50_us)"
	record steady_100 on p99_ms "$(got_ms latency_p99_us)"
}
