/*-------------------------------------------------------------------------
 *
 * payload.c
 *	  Conversion between what callers pass and a queue table's payload type.
 *
 * What a conversion needs (an input function, a planned cast) is looked up
 * once and kept for the session, keyed by target type and typmod, source type
 * and user (a cast may call a function that only some users may execute).
 *
 * The cache is thrown away as a whole when any type, cast or function that
 * could matter has changed.  That message may arrive while a conversion runs,
 * and a conversion may run user code that comes back here; so the callback
 * only marks the cache, and the next look-up makes a new one.  The old memory
 * lives on until the end of the transaction, in which its users may still be
 * on the stack.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "errors.h"
#include "payload.h"

/* entries after which the cache starts afresh */
#define MAX_CACHED_CONVERSIONS	1024

/* room for two quoted names and a dot */
#define MAX_QUEUE_NAME			(4 * NAMEDATALEN + 8)

typedef enum ConversionKind
{
	CONVERSION_UNSET = 0,		/* being built */
	CONVERSION_NONE,			/* there is none */
	CONVERSION_SAME,			/* take the value as it is */
	CONVERSION_INPUT,			/* the target's input function */
	CONVERSION_CAST,			/* an assignment cast */
	CONVERSION_RECORD			/* an anonymous record, column by column */
} ConversionKind;

typedef struct ConversionKey
{
	Oid			target;
	int32		typmod;
	Oid			source;
	Oid			user;
} ConversionKey;

/* The executable form of a cast, in a memory context of its own. */
typedef struct CastState
{
	MemoryContext memory;
	ExprState  *state;
	ExprContext *context;
	bool		in_use;			/* being executed */
	bool		failed;			/* an error came: not to be used again */
} CastState;

typedef struct Conversion
{
	ConversionKey key;			/* hash key, must be first */
	ConversionKind kind;
	bool		is_varlena;		/* of the target */
	bool		is_domain;		/* of the target */
	bool		from_text;		/* input: the source is binary-compatible with
								 * text */
	void	   *domain_extra;	/* of domain_check() */
	Oid			composite;		/* record: the composite type to build */

	/* input */
	FmgrInfo	input;
	Oid			input_param;
	FmgrInfo	output;			/* unless from_text */

	/* cast */
	Node	   *expression;
	CastState  *cast;
} Conversion;

typedef enum DisplayKind
{
	DISPLAY_UNSET = 0,
	DISPLAY_JSONB,				/* is jsonb already */
	DISPLAY_TEXT,
	DISPLAY_BYTEA,
	DISPLAY_FUNCTION			/* to_jsonb() */
} DisplayKind;

typedef struct Display
{
	Oid			type;			/* hash key, must be first */
	DisplayKind kind;
	FmgrInfo	function;
} Display;

/* the cache; cache_context is a child of TopMemoryContext */
static MemoryContext cache_context = NULL;
static HTAB *conversions = NULL;
static HTAB *displays = NULL;
static Conversion *last_conversion = NULL;
static Display *last_display = NULL;
static int	cache_weight = 0;
static bool cache_valid = false;
static bool callbacks_registered = false;

/* the name of the queue last used, for error contexts */
static Oid	last_queue = InvalidOid;
static char last_queue_name[MAX_QUEUE_NAME];

static void register_callbacks(void);
static void invalidate_cache(Datum arg, int cacheid, uint32 hashvalue);
static void invalidate_queue_name(Datum arg, Oid relid);
static void reset_cache(void);
static Conversion *find_conversion(Oid target, int32 typmod, Oid source);
static void build_conversion(Conversion *conversion);
static void build_input(Conversion *conversion);
static void build_cast(Conversion *conversion);
static CastState *make_cast_state(const Conversion *conversion);
static CastState *idle_cast_state(Conversion *conversion);
static bool is_text_like(Oid type);
static Datum convert(const QueueDesc *queue, Conversion *conversion,
					 Datum value, bool isnull, bool *result_isnull);
static Datum convert_input(Conversion *conversion, Datum value);
static Datum convert_cast(Conversion *conversion, Datum value,
						  bool *result_isnull);
static Datum execute_cast(CastState *cast, Datum value,
						  bool *result_isnull);
static Datum convert_record(const QueueDesc *queue, Conversion *conversion,
							Datum value);
static Datum convert_column(const QueueDesc *queue, Form_pg_attribute target,
							Form_pg_attribute source, Datum value,
							bool isnull, bool *result_isnull);
pg_noreturn static void report_mismatch(const QueueDesc *queue, Oid type);
static int	hint_at_conversion(Oid type, Oid expected);
static void begin_conversion(const QueueDesc *queue,
							 ErrorContextCallback *callback);
static void payload_error_callback(void *arg);
static Display *find_display(Oid type);
static void build_display(Display *display);
static Datum string_to_jsonb(char *string, int length);
static Datum bytea_to_jsonb(Datum payload);

Datum
queue_payload_convert(const QueueDesc *queue, Datum value, bool isnull,
					  Oid type, bool *result_isnull)
{
	const QueueTable *table = queue->table;
	ErrorContextCallback callback;
	Conversion *conversion;
	Datum		result;

	begin_conversion(queue, &callback);
	conversion = find_conversion(table->payload_type, table->payload_typmod,
								 type);
	if (unlikely(conversion->kind == CONVERSION_NONE))
		report_mismatch(queue, type);
	result = convert(queue, conversion, value, isnull, result_isnull);

	error_context_stack = callback.previous;
	return result;
}

ArrayType *
queue_payload_parse_array(const QueueDesc *queue, const text *literal)
{
	const QueueTable *table = queue->table;
	ErrorContextCallback callback;
	Oid			array_type;
	Oid			function;
	Oid			parameter;
	Datum		result;

	begin_conversion(queue, &callback);
	array_type = get_array_type(table->payload_type);
	if (!OidIsValid(array_type))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("payload type %s of queue \"%s\" has no array type",
						format_type_be(table->payload_type),
						queue_catalog_name(queue->relid)),
				 errhint("Enqueue one message at a time with queue.enqueue().")));
	getTypeInputInfo(array_type, &function, &parameter);
	result = OidInputFunctionCall(function, text_to_cstring(literal),
								  parameter, table->payload_typmod);

	error_context_stack = callback.previous;
	return DatumGetArrayTypeP(result);
}

Datum
queue_payload_to_jsonb(const QueueTable *table, Datum payload)
{
	Display    *display;

	if (table->payload_type == JSONBOID)
		return payload;

	display = find_display(table->payload_type);
	switch (display->kind)
	{
		case DISPLAY_JSONB:
			return payload;
		case DISPLAY_TEXT:
			{
				text	   *string = DatumGetTextPP(payload);

				return string_to_jsonb(VARDATA_ANY(string),
									   VARSIZE_ANY_EXHDR(string));
			}
		case DISPLAY_BYTEA:
			return bytea_to_jsonb(payload);
		case DISPLAY_FUNCTION:
			return FunctionCall1(&display->function, payload);
		case DISPLAY_UNSET:
			break;
	}
	elog(ERROR, "unrecognized payload display: %d", (int) display->kind);
	return (Datum) 0;
}

/* ---------------------------------------------------------------------- */
/* The cache                                                              */
/* ---------------------------------------------------------------------- */

static void
register_callbacks(void)
{
	CacheRegisterSyscacheCallback(TYPEOID, invalidate_cache, (Datum) 0);
	CacheRegisterSyscacheCallback(CASTSOURCETARGET, invalidate_cache,
								  (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, invalidate_cache, (Datum) 0);
	CacheRegisterRelcacheCallback(invalidate_queue_name, (Datum) 0);
	callbacks_registered = true;
}

static void
invalidate_cache(Datum arg, int cacheid, uint32 hashvalue)
{
	cache_valid = false;
}

static void
invalidate_queue_name(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == last_queue)
		last_queue = InvalidOid;
}

/*
 * Start an empty cache.  The old one may be in use further up the stack, but
 * no longer than this transaction.
 */
static void
reset_cache(void)
{
	HASHCTL		ctl;
	MemoryContext context;

	if (!callbacks_registered)
		register_callbacks();
	if (cache_context != NULL)
		MemoryContextSetParent(cache_context, TopTransactionContext);
	cache_context = NULL;
	last_conversion = NULL;
	last_display = NULL;

	context = AllocSetContextCreate(TopMemoryContext,
									"queue payload conversions",
									ALLOCSET_DEFAULT_SIZES);
	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(ConversionKey);
	ctl.entrysize = sizeof(Conversion);
	ctl.hcxt = context;
	conversions = hash_create("queue payload conversions", 32, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(Display);
	displays = hash_create("queue payload displays", 32, &ctl,
						   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	cache_context = context;
	cache_weight = 0;
	cache_valid = true;
}

/*
 * How to convert source to target, for the current user.  Never NULL; the
 * kind is CONVERSION_NONE if there is no way.
 */
static Conversion *
find_conversion(Oid target, int32 typmod, Oid source)
{
	ConversionKey key;
	Conversion *conversion;
	bool		found;

	key.target = target;
	key.typmod = typmod;
	key.source = source;
	key.user = GetUserId();

	if (likely(cache_valid && last_conversion != NULL &&
			   memcmp(&last_conversion->key, &key, sizeof(key)) == 0))
		return last_conversion;

	if (!cache_valid || cache_weight >= MAX_CACHED_CONVERSIONS)
		reset_cache();
	conversion = hash_search(conversions, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) conversion + sizeof(key), 0,
			   sizeof(Conversion) - sizeof(key));
		cache_weight++;
	}
	if (conversion->kind == CONVERSION_UNSET)
		build_conversion(conversion);
	last_conversion = conversion;
	return conversion;
}

/*
 * Fill an entry.  An error leaves its kind unset, so that the next one tries
 * again.
 */
static void
build_conversion(Conversion *conversion)
{
	Oid			target = conversion->key.target;
	Oid			source = conversion->key.source;
	Oid			target_base = getBaseType(target);

	conversion->is_varlena = get_typlen(target) == -1;
	conversion->is_domain = get_typtype(target) == TYPTYPE_DOMAIN;

	if (source == target && conversion->key.typmod < 0)
		conversion->kind = CONVERSION_SAME;
	else if (is_text_like(source))
		build_input(conversion);
	else if (source == RECORDOID)
	{
		conversion->composite = target_base;
		conversion->kind = type_is_rowtype(target_base) ?
			CONVERSION_RECORD : CONVERSION_NONE;
	}
	else
		build_cast(conversion);
}

static void
build_input(Conversion *conversion)
{
	Oid			function;
	Oid			source_base = getBaseType(conversion->key.source);

	getTypeInputInfo(conversion->key.target, &function,
					 &conversion->input_param);
	fmgr_info_cxt(function, &conversion->input, cache_context);
	conversion->from_text = source_base == TEXTOID ||
		source_base == VARCHAROID || source_base == BPCHAROID;
	if (!conversion->from_text)
	{
		bool		is_varlena;

		getTypeOutputInfo(conversion->key.source, &function, &is_varlena);
		fmgr_info_cxt(function, &conversion->output, cache_context);
	}
	conversion->kind = CONVERSION_INPUT;
}

/*
 * Let the parser find the way, as an assignment to a column would: that
 * covers casts, domains, arrays and type modifiers alike.
 */
static void
build_cast(Conversion *conversion)
{
	CaseTestExpr *placeholder = makeNode(CaseTestExpr);
	MemoryContext old_context;
	Node	   *expression;

	placeholder->typeId = conversion->key.source;
	placeholder->typeMod = -1;
	placeholder->collation = get_typcollation(conversion->key.source);

	expression = coerce_to_target_type(NULL, (Node *) placeholder,
									   conversion->key.source,
									   conversion->key.target,
									   conversion->key.typmod,
									   COERCION_ASSIGNMENT,
									   COERCE_IMPLICIT_CAST, -1);
	if (expression == NULL)
	{
		conversion->kind = CONVERSION_NONE;
		return;
	}
	expression = (Node *) expression_planner((Expr *) expression);

	old_context = MemoryContextSwitchTo(cache_context);
	conversion->expression = copyObject(expression);
	MemoryContextSwitchTo(old_context);
	conversion->cast = make_cast_state(conversion);
	conversion->kind = CONVERSION_CAST;
}

static CastState *
make_cast_state(const Conversion *conversion)
{
	MemoryContext memory = AllocSetContextCreate(cache_context,
												 "queue payload cast",
												 ALLOCSET_SMALL_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(memory);
	CastState  *cast = palloc0(sizeof(CastState));

	cast->memory = memory;
	cast->context = CreateStandaloneExprContext();
	cast->state = ExecInitExpr((Expr *) conversion->expression, NULL);
	MemoryContextSwitchTo(old_context);
	return cast;
}

/*
 * A state that may be executed.  One that is busy, because a cast has called
 * us again, is left to whoever executes it; one that failed is thrown away.
 */
static CastState *
idle_cast_state(Conversion *conversion)
{
	CastState  *old = conversion->cast;

	if (likely(!old->in_use && !old->failed))
		return old;
	conversion->cast = make_cast_state(conversion);
	if (!old->in_use)
		MemoryContextDelete(old->memory);
	return conversion->cast;
}

static bool
is_text_like(Oid type)
{
	switch (getBaseType(type))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case UNKNOWNOID:
			return true;
		default:
			return false;
	}
}

/* ---------------------------------------------------------------------- */
/* Conversion of a value                                                  */
/* ---------------------------------------------------------------------- */

static Datum
convert(const QueueDesc *queue, Conversion *conversion, Datum value,
		bool isnull, bool *result_isnull)
{
	Datum		result = value;

	*result_isnull = isnull;
	if (isnull)
	{
		if (conversion->is_domain)
			domain_check((Datum) 0, true, conversion->key.target,
						 &conversion->domain_extra, cache_context);
		return (Datum) 0;
	}

	switch (conversion->kind)
	{
		case CONVERSION_INPUT:
			/* what an input function returns is whole and new */
			return convert_input(conversion, value);
		case CONVERSION_SAME:
			break;
		case CONVERSION_CAST:
			result = convert_cast(conversion, value, result_isnull);
			break;
		case CONVERSION_RECORD:
			return convert_record(queue, conversion, value);
		case CONVERSION_UNSET:
		case CONVERSION_NONE:
			elog(ERROR, "no conversion of payload");
	}

	if (conversion->is_varlena && !*result_isnull)
		result = PointerGetDatum(PG_DETOAST_DATUM_PACKED(result));
	return result;
}

static Datum
convert_input(Conversion *conversion, Datum value)
{
	char	   *string;

	if (likely(conversion->from_text))
		string = TextDatumGetCString(value);
	else
		string = OutputFunctionCall(&conversion->output, value);
	return InputFunctionCall(&conversion->input, string,
							 conversion->input_param,
							 conversion->key.typmod);
}

static Datum
convert_cast(Conversion *conversion, Datum value, bool *result_isnull)
{
	CastState  *cast = idle_cast_state(conversion);
	Datum		result = execute_cast(cast, value, result_isnull);

	/* one made meanwhile has done its work */
	if (unlikely(conversion->cast != cast))
	{
		MemoryContextDelete(conversion->cast->memory);
		conversion->cast = cast;
	}
	return result;
}

static Datum
execute_cast(CastState *cast, Datum value, bool *result_isnull)
{
	volatile Datum result = (Datum) 0;

	ResetExprContext(cast->context);
	cast->context->caseValue_datum = value;
	cast->context->caseValue_isNull = false;

	cast->in_use = true;
	PG_TRY();
	{
		result = ExecEvalExpr(cast->state, cast->context, result_isnull);
	}
	PG_CATCH();
	{
		cast->in_use = false;
		cast->failed = true;
		PG_RE_THROW();
	}
	PG_END_TRY();
	cast->in_use = false;
	return result;
}

/*
 * ROW(1, 'x') for a composite payload: like a row of VALUES in an INSERT.
 * Literals in it have become text, so text is read by the input function.
 */
static Datum
convert_record(const QueueDesc *queue, Conversion *conversion, Datum value)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	TupleDesc	source = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
												HeapTupleHeaderGetTypMod(header));
	TupleDesc	target = lookup_rowtype_tupdesc_domain(conversion->composite,
													   -1, false);
	Datum	   *values = palloc0(Max(target->natts, 1) * sizeof(Datum));
	bool	   *nulls = palloc(Max(target->natts, 1) * sizeof(bool));
	Datum	   *source_values = palloc(Max(source->natts, 1) * sizeof(Datum));
	bool	   *source_nulls = palloc(Max(source->natts, 1) * sizeof(bool));
	HeapTupleData tuple;
	int			from = 0;
	Datum		result;

	memset(&tuple, 0, sizeof(tuple));
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_data = header;
	heap_deform_tuple(&tuple, source, source_values, source_nulls);

	for (int to = 0; to < target->natts; to++)
	{
		Form_pg_attribute attribute = TupleDescAttr(target, to);

		nulls[to] = true;
		if (attribute->attisdropped)
			continue;
		if (from >= source->natts)
			report_mismatch(queue, RECORDOID);
		values[to] = convert_column(queue, attribute,
									TupleDescAttr(source, from),
									source_values[from], source_nulls[from],
									&nulls[to]);
		from++;
	}
	if (from != source->natts)
		report_mismatch(queue, RECORDOID);

	result = HeapTupleGetDatum(heap_form_tuple(target, values, nulls));
	ReleaseTupleDesc(source);
	ReleaseTupleDesc(target);

	if (conversion->is_domain)
		domain_check(result, false, conversion->key.target,
					 &conversion->domain_extra, cache_context);
	return result;
}

static Datum
convert_column(const QueueDesc *queue, Form_pg_attribute target,
			   Form_pg_attribute source, Datum value, bool isnull,
			   bool *result_isnull)
{
	Conversion *conversion = find_conversion(target->atttypid,
											 target->atttypmod,
											 source->atttypid);

	if (conversion->kind == CONVERSION_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_PAYLOAD_MISMATCH),
				 errmsg("payload does not fit queue \"%s\"",
						queue_catalog_name(queue->relid)),
				 errdetail("Column \"%s\" of its payload type %s has type %s, and the value given has type %s.",
						   NameStr(target->attname),
						   format_type_be(queue->table->payload_type),
						   format_type_be(target->atttypid),
						   format_type_be(source->atttypid)),
				 hint_at_conversion(source->atttypid, target->atttypid)));
	return convert(queue, conversion, value, isnull, result_isnull);
}

static void
report_mismatch(const QueueDesc *queue, Oid type)
{
	Oid			expected = queue->table->payload_type;
	const char *expected_name = format_type_be(expected);

	ereport(ERROR,
			(errcode(ERRCODE_QUEUE_PAYLOAD_MISMATCH),
			 errmsg("payload of type %s does not fit queue \"%s\"",
					format_type_be(type), queue_catalog_name(queue->relid)),
			 type == RECORDOID && type_is_rowtype(getBaseType(expected)) ?
			 errdetail("The queue's payload type is %s, which has another number of columns.",
					   expected_name) :
			 errdetail("The queue's payload type is %s.", expected_name),
			 hint_at_conversion(type, expected)));
}

/* What turns a value of one type into one of the other? */
static int
hint_at_conversion(Oid type, Oid expected)
{
	Oid			base = getBaseType(expected);
	Oid			function;

	if (base == JSONBOID)
		return errhint("Convert the value with to_jsonb().");
	if (type_is_rowtype(base) && getBaseType(type) == JSONBOID)
		return errhint("Convert the value with jsonb_populate_record().");
	if (find_coercion_pathway(base, getBaseType(type), COERCION_EXPLICIT,
							  &function) != COERCION_PATH_NONE)
		return errhint("Cast the value to %s.", format_type_be(expected));
	return errhint("Give a value of type %s, or its text.",
				   format_type_be(expected));
}

/*
 * Is there a payload type?  Then let errors name the queue.  An error callback
 * must not read the catalog, so the name is made before.  The caller takes the
 * callback off the stack.
 */
static void
begin_conversion(const QueueDesc *queue, ErrorContextCallback *callback)
{
	if (unlikely(!OidIsValid(queue->table->payload_type)))
		ereport(ERROR,
				(errcode(ERRCODE_QUEUE_DAMAGED),
				 errmsg("queue table \"%s\" has lost its column \"payload\"",
						queue_catalog_name(queue->table->relid)),
				 errdetail("The column or its type has been dropped, or it has another name."),
				 errhint("Restore it, or drop the queue table with queue.drop_queue_table(..., force => true).")));

	if (unlikely(queue->relid != last_queue))
	{
		if (!callbacks_registered)
			register_callbacks();
		last_queue = InvalidOid;
		strlcpy(last_queue_name, queue_catalog_name(queue->relid),
				sizeof(last_queue_name));
		last_queue = queue->relid;
	}
	callback->callback = payload_error_callback;
	callback->arg = NULL;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

static void
payload_error_callback(void *arg)
{
	errcontext("payload of queue \"%s\"", last_queue_name);
}

/* ---------------------------------------------------------------------- */
/* Payloads as jsonb                                                      */
/* ---------------------------------------------------------------------- */

static Display *
find_display(Oid type)
{
	Display    *display;
	bool		found;

	if (likely(cache_valid && last_display != NULL &&
			   last_display->type == type))
		return last_display;

	if (!cache_valid || cache_weight >= MAX_CACHED_CONVERSIONS)
		reset_cache();
	display = hash_search(displays, &type, HASH_ENTER, &found);
	if (!found)
	{
		display->kind = DISPLAY_UNSET;
		cache_weight++;
	}
	if (display->kind == DISPLAY_UNSET)
		build_display(display);
	last_display = display;
	return display;
}

static void
build_display(Display *display)
{
	MemoryContext old_context;
	Node	   *argument;

	switch (getBaseType(display->type))
	{
		case JSONBOID:
			display->kind = DISPLAY_JSONB;
			return;
		case TEXTOID:
		case VARCHAROID:
			display->kind = DISPLAY_TEXT;
			return;
		case BYTEAOID:
			display->kind = DISPLAY_BYTEA;
			return;
		default:
			break;
	}

	/* to_jsonb() learns its argument's type from the expression */
	old_context = MemoryContextSwitchTo(cache_context);
	fmgr_info_cxt(F_TO_JSONB, &display->function, cache_context);
	argument = (Node *) makeNullConst(display->type, -1, InvalidOid);
	fmgr_info_set_expr((Node *) makeFuncExpr(F_TO_JSONB, JSONBOID,
											 list_make1(argument),
											 InvalidOid, InvalidOid,
											 COERCE_EXPLICIT_CALL),
					   &display->function);
	MemoryContextSwitchTo(old_context);
	display->kind = DISPLAY_FUNCTION;
}

static Datum
string_to_jsonb(char *string, int length)
{
	JsonbValue	value;

	value.type = jbvString;
	value.val.string.val = string;
	value.val.string.len = length;
	return JsonbPGetDatum(JsonbValueToJsonb(&value));
}

/* Always hexadecimal, whatever bytea_output says. */
static Datum
bytea_to_jsonb(Datum payload)
{
	bytea	   *bytes = DatumGetByteaPP(payload);
	Size		length = VARSIZE_ANY_EXHDR(bytes);
	char	   *string;

	if (length >= (MaxAllocSize - 2) / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("payload of %zu bytes is too large to be shown as jsonb",
						length),
				 errhint("Use queue.dequeue_as(NULL::bytea, ...).")));
	string = palloc(2 * length + 2);
	string[0] = '\\';
	string[1] = 'x';
	hex_encode(VARDATA_ANY(bytes), length, string + 2);
	return string_to_jsonb(string, 2 * length + 2);
}
