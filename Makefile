# Makefile of the queue extension (PGXS)
#
#	make && make install		release build for the server of PG_CONFIG
#	make installcheck			every suite on a server of its own; the
#								extension must be installed, and not as the
#								superuser of the operating system
#	QUEUE_DEBUG=1				assertions, invariant checks and stop points
#	QUEUE_WERROR=1				every warning is an error
#	SERVER=running				installcheck uses the server of PGHOST/PGPORT
#
# ./dev does all of this in a private copy.

EXTENSION = queue
MODULE_big = queue

OBJS = \
	src/queue.o \
	src/guc.o \
	src/clock.o \
	src/debug_point.o \
	src/name.o \
	src/receipt.o \
	src/catalog.o \
	src/shmem.o \
	src/head.o \
	src/ring.o \
	src/wakeup.o \
	src/xact.o \
	src/attempts.o \
	src/worker.o \
	src/utility.o \
	src/launcher.o \
	src/monitor.o \
	src/acl.o \
	src/privilege.o \
	src/payload.o \
	src/condition.o \
	src/message_store.o \
	src/look.o \
	src/look_judge.o \
	src/ahead.o \
	src/admin_sql.o \
	src/admin_table.o \
	src/admin_purge.o \
	src/admin_view.o \
	src/admin_adopt.o \
	src/admin.o \
	src/take.o \
	src/table_state.o \
	src/rotation.o \
	src/maintenance.o \
	src/redrive.o \
	src/enqueue.o \
	src/dequeue.o \
	src/lease.o \
	src/wait.o \
	src/plain.o \
	src/api_admin.o \
	src/api_enqueue.o \
	src/api_dequeue.o \
	src/api_lease.o \
	src/api_wait.o \
	src/api_monitor.o

PGFILEDESC = "queue - transactional message queues"

# The install script is built from these pieces, in this order.
SQL_PIECES = \
	header \
	types \
	tables \
	internal \
	admin \
	message \
	monitor \
	privileges \
	config_dump

EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" \
	$(dir $(firstword $(MAKEFILE_LIST)))queue.control)
DATA_built = sql/queue--$(EXTVERSION).sql
DATA = $(wildcard sql/queue--*--*.sql)

# Tests.  Each file must be named here: check-tests fails the build otherwise.
REGRESS = \
	arrays \
	bad_input \
	create_queue \
	criteria \
	dequeue_modes \
	foreign_changes \
	journal \
	leases \
	names \
	navigation \
	overloads \
	payload_types \
	privileges \
	purge \
	queue_table \
	redrive \
	retries \
	sort_lists \
	timing \
	transactions \
	view_dml \
	readme

ISOLATION = \
	abort_during_scan \
	abort_returns \
	browse_remove \
	commit_time \
	conditional_order \
	create_queue_twice \
	drop_queue_race \
	end_publish_window \
	foreign_delete \
	foreign_insert \
	hand_error \
	hand_error_terminate \
	heads_off_session \
	late_commit \
	late_insert \
	lease_end \
	locked_remove \
	many_keys \
	new_priority \
	own_message \
	pair_below_floor \
	pair_order \
	popper_aborts \
	prepare_dequeue \
	prepare_enqueue \
	purge_dequeue \
	read_ahead \
	reindex_concurrently \
	repeatable_read \
	retry_visible \
	returned_overflow \
	rotate_insert \
	rotate_open \
	rotate_rewrite \
	rotate_snapshot \
	rotate_straggler \
	row_lock \
	savepoint_rollback \
	sticky_overflow \
	stop_queue_wait \
	take_same_candidate \
	two_dequeuers

TAP = \
	001_library_not_preloaded \
	002_restart_and_crash \
	003_dump_and_restore \
	004_pg_upgrade \
	005_standby_and_promotion \
	006_stress_accounting \
	007_clock_set_back \
	008_maintenance_under_load \
	009_held_snapshot \
	010_drop_and_create_extension \
	011_standby_wait_cancelled \
	012_terminated_at_its_end \
	013_killed_at_stop_points \
	015_rotation \
	020_monitor_follows_extension \
	021_monitor_and_databases \
	022_monitor_on_standby \
	023_monitor_limits_and_errors \
	030_waiting \
	031_time_passes \
	035_leases

PGTAP = \
	errors \
	privileges \
	search_path \
	signatures

# installcheck starts a server of its own unless SERVER=running
ifneq ($(SERVER),running)
TEST_SERVER = --temp-config=test/queue.conf --temp-instance
REGRESS_SERVER = $(TEST_SERVER)=tmp_check_regress
ISOLATION_SERVER = $(TEST_SERVER)=tmp_check_isolation
endif
REGRESS_OPTS = --inputdir=test --encoding=UTF8 --no-locale \
	$(REGRESS_SERVER)
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=queue \
	--encoding=UTF8 --no-locale \
	$(ISOLATION_SERVER)
ifneq ($(strip $(TAP)),)
TAP_TESTS = 1
PROVE_TESTS = $(addprefix test/t/,$(addsuffix .pl,$(TAP)))
endif

EXTRA_CLEAN = $(DATA_built) tmp_check tmp_check_regress \
	tmp_check_isolation output_iso results regression.diffs regression.out

ifdef QUEUE_DEBUG
PG_CPPFLAGS += -DQUEUE_DEBUG -DUSE_ASSERT_CHECKING=1
override with_llvm = no
endif
ifdef QUEUE_WERROR
PG_CFLAGS += -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) was not found: install the server's development \
package, or give PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)

ifneq ($(filter-out 15 16 17 18,$(MAJORVERSION)),)
$(error queue is for PostgreSQL 15 to 18, this is $(MAJORVERSION))
endif

# From 16 on the expected files are looked for in the current directory first.
ifneq ($(MAJORVERSION),15)
REGRESS_OPTS += --expecteddir=.
ISOLATION_OPTS += --expecteddir=test/isolation
endif

$(OBJS): $(wildcard $(srcdir)/src/*.h)

sql/queue--$(EXTVERSION).sql: $(SQL_PIECES:%=sql/install/%.sql) queue.control
	@mkdir -p sql
	cat $(filter sql/install/%.sql,$^) > $@.tmp && mv $@.tmp $@

all: check-tests

# A test that nobody runs proves nothing.
unlisted = $(filter-out $(2),$(basename $(notdir $(wildcard $(1)))))
UNLISTED_TESTS = $(call unlisted,test/sql/*.sql,$(REGRESS)) \
	$(call unlisted,test/isolation/specs/*.spec,$(ISOLATION)) \
	$(call unlisted,test/t/*.pl,$(TAP)) \
	$(call unlisted,test/pgtap/*.sql,$(PGTAP))

.PHONY: check-tests
check-tests:
	$(if $(strip $(UNLISTED_TESTS)),$(error these tests are not listed \
in the Makefile: $(strip $(UNLISTED_TESTS))))

print-%:
	@echo $($*)
