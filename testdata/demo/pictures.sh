# The pictures of the documents and the film: `make pictures`. team.sh runs it in the
# team's directory, as me, in place of its end.
set -eu
demo=$(cd "$(dirname "$0")" && pwd)
docs=$(cd "$demo/../../docs" && pwd)
export ASCIINEMA_CONFIG_HOME="$PWD/.asciinema"
web=
trap 'tmux -S .tmux kill-server 2>/dev/null || :; [ -z "$web" ] || kill "$web"' EXIT
trap 'exit 130' INT TERM HUP
echo 'set -g status off' >.tmux.conf

terminal() { # a name, columns, rows, and what runs in it
	tmux -S .tmux -f .tmux.conf new-session -d -s "$1" -x "$2" -y "$3" "$4"
}
becomes() { # waits until a terminal shows a text
	tries=300
	until tmux -S .tmux capture-pane -p -t "$1" | grep -q -e "$2"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "no '$2' in:"; tmux -S .tmux capture-pane -p -t "$1"; exit 1; } >&2
		sleep 0.1
	done
}
press() { # a terminal, what it then shows, and the keys
	name=$1 shown=$2
	shift 2
	tmux -S .tmux send-keys -t "$name" "$@"
	becomes "$name" "$shown"
}
film() { # as press, and the viewer sees it
	press film "$@"
	sleep 1.2
}
visit() { # a window's size, and arguments; some pages never become what Chromium takes for quiet
	size=$1
	shift
	timeout 60 chromium --headless --timeout=5000 --user-data-dir="$PWD/.chromium" $([ "$(id -u)" != 0 ] || echo --no-sandbox) \
		--hide-scrollbars --window-size="$size" "$@" 2>.chromium.log || { cat .chromium.log >&2; exit 1; }
}

echo "docs/film.cast"
terminal film 100 28 "asciinema rec -q --env TERM --cols 100 --rows 28 -t 'A team of atm' -c 'atm tui' film.cast"
becomes film 'bob.*idle'
sleep 1.2
atm send alice "Release it, please." >/dev/null
becomes film '1 waiting'
sleep 2
film 'a again answers' a
film 'answered (Yes)' a
becomes film 'alice.*idle'
film '> alice' Tab
film 'to: alice' s
film 'Tell bob' 'Tell bob, please.'
film 'alice.*busy' C-s
film '> bob' j
film 'Claude Code' t
becomes film 'announce it'
becomes film 'sent to you'
sleep 3
film '2 unread' 'C-\' d
sleep 2
tmux -S .tmux send-keys -t film q
while tmux -S .tmux has-session -t film 2>/dev/null; do sleep 0.1; done
tac film.cast | sed "1,/1049l/d; s|$PWD|~/app|g" | tac >"$docs/film.cast" # without what came of q

echo "docs/tui.png"
atm send bob "Read the parser again, please." >/dev/null
atm send alice "Release it, please." >/dev/null
terminal photo 110 30 'atm tui'
becomes photo '1 waiting'
becomes photo 'bob.*busy'
press photo '^> .*alice wants' Tab
press photo '^> alice' Tab
press photo 'Do you want' Enter
press photo 'members' Tab
{
	echo '<meta charset="utf-8"><style>body { margin: 0; background: #18191e; color: #ddd }'
	echo 'pre { margin: 12px 14px; font: 16px/18px "DejaVu Sans Mono" }</style><pre>'
	tmux -S .tmux capture-pane -e -p -t photo | sed 's/\[2m/[38;5;245m/g; s/⎿/└/g' | # which aha and the font lack
		aha --black --no-header | sed 's/:red/:#ff6b6b/g; s/:aqua/:#56c8d8/g; s/color:white/color:#ddd/g; s/color:black/color:#18191e/g'
} >tui.html
visit 1088,564 --screenshot="$docs/tui.png" "file://$PWD/tui.html"

atm web --no-open >address &
web=$!
until [ -s address ]; do sleep 0.1; done
site=$(sed 's/?.*//' address)
visit 1200,800 --dump-dom "$(cat address)" >/dev/null # lets this browser in
visit 1200,800 --dump-dom "$site" | grep -q 'Waiting for you' || { echo "chromium was not let into $site" >&2; exit 1; }
echo "docs/web.png"
visit 1200,800 --screenshot="$docs/web.png" "$site"
echo "docs/timeline.png"
visit 1200,800 --screenshot="$docs/timeline.png" "${site}timeline"

# What they show, for TestPictures.
cd "$demo/../.."
sha256sum cmd/internal/web/templates/* cmd/internal/web/static/style.css cmd/internal/tui/testdata/m*-100.txt \
	testdata/demo/model.sh testdata/demo/pictures.sh testdata/demo/team.* >docs/pictures.sum
