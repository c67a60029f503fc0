# Proves: VACUUM, rewrites, reindexing and ALTER TABLE of queue tables lose nothing while sessions send and take.
# How: the load of 006 without faults, maintenance of every leaf meanwhile; then the same accounting and amcheck.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueAccounting;
use QueueTest;
use Test::More;

my $seed = $ENV{QUEUE_SEED} || 1 + int rand 1_000_000;
my $seconds = $ENV{QUEUE_SOAK} ? 120 : 12;
my $node = new_queue_node('maintenance', conf => <<'CONF');
autovacuum_naptime = 1s
statement_timeout = '60s'
deadlock_timeout = '200ms'
CONF
referee($node, $ENV{QUEUE_HISTORY_DIR} || PostgreSQL::Test::Utils::tempdir, 8);
print "# seed $seed\n";

my $name = "m$seed";
my (@todo, %done);

# What is done to the table, again and again, in this order.
sub commands
{
	my @leaves = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', <<"SQL");
SELECT p.relid::regclass, (SELECT min(indexrelid)::regclass FROM pg_index WHERE indrelid = p.relid),
       (SELECT string_agg(indexrelid::regclass::text, ' ') FROM pg_index WHERE indrelid = p.relid)
  FROM pg_partition_tree('${name}_qt') p WHERE p.isleaf ORDER BY 1
SQL
	my @list;
	for my $leaf (@leaves)
	{
		my ($table, $index, $all) = @$leaf;
		push @list, "VACUUM $table", "VACUUM (FREEZE, INDEX_CLEANUP on) $table",
		  "VACUUM FULL $table", "CLUSTER $table USING $index",
		  (map { "REINDEX INDEX CONCURRENTLY $_" } split / /, $all),
		  "REINDEX TABLE $table", "ALTER TABLE $table SET (fillfactor = 80)",
		  "ANALYZE $table";
	}
	push @list, "REINDEX TABLE CONCURRENTLY ${name}_qt",
	  "ALTER TABLE ${name}_qt ADD COLUMN IF NOT EXISTS more int",
	  "CREATE INDEX IF NOT EXISTS more_index ON ${name}_qt (more)",
	  "CREATE INDEX IF NOT EXISTS payload_index ON ${name}_qt USING gin (payload)",
	  "VACUUM ${name}_qt",
	  "DROP INDEX IF EXISTS more_index", "DROP INDEX IF EXISTS payload_index",
	  "ALTER TABLE ${name}_qt ALTER COLUMN correlation SET STATISTICS 10",
	  "ALTER TABLE ${name}_qt DROP COLUMN IF EXISTS more",
	  "COMMENT ON TABLE ${name}_qt IS 'x'", "CHECKPOINT";
	return @list;
}

my @files = play($name, 'priority,enq_time', 'calm', $seed, $seconds, no_prepare => 1,
	meanwhile => sub {
		@todo = commands() if @todo == 0;
		my $command = shift @todo;
		# where an ALTER was refused, what follows may find no column (42703);
		# it must not stand in the way for long, or the load does not run
		my ($state, $err) = sqlstate_of($node, "SET lock_timeout = '2s';\n$command");
		my ($kind) = $command =~ /^((?:[A-Z]+ ?)+)/;
		$done{$kind}{ $state eq '00000' ? 'done' : 'refused' }++;
		fail("$command: $err") unless $state =~ /^(?:00000|55P03|40P01|42703)$/;
	});
for my $kind (sort keys %done)
{
	note("$kind: " . join ', ', map { "$_ $done{$kind}{$_}" } sort keys %{ $done{$kind} });
}
cmp_ok(scalar(grep { $done{$_}{done} } keys %done), '>=', 5, 'the commands came through');
drain($name);
account($name, 'calm', @files);
is(check_indexes($node, 'postgres'), '', 'amcheck is clean');

$node->safe_psql('postgres', "SELECT queue.enqueue('${name}_five', '{\"n\": 1}')");
is(join(',', drain_all($node, 'postgres', "${name}_five")), '1', 'and it goes on');

$node->stop;
done_testing();
