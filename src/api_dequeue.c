/*-------------------------------------------------------------------------
 *
 * api_dequeue.c
 *	  SQL-callable functions that dequeue.
 *
 * The result is always materialized: what is taken never depends on how many
 * rows the caller fetches.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "api.h"
#include "clock.h"
#include "compat.h"
#include "dequeue.h"
#include "errors.h"
#include "payload.h"
#include "plain.h"
#include "shmem.h"

/* The arguments of queue.dequeue(); dequeue_as() has one more before them. */
typedef enum DequeueArg
{
	ARG_QUEUE,
	ARG_CONSUMER,
	ARG_MODE,
	ARG_NAVIGATION,
	ARG_WAIT,
	ARG_MSGID,
	ARG_CORRELATION,
	ARG_CONDITION,
	ARG_MAX_MESSAGES,
	ARG_VISIBILITY,
	ARG_DELIVERY_MODE
} DequeueArg;

/* The arguments of queue.receive(). */
typedef enum ReceiveArg
{
	RECEIVE_ARG_QUEUE,
	RECEIVE_ARG_LEASE,
	RECEIVE_ARG_CONSUMER,
	RECEIVE_ARG_MAX_MESSAGES,
	RECEIVE_ARG_WAIT,
	RECEIVE_ARG_CONDITION
} ReceiveArg;

#define NUM_DEQUEUE_ARGS	(ARG_DELIVERY_MODE + 1)

/* The columns of queue.message, in order. */
typedef enum ResultColumn
{
	RESULT_MSGID,
	RESULT_PAYLOAD,
	RESULT_PRIORITY,
	RESULT_CORRELATION,
	RESULT_ENQ_TIME,
	RESULT_RETRY_COUNT,
	RESULT_PROPERTIES,
	RESULT_SENDER,
	RESULT_GROUP_ID,
	RESULT_STEP,
	RESULT_ORIGINAL_MSGID,
	RESULT_EXPIRES_AT,
	RESULT_REPLY_TO,
	RESULT_ROUTING_KEY,
	RESULT_GROUP_KEY
} ResultColumn;

#define NUM_RESULT_COLUMNS	(RESULT_GROUP_KEY + 1)

/* Result columns that are columns of the queue table as they are. */
typedef struct PlainColumn
{
	ResultColumn result;
	QueueColumn column;
} PlainColumn;

static const PlainColumn plain_columns[] = {
	{RESULT_MSGID, QUEUE_COL_MSGID},
	{RESULT_PRIORITY, QUEUE_COL_PRIORITY},
	{RESULT_CORRELATION, QUEUE_COL_CORRELATION},
	{RESULT_RETRY_COUNT, QUEUE_COL_RETRY_COUNT},
	{RESULT_PROPERTIES, QUEUE_COL_PROPERTIES},
	{RESULT_GROUP_ID, QUEUE_COL_GROUP_ID},
	{RESULT_STEP, QUEUE_COL_STEP},
	{RESULT_ORIGINAL_MSGID, QUEUE_COL_ORIGINAL_MSGID},
	{RESULT_EXPIRES_AT, QUEUE_COL_EXPIRES_AT},
	{RESULT_REPLY_TO, QUEUE_COL_REPLY_TO},
	{RESULT_ROUTING_KEY, QUEUE_COL_ROUTING_KEY},
	{RESULT_GROUP_KEY, QUEUE_COL_GROUP_KEY}
};

/* payload, enq_time and sender are made */
StaticAssertDecl(lengthof(plain_columns) == NUM_RESULT_COLUMNS - 3,
				 "one entry for each plain column");

typedef struct DeliverState
{
	Tuplestorestate *store;
	TupleDesc	desc;
	Oid			payload_type;	/* InvalidOid: show it as jsonb */
	Oid			queue;
	int			receipts;		/* 1: a receipt stands before the other
								 * columns */
	MemoryContext row_context;	/* reset after each row; NULL: not needed */
} DeliverState;

static const QueueWord mode_words[] = {
	{"browse", QUEUE_MODE_BROWSE},
	{"locked", QUEUE_MODE_LOCKED},
	{"remove", QUEUE_MODE_REMOVE},
	{"remove_nodata", QUEUE_MODE_REMOVE_NODATA}
};
static const QueueWord navigation_words[] = {
	{"first_message", QUEUE_NAV_FIRST_MESSAGE},
	{"next_message", QUEUE_NAV_NEXT_MESSAGE},
	{"next_transaction", QUEUE_NAV_NEXT_TRANSACTION},
	{"first_message_multi_group", QUEUE_NAV_FIRST_MESSAGE_MULTI_GROUP},
	{"next_message_multi_group", QUEUE_NAV_NEXT_MESSAGE_MULTI_GROUP}
};
static const QueueWord delivery_mode_words[] = {
	{"persistent", 0}, {"buffered", 1}, {"persistent_or_buffered", 2}
};

PG_FUNCTION_INFO_V1(queue_dequeue_sql);
PG_FUNCTION_INFO_V1(queue_dequeue_as);
PG_FUNCTION_INFO_V1(queue_receive);
PG_FUNCTION_INFO_V1(queue_internal_dequeue);

static void dequeue_call(FunctionCallInfo fcinfo, int base,
						 Oid payload_type);
static void run(FunctionCallInfo fcinfo, Oid queue, Oid payload_type,
				const QueueDequeueOptions *options);
static void init_options(QueueDequeueOptions *options);
static void decode_options(FunctionCallInfo fcinfo, int base,
						   QueueDequeueOptions *options);
static void decode_max_messages(FunctionCallInfo fcinfo, int argno,
								QueueDequeueOptions *options);
static void decode_wait(FunctionCallInfo fcinfo, int argno,
						QueueDequeueOptions *options);
static void decode_criteria(FunctionCallInfo fcinfo, int base,
							QueueDequeueOptions *options);
static void refuse_options(FunctionCallInfo fcinfo, int base,
						   const QueueDequeueOptions *options);
static void refuse_consumer(Oid queue);
static void refuse_navigation(Oid queue);
static void check_payload_type(Oid queue, const QueueTable *table,
							   Oid payload_type);
static void init_result(FunctionCallInfo fcinfo, int max_messages,
						DeliverState *state);
static void deliver_message(void *context, const QueueTable *table,
							const QueueMessage *message);
static void show_payload(const DeliverState *state, const QueueTable *table,
						 const QueueMessage *message, Datum *value,
						 bool *isnull);
static void show_sender(const QueueMessage *message, Datum *value,
						bool *isnull);

/* queue.dequeue(): the payload shown as jsonb. */
Datum
queue_dequeue_sql(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	dequeue_call(fcinfo, 0, InvalidOid);
	return (Datum) 0;
}

/* queue.dequeue_as(): the payload typed as the first argument. */
Datum
queue_dequeue_as(PG_FUNCTION_ARGS)
{
	Oid			type;
	Oid			queue;

	queue_require_preload();
	type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of argument \"%s\"",
						"payload_type")));
	queue = queue_api_queue(fcinfo, 1);
	check_payload_type(queue, queue_catalog_find(queue, false)->table, type);
	dequeue_call(fcinfo, 1, type);
	return (Datum) 0;
}

/* queue.receive(): as dequeue, with a receipt. */
Datum
queue_receive(PG_FUNCTION_ARGS)
{
	QueueDequeueOptions options;
	Oid			queue;

	queue_require_preload();
	queue = queue_api_queue(fcinfo, RECEIVE_ARG_QUEUE);
	init_options(&options);
	options.has_lease = true;
	queue_api_lease(fcinfo, RECEIVE_ARG_LEASE, &options.lease);
	if (!PG_ARGISNULL(RECEIVE_ARG_CONSUMER))
		refuse_consumer(queue);
	decode_max_messages(fcinfo, RECEIVE_ARG_MAX_MESSAGES, &options);
	decode_wait(fcinfo, RECEIVE_ARG_WAIT, &options);
	if (!PG_ARGISNULL(RECEIVE_ARG_CONDITION))
		options.condition =
			text_to_cstring(PG_GETARG_TEXT_PP(RECEIVE_ARG_CONDITION));
	run(fcinfo, queue, InvalidOid, &options);
	return (Datum) 0;
}

static void
dequeue_call(FunctionCallInfo fcinfo, int base, Oid payload_type)
{
	QueueDequeueOptions options;
	Oid			queue = queue_api_queue(fcinfo, base + ARG_QUEUE);

	decode_options(fcinfo, base, &options);
	refuse_options(fcinfo, base, &options);
	run(fcinfo, queue, payload_type, &options);
}

static void
run(FunctionCallInfo fcinfo, Oid queue, Oid payload_type,
	const QueueDequeueOptions *options)
{
	DeliverState state;

	state.queue = queue;
	state.payload_type = payload_type;
	state.receipts = options->has_lease ? 1 : 0;
	init_result(fcinfo, options->max_messages, &state);
	(void) queue_dequeue(queue, options, deliver_message, &state);
	if (state.row_context != NULL)
		MemoryContextDelete(state.row_context);
}

/* queue._dequeue(): queue.dequeue() with all defaults (plain.c). */
Datum
queue_internal_dequeue(PG_FUNCTION_ARGS)
{
	QueueDequeueOptions options;
	Oid			queue;

	queue_require_preload();
	queue_plain_check_execute(QUEUE_PLAIN_DEQUEUE);
	queue = queue_api_queue(fcinfo, ARG_QUEUE);
	init_options(&options);
	run(fcinfo, queue, InvalidOid, &options);
	return (Datum) 0;
}

/* ---------------------------------------------------------------------- */
/* Arguments                                                              */
/* ---------------------------------------------------------------------- */

/* What dequeue(queue) does. */
static void
init_options(QueueDequeueOptions *options)
{
	memset(options, 0, sizeof(QueueDequeueOptions));
	options->mode = QUEUE_MODE_REMOVE;
	options->navigation = QUEUE_NAV_FIRST_MESSAGE;
	options->max_messages = 1;
}

/* NULL means the default, but for wait, where it means for ever. */
static void
decode_options(FunctionCallInfo fcinfo, int base,
			   QueueDequeueOptions *options)
{
	init_options(options);

	if (!PG_ARGISNULL(base + ARG_MODE))
		options->mode = queue_api_word("mode",
									   PG_GETARG_DATUM(base + ARG_MODE),
									   mode_words, lengthof(mode_words));
	if (!PG_ARGISNULL(base + ARG_NAVIGATION))
		options->navigation =
			queue_api_word("navigation",
						   PG_GETARG_DATUM(base + ARG_NAVIGATION),
						   navigation_words, lengthof(navigation_words));
	decode_wait(fcinfo, base + ARG_WAIT, options);
	decode_criteria(fcinfo, base, options);

	decode_max_messages(fcinfo, base + ARG_MAX_MESSAGES, options);
}

static void
decode_max_messages(FunctionCallInfo fcinfo, int argno,
					QueueDequeueOptions *options)
{
	int64		max_messages;

	if (PG_ARGISNULL(argno))
		return;
	max_messages = PG_GETARG_INT64(argno);
	if (max_messages < 1 || max_messages > QUEUE_MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for argument \"%s\": " INT64_FORMAT,
						"max_messages", max_messages),
				 errhint("Allowed values are 1 to %d.", QUEUE_MAX_BATCH)));
	options->max_messages = (int) max_messages;
}

static void
decode_wait(FunctionCallInfo fcinfo, int argno, QueueDequeueOptions *options)
{
	Interval   *wait;
	Interval	zero;

	if (PG_ARGISNULL(argno))
	{
		options->wait_forever = true;
		return;
	}
	wait = PG_GETARG_INTERVAL_P(argno);
	if (queue_interval_is_forever(wait))
	{
		options->wait_forever = true;
		return;
	}
	options->wait = *wait;

	/* the usual case is zero */
	if (wait->time >= 0 && wait->day == 0 && wait->month == 0)
		return;
	memset(&zero, 0, sizeof(zero));
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp,
										  IntervalPGetDatum(wait),
										  IntervalPGetDatum(&zero))) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be negative", "wait"),
				 errhint("Use '0' not to wait, or NULL to wait for ever.")));
}

void
queue_api_lease(FunctionCallInfo fcinfo, int argno, Interval *lease)
{
	TimestampTz now;

	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be NULL", "lease")));
	*lease = *PG_GETARG_INTERVAL_P(argno);

	/* a month less 29 days is nothing in February */
	now = queue_clock_now();
	if (queue_interval_not_finite(lease) || queue_interval_sign(lease) <= 0 ||
		queue_interval_add(now, lease, "lease") <= now)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("lease must be finite, and greater than zero"),
				 errhint("It is the time after which the message is delivered again, such as '30 seconds'.")));
}

static void
decode_criteria(FunctionCallInfo fcinfo, int base,
				QueueDequeueOptions *options)
{
	if (!PG_ARGISNULL(base + ARG_MSGID))
	{
		options->has_msgid = true;
		options->msgid = *PG_GETARG_UUID_P(base + ARG_MSGID);
	}
	if (!PG_ARGISNULL(base + ARG_CORRELATION))
		options->correlation =
			text_to_cstring(PG_GETARG_TEXT_PP(base + ARG_CORRELATION));
	if (!PG_ARGISNULL(base + ARG_CONDITION))
		options->condition =
			text_to_cstring(PG_GETARG_TEXT_PP(base + ARG_CONDITION));

	if (options->has_msgid &&
		(options->correlation != NULL || options->condition != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_CRITERIA_CONFLICT),
				 errmsg("cannot give a msgid together with a correlation or a condition"),
				 errhint("A msgid names one message; leave the others NULL.")));
}

/* What cannot be honoured is refused, not overlooked. */
static void
refuse_options(FunctionCallInfo fcinfo, int base,
			   const QueueDequeueOptions *options)
{
	Oid			queue = PG_GETARG_OID(base + ARG_QUEUE);

	if (!PG_ARGISNULL(base + ARG_CONSUMER))
		refuse_consumer(queue);
	if (options->navigation != QUEUE_NAV_FIRST_MESSAGE &&
		options->navigation != QUEUE_NAV_NEXT_MESSAGE)
		refuse_navigation(queue);

	/* to browse changes nothing that could become visible */
	if (!PG_ARGISNULL(base + ARG_VISIBILITY) &&
		options->mode != QUEUE_MODE_BROWSE)
		queue_api_check_visibility(PG_GETARG_DATUM(base + ARG_VISIBILITY));
	if (!PG_ARGISNULL(base + ARG_DELIVERY_MODE) &&
		queue_api_word("delivery_mode",
					   PG_GETARG_DATUM(base + ARG_DELIVERY_MODE),
					   delivery_mode_words,
					   lengthof(delivery_mode_words)) == 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("delivery_mode \"buffered\" is not supported in this version"),
				 errhint("Use \"persistent\".")));
}

static void
refuse_consumer(Oid queue)
{
	(void) queue_catalog_find(queue, false);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("queue \"%s\" has a single consumer and takes no consumer name",
					queue_catalog_name(queue)),
			 errhint("Leave consumer NULL.")));
}

static void
refuse_navigation(Oid queue)
{
	(void) queue_catalog_find(queue, false);
	ereport(ERROR,
			(errcode(ERRCODE_QUEUE_NOT_GROUPED),
			 errmsg("messages of queue \"%s\" are not grouped by transaction",
					queue_catalog_name(queue)),
			 errhint("Use navigation \"first_message\" or \"next_message\".")));
}

static void
check_payload_type(Oid queue, const QueueTable *table, Oid payload_type)
{
	/* whether there is a payload at all, queue_dequeue() will see */
	if (payload_type == table->payload_type ||
		!OidIsValid(table->payload_type))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_QUEUE_PAYLOAD_MISMATCH),
			 errmsg("type %s is not the payload type of queue \"%s\"",
					format_type_be(payload_type), queue_catalog_name(queue)),
			 errdetail("The queue's payload type is %s.",
					   format_type_be(table->payload_type)),
			 errhint("Call queue.dequeue_as(NULL::%s, ...).",
					 format_type_be(table->payload_type))));
}

/* ---------------------------------------------------------------------- */
/* Result                                                                 */
/* ---------------------------------------------------------------------- */

/*
 * As InitMaterializedSRF() does it, but the rows have the caller's descriptor
 * itself: a copy of it would be made, compared and freed for each message.
 */
static void
init_result(FunctionCallInfo fcinfo, int max_messages, DeliverState *state)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext old_context;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		!(rsinfo->allowedModes & SFRM_Materialize) ||
		rsinfo->expectedDesc == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	old_context =
		MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	state->store =
		tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0,
							  false, work_mem);
	MemoryContextSwitchTo(old_context);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = state->store;
	rsinfo->setDesc = NULL;		/* what the caller expects */
	state->desc = rsinfo->expectedDesc;
	if (state->desc->natts != state->receipts + NUM_RESULT_COLUMNS ||
		TupleDescAttr(state->desc, state->receipts + RESULT_PAYLOAD)->atttypid !=
		(OidIsValid(state->payload_type) ? state->payload_type : JSONBOID))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("unexpected row type of the result of dequeue")));

	state->row_context = NULL;
	if (max_messages > 1)
		state->row_context = AllocSetContextCreate(CurrentMemoryContext,
												   "queue result row",
												   ALLOCSET_SMALL_SIZES);
}

/* QueueDeliver: put a message into the result. */
static void
deliver_message(void *context, const QueueTable *table,
				const QueueMessage *message)
{
	DeliverState *state = context;
	MemoryContext old_context = NULL;
	Datum		row[NUM_RESULT_COLUMNS + 1];
	bool		row_nulls[NUM_RESULT_COLUMNS + 1];
	Datum	   *values = &row[state->receipts];
	bool	   *nulls = &row_nulls[state->receipts];
	Datum		msgid = message->values[QUEUE_COL_MSGID];

	if (state->row_context != NULL)
		old_context = MemoryContextSwitchTo(state->row_context);

	for (int i = 0; i < lengthof(plain_columns); i++)
	{
		values[plain_columns[i].result] =
			message->values[plain_columns[i].column];
		nulls[plain_columns[i].result] =
			message->nulls[plain_columns[i].column];
	}
	values[RESULT_ENQ_TIME] =
		TimestampTzGetDatum(queue_clock_msgid_time(DatumGetUUIDP(msgid)));
	nulls[RESULT_ENQ_TIME] = false;
	show_payload(state, table, message, &values[RESULT_PAYLOAD],
				 &nulls[RESULT_PAYLOAD]);
	show_sender(message, &values[RESULT_SENDER], &nulls[RESULT_SENDER]);

	if (state->receipts > 0)
	{
		row[0] = message->values[QUEUE_COL_RECEIPT];
		row_nulls[0] = false;
	}

	tuplestore_putvalues(state->store, state->desc, row, row_nulls);

	if (old_context != NULL)
	{
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(state->row_context);
	}
}

static void
show_payload(const DeliverState *state, const QueueTable *table,
			 const QueueMessage *message, Datum *value, bool *isnull)
{
	/* the type may have changed before the queue was locked */
	if (OidIsValid(state->payload_type))
		check_payload_type(state->queue, table, state->payload_type);

	*value = message->values[QUEUE_COL_PAYLOAD];
	*isnull = message->nulls[QUEUE_COL_PAYLOAD] ||
		!OidIsValid(table->payload_type);
	if (!*isnull && !OidIsValid(state->payload_type))
		*value = queue_payload_to_jsonb(table, *value);
}

static void
show_sender(const QueueMessage *message, Datum *value, bool *isnull)
{
	TupleDesc	desc;
	Datum		values[3];
	bool		nulls[3];

	*value = (Datum) 0;
	*isnull = message->nulls[QUEUE_COL_SENDER_NAME] &&
		message->nulls[QUEUE_COL_SENDER_ADDRESS] &&
		message->nulls[QUEUE_COL_SENDER_PROTOCOL];
	if (*isnull)
		return;

	values[0] = message->values[QUEUE_COL_SENDER_NAME];
	nulls[0] = message->nulls[QUEUE_COL_SENDER_NAME];
	values[1] = message->values[QUEUE_COL_SENDER_ADDRESS];
	nulls[1] = message->nulls[QUEUE_COL_SENDER_ADDRESS];
	values[2] = message->values[QUEUE_COL_SENDER_PROTOCOL];
	nulls[2] = message->nulls[QUEUE_COL_SENDER_PROTOCOL];
	desc = lookup_rowtype_tupdesc(queue_catalog_type("agent"), -1);
	Assert(desc->natts == 3);
	*value = HeapTupleGetDatum(heap_form_tuple(desc, values, nulls));
	ReleaseTupleDesc(desc);
}
