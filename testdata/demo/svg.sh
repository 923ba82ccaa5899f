#!/bin/sh
# The picture in the README: what a terminal shows of a team at work, with the
# program's own output. `make demo-team` builds what it needs; then
#
#	PATH="$PWD/bin:$PATH" sh testdata/demo/svg.sh >docs/team.svg
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
unset ATM_ROOT ATM_TEAM ATM_AGENT ATM_RUN
export XDG_STATE_HOME="$dir/.state"
trap 'atm down >/dev/null 2>&1 || :; cd /; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$dir/app"
cd "$dir/app"
atm init --here alice bob me >/dev/null 2>&1
cp "$here/model.sh" .
ln -s "$(command -v fakeagent)" claude
cp "$here/team.toml" .atm/main/team.toml
atm up >/dev/null 2>&1
export ATM_AGENT=me

show() { # a command as it would be typed, and what it prints
	echo "\$ $1"
	sh -c "$1" 2>&1
	echo
}
{
	show 'atm send alice "Release it, please."'
	atm wait --blocked alice >/dev/null
	show "atm team"
	show "atm pending"
	show "atm approve alice"
	atm wait --idle alice >/dev/null
	show "atm trace $(atm ls --sent --json | sed 's/.*"short":"\([0-9a-f]*\)".*/\1/')"
	show "atm history alice --limit 1"
} >screen

sed '$d' screen | awk '
	{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); line[NR] = $0 }
	END {
		printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 880 %d\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n", NR * 20 + 50
		print "<title>A team at work: a message, a permission request, and what became of it</title>"
		print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e1e2e\"/>"
		print "<circle cx=\"20\" cy=\"18\" r=\"6\" fill=\"#f38ba8\"/><circle cx=\"40\" cy=\"18\" r=\"6\" fill=\"#f9e2af\"/><circle cx=\"60\" cy=\"18\" r=\"6\" fill=\"#a6e3a1\"/>"
		print "<g fill=\"#cdd6f4\" xml:space=\"preserve\">"
		for (i = 1; i <= NR; i++) {
			color = line[i] ~ /^\$/ ? " fill=\"#89b4fa\"" : line[i] ~ / blocked / ? " fill=\"#f9e2af\"" : ""
			if (line[i] != "") printf "<text x=\"16\" y=\"%d\"%s>%s</text>\n", i * 20 + 30, color, line[i]
		}
		print "</g>\n</svg>"
	}'
