# shellcheck shell=bash disable=SC2034
# 1,000 messages a second: latency from end to end
# 4 producers, 4 consumers that wait where the contender can wait, and else
# ask again 1 ms after they got nothing.

workload_paced() {
	step "paced: 1,000 messages a second"
	each_round paced_round queue skip_locked pgmq graphile_worker pg_boss pgq_50
}

paced_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$PACED_SECONDS") percentile
	local TAKE=${TAKE_WAITING:-$TAKE}
	fresh
	producing 4
	consuming 4
	load "${ARGUMENTS[@]}" --rate 1000
	for percentile in 50 99 99.9; do
		record paced 1000 "p${percentile}_ms" "$(got_ms "latency_p${percentile}_us")"
	done
}
