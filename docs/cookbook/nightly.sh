#!/bin/sh
# Nightly batch: each line of a file is a job: NAME AGENT WHAT TO DO. The agents work side by
# side, each through its own jobs. When all is done, or the time is up, me gets a summary.
#
#   nightly.sh NIGHT FILE SECONDS      the answers are files in the directory NIGHT
#   exit 0: all done, 4: not all
set -eu
night=$1 jobs=$2 end=$(($(date +%s) + $3)) workers="" summary="" late=0
# Twice: a shell that was forked only just now may lose a signal.
trap 'kill $workers 2>/dev/null || :; ATM_AGENT= atm down >&2; kill $workers 2>/dev/null || :' EXIT; trap 'exit 130' INT TERM
mkdir -p "$night"; atm up; export ATM_AGENT=script # from here on

work() { # the jobs of one agent, in their order
	trap 'kill ${!-} 2>/dev/null; exit' TERM
	while read -r name agent text || [ -n "$name" ]; do
		left=$((end - $(date +%s)))
		[ "$agent" = "$1" ] && [ $left -gt 0 ] || continue
		atm ask "$agent" --once "$night/$name" --timeout ${left}s "$text" >"$night/$name" & wait $! || [ $? -ne 130 ] || exit
	done <"$jobs"
}
for agent in $(cut -d" " -f2 "$jobs" | sort -u); do work "$agent" & workers="$workers $!"; done
wait
while read -r name agent _ || [ -n "$name" ]; do
	if [ -s "$night/$name" ]; then state=done; else state="NOT DONE by $agent" late=$((late + 1)); fi
	summary="$summary$name: $state
"
done <"$jobs"
atm send me --once "$night $(echo "$summary" | cksum)" --subject "$night: $late not done" "$summary"
[ $late -eq 0 ] || exit 4
