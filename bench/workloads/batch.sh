# shellcheck shell=bash disable=SC2034
# 100 messages per call, each call a transaction; rates are messages a second

workload_batch() {
	local clients
	for clients in $BATCH_CLIENTS; do
		CASE=on/$clients
		step "batch: 100 messages a call, $clients clients"
		if [ "$clients" = "$PEER_CLIENTS" ]; then
			each_round batch_round copy queue skip_locked pgmq pgq_50 graphile_worker pg_boss
		else
			each_round batch_round copy queue skip_locked
		fi
	done
}

batch_round() {
	local ARGUMENTS=(--warmup "$WARMUP" --seconds "$DURATION")
	fresh
	producing_many "${CASE#*/}"
	load "${ARGUMENTS[@]}"
	record enqueue_100 "$CASE" rate "$(got sent_rate)"
	# PgQ takes what lies between two ticks, whatever that is
	[ -n "$TAKE_MANY" ] && [ -z "$MOST_CONSUMERS" ] || return 0
	fresh
	fill "$BATCH_MESSAGES"
	ARGUMENTS=(--seconds $((DURATION * 3)) --drain)
	consuming_many "${CASE#*/}"
	load "${ARGUMENTS[@]}"
	record dequeue_100 "$CASE" rate "$(got received_rate)"
}
