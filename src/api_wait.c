/*-------------------------------------------------------------------------
 *
 * api_wait.c
 *	  SQL functions that wait for messages: decode arguments, call down.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/varlena.h"

#include "api.h"
#include "catalog.h"
#include "compat.h"
#include "shmem.h"
#include "wait.h"
#include "wakeup.h"

/* fields of queue.agent */
typedef enum AgentField
{
	AGENT_NAME,
	AGENT_ADDRESS,
	AGENT_PROTOCOL,
	AGENT_NUM_FIELDS
} AgentField;

PG_FUNCTION_INFO_V1(queue_wait_sql);
PG_FUNCTION_INFO_V1(queue_listen);

static TimestampTz
decode_timeout(FunctionCallInfo fcinfo, int argno)
{
	Interval   *timeout;
	Interval	zero;

	if (PG_ARGISNULL(argno))
		return DT_NOEND;
	timeout = PG_GETARG_INTERVAL_P(argno);
	if (queue_interval_is_forever(timeout))
		return DT_NOEND;
	memset(&zero, 0, sizeof(zero));
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp,
										  IntervalPGetDatum(timeout),
										  IntervalPGetDatum(&zero))) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be negative", "timeout"),
				 errhint("Use '0' not to wait, or NULL to wait for ever.")));
	return queue_wakeup_deadline(false, timeout);
}

static void
refuse_consumer(Oid queue)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("queue \"%s\" has no consumers with names",
					queue_catalog_name(queue)),
			 errhint("Leave the consumer's name out.")));
}

/* wait(queue, consumer, timeout) */
Datum
queue_wait_sql(PG_FUNCTION_ARGS)
{
	CallContext *context = (CallContext *) fcinfo->context;
	bool		is_call = context != NULL && IsA(context, CallContext);
	Oid			queue;

	queue_require_preload();
	PreventCommandDuringRecovery("queue.wait()");
	queue = queue_api_queue(fcinfo, 0);
	if (!PG_ARGISNULL(1))
		refuse_consumer(queue);
	(void) queue_wait(&queue, 1, decode_timeout(fcinfo, 2), is_call);
	PG_RETURN_VOID();
}

/* ---------- listen ---------- */

/* The queue that an agent's address names. */
static Oid
find_address(TupleDesc desc, HeapTuple tuple)
{
	Datum		values[AGENT_NUM_FIELDS];
	bool		nulls[AGENT_NUM_FIELDS];
	RangeVar   *name;
	Oid			queue;

	heap_deform_tuple(tuple, desc, values, nulls);
	if (nulls[AGENT_ADDRESS])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("an agent to listen for has no address"),
				 errhint("Its address is the name of a queue.")));
	name = makeRangeVarFromNameList(textToQualifiedNameList(DatumGetTextPP(values[AGENT_ADDRESS])));
	queue = RangeVarGetRelid(name, NoLock, false);
	if (!nulls[AGENT_NAME])
		refuse_consumer(queue);
	return queue;
}

static void
element_as_tuple(Datum agent, HeapTupleData *tuple, TupleDesc *desc)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(agent);

	*desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header),
								   HeapTupleHeaderGetTypMod(header));
	memset(tuple, 0, sizeof(*tuple));
	tuple->t_len = HeapTupleHeaderGetDatumLength(header);
	tuple->t_data = header;
}

static ArrayType *
agents_argument(FunctionCallInfo fcinfo)
{
	ArrayType  *agents;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be NULL", "agents")));
	agents = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(agents) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("argument \"%s\" must be an array of one dimension",
						"agents")));
	return agents;
}

/* listen(agents, timeout): the first agent for which there is a message */
Datum
queue_listen(PG_FUNCTION_ARGS)
{
	ArrayType  *agents;
	Datum	   *elements;
	bool	   *nulls;
	int			count;
	Oid			queues[QUEUE_MAX_LISTENED];
	int			found;

	queue_require_preload();
	PreventCommandDuringRecovery("queue.listen()");
	agents = agents_argument(fcinfo);
	deconstruct_array(agents, ARR_ELEMTYPE(agents), -1, false, TYPALIGN_DOUBLE,
					  &elements, &nulls, &count);
	if (count < 1 || count > QUEUE_MAX_LISTENED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot listen for %d agents", count),
				 errhint("Allowed are 1 to %d.", QUEUE_MAX_LISTENED)));
	for (int i = 0; i < count; i++)
	{
		HeapTupleData tuple;
		TupleDesc	desc;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("an agent to listen for is NULL")));
		element_as_tuple(elements[i], &tuple, &desc);
		queues[i] = find_address(desc, &tuple);
		ReleaseTupleDesc(desc);
	}
	found = queue_wait(queues, count, decode_timeout(fcinfo, 1), false);
	if (found < 0)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(elements[found]);
}
