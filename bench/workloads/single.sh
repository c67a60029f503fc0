# shellcheck shell=bash disable=SC2034
# one message per transaction: enqueue, then dequeue what was enqueued

workload_single() {
	local clients
	for SYNC in off on; do
		for clients in $CLIENTS; do
			CASE=$SYNC/$clients
			step "single: synchronous_commit $SYNC, $clients clients"
			if [ "$clients" = "$PEER_CLIENTS" ]; then
				each_round single_round select insert queue skip_locked pgmq graphile_worker pg_boss pgq_50
			else
				each_round single_round select insert queue skip_locked
			fi
		done
	done
	SYNC=on
}

single_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION")
	fresh
	producing "${CASE#*/}"
	load "${ARGUMENTS[@]}"
	record enqueue "$CASE" rate "$(got sent_rate)"
	[ -n "$TAKE" ] || return 0
	ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION" --drain)
	consuming "${CASE#*/}"
	load "${ARGUMENTS[@]}"
	record dequeue "$CASE" rate "$(got received_rate)"
}
