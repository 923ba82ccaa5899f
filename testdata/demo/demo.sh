#!/bin/sh
# An exchange of mail, in a temporary directory: `make demo`. It needs atm on the
# PATH, and prints each command before it runs it.
set -eu
dir=$(mktemp -d)
unset ATM_ROOT ATM_TEAM ATM_AGENT ATM_RUN
export XDG_STATE_HOME="$dir/.state"
trap 'cd /; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP
cd "$dir"
printf 'TestParse: want 3 nodes, got 2\n' >failing-tests.txt

show() { # a command as it would be typed, and what it prints
	line=
	for word; do
		case $word in
		*[!a-zA-Z0-9_./=-]*) line="$line \"$word\"" ;;
		*) line="$line $word" ;;
		esac
	done
	echo "\$$line"
	"$@" >.out 2>&1
	sed "s|$dir/||g; s|^atm: |  |" .out
}
say() {
	echo
	echo "# $*"
}
sent() { # the id of the message that was just sent
	sed -n 's/^sent \([0-9a-f]*\) to .*/\1/p' .out
}

echo "# Two agents and a person."
show atm init --here alice bob me

say "You ask alice for something, and want to know that she has it."
show atm send alice "Please split the parser out of main.go." --ack --as me
id=$(sent)

say "Alice reads her mail. A message counts as read once she has it."
show atm read --as alice
show atm ack "$id" --text "on it" --as alice
show atm trace "$id" --as me

say "She hands a part to bob. A file put into his inbox is a message too."
show atm send bob "I move the parser; please adapt the tests." --as alice
id=$(sent)
show cp failing-tests.txt .atm/main/bob/inbox/
show atm read --as bob
show atm reply "$id" "Done, all green." --as bob

say "Everybody sees how things stand."
show atm team
show atm thread "$id" --as alice

say "That is all: files in a directory. Yours: atm init alice bob me"
