# The stress tests' referee: runs rounds of sessions with faults, drains, and
# compares what the histories, the stress tables and the queue table say.
package QueueAccounting;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use POSIX ();
use QueueStress;
use QueueTest;
use Test::More;
use Time::HiRes qw(time sleep);

our @EXPORT = qw(referee play drain account);

my ($node, $dir, $sessions);

# Name the server, the directory for histories and the number of sessions.
sub referee
{
	($node, $dir, $sessions) = @_;
	$node->safe_psql('postgres', QueueStress::schema());
}

# -- running -------------------------------------------------------------------

# Ask the server, by a session of our own; undef while it is down.
my $asking;
sub ask
{
	my ($sql) = @_;

	$asking ||= session($node, lazy => 1);
	# a session that a crash has ended is opened again, once
	for my $try (1, 2)
	{
		$asking->is_open or $asking->open or return undef;
		my $result = $asking->query($sql);
		next if $result->{lost};
		return undef if $result->{state} ne '00000';
		return join "\n", @{ $result->{rows} };
	}
	return undef;
}

sub backends
{
	my $pids = ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'stress' ORDER BY pid");
	return defined $pids ? split(/\n/, $pids) : ();
}

# The rest of the prepared transactions; the gid says what is to become of each.
sub sweep_prepared
{
	my ($age) = @_;
	my $gids = ask("SELECT gid FROM pg_prepared_xacts WHERE prepared <= clock_timestamp() - '$age ms'::interval");
	return unless defined $gids;
	for my $gid (split /\n/, $gids)
	{
		my ($fate) = $gid =~ /-(commit|rollback)$/;
		ask(uc($fate) . " PREPARED '$gid'");
	}
}

# One round: all sessions on the queues of one table.  faults is calm,
# terminate or kill.  Options: meanwhile is called again and again until the
# time is over; with one_consumer session 1 only takes and the others only
# send; shallow keeps the queues almost empty, which is where scans overtake
# enqueuers; no_prepare leaves out prepared transactions.  Returns the history files.
sub play
{
	my ($name, $sort_list, $faults, $seed, $duration, %option) = @_;
	$node->safe_psql('postgres', QueueStress::create_queues($name, $sort_list));
	my $until = time + $duration;
	my (@children, @files);

	for my $id (1 .. $sessions)
	{
		my $file = "$dir/$name-$id.history";
		push @files, $file;
		my $pid = fork;
		die "fork: $!" unless defined $pid;
		if ($pid == 0)
		{
			my $done = eval {
				QueueStress::worker(
					id => $id, seed => $seed * 100 + $id, node => $node,
					name => $name, until => $until, history => $file,
					prepare => !$option{no_prepare},
					depth => $option{shallow} ? 1 : 200,
					role => !$option{one_consumer} ? 'any'
					  : $id == 1 ? 'consumer' : 'producer');
				1;
			};
			print STDERR "session $id: $@" unless $done;
			POSIX::_exit($done ? 0 : 1);
		}
		push @children, $pid;
	}

	# the fault plan is drawn first, then followed
	srand($seed * 100);
	my @plan = map { [ rand, rand, rand ] } 1 .. 10_000;
	my $next = time + 0.3;
	my $hit = 0;
	while (time < $until)
	{
		$option{meanwhile} ? $option{meanwhile}->() : sleep 0.05;
		sweep_prepared(300);
		next if $faults eq 'calm' || time < $next;
		my ($whom, $how, $when) = @{ shift @plan };
		my @pids = backends();
		$next = time + ($faults eq 'kill' ? 1.5 + 2 * $when : 0.1 + 0.3 * $when);
		next unless @pids;
		my $pid = $pids[ $whom * @pids ];
		if ($faults eq 'kill' && $how < 0.5) { kill_backend($node, $pid); }
		elsif ($how < 0.75) { ask("SELECT pg_terminate_backend($pid)"); }
		else { ask("SELECT pg_cancel_backend($pid)"); }
		$hit++;
	}
	my $failed = 0;
	for my $child (@children)
	{
		waitpid $child, 0;
		$failed++ if $?;
	}
	is($failed, 0, "$name: all sessions came to their end");
	note("$name: $hit faults");
	$node->poll_query_until('postgres', 'SELECT true');
	return @files;
}

# Take all that is left.  A session of its own, one batch a transaction.
sub drain
{
	my ($name) = @_;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'stress'");
	sweep_prepared(0);
	my $session = session($node);
	my $deadline = time + 30;
	my $statement = 1;

	while (time < $deadline)
	{
		my $got = 0;
		for my $queue (map { "${name}_$_" } qw(five zero ever))
		{
			$got += $session->must(<<"SQL");
WITH d AS MATERIALIZED (SELECT * FROM queue.dequeue('$queue', max_messages => 1000) WITH ORDINALITY),
e AS (INSERT INTO stress.effect SELECT 0, $statement, ordinality, '$queue', 'drain',
	msgid, payload->>'tag', md5(payload->>'fill') = payload->>'md5', retry_count,
	priority, expires_at, statement_timestamp(), clock_timestamp() FROM d)
SELECT 1 FROM d
SQL
			$statement++;
		}
		next if $got;
		my ($left) = $session->must("SELECT count(*) FROM ${name}_qt WHERE state IN (0, 1)");
		last if $left == 0;
	}
	my @left = $session->must(<<"SQL");
SELECT concat_ws(' ', queue_id, state, segment, priority, retry_count, due_at, expires_at, msgid,
	queue.enq_time(msgid), payload->>'tag') FROM ${name}_qt WHERE state IN (0, 1) ORDER BY msgid LIMIT 10
SQL
	none("$name: nothing is stranded", @left);
	if (@left)
	{
		# what does the head say (a function of test builds)?
		$session->query(q{CREATE FUNCTION pg_temp.head(oid, int) RETURNS text LANGUAGE c
			AS '$libdir/queue', 'queue_internal_debug_head'});
		diag(join "\n", @{ $session->query(<<"SQL")->{rows} });
SELECT DISTINCT queue_id, pg_temp.head('${name}_qt'::regclass, queue_id)
  FROM ${name}_qt WHERE state IN (0, 1)
SQL
		# is it the head that hides them?
		$session->must('SET queue.use_heads = off');
		for my $queue (map { "${name}_$_" } qw(five zero ever))
		{
			my ($got) = $session->must("SELECT count(*) FROM queue.dequeue('$queue', mode => 'browse', max_messages => 1000)");
			diag("$queue: $got of them are found without the head");
		}
		my $fresh = session($node);
		for my $queue (map { "${name}_$_" } qw(five zero ever))
		{
			my ($got) = $fresh->must("SELECT count(*) FROM queue.dequeue('$queue', mode => 'browse', max_messages => 1000)");
			diag("$queue: $got of them are found by a fresh session");
		}
	}
	$session->quit;
	return $statement;
}

# -- counting ------------------------------------------------------------------

# Read the history files: { tries => {tag}, enq => {tag => [outcome, ...]}, deq
# => {tag => [outcome, ...]}, locked => {tag}, errors, lost_answers }.  An
# outcome is ok, fail, undone, or "worker n" of a row of stress.done that tells.
sub read_history
{
	my (@files) = @_;
	my %h = (try => {}, enq => {}, deq => {}, locked => {}, error => {},
		lost_answers => 0, transactions => 0);

	for my $file (@files)
	{
		open(my $in, '<', $file) or die "$file: $!";
		my ($worker) = $file =~ /-(\d+)\.history$/;
		my (@ops, @marks, $n);
		while (my $line = <$in>)
		{
			chomp $line;
			my ($what, @rest) = split /\t/, $line;
			if ($what eq 'begin') { @ops = @marks = (); $n = $rest[0]; $h{transactions}++; }
			elsif ($what eq 'try') { $h{try}{ $rest[0] }++; }
			elsif ($what eq 'enq' || $what eq 'deq') { push @ops, [ $what, $rest[0] ]; }
			elsif ($what eq 'lock') { $h{locked}{ $rest[0] } = 1; }
			elsif ($what eq 'lost-answer') { $h{lost_answers}++; }
			elsif ($what eq 'mark') { push @marks, scalar @ops; }
			elsif ($what eq 'release') { pop @marks; }
			elsif ($what eq 'undo')
			{
				finish_ops(\%h, 'undone', splice @ops, pop @marks);
			}
			elsif ($what eq 'invoke') { }
			elsif ($what eq 'error') { $h{error}{ $rest[0] } += $rest[1]; }
			elsif ($what =~ /^(?:ok|fail|info|prepared)$/)
			{
				my $outcome = $what =~ /^(?:ok|fail)$/ ? $what : "$worker $n";
				finish_ops(\%h, $outcome, @ops);
				@ops = ();
			}
			else { die "$file: $line"; }
		}
		close $in;
	}
	return \%h;
}

sub finish_ops
{
	my ($h, $outcome, @ops) = @_;
	for my $op (@ops)
	{
		my ($what, $tag) = @$op;
		push @{ $h->{$what}{$tag} }, $outcome;
	}
}

sub rows
{
	my ($sql) = @_;
	return map { [ split /\|/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', $sql);
}

# Did the transaction of this outcome commit?
my %done;
sub committed
{
	my ($outcome) = @_;
	return $outcome eq 'ok' || exists $done{$outcome};
}

sub none
{
	my ($what, @wrong) = @_;
	is(scalar(@wrong), 0, $what)
	  or diag(join "\n", @wrong > 10 ? @wrong[ 0 .. 9 ] : @wrong);
}

sub account
{
	my ($name, $faults, @files) = @_;
	my $h = read_history(@files);
	my (%sent, %effect, %expired, %journal);

	push @{ $sent{ $_->[0] } }, $_ for rows(
		"SELECT tag, queue, msgid, due IS NOT NULL FROM stress.sent WHERE queue LIKE '${name}\\_%'");
	push @{ $effect{ $_->[0] } }, $_ for rows(
		"SELECT tag, worker, how, retry_count, queue FROM stress.effect WHERE queue LIKE '${name}\\_%'");
	push @{ $expired{ $_->[0] } }, $_ for rows(<<"SQL");
SELECT m.payload->>'tag', m.expiration_reason, m.retry_count, q.view::text, q.max_retries
  FROM ${name}_qt m LEFT JOIN queue.queue q
    ON q.queue_table = '${name}_qt'::regclass AND q.id = m.original_queue_id
 WHERE m.state = 3
SQL
	push @{ $journal{ $_->[0] } }, $_ for rows(
		"SELECT payload->>'tag', msgid FROM ${name}_qt WHERE state = 2");

	# what the histories say became of it
	%done = map { ("$_->[0] $_->[1]" => 1) }
	  rows("SELECT worker, n FROM stress.done WHERE name = '$name'");
	my %enq_ok = map { $_ => 1 }
	  grep { grep { committed($_) } @{ $h->{enq}{$_} } } keys %{ $h->{enq} };
	my %deq_ok;
	for my $tag (keys %{ $h->{deq} })
	{
		my $times = grep { committed($_) } @{ $h->{deq}{$tag} };
		$deq_ok{$tag} = $times if $times;
	}

	note(sprintf "%s: %d transactions, %d messages tried, %d sent, %d taken by sessions, %d at the end, %d in the exception table",
		$name, $h->{transactions}, scalar keys %{ $h->{try} }, scalar keys %enq_ok,
		scalar keys %deq_ok, scalar(keys %effect) - scalar(keys %deq_ok), scalar keys %expired);
	note("$name: $_: $h->{error}{$_}") for sort keys %{ $h->{error} };
	cmp_ok(scalar keys %enq_ok, '>', 100, "$name: it was a test");

	# the books
	none("$name: lost",
		grep { !$effect{$_} && !$expired{$_} } keys %enq_ok);
	none("$name: lost (by the table)",
		grep { !$effect{$_} && !$expired{$_} } keys %sent);
	none("$name: duplicated",
		grep { ($effect{$_} ? @{ $effect{$_} } : 0) + ($expired{$_} ? @{ $expired{$_} } : 0) > 1 }
		keys %effect, keys %expired);
	none("$name: unexpected", grep { !$enq_ok{$_} } keys %effect, keys %expired);
	none("$name: sent as the history says",
		(grep { !$sent{$_} } keys %enq_ok), (grep { !$enq_ok{$_} } keys %sent));
	none("$name: taken as the history says",
		(grep { !$effect{$_} || $deq_ok{$_} != 1 } keys %deq_ok),
		(grep { !$deq_ok{$_} && grep { $_->[1] != 0 } @{ $effect{$_} } } keys %effect));
	none("$name: taken from the queue it was sent to",
		grep { $sent{$_} && $sent{$_}[0][1] ne $effect{$_}[0][4] } keys %effect);
	none("$name: payload changed", map { join ' ', @$_ } rows(
			"SELECT * FROM stress.effect WHERE queue LIKE '${name}\\_%' AND intact IS NOT TRUE"));

	# the journal holds what was taken from the queue with retention, only that
	none("$name: journal",
		(grep { !$journal{$_} && $effect{$_}[0][4] eq "${name}_ever" } keys %effect),
		(grep { @{ $journal{$_} } > 1 || !$effect{$_} || $effect{$_}[0][4] ne "${name}_ever" }
			keys %journal));

	# times
	none("$name: early", map { join ' ', @$_ } rows(<<"SQL"));
SELECT e.tag, e.how, s.due, e.ended FROM stress.effect e JOIN stress.sent s USING (tag)
 WHERE e.queue LIKE '${name}\\_%' AND s.due > e.ended AND e.how NOT IN ('msgid', 'locked', 'nodata')
SQL
	none("$name: after its expiration", map { join ' ', @$_ } rows(
			"SELECT tag, how, expires_at, started FROM stress.effect WHERE queue LIKE '${name}\\_%' AND expires_at < started"));

	# attempts
	my $max = sub { my ($queue) = @_; return $queue =~ /five/ ? 5 : $queue =~ /zero/ ? 0 : 1e9; };
	none("$name: delivered once too often tried",
		grep { $effect{$_}[0][3] > $max->($effect{$_}[0][4]) } keys %effect);
	none("$name: reasons of exceptions",
		map { join ' ', @{ $expired{$_}[0] } } grep {
			my (undef, $reason, $retries, $queue) = @{ $expired{$_}[0] };
			$reason eq 'TIME_EXPIRATION' ? !/-x$/
			  : $reason eq 'MAX_RETRY_EXCEEDED' ? $retries <= $max->($queue)
			  : 1
		} keys %expired);
	attempts($name, $h, \%effect, \%expired) if $faults eq 'calm';
	order($name, $h) if $faults eq 'calm';

	# nothing that cannot be explained
	none("$name: errors", grep {
			!/^(?:40001|40P01|57014|57P01|57P02|57P03|08006|25P02|0A000|53400)/
			  && !/^(?:42704|55000) prepared transaction/
			  && !/^53200 maximum number of prepared/
		} keys %{ $h->{error} });
}

# retry_count is the number of times that a session rolled the message back,
# with its transaction or to a savepoint.  A statement that failed may have
# taken messages that nobody has seen: so many may have more.
sub attempts
{
	my ($name, $h, $effect, $expired) = @_;
	my (@less, @more);

	for my $tag (keys %$effect, keys %$expired)
	{
		my ($counted, $why) = $effect->{$tag}
		  ? ($effect->{$tag}[0][3], 'delivered') : @{ $expired->{$tag}[0] }[ 2, 1 ];
		my $known = grep { $_ eq 'fail' || $_ eq 'undone' } @{ $h->{deq}{$tag} || [] };
		# one that expires first may keep what its row says
		next if $why eq 'TIME_EXPIRATION';
		push @less, "$tag: $counted of $known" if $counted < $known;
		push @more, "$tag: $counted, not $known" if $counted > $known;
	}
	none("$name: failed attempts not counted", @less);
	@more = () if @more <= 12 * $h->{lost_answers};
	none("$name: failed attempts that never were", @more);
}

# Messages of one session and one priority, none of which was ever put back,
# come to any one consumer in the order in which they were sent.
sub order
{
	my ($name, $h) = @_;
	my %touched = %{ $h->{locked} };
	my (%last, @wrong);
	my $pairs = 0;

	for my $tag (keys %{ $h->{deq} })
	{
		$touched{$tag} = 1 if grep { !committed($_) } @{ $h->{deq}{$tag} };
	}
	for my $row (rows(<<"SQL"))
SELECT e.worker, s.worker, s.queue, s.priority, s.n, e.tag
  FROM stress.effect e JOIN stress.sent s USING (tag)
 WHERE e.queue LIKE '${name}\\_%' AND e.retry_count = 0 AND s.n > 0
   AND e.how IN ('scan', 'drain') AND s.plain AND NOT s.prepared
 ORDER BY e.worker, e.statement, e.position
SQL
	{
		my ($consumer, $producer, $queue, $priority, $n, $tag) = @$row;
		next if $touched{$tag};
		my $line = "$consumer $producer $queue $priority";
		push @wrong, "$line: $tag after $last{$line}{tag}"
		  if $last{$line} && $last{$line}{n} > $n;
		$pairs++ if $last{$line};
		$last{$line} = { n => $n, tag => $tag };
	}
	none("$name: order", @wrong);
	note("$name: $pairs pairs in order");
}

1;
