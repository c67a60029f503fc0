/*-------------------------------------------------------------------------
 *
 * plain.c
 *	  What the planner makes of calls that leave arguments at their defaults.
 *
 * The executor prepares each argument of a function for each call, also those
 * that have their default: a third of what a single dequeue costs, and
 * a tenth of an enqueue.  So the planner makes of dequeue(queue) a
 * _dequeue(queue), and of enqueue(queue, payload), with or without a priority,
 * an _enqueue(queue, payload, priority).  The executor asks for EXECUTE only
 * on the function that it calls, so those ask for it on the one that was
 * written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/planmain.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "catalog.h"
#include "compat.h"
#include "plain.h"

typedef struct PlainCallInfo
{
	const char *name;			/* of the function that users call */
	const char *plain_name;
	int			num_args;		/* of the former */
	int			num_plain_args; /* the first of them */
	Oid			plain_types[3];
} PlainCallInfo;

static const PlainCallInfo plain_calls[] = {
	[QUEUE_PLAIN_DEQUEUE] = {"dequeue", "_dequeue", 11, 1,
	{REGCLASSOID}},
	[QUEUE_PLAIN_ENQUEUE_TEXT] = {"enqueue", "_enqueue", 19, 3,
	{REGCLASSOID, TEXTOID, INT8OID}},
	[QUEUE_PLAIN_ENQUEUE_ANY] = {"enqueue", "_enqueue", 19, 3,
	{REGCLASSOID, ANYELEMENTOID, INT8OID}}
};

StaticAssertDecl(lengthof(plain_calls) == QUEUE_NUM_PLAIN_CALLS,
				 "one entry for each call");

/* The arguments of queue.dequeue() that are not NULL by default, in order. */
enum
{
	DEQUEUE_ARG_MODE = 2,
	DEQUEUE_ARG_NAVIGATION = 3,
	DEQUEUE_ARG_WAIT = 4,
	DEQUEUE_ARG_MAX_MESSAGES = 8,
	DEQUEUE_ARG_VISIBILITY = 9,
	DEQUEUE_ARG_DELIVERY_MODE = 10
};

/* Those of queue.enqueue(). */
enum
{
	ENQUEUE_ARG_VISIBILITY = 17,
	ENQUEUE_ARG_DELIVERY_MODE = 18
};

PG_FUNCTION_INFO_V1(queue_internal_dequeue_support);
PG_FUNCTION_INFO_V1(queue_internal_enqueue_support);

/* OIDs of the functions that users call, as far as they are known */
static Oid	functions[QUEUE_NUM_PLAIN_CALLS];
static bool callback_registered = false;

static Datum simplify_call(Node *request, QueuePlainCall first,
						   QueuePlainCall last,
						   bool (*is_default) (int argno, const Const * value));
static bool has_defaults(const FuncExpr * call, int from,
						 bool (*is_default) (int argno, const Const * value));
static bool is_dequeue_default(int argno, const Const * value);
static bool is_enqueue_default(int argno, const Const * value);
static bool is_word(const Const * value, const char *word);
static bool is_function(Oid function, QueuePlainCall call);
static Oid	find_function(QueuePlainCall call);
static void forget_functions(Datum arg, int cacheid, uint32 hashvalue);

/* Planner support for queue.dequeue(). */
Datum
queue_internal_dequeue_support(PG_FUNCTION_ARGS)
{
	return simplify_call((Node *) PG_GETARG_POINTER(0), QUEUE_PLAIN_DEQUEUE,
						 QUEUE_PLAIN_DEQUEUE, is_dequeue_default);
}

/* Planner support for both of queue.enqueue(). */
Datum
queue_internal_enqueue_support(PG_FUNCTION_ARGS)
{
	return simplify_call((Node *) PG_GETARG_POINTER(0),
						 QUEUE_PLAIN_ENQUEUE_TEXT, QUEUE_PLAIN_ENQUEUE_ANY,
						 is_enqueue_default);
}

void
queue_plain_check_execute(QueuePlainCall call)
{
	if (unlikely(!OidIsValid(functions[call])))
		functions[call] = find_function(call);
	if (queue_function_aclcheck(functions[call], GetUserId(), ACL_EXECUTE) !=
		ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION,
					   plain_calls[call].name);
}

/* ---------------------------------------------------------------------- */
/* Planning                                                               */
/* ---------------------------------------------------------------------- */

/* A NULL pointer leaves the call as it is. */
static Datum
simplify_call(Node *request, QueuePlainCall first, QueuePlainCall last,
			  bool (*is_default) (int argno, const Const * value))
{
	SupportRequestSimplify *simplify = (SupportRequestSimplify *) request;
	const PlainCallInfo *info = &plain_calls[first];
	FuncExpr   *call;
	FuncExpr   *plain_call;
	Oid			plain;

	if (!IsA(request, SupportRequestSimplify))
		return PointerGetDatum(NULL);
	call = simplify->fcall;
	if (list_length(call->args) != info->num_args ||
		!has_defaults(call, info->num_plain_args, is_default))
		return PointerGetDatum(NULL);
	while (!is_function(call->funcid, first))
	{
		if (first++ == last)
			return PointerGetDatum(NULL);
	}
	info = &plain_calls[first];
	plain = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							CStringGetDatum(info->plain_name),
							PointerGetDatum(buildoidvector(info->plain_types,
														   info->num_plain_args)),
							ObjectIdGetDatum(get_func_namespace(call->funcid)));
	if (!OidIsValid(plain))
		return PointerGetDatum(NULL);

	/* a plan that was kept depends on both */
	if (simplify->root != NULL)
		record_plan_function_dependency(simplify->root, call->funcid);
	plain_call = makeFuncExpr(plain, call->funcresulttype,
							  list_truncate(list_copy(call->args),
											info->num_plain_args),
							  call->funccollid, call->inputcollid,
							  COERCE_EXPLICIT_CALL);
	plain_call->funcretset = call->funcretset;
	return PointerGetDatum(plain_call);
}

/* Has each argument from this one on its default? */
static bool
has_defaults(const FuncExpr * call, int from,
			 bool (*is_default) (int argno, const Const * value))
{
	for (int i = from; i < list_length(call->args); i++)
	{
		Node	   *argument = list_nth(call->args, i);

		if (!IsA(argument, Const) || !is_default(i, (Const *) argument))
			return false;
	}
	return true;
}

/* As in message.sql; NULL is not the default of wait. */
static bool
is_dequeue_default(int argno, const Const * value)
{
	const Interval *wait;

	switch (argno)
	{
		case DEQUEUE_ARG_MODE:
			return is_word(value, "remove");
		case DEQUEUE_ARG_NAVIGATION:
			return is_word(value, "first_message");
		case DEQUEUE_ARG_MAX_MESSAGES:
			return !value->constisnull &&
				DatumGetInt64(value->constvalue) == 1;
		case DEQUEUE_ARG_VISIBILITY:
			return is_word(value, "on_commit");
		case DEQUEUE_ARG_DELIVERY_MODE:
			return is_word(value, "persistent");
		case DEQUEUE_ARG_WAIT:
			if (value->constisnull)
				return false;
			wait = DatumGetIntervalP(value->constvalue);
			return wait->time == 0 && wait->day == 0 && wait->month == 0;
		default:
			return value->constisnull;
	}
}

static bool
is_enqueue_default(int argno, const Const * value)
{
	switch (argno)
	{
		case ENQUEUE_ARG_VISIBILITY:
			return is_word(value, "on_commit");
		case ENQUEUE_ARG_DELIVERY_MODE:
			return is_word(value, "persistent");
		default:
			return value->constisnull;
	}
}

static bool
is_word(const Const * value, const char *word)
{
	return !value->constisnull &&
		strcmp(TextDatumGetCString(value->constvalue), word) == 0;
}

/* ---------------------------------------------------------------------- */
/* The functions that users call                                          */
/* ---------------------------------------------------------------------- */

/* Is it this one of the functions with its name and number of arguments? */
static bool
is_function(Oid function, QueuePlainCall call)
{
	const PlainCallInfo *info = &plain_calls[call];
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	result = form->pronargs == info->num_args &&
		strcmp(NameStr(form->proname), info->name) == 0;
	for (int i = 0; result && i < info->num_plain_args; i++)
		result = form->proargtypes.values[i] == info->plain_types[i];
	ReleaseSysCache(tuple);
	return result;
}

static Oid
find_function(QueuePlainCall call)
{
	const PlainCallInfo *info = &plain_calls[call];
	Oid			schema = queue_catalog_schema();
	Oid			found = InvalidOid;
	CatCList   *list;

	if (!callback_registered)
	{
		CacheRegisterSyscacheCallback(PROCOID, forget_functions, (Datum) 0);
		callback_registered = true;
	}
	list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(info->name));
	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		if (form->pronamespace == schema && is_function(form->oid, call))
			found = form->oid;
	}
	ReleaseSysCacheList(list);
	if (!OidIsValid(found))
		elog(ERROR, "function queue.%s() is missing", info->name);
	return found;
}

static void
forget_functions(Datum arg, int cacheid, uint32 hashvalue)
{
	memset(functions, 0, sizeof(functions));
}
