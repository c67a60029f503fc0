# shellcheck shell=bash disable=SC2034
# a limit: what a commit costs
TITLE="plain INSERT, no index"
SETUP="CREATE TABLE bench (id bigserial, payload jsonb NOT NULL)"
SEND="INSERT INTO bench (payload) VALUES (\$1::jsonb)"
COUNT="SELECT count(*) FROM bench"
