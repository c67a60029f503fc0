/*-------------------------------------------------------------------------
 *
 * table_state.c
 *	  What a job of the monitor keeps of each queue table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "catalog.h"
#include "table_state.h"

void *
queue_table_state(HTAB **states, const char *name, Size size, Oid queue_table)
{
	void	   *state;
	bool		found;

	if (*states == NULL)
	{
		HASHCTL		ctl;

		memset(&ctl, 0, sizeof(ctl));
		ctl.keysize = sizeof(Oid);
		ctl.entrysize = size;
		/* it is of use until the session ends */
		ctl.hcxt = TopMemoryContext;
		*states = hash_create(name, 16, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	state = hash_search(*states, &queue_table, HASH_ENTER, &found);
	if (!found)
		memset((char *) state + sizeof(Oid), 0, size - sizeof(Oid));
	return state;
}

void
queue_table_state_prune(HTAB *states, List *queue_tables,
						void (*forget) (void *state))
{
	HASH_SEQ_STATUS scan;
	void	   *state;

	/* most of the time none is there that should not be */
	if (states == NULL ||
		hash_get_num_entries(states) <= list_length(queue_tables))
		return;
	hash_seq_init(&scan, states);
	while ((state = hash_seq_search(&scan)) != NULL)
	{
		Oid			queue_table = *(Oid *) state;

		if (list_member_oid(queue_tables, queue_table))
			continue;
		if (forget != NULL)
			forget(state);
		(void) hash_search(states, &queue_table, HASH_REMOVE, NULL);
	}
}

typedef struct TurnName
{
	const char *job;
	const char *table_name;
} TurnName;

static void
turn_error_callback(void *arg)
{
	const TurnName *name = (const TurnName *) arg;

	if (name->table_name[0] != '\0')
		errcontext("job \"%s\" at work on queue table \"%s\"",
				   name->job, name->table_name);
}

int
queue_table_state_run(const char *job, char *table_name,
					  QueueWorkerErrors *errors,
					  TimestampTz (*turn) (void *state), void *state,
					  TimestampTz *next)
{
	MemoryContext context = CurrentMemoryContext;
	TurnName	name = {job, table_name};
	ErrorContextCallback callback;
	volatile int delay = 0;

	callback.callback = turn_error_callback;
	callback.arg = &name;
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	PG_TRY();
	{
		*next = turn(state);
		errors->failures = 0;
	}
	PG_CATCH();
	{
		/* the error has its context already */
		error_context_stack = callback.previous;
		MemoryContextSwitchTo(context);
		delay = queue_worker_handle_error(job, errors);
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(context);
	table_name[0] = '\0';
	return delay;
}

List *
queue_table_state_list(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *tables;

	StartTransactionCommand();
	tables = queue_catalog_tables();
	MemoryContextSwitchTo(context);
	tables = list_copy(tables);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return tables;
}
