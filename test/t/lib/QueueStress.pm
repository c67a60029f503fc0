# The stress tests' load: the schema, and a worker that makes random
# transactions on a set of queues.  QueueAccounting counts afterwards.
#
# A message is told by its tag, which is in its payload.  Three records are
# made of each transaction, and must agree at the end:
#   the history     one file per worker outside the database: what was tried,
#                   what came back, what became of the transaction
#   stress.sent     rows written in the transaction that enqueued
#   stress.effect   rows written in the transaction that dequeued
#
# Lines of a history file (fields separated by tabs):
#   begin N         transaction N of this worker
#   try TAG         about to enqueue
#   enq TAG         enqueued
#   deq TAG         dequeued
#   lock TAG        seen in mode locked
#   lost-answer     a statement failed: it may have taken messages unseen
#   mark / undo     savepoint, rolled back to the newest one
#   invoke          about to end it with COMMIT, or to prepare it
#   ok | fail | info | prepared     what is known of its end
# Where only info or prepared is known, the row that the transaction wrote to
# stress.done last tells what became of it.
package QueueStress;

use strict;
use warnings FATAL => 'all';

use IO::Handle;
use QueueSession;
use Time::HiRes qw(time sleep);

sub schema
{
	return <<'SQL';
CREATE SCHEMA stress;
CREATE TABLE stress.sent (
	worker int, n int, tag text, queue text, msgid uuid, priority int,
	due timestamptz, plain bool, prepared bool);
CREATE TABLE stress.done (name text, worker int, n int);
CREATE TABLE stress.effect (
	worker int, statement int, position int, queue text, how text,
	msgid uuid, tag text, intact bool, retry_count int, priority int,
	expires_at timestamptz, started timestamptz, ended timestamptz);

-- Takes and sends in a PL/pgSQL block that may fail; returns what it took.
CREATE FUNCTION stress.block(w int, statement int, q text, fail bool, send text)
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	taken text[] := '{}';
BEGIN
	BEGIN
		WITH d AS MATERIALIZED (
			SELECT * FROM queue.dequeue(q, max_messages => 3) WITH ORDINALITY),
		e AS (
			INSERT INTO stress.effect
			SELECT w, statement, ordinality, q, 'block', msgid, payload->>'tag',
				   md5(payload->>'fill') = payload->>'md5', retry_count, priority,
				   expires_at, statement_timestamp(), clock_timestamp() FROM d)
		SELECT coalesce(array_agg(payload->>'tag'), '{}') INTO taken FROM d;
		INSERT INTO stress.sent
		SELECT w, 0, send, q,
			   queue.enqueue(q, jsonb_build_object('tag', send, 'fill', 'b', 'md5', md5('b'))),
			   1, NULL, false, false;
		IF fail THEN
			RAISE EXCEPTION 'on purpose' USING ERRCODE = 'ZZ001';
		END IF;
	EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
		NULL;
	END;
	RETURN taken;
END $$;
SQL
}

# Queues of one round: one queue table, three policies.
sub create_queues
{
	my ($name, $sort_list) = @_;
	return <<"SQL";
SELECT queue.create_queue_table('${name}_qt', 'jsonb', sort_list => '$sort_list');
SELECT queue.create_queue('${name}_five', '${name}_qt', max_retries => 5);
SELECT queue.create_queue('${name}_zero', '${name}_qt', max_retries => 0);
SELECT queue.create_queue('${name}_ever', '${name}_qt', max_retries => NULL,
	retry_delay => '20 milliseconds', retention_time => '1 day');
SELECT queue.start_queue('${name}_' || q) FROM unnest('{five,zero,ever}'::text[]) q;
SQL
}

# -- the worker -----------------------------------------------------------------

# Make transactions until the time is over, and at least 20.  Options: id, seed,
# node, name (of the round), until, history (file name), prepare (allowed),
# depth (how many more messages it may send than take), role (any, producer or
# consumer).  Runs in a process of its own; returns nothing.
sub worker
{
	my (%option) = @_;
	open(my $history, '>>', $option{history}) or die "$option{history}: $!";
	$history->autoflush(1);
	my $self = {
		%option,
		history => $history, history_file => $option{history},
		n => 0, statement => 0, number => 0, backlog => 0, errors => {},
		session => QueueSession->new($option{node}, lazy => 1,
			stderr => "$option{history}.err"),
	};
	srand($option{seed});
	connect_again($self);
	while (time < $option{until} || $self->{n} < 20)
	{
		transaction($self);
	}
	$self->{session}->quit unless $self->{session}->is_lost;
	print $history join("\t", 'error', $_, $self->{errors}{$_}), "\n"
	  for sort keys %{ $self->{errors} };
	close $history;
}

sub connect_again
{
	my ($self) = @_;
	my $deadline = time + 60;

	until ($self->{session}->open)
	{
		die "no connection for 60 s" if time > $deadline;
		sleep 0.02;
	}
	$self->{session}->query("SET application_name = 'stress'");
	$self->{session}->query("SET client_min_messages = error");
}

sub note_line
{
	my ($self, @fields) = @_;
	print { $self->{history} } join("\t", @fields), "\n";
}

# One statement.  Dies with the SQLSTATE if it fails.
sub run
{
	my ($self, $sql) = @_;
	$sql = join "\\; ", $self->{packed}[0], $sql, $self->{packed}[1], 'COMMIT'
	  if $self->{packed};
	my $result = $self->{session}->query($sql);

	if ($result->{state} ne '00000')
	{
		my $key = $result->{state};
		$key .= " $result->{message}" if $key =~ /^(?:XX|22|23|42|P0|QU|53|55)/;
		$self->{errors}{$key}++;
		die "state $result->{state}\n";
	}
	return @{ $result->{rows} };
}

# One random transaction.  Everything random is drawn before it runs, so that
# the plan depends on the seed alone.
sub transaction
{
	my ($self) = @_;
	my $isolation = pick('READ COMMITTED', 'READ COMMITTED', 'READ COMMITTED',
		'REPEATABLE READ', 'SERIALIZABLE');
	my @steps = map { plan_step() } 1 .. 1 + int rand 4;
	my $end = rand;
	my $prepared_end = rand;
	my $packed = rand() < 0.4;
	if ($self->{role} ne 'any')
	{
		# one that only sends, and may roll back, or one that only takes
		narrow_step($self->{role}, $_) for @steps;
		$isolation = 'READ COMMITTED' if $self->{role} eq 'consumer';
		$end = $self->{role} eq 'consumer' ? 0 : $end * 0.9;
	}
	my $n = ++$self->{n};
	my $known = 'fail';
	$self->{prepared} = $end > 0.92 && $self->{prepare} ? 1 : 0;
	if ($packed && $self->{backlog} <= $self->{depth} && $self->{role} ne 'consumer')
	{
		packed_transaction($self, $isolation, $steps[0]);
		return;
	}

	note_line($self, 'begin', $n);
	my $done = eval {
		run($self, "BEGIN ISOLATION LEVEL $isolation");
		step($self, $_) for @steps;
		if ($end > 0.78 && !$self->{prepared})
		{
			run($self, 'ROLLBACK');
			return 1;
		}
		run($self, "INSERT INTO stress.done VALUES ('$self->{name}', $self->{id}, $n)");
		note_line($self, 'invoke');
		# from here on only an answer tells
		$known = 'info';
		if ($self->{prepared})
		{
			my $fate = $prepared_end < 0.5 ? 'commit' : 'rollback';
			my $gid = "$self->{name}-$self->{id}-$n-$fate";
			run($self, "PREPARE TRANSACTION '$gid'");
			$known = 'prepared';
			# half of them are left to the caller's sweep
			run($self, uc($fate) . " PREPARED '$gid'") if int($prepared_end * 20) % 2;
		}
		else
		{
			run($self, 'COMMIT');
			$known = 'ok';
		}
		1;
	};
	if (!$done)
	{
		my $error = $@;
		die $error if $error !~ /^state /;
		if ($self->{session}->is_lost)
		{
			connect_again($self);
		}
		else
		{
			# an error in COMMIT or PREPARE undoes it, too
			$known = 'fail' if $known eq 'info';
			$self->{session}->query('ROLLBACK');
		}
	}
	note_line($self, $known);
}

# A whole transaction in one message to the server: begin, send, commit.  The
# time between a key and its commit is short, as it is with autocommit.
sub packed_transaction
{
	my ($self, $isolation, $step) = @_;
	my $queue = "$self->{name}_$step->{queue}";
	my $known = 'info';

	note_line($self, 'begin', $self->{n});
	$self->{prepared} = 0;
	$self->{packed} = [
		"BEGIN ISOLATION LEVEL $isolation",
		"INSERT INTO stress.done VALUES ('$self->{name}', $self->{id}, $self->{n})" ];
	my $done = eval {
		if    ($step->{kind} < 0.4) { send_one($self, $queue, $step); }
		elsif ($step->{kind} < 0.7) { send_array($self, $queue, $step); }
		else                        { send_insert($self, $queue, $step); }
		1;
	};
	my $error = $@;
	$self->{packed} = undef;
	if ($done) { $known = 'ok'; }
	elsif ($error !~ /^state /) { die $error; }
	elsif ($self->{session}->is_lost) { connect_again($self); }
	else
	{
		$known = 'fail';
		$self->{session}->query('ROLLBACK');
	}
	note_line($self, $known);
}

sub pick { return $_[ rand @_ ]; }

sub plan_step
{
	my %step = (
		kind => rand,
		queue => pick('five', 'five', 'five', 'zero', 'ever'),
		savepoint => rand,
		count => 1 + int rand 12,
		priority => 1 + int rand 5,
		# half of the messages are plain: no delay, no expiration
		delay => rand() < 0.1 ? 10 + int rand 400 : 0,
		expiration => rand() < 0.1 ? 20 + int rand 500 : 0,
		correlation => pick('a', 'b', 'bc', 'c'),
		fill => rand() < 0.05 ? 20_000 : int rand 100,
		sort => rand,
	);
	return \%step;
}

sub narrow_step
{
	my ($role, $step) = @_;

	if ($role eq 'consumer')
	{
		$step->{kind} = 0.43 + $step->{kind} * 0.34;
		$step->{savepoint} = 0;
		return;
	}
	$step->{kind} *= 0.36;
	$step->{delay} = $step->{expiration} = 0;
}

# A step, perhaps within a savepoint that is released or rolled back to.
sub step
{
	my ($self, $step) = @_;
	my $savepoint = $step->{savepoint};

	if ($savepoint < 0.7)
	{
		act($self, $step);
		return;
	}
	run($self, 'SAVEPOINT s');
	note_line($self, 'mark');
	my $done = eval { act($self, $step); 1; };
	my $error = $@;
	if (!$done && ($error !~ /^state / || $self->{session}->is_lost))
	{
		die $error;
	}
	if (!$done || $savepoint > 0.85)
	{
		run($self, 'ROLLBACK TO s');
		note_line($self, 'undo');
	}
	else
	{
		run($self, 'RELEASE s');
		note_line($self, 'release');
	}
}

sub act
{
	my ($self, $step) = @_;
	my $queue = "$self->{name}_$step->{queue}";
	my $kind = $step->{kind};

	# many waiting already: take rather than send
	$kind = 0.4 + 0.6 * $kind if $self->{backlog} > $self->{depth} && $self->{role} eq 'any';
	if    ($kind < 0.12) { send_one($self, $queue, $step); }
	elsif ($kind < 0.22) { send_array($self, $queue, $step); }
	elsif ($kind < 0.32) { send_insert($self, $queue, $step); }
	elsif ($kind < 0.36) { send_copy($self, $queue, $step); }
	elsif ($kind < 0.42) { block($self, $queue, $step); }
	elsif ($kind < 0.60) { take($self, $queue, 'scan', ''); }
	elsif ($kind < 0.78) { take($self, $queue, 'scan', "max_messages => $step->{count}"); }
	elsif ($kind < 0.83)
	{
		take($self, $queue, 'correlation', "correlation => '"
			  . pick_by($step->{sort}, 'a', 'b%', '_c', '%') . "', max_messages => $step->{count}");
	}
	elsif ($kind < 0.88)
	{
		take($self, $queue, 'condition', 'condition => \'priority '
			  . pick_by($step->{sort}, '= 2', '> 3', '< 3') . '\', max_messages => 3');
	}
	elsif ($kind < 0.90)
	{
		# navigation goes on from a first_message by the same criteria
		take($self, $queue, 'scan', '');
		take($self, $queue, 'next', "navigation => 'next_message', wait => '10 milliseconds'");
	}
	elsif ($kind < 0.93) { take_by_msgid($self, $queue, $step); }
	elsif ($kind < 0.97) { take_locked($self, $queue, $step); }
	else
	{
		run($self, "SELECT count(*) FROM $queue WHERE priority < 3");
		run($self, "SELECT count(*) FROM queue.dequeue('$queue', mode => 'browse', max_messages => 5)");
	}
}

sub pick_by { my $by = shift; return $_[ $by * @_ ]; }

# Tags for messages about to be sent.  Those with an expiration say so.
sub new_tags
{
	my ($self, $count, $step) = @_;
	my @tags = map {
		join '-', "$self->{name}.$self->{id}", ++$self->{number},
		  ($step->{expiration} ? 'x' : ())
	} 1 .. $count;
	note_line($self, 'try', $_) for @tags;
	if ($self->{packed})
	{
		# it may commit without an answer
		note_line($self, 'enq', $_) for @tags;
		note_line($self, 'invoke');
	}
	return @tags;
}

sub payload
{
	my ($tag, $step) = @_;
	return "jsonb_build_object('tag', '$tag', 'fill', f, 'md5', md5(f))";
}

sub from_fill
{
	my ($step) = @_;
	# long ones must not compress away: they are to be toasted
	return "(SELECT string_agg(md5((g * $step->{fill})::text), '') FROM generate_series(1, "
	  . (1 + int($step->{fill} / 32)) . ') g) AS fill (f)';
}

sub sent
{
	my ($self, @tags) = @_;
	if (!$self->{packed})
	{
		note_line($self, 'enq', $_) for @tags;
	}
	$self->{backlog} += @tags;
}

sub options_sql
{
	my ($step) = @_;
	return join '',
	  ", priority => $step->{priority}, correlation => '$step->{correlation}'",
	  ($step->{delay} ? ", delay => '$step->{delay} milliseconds'" : ''),
	  ($step->{expiration} ? ", expiration => '$step->{expiration} milliseconds'" : '');
}

sub sent_columns
{
	my ($self, $step, $queue, $tag, $number) = @_;
	my $due = $step->{delay}
	  ? "statement_timestamp() + '$step->{delay} milliseconds'" : 'NULL::timestamptz';
	my $plain = $step->{delay} || $step->{expiration} ? 'false' : 'true';
	my $prepared = $self->{prepared} ? 'true' : 'false';
	return ("$self->{id}, $number, $tag, '$queue'",
		"$step->{priority}, $due, $plain, $prepared");
}

sub send_one
{
	my ($self, $queue, $step) = @_;
	my ($tag) = new_tags($self, 1, $step);
	my ($before, $after) = sent_columns($self, $step, $queue, "'$tag'", $self->{number});
	run($self, "WITH m AS MATERIALIZED (SELECT queue.enqueue('$queue', "
		  . payload($tag, $step) . options_sql($step) . ') AS msgid FROM '
		  . from_fill($step)
		  . ") INSERT INTO stress.sent SELECT $before, msgid, $after FROM m");
	sent($self, $tag);
}

sub send_array
{
	my ($self, $queue, $step) = @_;
	my @tags = new_tags($self, $step->{count}, $step);
	my $first = $self->{number} - @tags;
	my $list = join ',', map { "'$_'" } @tags;
	my $properties = join ',', "'priority', $step->{priority}",
	  "'correlation', '$step->{correlation}'",
	  ($step->{delay} ? "'delay', '$step->{delay} milliseconds'" : ()),
	  ($step->{expiration} ? "'expiration', '$step->{expiration} milliseconds'" : ());
	my ($before, $after) = sent_columns($self, $step, $queue, 'tag', "$first + i");
	run($self, <<"SQL");
WITH t AS (SELECT tag, i FROM unnest(ARRAY[$list]) WITH ORDINALITY u (tag, i)),
m AS MATERIALIZED (SELECT queue.enqueue_array('$queue',
	(SELECT array_agg(jsonb_build_object('tag', tag, 'fill', tag, 'md5', md5(tag)) ORDER BY i) FROM t),
	(SELECT array_agg(jsonb_populate_record(NULL::queue.message_properties,
		jsonb_build_object($properties))) FROM t)) AS msgids)
INSERT INTO stress.sent SELECT $before, m.msgids[i], $after FROM t, m
SQL
	sent($self, @tags);
}

sub send_insert
{
	my ($self, $queue, $step) = @_;
	my @tags = new_tags($self, 1 + $step->{count} % 4, $step);
	my $first = $self->{number} - @tags;
	my $list = join ',', map { "'$_'" } @tags;
	my ($before, $after) =
	  sent_columns($self, $step, $queue, "payload->>'tag'", "$first + row_number() OVER (ORDER BY msgid)");
	my $delay = $step->{delay} ? "'$step->{delay} milliseconds'::interval" : 'NULL';
	my $expiration = $step->{expiration} ? "'$step->{expiration} milliseconds'::interval" : 'NULL';
	run($self, <<"SQL");
WITH m AS (INSERT INTO $queue (payload, priority, correlation, delay, expiration)
	SELECT jsonb_build_object('tag', tag, 'fill', tag, 'md5', md5(tag)),
		   $step->{priority}, '$step->{correlation}', $delay, $expiration
	  FROM unnest(ARRAY[$list]) WITH ORDINALITY u (tag, i) ORDER BY i
	RETURNING msgid, payload)
INSERT INTO stress.sent SELECT $before, msgid, $after FROM m
SQL
	sent($self, @tags);
}

sub send_copy
{
	my ($self, $queue, $step) = @_;
	my %plain = (%$step, delay => 0, expiration => 0);
	my @tags = new_tags($self, $step->{count}, \%plain);
	my $first = $self->{number} - @tags;
	my $list = join ',', map { "'$_'" } @tags;
	my ($before, $after) = sent_columns($self, \%plain, $queue, 'tag', "$first + i");

	open(my $out, '>', "$self->{history_file}.copy") or die "copy file: $!";
	print $out qq({"tag": "$_", "fill": "", "md5": "d41d8cd98f00b204e9800998ecf8427e"}\t$step->{priority}\n)
	  for @tags;
	close $out;
	run($self, "COPY $queue (payload, priority) FROM '$self->{history_file}.copy'");
	run($self, "INSERT INTO stress.sent SELECT $before, NULL, $after "
		  . "FROM unnest(ARRAY[$list]) WITH ORDINALITY u (tag, i)");
	sent($self, @tags);
}

sub effect_sql
{
	my ($self, $queue, $how) = @_;
	my $statement = ++$self->{statement};
	return <<"SQL";
e AS (INSERT INTO stress.effect SELECT $self->{id}, $statement, ordinality,
	'$queue', '$how', msgid, payload->>'tag', md5(payload->>'fill') = payload->>'md5',
	retry_count, priority, expires_at, statement_timestamp(), clock_timestamp() FROM d)
SQL
}

sub taken
{
	my ($self, @tags) = @_;
	note_line($self, 'deq', $_) for @tags;
	$self->{backlog} -= @tags;
}

# Run a statement that may take messages; if it fails nobody knows which.
sub run_taking
{
	my ($self, $sql) = @_;
	my @rows = eval { run($self, $sql) };
	if (my $error = $@)
	{
		note_line($self, 'lost-answer');
		die $error;
	}
	return @rows;
}

sub take
{
	my ($self, $queue, $how, $arguments) = @_;
	$arguments = ", $arguments" if $arguments;
	my @tags = run_taking($self, <<"SQL");
WITH d AS MATERIALIZED (SELECT * FROM queue.dequeue('$queue'$arguments) WITH ORDINALITY),
@{[ effect_sql($self, $queue, $how) ]}
SELECT payload->>'tag' FROM d ORDER BY ordinality
SQL
	# short of messages: send again
	$self->{backlog} = 0 if @tags == 0;
	taken($self, @tags);
}

sub take_by_msgid
{
	my ($self, $queue, $step) = @_;
	my ($msgid) = run($self, "SELECT msgid FROM $queue ORDER BY msgid LIMIT 1 OFFSET $step->{count}");
	take($self, $queue, 'msgid', "msgid => '$msgid'") if $msgid;
}

sub take_locked
{
	my ($self, $queue, $step) = @_;
	my ($row) = run_taking($self,
		"SELECT payload->>'tag', msgid FROM queue.dequeue('$queue', mode => 'locked')");
	return unless $row;
	my ($tag, $msgid) = split /\|/, $row;
	note_line($self, 'lock', $tag);
	return if $step->{sort} < 0.4;
	if ($step->{sort} < 0.7)
	{
		take($self, $queue, 'locked', "msgid => '$msgid'");
		return;
	}
	# without its payload: the tag is known from before
	my $statement = ++$self->{statement};
	my @got = run_taking($self, <<"SQL");
WITH d AS MATERIALIZED (SELECT * FROM queue.dequeue('$queue', msgid => '$msgid', mode => 'remove_nodata')),
e AS (INSERT INTO stress.effect SELECT $self->{id}, $statement, 1, '$queue', 'nodata',
	msgid, '$tag', payload IS NULL, retry_count, priority, expires_at,
	statement_timestamp(), clock_timestamp() FROM d)
SELECT 1 FROM d
SQL
	taken($self, $tag) if @got;
}

sub block
{
	my ($self, $queue, $step) = @_;
	my $fail = $step->{sort} < 0.5;
	my %plain = (%$step, delay => 0, expiration => 0);
	my ($tag) = new_tags($self, 1, \%plain);
	my $statement = ++$self->{statement};
	my ($taken) = run_taking($self, "SELECT stress.block($self->{id}, $statement, '$queue', "
		  . ($fail ? 'true' : 'false') . ", '$tag')");
	note_line($self, 'mark');
	taken($self, $taken =~ /[^{},]+/g);
	sent($self, $tag);
	note_line($self, $fail ? 'undo' : 'release');
}

1;
