# Proves: a hot standby shows messages, refuses the rest and says why; once promoted it delivers every message once.
# How: streaming standby, browse and every changing call on it, then promotion with messages in every state.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $primary = new_queue_node('primary', allows_streaming => 1,
	conf => "wal_consistency_checking = 'all'\n");
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

create_all_states($primary, 'postgres', 'states', 'states_qt');
$primary->safe_psql('postgres', <<'SQL');
SELECT queue.create_queue('busy', max_retries => NULL);
SELECT queue.enqueue('busy', jsonb_build_object('n', i)) FROM generate_series(1, 6) i;
SELECT count(*) FROM queue.dequeue('busy', max_messages => 2);
BEGIN;
SELECT queue.enqueue('busy', '{"n": 7}');
PREPARE TRANSACTION 'send';
BEGIN;
SELECT count(*) FROM queue.dequeue('busy');
PREPARE TRANSACTION 'take';
SELECT pg_current_wal_lsn();
SQL
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('write'));

# browse
is( $standby->safe_psql('postgres',
		"SELECT string_agg(payload->>'n', ',' ORDER BY msgid) FROM busy"),
	'3,4,5,6', 'the view browses');
is( join(',', split /\n/, $standby->safe_psql('postgres',
		"SELECT payload->>'n' FROM queue.dequeue('states', mode => 'browse', max_messages => 20)")),
	'3,6,9,1,4,7,10,2,5,8', 'dequeue in mode browse, by priority');
is( $standby->safe_psql('postgres', 'SELECT count(*) FROM "aq$states_qt"'),
	$primary->safe_psql('postgres', 'SELECT count(*) FROM "aq$states_qt"'),
	'all messages');

# the rest is refused
for my $call (
	q{queue.enqueue('busy', '{}')},
	q{queue.enqueue('busy', '{}'::jsonb)},
	q{queue.enqueue_array('busy', '{"{}"}')},
	q{count(*) FROM queue.dequeue('busy')},
	q{count(*) FROM queue.dequeue('busy', mode => 'locked')},
	q{count(*) FROM queue.dequeue('busy', mode => 'remove_nodata')},
	q{count(*) FROM queue.dequeue_as(NULL::jsonb, 'busy')},
	q{queue.create_queue('new')},
	q{queue.create_queue_table('new_qt')},
	q{queue.alter_queue('busy', max_retries => 1)},
	q{queue.alter_queue_table('busy_qt', 'x')},
	q{queue.start_queue('busy')},
	q{queue.stop_queue('busy')},
	q{queue.drop_queue('busy')},
	q{queue.drop_queue_table('busy_qt', true)},
	q{queue.purge_queue_table('busy_qt')},
	q{queue.grant_queue_privilege('all', 'busy', 'public')},
	q{queue.revoke_queue_privilege('all', 'busy', 'public')},
	q{queue.adopt('busy_qt')})
{
	my ($state, $err) = sqlstate_of($standby, "SELECT $call");
	is($state, '25006', "$call") or diag($err);
	like($err, qr/recovery|read-only/, "... says why");
	unlike($err, qr/TransactionId/, "... in the user's words");
}
my ($state, $err) = sqlstate_of($standby, q{INSERT INTO busy (payload) VALUES ('{}')});
is($state, '25006', 'INSERT') or diag($err);

# promotion
my $stored = $standby->safe_psql('postgres',
	'SELECT max(msgid::text) FROM (SELECT msgid FROM states_qt UNION ALL SELECT msgid FROM busy_qt) m');
$primary->stop('immediate');
$standby->promote;

my $session = session($standby);
$session->must(q{SELECT queue.enqueue('busy', '{"n": 8}')});
my ($above) = $session->must(
	"SELECT msgid::text > '$stored' FROM busy WHERE payload->>'n' = '8'");
is($above, 't', 'the clock is above everything stored');
$session->must('BEGIN');
is( join(',', $session->must(
		"SELECT payload->>'n' FROM queue.dequeue('busy', max_messages => 20)")),
	'4,5,6,8', 'what prepared transactions hold stays away');
$session->must('ROLLBACK');
$session->must("COMMIT PREPARED 'send'");
$session->must("ROLLBACK PREPARED 'take'");
is(join(',', drain_all($standby, 'postgres', 'busy')), '3,4,5,6,7,8',
	'each once, in order');
is(join(',', drain_all($standby, 'postgres', 'states')), '3,6,9,1,4,7,10,2,5,8',
	'by priority');
is( $standby->safe_psql('postgres',
		'SELECT state, count(*) FROM states_qt GROUP BY 1 ORDER BY 1'),
	"1|4\n2|15\n3|2", 'the other states');
is(check_indexes($standby, 'postgres'), '', 'amcheck is clean');
$session->quit;
$standby->stop;
done_testing();
