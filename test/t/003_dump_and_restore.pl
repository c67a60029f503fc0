# Proves: dumps of every kind bring back queues, messages, states, privileges and settings; partial ones are mended by adopt.
# How: queues with hostile names and all payload kinds; digests of source and copy are compared, then the copy is used.
use strict;
use warnings FATAL => 'all';
use utf8;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Encode qw(encode_utf8);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use QueueTest;
use Test::More;

my $node = new_queue_node('dump');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $port = $node->port;
my $host = $node->host;

sub sql
{
	my ($sql, $dbname) = @_;
	return $node->safe_psql($dbname || 'postgres', encode_utf8($sql));
}

# Run a client program; its exit code must be 0 and its stderr empty.
sub run_clean
{
	my ($what, @command) = @_;
	my ($out, $err) = ('', '');
	my $ok = IPC::Run::run(\@command, '>', \$out, '2>', \$err);
	ok($ok, $what) or diag($err);
	is($err, '', "$what: without a word");
	return $ok;
}

my @server = ('-h', $host, '-p', $port);

my @tables = (
	'plain_qt', 'shop."Orders \'Q\' $1; --_qt"', 'shop."Übergröße 🚚_qt"',
	'shop."' . ('x' x 63) . '"', 'shop.address_qt', 'shop.email_qt',
	'shop.many_qt');
my @queues = (
	'plain', 'shop."Orders \'Q\' $1; --"', 'shop."Übergröße 🚚"',
	'shop."' . ('y' x 63) . '"', 'shop.address', 'shop.email', 'shop.many_a');

# -- the source ---------------------------------------------------------------
$node->safe_psql('postgres', 'CREATE DATABASE source TEMPLATE template0');
sql(<<'SQL', 'source');
CREATE EXTENSION queue;
CREATE ROLE "Own Er" LOGIN;
CREATE ROLE producer LOGIN;
CREATE ROLE "Con.sumer" LOGIN;
CREATE ROLE browser LOGIN;
GRANT CREATE ON SCHEMA public TO "Own Er";
CREATE SCHEMA shop AUTHORIZATION "Own Er";
GRANT USAGE ON SCHEMA shop TO producer, "Con.sumer", browser;
CREATE TYPE shop."Addr ess" AS (street text, "ZIP code" int, tags text[]);
CREATE DOMAIN shop.mail AS text CHECK (VALUE LIKE '%@%');
ALTER TYPE shop."Addr ess" OWNER TO "Own Er";
SQL
create_all_states($node, 'source', 'plain', 'plain_qt');
sql(<<'SQL', 'source');
SET ROLE "Own Er";
SELECT queue.create_queue('shop."Orders ''Q'' $1; --"', max_retries => 7,
	retry_delay => '2 minutes', retention_time => NULL, comment => 'it''s "it"');
SELECT queue.create_queue('shop."Übergröße 🚚"', payload_type => 'text',
	sort_list => 'priority');
SELECT queue.create_queue_table('shop.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
	'bytea', sort_list => 'enq_time,priority', comment => 'long');
SELECT queue.create_queue('shop.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy',
	'shop.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', retention_time => '3 days');
SELECT queue.start_queue('shop.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy');
SELECT queue.create_queue('shop.address', payload_type => 'shop."Addr ess"',
	sort_list => 'commit_time', max_retries => NULL);
SELECT queue.create_queue('shop.email', payload_type => 'shop.mail',
	sort_list => 'priority,commit_time', max_retries => 0);
SELECT queue.create_queue_table('shop.many_qt');
SELECT queue.create_queue('shop.many_a', 'shop.many_qt');
SELECT queue.create_queue('shop.many_b', 'shop.many_qt', max_retries => 2,
	retention_time => '1 hour');
SELECT queue.create_queue('shop.many_x', 'shop.many_qt', queue_type => 'exception');
SELECT queue.start_queue('shop.many_a');
SELECT queue.stop_queue('shop.many_b', enqueue => false);
SELECT queue.start_queue('shop.many_x', enqueue => false);

SELECT queue.grant_queue_privilege('enqueue', 'shop.address', 'producer', true);
SELECT queue.grant_queue_privilege('dequeue', 'shop.address', '"Con.sumer"');
SELECT queue.grant_queue_privilege('browse', 'shop.address', 'browser');
SELECT queue.grant_queue_privilege('all', 'shop.email', 'producer');

SELECT queue.enqueue('shop."Orders ''Q'' $1; --"', '{"n": 1}', delay => '1 hour',
	expiration => '2 hours', correlation => 'ü', properties => '{"a": [1, null]}');
SELECT queue.enqueue('shop."Orders ''Q'' $1; --"', NULL::jsonb);
SELECT queue.enqueue('shop."Orders ''Q'' $1; --"', '{"n": 3}');
SELECT count(*) FROM queue.dequeue('shop."Orders ''Q'' $1; --"', max_messages => 1);
SELECT queue.enqueue('shop."Übergröße 🚚"', 'line
two	tab \ back', priority => i) FROM generate_series(-2, 2) i;
SELECT queue.enqueue('shop.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy',
	decode(repeat('00ff5c27', 5000), 'hex'));
SELECT queue.enqueue('shop.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy', ''::bytea, priority => -5);
SELECT queue.enqueue('shop.address', ROW('Ä "s" street', 1, '{a,"b c",NULL}')::shop."Addr ess",
	exception_queue => 'shop."aq$_address_qt_e"', reply_to => 'r');
SELECT queue.enqueue('shop.address', ROW(NULL, NULL, NULL)::shop."Addr ess");
SELECT queue.enqueue('shop.email', 'a@b'::shop.mail, priority => 9);
SELECT queue.enqueue('shop.email', 'c@d', priority => -9);
SELECT queue.enqueue('shop.many_a', jsonb_build_object('n', i)) FROM generate_series(1, 300) i;
SELECT queue.enqueue('shop.many_b', jsonb_build_object('n', i)) FROM generate_series(1, 300) i;
SELECT count(*) FROM queue.dequeue('shop.many_a', max_messages => 100);
RESET ROLE;
SELECT queue.grant_system_privilege('dequeue_any', '"Con.sumer"', true);
SELECT queue.grant_system_privilege('manage_any', 'browser', false);
SQL

# Everything that has to be the same in a copy.
sub digest
{
	my ($dbname, $where) = @_;
	my $text = digest_catalog($node, $dbname, $where);
	for my $table (@tables)
	{
		next if $where && $table !~ /^shop/;
		$text .= "\n== $table\n" . digest_messages($node, $dbname, encode_utf8($table));
	}
	$text .= "\n== acl\n" . sql(<<'SQL', $dbname);
SELECT c.oid::regclass::text, c.relkind, c.relowner::regrole, c.reloptions,
       (SELECT array_agg(a ORDER BY a::text) FROM unnest(c.relacl) a),
       obj_description(c.oid, 'pg_class')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname IN ('public', 'shop') ORDER BY 1, 2;
SELECT tgrelid::regclass::text, tgname, tgenabled, tgtype, tgfoid::regproc, tgargs
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relkind = 'v' OR c.relispartition ORDER BY 1, 2;
SELECT c.oid::regclass::text, a.attname, a.attacl FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
 WHERE a.attacl IS NOT NULL AND c.relnamespace IN ('public'::regnamespace, 'shop'::regnamespace)
 ORDER BY 1, 2;
SELECT indexrelid::regclass::text, indrelid::regclass, indisvalid,
       (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = indexrelid)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
 WHERE c.relnamespace IN ('public'::regnamespace, 'shop'::regnamespace) ORDER BY 1;
SQL
	return $text;
}

# The copy works: what was ready comes, in its order; new messages go in and out.
sub copy_works
{
	my ($what, $dbname) = @_;
	is(join(',', drain_all($node, $dbname, 'plain')), '3,6,9,1,4,7,10,2,5,8',
		"$what: delivered by priority");
	is( sql(q{SELECT (d.payload)."ZIP code" FROM queue.dequeue_as(
			NULL::shop."Addr ess", 'shop.address', max_messages => 5) d}, $dbname),
		"1\n", "$what: composites");
	is( sql(q{SELECT payload #>> '{}' FROM queue.dequeue('shop.email', max_messages => 5)}, $dbname),
		"c\@d\na\@b", "$what: domains");
	is(scalar(drain_all($node, $dbname, 'shop.many_a')), 200, "$what: the other 200");

	for my $queue (@queues)
	{
		my $payload = $queue =~ /address/ ? q{ROW('s', 2, NULL)::shop."Addr ess"}
		  : $queue =~ /email/ ? q{'x@y'} : $queue =~ /yyy/ ? q{'\x01'::bytea}
		  : $queue =~ /🚚/ ? q{'t'} : q{'{"n": 99}'};
		my $regclass = $queue =~ s/'/''/gr;
		is( sql("SELECT 1 FROM queue.enqueue('$regclass', $payload, correlation => 'new');
			SELECT correlation FROM queue.dequeue('$regclass', correlation => 'new')", $dbname),
			"1\nnew", encode_utf8("$what: $queue"));
	}
	my ($state) = sqlstate_of($node,
		"SELECT queue.enqueue('shop.email', 'no address')", dbname => $dbname);
	is($state, '23514', "$what: the domain is checked");
	($state) = sqlstate_of($node, "SELECT * FROM queue.dequeue('shop.many_b')",
		dbname => $dbname);
	is($state, 'QU002', "$what: stopped stays stopped");
	my ($rights) = sqlstate_of($node,
		q{SELECT queue.enqueue('shop.address', ROW('s', 2, NULL)::shop."Addr ess")},
		dbname => $dbname, user => 'producer');
	is($rights, '00000', "$what: granted");
	($rights) = sqlstate_of($node, q{SELECT * FROM queue.dequeue('shop.address')},
		dbname => $dbname, user => 'producer');
	is($rights, '42501', "$what: not granted");
	sql(q{SELECT queue.create_queue('shop.later', 'shop.many_qt');
		SELECT queue.start_queue('shop.later');
		SELECT queue.enqueue('shop.later', '{"n": 1}')}, $dbname);
	is(join(',', drain_all($node, $dbname, 'shop.later')), '1',
		"$what: another queue in a restored table");
	my ($dropped, $err) = sqlstate_of($node,
		"SELECT queue.drop_queue_table('shop.many_qt', force => true)", dbname => $dbname);
	is($dropped, '00000', "$what: and dropped") or diag($err);
	is(check_indexes($node, $dbname), '', "$what: amcheck is clean");
}

my $source = digest('source');
like($source, qr/MAX_RETRY_EXCEEDED/, 'the digest sees the messages');
like($source, qr/producer=a\*/, 'and the privileges');

# -- the three formats --------------------------------------------------------
run_clean('pg_dump', 'pg_dump', @server, '-f', "$dir/plain.sql", 'source');
run_clean('pg_dump -Fc', 'pg_dump', @server, '-Fc', '-f', "$dir/custom", 'source');
run_clean('pg_dump -Fd -j2', 'pg_dump', @server, '-Fd', '-j2', '-f', "$dir/dir", 'source');

sql("CREATE DATABASE $_ TEMPLATE template0") for qw(plain custom parallel);
run_clean('psql < plain', 'psql', @server, '-Xq', '-v', 'ON_ERROR_STOP=1',
	'-o', '/dev/null', '-f', "$dir/plain.sql", 'plain');
same(digest('plain'), $source, 'plain: all the same');
run_clean('pg_restore', 'pg_restore', @server, '-d', 'custom', "$dir/custom");
same(digest('custom'), $source, 'custom: all the same');
for my $round (1 .. 3)
{
	# random failures show only now and then
	sql("DROP DATABASE parallel") if $round > 1;
	sql("CREATE DATABASE parallel TEMPLATE template0") if $round > 1;
	run_clean("pg_restore -j3, round $round", 'pg_restore', @server, '-j3',
		'-d', 'parallel', "$dir/dir");
	same(digest('parallel'), $source, "parallel, round $round: all the same");
}
# over a copy that has been used, and over itself
copy_works('plain', 'plain');
sql(q{SELECT queue.create_queue('extra'); SELECT queue.enqueue('extra', '{}')}, 'custom');
sql(q{SELECT count(*) FROM queue.dequeue('plain', max_messages => 3)}, 'custom');
sql(q{SELECT queue.drop_queue_table('extra_qt', true)}, 'custom');
for my $round (1, 2)
{
	run_clean("pg_restore --clean, round $round", 'pg_restore', @server, '--clean',
		'--if-exists', '-d', 'custom', "$dir/custom");
	same(digest('custom'), $source, "clean, round $round: all the same");
}
copy_works('clean', 'custom');
copy_works('parallel', 'parallel');

# -- into a database that has other queues ------------------------------------
sql('CREATE DATABASE busy TEMPLATE template0');
sql(<<'SQL', 'busy');
CREATE EXTENSION queue;
CREATE SCHEMA mine;
SELECT queue.create_queue('mine.a');
SELECT queue.create_queue('mine.b');
SELECT queue.enqueue('mine.a', '{"n": 1}');
SELECT queue.enqueue('mine.b', '{"n": 2}');
SQL
run_clean('pg_restore into a busy database', 'pg_restore', @server, '-d', 'busy', "$dir/custom");
my @mine = (drain_all($node, 'busy', 'mine.a'), drain_all($node, 'busy', 'mine.b'));
is("@mine", '1 2', 'its own queues go on');
sql(q{SELECT queue.drop_queue_table('mine.a_qt', true);
	SELECT queue.drop_queue_table('mine.b_qt', true); DROP SCHEMA mine}, 'busy');
same(digest('busy'), $source, 'busy: the restored ones are all the same');
copy_works('busy', 'busy');

# -- part of a database, without the extension's rows -------------------------
run_clean('pg_dump -n', 'pg_dump', @server, '-Fc', '-n', 'shop', '-f', "$dir/part", 'source');
sql('CREATE DATABASE part TEMPLATE template0');
sql(<<'SQL', 'part');
CREATE EXTENSION queue;
SELECT queue.create_queue('here');
SELECT queue.enqueue('here', '{"n": 1}');
SQL
run_clean('pg_restore of a part', 'pg_restore', @server, '-d', 'part', "$dir/part");
{
	my ($state, $err) = sqlstate_of($node, q{SELECT * FROM queue.dequeue('shop.address')},
		dbname => 'part');
	is($state, '42P01', 'not known yet') or diag($err);
	like($err, qr/HINT:.*adopt/, 'the hint names queue.adopt');
	($state, $err) = sqlstate_of($node,
		q{INSERT INTO shop.email (payload) VALUES ('a@b')}, dbname => 'part');
	is($state, '42P01', 'INSERT neither, and it stores nothing') or diag($err);
}
for my $table (grep { /^shop/ } @tables)
{
	my $regclass = $table =~ s/'/''/gr;
	sql("SELECT queue.adopt('$regclass')", 'part');
}
# what adopt cannot know: when, which were started, comments of its rows
my $ignore = qr/"(?:created_at|comment|last_queue_id|enqueue_enabled|dequeue_enabled)": (?:"(?:[^"\\]|\\.)*"|\w+)/;
my $shop = qq{relation::text LIKE 'shop.%'};
my ($got, $want) = (digest_catalog($node, 'part', $shop), digest_catalog($node, 'source', $shop));
for ($got, $want) { s/$ignore//g; s/^privilege.*$//mg; s/\n+\z//; }
same($got, $want, 'adopt: queue tables and queues with their settings');
for my $table (grep { /^shop/ } @tables)
{
	same( digest_messages($node, 'part', encode_utf8($table)),
		digest_messages($node, 'source', encode_utf8($table)), encode_utf8("adopt: messages of $table"));
}
sql("SELECT queue.start_queue('shop.many_a')", 'part');
is(scalar(drain_all($node, 'part', 'shop.many_a')), 200, 'adopt: delivered');
is(join(',', drain_all($node, 'part', 'here')), '1', 'what was there goes on');
{
	my ($state, $err) = sqlstate_of($node, q{SELECT queue.adopt('shop.many_qt')}, dbname => 'part');
	like($state, qr/^(00000|42710)$/, 'adopt twice does no harm') or diag($err);
	($state) = sqlstate_of($node, q{SELECT queue.adopt('pg_class')}, dbname => 'part');
	isnt($state, '00000', 'adopt of something else is refused');
	isnt($state, 'XX000', 'properly');
	($state) = sqlstate_of($node, q{SELECT queue.adopt('shop.many_qt')},
		dbname => 'part', user => 'producer');
	is($state, '42501', 'adopt by a stranger is refused');
}

# -- a queue left out of the dump ---------------------------------------------
# Its catalog row names nothing at load, so that table's COPY fails as a whole
# (pg_dump's way); the messages are there, and adopt makes the rows again.
run_clean('pg_dump -T', 'pg_dump', @server, '-Fc', '-T', 'shop.email', '-f', "$dir/less", 'source');
sql('CREATE DATABASE less TEMPLATE template0');
IPC::Run::run([ 'pg_restore', @server, '-d', 'less', "$dir/less" ], '2>', '/dev/null');
sql(qq{SELECT queue.adopt('shop.many_qt')}, 'less');
sql("SELECT queue.start_queue('shop.many_a')", 'less');
is(scalar(drain_all($node, 'less', 'shop.many_a')), 200, 'less: adopted and delivered');

# -- a dump by the owner, who is no superuser ---------------------------------
sql('CREATE DATABASE own TEMPLATE template0 OWNER "Own Er"');
sql('CREATE EXTENSION queue; GRANT CREATE ON SCHEMA public TO "Own Er"', 'own');
$node->safe_psql('own', <<'SQL', extra_params => [ '-U', 'Own Er' ]);
CREATE SCHEMA shop;
SELECT queue.create_queue('shop.small', retention_time => '1 day');
SELECT queue.enqueue('shop.small', jsonb_build_object('n', i)) FROM generate_series(1, 3) i;
SELECT count(*) FROM queue.dequeue('shop.small');
SQL
run_clean('pg_dump by the owner', 'pg_dump', @server, '-U', 'Own Er', '-Fc', '-f', "$dir/own", 'own');
sql('CREATE DATABASE own2 TEMPLATE template0');
run_clean('restored by a superuser', 'pg_restore', @server, '-d', 'own2', "$dir/own");
same(digest_catalog($node, 'own2'), digest_catalog($node, 'own'), 'own: catalog');
same( digest_messages($node, 'own2', 'shop.small_qt'),
	digest_messages($node, 'own', 'shop.small_qt'), 'own: messages');
is(join(',', drain_all($node, 'own2', 'shop.small')), '2,3', 'own: delivered');

# -- between a restore's data and its indexes ---------------------------------
sql('CREATE DATABASE early TEMPLATE template0');
run_clean('pg_restore --section pre-data, data', 'pg_restore', @server,
	'--section=pre-data', '--section=data', '-d', 'early', "$dir/custom");
for my $call (
	q{SELECT queue.enqueue('plain', '{"n": 50}')},
	q{INSERT INTO plain (payload) VALUES ('{"n": 51}')},
	q{SELECT * FROM queue.dequeue('plain')},
	q{SELECT * FROM queue.dequeue('plain', mode => 'browse')},
	q{SELECT count(*) FROM plain},
	q{SELECT queue.purge_queue_table('shop.many_qt', 'false')},
	q{SELECT queue.stop_queue('plain')})
{
	# rolled back: only that it is either done or refused matters
	my ($state, $err) = sqlstate_of($node, "BEGIN; $call; ROLLBACK", dbname => 'early');
	# INSERT finds no trigger on the view yet, and no partition for its row
	my $allowed = $call =~ /INSERT/ ? qr/^(?:00000|23514|23502)$/ : qr/^(?:00000|55000|QU011|42P01)$/;
	like($state, $allowed, "early: $call: $state") or diag($err);
}
run_clean('pg_restore --section post-data', 'pg_restore', @server,
	'--section=post-data', '-d', 'early', "$dir/custom");
same(digest('early'), $source, 'early: nothing was lost');
copy_works('early', 'early');

# -- a queue view dropped by hand ---------------------------------------------
sql('CREATE DATABASE torn TEMPLATE template0');
run_clean('pg_restore', 'pg_restore', @server, '-d', 'torn', "$dir/custom");
sql('DROP VIEW shop.many_b', 'torn');
{
	my ($state, $err) = sqlstate_of($node, q{SELECT * FROM queue.dequeue('shop.many_b')}, dbname => 'torn');
	is($state, '42P01', 'torn: the view is gone');
	is(scalar(drain_all($node, 'torn', 'shop.many_a')), 200, 'torn: its neighbour works');
}
run_clean('torn: pg_dump', 'pg_dump', @server, '-Fc', '-f', "$dir/torn", 'torn');
sql('CREATE DATABASE torn2 TEMPLATE template0');
run_clean('torn: pg_restore', 'pg_restore', @server, '-d', 'torn2', "$dir/torn");
is( sql(q{SELECT count(*) FROM queue.queue q
		WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = q.view)}, 'torn2'),
	'0', 'torn: no row that names nothing');
is(join(',', drain_all($node, 'torn2', 'plain')), '3,6,9,1,4,7,10,2,5,8', 'torn: the others work');

$node->stop;
done_testing();
