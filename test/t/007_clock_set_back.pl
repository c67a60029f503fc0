# Proves: message ids grow also when the system clock steps back, in one run and over a restart; delays follow the clock.
# How: queue.debug_clock_offset (microseconds, test builds only) moves the clock.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('clock');
if ($node->safe_psql('postgres',
		q{SELECT queue.create_queue('orders');
		  SELECT count(*) FROM pg_settings
		   WHERE name = 'queue.debug_clock_offset'}) !~ /^1$/m)
{
	$node->stop;
	plan skip_all => 'the library was built without its test settings';
}

my $hour = 3600 * 1_000_000;

sub with_offset
{
	my ($offset, $sql) = @_;
	return $node->safe_psql('postgres',
		"SET queue.debug_clock_offset = '$offset'; $sql");
}

sub order_is
{
	my ($expected, $what) = @_;
	is( $node->safe_psql('postgres',
			"SELECT string_agg(payload->>'n', ',' ORDER BY msgid) FROM orders"),
		$expected, $what);
}

with_offset(0, q{SELECT queue.enqueue('orders', '{"n": 1}')});
with_offset($hour, q{SELECT queue.enqueue('orders', '{"n": 2}')});
is( $node->safe_psql('postgres', <<'SQL'),
SELECT enq_time > clock_timestamp() + '59 minutes'
  FROM orders WHERE payload->>'n' = '2'
SQL
	't', 'the setting moves the clock');
with_offset(0, q{SELECT queue.enqueue('orders', '{"n": 3}')});
with_offset(-$hour, q{SELECT queue.enqueue('orders', '{"n": 4}')});
order_is('1,2,3,4', 'ids grow over a step back');

for my $how ('fast', 'immediate')
{
	$node->stop($how);
	$node->append_conf('postgresql.conf',
		"queue.debug_clock_offset = '" . -24 * $hour . "'\n");
	$node->start;
	my $n = $how eq 'fast' ? 5 : 6;
	$node->safe_psql('postgres', "SELECT queue.enqueue('orders', '{\"n\": $n}')");
	order_is(join(',', 1 .. $n), "ids grow over a $how restart with the clock set back");
}

# The highest id may be that of a message in any state, or of another queue of
# the table; take the newest into the journal, restart, send again.
$node->safe_psql('postgres', <<'SQL');
SELECT queue.alter_queue('orders', retention_time => '1 day');
SELECT count(*) FROM queue.dequeue('orders', max_messages => 100);
SQL
$node->restart;
$node->safe_psql('postgres', q{SELECT queue.enqueue('orders', '{"n": 7}')});
is( $node->safe_psql('postgres',
		"SELECT string_agg(payload->>'n', ',' ORDER BY msgid) FROM orders_qt"),
	'1,2,3,4,5,6,7', 'ids lie above the journal');
$node->safe_psql('postgres', <<'SQL');
SET queue.debug_clock_offset = 0;
SELECT queue.enqueue('orders', '{"n": 8}', delay => '3 hours');
SQL
$node->restart;
$node->safe_psql('postgres', q{SELECT queue.enqueue('orders', '{"n": 9}')});
is( $node->safe_psql('postgres',
		"SELECT string_agg(payload->>'n', ',' ORDER BY msgid) FROM orders_qt"),
	'1,2,3,4,5,6,7,8,9', 'ids lie above a waiting message');

# Due times follow the clock.
is( with_offset(2 * $hour,
		q{SELECT count(*) FROM queue.dequeue('orders', condition => 'payload->>''n'' = ''8''')}),
	'0', 'not due before its time');
is( with_offset(4 * $hour,
		q{SELECT payload->>'n' FROM queue.dequeue('orders', condition => 'payload->>''n'' = ''8''')}),
	'8', 'due after it');
is(join(',', drain_all($node, 'postgres', 'orders')), '7,9', 'the rest, in order');

# Ids are a day ahead of the clock now.  Delay and expiration do not wait for
# that day, and are shown as they were given.
$node->safe_psql('postgres', <<'SQL');
SELECT queue.enqueue('orders', '"expires"', expiration => '1 minute');
SELECT queue.enqueue('orders', '"waits"', delay => '1 minute');
SELECT queue.enqueue('orders', '"both"', delay => '1 minute', expiration => '1 minute');
SQL
is( $node->safe_psql('postgres', <<'SQL'),
SELECT payload, state, expiration,
       deliver_at BETWEEN clock_timestamp() - '1 day'::interval AND clock_timestamp() - '23:58'::interval
  FROM orders ORDER BY msgid
SQL
	qq{"expires"|ready|00:01:00|\n"waits"|waiting||t\n"both"|waiting|00:01:00|t},
	'shown as given with ids ahead of the clock');
my $minute = 60 * 1_000_000;
is( with_offset(-24 * $hour + 1.5 * $minute,
		q{SELECT payload FROM queue.dequeue('orders', max_messages => 9)}),
	qq{"waits"\n"both"}, 'due and expired by the clock');
is( $node->safe_psql('postgres', <<'SQL'),
SELECT user_data, expiration, expiration_reason FROM aq$orders_qt
 WHERE msg_state = 'EXPIRED' OR user_data = '"both"' ORDER BY msg_id
SQL
	qq{"expires"|00:01:00|TIME_EXPIRATION\n"both"|00:01:00|},
	'shown as given afterwards');

$node->stop;
done_testing();
