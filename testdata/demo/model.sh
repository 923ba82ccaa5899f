# Plays the models of the demonstration: what was typed into its agent is the
# standard input, what it prints is what the agent says or does.
prompt=$(cat)
id=$(printf '%s\n' "$prompt" | sed -n 's/^\[atm \([0-9a-f]*\) from .*/\1/p' | head -1)
sleep 1
case $prompt in
*"Review what alice did"*)
	if [ -f reviewed ]; then
		atm reply "$id" "Approved. Small, and tested." >/dev/null
	else
		atm reply "$id" "There is no test for empty input." >/dev/null
	fi
	touch reviewed
	echo "I have told them what I think."
	;;
*"no test for empty input"*) echo "parser_test.go tests it now: an empty input is an empty tree." ;;
*"Release it"*) echo "CONFIRM [git push origin v1.0] SAY Released as v1.0." ;;
*"Tell bob"*)
	sleep 3
	atm send bob "v1.0 is out. Please announce it." >/dev/null
	atm send me "v1.0 is tagged, all 212 tests pass." >/dev/null
	echo "I have told bob."
	;;
*"announce it"*)
	echo "v1.0 has a parser." >news.md
	atm send me "Here is the news. Shall I post it?" --ack --attach news.md >/dev/null
	echo "news.md is written, and sent to you."
	;;
*"parser again"*) echo "THINK 60" ;;
*) echo "CONFIRM [git status --short] SAY parser.go parses; parser_test.go tests it." ;;
esac
