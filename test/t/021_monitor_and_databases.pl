# Proves: monitors are never in the way of commands that need a database to themselves, and come back after them.
# How: DROP, RENAME, SET TABLESPACE, CREATE ... TEMPLATE, by owners and by others, failing and rolled back, again and again.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(time sleep);

# the server waits for five seconds before it gives up
my $AT_ONCE = 4;

my $node = new_queue_node('databases');

sub sql { return $node->safe_psql($_[1] || 'postgres', $_[0]); }

my $sleeping = "SELECT coalesce(string_agg(database, ',' ORDER BY database), '')
	FROM queue.workers WHERE kind = 'monitor' AND state = 'sleeping'";

sub settled
{
	my ($expected, $what) = @_;
	cmp_ok(seconds_until($node, 'postgres', $sleeping, $expected), '<', 5, $what);
}

sub at_once
{
	my ($statement, %option) = @_;
	my $start = time;
	my ($state, $err) = sqlstate_of($node, $statement, %option);
	is($state, $option{state} || '00000', $statement) or diag($err);
	cmp_ok(time - $start, '<', $AT_ONCE, '... at once');
}

sub database_with_extension
{
	my ($name, $owner) = @_;
	sql("CREATE DATABASE $name" . ($owner ? " OWNER $owner" : ''));
	sql('CREATE EXTENSION queue', $name);
}

database_with_extension('one');
settled('one,postgres', 'monitors run');

# rename
at_once('ALTER DATABASE one RENAME TO uno');
settled('postgres,uno', 'the monitor is back, under the new name');
is( sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'uno'"),
	'1', 'in the renamed database');
at_once('BEGIN; ALTER DATABASE uno RENAME TO one; ROLLBACK');
settled('postgres,uno', 'back after a rollback');
my $session = session($node);
$session->must('BEGIN');
$session->must('ALTER DATABASE uno RENAME TO one');
is( sql("SELECT state, pid FROM queue.workers WHERE database = 'uno'"),
	'closed|', 'kept out until the end of the transaction');
$session->must('COMMIT');
settled('one,postgres', 'then it is back');

# the session that has closed it is terminated
$session->must('BEGIN');
$session->must('ALTER DATABASE one RENAME TO uno');
sql('SELECT pg_terminate_backend(' . $session->backend_pid . ')');
settled('one,postgres', 'back when the session was terminated');

# copy
sql("SELECT queue.create_queue('orders'); SELECT queue.enqueue('orders', '{\"n\": 1}')", 'one');
at_once('CREATE DATABASE two TEMPLATE one');
settled('one,postgres,two', 'source and copy have their monitors');
is(join(',', drain_all($node, 'two', 'orders')), '1', 'the copy works');
at_once('CREATE DATABASE two TEMPLATE one', state => '42P04');
settled('one,postgres,two', 'back after one that failed');
at_once('CREATE DATABASE plain TEMPLATE template0');
settled('one,postgres,two', 'a database without the extension has none');

# the template of all
sql('CREATE EXTENSION queue', 'template1');
settled('one,postgres,template1,two', 'template1 has one');
at_once('CREATE DATABASE three');
settled('one,postgres,template1,three,two', 'and what is made from it');
sql('DROP EXTENSION queue', 'template1');

# move
my $place = PostgreSQL::Test::Utils::tempdir_short();
sql("CREATE TABLESPACE place LOCATION '$place'");
at_once('ALTER DATABASE three SET TABLESPACE place');
settled('one,postgres,three,two', 'back after the move');

# drop
$session = session($node, dbname => 'three');
my $start = time;
my ($state) = sqlstate_of($node, 'DROP DATABASE three');
is($state, '55006', 'somebody is there: DROP DATABASE fails');
settled('one,postgres,three,two', 'and the monitor is back');
$session->quit;
at_once('DROP DATABASE three');
settled('one,postgres,two', 'dropped');
is( sql("SELECT count(*) FROM queue.workers"), '4', 'and forgotten');
at_once('BEGIN; DROP DATABASE two', state => '25001');
settled('one,postgres,two', 'in a transaction block it is refused, and the monitor back');
at_once('DROP DATABASE IF EXISTS nothing');

# other roles
sql('CREATE ROLE landlord LOGIN CREATEDB; CREATE ROLE lodger LOGIN CREATEDB');
database_with_extension('house', 'landlord');
settled('house,one,postgres,two', 'a database of somebody else');
my $pid = sql("SELECT pid FROM queue.workers WHERE database = 'house'");
at_once($_, user => 'lodger', state => '42501')
  for 'DROP DATABASE house', 'ALTER DATABASE house RENAME TO mine',
  'CREATE DATABASE mine TEMPLATE house', 'ALTER DATABASE house SET TABLESPACE place';
is(sql("SELECT pid FROM queue.workers WHERE database = 'house'"), $pid,
	'who may not do it does not send the monitor away');
at_once('CREATE DATABASE copy TEMPLATE house', user => 'landlord');
settled('copy,house,one,postgres,two', 'the owner may copy it');
at_once('DROP DATABASE house WITH (FORCE)', user => 'landlord');
at_once('DROP DATABASE copy', user => 'landlord');
settled('one,postgres,two', 'and drop it, with and without force');

# a connection is forbidden
sql('ALTER DATABASE two ALLOW_CONNECTIONS false');
sql("SELECT pg_terminate_backend(pid) FROM queue.workers WHERE database = 'two'");
settled('one,postgres', 'no monitor where nobody may connect');
sql('ALTER DATABASE two ALLOW_CONNECTIONS true');
is(join(',', drain_all($node, 'two', 'orders')), '', 'it may be used again');

# again and again, while the launcher is busy
my $failed = 0;
for my $n (1 .. 15)
{
	sql("CREATE DATABASE again TEMPLATE one");
	my ($name) = ('again');
	if ($n % 3 == 0)
	{
		$failed++ if (sqlstate_of($node, 'ALTER DATABASE again RENAME TO more'))[0] ne '00000';
		$name = 'more';
	}
	sleep 0.01 * ($n % 5);
	$failed++ if (sqlstate_of($node, "DROP DATABASE $name"))[0] ne '00000';
}
is($failed, 0, 'made, renamed and dropped at any moment of its monitor');
my $log = slurp_file($node->logfile);
unlike($log, qr/FATAL:  database .* does not exist/, 'nobody tried to enter what is gone');

$node->stop;
done_testing();
