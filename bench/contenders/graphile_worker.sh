# shellcheck shell=bash disable=SC2034
# graphile-worker: its schema, functions and statements, without its worker
GRAPHILE_VERSION=0.16.6
TITLE="graphile-worker $GRAPHILE_VERSION"
SEND="SELECT graphile_worker.add_job('bench', \$1::json)"
SEND_MANY="SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
	SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object('identifier', 'bench', 'payload', p))
	FROM unnest(\$1::json[]) p))"
TAKE="WITH j AS (
		SELECT id, job_queue_id FROM graphile_worker._private_jobs
		WHERE is_available AND run_at <= now() AND task_id = ANY ('{1}'::int[])
			AND (job_queue_id IS NULL OR job_queue_id IN (
				SELECT id FROM graphile_worker._private_job_queues WHERE is_available FOR UPDATE SKIP LOCKED))
		ORDER BY priority, run_at LIMIT 1 FOR UPDATE SKIP LOCKED),
	q AS (
		UPDATE graphile_worker._private_job_queues SET locked_by = 'bench', locked_at = now()
		FROM j WHERE _private_job_queues.id = j.job_queue_id)
	UPDATE graphile_worker._private_jobs jobs SET attempts = attempts + 1, locked_by = 'bench', locked_at = now()
	FROM j WHERE jobs.id = j.id
	RETURNING payload, jobs.id, jobs.job_queue_id, task_id, attempts, run_at"
ACK="DELETE FROM graphile_worker._private_jobs WHERE id = \$1::bigint"
FILL="INSERT INTO graphile_worker._private_jobs (task_id, payload) SELECT 1, bench.payload(n)::json FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM graphile_worker._private_jobs"
contender_prepare() {
	REASON="npm cannot install graphile-worker@$GRAPHILE_VERSION here"
	npm_package "graphile-worker@$GRAPHILE_VERSION"
}
contender_setup() {
	"$QUEUE_WORK/npm/node_modules/.bin/graphile-worker" --schema-only \
		-c "postgres://$PGUSER@localhost/$PGDATABASE?host=$PGHOST&port=$PGPORT" >"$QUEUE_WORK/graphile.log" 2>&1 || return 1
	sql -c "SELECT graphile_worker.add_job('bench', '{}'); DELETE FROM graphile_worker._private_jobs" >/dev/null
	[ "$(sql -c "SELECT string_agg(id::text, ',') FROM graphile_worker._private_tasks")" = 1 ]
}
