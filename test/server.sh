# shellcheck shell=bash
#
# server.sh: a private build and a throwaway server, for ./dev and bench/.
#
# Sourced, after TOP (the top of the tree) is set.  Nothing outside of the
# work directory /tmp/queue.XXXXXX is written, but for the object cache build/
# in the tree (kept out of git) and packages that are missing.
#
# The server's programs are copied into the work directory, its libraries and
# shared files linked beside them: PostgreSQL finds its files relative to its
# own program, so `make install` into that copy needs no rights on the
# system's directories, and any number of runs go on side by side.

QUEUE_WORK=				# the work directory
QUEUE_USER=				# who runs the server, if that is not the caller
QUEUE_BIN=				# the copy's programs
QUEUE_BUILD=			# where the objects are

queue_say() { printf '%s\n' "$*" >&2; }
queue_fail() { queue_say "dev: $*"; exit 1; }

# run a command as the server's user, in the work directory
queue_as_user() {
	(
		cd "$QUEUE_WORK" || exit 1
		export HOME=$QUEUE_WORK TMPDIR=$QUEUE_WORK
		if [ -n "$QUEUE_USER" ]; then
			exec runuser -u "$QUEUE_USER" -- "$@"
		else
			exec "$@"
		fi
	)
}

# ---- packages -------------------------------------------------------------

queue_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		queue_fail "packages are missing and there is no sudo; as root, run:" \
			"apt-get install $QUEUE_MISSING"
	fi
}

# The newest packaged server with its development files, or nothing.  (Debian
# has pgxs.mk in the client's package, the headers in a package of their own.)
queue_find_pg_config() {
	local candidate version best=0
	for candidate in /usr/lib/postgresql/*/bin/pg_config; do
		[ -x "${candidate%/*}/initdb" ] || continue
		[ -f "$("$candidate" --pgxs)" ] || continue
		[ -f "$("$candidate" --includedir-server)/postgres.h" ] || continue
		version=${candidate#/usr/lib/postgresql/}
		version=${version%%/*}
		if [ "$version" -ge 15 ] && [ "$version" -le 18 ] &&
			[ "$version" -gt "$best" ]; then
			best=$version
		fi
	done
	[ "$best" = 0 ] || echo "/usr/lib/postgresql/$best/bin/pg_config"
}

queue_packaged() {
	dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q ' installed$'
}

# Install what is missing of the packages given.  What is there is left as
# it is, and no cluster is made for a server that comes new.
queue_apt() {
	local package dropin=/etc/postgresql-common/createcluster.d/queue-dev.conf
	QUEUE_MISSING=
	for package; do
		queue_packaged "$package" || QUEUE_MISSING+=" $package"
	done
	[ -n "$QUEUE_MISSING" ] || return 0
	queue_say "dev: installing packages:$QUEUE_MISSING"
	queue_root mkdir -p "${dropin%/*}"
	queue_root sh -c "echo 'create_main_cluster = false' > $dropin"
	# shellcheck disable=SC2086
	if ! queue_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
		apt-get install -qq -y --no-upgrade --no-install-recommends \
		$QUEUE_MISSING >"$QUEUE_WORK/apt.log" 2>&1; then
		queue_root rm -f "$dropin"
		tail -n 20 "$QUEUE_WORK/apt.log" >&2
		queue_fail "apt-get could not install$QUEUE_MISSING"
	fi
	queue_root rm -f "$dropin"
}

# Make sure of a server, a compiler and, for tests, the test tools.  Sets
# PG_CONFIG unless the caller gave one: then only what it lacks can be wrong.
queue_packages() {
	local want=$1 tools="gcc make flex bison perl libc6-dev" version

	if [ -n "${PG_CONFIG:-}" ]; then
		command -v "$PG_CONFIG" >/dev/null ||
			queue_fail "PG_CONFIG=$PG_CONFIG: no such program"
	elif ! command -v apt-get >/dev/null; then
		queue_fail "this is not Debian or Ubuntu: give PG_CONFIG=" \
			"of a PostgreSQL 15 to 18 with its development files"
	else
		PG_CONFIG=$(queue_find_pg_config)
	fi

	if command -v apt-get >/dev/null; then
		if [ -z "$PG_CONFIG" ]; then
			queue_say "dev: no packaged PostgreSQL from 15 to 18 with its" \
				"development files yet"
			queue_root apt-get update -qq
			version=$(apt-cache depends postgresql |
				sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
			[ -n "$version" ] ||
				queue_fail "apt knows no package postgresql"
			[ "$version" -ge 15 ] || queue_fail "this system packages" \
				"PostgreSQL $version; queue needs 15 or newer" \
				"(apt.postgresql.org has it)"
			# shellcheck disable=SC2086
			queue_apt "postgresql-$version" "postgresql-server-dev-$version" \
				$tools
			PG_CONFIG=$(queue_find_pg_config)
			[ -n "$PG_CONFIG" ] || queue_fail "no pg_config after all"
		fi
		version=$(queue_version)
		if [ "$want" = test ]; then
			tools+=" libipc-run-perl libtap-parser-sourcehandler-pgtap-perl"
			# not every system has it; the layout is checked where it is
			[ -z "$(apt-cache search --names-only '^pg-bsd-indent$')" ] ||
				tools+=" pg-bsd-indent"
			case $(queue_config --bindir) in
				/usr/lib/postgresql/*) tools+=" postgresql-$version-pgtap" ;;
			esac
		fi
		# shellcheck disable=SC2086
		if ! (for p in $tools; do queue_packaged "$p" || exit 1; done); then
			queue_root apt-get update -qq
			queue_apt $tools
		fi
	fi
	version=$(queue_version)
	[ "$version" -ge 15 ] && [ "$version" -le 18 ] ||
		queue_fail "$PG_CONFIG is of PostgreSQL $version; queue is for 15 to 18"
}

# ---- build ----------------------------------------------------------------

queue_config() { "$PG_CONFIG" "$1"; }
queue_version() {
	queue_config --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# copy files of the tree that are new or changed, so that make sees only those
queue_refresh() {
	local target=$1 file
	(cd "$TOP" && find Makefile queue.control src sql -type f \
		\( -name '*.[chyl]' -o -name '*.sql' -o -name '*.control' \
		-o -name Makefile \) ! -name 'queue--?.?.?.sql') |
	while read -r file; do
		cmp -s "$TOP/$file" "$target/$file" && continue
		mkdir -p "$target/$(dirname "$file")"
		cp "$TOP/$file" "$target/$file"
	done
}

# queue_build debug|release: compile into the object cache
queue_build() {
	local mode=$1 key options log
	key=$(queue_version)-$mode-$(queue_config --bindir | cksum | cut -d' ' -f1)
	options=(PG_CONFIG="$PG_CONFIG" with_llvm=no)
	[ "$mode" = release ] || options+=(QUEUE_DEBUG=1 QUEUE_WERROR=1)
	QUEUE_BUILD=$TOP/build/$key
	if ! mkdir -p "$QUEUE_BUILD" 2>/dev/null || ! [ -w "$QUEUE_BUILD" ]; then
		QUEUE_BUILD=$QUEUE_WORK/build
		mkdir -p "$QUEUE_BUILD"
	fi
	log=$QUEUE_WORK/build.log
	(
		flock 9
		queue_refresh "$QUEUE_BUILD"
		make -s -C "$QUEUE_BUILD" -j"$(nproc)" "${options[@]}" all \
			>"$log" 2>&1
	) 9>"$QUEUE_BUILD/.lock" || {
		cat "$log" >&2
		queue_fail "the build failed"
	}
}

# Copy the server's programs, link everything else beside them, and install
# the extension there.
queue_install() {
	local mode=$1 dir private=$QUEUE_WORK/pg
	for dir in --bindir --pkglibdir --sharedir --includedir-server; do
		dir=$(queue_config $dir)
		mkdir -p "$private$(dirname "$dir")"
	done
	cp -rL "$(queue_config --bindir)" "$private$(dirname "$(queue_config --bindir)")"
	for dir in --pkglibdir --sharedir; do
		dir=$(queue_config $dir)
		cp -rs "$dir" "$private$(dirname "$dir")"
	done
	ln -s "$(queue_config --includedir-server)" \
		"$private$(queue_config --includedir-server)"
	rm -rf "$private$(queue_config --sharedir)"/extension/queue.control \
		"$private$(queue_config --sharedir)"/extension/queue--*.sql \
		"$private$(queue_config --pkglibdir)"/queue.so \
		"$private$(queue_config --pkglibdir)"/bitcode/queue*
	QUEUE_BIN=$private$(queue_config --bindir)
	QUEUE_PG_CONFIG=$QUEUE_BIN/pg_config

	local options=(PG_CONFIG="$QUEUE_PG_CONFIG" with_llvm=no)
	[ "$mode" = release ] || options+=(QUEUE_DEBUG=1 QUEUE_WERROR=1)
	(
		flock 9
		make -s -C "$QUEUE_BUILD" "${options[@]}" install \
			>"$QUEUE_WORK/install.log" 2>&1
	) 9>"$QUEUE_BUILD/.lock" || {
		cat "$QUEUE_WORK/install.log" >&2
		queue_fail "make install failed"
	}
}

# ---- server ---------------------------------------------------------------

# Make the work directory and see to it that it goes away, with the server.
queue_begin() {
	local name
	for name in $(compgen -e PG); do
		[ "$name" = PG_CONFIG ] || unset "$name"
	done
	umask 022
	QUEUE_WORK=$(mktemp -d /tmp/queue.XXXXXX) || exit 1
	trap queue_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	chmod 755 "$QUEUE_WORK"
}

# The server must not run as root; who then?
queue_choose_user() {
	[ "$(id -u)" = 0 ] || return 0
	if id postgres >/dev/null 2>&1; then
		QUEUE_USER=postgres
	else
		QUEUE_USER=nobody
	fi
	chown "$QUEUE_USER": "$QUEUE_WORK"
}

queue_end() {
	local status=$? pidfile
	trap '' INT TERM HUP
	queue_stop fast
	# and what a test that was ended has left behind
	find "$QUEUE_WORK" -name postmaster.pid -type f 2>/dev/null |
	while read -r pidfile; do
		queue_as_user "$QUEUE_BIN/pg_ctl" -D "$(dirname "$pidfile")" \
			-m immediate -w stop </dev/null >/dev/null 2>&1 || true
	done
	case $QUEUE_WORK in
		/tmp/queue.??????)
			if [ -n "${QUEUE_KEEP:-}" ]; then
				queue_say "dev: kept $QUEUE_WORK"
			else
				rm -rf "$QUEUE_WORK"
			fi
			;;
	esac
	exit $status
}

queue_stop() {
	[ -f "$QUEUE_WORK/data/postmaster.pid" ] || return 0
	queue_as_user "$QUEUE_BIN/pg_ctl" -D "$QUEUE_WORK/data" -m "$1" -w stop \
		>/dev/null 2>&1 || true
}

# Start the server and point psql and friends at it.  Arguments are further
# lines for postgresql.conf.
queue_start() {
	local data=$QUEUE_WORK/data line
	queue_as_user "$QUEUE_BIN/initdb" -D "$data" -U postgres --auth=trust \
		--encoding=UTF8 --no-locale --data-checksums --no-sync \
		>"$QUEUE_WORK/initdb.log" 2>&1 || {
		cat "$QUEUE_WORK/initdb.log" >&2
		queue_fail "initdb failed"
	}
	{
		cat "$TOP/test/queue.conf"
		echo "unix_socket_directories = '$QUEUE_WORK'"
		for line; do printf '%s\n' "$line"; done
	} | queue_as_user sh -c "cat >> '$data/postgresql.conf'"
	queue_launch
	export PGHOST=$QUEUE_WORK PGPORT=5432 PGUSER=postgres
	export PGDATABASE=postgres PATH=$QUEUE_BIN:$PATH
}

# Start the server that is there, also after a crash, and wait for it.
queue_launch() {
	local data=$QUEUE_WORK/data
	queue_as_user "$QUEUE_BIN/pg_ctl" -D "$data" -l "$QUEUE_WORK/server.log" \
		-w -t "${QUEUE_START_TIMEOUT:-60}" start >/dev/null || {
		cat "$QUEUE_WORK/server.log" >&2
		queue_fail "the server did not start"
	}
}

# All of it: queue_server debug|release [line for postgresql.conf ...]
queue_server() {
	local mode=$1
	shift
	queue_build "$mode"
	queue_install "$mode"
	queue_choose_user
	queue_start "$@"
}
