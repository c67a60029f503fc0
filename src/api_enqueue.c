/*-------------------------------------------------------------------------
 *
 * api_enqueue.c
 *	  SQL-callable functions that enqueue, and the triggers of queue views.
 *
 * What a producer says of a message comes in three shapes: the arguments of
 * queue.enqueue(), elements of queue.message_properties, and columns of a
 * queue's view.  Each is brought into the first shape, an array of
 * NullableDatum indexed by EnqueueArg, and decoded once.  The composites are
 * read by the names of their columns, and the columns' types are checked: a
 * view's owner may rename them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "api.h"
#include "clock.h"
#include "compat.h"
#include "enqueue.h"
#include "errors.h"
#include "payload.h"
#include "plain.h"
#include "shmem.h"

/* The arguments of queue.enqueue() after queue and payload, in order. */
typedef enum EnqueueArg
{
	ARG_PRIORITY,
	ARG_DELAY,
	ARG_DELIVER_AT,
	ARG_EXPIRATION,
	ARG_CORRELATION,
	ARG_PROPERTIES,
	ARG_RECIPIENTS,
	ARG_EXCEPTION_QUEUE,
	ARG_SENDER,
	ARG_GROUP_KEY,
	ARG_DEDUP_KEY,
	ARG_REPLY_TO,
	ARG_ROUTING_KEY,
	ARG_RELATIVE_MSGID,
	ARG_SEQUENCE_DEVIATION,
	ARG_VISIBILITY,
	ARG_DELIVERY_MODE
} EnqueueArg;

#define NUM_ENQUEUE_ARGS	(ARG_DELIVERY_MODE + 1)

/* the first of them in a call */
#define FIRST_OPTION_ARG	2

typedef struct EnqueueArgInfo
{
	const char *name;
	Oid			type;			/* of the argument; InvalidOid: not checked
								 * here */
} EnqueueArgInfo;

static const EnqueueArgInfo enqueue_args[] = {
	[ARG_PRIORITY] = {"priority", INT8OID},
	[ARG_DELAY] = {"delay", INTERVALOID},
	[ARG_DELIVER_AT] = {"deliver_at", TIMESTAMPTZOID},
	[ARG_EXPIRATION] = {"expiration", INTERVALOID},
	[ARG_CORRELATION] = {"correlation", TEXTOID},
	[ARG_PROPERTIES] = {"properties", JSONBOID},
	[ARG_RECIPIENTS] = {"recipients", InvalidOid},
	[ARG_EXCEPTION_QUEUE] = {"exception_queue", TEXTOID},
	[ARG_SENDER] = {"sender", TEXTOID},
	[ARG_GROUP_KEY] = {"group_key", TEXTOID},
	[ARG_DEDUP_KEY] = {"dedup_key", TEXTOID},
	[ARG_REPLY_TO] = {"reply_to", TEXTOID},
	[ARG_ROUTING_KEY] = {"routing_key", TEXTOID},
	[ARG_RELATIVE_MSGID] = {"relative_msgid", UUIDOID},
	[ARG_SEQUENCE_DEVIATION] = {"sequence_deviation", TEXTOID},
	[ARG_VISIBILITY] = {"visibility", TEXTOID},
	[ARG_DELIVERY_MODE] = {"delivery_mode", TEXTOID}
};

StaticAssertDecl(lengthof(enqueue_args) == NUM_ENQUEUE_ARGS,
				 "one entry for each argument");

/* Where the arguments are in a row; 0 where it has none of that name. */
typedef struct OptionColumns
{
	AttrNumber	attnum[NUM_ENQUEUE_ARGS];
	bool		short_priority; /* int4 */
} OptionColumns;

/* Columns of a view that the engine fills. */
typedef enum FilledColumn
{
	FILLED_MSGID,
	FILLED_STATE,
	FILLED_ENQ_TIME,
	FILLED_EXPIRES_AT,
	FILLED_RETRY_COUNT,
	FILLED_ORIGINAL_MSGID,
	FILLED_GROUP_ID,
	FILLED_STEP
} FilledColumn;

#define NUM_FILLED_COLUMNS	(FILLED_STEP + 1)

typedef struct FilledColumnInfo
{
	const char *name;
	Oid			type;
} FilledColumnInfo;

static const FilledColumnInfo filled_columns[] = {
	[FILLED_MSGID] = {"msgid", UUIDOID},
	[FILLED_STATE] = {"state", TEXTOID},
	[FILLED_ENQ_TIME] = {"enq_time", TIMESTAMPTZOID},
	[FILLED_EXPIRES_AT] = {"expires_at", TIMESTAMPTZOID},
	[FILLED_RETRY_COUNT] = {"retry_count", INT4OID},
	[FILLED_ORIGINAL_MSGID] = {"original_msgid", UUIDOID},
	[FILLED_GROUP_ID] = {"group_id", UUIDOID},
	[FILLED_STEP] = {"step", INT4OID}
};

StaticAssertDecl(lengthof(filled_columns) == NUM_FILLED_COLUMNS,
				 "one entry for each column");

/* A view's columns, kept for the query in fn_extra. */
typedef struct ViewColumns
{
	OptionColumns options;
	AttrNumber	payload;
	AttrNumber	filled[NUM_FILLED_COLUMNS];
	Bitmapset  *strange;		/* columns that are none of these */
} ViewColumns;

static const QueueWord visibility_words[] = {
	{"on_commit", 0}, {"immediate", 1}
};
static const QueueWord delivery_mode_words[] = {
	{"persistent", 0}, {"buffered", 1}
};
static const QueueWord sequence_deviation_words[] = {
	{"before", 0}, {"top", 1}
};

PG_FUNCTION_INFO_V1(queue_enqueue_text);
PG_FUNCTION_INFO_V1(queue_enqueue_any);
PG_FUNCTION_INFO_V1(queue_internal_enqueue_text);
PG_FUNCTION_INFO_V1(queue_internal_enqueue_any);
PG_FUNCTION_INFO_V1(queue_enqueue_array_text);
PG_FUNCTION_INFO_V1(queue_enqueue_array_any);
PG_FUNCTION_INFO_V1(queue_internal_view_insert);
PG_FUNCTION_INFO_V1(queue_internal_view_refuse);
PG_FUNCTION_INFO_V1(queue_internal_new_msgid);
PG_FUNCTION_INFO_V1(queue_enq_time);

static Oid	payload_argtype(FunctionCallInfo fcinfo);
static Datum enqueue_call(FunctionCallInfo fcinfo, Oid payload_type);
static Datum enqueue_plain(FunctionCallInfo fcinfo, Oid payload_type);
static void decode_options(const NullableDatum *args,
						   QueueEnqueueOptions *options);
static void decode_strings(const NullableDatum *args,
						   QueueEnqueueOptions *options);
static const char *decode_string(const NullableDatum *arg);
static int32 decode_priority(int64 priority);
static void refuse_options(const NullableDatum *args);
static void refuse_option(const char *what, const char *hint);
static Datum enqueue_array(const QueueDesc *queue, ArrayType *payloads,
						   FunctionCallInfo fcinfo);
static int	one_dimension(ArrayType *array, const char *argument);
static QueueEnqueueOptions *decode_properties(ArrayType *properties,
											  int count);
static void map_options(TupleDesc desc, OptionColumns *columns);
static inline bool same_name(const char *a, const char *b);
static bool option_type_matches(EnqueueArg arg, Oid type,
								OptionColumns *columns);
static void fetch_options(const OptionColumns *columns, const Datum *values,
						  const bool *nulls, NullableDatum *args);
static void check_trigger(FunctionCallInfo fcinfo);
static ViewColumns *view_columns(FunctionCallInfo fcinfo, Relation view);
static bool is_known_column(const ViewColumns *columns, AttrNumber attnum);
static void refuse_filled(Relation view, const ViewColumns *columns,
						  const bool *nulls);
static void refuse_strange(Relation view, const ViewColumns *columns,
						   const bool *nulls);
static void fill_row(const ViewColumns *columns, const QueueMessage *message,
					 Datum *values, bool *nulls);
static void fill_column(AttrNumber attnum, Datum value, bool isnull,
						Datum *values, bool *nulls);

/* ---------------------------------------------------------------------- */
/* Shared with api_dequeue.c                                              */
/* ---------------------------------------------------------------------- */

int
queue_api_word(const char *argument, Datum value, const QueueWord *words,
			   int num_words)
{
	text	   *string = DatumGetTextPP(value);
	int			length = VARSIZE_ANY_EXHDR(string);
	StringInfoData allowed;

	/* as it is written in defaults and in most calls */
	for (int i = 0; i < num_words; i++)
	{
		if (strncmp(words[i].word, VARDATA_ANY(string), length) == 0 &&
			words[i].word[length] == '\0')
			return words[i].value;
	}
	for (int i = 0; i < num_words; i++)
	{
		if (strlen(words[i].word) == length &&
			pg_strncasecmp(words[i].word, VARDATA_ANY(string), length) == 0)
			return words[i].value;
	}

	initStringInfo(&allowed);
	for (int i = 0; i < num_words; i++)
		appendStringInfo(&allowed, "%s\"%s\"",
						 i == 0 ? "" : (i == num_words - 1 ? " and " : ", "),
						 words[i].word);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for argument \"%s\": \"%s\"", argument,
					text_to_cstring(string)),
			 errhint("Allowed values are %s.", allowed.data)));
	return 0;
}

Oid
queue_api_queue(FunctionCallInfo fcinfo, int argno)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "queue"),
				 errhint("Name a queue; the view queue.queues lists them.")));
	return PG_GETARG_OID(argno);
}

void
queue_api_check_visibility(Datum value)
{
	if (queue_api_word("visibility", value, visibility_words,
					   lengthof(visibility_words)) == 0)
		return;

	/*
	 * A statement of its own commits at its end, which is what immediate
	 * wants.
	 */
	if (IsInTransactionBlock(true))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("visibility \"immediate\" is not supported inside a transaction block"),
				 errhint("Use \"on_commit\", or make the call outside a transaction block.")));
}

/* ---------------------------------------------------------------------- */
/* queue.enqueue()                                                        */
/* ---------------------------------------------------------------------- */

/* The payload is text, for the payload type's input function. */
Datum
queue_enqueue_text(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	return enqueue_call(fcinfo, TEXTOID);
}

/* The payload has a type of its own. */
Datum
queue_enqueue_any(PG_FUNCTION_ARGS)
{
	Oid			type;

	queue_require_preload();
	type = payload_argtype(fcinfo);
	return enqueue_call(fcinfo, type);
}

static Oid
payload_argtype(FunctionCallInfo fcinfo)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of argument \"%s\"",
						"payload")));
	return type;
}

static Datum
enqueue_call(FunctionCallInfo fcinfo, Oid payload_type)
{
	QueueDesc  *queue;
	QueueEnqueueOptions options;
	QueueMessage message;

	queue = queue_enqueue_begin(queue_api_queue(fcinfo, 0), true);
	queue_enqueue_options_init(&options);
	decode_options(&fcinfo->args[FIRST_OPTION_ARG], &options);
	queue_enqueue_one(queue, fcinfo->args[1].value, PG_ARGISNULL(1),
					  payload_type, &options, &message);
	PG_RETURN_DATUM(message.values[QUEUE_COL_MSGID]);
}

/* queue._enqueue(): queue.enqueue() with no more than a priority (plain.c). */
Datum
queue_internal_enqueue_text(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	queue_plain_check_execute(QUEUE_PLAIN_ENQUEUE_TEXT);
	return enqueue_plain(fcinfo, TEXTOID);
}

Datum
queue_internal_enqueue_any(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	queue_plain_check_execute(QUEUE_PLAIN_ENQUEUE_ANY);
	return enqueue_plain(fcinfo, payload_argtype(fcinfo));
}

static Datum
enqueue_plain(FunctionCallInfo fcinfo, Oid payload_type)
{
	QueueDesc  *queue;
	QueueEnqueueOptions options;
	QueueMessage message;

	queue = queue_enqueue_begin(queue_api_queue(fcinfo, 0), true);
	queue_enqueue_options_init(&options);
	if (!PG_ARGISNULL(2))
		options.priority = decode_priority(PG_GETARG_INT64(2));
	queue_enqueue_one(queue, fcinfo->args[1].value, PG_ARGISNULL(1),
					  payload_type, &options, &message);
	PG_RETURN_DATUM(message.values[QUEUE_COL_MSGID]);
}

/* NULL always means that nothing was said. */
static void
decode_options(const NullableDatum *args, QueueEnqueueOptions *options)
{
	if (!args[ARG_PRIORITY].isnull)
		options->priority =
			decode_priority(DatumGetInt64(args[ARG_PRIORITY].value));
	if (!args[ARG_DELAY].isnull)
	{
		options->has_delay = true;
		options->delay = *DatumGetIntervalP(args[ARG_DELAY].value);
	}
	if (!args[ARG_DELIVER_AT].isnull)
	{
		options->has_deliver_at = true;
		options->deliver_at = DatumGetTimestampTz(args[ARG_DELIVER_AT].value);
	}
	if (!args[ARG_EXPIRATION].isnull)
	{
		options->has_expiration = true;
		options->expiration = *DatumGetIntervalP(args[ARG_EXPIRATION].value);
	}
	if (!args[ARG_PROPERTIES].isnull)
	{
		options->has_properties = true;
		options->properties = args[ARG_PROPERTIES].value;
	}
	decode_strings(args, options);
	refuse_options(args);
}

static void
decode_strings(const NullableDatum *args, QueueEnqueueOptions *options)
{
	options->correlation = decode_string(&args[ARG_CORRELATION]);
	options->exception_queue = decode_string(&args[ARG_EXCEPTION_QUEUE]);
	options->sender_name = decode_string(&args[ARG_SENDER]);
	options->group_key = decode_string(&args[ARG_GROUP_KEY]);
	options->reply_to = decode_string(&args[ARG_REPLY_TO]);
	options->routing_key = decode_string(&args[ARG_ROUTING_KEY]);
}

static const char *
decode_string(const NullableDatum *arg)
{
	return arg->isnull ? NULL : TextDatumGetCString(arg->value);
}

static int32
decode_priority(int64 priority)
{
	if (priority < PG_INT32_MIN || priority > PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("priority " INT64_FORMAT " is out of range", priority),
				 errhint("Priorities are integers from %d to %d; the lowest is delivered first.",
						 PG_INT32_MIN, PG_INT32_MAX)));
	return (int32) priority;
}

/* What cannot be honoured is refused, not overlooked. */
static void
refuse_options(const NullableDatum *args)
{
	if (!args[ARG_RECIPIENTS].isnull &&
		ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(args[ARG_RECIPIENTS].value)),
					   ARR_DIMS(DatumGetArrayTypeP(args[ARG_RECIPIENTS].value))) > 0)
		refuse_option("recipients",
					  "The queue has a single consumer: leave recipients NULL.");
	if (!args[ARG_DEDUP_KEY].isnull)
		refuse_option("dedup_key", "Leave dedup_key NULL.");
	if (!args[ARG_RELATIVE_MSGID].isnull)
		refuse_option("relative_msgid",
					  "Leave relative_msgid NULL; use priority to order messages.");
	if (!args[ARG_SEQUENCE_DEVIATION].isnull)
	{
		(void) queue_api_word("sequence_deviation",
							  args[ARG_SEQUENCE_DEVIATION].value,
							  sequence_deviation_words,
							  lengthof(sequence_deviation_words));
		refuse_option("sequence_deviation",
					  "Leave sequence_deviation NULL; use priority to order messages.");
	}
	if (!args[ARG_VISIBILITY].isnull)
		queue_api_check_visibility(args[ARG_VISIBILITY].value);
	if (!args[ARG_DELIVERY_MODE].isnull &&
		queue_api_word("delivery_mode", args[ARG_DELIVERY_MODE].value,
					   delivery_mode_words,
					   lengthof(delivery_mode_words)) != 0)
		refuse_option("delivery_mode \"buffered\"",
					  "Use \"persistent\".");
}

static void
refuse_option(const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s is not supported in this version", what),
			 errhint("%s", hint)));
}

/* ---------------------------------------------------------------------- */
/* queue.enqueue_array()                                                  */
/* ---------------------------------------------------------------------- */

Datum
queue_enqueue_array_text(PG_FUNCTION_ARGS)
{
	QueueDesc  *queue;

	queue_require_preload();
	queue = queue_enqueue_begin(queue_api_queue(fcinfo, 0), true);
	if (PG_ARGISNULL(1))
		return enqueue_array(queue, NULL, fcinfo);
	return enqueue_array(queue,
						 queue_payload_parse_array(queue,
												   PG_GETARG_TEXT_PP(1)),
						 fcinfo);
}

Datum
queue_enqueue_array_any(PG_FUNCTION_ARGS)
{
	QueueDesc  *queue;

	queue_require_preload();
	queue = queue_enqueue_begin(queue_api_queue(fcinfo, 0), true);
	return enqueue_array(queue,
						 PG_ARGISNULL(1) ? NULL : PG_GETARG_ARRAYTYPE_P(1),
						 fcinfo);
}

/*
 * All or nothing.  An element that is NULL is a message whose payload is
 * NULL.
 */
static Datum
enqueue_array(const QueueDesc *queue, ArrayType *payloads,
			  FunctionCallInfo fcinfo)
{
	Oid			type;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	int			count;
	Datum	   *values;
	bool	   *nulls;
	QueueEnqueueOptions *options;
	pg_uuid_t  *msgids;
	Datum	   *result;

	if (payloads == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "payloads"),
				 errhint("Elements of it may be NULL.")));
	count = one_dimension(payloads, "payloads");
	options = decode_properties(PG_ARGISNULL(2) ? NULL :
								PG_GETARG_ARRAYTYPE_P(2), count);
	if (count == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(UUIDOID));

	type = ARR_ELEMTYPE(payloads);
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(payloads, type, typlen, typbyval, typalign, &values,
					  &nulls, &count);
	msgids = palloc_array(pg_uuid_t, count);
	queue_enqueue_many(queue, count, values, nulls, type, options,
					   PG_ARGISNULL(2), msgids);

	result = palloc_array(Datum, count);
	for (int i = 0; i < count; i++)
		result[i] = UUIDPGetDatum(&msgids[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(result, count, UUIDOID, UUID_LEN,
										  false, TYPALIGN_CHAR));
}

/* The number of elements; 0 to QUEUE_MAX_BATCH. */
static int
one_dimension(ArrayType *array, const char *argument)
{
	int			count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("argument \"%s\" must be one-dimensional", argument)));
	if (count > QUEUE_MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many elements in argument \"%s\"", argument),
				 errdetail("There are %d; the limit is %d.", count,
						   QUEUE_MAX_BATCH)));
	return count;
}

/* One for each message, or one for all if there are none. */
static QueueEnqueueOptions *
decode_properties(ArrayType *properties, int count)
{
	QueueEnqueueOptions *options;
	NullableDatum args[NUM_ENQUEUE_ARGS];
	OptionColumns columns;
	TupleDesc	desc;
	Datum	   *elements;
	bool	   *element_nulls;
	Datum	   *values;
	bool	   *nulls;
	int			num_elements;

	options = palloc_array(QueueEnqueueOptions,
						   properties == NULL ? 1 : Max(count, 1));
	queue_enqueue_options_init(&options[0]);
	if (properties == NULL)
		return options;

	num_elements = one_dimension(properties, "properties");
	if (num_elements != count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("arguments \"%s\" and \"%s\" differ in length",
						"payloads", "properties"),
				 errdetail("There are %d payloads and %d elements of properties.",
						   count, num_elements),
				 errhint("Give one element for each payload, or NULL.")));
	deconstruct_array(properties, ARR_ELEMTYPE(properties), -1, false,
					  TYPALIGN_DOUBLE, &elements, &element_nulls,
					  &num_elements);
	desc = lookup_rowtype_tupdesc(ARR_ELEMTYPE(properties), -1);
	map_options(desc, &columns);
	values = palloc_array(Datum, desc->natts);
	nulls = palloc_array(bool, desc->natts);

	for (int i = 0; i < num_elements; i++)
	{
		HeapTupleData tuple;

		queue_enqueue_options_init(&options[i]);
		if (element_nulls[i])
			continue;
		memset(&tuple, 0, sizeof(tuple));
		tuple.t_data = DatumGetHeapTupleHeader(elements[i]);
		tuple.t_len = HeapTupleHeaderGetDatumLength(tuple.t_data);
		ItemPointerSetInvalid(&tuple.t_self);
		heap_deform_tuple(&tuple, desc, values, nulls);
		fetch_options(&columns, values, nulls, args);
		decode_options(args, &options[i]);
	}
	ReleaseTupleDesc(desc);
	return options;
}

/* ---------------------------------------------------------------------- */
/* Options in rows                                                        */
/* ---------------------------------------------------------------------- */

/* Find the columns by their names; ERROR if one has a strange type. */
static void
map_options(TupleDesc desc, OptionColumns *columns)
{
	memset(columns, 0, sizeof(OptionColumns));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		for (int arg = 0; arg < NUM_ENQUEUE_ARGS; arg++)
		{
			if (!same_name(NameStr(attribute->attname),
						   enqueue_args[arg].name))
				continue;
			if (!option_type_matches(arg, attribute->atttypid, columns))
				ereport(ERROR,
						(errcode(ERRCODE_QUEUE_DAMAGED),
						 errmsg("column \"%s\" has unexpected type %s",
								NameStr(attribute->attname),
								format_type_be(attribute->atttypid)),
						 errdetail("The columns of a queue's view must keep their names.")));
			columns->attnum[arg] = i + 1;
		}
	}
}

/* Most names differ in the first letter: a statement maps all columns. */
static inline bool
same_name(const char *a, const char *b)
{
	return a[0] == b[0] && strcmp(a, b) == 0;
}

static bool
option_type_matches(EnqueueArg arg, Oid type, OptionColumns *columns)
{
	if (arg == ARG_PRIORITY && type == INT4OID)
	{
		columns->short_priority = true;
		return true;
	}
	if (arg == ARG_RECIPIENTS)
		return type == get_array_type(queue_catalog_type("agent"));
	return type == enqueue_args[arg].type;
}

/* Bring a row's values into the order of the arguments. */
static void
fetch_options(const OptionColumns *columns, const Datum *values,
			  const bool *nulls, NullableDatum *args)
{
	for (int arg = 0; arg < NUM_ENQUEUE_ARGS; arg++)
	{
		AttrNumber	attnum = columns->attnum[arg];

		args[arg].isnull = attnum == 0 || nulls[attnum - 1];
		args[arg].value = args[arg].isnull ? (Datum) 0 : values[attnum - 1];
	}
	if (columns->short_priority && !args[ARG_PRIORITY].isnull)
		args[ARG_PRIORITY].value =
			Int64GetDatum((int64) DatumGetInt32(args[ARG_PRIORITY].value));
}

/* ---------------------------------------------------------------------- */
/* Triggers of a queue's view                                             */
/* ---------------------------------------------------------------------- */

/*
 * INSTEAD OF INSERT.  The queue is the view that the trigger fires on, never
 * one named by an argument: anyone may hang this function on a view of their
 * own.  The executor has checked the privilege to insert.  Returns the row as
 * RETURNING is to show it.
 */
Datum
queue_internal_view_insert(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	view;
	TupleDesc	desc;
	ViewColumns *columns;
	QueueDesc  *queue;
	QueueEnqueueOptions options;
	QueueMessage message;
	NullableDatum args[NUM_ENQUEUE_ARGS];
	Datum	   *values;
	bool	   *nulls;
	bool		payload_null;

	queue_require_preload();
	check_trigger(fcinfo);
	view = trigger->tg_relation;
	desc = RelationGetDescr(view);
	queue = queue_enqueue_begin(RelationGetRelid(view), false);
	columns = view_columns(fcinfo, view);

	values = palloc_array(Datum, desc->natts);
	nulls = palloc_array(bool, desc->natts);
	heap_deform_tuple(trigger->tg_trigtuple, desc, values, nulls);
	refuse_filled(view, columns, nulls);
	refuse_strange(view, columns, nulls);

	queue_enqueue_options_init(&options);
	fetch_options(&columns->options, values, nulls, args);
	decode_options(args, &options);

	payload_null = nulls[columns->payload - 1];
	queue_enqueue_one(queue, values[columns->payload - 1], payload_null,
					  TupleDescAttr(desc, columns->payload - 1)->atttypid,
					  &options, &message);

	fill_row(columns, &message, values, nulls);
	return PointerGetDatum(heap_form_tuple(desc, values, nulls));
}

static void
check_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_INSTEAD(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function queue._view_insert() must be called as an INSTEAD OF INSERT trigger for each row")));
}

static ViewColumns *
view_columns(FunctionCallInfo fcinfo, Relation view)
{
	TupleDesc	desc = RelationGetDescr(view);
	ViewColumns *columns = fcinfo->flinfo->fn_extra;

	if (columns != NULL)
		return columns;
	columns = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
									 sizeof(ViewColumns));
	map_options(desc, &columns->options);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (same_name(NameStr(attribute->attname), "payload"))
			columns->payload = i + 1;
		for (int j = 0; j < NUM_FILLED_COLUMNS; j++)
		{
			if (same_name(NameStr(attribute->attname),
						  filled_columns[j].name) &&
				attribute->atttypid == filled_columns[j].type)
				columns->filled[j] = i + 1;
		}
	}
	if (columns->payload == 0)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("view %s has lost its column \"payload\"",
						queue_catalog_name(RelationGetRelid(view))),
				 errhint("Enqueue with queue.enqueue().")));
	for (int i = 0; i < desc->natts; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (!is_known_column(columns, i + 1))
			columns->strange = bms_add_member(columns->strange, i);
		MemoryContextSwitchTo(old);
	}
	fcinfo->flinfo->fn_extra = columns;
	return columns;
}

static bool
is_known_column(const ViewColumns *columns, AttrNumber attnum)
{
	if (columns->payload == attnum)
		return true;
	for (int i = 0; i < NUM_ENQUEUE_ARGS; i++)
	{
		if (columns->options.attnum[i] == attnum)
			return true;
	}
	for (int i = 0; i < NUM_FILLED_COLUMNS; i++)
	{
		if (columns->filled[i] == attnum)
			return true;
	}
	return false;
}

/* Nobody chooses what the engine fills in. */
static void
refuse_filled(Relation view, const ViewColumns *columns, const bool *nulls)
{
	for (int i = 0; i < NUM_FILLED_COLUMNS; i++)
	{
		AttrNumber	attnum = columns->filled[i];

		if (attnum != 0 && !nulls[attnum - 1])
			ereport(ERROR,
					(errcode(ERRCODE_GENERATED_ALWAYS),
					 errmsg("cannot insert a value into column \"%s\" of queue \"%s\"",
							filled_columns[i].name,
							queue_catalog_name(RelationGetRelid(view))),
					 errhint("Leave the column out; it is given by the queue.")));
	}
}

/* A value that would go nowhere: a column was renamed, or added. */
static void
refuse_strange(Relation view, const ViewColumns *columns, const bool *nulls)
{
	int			i = -1;

	while ((i = bms_next_member(columns->strange, i)) >= 0)
	{
		if (!nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_QUEUE_DAMAGED),
					 errmsg("column \"%s\" of queue \"%s\" is none of a queue's columns",
							NameStr(TupleDescAttr(RelationGetDescr(view), i)->attname),
							queue_catalog_name(RelationGetRelid(view))),
					 errdetail("The columns of a queue's view must keep their names."),
					 errhint("Give it its name again with ALTER VIEW ... RENAME COLUMN, or enqueue with queue.enqueue().")));
	}
}

/* The row as a SELECT from the view will show it. */
static void
fill_row(const ViewColumns *columns, const QueueMessage *message,
		 Datum *values, bool *nulls)
{
	const AttrNumber *args = columns->options.attnum;
	Datum		msgid = message->values[QUEUE_COL_MSGID];
	bool		waiting = DatumGetInt16(message->values[QUEUE_COL_STATE]) ==
	QUEUE_STATE_WAITING;

	fill_column(columns->filled[FILLED_MSGID], msgid, false, values, nulls);
	fill_column(columns->filled[FILLED_STATE],
				CStringGetTextDatum(waiting ? "waiting" : "ready"), false,
				values, nulls);
	fill_column(columns->filled[FILLED_ENQ_TIME],
				TimestampTzGetDatum(queue_clock_msgid_time(DatumGetUUIDP(msgid))),
				false, values, nulls);
	fill_column(columns->filled[FILLED_EXPIRES_AT],
				message->values[QUEUE_COL_EXPIRES_AT],
				message->nulls[QUEUE_COL_EXPIRES_AT], values, nulls);
	fill_column(columns->filled[FILLED_RETRY_COUNT], Int32GetDatum(0), false,
				values, nulls);

	if (columns->options.short_priority)
		fill_column(args[ARG_PRIORITY], message->values[QUEUE_COL_PRIORITY],
					false, values, nulls);
	fill_column(args[ARG_DELAY], (Datum) 0, true, values, nulls);
	fill_column(args[ARG_DELIVER_AT], message->values[QUEUE_COL_DUE_AT],
				!waiting, values, nulls);
	fill_column(args[ARG_EXPIRATION], message->values[QUEUE_COL_EXPIRATION],
				message->nulls[QUEUE_COL_EXPIRATION], values, nulls);
	fill_column(args[ARG_EXCEPTION_QUEUE],
				message->values[QUEUE_COL_EXCEPTION_QUEUE],
				message->nulls[QUEUE_COL_EXCEPTION_QUEUE], values, nulls);
}

static void
fill_column(AttrNumber attnum, Datum value, bool isnull, Datum *values,
			bool *nulls)
{
	if (attnum == 0)
		return;
	values[attnum - 1] = value;
	nulls[attnum - 1] = isnull;
}

/* INSTEAD OF UPDATE OR DELETE: behind the engine's back. */
Datum
queue_internal_view_refuse(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	queue_require_preload();
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function queue._view_refuse() must be called as a trigger")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot %s messages of queue \"%s\"",
					TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
					"update" : "delete",
					queue_catalog_name(RelationGetRelid(trigger->tg_relation))),
			 errhint("Take messages with queue.dequeue().")));
	return (Datum) 0;
}

/*
 * Default of a view's msgid: NULL, for the trigger to fill.  It refuses where
 * the trigger would not fire, or the INSERT would report success and store
 * nothing.
 */
Datum
queue_internal_new_msgid(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	if (SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot enqueue by INSERT while session_replication_role is \"replica\""),
				 errdetail("The queue's trigger does not fire in this mode, so nothing would be stored."),
				 errhint("Use queue.enqueue().")));
	PG_RETURN_NULL();
}

/* ---------------------------------------------------------------------- */
/* Message ids                                                            */
/* ---------------------------------------------------------------------- */

Datum
queue_enq_time(PG_FUNCTION_ARGS)
{
	queue_require_preload();
	PG_RETURN_TIMESTAMPTZ(queue_clock_msgid_time(PG_GETARG_UUID_P(0)));
}
