package cli

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// Every verb has a summary, an example and a page of at most 25 lines, of 100 columns or on a terminal with 80; no name
// means two things.
func TestVerbs(t *testing.T) {
	app := newApp("test")
	seen := map[string]string{}
	for _, c := range app.Commands {
		for _, name := range c.Names() {
			if seen[name] != "" {
				t.Errorf("%s: %q is %s already", c.Name, name, seen[name])
			}
			seen[name] = c.Name
		}
		checkVerb(t, app, nil, c)
	}
}

func checkVerb(t *testing.T, app *cli.App, parents []string, c *cli.Command) {
	t.Helper()
	if c.Hidden {
		return
	}
	path := append(parents[:len(parents):len(parents)], c.Name)
	name := strings.Join(path, " ")
	if c.Usage == "" || cmdline.Example(c) == "" {
		t.Errorf("%s: no line, or no example", name)
	}
	flags := map[string]bool{}
	for _, f := range app.VisibleFlags() {
		flags["--"+f.Names()[0]] = true
	}
	for _, f := range c.VisibleFlags() {
		for _, flag := range f.Names() {
			if flags["--"+flag] {
				t.Errorf("%s: --%s is there twice", name, flag)
			}
			flags["--"+flag] = true
		}
	}
	page := helpPage(c, 0)
	for _, shown := range []string{page, layOut(helpPage(c, 80), 80)} {
		if n := strings.Count(shown, "\n"); n > 25 {
			t.Errorf("%s: its page has %d lines:\n%s", name, n, shown)
		}
	}
	for line := range strings.Lines(page) {
		if n := utf8.RuneCountInString(line); n > 101 {
			t.Errorf("%s: a line of %d columns: %s", name, n, line)
		}
	}
	for _, sub := range c.Subcommands {
		checkVerb(t, app, path, sub)
	}
}

// On a narrow terminal a help page loses nothing, and a row of a table goes on below its last column.
func TestNarrowHelp(t *testing.T) {
	send := newApp("").Command("send")
	for _, width := range []int{50, 60, 80} {
		for _, page := range []string{mainHelp, helpPage(send, width)} {
			shown := layOut(page, width)
			if strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(page), " ") {
				t.Errorf("%d columns: it says something else:\n%s", width, shown)
			}
			for line := range strings.Lines(shown) {
				if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
					t.Errorf("%d columns: %q", width, line)
				}
			}
		}
	}
	if shown := layOut(mainHelp, 75); !strings.Contains(shown, "or: atm install claude, then\n"+strings.Repeat(" ", 45)+"claude\n") {
		t.Error(shown)
	}
	if shown := helpPage(send, 80); !strings.Contains(shown, "--message TEXT  TEXT as a flag       --") {
		t.Errorf("the flags of send are not in two columns of 80:\n%s", shown)
	}
}

func TestMainHelp(t *testing.T) {
	words := strings.FieldsFunc(mainHelp, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') })
	for _, c := range newApp("test").VisibleCommands() {
		if !slices.Contains(words, c.Name) && !slices.Contains([]string{"uninstall", "version"}, c.Name) {
			t.Errorf("the main page does not name %s", c.Name)
		}
	}
	if shown := layOut(mainHelp, 80); shown != mainHelp || strings.Count(shown, "\n") > 25 {
		t.Errorf("the main page is not one of 80 columns and 25 lines:\n%s", shown)
	}
}

// Words of other tools are answered by the help, each by a command or a key, and by no list of all commands.
func TestWordsElsewhere(t *testing.T) {
	for typed, want := range map[string]string{
		"broadcast x y": `atm send all 'x y'`, "forward 9f3a1c carol": "atm show 9f3a1c --raw | atm send carol -", "cancel 9f3a1c": "atm withdraw 9f3a1c",
		"schedule": `atm send NAME "…" --at 14:00`, "done 9f3a1c": "atm ack 9f3a1c --done", "queue": "atm team add jobs --shared",
		"pop jobs": "atm take jobs", "logs bob": "atm watch bob", "outbox": "atm ls --sent", "mark-unread 9f3a1c": "atm unread 9f3a1c",
		"peek": "atm read --peek", "comment 9f3a1c x": "atm reply 9f3a1c x", "add eve": "atm team add eve", "kick bob": "atm team retire bob",
		"ps": "atm team", "top": "atm team --watch", "start eve": "atm run eve", "new -s x": "atm run x -- claude", "exec bob ls": "atm type bob ls",
		"export": "atm backup atm-2026-05-01.tar", "ssh": "atm bridge --ssh build", "pause bob": "atm interrupt bob", "login": "atm init alice bob me",
		"poll carol Lunch?": "atm ask carol 'Lunch?' --choice yes --choice no", "listen": "atm read --wait", "sent": "atm ls --sent",
		"reply-all 9f3a1c x": "atm reply 9f3a1c x --all", "kill-server": "atm down", "capture-pane -t bob": "atm screen bob",
		"mute bob 2h": "from, a key of the member in team.toml: atm help team.toml", "whoami": "atm where", "unlink web": "atm link --remove LINK",
		"retry 9f3a1c": "atm doctor --fix 9f3a1c", "broadcast hi --as me": "atm send all hi --as me",
		"schedule bob x --at 9am": "atm send bob x --at 9am", "schedule bob x --in 2h": "atm send bob x --in 2h",
		"poll Lunch? yes no": `atm ask NAME 'Lunch? yes no' --choice yes --choice no`, "ssh devbox": "atm bridge --ssh devbox",
		"send-keys -t bob x Enter": "atm type bob x --enter", "screenshot -t carol": "atm screen carol", "who bob": "atm team",
		"launch bob -- sh": "atm run bob -- sh", "view 9f3a1c": "atm show 9f3a1c; atm tui --as me",
		"rename bob eve": "atm team retire bob, once atm team add has made the new one",
	} {
		words := strings.Fields(typed)
		if e := cmdline.UnknownCommand(newApp("test"), words[0], words[1:]...); e.Hint.String() != want {
			t.Errorf("%s: %s", typed, e.Hint)
		}
	}
	for _, word := range []string{"download", "downgrade", "step", "stpo", "dwon", "frobnicate"} {
		if e := cmdline.UnknownCommand(newApp("test"), word); !strings.HasPrefix(e.Hint.String(), "commands: ") {
			t.Errorf("%s: %s", word, e.Hint)
		}
	}
}
