# shellcheck shell=bash disable=SC2034
# what a dequeue costs with few and with many messages behind it

workload_depth() {
	local depth name
	for name in queue skip_locked; do
		available "$name" || continue
		use "$name"
		for depth in $DEPTHS; do
			step "depth: filling $name with $depth messages"
			fresh "depth_${name}_$depth"
			fill "$depth"
			settle
		done
	done
	step "depth: $DEPTH_MESSAGES messages, 4 clients, from each"
	SYNC=off
	each_round depth_round queue skip_locked
	SYNC=on
	use_database postgres
	for name in queue skip_locked; do
		for depth in $DEPTHS; do
			sql -c "DROP DATABASE IF EXISTS depth_${name}_$depth"
		done
	done
}

depth_round() {
	local depth ARGUMENTS=()
	consuming 4
	for depth in $DEPTHS; do
		use_database "depth_${CONTENDER}_$depth"
		fill "$DEPTH_MESSAGES"
		load "${ARGUMENTS[@]}" --messages "$DEPTH_MESSAGES" --seconds 600
		record depth "$depth" rate "$(got received_rate)"
	done
}
