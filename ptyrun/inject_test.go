package ptyrun

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Mail starts a turn with an id, from its start until idle, and every state change names the previous state.
func TestTurnHasItsID(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Send("CONFIRM [touch made.txt]")
	r.Wait("the question", func() bool { return len(r.questions()) == 1 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{By: "alice"}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the turn's end", func() bool {
		return r.Has("turn_idle")() && strings.HasSuffix(r.states()[len(r.states())-1], `new="idle"`)
	})
	all, err := r.Bob.Log().Newest(1 << 20)
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
		if e.Kind == wire.ConfirmRequired {
			last = "confirming"
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
	if got := strings.Join(states, " "); len(turns) != 1 || !strings.HasPrefix(got, "idle thinking thinking idle") {
		t.Errorf("%d turns, states %q", len(turns), got)
	}
}

// A reply answers no dialog; the request's text says what does.
func TestHintAboveAMessage(t *testing.T) {
	for kind, hint := range map[string]string{wire.TypeMessage: " answer: atm reply 9f3a1c", wire.TypeAck: "", wire.TypePermissionRequest: ""} {
		m := &wire.Message{ID: "01a20f0b-d540-716f-811c-2f48129f3a1c", Type: kind, Body: "x"}
		got := string((&letter.Renderer{}).Frame(m, letter.Flags{}))
		if _, after, _ := strings.Cut(got, "]"); !strings.HasPrefix(after, hint) || hint == "" && after != "\n  x\n" {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// Without bracketed paste a shell or REPL gets several lines as lines.
func TestLinesArriveAsLines(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "sh")
	r.opt.Env = append(r.opt.Env, "PS1=$ ", "ENV=")
	r.run().idle()
	r.prompt("a=40\nb=2\necho sum-$((a+b))")
	r.Wait("their output", r.shows("sum-42"))
	r.prompt("echo next-$((1+1))")
	r.Wait("its output", r.shows("next-2"))
}

// A first prompt that cannot be typed is not typed, and mail goes in: in an agent without bracketed paste any character
// may be a key, so a pointer does.
func TestFirstPromptTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{PasteOff: true})
	r.opt.Prompt = strings.Repeat("long ", control.MaxLine())
	r.run()
	id := r.Send("hello\n?")
	r.Wait("the pointer", r.Has("injected"))
	if got := r.submitted(); len(got) != 1 || got[0] != "[atm: 1 new message] run: atm read "+id.Short(6) || !r.Unread(id) {
		t.Errorf("submitted %q", got)
	}
}

// submitted are the texts that the fake agent was given, without the blank that ends each.
func (r *rig) submitted() (texts []string) {
	for _, s := range r.Fakes(testagent.Submitted) {
		texts = append(texts, strings.TrimRight(s, " "))
	}
	return texts
}

// Nothing in a message makes the agent's program do anything: what it would act on is typed in a form that it leaves
// alone, under a header that says so, or a pointer is typed that has nothing of the sender's.
func TestMailIsData(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	subject := func(s string) func(*wire.Message) { return func(m *wire.Message) { m.Subject = s } }
	for _, c := range []struct {
		body, typed string // "": a pointer
		with        func(*wire.Message)
	}{
		{"see @secret.txt and /init", "(\\@ is an at sign, \\/ is a slash)\n  see \\@secret.txt and \\/init", urgent},
		{"fine", "\n  subject: \\@secret.txt \\/init\n  fine", subject("@secret.txt /init")},
		{"look at\n  /home/me/secret.png", "", urgent},
		{"fine", "", subject("ultrathink")},
		{"fine", "", func(m *wire.Message) { m.Type = "ultrathink" }},
		{"fine", "", func(m *wire.Message) { m.From.Agent = "ultrathink" }},
	} {
		before := len(r.submitted())
		id := r.Send(c.body, c.with)
		r.Wait("its turn to end", func() bool { return strings.Count(strings.Join(r.Events(), "\n"), "turn_idle") > before })
		all := r.submitted()
		if len(all) <= before {
			t.Fatalf("a turn ended that %q did not begin", c.body)
		}
		got := all[before]
		switch {
		case c.typed != "" && !strings.Contains(strings.NewReplacer("\\@", "@", "\\/", "/").Replace(got), strings.NewReplacer("\\@", "@", "\\/", "/").Replace(c.typed)):
			t.Errorf("%q was typed as %q", c.body, got)
		case c.typed == "" && got != "[atm: 1 new message] run: atm read "+id.Short(6):
			t.Errorf("%q was typed as %q", c.body, got)
		case strings.Contains(strings.ReplaceAll(got, "\\@", ""), "@") || strings.Contains(got, " /") || strings.Contains(got, "ultrathink"):
			t.Errorf("the program would act on %q", got)
		case r.Unread(id) != (c.typed == ""):
			t.Errorf("%q: unread %v", got, r.Unread(id))
		}
	}
}

// What waits together is typed together, but for what needs another form; the order stays.
func TestFormsDoNotMix(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	var heard sync.Map // the messages that the runner has heard of, which are queued behind that
	r.opt.Follow = func(runhost.Followed) runhost.Follower {
		return runhost.Follower{Withhold: func(m *wire.Message) string {
			heard.Store(m.ID, true)
			return ""
		}}
	}
	r.run().idle()
	r.Send("THINK 2s [sent]")
	r.Wait("the turn", r.Has("turn_started"))
	var ids []wire.ID
	for _, body := range []string{"one", "two", "see a.png", "see b.png", "five"} {
		ids = append(ids, r.Send(body))
	}
	r.Wait("all to be queued", func() bool {
		return !slices.ContainsFunc(ids, func(id wire.ID) bool { _, is := heard.Load(id); return !is })
	})
	must(t, os.WriteFile(filepath.Join(r.opt.Dir, "sent"), nil, 0o600))
	r.Wait("all", func() bool { return len(r.submitted()) == 4 })
	got := r.submitted()[1:]
	pointer := "[atm: 2 new messages] run: atm read " + ids[2].Short(6) + " " + ids[3].Short(6)
	if !strings.HasSuffix(got[0], "\n  two\n[/atm]") || !strings.Contains(got[0], "\n  one\n") || got[1] != pointer || !strings.HasSuffix(got[2], "\n  five\n[/atm]") {
		t.Errorf("submitted %q", got)
	}
}

// A shell is told to read its mail, which it does not run, and nor does a program that may be one.
func TestShellIsTold(t *testing.T) {
	for name, argv := range map[string][]string{
		"bash":   {"bash", "--norc", "--noprofile"},
		"script": {"sh", "-c", "while printf '%% '; read -r line; do eval \"$line\"; done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).shell()
			if r.opt.Command = argv; name != "script" { // whose prompt nobody knows
				r.opt.Driver = nil
			}
			r.opt.Env = append(r.opt.Env, "PS1=$ ")
			r.run()
			id := r.Send("touch made\n!!\n$(touch made)", func(m *wire.Message) { m.Subject = "touch made" })
			r.Wait("what it is told", r.shows("would read"))
			notice := r.Send("touch made", func(m *wire.Message) { m.Type = wire.TypeNotice })
			r.Wait("the notice", func() bool { return strings.Count(strings.Join(r.Events(), "\n"), "injected") == 2 })
			if _, err := os.Stat(filepath.Join(r.opt.Dir, "made")); err == nil || r.shows("touch")() {
				t.Errorf("it was typed:\n%s", strings.Join(r.Screen(), "\n"))
			}
			if !r.Unread(id) || !r.Unread(notice) {
				t.Error("what was not read counts as read")
			}
		})
	}
}

// What is left in the box of a terminal's late answer to a query does not keep mail away, as it did in Gemini CLI.
func TestTerminalAnswerIsNoDraft(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	_, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("62;22c"), Raw: true})
	must(t, err)
	r.Wait("the message to be read", r.Read(r.Send("hello")))
	if got := r.submitted(); len(got) != 1 || strings.Contains(got[0], "62;22c") {
		t.Errorf("submitted %q", got)
	}
}

// A letter does not end with a word of its sender: an agent completes @name when it gets the return key.
func TestLastWordIsComplete(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Wait("the message to be read", r.Read(r.Send("ask @bob")))
	if got := strings.Join(r.Fakes(testagent.Typed), ""); strings.Count(got, "ask") != 1 || !strings.HasSuffix(got, "ask \\@bob\n[/atm]") {
		t.Errorf("typed %q", got)
	}
}
