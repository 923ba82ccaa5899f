#!/bin/sh
# Fan-out and gather: three agents work on one question at the same time, and one
# of them makes a single answer out of theirs.
#
#   fanout.sh JOB "question"      prints the answer
#   exit 0: done, 6: done without those who gave no answer within LIMIT, 4: alice's last one is missing
set -eu
job=$1 question=$2 limit=${LIMIT:-1h} answers="" code=0
trap 'ATM_AGENT= atm down >&2' EXIT; trap 'exit 130' INT TERM
atm up >&2
export ATM_AGENT=script # from here on

for agent in alice bob carol; do # all begin
	atm send "$agent" --once "$job" "$question" >&2
done
for agent in alice bob carol; do # the same name: nothing is sent again, only waited for
	answer=$(atm ask "$agent" --once "$job" --timeout "$limit" "$question") || code=6
	answers="$answers
$agent: ${answer:-has not answered}"
done
atm ask alice --once "$job/gather" --timeout "$limit" <<END
Make one answer out of these to: $question
$answers
END
exit $code
