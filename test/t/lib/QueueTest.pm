# What the TAP tests share: a server with the library preloaded, and sessions
# (psql behind two pipes) that can run side by side and survive a crash.
package QueueTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueSession;
use Test::More ();
use Time::HiRes qw(time usleep);

our @EXPORT = qw(new_queue_node queue_conf digest_messages digest_catalog
  create_all_states sqlstate_of session check_indexes drain_all
  kill_backend same seconds_until has_debug_points hold_point free_point
  until_waiting);

# Settings that every server of these tests needs.
sub queue_conf
{
	return <<'CONF';
shared_preload_libraries = 'queue'
max_prepared_transactions = 20
max_connections = 40
max_wal_senders = 4
wal_level = replica
log_min_messages = warning
restart_after_crash = on
jit = off
queue.segment_size = '8kB'
CONF
}

# A new server, started, with the extension in database postgres.
sub new_queue_node
{
	my ($name, %option) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my @extra = ('--data-checksums', '--encoding=UTF8', '--locale=C');

	$node->init(extra => \@extra,
		allows_streaming => $option{allows_streaming} ? 1 : 0);
	$node->append_conf('postgresql.conf', queue_conf());
	$node->append_conf('postgresql.conf', $option{conf}) if $option{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION queue')
	  unless $option{no_extension};
	return $node;
}

sub session
{
	my ($node, %option) = @_;
	return QueueSession->new($node, %option);
}

# The SQLSTATE with which a script fails ('00000' if it does not), and its
# error output: message, detail, hint.
sub sqlstate_of
{
	my ($node, $sql, %option) = @_;
	my ($rc, $out, $err) = $node->psql(
		$option{dbname} || 'postgres', $sql,
		on_error_stop => 1,
		extra_params => [ '-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=never',
			($option{user} ? ('-U', $option{user}) : ()) ]);

	return ('00000', $err, $out) if $rc == 0;
	return ($1, $err, $out) if $err =~ /(?:ERROR|FATAL|PANIC):  ([0-9A-Z]{5}):/;
	return ('?????', $err, $out);
}

# One line for each message of a queue table, in every state, with everything
# that must survive a dump.  Transaction ids are compared by presence only:
# they mean nothing in another cluster.
sub digest_messages
{
	my ($node, $dbname, $table) = @_;
	return $node->safe_psql($dbname, <<"SQL");
SELECT to_jsonb(m) - 'enq_xid' - 'deq_xid'
       || jsonb_build_object('enq_xid', m.enq_xid IS NOT NULL,
                             'deq_xid', m.deq_xid IS NOT NULL)
  FROM $table m ORDER BY m.msgid;
SQL
}

# The extension's catalog, with names instead of numbers.
sub digest_catalog
{
	my ($node, $dbname, $where) = @_;
	$where = defined $where ? "WHERE $where" : '';
	return $node->safe_psql($dbname, <<"SQL");
SET search_path = pg_catalog;
SELECT 'table', to_jsonb(t) FROM queue.queue_table t $where
 ORDER BY relation::text;
SELECT 'queue', to_jsonb(q)
  FROM (SELECT q.*, q.queue_table AS relation FROM queue.queue q) q $where
 ORDER BY view::text;
SELECT 'privilege', to_jsonb(p) FROM queue.system_privilege p
 ORDER BY grantee::text, privilege;
SQL
}

# A queue of table "$qt" with messages in every state.  Returns nothing; the
# messages are told apart by payload->>'n'.
sub create_all_states
{
	my ($node, $dbname, $queue, $qt, %option) = @_;
	my $sort = $option{sort_list} || 'priority,enq_time';

	$node->safe_psql($dbname, <<"SQL");
SELECT queue.create_queue_table('$qt', 'jsonb', sort_list => '$sort');
SELECT queue.create_queue('$queue', '$qt', max_retries => 0,
                          retention_time => '1 day');
SELECT queue.start_queue('$queue');
-- consumed, and kept in the journal
SELECT count(queue.enqueue('$queue', jsonb_build_object('n', 100 + i)))
  FROM generate_series(1, 5) i;
SELECT count(*) FROM queue.dequeue('$queue', max_messages => 5);
-- failed once too often: moved to the exception queue on sight
SELECT queue.enqueue('$queue', '{"n": 200}');
BEGIN;
SELECT count(*) FROM queue.dequeue('$queue');
ROLLBACK;
SELECT count(*) FROM queue.dequeue('$queue');
-- expired
SELECT queue.enqueue('$queue', '{"n": 201}', expiration => '1 millisecond');
SELECT pg_sleep(0.01);
SELECT count(*) FROM queue.dequeue('$queue');
-- ready, and waiting
SELECT count(queue.enqueue('$queue', jsonb_build_object('n', i),
                           priority => i % 3, correlation => 'c' || i,
                           properties => jsonb_build_object('k', i)))
  FROM generate_series(1, 10) i;
SELECT count(queue.enqueue('$queue', jsonb_build_object('n', 300 + i),
                           delay => '1 hour'))
  FROM generate_series(1, 4) i;
SQL
}

# Two long texts are equal; if not, the lines in which they differ are shown.
sub same
{
	my ($got, $expected, $what) = @_;
	my ($here, $there) = ({}, {});

	return Test::More::pass($what) if $got eq $expected;
	Test::More::fail($what);
	$here->{$_}++ for split /\n/, $got;
	$there->{$_}++ for split /\n/, $expected;
	my @wrong = (
		(map { "got:      $_" } grep { !$there->{$_} } split /\n/, $got),
		(map { "expected: $_" } grep { !$here->{$_} } split /\n/, $expected));
	@wrong = 'the same lines in another order or number' if @wrong == 0;
	Test::More::diag(join "\n", @wrong > 20 ? @wrong[ 0 .. 19 ] : @wrong);
	return 0;
}

# kill -9 a backend, and wait until the server has started itself anew.
sub kill_backend
{
	my ($node, $pid) = @_;
	my $witness = session($node);

	kill 'KILL', $pid;
	# the postmaster ends all sessions when it has noticed
	1 until $witness->query('SELECT pg_sleep(0.01)')->{lost};
	for my $try (1 .. 1000)
	{
		my $session = session($node, lazy => 1);
		my $is_up = $session->open;
		$session->quit;
		return if $is_up;
		usleep(50_000);
	}
	die 'the server does not come back';
}

# Stop points are there in debug builds only.
sub has_debug_points
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_settings WHERE name = 'queue.debug_points'") eq '1';
}

# Hold, and let go, sessions that come to a stop point and look for it.
sub hold_point
{
	my ($session, $point) = @_;
	$session->must("SELECT pg_advisory_lock(81, hashtext('$point'))");
}

sub free_point
{
	my ($session, $point) = @_;
	$session->must("SELECT pg_advisory_unlock(81, hashtext('$point'))");
}

# Wait until a session waits for that: advisory, SyncRep.
sub until_waiting
{
	my ($node, $session, $event) = @_;
	my $pid = $session->backend_pid;
	$node->poll_query_until('postgres',
		"SELECT wait_event = '$event' FROM pg_stat_activity WHERE pid = $pid")
	  or die "does not wait for $event";
}

# Ask again and again until the answer is as expected; the seconds it took,
# or 999 and the last answer as a remark if it takes more than half a minute.
sub seconds_until
{
	my ($node, $dbname, $sql, $expected) = @_;
	my $start = time;
	my $session = session($node, dbname => $dbname);
	my $answer = '';

	while (time - $start < 30)
	{
		my $result = $session->query($sql);
		$answer = join "\n", @{ $result->{rows} || [] };
		last if $answer eq $expected;
		usleep(10_000);
	}
	$session->quit;
	return time - $start if $answer eq $expected;
	Test::More::diag("$sql: got $answer, not $expected");
	return 999;
}

# amcheck finds nothing wrong with them; returns what it says.
sub check_indexes
{
	my ($node, $dbname) = @_;
	my ($rc, $out, $err) = $node->psql($dbname, <<'SQL', on_error_stop => 1);
CREATE EXTENSION IF NOT EXISTS amcheck;
SELECT bt_index_check(i.indexrelid, true)
  FROM queue.queue_table t, pg_partition_tree(t.relation) p, pg_index i,
       pg_class c, pg_am a
 WHERE p.isleaf AND i.indrelid = p.relid AND i.indisvalid
   AND c.oid = i.indexrelid AND a.oid = c.relam AND a.amname = 'btree';
SQL
	return $rc == 0 ? '' : $err;
}

# Take everything deliverable, one message a transaction; returns the values
# of payload->>'n', in the order of delivery.
sub drain_all
{
	my ($node, $dbname, $queue) = @_;
	my $session = session($node, dbname => $dbname);
	my @taken;

	while (1)
	{
		my $result = $session->query(
			"SELECT payload->>'n' FROM queue.dequeue('$queue')");
		die "dequeue failed: $result->{message}" if $result->{state} ne '00000';
		last if @{ $result->{rows} } == 0;
		push @taken, $result->{rows}[0];
	}
	$session->quit;
	return @taken;
}

1;
