#!/bin/sh
# A team at work, in a temporary directory: `make demo-team`. It needs atm and
# fakeagent on the PATH; its agents are fake ones, and model.sh plays their models.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
dir=$tmp/app
mkdir "$dir"
unset ATM_ROOT ATM_TEAM ATM_AGENT ATM_RUN
export XDG_STATE_HOME="$dir/.state"
trap 'atm down >/dev/null 2>&1 || :; cd /; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
cd "$dir"
cp "$here/team.toml" "$here/model.sh" "$here/../../docs/cookbook/pair.sh" .
ln -s "$(command -v fakeagent)" claude # a rule answers what its hooks ask

show() { # a command as it would be typed, and what it prints
	line=
	for word; do
		case $word in
		*[!a-zA-Z0-9_./=-]*) line="$line \"$word\"" ;;
		*) line="$line $word" ;;
		esac
	done
	echo "\$$line"
	"$@" 2>&1 | sed "s|$dir/||g; s|^atm: |  |"
}
say() {
	echo
	echo "# $*"
}

echo "# A team is a directory. team.toml says how its agents are started, and what they may do."
show atm init alice bob me script
mv team.toml .atm/main/team.toml
show cat .atm/main/team.toml

say "atm up starts them, each in a terminal of its own, and returns when all are ready."
show atm up
show atm team

say "A script drives them: alice writes and bob reviews, until he approves (docs/cookbook has it)."
show sh pair.sh parser "write the parser"

say "Run again, as after a Ctrl-C, it sends nothing twice: every answer is there."
show sh pair.sh parser "write the parser"
show atm history alice

say "The script has stopped the team when it was done. It is started again."
show atm up

say "You are one of the team. Her git status a rule has allowed; her git push waits for you."
export ATM_AGENT=me
if [ -n "${PICTURES-}" ]; then # make pictures
	sh "$PICTURES"
	exit
fi
show atm send alice "Release it, please."
show atm wait --blocked alice
show atm pending
show atm team
show atm approve alice
show atm wait --idle alice
show atm history alice --limit 1

say "atm attach alice would show her terminal. Here is the end of it:"
show atm screen alice --last 12

say "atm down stops everybody, and all that they have started. Their mail stays."
show atm down
show atm team
echo
echo "# Your own: atm init alice bob me, a .atm/main/team.toml, atm up. More scripts: docs/scripting.md"
