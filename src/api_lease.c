/*-------------------------------------------------------------------------
 *
 * api_lease.c
 *	  queue.ack(), queue.nack() and queue.extend().  queue.receive() is in
 *	  api_dequeue.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/timestamp.h"

#include "api.h"
#include "clock.h"
#include "compat.h"
#include "errors.h"
#include "lease.h"
#include "shmem.h"

PG_FUNCTION_INFO_V1(queue_ack);
PG_FUNCTION_INFO_V1(queue_nack);
PG_FUNCTION_INFO_V1(queue_extend);

static void
check_call(const char *command)
{
	queue_require_preload();
	PreventCommandIfReadOnly(command);
	PreventCommandDuringRecovery(command);
	PreventCommandIfParallelMode(command);
}

static void
check_array(ArrayType *array)
{
	int			count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("argument \"%s\" must be one-dimensional",
						"receipts")));
	if (count > QUEUE_MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many elements in argument \"%s\"", "receipts"),
				 errdetail("There are %d; the limit is %d.", count,
						   QUEUE_MAX_BATCH)));
}

/* NULL is what array_agg() makes of no rows: no receipts. */
static pg_uuid_t *
receipts_argument(FunctionCallInfo fcinfo, int argno, int *count)
{
	ArrayType  *array;
	Datum	   *elements;
	bool	   *nulls;
	pg_uuid_t  *receipts;

	*count = 0;
	if (PG_ARGISNULL(argno))
		return NULL;
	array = PG_GETARG_ARRAYTYPE_P(argno);
	check_array(array);
	deconstruct_array(array, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR,
					  &elements, &nulls, count);
	receipts = palloc((*count + 1) * sizeof(pg_uuid_t));
	for (int i = 0; i < *count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a receipt must not be NULL")));
		receipts[i] = *DatumGetUUIDP(elements[i]);
	}
	return receipts;
}

static int
settle(FunctionCallInfo fcinfo, QueueLeaseAction action,
	   const Interval *interval)
{
	int			count;
	pg_uuid_t  *receipts = receipts_argument(fcinfo, 0, &count);

	return count == 0 ? 0 :
		queue_lease_settle(action, receipts, count, interval);
}

/* ack(receipts) */
Datum
queue_ack(PG_FUNCTION_ARGS)
{
	check_call("queue.ack()");
	PG_RETURN_INT32(settle(fcinfo, QUEUE_LEASE_ACK, NULL));
}

/* nack(receipts, delay) */
Datum
queue_nack(PG_FUNCTION_ARGS)
{
	Interval   *delay = PG_ARGISNULL(1) ? NULL : PG_GETARG_INTERVAL_P(1);

	check_call("queue.nack()");
	if (delay != NULL && (queue_interval_not_finite(delay) ||
						  queue_interval_sign(delay) < 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delay must be finite, and not negative"),
				 errhint("Use '0' to have the messages delivered again at once, or NULL for the queue's retry_delay.")));
	PG_RETURN_INT32(settle(fcinfo, QUEUE_LEASE_NACK, delay));
}

/* extend(receipts, lease) */
Datum
queue_extend(PG_FUNCTION_ARGS)
{
	Interval	lease;

	check_call("queue.extend()");
	queue_api_lease(fcinfo, 1, &lease);
	PG_RETURN_INT32(settle(fcinfo, QUEUE_LEASE_EXTEND, &lease));
}
