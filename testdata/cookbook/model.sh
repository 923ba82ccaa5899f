#!/bin/sh
# Plays the models of a team that does the cookbook's recipes: what was typed into
# its agent is the standard input, what it prints is what the agent says. It notes
# each message that it was shown in the file prompts, is slow where there is a
# file slow, and fails for the agents in the file broken.
prompt=$(sed '/^\[\/atm\]/d') # without the end of the mail
id=$(printf '%s\n' "$prompt" | sed -n 's/^\[atm \([0-9a-f]*\) from .*/\1/p' | head -1)
echo "$ATM_AGENT $id" >>prompts
grep -qsx "$ATM_AGENT" broken && exit 1
if [ -f slow ]; then sleep "$(cat slow)"; fi

case $prompt in
*"Review what"*) # approved at the second message that asks for it, however often each is shown
	grep -qsx "$id" reviews || echo "$id" >>reviews
	if [ "$(head -1 reviews)" = "$id" ] || [ -f strict ]; then
		atm reply "$id" "The tests are missing." >&2
	else
		atm reply "$id" "Approved, well done." >&2
	fi
	echo "I have told them."
	;;
*"Prepare release"*) echo "CONFIRM [make changelog] SAY Faster, and two bugs less." ;;
*"Release "*) echo "v1.4" ;;
*"Make one answer"*) echo "Together: $(printf '%s\n' "$prompt" | grep -c ' says so')" ;;
*"Test this"*) echo "tested: $(printf '%s\n' "$prompt" | tail -1 | sed 's/^ *//')" ;;
*"Do what this plan"*) echo "built: $(printf '%s\n' "$prompt" | tail -1 | sed 's/^ *//')" ;;
*"Plan this"*) echo "the plan" ;;
*) echo "$ATM_AGENT says so" ;;
esac
