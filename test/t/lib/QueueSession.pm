# One database session: a psql behind two pipes.  Statements are sent and
# answered one at a time, or sent now and read later, so that one test can hold
# several transactions open.  A lost connection is an answer, not a failure.
package QueueSession;

use strict;
use warnings FATAL => 'all';

use IO::Handle;
use IO::Select;
use POSIX ();

my $MESSAGE = '@@message';
my $END = '@@end';

sub new
{
	my ($class, $node, %option) = @_;
	my $connstr = $node->connstr($option{dbname} || 'postgres');
	$connstr .= " user='$option{user}'" if $option{user};
	my $self = bless {
		connstr => $connstr,
		stderr => $option{stderr} || '/dev/null',
		timeout => $option{timeout} || 180,
		buffer => '',
	}, $class;

	$self->open unless $option{lazy};
	return $self;
}

# Start psql.  False if the server takes no connection now.
sub open
{
	my ($self) = @_;
	pipe(my $child_in, my $in) or die "pipe: $!";
	pipe(my $out, my $child_out) or die "pipe: $!";
	my $pid = fork;
	die "fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		POSIX::dup2(fileno($child_in), 0);
		POSIX::dup2(fileno($child_out), 1);
		my $err = POSIX::open($self->{stderr},
			POSIX::O_WRONLY() | POSIX::O_CREAT() | POSIX::O_APPEND(), 0644);
		POSIX::dup2($err, 2) if defined $err;
		close $in;
		close $out;
		exec 'psql', '-XAtq', '-F', '|', '-d', $self->{connstr}
		  or POSIX::_exit(127);
	}
	close $child_in;
	close $child_out;
	$in->autoflush(1);
	@$self{qw(pid in out buffer lost owner)} = ($pid, $in, $out, '', 0, $$);

	my $first = $self->query('SELECT pg_backend_pid()');
	return 0 if $first->{lost};
	$self->{backend_pid} = $first->{rows}[0];
	return 1;
}

sub backend_pid { return $_[0]->{backend_pid}; }
sub is_lost { return $_[0]->{lost}; }
sub is_open { return $_[0]->{pid} ? 1 : 0; }

# Send SQL (whole statements); the answer is read by receive().
sub send
{
	my ($self, $sql) = @_;
	local $SIG{PIPE} = 'IGNORE';

	# a lost session answers so, again and again
	return if $self->{lost};
	$sql =~ s/;?\s*$/;/;
	print { $self->{in} }
	  "$sql\n\\echo $MESSAGE :LAST_ERROR_MESSAGE\n\\echo $END :SQLSTATE\n";
}

# Has an answer arrived?
sub ready
{
	my ($self, $seconds) = @_;
	return 1 if $self->{lost} || $self->{buffer} =~ /^\Q$END\E /m;
	return IO::Select->new($self->{out})->can_read($seconds || 0) ? 1 : 0;
}

# The answer: { rows => [...], state => SQLSTATE of the last statement,
# message => text of an error } or { lost => 1 }.
sub receive
{
	my ($self) = @_;
	my $select = IO::Select->new($self->{out});
	my $deadline = time + $self->{timeout};

	return lost_answer() if $self->{lost};
	while ($self->{buffer} !~ /^\Q$END\E \S*\n/m)
	{
		die "no answer within $self->{timeout} s" if time > $deadline;
		next unless $select->can_read(1);
		my $got = sysread $self->{out}, $self->{buffer}, 65536,
		  length $self->{buffer};
		if (!$got)
		{
			$self->{lost} = 1;
			$self->reap;
			return lost_answer();
		}
	}
	$self->{buffer} =~
	  s/\A(.*?)^\Q$MESSAGE\E ?(.*?)\n\Q$END\E (\S*)\n//ms
	  or die "cannot read the answer: $self->{buffer}";
	my ($rows, $message, $state) = ($1, $2, $3);
	$state = '00000' if $state eq ':SQLSTATE';
	if ($state eq '')
	{
		# an error, and not the server's: the connection is gone
		$self->{lost} = 1;
		$self->vanish;
		return lost_answer();
	}
	return {
		rows => [ split /\n/, $rows ],
		state => $state,
		message => $state eq '00000' ? '' : $message
	};
}

sub lost_answer
{
	return { rows => [], state => '08006', message => 'lost', lost => 1 };
}

sub query
{
	my ($self, $sql) = @_;
	$self->send($sql);
	return $self->receive;
}

# As query(), but an error ends the test.  Returns the rows.
sub must
{
	my ($self, $sql) = @_;
	my $result = $self->query($sql);
	die "$sql\nfailed: $result->{state} $result->{message}\n"
	  if $result->{state} ne '00000';
	return @{ $result->{rows} };
}

sub reap
{
	my ($self) = @_;
	close $self->{in} if $self->{in};
	close $self->{out} if $self->{out};
	waitpid $self->{pid}, 0 if $self->{pid};
	@$self{qw(in out pid)} = (undef, undef, undef);
}

# Leave as a client does that has finished.
sub quit
{
	my ($self) = @_;
	return unless $self->{pid};
	local $SIG{PIPE} = 'IGNORE';
	print { $self->{in} } "\\q\n";
	$self->reap;
}

# Leave as a client does that was killed.
sub vanish
{
	my ($self) = @_;
	return unless $self->{pid};
	kill 'KILL', $self->{pid};
	$self->reap;
	$self->{lost} = 1;
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $!, $@);
	$self->vanish if $self->{pid} && $self->{owner} == $$;
}

1;
