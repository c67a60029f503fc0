/*
 * load.c
 *		Load generator of the benchmarks: producers, consumers, latencies.
 *
 * Every client is a thread with a connection of its own and prepared
 * statements; a statement is a transaction.  What a producer sends carries
 * the time of sending, a number and the run it belongs to, so that consumers
 * know the latency from end to end and find a message that comes twice or was
 * never sent:
 *
 *		{"n": 17, "r": 123456, "t": 81234567890, "x": "......"}
 *
 * (the keys in the order in which jsonb prints them).  Messages of other runs
 * are counted and not looked at.  The time is that of the monotonic clock, in
 * microseconds; a producer with a fixed rate writes the time at which the
 * message was to be sent, so that a stall of the server is seen by all the
 * messages that it has delayed.
 *
 * All counts are kept by each client for itself, in a slot for each second,
 * and added up when all have ended.  The only shared state is atomic: how many
 * messages are outstanding, the next number, one bit for each number received.
 *
 * Connections come from libpq's environment variables.  See usage().
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "libpq-fe.h"

#define MAX_CLIENTS		1000
#define MAX_WINDOWS		20
#define MAX_BACKGROUND	4
#define MAX_NUMBERS		(INT64_C(1) << 32)
#define MAX_PAYLOAD		100000

/* a throttled client looks again after so many microseconds */
#define THROTTLE_US		100

/*
 * A histogram of microseconds: exact up to 64, then 64 steps for each power
 * of two, so that a figure is at most 1.6 % too low.
 */
#define HIST_BITS		6
#define HIST_STEPS		(1 << HIST_BITS)
#define HIST_SIZE		((36 - HIST_BITS + 1) * HIST_STEPS)

typedef struct Hist
{
	uint32_t	counts[HIST_SIZE];
} Hist;

/* what one client did in one second, and how long it took */
typedef struct Slot
{
	int64_t		messages;
	Hist	   *latencies;		/* allocated at the first one */
} Slot;

typedef enum Role
{
	PRODUCER,
	CONSUMER
} Role;

typedef struct Client
{
	Role		role;
	int			index;			/* among those of its role */
	pthread_t	thread;
	PGconn	   *conn;
	int			nparams;		/* of its statement */
	Slot	   *slots;			/* one a second */
	int64_t		messages;		/* all of them */
	_Atomic		int64_t shown;	/* the same, for the main thread */
	int64_t		empty;			/* calls that brought nothing */
	int64_t		first_us;		/* from connecting to the first message */
	int64_t		last;			/* when the last message was done */
	uint64_t	random;
} Client;

typedef struct Background
{
	const char *sql;
	int			every_ms;
	pthread_t	thread;
} Background;

typedef struct Window
{
	int			from;
	int			to;				/* seconds, the last one not included */
} Window;

/* settings, not changed once the threads run */
static int	producers;
static int	consumers;
static const char *send_sql;
static const char *copy_sql;
static const char *take_sql;
static const char *ack_sql;
static bool ack_many;
static int	send_batch = 1;
static int	take_batch = 1;
static int	payload_size = 200;
static int	priorities;
static double rate;
static int	idle_us = 1000;
static int	short_idle_us;
static int64_t backlog_min = 0;
static int64_t backlog_max = INT64_MAX;
static int64_t backlog_start = 0;
static int	warmup;
static int	seconds = 5;
static int64_t messages_wanted = INT64_MAX;
static bool drain;
static const char *series_file;
static const char *sample_sql;
static int	hold_from = -1;
static int	hold_length;
static Window windows[MAX_WINDOWS];
static int	nwindows;
static Background backgrounds[MAX_BACKGROUND];
static int	nbackgrounds;
static uint32_t run_id;

/* set between the two barriers, before anybody sends */
static int64_t start_time;
static int64_t deadline;
static int	nslots;

/* shared */
static pthread_barrier_t connected;
static pthread_barrier_t started;
static _Atomic int64_t outstanding;
static _Atomic int64_t next_number;
static _Atomic int64_t asked;	/* messages that somebody is to send or take */
static _Atomic int64_t duplicates;
static _Atomic int64_t unknown;
static _Atomic bool stop_helpers;
static _Atomic uint64_t * received_bits;
static double *samples;

/* ---- small things --------------------------------------------------------- */

static void
fail(const char *format,...)
{
	va_list		args;

	fprintf(stderr, "load: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(1);
}

static void *
allocate(size_t count, size_t size)
{
	void	   *result = calloc(count, size);

	if (result == NULL)
		fail("out of memory");
	return result;
}

static int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void
sleep_until(int64_t when)
{
	struct timespec until = {when / 1000000, when % 1000000 * 1000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

static void
sleep_us(int64_t us)
{
	sleep_until(now_us() + us);
}

/* ---- histograms ------------------------------------------------------------- */

static int
hist_index(int64_t us)
{
	int			shift;

	if (us < 0)
		us = 0;
	if (us < HIST_STEPS)
		return (int) us;
	shift = 63 - __builtin_clzll((uint64_t) us) - HIST_BITS;
	if ((shift + 2) * HIST_STEPS > HIST_SIZE)
		return HIST_SIZE - 1;
	return (shift + 1) * HIST_STEPS + (int) (us >> shift) - HIST_STEPS;
}

/* the lowest value that is counted at this index */
static int64_t
hist_value(int index)
{
	if (index < HIST_STEPS)
		return index;
	return (int64_t) (index % HIST_STEPS + HIST_STEPS)
		<< (index / HIST_STEPS - 1);
}

static void
hist_add(Hist *total, const Hist *part)
{
	for (int i = 0; i < HIST_SIZE; i++)
		total->counts[i] += part->counts[i];
}

/* -1 if there is nothing in it */
static int64_t
hist_percentile(const Hist *hist, double percent)
{
	int64_t		total = 0,
				seen = 0;

	for (int i = 0; i < HIST_SIZE; i++)
		total += hist->counts[i];
	for (int i = 0; i < HIST_SIZE; i++)
	{
		seen += hist->counts[i];
		if (seen > 0 && (double) seen >= (double) total * percent / 100)
			return hist_value(i);
	}
	return -1;
}

/* ---- connections ------------------------------------------------------------ */

static PGconn *
connect_server(void)
{
	PGconn	   *conn = PQconnectdb("");

	if (PQstatus(conn) != CONNECTION_OK)
		fail("%s", PQerrorMessage(conn));
	return conn;
}

static PGresult *
check_result(PGconn *conn, PGresult *result, const char *sql)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
		status != PGRES_COPY_IN)
		fail("%s: %s", sql, PQerrorMessage(conn));
	return result;
}

static void
execute(PGconn *conn, const char *sql)
{
	PQclear(check_result(conn, PQexec(conn, sql), sql));
}

/* returns how many parameters the statement has */
static int
prepare(PGconn *conn, const char *name, const char *sql)
{
	PGresult   *result;
	int			nparams;

	PQclear(check_result(conn, PQprepare(conn, name, sql, 0, NULL), sql));
	result = check_result(conn, PQdescribePrepared(conn, name), sql);
	nparams = PQnparams(result);
	PQclear(result);
	return nparams;
}

/* ---- counting --------------------------------------------------------------- */

static Slot *
slot_of(Client *client, int64_t when)
{
	int64_t		second = (when - start_time) / 1000000;

	if (second < 0)
		second = 0;
	if (second >= nslots)
		second = nslots - 1;
	return &client->slots[second];
}

static void
count_latency(Slot *slot, int64_t us)
{
	if (slot->latencies == NULL)
		slot->latencies = allocate(1, sizeof(Hist));
	slot->latencies->counts[hist_index(us)]++;
}

static void
count_messages(Client *client, int64_t when, int count)
{
	if (client->first_us < 0)
		client->first_us += when;
	slot_of(client, when)->messages += count;
	client->messages += count;
	client->last = when;
	atomic_store_explicit(&client->shown, client->messages,
						  memory_order_relaxed);
}

/*
 * May this client do so many more?  The count given with --messages is handed
 * out before the work, so that any number of clients meet it; who then does
 * less gives the rest back, or takes it if it was more.
 */
static bool
claim_messages(int count)
{
	if (now_us() >= deadline)
		return false;
	if (messages_wanted == INT64_MAX)
		return true;
	if (atomic_fetch_add(&asked, count) < messages_wanted)
		return true;
	atomic_fetch_sub(&asked, count);
	return false;
}

static void
give_back(int count)
{
	if (messages_wanted != INT64_MAX)
		atomic_fetch_sub(&asked, count);
}

/* ---- producers -------------------------------------------------------------- */

/* one payload of exactly payload_size bytes, if that is enough for its head */
static int
make_payload(char *buffer, int64_t when)
{
	int64_t		number = atomic_fetch_add(&next_number, 1);
	int			length;

	if (number >= MAX_NUMBERS)
		fail("too many messages for one run");
	length = sprintf(buffer, "{\"n\": %" PRId64 ", \"r\": %u, \"t\": %" PRId64
					 ", \"x\": \"", number, run_id, when);
	while (length < payload_size - 2)
	{
		buffer[length] = (char) ('a' + length % 26);
		length++;
	}
	return length + sprintf(buffer + length, "\"}");
}

/* an array literal of payloads; their quotes are escaped */
static void
make_array(char *buffer, int64_t when)
{
	char		payload[MAX_PAYLOAD + 100];

	*buffer++ = '{';
	for (int i = 0; i < send_batch; i++)
	{
		int			length = make_payload(payload, when);

		if (i > 0)
			*buffer++ = ',';
		*buffer++ = '"';
		for (int j = 0; j < length; j++)
		{
			if (payload[j] == '"')
				*buffer++ = '\\';
			*buffer++ = payload[j];
		}
		*buffer++ = '"';
	}
	strcpy(buffer, "}");
}

static void
send_copy(Client *client, char *buffer, int64_t when)
{
	PGconn	   *conn = client->conn;
	PGresult   *result;

	PQclear(check_result(conn, PQexec(conn, copy_sql), copy_sql));
	for (int i = 0; i < send_batch; i++)
	{
		int			length = make_payload(buffer, when);

		buffer[length] = '\n';
		if (PQputCopyData(conn, buffer, length + 1) != 1)
			fail("%s", PQerrorMessage(conn));
	}
	if (PQputCopyEnd(conn, NULL) != 1)
		fail("%s", PQerrorMessage(conn));
	while ((result = PQgetResult(conn)) != NULL)
		PQclear(check_result(conn, result, copy_sql));
}

static void
send_prepared(Client *client, char *buffer, int64_t when)
{
	char		priority[12];
	const char *values[2] = {buffer, priority};

	if (client->nparams > 0)
	{
		if (send_batch > 1)
			make_array(buffer, when);
		else
			make_payload(buffer, when);
	}
	client->random = client->random * UINT64_C(6364136223846793005) + 1;
	sprintf(priority, "%u", priorities > 0 ?
			(unsigned) (client->random >> 33) % (unsigned) priorities : 0);
	PQclear(check_result(client->conn,
						 PQexecPrepared(client->conn, "send", client->nparams,
										values, NULL, NULL, 0), send_sql));
}

static void
produce(Client *client)
{
	char	   *buffer = allocate(send_batch, (payload_size + 100) * 2);
	double		interval = rate > 0 ? 1e6 * producers * send_batch / rate : 0;
	double		due = (double) start_time +
	interval * client->index / (producers ? producers : 1);

	while (claim_messages(send_batch))
	{
		int64_t		begin,
					end;

		if (interval > 0)
		{
			if ((int64_t) due >= deadline)
				break;
			sleep_until((int64_t) due);
		}
		if (atomic_fetch_add(&outstanding, send_batch) >= backlog_max)
		{
			atomic_fetch_sub(&outstanding, send_batch);
			give_back(send_batch);
			sleep_us(THROTTLE_US);
			continue;
		}
		begin = interval > 0 ? (int64_t) due : now_us();
		due += interval;
		if (copy_sql)
			send_copy(client, buffer, begin);
		else
			send_prepared(client, buffer, begin);
		end = now_us();
		count_messages(client, end, send_batch);
		count_latency(slot_of(client, end), end - begin);
	}
	free(buffer);
}

/* ---- consumers -------------------------------------------------------------- */

/* the number behind a key of the payload, or -1 */
static int64_t
payload_number(const char *payload, const char *key)
{
	const char *found = strstr(payload, key);

	return found ? strtoll(found + strlen(key), NULL, 10) : -1;
}

static void
check_message(Slot *slot, const char *payload, int64_t when)
{
	int64_t		number;
	uint64_t	bit;

	if (payload_number(payload, "\"r\": ") != run_id)
		return;
	number = payload_number(payload, "\"n\": ");
	if (number < 0 || number >= atomic_load(&next_number))
	{
		atomic_fetch_add(&unknown, 1);
		return;
	}
	bit = UINT64_C(1) << (number & 63);
	if (atomic_fetch_or(&received_bits[number >> 6], bit) & bit)
		atomic_fetch_add(&duplicates, 1);
	count_latency(slot, when - payload_number(payload, "\"t\": "));
}

/* a second statement, with what the first has returned in its second column */
static void
acknowledge(Client *client, PGresult *taken)
{
	int			count = PQntuples(taken);
	size_t		size = 3;
	char	   *ids,
			   *end;
	const char *values[1];

	for (int i = 0; i < count; i++)
		size += PQgetlength(taken, i, 1) + 1;
	ids = end = allocate(size, 1);
	if (ack_many)
		*end++ = '{';
	for (int i = 0; i < count; i++)
		end += sprintf(end, i > 0 ? ",%s" : "%s", PQgetvalue(taken, i, 1));
	if (ack_many)
		strcpy(end, "}");
	values[0] = ids;
	PQclear(check_result(client->conn,
						 PQexecPrepared(client->conn, "ack", 1, values, NULL,
										NULL, 0), ack_sql));
	free(ids);
}

static void
consume(Client *client)
{
	while (claim_messages(take_batch))
	{
		PGresult   *taken;
		int			count;
		int64_t		when;
		Slot	   *slot;

		if (backlog_min > 0 && atomic_load(&outstanding) <= backlog_min)
		{
			give_back(take_batch);
			sleep_us(THROTTLE_US);
			continue;
		}
		taken = check_result(client->conn,
							 PQexecPrepared(client->conn, "take", 0, NULL,
											NULL, NULL, 0), take_sql);
		count = PQntuples(taken);
		if (count == 0)
		{
			PQclear(taken);
			client->empty++;
			give_back(take_batch);
			if (drain)
				break;
			sleep_us(idle_us);
			continue;
		}
		when = now_us();
		slot = slot_of(client, when);
		for (int i = 0; i < count; i++)
			check_message(slot, PQgetvalue(taken, i, 0), when);
		if (ack_sql)
			acknowledge(client, taken);
		atomic_fetch_sub(&outstanding, count);
		give_back(take_batch - count);
		count_messages(client, now_us(), count);
		PQclear(taken);
		if (count < take_batch && short_idle_us > 0)
			sleep_us(short_idle_us);
	}
}

/* ---- threads ---------------------------------------------------------------- */

static void *
client_main(void *arg)
{
	Client	   *client = arg;

	client->first_us = -now_us();
	client->conn = connect_server();
	client->random = client->index * UINT64_C(7919) + run_id;
	if (client->role == CONSUMER)
	{
		prepare(client->conn, "take", take_sql);
		if (ack_sql)
			prepare(client->conn, "ack", ack_sql);
	}
	else if (!copy_sql)
		client->nparams = prepare(client->conn, "send", send_sql);
	pthread_barrier_wait(&connected);
	pthread_barrier_wait(&started);
	client->last = start_time;
	if (client->role == CONSUMER)
		consume(client);
	else
		produce(client);
	PQfinish(client->conn);
	return NULL;
}

/* sleep, but not beyond the end; false if that is reached */
static bool
helper_sleep(int64_t until)
{
	while (!atomic_load(&stop_helpers))
	{
		int64_t		now = now_us();

		if (now >= until)
			return true;
		sleep_us(until - now < 50000 ? until - now : 50000);
	}
	return false;
}

static void *
background_main(void *arg)
{
	Background *background = arg;
	PGconn	   *conn = connect_server();

	do
		execute(conn, background->sql);
	while (helper_sleep(now_us() + background->every_ms * INT64_C(1000)));
	PQfinish(conn);
	return NULL;
}

/* one number a second, at its end, and one when all has ended */
static void *
sample_main(void *arg)
{
	PGconn	   *conn = connect_server();
	PGresult   *result;
	bool		ended = false;

	for (int second = 0; second < nslots && !ended; second++)
	{
		ended = !helper_sleep(start_time + (second + 1) * INT64_C(1000000));
		result = check_result(conn, PQexec(conn, sample_sql), sample_sql);
		samples[second] = atof(PQgetvalue(result, 0, 0));
		PQclear(result);
	}
	PQfinish(conn);
	return NULL;
}

/* another session, that reads something and then does nothing for long */
static void *
hold_main(void *arg)
{
	PGconn	   *conn = connect_server();

	if (helper_sleep(start_time + hold_from * INT64_C(1000000)))
	{
		execute(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ");
		execute(conn, "SELECT count(*) FROM pg_catalog.pg_class");
		helper_sleep(start_time +
					 (hold_from + hold_length) * INT64_C(1000000));
		execute(conn, "COMMIT");
	}
	PQfinish(conn);
	return NULL;
}

static void
start_thread(pthread_t * thread, void *(*main) (void *), void *arg)
{
	if (pthread_create(thread, NULL, main, arg) != 0)
		fail("could not start a thread");
}

/* ---- report ----------------------------------------------------------------- */

/* what all clients of a role did in some seconds */
static int64_t
sum_slots(const Client *clients, Role role, Window window, Hist *hist)
{
	int64_t		total = 0;

	memset(hist, 0, sizeof(Hist));
	for (int i = 0; i < producers + consumers; i++)
	{
		if (clients[i].role != role)
			continue;
		for (int second = window.from;
			 second < window.to && second < nslots; second++)
		{
			const Slot *slot = &clients[i].slots[second];

			total += slot->messages;
			if (slot->latencies)
				hist_add(hist, slot->latencies);
		}
	}
	return total;
}

static void
print_percentiles(const char *name, const Hist *hist)
{
	static const double percents[] = {50, 95, 99, 99.9, 100};

	if (hist_percentile(hist, 50) < 0)
		return;
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		printf("%s_p%g_us %" PRId64 "\n", name, percents[i],
			   hist_percentile(hist, percents[i]));
}

static void
print_window(const Client *clients, Window window)
{
	Hist		hist;
	double		length = window.to - window.from;
	int64_t		sent = sum_slots(clients, PRODUCER, window, &hist);
	int64_t		received = sum_slots(clients, CONSUMER, window, &hist);

	printf("window_%d_%d_sent_rate %.1f\n", window.from, window.to,
		   sent / length);
	printf("window_%d_%d_received_rate %.1f\n", window.from, window.to,
		   received / length);
	printf("window_%d_%d_p50_us %" PRId64 "\n", window.from, window.to,
		   hist_percentile(&hist, 50));
	printf("window_%d_%d_p99_us %" PRId64 "\n", window.from, window.to,
		   hist_percentile(&hist, 99));
}

static void
write_series(const Client *clients)
{
	FILE	   *file = fopen(series_file, "w");
	Hist		hist;

	if (file == NULL)
		fail("could not write %s", series_file);
	fprintf(file, "second,sent,received,p50_us,p99_us,sample\n");
	for (int second = 0; second < warmup + seconds; second++)
	{
		Window		window = {second, second + 1};
		int64_t		sent = sum_slots(clients, PRODUCER, window, &hist);
		int64_t		received = sum_slots(clients, CONSUMER, window, &hist);

		fprintf(file, "%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
				",%.0f\n", second, sent, received, hist_percentile(&hist, 50),
				hist_percentile(&hist, 99), samples[second]);
	}
	if (fclose(file) != 0)
		fail("could not write %s", series_file);
}

/* messages of a role so far, while the clients run */
static int64_t
count_shown(Client *clients, Role role)
{
	int64_t		total = 0;

	for (int i = 0; i < producers + consumers; i++)
		if (clients[i].role == role)
			total += atomic_load_explicit(&clients[i].shown,
										  memory_order_relaxed);
	return total;
}

/* until when did the clients of a role have something to do? */
static int64_t
last_of(const Client *clients, Role role)
{
	int64_t		last = 0;

	for (int i = 0; i < producers + consumers; i++)
		if (clients[i].role == role && clients[i].last > last)
			last = clients[i].last;
	return last;
}

static void
print_role(Client *clients, Role role, int64_t warm_count, int64_t warm_time)
{
	const char *name = role == PRODUCER ? "sent" : "received";
	Window		window = {warmup, nslots};
	int64_t		total = count_shown(clients, role);
	int64_t		elapsed = last_of(clients, role) - warm_time;
	Hist		hist;

	printf("%s %" PRId64 "\n", name, total);
	printf("%s_rate %.1f\n", name, elapsed > 0 ?
		   (double) (total - warm_count) * 1e6 / (double) elapsed : 0);
	sum_slots(clients, role, window, &hist);
	print_percentiles(role == PRODUCER ? "call" : "latency", &hist);
}

static void
print_report(Client *clients, int64_t warm_sent, int64_t warm_received,
			 int64_t warm_time)
{
	struct rusage used;
	int64_t		empty = 0;

	if (producers > 0)
		print_role(clients, PRODUCER, warm_sent, warm_time);
	if (consumers > 0)
		print_role(clients, CONSUMER, warm_received, warm_time);
	for (int i = 0; i < nwindows; i++)
		print_window(clients, windows[i]);
	for (int i = 0; i < producers + consumers; i++)
		empty += clients[i].empty;
	getrusage(RUSAGE_SELF, &used);
	printf("first_us %" PRId64 "\n", clients[0].first_us);
	printf("empty %" PRId64 "\n", empty);
	printf("duplicates %" PRId64 "\n", atomic_load(&duplicates));
	printf("unknown %" PRId64 "\n", atomic_load(&unknown));
	printf("load_cpu_s %.3f\n",
		   (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		   (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

/* ---- the run ---------------------------------------------------------------- */

static void
run(void)
{
	Client	   *clients = allocate(producers + consumers + 1, sizeof(Client));
	pthread_t	sampler,
				holder;
	int64_t		warm_sent,
				warm_received,
				warm_time,
				last;

	nslots = warmup + seconds + 2;
	samples = allocate(nslots, sizeof(double));
	atomic_store(&outstanding, backlog_start);
	pthread_barrier_init(&connected, NULL, producers + consumers + 1);
	pthread_barrier_init(&started, NULL, producers + consumers + 1);
	for (int i = 0; i < producers + consumers; i++)
	{
		clients[i].role = i < producers ? PRODUCER : CONSUMER;
		clients[i].index = i < producers ? i : i - producers;
		clients[i].slots = allocate(nslots, sizeof(Slot));
		start_thread(&clients[i].thread, client_main, &clients[i]);
	}
	for (int i = 0; i < nbackgrounds; i++)
		start_thread(&backgrounds[i].thread, background_main, &backgrounds[i]);

	pthread_barrier_wait(&connected);
	start_time = now_us();
	deadline = start_time + (warmup + seconds) * INT64_C(1000000);
	pthread_barrier_wait(&started);
	if (sample_sql)
		start_thread(&sampler, sample_main, NULL);
	if (hold_from >= 0)
		start_thread(&holder, hold_main, NULL);
	sleep_until(start_time + warmup * INT64_C(1000000));
	warm_sent = count_shown(clients, PRODUCER);
	warm_received = count_shown(clients, CONSUMER);
	warm_time = warmup > 0 ? now_us() : start_time;

	for (int i = 0; i < producers + consumers; i++)
		pthread_join(clients[i].thread, NULL);
	atomic_store(&stop_helpers, true);
	if (sample_sql)
		pthread_join(sampler, NULL);
	if (hold_from >= 0)
		pthread_join(holder, NULL);
	for (int i = 0; i < nbackgrounds; i++)
		pthread_join(backgrounds[i].thread, NULL);

	/* too little is left after the warm-up, if all has been taken by then */
	last = last_of(clients, consumers > 0 ? CONSUMER : PRODUCER);
	if (last - warm_time < seconds * INT64_C(500000))
	{
		warm_sent = warm_received = 0;
		warm_time = start_time;
	}
	print_report(clients, warm_sent, warm_received, warm_time);
	if (series_file)
		write_series(clients);
	if (atomic_load(&duplicates) > 0 || atomic_load(&unknown) > 0)
		fail("%" PRId64 " messages came twice, %" PRId64 " were never sent",
			 atomic_load(&duplicates), atomic_load(&unknown));
}

/* ---- arguments -------------------------------------------------------------- */

static void
usage(void)
{
	puts("usage: load OPTION...   (connection: libpq's environment variables)\n"
		 "  --producers N         clients that send\n"
		 "  --send SQL            with $1 the payload, or an array of payloads, and $2 a\n"
		 "                        priority, as far as it has parameters\n"
		 "  --copy SQL            COPY ... FROM STDIN, of one column\n"
		 "  --send-batch N        messages a call (1)\n"
		 "  --payload BYTES       (200)\n"
		 "  --priorities N        $2 is 0 to N - 1\n"
		 "  --rate N              messages a second of all producers (as fast as possible)\n"
		 "  --consumers N         clients that take\n"
		 "  --take SQL            returns rows with the payload, and an id for --ack\n"
		 "  --take-batch N        rows it returns at most (1)\n"
		 "  --ack SQL             another transaction, with $1 the id of the only row\n"
		 "  --ack-many SQL        the same, with $1 an array of the ids\n"
		 "  --idle US             a consumer that got nothing asks again after (1000)\n"
		 "  --short-idle US       one that got fewer than it may, after (0)\n"
		 "  --drain               a consumer that got nothing ends\n"
		 "  --backlog MIN:MAX     consumers wait at MIN messages (0: never), producers at MAX\n"
		 "  --backlog-start N     so many are there already (0)\n"
		 "  --warmup S            seconds that are not counted (0)\n"
		 "  --seconds S           seconds after that (5)\n"
		 "  --messages N          end after N messages, sent or else received\n"
		 "  --window FROM:TO      figures of these seconds, too\n"
		 "  --series FILE         figures of every second, as CSV\n"
		 "  --sample SQL          a number for every second of the series\n"
		 "  --hold FROM:LENGTH    another session holds a snapshot\n"
		 "  --background MS:SQL   another session runs this, again MS after it has ended");
}

static void
parse_pair(const char *text, int64_t * first, int64_t * second)
{
	if (sscanf(text, "%" SCNd64 ":%" SCNd64, first, second) != 2)
		fail("\"%s\" is not two numbers with a colon", text);
}

/* what to do with the value of an option, and with what */
typedef struct Option
{
	const char *name;
	void		(*set) (void *target, const char *value);	/* NULL: a flag */
	void	   *target;
} Option;

static void
set_int(void *target, const char *value)
{
	*(int *) target = atoi(value);
}

static void
set_int64(void *target, const char *value)
{
	*(int64_t *) target = atoll(value);
}

static void
set_double(void *target, const char *value)
{
	*(double *) target = atof(value);
}

static void
set_text(void *target, const char *value)
{
	*(const char **) target = value;
}

static void
set_backlog(void *target, const char *value)
{
	parse_pair(value, &backlog_min, &backlog_max);
}

static void
set_ack_many(void *target, const char *value)
{
	ack_sql = value;
	ack_many = true;
}

static void
set_hold(void *target, const char *value)
{
	int64_t		from,
				length;

	parse_pair(value, &from, &length);
	hold_from = (int) from;
	hold_length = (int) length;
}

static void
add_window(void *target, const char *value)
{
	int64_t		from,
				to;

	if (nwindows == MAX_WINDOWS)
		fail("too many windows");
	parse_pair(value, &from, &to);
	if (from < 0 || to <= from)
		fail("\"%s\" is no window of time", value);
	windows[nwindows].from = (int) from;
	windows[nwindows++].to = (int) to;
}

static void
add_background(void *target, const char *value)
{
	const char *colon = strchr(value, ':');

	if (nbackgrounds == MAX_BACKGROUND)
		fail("too many background statements");
	if (colon == NULL)
		fail("--background MS:SQL, not \"%s\"", value);
	backgrounds[nbackgrounds].every_ms = atoi(value);
	backgrounds[nbackgrounds++].sql = colon + 1;
}

static const Option options[] = {
	{"producers", set_int, &producers},
	{"send", set_text, &send_sql},
	{"copy", set_text, &copy_sql},
	{"send-batch", set_int, &send_batch},
	{"payload", set_int, &payload_size},
	{"priorities", set_int, &priorities},
	{"rate", set_double, &rate},
	{"consumers", set_int, &consumers},
	{"take", set_text, &take_sql},
	{"take-batch", set_int, &take_batch},
	{"ack", set_text, &ack_sql},
	{"ack-many", set_ack_many, NULL},
	{"idle", set_int, &idle_us},
	{"short-idle", set_int, &short_idle_us},
	{"drain", NULL, &drain},
	{"backlog", set_backlog, NULL},
	{"backlog-start", set_int64, &backlog_start},
	{"warmup", set_int, &warmup},
	{"seconds", set_int, &seconds},
	{"messages", set_int64, &messages_wanted},
	{"window", add_window, NULL},
	{"series", set_text, &series_file},
	{"sample", set_text, &sample_sql},
	{"hold", set_hold, NULL},
	{"background", add_background, NULL}
};

#define NOPTIONS ((int) (sizeof(options) / sizeof(options[0])))

static void
parse_arguments(int argc, char **argv)
{
	struct option long_options[NOPTIONS + 2] = {{0}};
	int			found;

	for (int i = 0; i < NOPTIONS; i++)
	{
		long_options[i].name = options[i].name;
		long_options[i].has_arg = options[i].set != NULL;
		long_options[i].val = i + 1000;
	}
	long_options[NOPTIONS].name = "help";
	long_options[NOPTIONS].val = 'h';
	while ((found = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
	{
		if (found == 'h')
		{
			usage();
			exit(0);
		}
		if (found < 1000)
			exit(2);
		if (options[found - 1000].set == NULL)
			*(bool *) options[found - 1000].target = true;
		else
			options[found - 1000].set(options[found - 1000].target, optarg);
	}
	if (optind < argc)
		fail("what is \"%s\"?", argv[optind]);
}

int
main(int argc, char **argv)
{
	parse_arguments(argc, argv);
	if (producers < 0 || consumers < 0 || producers + consumers < 1 ||
		producers + consumers > MAX_CLIENTS)
		fail("from 1 to %d clients, please", MAX_CLIENTS);
	if (producers > 0 && (send_sql == NULL) == (copy_sql == NULL))
		fail("producers need --send or --copy");
	if (consumers > 0 && take_sql == NULL)
		fail("consumers need --take");
	if (send_batch < 1 || take_batch < 1 || payload_size < 1 || payload_size > MAX_PAYLOAD ||
		warmup < 0 || seconds < 1)
		fail("a number is out of range");
	if (messages_wanted != INT64_MAX && producers > 0 && consumers > 0)
		fail("--messages is for producers or for consumers");
	run_id = (uint32_t) (time(NULL) * 1000 + now_us() % 1000) & 0x7fffffff;
	received_bits = mmap(NULL, MAX_NUMBERS / 8, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (received_bits == MAP_FAILED)
		fail("out of memory");
	run();
	return 0;
}
