# shellcheck shell=bash
#
# suites.sh: the suites of ./dev test.
#
# Each suite writes its log into $QUEUE_WORK and adds what the log says to the
# totals: a lint gate, a pg_regress test, an isolation spec, a TAP assertion
# and a pgTAP assertion count as one each, and so does the look at each
# suite's server logs.  A program that ends without saying what it did counts
# as one failure.

SUITES="lint regress isolation pgtap tap"
PASSED=0
FAILED=0
SUMMARY=

# A suite that hangs is ended, and what it did not report has failed.
tree_make() {
	local limit=1200
	[ -z "${QUEUE_SOAK:-}" ] || limit=86400
	queue_as_user timeout -k 10 "${QUEUE_TIMEOUT:-$limit}" make -s -C "$TREE" PG_CONFIG="$QUEUE_PG_CONFIG" with_llvm=no \
		SERVER=running "$@"
}

# the tests of a list in the Makefile whose names contain one of WORDS
listed() {
	local name word
	for name in $(make -s -C "$TOP" PG_CONFIG="$PG_CONFIG" "print-$1"); do
		[ ${#WORDS[@]} -gt 0 ] || echo "$name"
		for word in "${WORDS[@]}"; do
			word=${word##*/}
			case $name in *"${word%.*}"*) echo "$name"; break ;; esac
		done
	done
}

count() {			# suite passed failed skipped started
	PASSED=$((PASSED + $2))
	FAILED=$((FAILED + $3))
	SUMMARY+=$(printf '  %-13s %6d passed %5d failed %5d skipped %6d s' \
		"$1" "$2" "$3" "$4" $((SECONDS - $5)))$'\n'
}

excerpt() {			# title lines, from the standard input
	printf -- '---- %s ----\n' "$1"
	awk -v lines="$2" 'NR <= lines
		END { if (NR > lines) print "---- (" NR - lines " more lines) ----" }'
}

# A server that crashed, lost an assertion or leaked says so only in its log.
check_logs() {			# suite log...
	local suite=$1 started=$SECONDS bad
	shift
	bad=$(grep -hE 'PANIC:|TRAP:|signal 6|signal 11|reference leak|snapshot .*still active|you don.t own' \
		"$@" 2>/dev/null | head -n 20) || true
	if [ -n "$bad" ]; then
		printf -- '---- %s: in the server log ----\n%s\n' "$suite" "$bad"
		count "$suite log" 0 1 0 "$started"
	else
		count "$suite log" 1 0 0 "$started"
	fi
}

# ---- lint -------------------------------------------------------------------

suite_lint() {
	local gate started=$SECONDS passed=0 failed=0
	for gate in "$TOP"/.ci/check_*; do
		if [ ${#WORDS[@]} -gt 0 ] && [[ " ${WORDS[*]} " != *" ${gate##*/check_} "* ]]; then
			continue
		fi
		if PG_CONFIG=$PG_CONFIG QUEUE_SO=$QUEUE_BUILD/queue.so "$gate" \
			>"$QUEUE_WORK/lint.log" 2>&1; then
			passed=$((passed + 1))
			printf 'ok       %s\n' "${gate##*/}"
		else
			failed=$((failed + 1))
			printf 'FAILED   %s\n' "${gate##*/}"
			excerpt "${gate##*/}" 40 <"$QUEUE_WORK/lint.log"
		fi
	done
	count lint $passed $failed 0 "$started"
}

# ---- pg_regress and isolation -----------------------------------------------

pg_regress_suite() {	# suite make-variable names
	local suite=$1 variable=$2 names=$3 log=$QUEUE_WORK/$1.log
	local started=$SECONDS passed failed listed other diffs name
	[ -n "$names" ] || { queue_say "dev: no $suite tests"; return 0; }
	# an expected file that is missing is an empty one: show what came
	for name in $names; do
		if [ "$suite" = regress ]; then
			touch -a "$TREE/expected/$name.out"
		else
			touch -a "$TREE/test/isolation/expected/$name.out"
		fi
	done
	other=ISOLATION
	[ "$variable" = REGRESS ] || other=REGRESS
	tree_make installcheck "$variable=$names" "$other=" TAP= 2>&1 |
		tee "$log" | grep -E '^(test |ok |not ok )' || true
	# 15 says "test x ... ok", 16 and later "ok 1 - x"
	passed=$(grep -cE '^(test .*\.\.\. ok|ok )' "$log") || true
	failed=$(grep -cE '^(test .*\.\.\. FAILED|not ok )' "$log") || true
	listed=$(wc -w <<<"$names")
	if [ $((passed + failed)) -ne "$listed" ]; then
		tail -n 30 "$log" |
			excerpt "$suite: $((passed + failed)) of $listed tests reported" 30
		failed=$((listed - passed))
	fi
	if [ "$failed" -gt 0 ]; then
		for diffs in "$TREE/regression.diffs" "$TREE/output_iso/regression.diffs"; do
			[ ! -f "$diffs" ] || excerpt "$suite: regression.diffs" 300 <"$diffs"
		done
		tail -n 20 "$QUEUE_WORK/server.log" |
			excerpt "$suite: end of the server log" 20
	fi
	if [ -n "${QUEUE_ACCEPT:-}" ]; then
		for name in $names; do
			cp "$TREE/results/$name.out" "$TOP/expected/" 2>/dev/null ||
				cp "$TREE/output_iso/results/$name.out" \
					"$TOP/test/isolation/expected/" 2>/dev/null
		done
	fi
	rm -rf "$TREE"/{results,output_iso,regression.diffs}
	count "$suite" "$passed" "$failed" 0 "$started"
	check_logs "$suite" "$QUEUE_WORK/server.log"
}

set_everywhere() {		# setting value
	psql -qX -c "ALTER SYSTEM SET $1 = $2" -c "SELECT pg_reload_conf()" \
		>/dev/null
}

# What these tests look at moves only when they move it: what the monitor does
# has tests of its own (TAP).
pg_regress_without_monitor() {	# as pg_regress_suite
	set_everywhere queue.monitor off
	pg_regress_suite "$@"
	set_everywhere queue.monitor default
}

suite_regress() {
	pg_regress_without_monitor regress REGRESS "$(listed REGRESS | xargs)"
}
suite_isolation() {
	pg_regress_without_monitor isolation ISOLATION "$(listed ISOLATION | xargs)"
}

# ---- TAP and pgTAP ------------------------------------------------------------

# what prove -v writes: file names, failures and verdicts are for the eye
show_prove() {
	tee "$1" | grep --line-buffered -E \
		'^(\[[0-9:]+\] )?[^ ]+\.(pl|sql) \.|^not ok|^ok$|^skipped|^ok [0-9]+ ms|^Failed |^Dubious|^#   Failed|^# Looks' || true
}

count_prove() {			# suite log started
	local log=$2 passed failed skipped silent
	skipped=$(grep -ciE '^ok .*# skip|^skipped:|\.\. skipped' "$log") || true
	passed=$(grep -E '^ok [0-9]+( |$)' "$log" | grep -cviE '# skip|^ok [0-9]+ ms') || true
	failed=$(grep -E '^not ok ' "$log" | grep -cv '# [T]ODO') || true
	# files that ended badly without a failed assertion
	silent=$(grep -cE 'Wstat: .*Failed: 0\)' "$log") || true
	grep -qE '^Result: (PASS|FAIL|NOTESTS)' "$log" || silent=$((silent + 1))
	failed=$((failed + silent))
	if [ "$failed" -gt 0 ]; then
		grep -nE '^not ok|^# |^Bail|Wstat|Parse errors|^psql:|ERROR:|Non-zero' \
			"$log" | tail -n 80 | excerpt "$1: what failed" 80
	fi
	count "$1" "$passed" "$failed" "$skipped" "$3"
}

suite_pgtap() {
	local started=$SECONDS names
	names=$(listed PGTAP)
	[ -n "$names" ] || { queue_say "dev: no pgtap tests"; return 0; }
	if ! psql -Atqc "SELECT 1 FROM pg_available_extensions
		WHERE name = 'pgtap'" | grep -q 1; then
		queue_say "dev: this PostgreSQL has no pgtap: not run"
		count pgtap 0 0 "$(wc -w <<<"$names")" "$started"
		return 0
	fi
	psql -qX -c 'CREATE DATABASE pgtap'
	psql -qX -d pgtap -c 'CREATE EXTENSION pgtap' -c 'CREATE EXTENSION queue'
	# shellcheck disable=SC2046
	(cd "$TREE/test/pgtap" &&
		pg_prove -v -d pgtap $(printf '%s.sql\n' $names) 2>&1) |
		show_prove "$QUEUE_WORK/pgtap.log"
	count_prove pgtap "$QUEUE_WORK/pgtap.log" "$started"
	check_logs pgtap "$QUEUE_WORK/server.log"
}

suite_tap() {
	local started=$SECONDS names log
	names=$(listed TAP | xargs)
	[ -n "$names" ] || { queue_say "dev: no tap tests"; return 0; }
	tree_make installcheck REGRESS= ISOLATION= TAP="$names" \
		PROVE_FLAGS="-v --timer" 2>&1 |
		show_prove "$QUEUE_WORK/tap.log"
	count_prove tap "$QUEUE_WORK/tap.log" "$started"
	if grep -qE '^Result: FAIL' "$QUEUE_WORK/tap.log"; then
		for log in $(find "$TREE/tmp_check/log" -name 'regress_log*' | sort); do
			if grep -q "${log##*regress_log_}\.pl .*Wstat" "$QUEUE_WORK/tap.log"; then
				tail -n 25 "$log" | excerpt "end of ${log##*/}" 25
			fi
		done
	fi
	# crashes are part of these tests; failed assertions are not
	if grep -lE 'TRAP:|PANIC:|reference leak' "$TREE"/tmp_check/log/*.log \
		>"$QUEUE_WORK/trap.log" 2>/dev/null; then
		xargs grep -E 'TRAP:|PANIC:|reference leak' <"$QUEUE_WORK/trap.log" |
			excerpt "failed assertions" 20
		count "tap log" 0 1 0 "$SECONDS"
	else
		count "tap log" 1 0 0 "$SECONDS"
	fi
}

# ---- all ------------------------------------------------------------------

cmd_test() {
	local suite suites=$SUITES
	WORDS=()
	if [ $# -gt 0 ]; then
		[[ " $SUITES " == *" $1 "* ]] ||
			queue_fail "no suite $1; there are: $SUITES"
		suites=$1
		shift
		WORDS=("$@")
	fi

	queue_begin
	queue_packages test
	queue_say "dev: PostgreSQL $(queue_config --version | cut -d' ' -f2)," \
		"-Wall -Wextra -Werror, assertions on"
	queue_build debug
	if [ "$suites" != lint ]; then
		queue_install debug
		queue_choose_user
		# the tests write beside themselves: give them a copy
		TREE=$QUEUE_WORK/tree
		mkdir "$TREE"
		(cd "$TOP" && tar -cf - --exclude=./.git --exclude=./build \
			--exclude='./tmp_check*' .) | tar -xf - -C "$TREE" --no-same-owner
		[ -z "$QUEUE_USER" ] || chown -R "$QUEUE_USER": "$TREE"
		[ "$suites" = tap ] || queue_start "queue.segment_size = '8kB'"
	fi
	# from here on failures are counted, not fatal
	set +e
	for suite in $suites; do
		printf '\n==== %s ====\n' "$suite"
		[ "$suite" != tap ] || queue_stop fast
		"suite_$suite"
	done

	printf '\n==== summary ====\n%s' "$SUMMARY"
	printf '%s\n' "(counted: lint gates, regress tests, isolation specs," \
		" TAP and pgTAP assertions, and server logs without a crash)"
	printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
	[ "$FAILED" -eq 0 ]
	exit
}
