/*-------------------------------------------------------------------------
 *
 * enqueue.c
 *	  The enqueue verb: checks, and what a message's row is to hold.
 *
 * The direct path does not run through the executor, so whatever the executor
 * would have refused is refused here: read-only transactions, recovery,
 * parallel mode, missing privileges.  The lock on the queue's view is the one
 * that an INSERT would take; it is kept to the end of the transaction, so that
 * stopping, altering and dropping a queue can wait for its producers.
 *
 * Everything is checked before the store is called.  A large array is stored
 * in pieces, so that memory is bounded; an error in a later piece undoes the
 * earlier ones with the statement.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "acl.h"
#include "clock.h"
#include "compat.h"
#include "enqueue.h"
#include "errors.h"
#include "name.h"
#include "payload.h"

/* messages of an array that are built and stored at a time */
#define ENQUEUE_PIECE	256

/* microseconds by which a delay may be late since ids run ahead */
#define MAX_CLOCK_LEAD	USECS_PER_SEC

/* The last exception queue resolved: mostly it is the same in a batch. */
typedef struct ExceptionQueueCache
{
	const char *name;			/* as it was given */
	text	   *stored;			/* as it is stored */
} ExceptionQueueCache;

/* the current user's name */
static Oid	cached_user = InvalidOid;
static char cached_user_name[NAMEDATALEN];
static bool user_callback_registered = false;

static void build_message(const QueueDesc *queue,
						  const QueueEnqueueOptions *options,
						  ExceptionQueueCache *exceptions,
						  QueueMessage *message);
static void set_times(const QueueEnqueueOptions *options,
					  QueueMessage *message);
static bool due_time(const QueueEnqueueOptions *options, TimestampTz now,
					 TimestampTz *due);
static void set_time(QueueMessage *message, QueueColumn column,
					 TimestampTz value);
static TimestampTz expiration_time(const Interval *expiration,
								   TimestampTz from);
static void check_finite_delay(const QueueEnqueueOptions *options);
static void set_text(QueueMessage *message, QueueColumn column,
					 const char *argument, const char *value, int limit);
static void set_properties(QueueMessage *message, Datum properties);
static text *resolve_exception_queue(const QueueDesc *queue,
									 const char *name);
static Oid	lookup_exception_queue(const char *name);
static void check_exception_queue(const QueueDesc *queue,
								  const QueueDesc *exception,
								  const char *name);
static text *current_user_name(void);
static void forget_user_name(Datum arg, int cacheid, uint32 hashvalue);

void
queue_enqueue_options_init(QueueEnqueueOptions *options)
{
	memset(options, 0, sizeof(QueueEnqueueOptions));
	options->priority = QUEUE_DEFAULT_PRIORITY;
}

QueueDesc *
queue_enqueue_begin(Oid queue_oid, bool check_privilege)
{
	QueueDesc  *queue;

	PreventCommandDuringRecovery("enqueue()");
	PreventCommandIfReadOnly("enqueue()");
	PreventCommandIfParallelMode("enqueue()");

	LockRelationOid(queue_oid, RowExclusiveLock);
	queue = queue_catalog_find(queue_oid, false);
	if (check_privilege)
		queue_acl_check_enqueue(queue);

	if (queue->is_exception)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_IS_EXCEPTION_QUEUE),
				 errmsg("cannot enqueue into exception queue \"%s\"",
						queue_catalog_name(queue_oid)),
				 errdetail("Messages come into an exception queue only when they expire or fail too often."),
				 errhint("Enqueue into a normal queue.")));
	if (!queue->enqueue_enabled)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_ENQUEUE_DISABLED),
				 errmsg("queue \"%s\" is not enabled for enqueue",
						queue_catalog_name(queue_oid)),
				 errhint("Start it with queue.start_queue().")));
	return queue;
}

void
queue_enqueue_one(const QueueDesc *queue, Datum payload, bool payload_null,
				  Oid payload_type, const QueueEnqueueOptions *options,
				  QueueMessage *message)
{
	ExceptionQueueCache exceptions = {NULL, NULL};

	queue_message_init(message);
	build_message(queue, options, &exceptions, message);
	message->values[QUEUE_COL_PAYLOAD] =
		queue_payload_convert(queue, payload, payload_null, payload_type,
							  &message->nulls[QUEUE_COL_PAYLOAD]);
	queue_message_identify(queue, message);
	set_times(options, message);
	queue_message_insert(queue, message, 1);
}

void
queue_enqueue_many(const QueueDesc *queue, int count, const Datum *payloads,
				   const bool *payload_nulls, Oid payload_type,
				   const QueueEnqueueOptions *options, bool shared,
				   pg_uuid_t *msgids)
{
	ExceptionQueueCache exceptions = {NULL, NULL};
	MemoryContext piece_context = AllocSetContextCreate(CurrentMemoryContext,
														"queue enqueue piece",
														ALLOCSET_DEFAULT_SIZES);
	QueueMessage *messages = palloc(Min(count, ENQUEUE_PIECE) *
									sizeof(QueueMessage));

	Assert(count >= 0);
	Assert(count <= QUEUE_MAX_BATCH);
	for (int done = 0; done < count; done += ENQUEUE_PIECE)
	{
		int			piece = Min(count - done, ENQUEUE_PIECE);
		MemoryContext old_context;

		CHECK_FOR_INTERRUPTS();
		old_context = MemoryContextSwitchTo(piece_context);
		for (int i = 0; i < piece; i++)
		{
			QueueMessage *message = &messages[i];
			int			n = done + i;

			queue_message_init(message);
			build_message(queue, shared ? options : &options[n],
						  &exceptions, message);
			message->values[QUEUE_COL_PAYLOAD] =
				queue_payload_convert(queue, payloads[n], payload_nulls[n],
									  payload_type,
									  &message->nulls[QUEUE_COL_PAYLOAD]);
			queue_message_identify(queue, message);
			set_times(shared ? options : &options[n], message);
		}
		queue_message_insert(queue, messages, piece);
		for (int i = 0; i < piece; i++)
			msgids[done + i] =
				*DatumGetUUIDP(messages[i].values[QUEUE_COL_MSGID]);
		MemoryContextSwitchTo(old_context);

		/* what was resolved lies in the piece's memory */
		exceptions.name = NULL;
		MemoryContextReset(piece_context);
	}
	pfree(messages);
	MemoryContextDelete(piece_context);
}

/* ---------------------------------------------------------------------- */
/* What the row is to hold                                                */
/* ---------------------------------------------------------------------- */

/* Everything but the payload, the times, and what the store gives. */
static void
build_message(const QueueDesc *queue, const QueueEnqueueOptions *options,
			  ExceptionQueueCache *exceptions, QueueMessage *message)
{
	Datum	   *values = message->values;
	bool	   *nulls = message->nulls;

	values[QUEUE_COL_CONSUMER_ID] = Int32GetDatum(QUEUE_CONSUMER_NONE);
	nulls[QUEUE_COL_CONSUMER_ID] = false;
	values[QUEUE_COL_PRIORITY] = Int32GetDatum(options->priority);
	nulls[QUEUE_COL_PRIORITY] = false;
	values[QUEUE_COL_RETRY_COUNT] = Int32GetDatum(0);
	nulls[QUEUE_COL_RETRY_COUNT] = false;
	values[QUEUE_COL_ENQ_USER] = PointerGetDatum(current_user_name());
	nulls[QUEUE_COL_ENQ_USER] = false;

	if (options->has_properties)
		set_properties(message, options->properties);

	set_text(message, QUEUE_COL_CORRELATION, "correlation", options->correlation,
			 QUEUE_MAX_CORRELATION_LENGTH);
	set_text(message, QUEUE_COL_SENDER_NAME, "sender", options->sender_name,
			 QUEUE_MAX_NAME_LENGTH);
	set_text(message, QUEUE_COL_SENDER_ADDRESS, "sender", options->sender_address,
			 QUEUE_MAX_CORRELATION_LENGTH);
	set_text(message, QUEUE_COL_REPLY_TO, "reply_to", options->reply_to,
			 QUEUE_MAX_CORRELATION_LENGTH);
	set_text(message, QUEUE_COL_ROUTING_KEY, "routing_key", options->routing_key,
			 QUEUE_MAX_CORRELATION_LENGTH);
	set_text(message, QUEUE_COL_GROUP_KEY, "group_key", options->group_key,
			 QUEUE_MAX_NAME_LENGTH);
	set_text(message, QUEUE_COL_DEDUP_KEY, "dedup_key", options->dedup_key,
			 QUEUE_MAX_NAME_LENGTH);
	if (options->has_sender_protocol)
	{
		values[QUEUE_COL_SENDER_PROTOCOL] =
			Int32GetDatum(options->sender_protocol);
		nulls[QUEUE_COL_SENDER_PROTOCOL] = false;
	}

	if (options->exception_queue != NULL)
	{
		if (exceptions->name == NULL ||
			strcmp(exceptions->name, options->exception_queue) != 0)
		{
			exceptions->stored =
				resolve_exception_queue(queue, options->exception_queue);
			exceptions->name = options->exception_queue;
		}
		values[QUEUE_COL_EXCEPTION_QUEUE] =
			PointerGetDatum(exceptions->stored);
		nulls[QUEUE_COL_EXCEPTION_QUEUE] = false;
	}
}

/*
 * State, due time and end of a message that has its id.  Times are counted
 * from the one in the id.  But the clock that gives ids may run ahead of the
 * wall clock: by a microsecond where two ids were given in one, and by years
 * where the wall clock was set back.  Nobody wants to wait for years: then
 * they are counted from now.
 */
static void
set_times(const QueueEnqueueOptions *options, QueueMessage *message)
{
	TimestampTz now;
	TimestampTz ready_at;

	message->values[QUEUE_COL_STATE] = Int16GetDatum(QUEUE_STATE_READY);
	message->nulls[QUEUE_COL_STATE] = false;
	if (likely(!options->has_delay && !options->has_deliver_at &&
			   !options->has_expiration))
		return;

	ready_at = queue_clock_msgid_time(DatumGetUUIDP(message->values[QUEUE_COL_MSGID]));
	now = queue_clock_now();
	if (ready_at - now > MAX_CLOCK_LEAD)
		ready_at = now;
	if (due_time(options, ready_at, &ready_at))
	{
		message->values[QUEUE_COL_STATE] = Int16GetDatum(QUEUE_STATE_WAITING);
		set_time(message, QUEUE_COL_DUE_AT, ready_at);
	}
	if (options->has_expiration &&
		!queue_interval_is_forever(&options->expiration))
	{
		set_time(message, QUEUE_COL_EXPIRES_AT,
				 expiration_time(&options->expiration, ready_at));
		message->values[QUEUE_COL_EXPIRATION] =
			IntervalPGetDatum(&options->expiration);
		message->nulls[QUEUE_COL_EXPIRATION] = false;
	}
}

/*
 * Is the message to wait, and until when?  A due time in the past, like a
 * delay of 0, makes it ready at once; *due stays as it is.
 */
static bool
due_time(const QueueEnqueueOptions *options, TimestampTz now,
		 TimestampTz *due)
{
	TimestampTz at;

	if (likely(!options->has_delay && !options->has_deliver_at))
		return false;

	if (options->has_delay && options->has_deliver_at)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot give both a delay and a time of delivery"),
				 errhint("Give either delay or deliver_at.")));
	if (options->has_delay)
	{
		check_finite_delay(options);
		at = queue_interval_add(now, &options->delay, "delay");
	}
	else
	{
		at = options->deliver_at;
		if (TIMESTAMP_NOT_FINITE(at))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("time of delivery must be finite"),
					 errhint("Leave deliver_at NULL to deliver at once.")));
	}
	if (at <= now)
		return false;
	*due = at;
	return true;
}

static void
check_finite_delay(const QueueEnqueueOptions *options)
{
	if (queue_interval_not_finite(&options->delay))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delay must be finite"),
				 errhint("Leave delay NULL to deliver at once.")));
	if (queue_interval_sign(&options->delay) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delay must not be negative"),
				 errhint("Leave delay NULL to deliver at once.")));
}

/* Counted from when the message is ready. */
static TimestampTz
expiration_time(const Interval *expiration, TimestampTz from)
{
	if (queue_interval_sign(expiration) > 0)
	{
		TimestampTz result = queue_interval_add(from, expiration, "expiration");

		/* a month less 29 days is nothing in February */
		if (result > from)
			return result;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("expiration must be greater than zero"),
			 errhint("Leave expiration NULL for a message that never expires.")));
	return from;				/* keep compiler quiet */
}

static void
set_time(QueueMessage *message, QueueColumn column, TimestampTz value)
{
	message->values[column] = TimestampTzGetDatum(value);
	message->nulls[column] = false;
}

static void
set_text(QueueMessage *message, QueueColumn column, const char *argument,
		 const char *value, int limit)
{
	int			length;

	if (value == NULL)
		return;
	length = strlen(value);
	if (length > limit)
		ereport(ERROR,
				(errcode(ERRCODE_STRING_DATA_RIGHT_TRUNCATION),
				 errmsg("argument \"%s\" is too long", argument),
				 errdetail("It has %d bytes; the limit is %d.", length,
						   limit)));
	message->values[column] =
		PointerGetDatum(cstring_to_text_with_len(value, length));
	message->nulls[column] = false;
}

static void
set_properties(QueueMessage *message, Datum properties)
{
	Jsonb	   *jsonb = DatumGetJsonbP(properties);

	if (!JB_ROOT_IS_OBJECT(jsonb))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("properties must be a JSON object"),
				 errhint("Write them as '{\"name\": value, ...}'.")));
	message->values[QUEUE_COL_PROPERTIES] = JsonbPGetDatum(jsonb);
	message->nulls[QUEUE_COL_PROPERTIES] = false;
}

/* ---------------------------------------------------------------------- */
/* Exception queues                                                       */
/* ---------------------------------------------------------------------- */

/*
 * The exception queue that a producer has named, as it is stored: qualified
 * and quoted, so that it means the same to everyone.
 */
static text *
resolve_exception_queue(const QueueDesc *queue, const char *name)
{
	Oid			relid = lookup_exception_queue(name);
	QueueDesc  *exception = NULL;
	char	   *schema_name;
	char	   *relation_name;

	if (OidIsValid(relid))
		exception = queue_catalog_find(relid, true);
	if (exception == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("exception queue \"%s\" does not exist", name),
				 errhint("Make it with queue.create_queue(queue_type => 'exception').")));
	check_exception_queue(queue, exception, name);

	schema_name = get_namespace_name(get_rel_namespace(relid));
	relation_name = get_rel_name(relid);
	if (schema_name == NULL || relation_name == NULL)
		elog(ERROR, "cache lookup failed for relation %u", relid);
	return cstring_to_text(quote_qualified_identifier(schema_name,
													  relation_name));
}

static Oid
lookup_exception_queue(const char *name)
{
	char	   *schema_name;
	char	   *relation_name;

	queue_name_parse("exception_queue", name, &schema_name, &relation_name);
	return RangeVarGetRelid(makeRangeVar(schema_name, relation_name, -1),
							NoLock, true);
}

/*
 * Messages get into the exception queue without further questions, so a
 * producer must be allowed to put them there, unless the queues are one
 * owner's.
 */
static void
check_exception_queue(const QueueDesc *queue, const QueueDesc *exception,
					  const char *name)
{
	if (!exception->is_exception)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queue \"%s\" is not an exception queue", name),
				 errhint("Name a queue made with queue_type => 'exception'.")));
	if (exception->table->payload_type != queue->table->payload_type ||
		exception->table->payload_typmod != queue->table->payload_typmod)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_PAYLOAD_MISMATCH),
				 errmsg("exception queue \"%s\" has another payload type than queue \"%s\"",
						name, queue_catalog_name(queue->relid)),
				 errhint("Name an exception queue with the same payload type.")));
	if (exception->queue_table != queue->queue_table &&
		exception->owner != queue->owner)
		queue_acl_check_enqueue(exception);
}

/* ---------------------------------------------------------------------- */
/* The enqueuing user                                                     */
/* ---------------------------------------------------------------------- */

/* Allocated anew: payload conversion may run code of another user. */
static text *
current_user_name(void)
{
	Oid			user = GetUserId();

	if (unlikely(user != cached_user))
	{
		if (!user_callback_registered)
		{
			CacheRegisterSyscacheCallback(AUTHOID, forget_user_name,
										  (Datum) 0);
			user_callback_registered = true;
		}
		cached_user = InvalidOid;
		strlcpy(cached_user_name, GetUserNameFromId(user, false),
				sizeof(cached_user_name));
		cached_user = user;
	}
	return cstring_to_text(cached_user_name);
}

static void
forget_user_name(Datum arg, int cacheid, uint32 hashvalue)
{
	cached_user = InvalidOid;
}
