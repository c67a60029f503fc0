# shellcheck shell=bash disable=SC2034
# another session holds a snapshot: rate and disk before, meanwhile, after
# 4 + 4 clients, one message per transaction, 1,000 messages waiting.

workload_snapshot() {
	local ROUNDS=$SNAPSHOT_ROUNDS
	step "snapshot: held for $HOLD s, $BEFORE s before and $AFTER s after it"
	each_round snapshot_round queue queue_eager skip_locked pgmq pgq_50
}

snapshot_round() {
	local end=$((BEFORE + HOLD)) last=$((HOLD / 3)) series backlog ARGUMENTS
	series=$RESULTS/snapshot_${CONTENDER}_$ROUND.csv
	ARGUMENTS=(--warmup 0 --seconds $((end + AFTER)) --hold "$BEFORE:$HOLD")
	fresh
	fill 1000
	producing 4
	consuming 4
	# whoever takes what lies between two ticks cannot keep 1,000 waiting
	backlog=900:1100
	[ -z "$MOST_CONSUMERS" ] || backlog=0:10000
	load "${ARGUMENTS[@]}" --backlog $backlog --backlog-start 1000 \
		--window "$((BEFORE / 3)):$BEFORE" --window "$((end - last)):$end" \
		--sample 'SELECT pg_database_size(current_database())' --series "$series"
	snapshot_window before "window_$((BEFORE / 3))_$BEFORE"
	snapshot_window held "window_$((end - last))_$end"
	awk -F, -v begin="$BEFORE" -v end="$end" '
		$1 == begin - 1 { before = $6 }
		$1 >= begin && $1 < end { received += $3 }
		$1 >= begin && $1 < end && $6 > peak { peak = $6 }
		$1 == end - 1 { grown = $6 - before }
		$1 >= end && back == "" && $6 <= before + grown / 5 { back = $1 - end + 1 }
		END {
			print "disk_per_message_bytes", received ? grown / received : 0
			print "disk_grown_mb", (peak - before) / 1048576
			print "given_back_s", back == "" ? "inf" : back
		}' "$series" >"$QUEUE_WORK/disk"
	while read -r name value; do
		record snapshot "$HOLD" "$name" "$value"
	done <"$QUEUE_WORK/disk"
}

snapshot_window() {		# name prefix
	record snapshot "$HOLD" "rate_$1" "$(got "$2_received_rate")"
	record snapshot "$HOLD" "p99_$1_ms" "$(got_ms "$2_p99_us")"
}
