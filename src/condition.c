/*-------------------------------------------------------------------------
 *
 * condition.c
 *	  Conditions of dequeue and purge: an SQL boolean over a message.
 *
 * A condition is the WHERE clause of a query without tables:
 *
 *		SELECT 1 WHERE (<condition>)
 *
 * The names of a message's columns are resolved by a parser hook into
 * parameters, and only after PostgreSQL has found no column of that name, so
 * that sub-selects see their own tables first.  The hook also knows "tab", the
 * alias in Oracle's conditions, and lets tab.user_data.attribute reach into a
 * composite payload, for which SQL alone would want (tab.user_data).attribute.
 * A parameter is worked out only when the plan asks for it.
 *
 * Being in WHERE gives PostgreSQL's own errors for aggregates, window and
 * set-returning functions and for what is not boolean.  That the text is one
 * expression, and nothing more, is checked beforehand by the grammar's entry
 * for PL/pgSQL expressions.
 *
 * Plans are kept for the session, for each user apart, because planning may
 * look at what the user may execute.  A change of search_path is noticed by
 * the plan cache.  The plans lie in a fixed array; the one longest not used
 * makes room.  A plan that is running is pinned: the condition may call a
 * function that dequeues with conditions of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "parser/parse_expr.h"
#include "parser/parse_node.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "clock.h"
#include "compat.h"
#include "condition.h"
#include "errors.h"

/* longest condition, in bytes */
#define MAX_CONDITION_LENGTH	65536
/* plans kept */
#define MAX_CONDITION_PLANS		64

#define QUERY_PREFIX			"SELECT 1 " QUEUE_CONDITION_WHERE
#define QUERY_SUFFIX			"\n)"

/* What a name means; the rest are columns of the queue table. */
typedef enum ConditionSource
{
	SOURCE_COLUMN,
	SOURCE_STATE,				/* as a word */
	SOURCE_ENQ_TIME,			/* in the msgid */
	SOURCE_DELIVER_AT			/* while it waits */
} ConditionSource;

typedef struct ConditionName
{
	const char *name;
	ConditionSource source;
	QueueColumn column;
	Oid			type;			/* InvalidOid: the payload's */
} ConditionName;

/* The number of a parameter is its place here, counted from 1. */
static const ConditionName condition_names[] = {
	{"msgid", SOURCE_COLUMN, QUEUE_COL_MSGID, UUIDOID},
	{"payload", SOURCE_COLUMN, QUEUE_COL_PAYLOAD, InvalidOid},
	{"priority", SOURCE_COLUMN, QUEUE_COL_PRIORITY, INT4OID},
	{"correlation", SOURCE_COLUMN, QUEUE_COL_CORRELATION, TEXTOID},
	{"properties", SOURCE_COLUMN, QUEUE_COL_PROPERTIES, JSONBOID},
	{"deliver_at", SOURCE_DELIVER_AT, QUEUE_COL_DUE_AT, TIMESTAMPTZOID},
	{"expires_at", SOURCE_COLUMN, QUEUE_COL_EXPIRES_AT, TIMESTAMPTZOID},
	{"exception_queue", SOURCE_COLUMN, QUEUE_COL_EXCEPTION_QUEUE, TEXTOID},
	{"sender", SOURCE_COLUMN, QUEUE_COL_SENDER_NAME, TEXTOID},
	{"sender_name", SOURCE_COLUMN, QUEUE_COL_SENDER_NAME, TEXTOID},
	{"sender_address", SOURCE_COLUMN, QUEUE_COL_SENDER_ADDRESS, TEXTOID},
	{"sender_protocol", SOURCE_COLUMN, QUEUE_COL_SENDER_PROTOCOL, INT4OID},
	{"reply_to", SOURCE_COLUMN, QUEUE_COL_REPLY_TO, TEXTOID},
	{"routing_key", SOURCE_COLUMN, QUEUE_COL_ROUTING_KEY, TEXTOID},
	{"group_key", SOURCE_COLUMN, QUEUE_COL_GROUP_KEY, TEXTOID},
	{"dedup_key", SOURCE_COLUMN, QUEUE_COL_DEDUP_KEY, TEXTOID},
	{"state", SOURCE_STATE, QUEUE_COL_STATE, TEXTOID},
	{"enq_time", SOURCE_ENQ_TIME, QUEUE_COL_MSGID, TIMESTAMPTZOID},
	{"retry_count", SOURCE_COLUMN, QUEUE_COL_RETRY_COUNT, INT4OID},
	{"original_msgid", SOURCE_COLUMN, QUEUE_COL_ORIGINAL_MSGID, UUIDOID},
	{"group_id", SOURCE_COLUMN, QUEUE_COL_GROUP_ID, UUIDOID},
	{"step", SOURCE_COLUMN, QUEUE_COL_STEP, INT4OID},
	{"expiration_reason", SOURCE_COLUMN, QUEUE_COL_EXPIRATION_REASON, TEXTOID},
	/* Oracle's names */
	{"user_data", SOURCE_COLUMN, QUEUE_COL_PAYLOAD, InvalidOid},
	{"corrid", SOURCE_COLUMN, QUEUE_COL_CORRELATION, TEXTOID},
	{"delay", SOURCE_COLUMN, QUEUE_COL_DUE_AT, TIMESTAMPTZOID},
	{"expiration", SOURCE_COLUMN, QUEUE_COL_EXPIRATION, INTERVALOID},
	{"enq_uid", SOURCE_COLUMN, QUEUE_COL_ENQ_USER, TEXTOID},
	{"user_prop", SOURCE_COLUMN, QUEUE_COL_PROPERTIES, JSONBOID}
};

#define NUM_CONDITION_NAMES		((int) lengthof(condition_names))

typedef struct ConditionPlan
{
	uint64		serial;			/* changes with each use of the place; 0: free */
	uint64		last_used;
	int			pins;			/* executions under way */
	uint32		hash;
	Oid			queue_table;
	Oid			user;
	Oid			payload_type;
	int32		payload_typmod;
	Oid			payload_collation;
	char	   *text;			/* in TopMemoryContext, freed with the plan */
	SPIPlanPtr	plan;
} ConditionPlan;

struct QueueCondition
{
	ConditionPlan *plan;
	uint64		serial;			/* the plan's when it was found */
	char	   *text;
	char	   *queue_name;		/* for messages */
};

/* the message for which parameters are fetched */
typedef struct ConditionInput
{
	const QueueMessage *message;
} ConditionInput;

static ConditionPlan plans[MAX_CONDITION_PLANS];
static uint64 plan_counter = 0;

static ConditionPlan *find_plan(const QueueTable *table, const char *text);
static ConditionPlan *claim_place(void);
static void free_plan(ConditionPlan *plan);
static void prepare_plan(ConditionPlan *plan, const QueueTable *table,
						 const char *text, uint32 hash);
static void name_queue(const QueueCondition *condition,
					   ErrorContextCallback *callback);
static void queue_error_callback(void *arg);
static void check_select(const char *text, const SelectStmt *select);
static int	clause_location(const SelectStmt *select);
static int	text_position(const char *text, int location);
static void syntax_error_callback(void *arg);
static void analysis_error_callback(void *arg);
static void setup_parser(ParseState *pstate, void *arg);
static Node *resolve_column(ParseState *pstate, ColumnRef *reference,
							Node *found);
static Node *make_param(ParseState *pstate, const ConditionPlan *plan,
						const char *name, int location);
static bool is_payload_name(const char *name);
static ParamExternData *fetch_param(ParamListInfo params, int id,
									bool speculative,
									ParamExternData *workspace);
static Datum message_value(const QueueMessage *message,
						   const ConditionName *name, bool *isnull);
static const char *state_word(int state);
static bool execute_pinned(ConditionPlan *plan, ParamListInfo params);
static bool execute_plan(ConditionPlan *plan, ParamListInfo params);

QueueCondition *
queue_condition_prepare(const QueueDesc *queue, const char *text)
{
	QueueCondition *condition = palloc(sizeof(QueueCondition));
	ErrorContextCallback callback;

	condition->text = pstrdup(text);
	condition->queue_name = queue_catalog_name(queue->relid);
	name_queue(condition, &callback);
	condition->plan = find_plan(queue->table, text);
	condition->serial = condition->plan->serial;
	error_context_stack = callback.previous;
	return condition;
}

bool
queue_condition_matches(QueueCondition *condition, const QueueTable *table,
						const QueueMessage *message)
{
	ConditionPlan *plan = condition->plan;
	ErrorContextCallback callback;
	ConditionInput input;
	ParamListInfo params;
	bool		result;

	name_queue(condition, &callback);

	/* the place may have been given to another condition meanwhile */
	if (plan->serial != condition->serial)
	{
		plan = find_plan(table, condition->text);
		condition->plan = plan;
		condition->serial = plan->serial;
	}
	plan->last_used = ++plan_counter;

	input.message = message;
	params = makeParamList(NUM_CONDITION_NAMES);
	params->paramFetch = fetch_param;
	params->paramFetchArg = &input;
	params->parserSetup = setup_parser;
	params->parserSetupArg = plan;

	result = execute_pinned(plan, params);
	pfree(params);
	error_context_stack = callback.previous;
	return result;
}

/* Let errors name the queue.  The caller takes the callback off the stack. */
static void
name_queue(const QueueCondition *condition, ErrorContextCallback *callback)
{
	callback->callback = queue_error_callback;
	callback->arg = condition->queue_name;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

static void
queue_error_callback(void *arg)
{
	errcontext("condition for messages of queue \"%s\"", (char *) arg);
}

static bool
execute_pinned(ConditionPlan *plan, ParamListInfo params)
{
	volatile bool result = false;

	plan->pins++;
	PG_TRY();
	{
		result = execute_plan(plan, params);
	}
	PG_FINALLY();
	{
		plan->pins--;
	}
	PG_END_TRY();
	return result;
}

static bool
execute_plan(ConditionPlan *plan, ParamListInfo params)
{
	bool		result;
	int			rc;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	/*
	 * Not read-only: like any statement in a volatile function, it sees what
	 * its own transaction has done so far, and in READ COMMITTED what others
	 * have committed.
	 */
	rc = SPI_execute_plan_with_paramlist(plan->plan, params, false, 1);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "condition was not executed: %s",
			 SPI_result_code_string(rc));
	result = SPI_processed > 0;
	SPI_finish();
	return result;
}

/* ---------------------------------------------------------------------- */
/* The cache of plans                                                     */
/* ---------------------------------------------------------------------- */

static ConditionPlan *
find_plan(const QueueTable *table, const char *text)
{
	uint32		hash = DatumGetUInt32(hash_any((const unsigned char *) text,
											   strlen(text)));
	Oid			user = GetUserId();
	ConditionPlan *plan;

	for (int i = 0; i < MAX_CONDITION_PLANS; i++)
	{
		plan = &plans[i];
		if (plan->serial != 0 && plan->hash == hash &&
			plan->queue_table == table->relid && plan->user == user &&
			plan->payload_type == table->payload_type &&
			plan->payload_typmod == table->payload_typmod &&
			plan->payload_collation == table->payload_collation &&
			strcmp(plan->text, text) == 0)
		{
			plan->last_used = ++plan_counter;
			return plan;
		}
	}

	queue_condition_check(text);
	plan = claim_place();
	prepare_plan(plan, table, text, hash);
	return plan;
}

/* A free place, if need be that of the plan longest not used. */
static ConditionPlan *
claim_place(void)
{
	ConditionPlan *victim = NULL;

	for (int i = 0; i < MAX_CONDITION_PLANS; i++)
	{
		if (plans[i].pins > 0)
			continue;
		if (plans[i].serial == 0)
			return &plans[i];
		if (victim == NULL || plans[i].last_used < victim->last_used)
			victim = &plans[i];
	}
	if (victim == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("conditions are nested too deeply"),
				 errdetail("At most %d can be in use at a time.",
						   MAX_CONDITION_PLANS)));
	free_plan(victim);
	return victim;
}

static void
free_plan(ConditionPlan *plan)
{
	SPIPlanPtr	spi_plan = plan->plan;
	char	   *source = plan->text;

	/* free the place first, so that it is consistent after any error */
	memset(plan, 0, sizeof(ConditionPlan));
	if (spi_plan != NULL)
		SPI_freeplan(spi_plan);
	if (source != NULL)
		pfree(source);
}

/* The place is free.  It stays so if an error comes. */
static void
prepare_plan(ConditionPlan *plan, const QueueTable *table, const char *text,
			 uint32 hash)
{
	QueueConditionErrors errors;
	StringInfoData query;
	SPIPlanPtr	spi_plan;

	plan->payload_type = table->payload_type;
	plan->payload_typmod = table->payload_typmod;
	plan->payload_collation = table->payload_collation;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	initStringInfo(&query);
	appendStringInfoString(&query, QUERY_PREFIX);
	appendStringInfoString(&query, text);
	appendStringInfoString(&query, QUERY_SUFFIX);

	queue_condition_begin_errors(&errors, text, query.data);
	spi_plan = SPI_prepare_params(query.data, setup_parser, plan,
								  CURSOR_OPT_GENERIC_PLAN);
	queue_condition_end_errors(&errors);
	if (spi_plan == NULL)
		elog(ERROR, "condition was not prepared: %s",
			 SPI_result_code_string(SPI_result));

	/* kept for the session, until its place is needed */
	plan->text = MemoryContextStrdup(TopMemoryContext, text);
	SPI_keepplan(spi_plan);
	plan->plan = spi_plan;
	plan->hash = hash;
	plan->queue_table = table->relid;
	plan->user = GetUserId();
	plan->last_used = ++plan_counter;
	plan->serial = plan_counter;
	SPI_finish();
}

/* ---------------------------------------------------------------------- */
/* Syntax                                                                 */
/* ---------------------------------------------------------------------- */

void
queue_condition_check(const char *text)
{
	ErrorContextCallback callback;
	List	   *trees;

	if (strlen(text) > MAX_CONDITION_LENGTH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("condition is too long"),
				 errdetail("It has %zu bytes; the limit is %d.",
						   strlen(text), MAX_CONDITION_LENGTH)));

	callback.callback = syntax_error_callback;
	callback.arg = unconstify(char *, text);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	trees = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
	error_context_stack = callback.previous;

	check_select(text,
				 (SelectStmt *) linitial_node(RawStmt, trees)->stmt);
}

/* Is it one expression, with nothing before or after it? */
static void
check_select(const char *text, const SelectStmt *select)
{
	const ResTarget *target;
	int			location;

	Assert(IsA(select, SelectStmt));
	location = clause_location(select);
	if (select->targetList == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("condition is empty"),
				 errhint("Leave the condition NULL to mean any message.")));
	target = linitial_node(ResTarget, select->targetList);
	if (location == -2 &&
		(target->name != NULL ||
		 (IsA(target->val, ColumnRef) &&
		  IsA(llast(((ColumnRef *) target->val)->fields), A_Star))))
		location = target->location;
	if (location == -2)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR),
			 errmsg("condition is not a single SQL expression"),
			 errhint("Write it like the expression after WHERE, for instance \"priority < 3 AND correlation = 'A'\"."),
			 location < 0 ? 0 :
			 internalerrposition(text_position(text, location)),
			 internalerrquery(text)));
}

/*
 * Where something stands that is no expression: a location, -1 if it is not
 * known, or -2 if there is no such thing.
 */
static int
clause_location(const SelectStmt *select)
{
	if (list_length(select->targetList) > 1)
		return exprLocation(lsecond(select->targetList));
	if (select->distinctClause != NIL || select->intoClause != NULL ||
		select->lockingClause != NIL || select->withClause != NULL ||
		select->valuesLists != NIL || select->op != SETOP_NONE)
		return -1;
	if (select->fromClause != NIL)
		return exprLocation(linitial(select->fromClause));
	if (select->whereClause != NULL)
		return exprLocation(select->whereClause);
	if (select->groupClause != NIL)
		return exprLocation(linitial(select->groupClause));
	if (select->havingClause != NULL)
		return exprLocation(select->havingClause);
	if (select->windowClause != NIL || select->groupDistinct)
		return -1;
	if (select->sortClause != NIL)
		return exprLocation(linitial(select->sortClause));
	if (select->limitOffset != NULL)
		return exprLocation(select->limitOffset);
	if (select->limitCount != NULL)
		return exprLocation(select->limitCount);
	return -2;
}

/* characters, counted from 1 */
static int
text_position(const char *text, int location)
{
	return pg_mbstrlen_with_len(text, location) + 1;
}

/*
 * The grammar gives a position in the condition, which the client would take
 * for one in its own query.
 */
static void
syntax_error_callback(void *arg)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery((const char *) arg);
	}
}

void
queue_condition_begin_errors(QueueConditionErrors *errors, const char *text,
							 const char *query)
{
	const char *where = strstr(query, QUEUE_CONDITION_WHERE);

	Assert(where != NULL);
	errors->text = text;

	errors->prefix =
		pg_mbstrlen_with_len(query, where - query +
							 strlen(QUEUE_CONDITION_WHERE));
	errors->callback.callback = analysis_error_callback;
	errors->callback.arg = errors;
	errors->callback.previous = error_context_stack;
	error_context_stack = &errors->callback;
}

void
queue_condition_end_errors(QueueConditionErrors *errors)
{
	error_context_stack = errors->callback.previous;
}

static void
analysis_error_callback(void *arg)
{
	const QueueConditionErrors *errors = arg;
	int			position = getinternalerrposition();

	if (position > errors->prefix)
	{
		internalerrposition(position - errors->prefix);
		internalerrquery(errors->text);
	}
}

/* ---------------------------------------------------------------------- */
/* Names                                                                  */
/* ---------------------------------------------------------------------- */

static void
setup_parser(ParseState *pstate, void *arg)
{
	pstate->p_post_columnref_hook = resolve_column;
	pstate->p_ref_hook_state = arg;
}

/*
 * name, tab.name, and tab.user_data.attribute; the latter also without the
 * alias.  NULL, that is PostgreSQL's own error, for anything else.
 */
static Node *
resolve_column(ParseState *pstate, ColumnRef *reference, Node *found)
{
	const ConditionPlan *plan = pstate->p_ref_hook_state;
	List	   *fields = reference->fields;
	const char *name;
	int			used = 1;
	A_Indirection *indirection;

	if (found != NULL || !IsA(linitial(fields), String))
		return NULL;
	name = strVal(linitial(fields));
	if (list_length(fields) > 1 && strcmp(name, "tab") == 0 &&
		IsA(lsecond(fields), String))
	{
		name = strVal(lsecond(fields));
		used = 2;
	}
	if (list_length(fields) == used)
		return make_param(pstate, plan, name, reference->location);
	if (!is_payload_name(name))
		return NULL;

	/* what SQL would write as (tab.user_data).attribute */
	indirection = makeNode(A_Indirection);
	indirection->arg = (Node *) copyObject(reference);
	((ColumnRef *) indirection->arg)->fields =
		list_truncate(list_copy(fields), used);
	indirection->indirection = list_copy_tail(fields, used);
	return transformExpr(pstate, (Node *) indirection, pstate->p_expr_kind);
}

static Node *
make_param(ParseState *pstate, const ConditionPlan *plan, const char *name,
		   int location)
{
	Param	   *param;
	int			i;

	for (i = 0; i < NUM_CONDITION_NAMES; i++)
	{
		if (strcmp(condition_names[i].name, name) == 0)
			break;
	}
	if (i == NUM_CONDITION_NAMES)
		return NULL;

	param = makeNode(Param);
	param->paramkind = PARAM_EXTERN;
	param->paramid = i + 1;
	param->paramtype = condition_names[i].type;
	param->paramtypmod = -1;
	param->location = location;
	if (OidIsValid(param->paramtype))
		param->paramcollid = get_typcollation(param->paramtype);
	else
	{
		if (!OidIsValid(plan->payload_type))
			ereport(ERROR,
					(errcode(ERRCODE_QUEUE_DAMAGED),
					 errmsg("the queue table has lost its column \"payload\""),
					 errdetail("The column or its type has been dropped.")));
		param->paramtype = plan->payload_type;
		param->paramtypmod = plan->payload_typmod;
		param->paramcollid = plan->payload_collation;
	}
	return (Node *) param;
}

static bool
is_payload_name(const char *name)
{
	return strcmp(name, "user_data") == 0 || strcmp(name, "payload") == 0;
}

/* ---------------------------------------------------------------------- */
/* Values                                                                 */
/* ---------------------------------------------------------------------- */

static ParamExternData *
fetch_param(ParamListInfo params, int id, bool speculative,
			ParamExternData *workspace)
{
	const ConditionPlan *plan = params->parserSetupArg;
	const ConditionInput *input = params->paramFetchArg;
	const ConditionName *name = &condition_names[id - 1];

	workspace->pflags = 0;
	workspace->ptype = OidIsValid(name->type) ? name->type :
		plan->payload_type;
	workspace->value = message_value(input->message, name,
									 &workspace->isnull);
	return workspace;
}

static Datum
message_value(const QueueMessage *message, const ConditionName *name,
			  bool *isnull)
{
	Datum		value = message->values[name->column];

	*isnull = message->nulls[name->column];
	if (*isnull)
		return (Datum) 0;
	switch (name->source)
	{
		case SOURCE_COLUMN:
			return value;
		case SOURCE_STATE:
			return CStringGetTextDatum(state_word(DatumGetInt16(value)));
		case SOURCE_ENQ_TIME:
			return TimestampTzGetDatum(queue_clock_msgid_time(DatumGetUUIDP(value)));
		case SOURCE_DELIVER_AT:
			*isnull = DatumGetInt16(message->values[QUEUE_COL_STATE]) !=
				QUEUE_STATE_WAITING;
			return *isnull ? (Datum) 0 : value;
	}
	elog(ERROR, "unrecognized condition source: %d", (int) name->source);
	return (Datum) 0;
}

static const char *
state_word(int state)
{
	switch (state)
	{
		case QUEUE_STATE_READY:
			return "ready";
		case QUEUE_STATE_WAITING:
			return "waiting";
		case QUEUE_STATE_PROCESSED:
			return "processed";
		default:
			return "expired";
	}
}
