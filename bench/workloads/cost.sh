# shellcheck shell=bash disable=SC2034
# what a message costs: WAL, CPU of the server, disk, rows left for VACUUM

workload_cost() {
	step "cost: $COST_MESSAGES messages, 4 clients"
	SYNC=off
	each_round cost_round insert queue skip_locked pgmq graphile_worker pg_boss pgq_50
	SYNC=on
}

cost_round() {
	local ARGUMENTS=() disk
	fresh
	disk=$(disk_bytes)
	producing 4
	cost_of enqueue "${ARGUMENTS[@]}"
	record cost all stored_bytes \
		"$(calculate "($(disk_bytes) - $disk) / $(got sent)")"
	[ -n "$TAKE$TAKE_MANY" ] || return 0
	ARGUMENTS=()
	consuming 4
	cost_of dequeue "${ARGUMENTS[@]}"
	record cost all dead_rows \
		"$(calculate "$(dead_rows) / $(got received)")"
}

cost_of() {				# what argument...
	local what=$1 wal cpu count
	shift
	wal=$(wal_bytes) cpu=$(server_cpu)
	# some would need minutes for so many
	load "$@" --messages "$COST_MESSAGES" --seconds 20
	count=$(got sent "$(got received)")
	record cost all "${what}_wal_bytes" \
		"$(calculate "($(wal_bytes) - $wal) / $count")"
	record cost all "${what}_cpu_us" \
		"$(calculate "($(server_cpu) - $cpu) * 1000 / $count")"
}
