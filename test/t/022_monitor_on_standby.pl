# Proves: on a standby neither launcher nor monitor runs; promotion starts them.
# How: a streaming standby of a server with two databases, used and then promoted.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;
use Time::HiRes qw(sleep);

my $primary = new_queue_node('primary', allows_streaming => 1);
$primary->safe_psql('postgres', 'CREATE DATABASE one');
$primary->safe_psql('one', 'CREATE EXTENSION queue');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'queue %'";
my $sleeping = "SELECT string_agg(database, ',' ORDER BY database)
	FROM queue.workers WHERE kind = 'monitor' AND state = 'sleeping'";

is(seconds_until($primary, 'postgres', $sleeping, 'one,postgres') < 30, 1, 'the primary has them');
$primary->safe_psql('postgres', 'CREATE DATABASE two');
$primary->safe_psql('two', 'CREATE EXTENSION queue');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('write'));
is($standby->safe_psql('postgres', 'SELECT count(*) FROM queue.queues'), '0', 'used on the standby');
$standby->safe_psql('two', "SELECT queue.enq_time('019999a0-0000-7000-8000-000000000000')");
sleep 0.5;
is($standby->safe_psql('postgres', $workers), '0', 'no worker on the standby');
is($standby->safe_psql('postgres', 'SELECT kind, state FROM queue.workers'),
	'launcher|stopped', 'the view says so');

# the primary drops one: no monitor stands in the way of replay
$primary->safe_psql('postgres', 'DROP DATABASE one');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('write'));

$primary->stop;
$standby->promote;
is(seconds_until($standby, 'postgres', $sleeping, 'postgres,two') < 30, 1, 'promotion starts them');
$standby->stop;
done_testing();
