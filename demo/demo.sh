# shellcheck shell=bash
#
# demo.sh: the main job, step by step: ./dev demo [FILE.jsonl]

# Blank lines are left out, so the server's line numbers have to be mapped.
demo_explain_error() {		# psql's errors, line numbers
	local line
	line=$(sed -n 's/.*COPY line, line \([0-9]*\).*/\1/p' "$1" | head -n 1)
	if [ -n "$line" ]; then
		queue_say "dev: line $(sed -n "${line}p" "$2") of the file is not" \
			"JSON that PostgreSQL takes (one JSON value a line is wanted):"
	fi
	cat "$1" >&2
}

cmd_demo() {
	local file=${1:-$TOP/demo/messages.jsonl}
	local shown=${file#"$TOP/"} started=$SECONDS
	[ $# -le 1 ] || queue_fail "usage: ./dev demo [FILE.jsonl]"
	[ -f "$file" ] && [ -r "$file" ] || queue_fail "$file: no such file, or not readable"
	grep -q '[^[:space:]]' "$file" || queue_fail "$file: there is no message in it"

	queue_begin
	queue_packages run
	started=$SECONDS
	queue_server release

	LC_ALL=C awk -v numbers="$QUEUE_WORK/numbers" '
		NR == 1 { sub(/^\357\273\277/, "") }
		/[^ \t\r]/ { print; print NR > numbers }' "$file" >"$QUEUE_WORK/lines"
	# a line that would end the copy early, without a word
	if grep -nm 1 '^[[:space:]]*\\' "$QUEUE_WORK/lines" >"$QUEUE_WORK/bad"; then
		queue_fail "$file: line $(sed -n "$(cut -d: -f1 "$QUEUE_WORK/bad")p" "$QUEUE_WORK/numbers") is not JSON"
	fi
	if ! psql -X -v source="$shown" -f "$TOP/demo/demo.sql" \
		<"$QUEUE_WORK/lines" 2>"$QUEUE_WORK/errors"; then
		demo_explain_error "$QUEUE_WORK/errors" "$QUEUE_WORK/numbers"
		queue_fail "the demo stopped"
	fi
	cat "$QUEUE_WORK/errors" >&2
	queue_say "dev: $((SECONDS - started)) s with build and server," \
		"PostgreSQL $(queue_version)"
}
