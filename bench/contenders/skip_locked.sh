# shellcheck shell=bash disable=SC2034
# what most people write: a table, and DELETE with SKIP LOCKED
TITLE="SKIP LOCKED"
SETUP="CREATE TABLE bench (id bigserial PRIMARY KEY, payload jsonb NOT NULL)"
SEND="INSERT INTO bench (payload) VALUES (\$1::jsonb)"
SEND_MANY="INSERT INTO bench (payload) SELECT unnest(\$1::jsonb[])"
TAKE="DELETE FROM bench WHERE id = (SELECT id FROM bench
	ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload"
TAKE_MANY="DELETE FROM bench WHERE id = ANY (ARRAY(SELECT id FROM bench
	ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)) RETURNING payload"
FILL="INSERT INTO bench (payload) SELECT bench.payload(n) FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM bench"
