# Proves: pg_upgrade keeps queues, messages in every state, privileges and settings, and the new cluster goes on.
# How: pg_upgrade of a cluster to the same version (the mechanism is the same for another), digests compared.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $old = new_queue_node('old');
my $new = new_queue_node('new', no_extension => 1);
my $bindir = $old->config_data('--bindir');

create_all_states($old, 'postgres', 'states', 'states_qt');
$old->safe_psql('postgres', <<'SQL');
CREATE ROLE producer;
CREATE TYPE address AS (street text, zip int);
SELECT queue.create_queue('Gone');
SELECT queue.drop_queue_table('Gone_qt', true);
SELECT queue.create_queue('"Quoted Q"', payload_type => 'address',
	sort_list => 'commit_time', retention_time => NULL);
SELECT queue.enqueue('"Quoted Q"', ROW('s', i)::address) FROM generate_series(1, 5) i;
SELECT count(*) FROM queue.dequeue('"Quoted Q"', max_messages => 2);
SELECT queue.grant_queue_privilege('enqueue', '"Quoted Q"', 'producer', true);
SELECT queue.grant_system_privilege('dequeue_any', 'producer', true);
SQL

sub digest
{
	my ($node) = @_;
	return join "\n", digest_catalog($node, 'postgres'),
	  digest_messages($node, 'postgres', 'states_qt'),
	  digest_messages($node, 'postgres', '"Quoted Q_qt"'),
	  $node->safe_psql('postgres', <<'SQL');
SELECT relname, relkind, relacl, reloptions, relowner::regrole FROM pg_class
 WHERE relnamespace = 'public'::regnamespace ORDER BY 1;
SQL
}

my $before = digest($old);
my $newest = $old->safe_psql('postgres', 'SELECT max(msgid::text) FROM states_qt');
$old->stop;
$new->stop;

my $here = PostgreSQL::Test::Utils::tempdir;
my ($out, $err) = ('', '');
my $upgraded = IPC::Run::run(
	[
		'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir,
		'-b', $bindir, '-B', $bindir, '-s', $new->host,
		'-p', $old->port, '-P', $new->port
	],
	init => sub { chdir $here or die },
	'>', \$out, '2>', \$err);
ok($upgraded, 'pg_upgrade') or diag("$out\n$err");

$new->start;
same(digest($new), $before, 'everything is the same');
is(join(',', drain_all($new, 'postgres', 'states')), '3,6,9,1,4,7,10,2,5,8',
	'delivered by priority');
is( $new->safe_psql('postgres', <<'SQL'), "3\n4\n5", 'composites');
SELECT (d.payload).zip FROM queue.dequeue_as(NULL::address, '"Quoted Q"', max_messages => 9) d
SQL
$new->safe_psql('postgres', q{SELECT queue.enqueue('states', '{"n": 77}')});
is( $new->safe_psql('postgres', "SELECT msgid::text > '$newest' FROM states
		WHERE payload->>'n' = '77'"), 't', 'msgids go on upwards');
is(join(',', drain_all($new, 'postgres', 'states')), '77', 'and out again');
is( $new->safe_psql('postgres', "SELECT queue.create_queue('later')"), 'later',
	'a new queue');
is(check_indexes($new, 'postgres'), '', 'amcheck is clean');

$new->stop;
done_testing();
