#!/bin/sh
# What happens, on the desktop: a command of [[on]] in team.toml. Needs jq, and on Linux
# notify-send.
set -eu
text=$(jq -r .text)
case $(uname) in
Darwin) osascript -e 'on run words' -e 'display notification (item 1 of words) with title "atm"' -e 'end run' -- "$text" ;;
*) notify-send --app-name atm -- "$text" ;; # the title: in a body some characters have a meaning
esac
