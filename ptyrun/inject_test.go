package ptyrun

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

var agents = []string{"claude", "codex", "gemini", "opencode"}

// Mail starts a turn with an id, from its start until idle, and every state change names the previous state.
func TestTurnHasItsID(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.send("CONFIRM [touch made.txt]")
	r.wait("the question", func() bool { return len(r.questions()) == 1 })
	if _, err := r.client().Answer(t.Context(), control.AnswerRequest{By: "alice"}); err != nil {
		t.Fatal(err)
	}
	r.wait("the turn's end", r.has("turn_idle"))
	all, err := r.bob.Log().Newest(1 << 20)
	must(t, err)
	turns := map[string][]string{}
	var states []string
	last := "starting"
	for _, e := range all {
		if strings.HasPrefix(e.Kind, "turn_") {
			turns[e.TurnID] = append(turns[e.TurnID], e.Kind)
			if e.Field("thread_id") != r.opt.Run || e.Field("transport") != "pty" {
				t.Errorf("%s is of thread %q over %q", e.Kind, e.Field("thread_id"), e.Field("transport"))
			}
		}
		if e.Kind == "state_change" {
			if e.Field("previous") != last {
				t.Errorf("%s to %s: it was %s", e.Field("previous"), e.Field("new"), last)
			}
			last = e.Field("new")
			states = append(states, last)
		}
	}
	for id, kinds := range turns {
		if id == "" || strings.Join(kinds, " ") != "turn_started turn_completed turn_idle" {
			t.Errorf("turn %q: %q", id, kinds)
		}
	}
	if got := strings.Join(states, " "); len(turns) != 1 || !strings.HasPrefix(got, "idle thinking ") || !strings.Contains(got, " confirming ") {
		t.Errorf("%d turns, states %q", len(turns), got)
	}
}

// A reply answers no dialog; the request's text says what does.
func TestHintAboveAMessage(t *testing.T) {
	for kind, hint := range map[string]string{wire.TypeMessage: " answer: atm reply 9f3a1c", wire.TypeAck: "", wire.TypePermissionRequest: ""} {
		m := &wire.Message{ID: "01a20f0b-d540-716f-811c-2f48129f3a1c", Type: kind, Body: "x"}
		got := oneLetter(m, m.Body, letter.Flags{}, &letter.Renderer{})
		if _, after, _ := strings.Cut(got, "]"); !strings.HasPrefix(after, hint) || hint == "" && after != "\n  x\n" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// Without bracketed paste a program gets several lines as lines, and a block at Python's prompt is ended.
func TestLinesArriveAsLines(t *testing.T) {
	for program, c := range map[string]struct {
		argv              []string
		text, shown, more string
	}{
		"sh":      {[]string{"sh"}, "a=40\nb=2\necho sum-$((a+b))", "sum-42", "echo next-$((1+1))"},
		"python3": {[]string{"python3", "-i", "-q"}, "def f(x):\n    return x*2", "", "print('next-%d' % f(1))"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			needs(t, program)
			r := newRig(t).program("plain", c.argv...)
			r.opt.Env = append(r.opt.Env, "PYTHON_BASIC_REPL=1", "PS1=$ ", "ENV=")
			r.run().idle()
			r.wait("the lines to be read", r.read(r.send(c.text)))
			r.wait("their output", r.shows(c.shown))
			r.wait("the next to be read", r.read(r.send(c.more)))
			r.wait("its output", r.shows("next-2"))
		})
	}
}

// A script whose prompt is "> " gets its mail, but no notice, which a shell would run.
func TestPromptOfAScript(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "bash", "-c", `while printf '> '; read -r line; do echo "got $line"; done`)
	r.opt.Driver = nil
	r.run()
	r.wait("the message to be read", r.read(r.send("hello")))
	r.wait("its output", r.shows("got hello"))
	notice := r.send("touch x", func(m *wire.Message) { m.Type = wire.TypeNotice })
	r.wait("the notice to be refused", r.has("injection_failed"))
	r.wait("the next message to be read", r.read(r.send("hello again")))
	if !r.unread(notice) || r.shows("touch")() {
		t.Errorf("the notice was typed:\n%s", strings.Join(r.screen(), "\n"))
	}
}

// A first prompt that cannot be typed is not typed, and mail goes in.
func TestFirstPromptTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{PasteOff: true})
	r.opt.Prompt = strings.Repeat("long ", control.MaxLine)
	r.run()
	r.wait("the message to be read", r.read(r.send("hello")))
	if got := r.fakes(testagent.Submitted); len(got) != 1 || strings.Contains(got[0], "long") {
		t.Errorf("submitted %q", got)
	}
}

// A letter does not end in the middle of a word: an agent completes @name when it gets the return key.
func TestLastWordIsComplete(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.wait("the message to be read", r.read(r.send("ask @bob")))
	if got := r.fakes(testagent.Typed); len(got) != 1 || !strings.HasSuffix(got[0], "ask @bob\n[/atm] ") {
		t.Errorf("typed %q", got)
	}
}
