# shellcheck shell=bash disable=SC2034
# PgQ 3: one consumer takes all that came between two ticks
# pgq_50 has a tick every 50 ms.  The consumer's three calls are made in one function, to
# spare it the round trips.
TITLE="PgQ, ${VARIANT:=50} ms ticks"
SETUP="CREATE EXTENSION pgq;
	SELECT pgq.create_queue('bench');
	SELECT pgq.register_consumer('bench', 'reader');
	SELECT pgq.set_queue_config('bench', 'ticker_max_lag', '0 seconds');
	CREATE FUNCTION bench.take() RETURNS SETOF text LANGUAGE plpgsql AS \$\$
	DECLARE
		batch bigint := pgq.next_batch('bench', 'reader');
	BEGIN
		IF batch IS NOT NULL THEN
			RETURN QUERY SELECT ev_data FROM pgq.get_batch_events(batch);
			PERFORM pgq.finish_batch(batch);
		END IF;
	END \$\$"
SEND="SELECT pgq.insert_event('bench', 'm', \$1::text)"
SEND_MANY="SELECT count(pgq.insert_event('bench', 'm', p)) FROM unnest(\$1::text[]) p"
TAKE_MANY="SELECT * FROM bench.take()"
FILL="SELECT count(pgq.insert_event('bench', 'm', bench.payload(n)::text)) FROM generate_series(1, :count) n"
COUNT="SELECT count(*) FROM pgq.event_1 e, pgq.subscription s JOIN pgq.tick t ON t.tick_queue = s.sub_queue AND t.tick_id = s.sub_last_tick
	WHERE NOT txid_visible_in_snapshot(e.ev_txid, t.tick_snapshot)"
MOST_CONSUMERS=1
BACKGROUND="$VARIANT:SELECT pgq.ticker('bench')"
contender_prepare() {
	REASON="no package postgresql-$(queue_version)-pgq3 for this server"
	server_package "postgresql-$(queue_version)-pgq3" pgq
}
