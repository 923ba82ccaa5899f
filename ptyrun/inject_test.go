package ptyrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

var agents = []string{"claude", "codex", "gemini", "opencode"}

// A message is typed in once, word for word, and then read; the turn it began
// and its end are told.
func TestMessageIsTyped(t *testing.T) {
	for _, profile := range agents {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).fake(testagent.Options{Profile: profile}).run().idle()
			body := "Rebase on main, please.\nThen run: go test ./... && echo \"done\"\n日本語も。"
			id := r.send(body)
			r.wait("the message to be read", r.read(id))
			r.wait("the turn's end", r.has("turn_completed"))
			got := r.fakes(testagent.Submitted)
			if len(got) != 1 {
				t.Fatalf("submitted %q", got)
			}
			for _, line := range strings.Split(body, "\n") {
				if !strings.Contains(got[0], line) {
					t.Errorf("%q is not in %q", line, got[0])
				}
			}
			if !strings.HasPrefix(got[0], "[atm "+id.Short(6)+" from alice") {
				t.Errorf("it begins with %.60q", got[0])
			}
			if !r.has("injected")() || !r.has("turn_started")() {
				t.Error("injected or turn_started is not among the events")
			}
		})
	}
}

// What waits while an agent is busy is one interruption, in order.
func TestManyAreTypedTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	first := r.send("THINK 700ms")
	r.wait("the first to be read", r.read(first))
	var ids []wire.ID
	for i := range 20 {
		ids = append(ids, r.send(fmt.Sprintf("message number %d.", i)))
	}
	for _, id := range ids {
		r.wait("all to be read", r.read(id))
	}
	got := r.fakes(testagent.Submitted)
	if len(got) != 2 {
		t.Fatalf("%d submits: %q", len(got), got)
	}
	at := 0
	for i := range 20 {
		n := strings.Index(got[1][at:], fmt.Sprintf("message number %d.", i))
		if n < 0 {
			t.Fatalf("number %d is not behind the one before it in %q", i, got[1])
		}
		at += n
	}
	if q := append(r.fakes(testagent.Queued), r.fakes(testagent.Steered)...); len(q) > 0 {
		t.Errorf("typed while busy: %q", q)
	}
}

// Up to 8 KiB go in at one idle, the rest at the next.
func TestLargeMailIsTypedInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.wait("the first to be read", r.read(r.send("THINK 500ms")))
	var ids []wire.ID
	for i := range 4 {
		ids = append(ids, r.send(strings.Repeat(fmt.Sprintf("part%d ", i), 500)))
	}
	for _, id := range ids {
		r.wait("all to be read", r.read(id))
	}
	if got := r.fakes(testagent.Submitted); len(got) != 3 {
		t.Errorf("%d submits", len(got))
	}
}

// A return key that does nothing is pressed again, and no more than that.
func TestReturnIsIgnored(t *testing.T) {
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).fake(testagent.Options{IgnoreCR: 2}).run().idle()
		r.wait("the message to be read", r.read(r.send("hello")))
		if got := r.fakes(testagent.Submitted); len(got) != 1 {
			t.Errorf("submitted %q", got)
		}
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).fake(testagent.Options{IgnoreCR: 1000}).run().idle()
		id := r.send("hello")
		r.wait("the failure", r.has(`injection_failed outcome="failed"`))
		if !r.unread(id) || len(r.fakes(testagent.Ignored)) != maxReturns {
			t.Errorf("unread %v, %d returns", r.unread(id), len(r.fakes(testagent.Ignored)))
		}
		r.wait("the draft to be cleared", func() bool { return !strings.Contains(strings.Join(r.screen(), "\n"), "hello") })
	})
}

// A text that does not come through is not sent off blindly.
func TestTextIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{Drop: 1 << 20}).run().idle()
	id := r.send("hello")
	r.wait("the outcome", r.has(`injection_failed outcome="unverified"`))
	if !r.unread(id) || len(r.fakes(testagent.Submitted)) > 0 {
		t.Error("it counts as read, or was submitted")
	}
}

// A program that does not read gets no return key.
func TestProgramIsDeaf(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{Deaf: 1}).run().idle()
	id := r.send(strings.Repeat("much ", 1500))
	r.wait("the outcome", r.has("injection_failed"))
	if !r.unread(id) {
		t.Error("it counts as read")
	}
}

// What stands in the draft already is nobody's to send.
func TestDraftIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{Junk: "a half-typed line"}).run()
	r.wait("the program", r.has("state_change"))
	id := r.send("hello")
	s, err := r.status()
	if err != nil || s.Gate == "" {
		t.Errorf("status %+v, %v", s, err)
	}
	time.Sleep(700 * time.Millisecond) // long enough for any gate to have opened
	if !r.unread(id) || len(r.fakes(testagent.Typed)) > 0 || len(r.fakes(testagent.Submitted)) > 0 {
		t.Error("something was typed into a draft")
	}
}

// Without bracketed paste it is one line: no newline submits half of it.
func TestNoPaste(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{PasteOff: true}).run().idle()
	r.wait("the message to be read", r.read(r.send("one\ntwo\nthree")))
	if got := r.fakes(testagent.Submitted); len(got) != 1 || !strings.Contains(got[0], "one") || !strings.Contains(got[0], "three") {
		t.Errorf("submitted %q", got)
	}
}

// A body can press no key and end no paste.
func TestHostileBody(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.wait("the message to be read", r.read(r.send("x\x1b[201~\r/quit\r!rm -rf\r\x03\x04\u009b201~ y")))
	got := r.fakes(testagent.Submitted)
	if len(got) != 1 || strings.ContainsAny(got[0], "\x1b\x03\x04\u009b") {
		t.Errorf("submitted %q", got)
	}
}

// Urgent mail ends the turn and is typed then.
func TestUrgentInterrupts(t *testing.T) {
	for _, profile := range agents {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).fake(testagent.Options{Profile: profile, NoRestore: true}).run().idle()
			r.wait("the first to be read", r.read(r.send("STREAM 60s")))
			r.wait("work", func() bool { return r.has(`state_change new="responding"`)() || r.has(`state_change new="thinking"`)() })
			id := r.send("stop that", urgent)
			r.wait("the urgent one to be read", r.read(id))
			if len(r.fakes(testagent.Interrupted)) != 1 {
				t.Errorf("interrupts %q", r.fakes(testagent.Interrupted))
			}
			r.wait("the end", r.has(`turn_completed status="interrupted"`))
		})
	}
}

// A pointer is one line that says what to run; the message stays unread.
func TestPointer(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.opt.Inject = Pointer
	r.run().idle()
	id := r.send("secret")
	r.wait("the pointer", func() bool { return len(r.fakes(testagent.Submitted)) == 1 })
	r.wait("the event", r.has("injected"))
	if got := r.fakes(testagent.Submitted)[0]; strings.Contains(got, "secret") || !strings.Contains(got, "atm read") {
		t.Errorf("submitted %q", got)
	}
	if !r.unread(id) {
		t.Error("it counts as read")
	}
}

// The first prompt is typed once.
func TestFirstPrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	r.opt.Prompt = "Read your mail."
	r.run()
	id := r.send("hello")
	r.wait("the message to be read", r.read(id))
	got := r.fakes(testagent.Submitted)
	if len(got) != 2 || got[0] != "Read your mail." {
		t.Errorf("submitted %q", got)
	}
}

// A shell gets the body alone, one message after the other.
func TestShell(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "bash", "--norc", "--noprofile")
	r.run().idle()
	a, b := r.send("echo one-$((1+1))"), r.send("echo two-$((2+2))")
	r.wait("both to be read", func() bool { return r.read(a)() && r.read(b)() })
	r.wait("the output", func() bool {
		s := strings.Join(r.screen(), "\n")
		return strings.Contains(s, "\none-2\n") && strings.Contains(s, "\ntwo-4\n")
	})
	r.wait("two turns", func() bool {
		n := 0
		for _, e := range r.events() {
			if strings.HasPrefix(e, "turn_completed") {
				n++
			}
		}
		return n == 2
	})
}

// A shell runs what is typed. What atm says of others' doings is not: a dialog
// that is told to the lead has the command in it.
func TestShellIsToldNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "bash", "--norc", "--noprofile").run().idle()
	made := filepath.Join(r.opt.Dir, "made")
	var told []wire.ID
	for _, kind := range []string{wire.TypePermissionRequest, wire.TypeNotice, wire.TypeAck} {
		told = append(told, r.send("Bash command\ntouch "+made, func(m *wire.Message) { m.Type = kind }))
	}
	r.wait("what is said to be read", r.read(r.send("echo said-$((1+1))")))
	for _, id := range told {
		if !r.unread(id) {
			t.Error("a notice was typed into a shell")
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a notice was run")
	}
}

// A text that the program did not take goes in again, also if nothing happens.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{Profile: "claude", IgnoreCR: 3}).run().idle()
	id := r.send("hello")
	r.wait("the first try to fail", func() bool { return strings.Contains(strings.Join(r.events(), "\n"), "injection_failed") })
	r.wait("the message to be read", r.read(id))
}

// A message that the agent does not survive does not end it for ever.
func TestTriedOften(t *testing.T) {
	deadly, other := wire.NewID(), wire.NewID()
	m := mail{tries: map[wire.ID]int{deadly: maxTried - 1, other: 1}}
	if m.enqueue([]wire.ID{deadly, other}); len(m.queue) != 2 {
		t.Errorf("not typed: %q", m.queue)
	}
	m = mail{tries: map[wire.ID]int{deadly: maxTried}}
	if m.enqueue([]wire.ID{deadly, other}); len(m.queue) != 1 || m.queue[0] != other {
		t.Errorf("typed again: %q", m.queue)
	}
}

// What mail starts is a turn with an id, from its start to the idle that follows, and
// every change of state says what was before.
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
	if err != nil {
		t.Fatal(err)
	}
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

// Several lines reach a program without bracketed paste as lines, and a block of Python's
// is ended.
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

// A script whose prompt is "> " gets its mail.
func TestPromptOfAScript(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "bash", "-c", `while printf '> '; read -r line; do echo "got $line"; done`)
	r.opt.Driver = nil
	r.run()
	r.wait("the message to be read", r.read(r.send("hello")))
	r.wait("its output", r.shows("got hello"))
}

// A first prompt that cannot be typed is not typed, and mail goes in.
func TestFirstPromptTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{PasteOff: true})
	r.opt.Prompt = strings.Repeat("long ", maxLine)
	r.run()
	r.wait("the message to be read", r.read(r.send("hello")))
	if got := r.fakes(testagent.Submitted); len(got) != 1 || strings.Contains(got[0], "long") {
		t.Errorf("submitted %q", got)
	}
}
