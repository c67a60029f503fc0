# shellcheck shell=bash disable=SC2034
# a limit: what a round trip costs
TITLE="SELECT 1"
SEND="SELECT 1"
