#!/bin/sh
# Human in the loop: bob prepares a release, and a person says whether it goes out.
#
# The person answers when they like, and nobody else can: atm read --as me; atm reply ID
# yes --as me. What bob wants to be allowed on the way waits in atm pending: atm approve
# bob, atm reject bob.
#
#   human.sh VERSION
#   exit 0: released, 4: bob has not answered within LIMIT, 5: the person said no
set -eu
version=$1 limit=${LIMIT:-1h}
trap 'ATM_AGENT= atm down >&2' EXIT; trap 'exit 130' INT TERM
atm up
export ATM_AGENT=script # from here on

notes=$(atm ask bob --once "$version/notes" --timeout "$limit" "Prepare release $version. Answer with its notes.")
answer=$(atm ask me --once "$version/go" --timeout 0 <<END
Release $version? Answer yes, or say why not. Its notes:
$notes
END
)
case $answer in
[Yy]es*) atm ask bob --once "$version/go" --timeout "$limit" "Release $version now. Answer with its tag." ;;
*)
	atm send bob --once "$version/no" --fyi "No release of $version: $answer"
	exit 5
	;;
esac
