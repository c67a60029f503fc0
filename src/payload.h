/*-------------------------------------------------------------------------
 *
 * payload.h
 *	  Conversion between what callers pass and a queue table's payload type.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_PAYLOAD_H
#define QUEUE_PAYLOAD_H

#include "utils/array.h"

#include "catalog.h"

/*
 * Convert a value of type "type" to the payload type of the queue's table:
 * text is read by the payload type's input function; the same type is taken
 * as it is; json goes to jsonb and whatever else has an assignment cast is
 * cast; an anonymous record is converted column by column; domains are
 * checked.  Anything else is ERRCODE_QUEUE_PAYLOAD_MISMATCH.  The result is
 * detoasted, in the current memory context.
 */
extern Datum queue_payload_convert(const QueueDesc *queue, Datum value,
								   bool isnull, Oid type, bool *result_isnull);

/*
 * Read an array literal of the payload type.  Returns an array of it, in the
 * current memory context.
 */
extern ArrayType *queue_payload_parse_array(const QueueDesc *queue,
											const text *literal);

/*
 * A payload shown as jsonb: text as a string, bytea as a hex string,
 * composites as objects.  Never called for a NULL.
 */
extern Datum queue_payload_to_jsonb(const QueueTable *table, Datum payload);

#endif							/* QUEUE_PAYLOAD_H */
