# shellcheck shell=bash disable=SC2034
# a limit: the same rows by COPY, into a table with one index
TITLE="COPY, one index"
SETUP="CREATE TABLE bench (id bigserial PRIMARY KEY, payload jsonb NOT NULL)"
COPY="COPY bench (payload) FROM STDIN"
COUNT="SELECT count(*) FROM bench"
