//go:build linux || darwin || freebsd

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/wire"
)

// A judged stage says what it is asked to answer, and what keeps mail from bob.
type judged struct {
	*stage
	store *mailbox.Store

	lock sync.Mutex
	gate string
	no   error // what it says to an answer
}

// says sets what the runner says from now on.
func (j *judged) says(gate string, no error) {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.gate, j.no = gate, no
}

func (j *judged) said() (gate string, no error) {
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.gate, j.no
}

func (j *judged) Answer(_ context.Context, r control.AnswerRequest) (control.Outcome, error) {
	if _, no := j.said(); no != nil {
		return control.Outcome{}, no
	}
	o, err := j.did(fmt.Sprintf("answer %s option=%q deny=%v reason=%q by=%s", wire.ID(r.ID).Short(6), r.Option, r.Deny, r.Reason, r.By), "answered")
	o.Detail = "Yes"
	return o, err
}

func (j *judged) Status(context.Context) (control.Status, error) {
	gate, _ := j.said()
	return control.Status{Gate: control.Gate(gate)}, nil
}

// newJudged runs bob, with alice as the lead and me as a person.
func newJudged(t *testing.T) *judged {
	t.Helper()
	j := &judged{stage: newStage(t)}
	j.atm(0, "team", "add", "me")
	team := filepath.Join(j.root, "main")
	if err := os.WriteFile(filepath.Join(team, "team.toml"), []byte("lead = \"alice\"\n[members.me]\nperson = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := durable.Open(team, nil)
	if err != nil {
		t.Fatal(err)
	}
	j.store = mailbox.NewStore(dir, "main")
	t.Cleanup(func() { j.store.Close() })
	hold, err := j.store.HoldRunner(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hold.Release() })
	run := filepath.Join(team, "bob", "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, runinfo.File), []byte(`{"run":"r1","runner":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := control.Listen(run)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), j) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return j
}

// asks has bob's screen ask something, of which the lead is told.
func (j *judged) asks(kind, tool string) wire.ID {
	j.t.Helper()
	id := wire.NewID()
	e := wire.Event{Kind: kind, Source: "pty"}.With("id", string(id)).With("prompt", "Go on?")
	if tool != "" {
		e = e.With("tool", tool)
	}
	bob := j.store.Box("bob")
	if err := bob.Log().Append(j.t.Context(), e); err != nil {
		j.t.Fatal(err)
	}
	m := &wire.Message{ID: id, From: bob.Address(), To: []wire.Address{j.store.Box("alice").Address()}, Type: wire.TypePermissionRequest, Body: "Go on?", SentAt: id.Time()}
	p := &mailbox.Post{Message: m, Given: true, To: []*mailbox.Box{j.store.Box("alice")}, Sender: bob}
	mailbox.Deliver(j.t.Context(), p)
	if err := p.Outcomes[0].Err; err != nil {
		j.t.Fatal(err)
	}
	return id
}

func (j *judged) state(agent wire.Name, id wire.ID) mailbox.State {
	j.t.Helper()
	it, err := j.store.Box(agent).Get(id)
	if err != nil {
		j.t.Fatal(err)
	}
	return it.State
}

// What is answered goes to the runner, whose matter the lead's copy is.
func TestAnswers(t *testing.T) {
	t.Parallel()
	j := newJudged(t)
	id := j.asks("confirm_required", "Bash")
	short := id.Short(6)
	for _, c := range []struct {
		exit              int
		env, args         string
		asks, says, state string
	}{
		{5, "ATM_AGENT=bob ATM_RUN=r1", "approve bob", "", "nobody answers for themselves", "unread"},
		{5, "ATM_AGENT=bob ATM_RUN=r1", "approve bob --as alice", "", "nobody answers for themselves", "unread"},
		{5, "ATM_AGENT=alice ATM_RUN=made-up", "approve bob --as alice", "", "it answers for nobody", "unread"},
		{5, "CLAUDECODE=1", "approve bob --as me", "", "of agents only the lead answers, who is alice", "unread"},
		{5, "", "approve bob --as bob", "", "only its own processes act as bob", "unread"},
		{2, "", "approve bob", "", "who are you?", "unread"},
		{0, "", "approve bob --as me", "answer " + short + ` option="" deny=false reason="" by=me`, "bob: answered (Yes)\n", "unread"},
		{0, "CLAUDECODE=1", "approve " + short + " 2 --as alice", "answer " + short + ` option="2" deny=false reason="" by=alice`, "bob: answered (Yes)\n", "unread"},
		{0, "", "approve " + string(id) + " --as me --json", "answer " + short + ` option="" deny=false reason="" by=me`, `{"name":"bob","state":"answered","detail":"Yes"}` + "\n", "unread"},
		{0, "", "confirm bob --as me", "answer " + short + ` option="" deny=false reason="" by=me`, "bob: answered (Yes)\n", "unread"},
		{0, "", "deny bob --as me", "answer " + short + ` option="" deny=true reason="" by=me`, "bob: answered (Yes)\n", "unread"},
		{2, "", "reject bob --as me --reason=", "", "--reason is empty", "unread"},
	} {
		got := j.atm(c.exit, append(strings.Fields(c.env), strings.Fields(c.args)...)...)
		if !strings.Contains(got, c.says) {
			t.Errorf("%s says %q, not %q", c.args, got, c.says)
		}
		if got := j.heard(); got != c.asks {
			t.Errorf("%s asks for %q, not %q", c.args, got, c.asks)
		}
		if got := j.state("alice", id); string(got) != c.state {
			t.Errorf("%s: the lead's copy is %s, not %s", c.args, got, c.state)
		}
	}
}

// The reason goes to the agent as a message; what a runner refuses is said.
func TestRejectsWithAReason(t *testing.T) {
	t.Parallel()
	j := newJudged(t)
	id := j.asks("confirm_required", "Bash")
	j.says("", &control.Error{Code: "refused", Message: "a person is typing in it"})
	if got := j.atm(5, "reject", "bob", "--as", "me", "--reason", "not here"); !strings.Contains(got, "bob: a person is typing in it") {
		t.Error(got)
	}
	if got := j.state("alice", id); got != mailbox.Unread {
		t.Errorf("the lead's copy is %s", got)
	}
	j.says("", nil)
	j.atm(0, "reject", "bob", "--as", "me", "--reason", "not here")
	b, err := j.store.Box("bob").Peek(t.Context(), mailbox.ReadOptions{})
	if err != nil || len(b.Items) != 1 {
		t.Fatal(b.Items, err)
	}
	if m := b.Items[0]; m.Body != "not here" || m.Type != wire.TypePermissionReply || m.InReplyTo != id || m.Subject != "rejected: Bash" || m.ReplyWanted != "no" {
		t.Errorf("%+v", m)
	}
}

// A question that the screen does not show cannot be answered from here.
func TestAnswersNothingUnseen(t *testing.T) {
	t.Parallel()
	j := newJudged(t)
	e := wire.Event{Kind: "confirm_required", Source: "hook", Session: "s1"}.With("tool", "Edit")
	if err := j.store.Box("bob").Log().Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := j.atm(5, "approve", "bob", "--as", "me"); !strings.Contains(got, "hint: atm attach bob") {
		t.Error(got)
	}
	if got := j.heard(); got != "" {
		t.Error(got)
	}
}

// trace says what keeps a message from an agent that runs, and what to do.
func TestTraceOfOneWhoRuns(t *testing.T) {
	t.Parallel()
	j := newJudged(t)
	id := wire.NewID()
	j.atm(0, "send", "bob", "hello", "--as", "alice", "--id", string(id))
	for _, c := range []struct{ event, gate, want string }{
		{"state_change new=idle", "", "bob is idle since 0s, and has not taken it yet"},
		{"", "draft", "somebody has begun to write in the prompt of bob, and nothing is typed over that: atm attach bob"},
		{"", "a person types", "a person is typing into bob"},
		{"", "bang mode", "bob is idle since 0s, and has not taken it yet: atm screen bob"},
		{"state_change new=thinking", "busy", "bob is busy since 0s, and gets it when it is idle: atm wait --idle bob"},
		{"confirm_required tool=Bash", "dialog", "bob waits for an answer itself (permission for Bash) since 0s: atm pending, then atm approve bob, or atm attach bob"},
		{"state_change new=idle", "dialog", "bob waits for an answer itself (a dialog): atm pending"},
		{"state_change new=starting", "", "bob is starting since 0s, and has not taken it yet: atm screen bob"},
		{"state_change new=error detail=limit", "", "bob is error since 0s, and has not taken it yet: atm screen bob"},
		{"state_change new=idle", "", "bob is idle"},
		{"injection_failed id=" + string(id) + " outcome=stuck reason=deaf", "", "typing it in failed now (deaf): atm screen bob"},
	} {
		if c.event != "" {
			words := strings.Fields(c.event)
			e := wire.Event{Kind: words[0], Source: "pty"}
			for _, w := range words[1:] {
				k, v, _ := strings.Cut(w, "=")
				e = e.With(k, v)
			}
			if err := j.store.Box("bob").Log().Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		j.says(c.gate, nil)
		if got := j.atm(0, "trace", string(id), "--as", "alice"); !strings.Contains(got, "unread; "+c.want) {
			t.Errorf("%s, %q: %s", c.event, c.gate, got)
		}
	}
	run := filepath.Join(j.root, "main", "bob", "run", "run.json")
	for inject, want := range map[string][2]string{
		"off":     {"nothing is typed into bob (inject is off), who reads it with atm read", "(idle; nothing is typed in)"},
		"pointer": {"", "(idle: told of it now)"},
		"body":    {"", "(idle: typed in now)"},
	} {
		if err := os.WriteFile(run, []byte(`{"run":"r1","inject":"`+inject+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := j.atm(0, "trace", string(id), "--as", "alice"); !strings.Contains(got, want[0]) {
			t.Errorf("%s: %s", inject, got)
		}
		if got := j.atm(0, "send", "bob", "hello", "--as", "alice"); !strings.Contains(got, want[1]) {
			t.Errorf("%s: %s", inject, got)
		}
	}
}
