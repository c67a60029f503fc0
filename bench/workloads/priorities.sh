# shellcheck shell=bash disable=SC2034
# 4 + 4 clients beside a deep backlog of 10 priorities, and of none

workload_priorities() {
	step "priorities: 10 levels, $PRIORITY_DEPTH messages waiting"
	SYNC=off
	each_round priorities_round queue queue_priority skip_locked skip_locked_priority
	SYNC=on
}

priorities_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION" --priorities 10)
	fresh
	fill "$PRIORITY_DEPTH"
	settle
	producing 4
	consuming 4
	load "${ARGUMENTS[@]}" --backlog-start "$PRIORITY_DEPTH" \
		--backlog $((PRIORITY_DEPTH - 100)):$((PRIORITY_DEPTH + 100))
	record priorities "$PRIORITY_DEPTH" rate "$(got received_rate)"
}
