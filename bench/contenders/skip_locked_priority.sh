# shellcheck shell=bash disable=SC2034
# the same, in the order of an index by priority
TITLE="SKIP LOCKED, priority"
SETUP="CREATE TABLE bench (id bigserial PRIMARY KEY, priority int NOT NULL, payload jsonb NOT NULL);
	CREATE INDEX ON bench (priority, id)"
SEND="INSERT INTO bench (payload, priority) VALUES (\$1::jsonb, \$2::int)"
TAKE="DELETE FROM bench WHERE id = (SELECT id FROM bench
	ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload"
FILL="INSERT INTO bench (payload, priority) SELECT bench.payload(n), n % 10 FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM bench"
