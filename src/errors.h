/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  Private SQLSTATEs, class QU.  docs/errors.md has the same list, beside
 *	  Oracle's numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef QUEUE_ERRORS_H
#define QUEUE_ERRORS_H

#define ERRCODE_QUEUE_ENQUEUE_DISABLED		MAKE_SQLSTATE('Q','U','0','0','1')	/* ORA-25207 */
#define ERRCODE_QUEUE_DEQUEUE_DISABLED		MAKE_SQLSTATE('Q','U','0','0','2')	/* ORA-25226 */
#define ERRCODE_QUEUE_IS_EXCEPTION_QUEUE	MAKE_SQLSTATE('Q','U','0','0','3')	/* ORA-25206, 24017 */
#define ERRCODE_QUEUE_NOT_STOPPED			MAKE_SQLSTATE('Q','U','0','0','4')	/* ORA-24011 */
#define ERRCODE_QUEUE_TABLE_NOT_EMPTY		MAKE_SQLSTATE('Q','U','0','0','5')	/* ORA-24012 */
#define ERRCODE_QUEUE_BUSY					MAKE_SQLSTATE('Q','U','0','0','6')	/* ORA-24018 */
#define ERRCODE_QUEUE_PAYLOAD_MISMATCH		MAKE_SQLSTATE('Q','U','0','0','7')	/* ORA-25215 */
#define ERRCODE_QUEUE_CRITERIA_CONFLICT		MAKE_SQLSTATE('Q','U','0','0','8')	/* ORA-25240 */
#define ERRCODE_QUEUE_CRITERIA_CHANGED		MAKE_SQLSTATE('Q','U','0','0','9')	/* ORA-25241, 25242 */
#define ERRCODE_QUEUE_NOT_GROUPED			MAKE_SQLSTATE('Q','U','0','1','0')	/* ORA-25234 */
#define ERRCODE_QUEUE_DAMAGED				MAKE_SQLSTATE('Q','U','0','1','1')	/* ORA-24203 */
#define ERRCODE_QUEUE_RECEIPT_REFUSED		MAKE_SQLSTATE('Q','U','0','1','2')
#define ERRCODE_QUEUE_NOT_PRELOADED			ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE

#endif							/* QUEUE_ERRORS_H */
