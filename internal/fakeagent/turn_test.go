//go:build unix

package fakeagent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/ptyrun/screen"
)

// agents are the profiles with a box for prompts.
var agents = []string{"claude", "codex", "gemini", "opencode"}

// looks is what tells a profile's states from each other on the screen.
var looks = map[string]struct {
	idle, draft, busy, tool, dialog, done string
	idleTitle, busyTitle, dialogTitle     string
	yes                                   string // keys
	quits                                 string
	alt                                   bool
}{
	"claude": {
		idle: "? for shortcuts", draft: "❯\u00a0hello", busy: "Wrangling…", tool: "Running…", dialog: "Do you want to proceed?", done: "✻ Crunched for",
		idleTitle: "✳ Claude Code", busyTitle: "Claude Code", dialogTitle: "✳ Claude Code", yes: "1", quits: "\x03\x03",
	},
	"codex": {
		idle: "Ask Codex to do anything", draft: "› hello", busy: "• Working (", tool: "• Running sleep", dialog: "Would you like to run the following command?", done: "Worked for",
		idleTitle: "proj", busyTitle: " proj", dialogTitle: "Action Required | proj", yes: "y", quits: "\x03", alt: true,
	},
	"gemini": {
		idle: "Type your message or @path/to/file", draft: " > hello", busy: "Thinking... (esc to cancel", tool: "⊷  Shell", dialog: "Allow execution of [Shell]?", done: "✦ ",
		idleTitle: "◇  Ready (proj)", busyTitle: "✦  Working… (proj)", dialogTitle: "✋  Action Required (proj)", yes: "1\r", quits: "\x03\x03",
	},
	"opencode": {
		idle: "tab agents  ctrl+p commands", draft: "┃  hello", busy: "esc interrupt", tool: "sleep 60", dialog: "△ Permission required", done: "▣  Build · Fake · ",
		idleTitle: "O", busyTitle: "OC | ", dialogTitle: "OC | ", yes: "\r", quits: "\x03", alt: true,
	},
}

// TestTurn goes with each through a prompt, a tool, a dialog, its answer, and
// the way out.
func TestTurn(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := looks[name]
			r := start(t, Options{Profile: name, NoRestore: true})
			r.logged(Ready)
			r.sees(look.idle)
			r.titled(look.idleTitle)
			r.until("modes", func(s *screen.Screen) bool {
				m := s.Modes()
				return m.Paste && m.Alt == look.alt
			})

			r.keys("hello")
			r.sees(look.draft)
			r.keys(" wörld 世界")
			r.sees(look.draft + " wörld 世界")
			r.keys("\x15")
			r.misses("wörld")

			r.say("THINK 60s, please")
			r.state("thinking")
			r.sees(look.busy)
			r.titled(look.busyTitle)
			r.interrupts(name)

			r.say("STREAM 60s")
			r.state("responding")
			r.sees("word")
			if name == "codex" {
				r.misses(look.busy)
			}
			r.interrupts(name)

			r.say("TOOL 60s [sleep 60]")
			r.state("tool_running")
			r.sees(look.tool)
			r.interrupts(name)

			r.say("CONFIRM touch made.txt")
			r.state("confirming")
			r.sees(look.dialog, "touch made.txt")
			r.misses(look.idle)
			r.titled(look.dialogTitle)
			r.keys(look.yes)
			es := r.logged(Answered)
			if got := es.Of(Answered)[0]; got.Option != "yes" || got.Kind != "permission" || got.Text != "touch made.txt" {
				t.Errorf("answer: %+v", got)
			}
			r.sees(done)
			r.state("idle")
			r.sees(look.idle, look.done)
			r.titled(look.idleTitle)

			r.keys(look.quits)
			if code := r.ends(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			es = r.logged(Exited)
			if diff := cmp.Diff([]string{"THINK 60s, please", "STREAM 60s", "TOOL 60s [sleep 60]", "CONFIRM touch made.txt"}, es.Texts(Submitted)); diff != "" {
				t.Errorf("submitted: %s", diff)
			}
			if es.Has(DialogKey) && name != "gemini" {
				t.Errorf("keys in the dialog: %v", es.Of(DialogKey))
			}
			<-r.gone
			if m := r.screen.Modes(); m.Paste || m.Alt || m.CursorHidden || m.Sync || r.screen.Title() != "" {
				t.Errorf("left behind: %+v, title %q", m, r.screen.Title())
			}
		})
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: name})
			r.logged(Ready)
			r.say("CONFIRM [rm -rf /] EXIT 3")
			r.sees("rm -rf /", looks[name].dialog)
			r.keys("\x1b")
			es := r.logged(TurnOver)
			if got := es.Of(Answered); len(got) != 1 || got[0].Option != "no" {
				t.Errorf("answers: %+v", got)
			}
			if got := es.Of(TurnOver)[0]; got.Kind != "denied" {
				t.Errorf("turn: %+v", got)
			}
			r.state("idle")
			r.sees(looks[name].idle)
		})
	}
}

// An interrupt before the first word brings Claude Code's prompt back, a later
// one does not.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name, options, keys string
		text, kind, shows   string
	}{
		{name: "claude", text: "THINK 60s now", keys: "\x1b", kind: "restored", shows: "❯\u00a0THINK 60s now"},
		{name: "claude", text: "STREAM 60s", keys: "\x03", kind: "stopped", shows: "Interrupted · What should Claude do instead?"},
		{name: "codex", text: "THINK 60s", keys: "\x1b", kind: "stopped", shows: "■ Conversation interrupted"},
		{name: "gemini", text: "THINK 60s", keys: "\x1b", kind: "stopped", shows: "ℹ Request cancelled."},
		{name: "opencode", text: "THINK 60s", keys: "\x1b\x1b", kind: "stopped", shows: "interrupted"},
	} {
		t.Run(one.name+" "+one.kind, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: one.name})
			r.logged(Ready)
			r.say(one.text)
			if strings.HasPrefix(one.text, "STREAM") {
				r.sees("word")
			} else {
				r.state("thinking")
			}
			r.keys(one.keys)
			r.sees(one.shows)
			r.state("idle")
			if got := r.logged(Interrupted).Of(Interrupted); len(got) != 1 || got[0].Kind != one.kind {
				t.Errorf("interrupts: %+v", got)
			}
		})
	}
}

func TestBusyReturn(t *testing.T) {
	t.Parallel()
	t.Run("claude queues", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{})
		r.logged(Ready)
		r.say("THINK 1.5s")
		r.state("thinking")
		r.say("queued text")
		r.sees("❯ queued text", "Press up to edit queued messages", "esc to interrupt")
		es := r.logs("two turns", func(es Entries) bool { return len(es.Of(TurnOver)) == 2 })
		if diff := cmp.Diff([]string{"THINK 1.5s", "queued text"}, es.Texts(Submitted)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"queued text"}, es.Texts(Queued)); diff != "" {
			t.Error(diff)
		}
		r.misses("Press up")
	})
	t.Run("codex steers", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Profile: "codex"})
		r.logged(Ready)
		r.say("THINK 1.5s")
		r.state("thinking")
		r.say("ECHO steered")
		r.logged(Steered)
		r.sees("› ECHO steered", "[[ECHO steered]]")
		es := r.logged(TurnOver)
		if diff := cmp.Diff([]string{"THINK 1.5s"}, es.Texts(Submitted)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("ignored", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{Busy: "ignore"})
		r.logged(Ready)
		r.say("THINK 60s")
		r.state("thinking")
		r.say("later")
		r.logged(Refused)
		r.sees("❯\u00a0later")
		r.misses("esc to interrupt") // though the turn runs
	})
	t.Run("an interrupt unqueues", func(t *testing.T) {
		t.Parallel()
		r := start(t, Options{})
		r.logged(Ready)
		r.say("THINK 60s")
		r.state("thinking")
		r.say("more")
		r.logged(Queued)
		r.keys("\x1b")
		r.sees("❯\u00a0THINK 60s", "  more")
		r.state("idle")
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		text  string
		code  int
		shows string
	}{
		{text: "say [from bob] ECHO ünïcode\nand lines", code: -1, shows: "[[say [from bob] ECHO ünïcode"},
		{text: "ERROR 200ms", code: -1, shows: "API Error"},
		{text: "QUOTE", code: -1, shows: "❯ 1. Yes"},
		{text: "FLOOD 0.5 ECHO", code: -1, shows: "[[FLOOD 0.5 ECHO]]"},
		{text: "EXIT 7", code: 7},
		{text: "CRASH SEGV", code: 128 + 11},
		{text: "CRASH", code: 128 + 9},
	} {
		t.Run(one.text, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{})
			r.logged(Ready)
			r.say(one.text)
			if one.shows != "" {
				r.sees(one.shows)
				r.state("idle")
				r.sees("? for shortcuts")
			}
			if one.code >= 0 {
				if code := r.ends(); code != one.code {
					t.Errorf("exit code %d, not %d", code, one.code)
				}
				if !r.logged(Exited).Has(Submitted) {
					t.Error("not submitted")
				}
			}
		})
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	for _, name := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Options{Profile: name})
			r.logged(Ready)
			r.say("QUESTION")
			r.state("awaiting_input")
			r.sees("1. ", "2. ")
			r.misses(looks[name].idle)
			r.keys("\x1b[B\r")
			if got := r.logged(Answered).Of(Answered)[0]; got.Kind != "question" || got.Option == "first" {
				t.Errorf("answer: %+v", got)
			}
			r.sees(pong)
		})
	}
}
