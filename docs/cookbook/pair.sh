#!/bin/sh
# Pair: alice writes, bob reviews, again and again until bob approves.
#
#   pair.sh JOB "what to write"
#   exit 0: approved, 1: not after five rounds, 4: no answer within LIMIT
set -eu
job=$1 task=$2 limit=${LIMIT:-1h}
trap 'ATM_AGENT= atm down >&2' EXIT; trap 'exit 130' INT TERM
atm up
export ATM_AGENT=script # from here on

atm ask alice --once "$job/write" --timeout "$limit" "$task" >/dev/null
for round in 1 2 3 4 5; do
	verdict=$(atm ask bob --once "$job/review $round" --timeout "$limit" \
		"Review what alice did for: $task. Say approved as your first word, or what is wrong.")
	case $verdict in
	[Aa]pproved*)
		echo "approved in round $round"
		exit
		;;
	esac
	atm ask alice --once "$job/mend $round" --timeout "$limit" >/dev/null <<END
bob says: $verdict
END
done
echo "not approved: $verdict" >&2
exit 1
