package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// startFake starts the fake agent without a mailbox of ours, with its temporary files in a directory of its own.
func startFake(t *testing.T, o testagent.Options, more func(*Options)) *Handle {
	t.Helper()
	temp := t.TempDir()
	o.Log = cmp.Or(o.Log, filepath.Join(t.TempDir(), "fake.log"))
	argv, env, err := testagent.Command(o)
	must(t, err)
	opt := Options{Command: argv, Env: append(append(os.Environ(), env...), "TMPDIR="+temp), Dir: t.TempDir(), timing: &quick, temp: temp}
	opt.Driver, _ = driver.Named(o.Profile)
	if more != nil {
		more(&opt)
	}
	h, err := Start(t.Context(), opt)
	must(t, err)
	t.Cleanup(func() {
		h.Close()
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("it has left %s", left[0])
		}
	})
	return h
}

// await returns the next event of a kind.
func await(t *testing.T, h *Handle, kind string) wire.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range h.Events(ctx) {
		must(t, err)
		if e.Kind == kind {
			return e
		}
	}
	t.Fatalf("there is no %s", kind)
	return wire.Event{}
}

// settled waits until everything that the run has appended has come back from the log, and was known.
func settled(t *testing.T, h *Handle) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		isLogged := false
		if h.r.Call(func() { isLogged = h.r.IsLogged() }); isLogged {
			return
		}
		if time.Now().After(end) {
			t.Fatal("some events of its own were not known again")
		}
	}
}

// An agent without a mailbox is given texts, asked, answered, looked at, interrupted and stopped through its handle.
func TestHandle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := startFake(t, testagent.Options{Profile: "claude"}, nil)
	must(t, h.Prompt(ctx, "SAY fine"))
	if e := await(t, h, wire.TurnCompleted); e.Text("response") != "" {
		t.Errorf("its screen answered %q", e.Text("response"))
	}
	must(t, h.Prompt(ctx, "CONFIRM touch made.txt"))
	asked := await(t, h, "confirm_required")
	if s, err := h.Status(ctx); err != nil || s.Activity != reducer.Confirming || s.PID == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	must(t, h.Answer(ctx, asked.Text("id"), ""))
	if err := h.Answer(ctx, asked.Text("id"), ""); err == nil {
		t.Error("the question was answered twice")
	}
	must(t, h.Prompt(ctx, "WAIT 60s"))
	must(t, h.Interrupt(ctx))
	settled(t, h)
	must(t, h.Type(ctx, "half a line", false))
	screen, err := h.Screen(ctx)
	for err == nil && !strings.Contains(strings.Join(screen.Lines, "\n"), "half a line") {
		time.Sleep(5 * time.Millisecond)
		screen, err = h.Screen(ctx)
	}
	must(t, err)
	h.stop()
	if exit, err := h.Wait(); err != nil || !exit.Stopped {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := h.Prompt(ctx, "late"); err == nil {
		t.Error("a text was given to an agent that has ended")
	}
	last := ""
	for e := range h.Events(ctx) { // ends with the agent
		last = e.Kind
	}
	if last != "exited" && last != wire.TurnCompleted {
		t.Errorf("the last event is %s", last)
	}
}

// A prompt that is not wanted any more is not given.
func TestPromptWithdrawn(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude"}, nil)
	must(t, h.Prompt(t.Context(), "WAIT 60s"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Prompt(ctx, "SAY second"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	must(t, h.Steer(t.Context(), "SAY third"))
	for e := range h.Events(t.Context()) {
		if strings.Contains(e.Text("prompt"), "second") {
			t.Error("it was given")
		}
		if strings.Contains(e.Text("prompt"), "third") {
			return
		}
	}
}

// The same with an agent that speaks ACP: no terminal, and the answer comes in parts.
func TestSpeakerHandle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := startFake(t, testagent.Options{Profile: "claude"}, func(o *Options) {
		o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{}
	})
	must(t, h.Prompt(ctx, "CONFIRM [touch x]"))
	asked := await(t, h, "confirm_required")
	if n := len(asked.Body().Raw("options")); asked.Source != "acp" || n == 0 {
		t.Errorf("%+v", asked)
	}
	must(t, h.Reject(ctx, asked.Text("id")))
	if e := await(t, h, wire.TurnCompleted); !strings.Contains(e.Text("response"), "CONFIRM: no") {
		t.Errorf("it answered %q", e.Text("response"))
	}
	settled(t, h)
	for e, err := range h.Events(t.Context()) {
		must(t, err)
		if e.Text("id") == asked.Text("id") && e.Text("decision") == "reject" {
			break
		}
		if e.Kind == wire.TurnCompleted {
			t.Fatal("no event says how it was answered")
		}
	}
}

// A message is read only once the log has all that came before, and with that the turn that it began: a runner that is
// killed then knows what its program was given last.
func TestReadBehindItsTurn(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude"}, func(o *Options) {
		o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{}
	})
	await(t, h, "session_start")
	settled(t, h)
	events, claims := make(chan struct{}), make(chan struct{})
	h.r.AfterLogged(func() { <-events })
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: "SAY fine", SentAt: time.Now().UTC()}
	p := &maildir.Post{Message: m, To: []*maildir.Box{h.r.Box}}
	maildir.Deliver(t.Context(), p)
	must(t, p.Outcomes[0].Err)
	if !h.r.Poll(time.Minute, func() bool { return !h.r.inbox.IsGiving() && h.r.State.Session().Turn.ID != "" }) {
		t.Fatal("it was not given")
	}
	go func() { h.r.inbox.WaitClaims(); close(claims) }()
	select {
	case <-claims:
		t.Error("it is read, and its turn is not in the log")
	case <-time.After(200 * time.Millisecond):
	}
	close(events)
	var kinds []string
	for e, err := range h.Events(t.Context()) {
		must(t, err)
		if kinds = append(kinds, e.Kind); e.Kind == wire.EventInjected {
			break
		}
	}
	if !slices.Contains(kinds, wire.TurnStarted) {
		t.Errorf("logged: %v", kinds)
	}
}

// Without a program there is no handle, and nothing is left.
func TestStartFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := Start(t.Context(), Options{Command: []string{"no-such-program"}}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("%v", err)
	}
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("nothing was started")
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("it has left %s", left[0])
	}
}

// An event that no log takes is left out, and those behind it get in.
func TestEventThatIsNone(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude"}, nil)
	h.r.Call(func() { h.r.Append(wire.Event{}) })
	must(t, h.Prompt(t.Context(), "SAY fine"))
	await(t, h, wire.TurnCompleted)
	settled(t, h)
}

// A text that ended the agent was given.
func TestPromptThatEndsIt(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude"}, nil)
	if err := h.Prompt(t.Context(), "THINK 50ms EXIT 0"); err != nil {
		t.Errorf("%v", err)
	}
}

// The loop over the events may itself call what makes more of them.
func TestCallsInEvents(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude"}, func(o *Options) {
		o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{}
	})
	go h.Prompt(t.Context(), "CONFIRM [ls]")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range h.Events(ctx) {
		must(t, err)
		switch e.Kind {
		case "confirm_required":
			must(t, h.Interrupt(ctx))
		case wire.TurnCompleted:
			return
		}
	}
	t.Fatal("the turn's end did not come")
}

// What cannot be is refused at the start.
func TestOptions(t *testing.T) {
	for _, o := range []Options{{Restart: "bogus"}, {Inject: "bogus"}, {Mail: &Mail{}}} {
		o.Command = []string{"true"}
		if _, err := Start(t.Context(), o); err == nil {
			t.Errorf("%+v was started", o)
		}
	}
}

// An agent is asked and answers; what it asks before is decided by the program that runs it.
func TestAsk(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{}, func(o *Options) {
		o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{}
		o.Decide = func(q ask.Question) (ask.Answer, bool) {
			return ask.Answer{Deny: strings.Contains(q.Input+q.Prompt, "rm -rf")}, true
		}
	})
	for text, want := range map[string]string{"SAY fine": "fine", "CONFIRM touch made.txt SAY made": "made"} {
		turn, err := h.Ask(t.Context(), text)
		if err != nil || turn.Status != "completed" || !strings.Contains(turn.Response, want) || turn.Began == nil || turn.Ended == nil {
			t.Errorf("%s: %+v, %v", text, turn, err)
		}
	}
	must(t, h.Prompt(t.Context(), "RUN [sleep 0.3] SAY first"))
	if turn, err := h.Ask(t.Context(), "SAY second"); err != nil || !strings.Contains(turn.Response, "second") {
		t.Errorf("behind another turn: %+v, %v", turn, err)
	}
	if turn, err := h.Ask(t.Context(), "CONFIRM [rm -rf made.txt]"); err != nil || !strings.Contains(turn.Response, "CONFIRM: no") {
		t.Errorf("%+v, %v", turn, err)
	}
}
