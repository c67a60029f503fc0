# shellcheck shell=bash disable=SC2034
# a table in the manner of pgmq: read with a visibility timeout, then delete
# A read hides a message for a time and counts the reads, a delete in another
# transaction ends it.  Plain prepared SQL, which is faster than functions in
# PL/pgSQL.
TITLE="pgmq-style"
SETUP="CREATE TABLE bench (
		msg_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		read_ct int NOT NULL DEFAULT 0,
		enqueued_at timestamptz NOT NULL DEFAULT now(),
		vt timestamptz NOT NULL,
		message jsonb,
		headers jsonb);
	CREATE INDEX ON bench (vt)"
SEND="INSERT INTO bench (vt, message) VALUES (clock_timestamp(), \$1::jsonb) RETURNING msg_id"
SEND_MANY="INSERT INTO bench (vt, message) SELECT clock_timestamp(), unnest(\$1::jsonb[]) RETURNING msg_id"
pgmq_read() {		# messages
	echo "WITH next AS (
			SELECT msg_id FROM bench WHERE vt <= clock_timestamp()
			ORDER BY msg_id LIMIT $1 FOR UPDATE SKIP LOCKED)
		UPDATE bench m SET vt = clock_timestamp() + '30 seconds'::interval, read_ct = read_ct + 1
		FROM next WHERE m.msg_id = next.msg_id
		RETURNING m.message, m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.headers"
}
TAKE=$(pgmq_read 1)
ACK="DELETE FROM bench WHERE msg_id = \$1::bigint RETURNING msg_id"
TAKE_MANY=$(pgmq_read 100)
ACK_MANY="DELETE FROM bench WHERE msg_id = ANY (\$1::bigint[]) RETURNING msg_id"
FILL="INSERT INTO bench (vt, message) SELECT clock_timestamp(), bench.payload(n) FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM bench"
