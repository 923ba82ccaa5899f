//go:build linux || darwin

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// asksOnScreen has bob's screen ask something, and sends the lead the request.
func (s *stage) asksOnScreen(store *maildir.Store) wire.ID {
	s.t.Helper()
	id, bob, alice := wire.NewID(), store.Box("bob"), store.Box("alice")
	happens(s.t, store, "bob", "pty", "confirm_required", "id="+string(id), "prompt=Go on?", "tool=Bash")
	m := &wire.Message{ID: id, From: bob.Address(), To: []wire.Address{alice.Address()}, Type: wire.TypePermissionRequest, Body: "Go on?", SentAt: id.Time()}
	p := &maildir.Post{Message: m, Given: true, To: []*maildir.Box{alice}, Sender: bob}
	maildir.Deliver(s.t.Context(), p)
	must(s.t, p.Outcomes[0].Err)
	return id
}

// isUnread checks that the lead's copy of a question is still unread: only the runner withdraws it.
func (s *stage) isUnread(store *maildir.Store, id wire.ID) {
	s.t.Helper()
	if it, err := store.Box("alice").Get(id); err != nil || it.State != wire.Unread {
		s.t.Errorf("the lead's copy is %v, %v", it, err)
	}
}

// Answers go to the runner, and only from members who may answer.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.run()
	id := s.asksOnScreen(store)
	short := id.Short(6)
	for _, c := range []struct {
		exit       int
		env, args  string
		asks, says string
	}{
		{5, "ATM_AGENT=bob ATM_RUN=r1", "approve bob", "", "nobody may answer their own question"},
		{5, "ATM_AGENT=bob ATM_RUN=r1", "approve bob --as alice", "", "nobody may answer their own question"},
		{5, "ATM_AGENT=alice ATM_RUN=made-up", "approve bob --as alice", "", "it may not answer for anybody"},
		{5, "CLAUDECODE=1", "approve bob --as me", "", "of the agents only the lead may answer: alice"},
		{5, "", "approve bob --as bob", "", "only its own processes may act as bob"},
		{0, "", "approve bob", ` option="" deny=false by=`, "bob: answered (Yes)\n"}, // the owner
		{0, "", "approve bob --as me", ` option="" deny=false by=me`, "bob: answered (Yes)\n"},
		{0, "CLAUDECODE=1", "approve " + short + " 2 --as alice", ` option="2" deny=false by=alice`, "bob: answered (Yes)\n"},
		{0, "", "approve " + string(id) + " --as me --json", ` option="" deny=false by=me`, `{"name":"bob","state":"answered","detail":"Yes"}` + "\n"},
		{0, "", "approve bob --as me", ` option="" deny=false by=me`, "bob: answered (Yes)\n"},
		{0, "", "reject bob --as me", ` option="" deny=true by=me`, "bob: answered (Yes)\n"},
	} {
		if c.asks != "" {
			c.asks = "answer " + short + c.asks
		}
		s.asks(c.exit, c.env+" "+c.args, c.asks, c.says)
		s.isUnread(store, id)
	}
}

// The reason of a rejection goes to the agent as a message; a runner's refusal is printed.
func TestRejectsWithAReason(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.run()
	id := s.asksOnScreen(store)
	s.says("", &control.Error{Code: "refused", Message: "a person is typing in it"})
	if got := s.atm(5, "reject", "bob", "--as", "me", "--reason", "not here"); !strings.Contains(got, "bob: a person is typing in it") {
		t.Error(got)
	}
	s.isUnread(store, id)
	s.says("", nil)
	s.atm(0, "reject", "bob", "--as", "me", "--reason", "not here")
	b, err := inbox.Peek(t.Context(), store.Box("bob"), inbox.ReadOptions{})
	if err != nil || len(b.Items) != 1 {
		t.Fatal(b.Items, err)
	}
	if m := b.Items[0]; m.Body != "not here" || m.Type != wire.TypePermissionReply || m.InReplyTo != id || m.Subject != "rejected: wants to run: Go on?" || m.ReplyWanted != "no" {
		t.Errorf("%+v", m)
	}
}

// A question that no screen shows cannot be answered from here.
func TestAnswersNothingUnseen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	happens(t, s.run(), "bob", "hook", "confirm_required", "session=s1", "tool=Edit")
	s.asks(5, "approve bob --as me", "", "hint: atm attach bob")
}

// Several members ask at once: each question is answered on its own.
func TestPendingOfSeveral(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.run()
	s.atm(0, "team", "add", "carol", "dave")
	const draft, other = "6f1c2d3e-0000-4000-8000-00000000d001", "6f1c2d3e-0000-4000-8000-00000000d002"
	id := wire.NewID()
	happens(t, store, "bob", "pty", "confirm_required", "id="+string(id), "tool=Bash", "input=rm -rf build", "prompt=Go on?", "dialog=permission",
		`options=[{"id":"1","label":"Yes","kind":"allow_once"},{"id":"2","label":"Yes, and do not ask again","kind":"allow_always"},{"id":"3","label":"No","kind":"reject_once"}]`)
	happens(t, store, "carol", "hook", "confirm_required", "tool=Edit", "prompt=main.go")
	happens(t, store, "dave", "hook", "waiting_for_input", "prompt=Which branch?")
	happens(t, store, "dave", "cli", "draft_ready", "draft_id="+draft, "summary=the parser", "artifact_count=2")

	for _, want := range []string{`"options":[{"id":"1","label":"Yes","kind":"allow_once"},`, `"running":true`, `"kind":"draft","prompt":"the parser (2 artifacts)"`} {
		s.asks(0, "pending --json", "", want)
	}
	answer := "answer " + id.Short(6)
	s.asks(0, "approve bob --as me", answer+` option="" deny=false by=me`, "bob: answered")
	s.atm(0, "approve", id.Short(6), "yes, and", "--as", "me")
	if got := s.heard(); got != answer+` option="2" deny=false by=me` {
		t.Error(got)
	}
	s.asks(0, "approve bob YES --as me", answer+` option="1" deny=false by=me`, "bob: answered")
	s.asks(0, "reject bob no --as me", answer+` option="3" deny=true by=me`, "bob: answered")
	s.asks(2, "approve bob y --as me", "", `"y" is not one of the options: 1 Yes, 2 Yes, and do not ask again, 3 No`)
	s.asks(2, "approve bob 4 --as me", "", `"4" is not one of the options: 1 Yes`)
	s.asks(5, "approve carol --as me", "", "carol has no runner, so only its own terminal can answer")
	s.asks(5, "reject carol --reason later --as me", "", "carol has no runner, so only its own terminal can answer")
	s.asks(2, "approve dave --as me", "", `"dave" matches 2 open questions`)
	s.asks(3, "approve alice --as me", "", "alice: no open question")
	s.asks(0, "approve "+draft+" --as me", "", "dave: approved draft")
	s.asks(3, "approve "+draft+" --as me", "", "") // it has its answer, and asks nothing any more
	s.asks(5, "approve dave --as me", "", "dave has no runner")

	// With a draft beside a permission, the name is ambiguous and an id is not.
	happens(t, store, "bob", "pty", "draft_ready", "draft_id="+other, "summary=the tests", "artifact_count=1")
	s.asks(2, "approve bob --as me", "", `"bob" matches 2 open questions`)
	s.atm(0, "reject", other, "--reason", "too few", "--as", "me")
	s.atm(0, "approve", "bob", "--as", "me")
	s.heard()

	// A trust dialog cannot be answered from here.
	happens(t, store, "bob", "pty", "confirm_required", "id="+string(wire.NewID()), "prompt=Do you trust the files in this folder?", "input=/srv/repo", "dialog=trust")
	s.asks(0, "pending --json", "", `"kind":"prompt","prompt":"Do you trust the files in this folder?","tool":"","input":"/srv/repo","dialog":"trust"`)
	s.asks(5, "approve bob --as me", "", "hint: atm attach bob")
}

// trace says what keeps a message from a running agent and what to do about it; send says it right away.
func TestTraceOfOneWhoRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	store := s.run()
	var sent struct{ ID string }
	must(t, json.Unmarshal([]byte(s.atm(0, "send", "bob", "hello", "--as", "alice", "--json")), &sent))
	id := sent.ID
	trace := "trace " + id + " --as alice"
	for _, c := range []struct{ event, gate, want string }{
		{"state_change new=idle", "", "idle: typed in now; atm screen bob --as alice"},
		{"", "draft", "idle, but its prompt has a half-written line: typed in later; atm attach bob --as alice, and send or clear it"},
		{"", "a person is typing", "idle, but a person is typing: typed in later; atm wait --busy bob --as alice"},
		{"", "bang mode", "idle, but it is not at its prompt: typed in later; atm screen bob --as alice"},
		{"state_change new=thinking", "busy", "busy "},
		{"confirm_required tool=Bash", "dialog", "blocked: wants to use Bash; atm pending --as alice, then atm approve bob --as alice"},
		{"state_change new=idle", "dialog", "idle, but a dialog is open: typed in later; atm pending --as alice"},
		{"state_change new=starting", "", "starting: typed in when idle; atm wait --idle bob"},
		{"state_change new=error detail=limit", "", "error: typed in when idle; atm wait --idle bob"},
		{"state_change new=idle", "", "idle: "},
		{"injection_failed id=" + id + " outcome=stuck reason=deaf", "", "typing it in failed now (deaf); atm doctor --fix "},
	} {
		if words := strings.Fields(c.event); len(words) > 0 {
			happens(t, store, "bob", "pty", words[0], words[1:]...)
		}
		s.says(c.gate, nil)
		s.asks(0, trace, "", "unread; "+c.want)
		s.asks(4, "wait --read "+id+" --timeout 1ms --as alice", "", "not read by bob within 1ms: bob: unread; "+c.want) // in the same words
	}
	happens(t, store, "bob", "pty", "injected", "id="+id)
	happens(t, store, "bob", "pty", "turn_started", "turn_id=t1")
	happens(t, store, "bob", "pty", "confirm_required", "tool=Bash")
	s.asks(0, trace, "", "  turn_started")
	s.asks(0, trace, "", "blocked: wants to use Bash; atm pending")
	happens(t, store, "bob", "pty", "state_change", "new=idle")
	for inject, want := range map[string][2]string{
		"off":     {"idle, but inject is off: not typed in; bob gets it with atm read", "(idle, but inject is off: not typed in)"},
		"pointer": {"", "(idle: told to run atm read now)"},
		"body":    {"", "(idle: typed in now)"},
	} {
		s.write(`{"run":"r1","inject":"`+inject+`"}`, "bob", "run", "run.json")
		s.asks(0, trace, "", want[0])
		s.asks(0, "send bob hello --as alice", "", want[1])
	}
}
