#!/bin/sh
# What happens, in a channel of Slack: a command of [[on]] in team.toml. Needs jq, curl and
# an incoming webhook, whose URL is a secret: it is in ~/.config/atm-slack.
set -eu
# Slack gives <!channel> and the like a meaning, unless these three characters are escaped.
jq '{text: (.text | gsub("&"; "&amp;") | gsub("<"; "&lt;") | gsub(">"; "&gt;"))}' |
	curl -fsS --max-time 20 -H 'Content-Type: application/json' -d @- "$(cat ~/.config/atm-slack)" >/dev/null
