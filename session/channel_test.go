package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

const draftID = "6f1c2a34-0b7e-4c1d-9a55-0123456789ab"

func TestReceive(t *testing.T) {
	st := testTeam(t)
	tell(t, st, "", foreign.HumanInput{Kind: "abort"}) // before the session began: ignored
	time.Sleep(2 * time.Millisecond)                   // ids have milliseconds
	s, other := begin(t, st), begin(t, st)
	c := channel(t, st, s.SessionID)
	receives := func(want string) (in *Input) {
		t.Helper()
		in, err := c.Receive(ctx, 0)
		if must(t, err); (in == nil) != (want == "") || in != nil && in.String() != want {
			t.Errorf("received %v, not %q", in, want)
		}
		return in
	}
	receives("Abort session")
	if got := refresh(t, st, s.SessionID); got.State != Active {
		t.Error(got.State)
	}
	tell(t, st, other.SessionID, text("for another"))
	tell(t, st, s.SessionID, text("first"))
	uri := "fs://repo/main.rs"
	reject := foreign.HumanInput{Kind: "reject", DraftID: draftID, ArtifactURI: &uri, Reason: "no"}
	tell(t, st, "", reject)
	if in := receives("Message: first"); in.From.Agent != "me" {
		t.Error(in.From)
	}
	receives(reject.String())
	receives("")

	// A dropped file is received as it was written, but one that approves or rejects a draft is not.
	drop := func(content string) {
		inbox := filepath.Join(st.mail.Box("bob").Path(), "inbox")
		must(t, os.WriteFile(filepath.Join(inbox, ".x"), []byte(content), 0o600))
		must(t, os.Rename(filepath.Join(inbox, ".x"), filepath.Join(inbox, "x.json")))
	}
	drop(`{"input_type":"approve","draft_id":"6F1C2A34-0b7e-4c1d-9a55-0123456789ab"}`)
	if in, err := c.Receive(ctx, 100*time.Millisecond); in != nil || err != nil {
		t.Errorf("received %+v, %v", in, err)
	}
	file := `{"input_type":"message","text":"by file","note":1.0}`
	drop(file)
	in, err := c.Receive(ctx, time.Minute) // a file that may still be written is taken later
	if err != nil || in == nil || in.Kind != "message" || string(in.Wire) != file {
		t.Errorf("received %+v, %v", in, err)
	}

	// What its store says does not count is not received.
	st.CheckInput = func(agent wire.Name, m *wire.Message) error { return fmt.Errorf("%s: %s", agent, m.From) }
	tell(t, st, "", reject)
	receives("")
	st.CheckInput = nil
	receives(reject.String())

	// Input waits while the session is paused.
	move(t, st, s.SessionID, Paused)
	tell(t, st, s.SessionID, text("later"))
	receives("")
	move(t, st, s.SessionID, Active)
	receives("Message: later")

	// A dropped abort ends the session and is still received; then the channel is closed.
	drop(`{"input_type":"abort"}`)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got := refresh(t, st, s.SessionID); got.State == Aborted {
			break
		}
	}
	receives("Abort session")
	if _, err := c.Receive(ctx, time.Minute); err != ErrChannelClosed {
		t.Errorf("over: %v", err)
	}
	if err := c.Emit(ctx, output("x")); err != ErrChannelClosed {
		t.Errorf("over: %v", err)
	}
}

// A waiting Receive returns at a message, at the end of the session, and when its context is cancelled.
func TestReceiveWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st := testTeam(t)
	s := begin(t, st)
	c := channel(t, st, s.SessionID)
	if in, err := c.Receive(ctx, 20*time.Millisecond); in != nil || err != nil {
		t.Errorf("%v, %v", in, err)
	}
	for _, what := range []struct {
		happens func()
		err     error
	}{
		{func() { tell(t, st, s.SessionID, text("x")) }, nil},
		{func() { move(t, st, s.SessionID, Completed) }, ErrChannelClosed},
		{cancel, context.Canceled},
	} {
		if what.err != nil {
			s = begin(t, st)
			c = channel(t, st, s.SessionID)
		}
		done := make(chan error)
		go func() {
			_, err := c.Receive(ctx, time.Minute)
			done <- err
		}()
		if what.happens(); !errors.Is(<-done, what.err) {
			t.Error("not", what.err)
		}
	}
}

// Long output becomes several events, cut between characters; bytes that are not UTF-8 are replaced.
func TestOutput(t *testing.T) {
	st := testTeam(t)
	c := channel(t, st, begin(t, st).SessionID)
	long := strings.Repeat("世", maxOutput/2)
	for _, text := range []string{"größer 👩‍👩‍👧", "a\xff\xc3", long} {
		must(t, c.Emit(ctx, output(text)))
	}
	events, err := st.mail.Box("bob").Log().Newest(5)
	must(t, err)
	joined := ""
	for i := range events {
		e, _ := ChannelEvent(&events[i])
		joined += e.Content
	}
	if want := "größer 👩‍👩‍👧a\uFFFD\uFFFD" + long; joined != want || len(events) != 4 {
		t.Errorf("%d of %d bytes in %d events", len(joined), len(want), len(events))
	}
}

// The new log of an agent that was retired and created again is folded from its first event.
func TestAnotherLog(t *testing.T) {
	st := testTeam(t)
	s := begin(t, st)
	c := channel(t, st, s.SessionID)
	for range 5 {
		must(t, c.Emit(ctx, output("before")))
	}
	refresh(t, st, s.SessionID)
	_, err := keep.Retire(ctx, st.mail, "bob")
	must(t, err)
	if got := refresh(t, st, s.SessionID); len(got.Messages) != 5 {
		t.Errorf("while the agent is gone: %v", got.Messages)
	}
	if _, err := c.Receive(ctx, 0); err != ErrChannelClosed {
		t.Errorf("of one who is gone: %v", err)
	}
	must(t, st.mail.Create(ctx, "bob"))
	must(t, c.Emit(ctx, output("after")))
	if got := refresh(t, st, s.SessionID); len(got.Messages) != 6 || got.Messages[5].Content != "after" {
		t.Error(got.Messages)
	}
}

// What the agent says after an abort, and before anybody looks at the session, is not the session's.
func TestNothingAfterAnAbort(t *testing.T) {
	st := testTeam(t)
	s, box := begin(t, st), st.mail.Box("bob")
	tell(t, st, "", foreign.HumanInput{Kind: "abort"})
	ids, err := box.UnreadIDs()
	must(t, err)
	must(t, box.MarkRead(ctx, ids[0]))
	said := wire.Event{Kind: "agent_output", Source: "cli"}.With("stream", "std_out").With("content", "after")
	must(t, box.Log().Append(ctx, said))
	got := refresh(t, st, s.SessionID)
	if got.State != Aborted || strings.Contains(encode(t, got), "after") {
		t.Error(encode(t, got))
	}
}

// Two inputs with the same words and the same time, such as dropped files with a time of their own, are two.
func TestSameInputTwice(t *testing.T) {
	st := openTeam(t, filepath.Join(t.TempDir(), "main"))
	s := begin(t, st)
	at := now()
	for range 2 {
		m, err := Message(s.SessionID, text("yes"))
		must(t, err)
		m.From, m.To, m.SentAt = wire.Address{Agent: "me", Team: "main"}, []wire.Address{{Agent: "bob", Team: "main"}}, at
		p := &maildir.Post{Message: m, To: []*maildir.Box{st.mail.Box("bob")}}
		maildir.Deliver(ctx, p)
		must(t, p.Outcomes[0].Err)
	}
	for range 2 {
		if s = refresh(t, st, s.SessionID); len(s.Messages) != 2 {
			t.Fatalf("%d entries: %v", len(s.Messages), s.Messages)
		}
	}
}
