package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

func TestEmitReachesTheSession(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	other := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	if c.ID() != DefaultChannel {
		t.Errorf("its id is %s", c.ID())
	}
	const draft = "6f1c2a34-0b7e-4c1d-9a55-0123456789ab"
	for _, e := range []wire.SessionEvent{
		output("Hello"),
		{Kind: "draft_ready", DraftID: draft, Summary: "Test draft", ArtifactCount: 3},
		{Kind: "draft_ready", DraftID: draft, Summary: "Test draft, again", ArtifactCount: 4},
		{Kind: "goal_complete", GoalID: "11111111-2222-4333-8444-555555555555"},
		{Kind: "waiting_for_input", Prompt: "What next?"},
		{Kind: "status_update", Message: "compiling"},
	} {
		if err := c.Emit(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := st.Change(ctx, s.SessionID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	for _, m := range got.Messages {
		log = append(log, m.Sender+": "+m.Content)
	}
	want := []string{
		"agent: Hello",
		"ta-system: Draft ready: " + draft + " (3 artifacts) — Test draft",
		"ta-system: Goal complete: 11111111-2222-4333-8444-555555555555",
		"ta-system: Waiting for input: What next?",
		"ta-system: Status: compiling",
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Error(diff)
	}
	if d := got.Drafts(); len(d) != 1 || d[0].Summary != "Test draft, again" || d[0].Artifacts != 4 || d[0].At.IsZero() {
		t.Errorf("drafts: %+v", d)
	}
	if got.notes.Goal.IsZero() {
		t.Error("the goal is not complete")
	}
	// Read again it is the same, and again nothing is written.
	if again, err := st.Get(s.SessionID); err != nil || encode(t, again) != encode(t, got) {
		t.Error(err, cmp.Diff(encode(t, got), encode(t, again)))
	}
	if o, err := st.Look(ctx, other.SessionID); err != nil || len(o.Messages) != 0 {
		t.Errorf("another session heard it: %v, %v", o.Messages, err)
	}
	if err := c.Emit(ctx, wire.SessionEvent{Kind: "draft_ready", DraftID: "12"}); !errors.As(err, new(*wire.SessionError)) {
		t.Errorf("a draft without an id: %v", err)
	}
}

func TestReceive(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	other := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	receive := func() *Input {
		t.Helper()
		in, err := c.Receive(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	if in := receive(); in != nil {
		t.Errorf("nothing was said, and received is %v", in)
	}
	tell(t, st, "bob", other.SessionID, text("for another"))
	tell(t, st, "bob", s.SessionID, text("first"))
	uri := "fs://repo/main.rs"
	reject := wire.HumanInput{Kind: "reject", DraftID: "6f1c2a34-0b7e-4c1d-9a55-0123456789ab", ArtifactURI: &uri, Reason: "no"}
	tell(t, st, "bob", "", reject)
	// By hand: what is not there stays as it is.
	file := `{"input_type":"approve","draft_id":"6F1C2A34-0b7e-4c1d-9a55-0123456789ab","note":1.0}`
	if err := os.WriteFile(filepath.Join(st.Mail.Box("bob").Path(), "inbox", "yes.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if in := receive(); in == nil || in.Text != "first" || in.From.Agent != "me" {
		t.Errorf("received %+v", in)
	}
	if in := receive(); in == nil || in.String() != reject.String() {
		t.Errorf("received %+v", in)
	}
	in, err := c.Receive(ctx, 5*time.Second) // a file that may still be written is looked at again
	if err != nil || in == nil || in.Kind != "approve" || string(in.Wire) != file || in.ArtifactURI != nil {
		t.Errorf("received %+v, %v", in, err)
	}
	if in := receive(); in != nil {
		t.Errorf("received %+v", in)
	}

	// Paused: what is said waits.
	move(t, st, s.SessionID, wire.SessionPaused)
	tell(t, st, "bob", s.SessionID, text("later"))
	if in := receive(); in != nil {
		t.Errorf("received %+v while paused", in)
	}
	move(t, st, s.SessionID, wire.SessionActive)
	if in := receive(); in == nil || in.Text != "later" {
		t.Errorf("received %+v", in)
	}

	// Over: an abort still comes, then the channel is closed.
	tell(t, st, "bob", s.SessionID, wire.HumanInput{Kind: "abort"})
	if got, err := st.Change(ctx, s.SessionID, nil); err != nil || got.State != wire.SessionAborted {
		t.Errorf("%v, %v", got, err)
	}
	if in := receive(); in == nil || in.Kind != "abort" {
		t.Errorf("received %+v", in)
	}
	if _, err := c.Receive(ctx, time.Minute); err != wire.ErrChannelClosed {
		t.Errorf("over: %v", err)
	}
	if err := c.Emit(ctx, output("x")); err != wire.ErrChannelClosed {
		t.Errorf("over: %v", err)
	}
}

// Who waits is woken by a message, by the end of the session and by Close.
func TestReceiveWaits(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	type result struct {
		in  *Input
		err error
	}
	wait := func(timeout time.Duration) <-chan result {
		out := make(chan result, 1)
		go func() {
			in, err := c.Receive(ctx, timeout)
			out <- result{in, err}
		}()
		return out
	}
	if r := <-wait(20 * time.Millisecond); r.in != nil || r.err != nil {
		t.Errorf("timeout: %+v", r)
	}
	got := wait(time.Minute)
	tell(t, st, "bob", s.SessionID, text("x"))
	if r := <-got; r.err != nil || r.in == nil || r.in.Text != "x" {
		t.Errorf("%+v", r)
	}
	got = wait(time.Minute)
	move(t, st, s.SessionID, wire.SessionCompleted)
	if r := <-got; r.err != wire.ErrChannelClosed {
		t.Errorf("completed: %+v", r)
	}
	s = begin(t, st, "bob")
	c = channel(t, st, s.SessionID)
	got = wait(time.Minute)
	c.Close()
	if r := <-got; r.err != wire.ErrChannelClosed {
		t.Errorf("closed: %+v", r)
	}
}

// Long output is several events, cut between characters and whole again in the
// session; what is not UTF-8 does no harm.
func TestOutput(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	long := strings.Repeat("世", maxOutput/2)
	for _, text := range []string{"größer 👩‍👩‍👧", "a\xff\xc3", long} {
		if err := c.Emit(ctx, output(text)); err != nil {
			t.Fatal(err)
		}
	}
	events, err := st.Mail.Box("bob").Log().Newest(5)
	if err != nil {
		t.Fatal(err)
	}
	joined := ""
	for i := range events {
		e, _ := EventOf(&events[i])
		joined += e.Content
	}
	if want := "größer 👩‍👩‍👧a\uFFFD\uFFFD" + long; joined != want || len(events) != 4 {
		t.Errorf("%d of %d bytes in %d events", len(joined), len(want), len(events))
	}
}

// A new log, of an agent that was retired and made again, is folded from its
// first event.
func TestAnotherLog(t *testing.T) {
	st := testTeam(t, "bob")
	s := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	for range 5 {
		c.Emit(ctx, output("before"))
	}
	if _, err := st.Change(ctx, s.SessionID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Mail.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Change(ctx, s.SessionID, nil); err != nil || len(got.Messages) != 5 {
		t.Errorf("while the agent is gone: %v", err)
	}
	if _, err := c.Receive(ctx, 0); err != wire.ErrChannelClosed {
		t.Errorf("of one who is gone: %v", err)
	}
	if err := st.Mail.Create(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if err := c.Emit(ctx, output("after")); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Change(ctx, s.SessionID, nil); err != nil || len(got.Messages) != 6 || got.Messages[5].Content != "after" {
		t.Errorf("%v, %v", got.Messages, err)
	}
}

// An abort that is dropped as a file ends the session as well, and still reaches
// the agent; what was said before the session began is not its business.
func TestDroppedAbort(t *testing.T) {
	st := testTeam(t, "bob")
	tell(t, st, "bob", "", wire.HumanInput{Kind: "abort"})
	time.Sleep(2 * time.Millisecond) // ids tell milliseconds
	s := begin(t, st, "bob")
	c := channel(t, st, s.SessionID)
	if got, err := st.Change(ctx, s.SessionID, nil); err != nil || got.State != wire.SessionActive {
		t.Fatalf("%v, %v", got, err)
	}
	inbox := filepath.Join(st.Mail.Box("bob").Path(), "inbox")
	if err := os.WriteFile(filepath.Join(inbox, ".stop"), []byte(`{"input_type":"abort"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(inbox, ".stop"), filepath.Join(inbox, "stop.json")); err != nil {
		t.Fatal(err)
	}
	var got *Session
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if got, err = st.Change(ctx, s.SessionID, nil); err != nil {
			t.Fatal(err)
		}
		if got.State == wire.SessionAborted || time.Now().After(end) {
			break
		}
	}
	if n := len(got.Messages); got.State != wire.SessionAborted || n != 2 || got.Messages[0].Content != "Abort session" {
		t.Errorf("%s, %v", got.State, got.Messages)
	}
	for range 2 {
		if in, err := c.Receive(ctx, 0); err != nil || in == nil || in.Kind != "abort" {
			t.Errorf("received %v, %v", in, err)
		}
	}
	if _, err := c.Receive(ctx, 0); err != wire.ErrChannelClosed {
		t.Error(err)
	}
}
