# Proves: without shared_preload_libraries nothing works, and says what to do.
# How: a server without the line; and one that had it when the extension was made.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('preload', no_extension => 1,
	conf => "shared_preload_libraries = ''\n");

sub refused
{
	my ($sql, $what) = @_;
	my ($state, $err) = sqlstate_of($node, $sql);

	subtest $what => sub {
		is($state, '55000', 'SQLSTATE') or diag($err);
		like($err, qr/HINT:.*shared_preload_libraries.*queue/,
			'the hint names the setting');
		like($err, qr/postgresql\.conf|ALTER SYSTEM/, 'and where it goes');
	};
}

refused('CREATE EXTENSION queue', 'CREATE EXTENSION');
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_namespace WHERE nspname = 'queue'"),
	'0', 'nothing is left of it');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'queue'\n");
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION queue;
SELECT queue.create_queue('orders');
SELECT queue.enqueue('orders', '{"n": 1}');
SQL

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;

my @calls = (
	q{SELECT queue.enqueue('orders', '{}')},
	q{SELECT queue.enqueue('orders', '{}'::jsonb)},
	q{SELECT queue.enqueue_array('orders', '{"{}"}')},
	q{INSERT INTO orders (payload) VALUES ('{}')},
	q{SELECT * FROM queue.dequeue('orders')},
	q{SELECT * FROM queue.dequeue('orders', mode => 'browse')},
	q{SELECT * FROM queue.dequeue_as(NULL::jsonb, 'orders')},
	q{SELECT queue.create_queue_table('t')},
	q{SELECT queue.alter_queue_table('orders_qt', 'x')},
	q{SELECT queue.purge_queue_table('orders_qt')},
	q{SELECT queue.drop_queue_table('orders_qt', true)},
	q{SELECT queue.create_queue('other')},
	q{SELECT queue.alter_queue('orders', max_retries => 1)},
	q{SELECT queue.start_queue('orders')},
	q{SELECT queue.stop_queue('orders')},
	q{SELECT queue.drop_queue('orders')},
	q{SELECT queue.grant_queue_privilege('all', 'orders', 'public')},
	q{SELECT queue.revoke_queue_privilege('all', 'orders', 'public')},
	q{SELECT queue.grant_system_privilege('enqueue_any', 'postgres', false)},
	q{SELECT queue.revoke_system_privilege('enqueue_any', 'postgres')},
	q{SELECT queue.adopt('orders_qt')},
	q{INSERT INTO orders_qt SELECT * FROM orders_qt},
	q{DELETE FROM orders},
	# loading the library late is no way round
	q{LOAD 'queue'; SELECT queue.enqueue('orders', '{}')},
);
# superuser, whatever the name
my $super = $node->safe_psql('postgres', 'SELECT quote_ident(current_user)');
s/'postgres'/'$super'/ for @calls;
refused($_, $_) for @calls;

# every C function of the extension checks, also the ones added later
my @functions = split /\n/, $node->safe_psql('postgres', <<'SQL');
SELECT p.oid::regprocedure
  FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
 WHERE p.pronamespace = 'queue'::regnamespace AND l.lanname = 'c'
   AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
   AND p.proname <> 'enq_time' AND NOT 'internal'::regtype = ANY (p.proargtypes)
 ORDER BY 1
SQL
my @passed;
for my $function (@functions)
{
	my ($name, $types) = $function =~ /^(.*?)\((.*)\)$/;
	# a value of each type; enough to get in
	my $arguments = join ', ', map {
		  /anyelement/ ? "'{}'::jsonb"
		: /anyarray/ ? "'{}'::jsonb[]"
		: /^regclass$/ ? "'orders'::regclass"
		: /^regtype$/ ? "'jsonb'::regtype"
		: "NULL::$_"
	} split /,/, $types;
	my $verb = $node->safe_psql('postgres',
		"SELECT CASE prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END FROM pg_proc WHERE oid = '$function'::regprocedure");
	my ($state, $err) = sqlstate_of($node, "$verb $name($arguments)");
	# STRICT functions are not even called with a NULL
	next if $state eq '55000';
	push @passed, "$function: $state" unless $state eq '00000'
	  && $node->safe_psql('postgres',
		"SELECT proisstrict FROM pg_proc WHERE oid = '$function'::regprocedure")
	  eq 't';
}
is("@passed", '', scalar(@functions) . ' C functions begin with the check');

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'queue'\n");
$node->restart;
is(join(',', drain_all($node, 'postgres', 'orders')), '1',
	'with the line back the message is there');

$node->stop;
done_testing();
