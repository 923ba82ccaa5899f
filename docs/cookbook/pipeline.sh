#!/bin/sh
# Pipeline: alice plans, bob builds what she planned, carol tests what he built.
#
#   pipeline.sh JOB "task"      prints carol's report
#   exit 0: done, 1: a stage has failed, 4: one has not answered within LIMIT
set -eu
job=$1 task=$2 limit=${LIMIT:-1h}
trap 'ATM_AGENT= atm down >&2' EXIT; trap 'exit 130' INT TERM
atm up >&2
export ATM_AGENT=script # from here on

stage() { # who, what to do, with what the stage before has said
	echo "$job: $1" >&2
	atm ask "$1" --once "$job/$1" --timeout "$limit" <<END
$2

$3
END
}

plan=$(stage alice "Plan this, and answer with the plan:" "$task")
build=$(stage bob "Do what this plan says, and answer with what you changed:" "$plan")
stage carol "Test this, and answer with what you found:" "$build"
