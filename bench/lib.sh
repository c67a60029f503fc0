# shellcheck shell=bash disable=SC2034
#
# lib.sh: what workloads are made of.
#
# A contender is one way to have a queue; contenders/NAME.sh sets
#
#	TITLE		what the tables call it
#	SETUP		SQL that makes it, in a database of its own
#	SEND		sends one message: $1 is the payload, $2 a priority
#	SEND_MANY	sends an array of them: $1
#	COPY		or the same by COPY
#	TAKE		returns one message, in the first column
#	TAKE_WAITING	the same, and waits for one; empty: it cannot
#	TAKE_MANY	returns up to 100
#	ACK			ends a message that was taken: $1 is TAKE's second column
#	ACK_MANY	ends those: $1 is an array of them
#	FILL		sends :count messages made by bench.payload()
#	COUNT		how many messages there are
#	BACKGROUND	MS:SQL, what else has to run
#	MOST_CONSUMERS	how many may take side by side, if that is limited
#
# and may define contender_prepare(), which makes sure of packages or sets
# REASON and fails, and contender_setup(), in place of running SETUP.  What it
# does not have is empty.  NAME_50 is the file NAME.sh with VARIANT=50.
#
# A workload, workloads/NAME.sh, defines workload_NAME().  It calls a function
# for each contender in turn, round after round (each_round), which makes the
# database anew (fresh), runs the generator (load), and notes figures (record).

BENCH=$TOP/bench
LOAD=$QUEUE_WORK/load
FIGURES=$QUEUE_WORK/figures.csv	# measure,case,contender,name,round,value
TITLES=$QUEUE_WORK/titles.csv	# contender,what tables call it
LEFT_OUT=$QUEUE_WORK/left_out.csv
SYNC=on					# synchronous_commit of the generator's sessions
PAYLOAD=200				# bytes of a message
declare -A PREPARED=()	# contender -> yes, or why not
declare -A HAVE=()		# database -> messages in it
ROUND=1
CONTENDER=
true | tee "$FIGURES" "$TITLES" >"$LEFT_OUT"

sql() {
	PGOPTIONS='-c client_min_messages=warning' psql -XAtq -v ON_ERROR_STOP=1 "$@"
}
step() { queue_say "bench: $(date +%T) $*"; }
calculate() { awk "BEGIN { printf \"%.3f\", $* }"; }

# ---- contenders -------------------------------------------------------------

# read a contender's file
use() {
	local file=$1
	CONTENDER=$1
	TITLE='' SETUP='' SEND='' SEND_MANY='' COPY='' TAKE='' TAKE_WAITING='' TAKE_MANY='' ACK=''
	ACK_MANY='' FILL='' COUNT='' BACKGROUND='' MOST_CONSUMERS='' VARIANT=''
	REASON='it cannot be set up here'
	contender_prepare() { :; }
	contender_setup() { [ -z "$SETUP" ] || sql -c "$SETUP" >/dev/null; }
	if [[ $1 =~ ^(.*)_([0-9]+)$ ]]; then
		file=${BASH_REMATCH[1]} VARIANT=${BASH_REMATCH[2]}
	fi
	[ -f "$BENCH/contenders/$file.sh" ] || queue_fail "no contender $file"
	# shellcheck source=/dev/null
	. "$BENCH/contenders/$file.sh"
}

# Is it there?  The first time, install it and make its template database.
available() {
	local template=template_$1
	if [ -z "${PREPARED[$1]:-}" ]; then
		PREPARED[$1]=no
		use "$1"
		if [ -n "${ONLY_CONTENDERS:-}" ] && [[ " $ONLY_CONTENDERS " != *" $1 "* ]]; then
			REASON="not asked for"
		elif contender_prepare && use "$1" &&
			sql -c "CREATE DATABASE $template TEMPLATE template_bench" &&
			PGDATABASE=$template contender_setup; then
			PREPARED[$1]=yes
			printf '%s,%s\n' "$1" "$TITLE" >>"$TITLES"
		fi
		if [ "${PREPARED[$1]}" = no ]; then
			step "left out: $1: $REASON"
			printf '%s: %s\n' "$1" "$REASON" >>"$LEFT_OUT"
		fi
	fi
	[ "${PREPARED[$1]}" = yes ]
}

# call a function for every contender, in each round
each_round() {			# function contender...
	local function=$1 name
	shift
	for ((ROUND = 1; ROUND <= ROUNDS; ROUND++)); do
		for name; do
			available "$name" || continue
			use "$name"
			"$function"
		done
	done
}

# a package that holds an extension; the private server sees it, too
server_package() {		# package extension
	local control=extension/$2.control there
	there=$(queue_config --sharedir)/$control
	if [ ! -f "$there" ]; then
		command -v apt-get >/dev/null || return 1
		(queue_root apt-get update -qq && queue_apt "$1") || return 1
		for there in sharedir pkglibdir; do
			there=$(queue_config "--$there")
			cp -rsn "$there" "$QUEUE_WORK/pg${there%/*}"
		done
	fi
	[ -f "$(queue_config --sharedir)/$control" ]
}

npm_package() {			# package@version
	if ! command -v npm >/dev/null; then
		command -v apt-get >/dev/null || return 1
		(queue_root apt-get update -qq && queue_apt nodejs npm) || return 1
	fi
	timeout 300 npm install --prefix "$QUEUE_WORK/npm" --ignore-scripts --no-audit \
		--no-fund --silent "$1" >"$QUEUE_WORK/npm.log" 2>&1
}

# ---- databases ----------------------------------------------------------------

# Make the contender's database anew, and use it; with a name of its own if
# given.  Dropping one makes a checkpoint, so that every run begins with one.
fresh() {
	export PGDATABASE=postgres
	sql -c "DROP DATABASE IF EXISTS ${1:-bench}" \
		-c "CREATE DATABASE ${1:-bench} TEMPLATE template_$CONTENDER STRATEGY wal_log"
	use_database "${1:-bench}"
	HAVE[$PGDATABASE]=0
}

use_database() { export PGDATABASE=$1; }

fill() {				# messages
	local rest=$1 count
	while [ "$rest" -gt 0 ]; do
		count=$((rest > 100000 ? 100000 : rest))
		sql -v "count=$count" >/dev/null <<<"$FILL"
		rest=$((rest - count))
	done
	HAVE[$PGDATABASE]=$((HAVE[$PGDATABASE] + $1))
}

# as it would be after some time of quiet
settle() { sql -c 'VACUUM ANALYZE' -c 'CHECKPOINT'; }

# bytes of WAL so far, of a database, and rows made dead in it
wal_bytes() { sql -c "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"; }
disk_bytes() { sql -c 'SELECT pg_database_size(current_database())'; }
dead_rows() { sql -c 'SELECT coalesce(sum(n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables'; }

# CPU milliseconds of the server: those of its processes, and of ended ones
server_cpu() {
	local postmaster
	postmaster=$(head -n 1 "$QUEUE_WORK/data/postmaster.pid")
	# processes end while this is read
	{ cat /proc/[0-9]*/stat 2>/dev/null || true; } |
		awk -v postmaster="$postmaster" -v ticks="$(getconf CLK_TCK)" '
			{ pid = $1; sub(/.*\) /, "") }
			pid == postmaster { sum += $12 + $13 + $14 + $15 }
			$2 == postmaster { sum += $12 + $13 }
			END { printf "%d", sum * 1000 / ticks }'
}

# ---- running and recording ------------------------------------------------------

# Run the generator; got() then has what it says.  Afterwards there must be
# as many messages as were there, and were sent, less those that were received.
load() {
	local arguments=() expected
	[ -z "$BACKGROUND" ] || arguments+=(--background "$BACKGROUND")
	if ! PGOPTIONS="-c synchronous_commit=$SYNC" "$LOAD" --payload "$PAYLOAD" \
		"${arguments[@]}" "$@" >"$QUEUE_WORK/out" 2>"$QUEUE_WORK/err"; then
		cat "$QUEUE_WORK/err" >&2
		queue_fail "$CONTENDER: the generator failed"
	fi
	[ -n "$COUNT" ] || return 0
	expected=$((HAVE[$PGDATABASE] + $(got sent 0) - $(got received 0)))
	HAVE[$PGDATABASE]=$(sql -c "$COUNT")
	[ "${HAVE[$PGDATABASE]}" = "$expected" ] ||
		queue_fail "$CONTENDER: sent $(got sent 0), received $(got received 0)," \
			"so there should be $expected messages, not ${HAVE[$PGDATABASE]}"
}

got() {					# name [what if it is missing]
	awk -v name="$1" -v value="${2:-}" '$1 == name { value = $2 } END { print value }' \
		"$QUEUE_WORK/out"
}
got_ms() { calculate "$(got "$1" -1000) / 1000"; }

# arguments of the generator for producers and consumers of this contender
producing() { ARGUMENTS+=(--producers "$1" --send "$SEND"); }
producing_many() {
	ARGUMENTS+=(--producers "$1" --send-batch 100)
	if [ -n "$COPY" ]; then
		ARGUMENTS+=(--copy "$COPY")
	else
		ARGUMENTS+=(--send "$SEND_MANY")
	fi
}
consuming() {
	[ -n "$TAKE" ] || { consuming_many "$1"; return; }
	ARGUMENTS+=(--consumers "$(consumers "$1")" --take "$TAKE")
	[ -z "$ACK" ] || ARGUMENTS+=(--ack "$ACK")
}
consuming_many() {
	ARGUMENTS+=(--consumers "$(consumers "$1")" --take-batch 100 --take "$TAKE_MANY")
	[ -z "$ACK_MANY" ] || ARGUMENTS+=(--ack-many "$ACK_MANY")
}
consumers() {
	if [ -n "$MOST_CONSUMERS" ] && [ "$1" -gt "$MOST_CONSUMERS" ]; then
		echo "$MOST_CONSUMERS"
	else
		echo "$1"
	fi
}

# note a figure: measure, case, name, value
record() {
	printf '%s,%s,%s,%s,%s,%s\n' "$1" "$2" "$CONTENDER" "$3" "$ROUND" "$4" >>"$FIGURES"
}
