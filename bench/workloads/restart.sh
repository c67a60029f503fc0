# shellcheck shell=bash disable=SC2034
# a crash with many messages waiting: how long until the first dequeue

workload_restart() {
	local depth name
	for depth in $RESTART_DEPTHS; do
		for name in queue skip_locked; do
			available "$name" || continue
			use "$name"
			restart_contender "$depth"
		done
	done
	use_database postgres
	sql -c 'DROP DATABASE IF EXISTS bench'
}

# Some messages have been consumed in front of those that wait: after a crash
# nobody remembers where to begin.
restart_contender() {	# depth
	local consumed=$(($1 / 100)) started ARGUMENTS=()
	step "restart: $CONTENDER with $1 messages"
	fresh
	fill $(($1 + consumed))
	consuming 4
	SYNC=off load "${ARGUMENTS[@]}" --messages "$consumed" --seconds 600
	sql -c 'CHECKPOINT'
	ARGUMENTS=()
	consuming 1
	for ((ROUND = 1; ROUND <= ROUNDS; ROUND++)); do
		queue_stop immediate
		started=$(date +%s%3N)
		QUEUE_START_TIMEOUT=3600 queue_launch
		record restart "$1" recovery_ms $(($(date +%s%3N) - started))
		load "${ARGUMENTS[@]}" --messages 1 --seconds 600
		record restart "$1" first_ms "$(got_ms first_us)"
	done
}
