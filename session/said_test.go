package session

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// What is said before a session, or when it is over, is not its, and nor is what another one hears.
func TestSaid(t *testing.T) {
	st := testTeam(t)
	tell(t, st, "", text("before"))
	emit(t, st, "", output("before"))
	first := begin(t, st).SessionID
	second := begin(t, st).SessionID
	tell(t, st, first, text("read"))
	readAll(t, st)
	emit(t, st, "", output("to all"))
	emit(t, st, second, output("to the second"))
	for range 2 {
		emit(t, st, "", foreign.SessionEvent{Kind: "draft_ready", DraftID: draftID, Summary: "two files", ArtifactCount: 2})
	}
	tell(t, st, first, foreign.HumanInput{Kind: "approve", DraftID: draftID})
	tell(t, st, "", text("unread"))
	move(t, st, first, Completed)
	readAll(t, st)
	emit(t, st, "", output("after"))
	tell(t, st, "", text("after"))
	s, got := said(t, st, first)
	if want := []string{"read", "to all", "Approve draft " + draftID, "unread"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if !slices.Equal(s.DraftIDs, []wire.UUID{draftID}) {
		t.Error(s.DraftIDs)
	}
	var own []string
	for _, e := range s.Messages {
		if e.Sender == SenderSystem {
			own = append(own, e.Content)
		}
	}
	if want := []string{"Draft ready: " + draftID + " (2 artifacts) — two files", "Session completed"}; !slices.Equal(own, want) {
		t.Errorf("%q, not %q", own, want)
	}
	if _, got := said(t, st, second); !slices.Equal(got, []string{"to all", "to the second", "unread", "after", "after"}) {
		t.Errorf("%q", got)
	}
}

// Who follows sees each entry once: also what is first unread and then read.
func TestFollowed(t *testing.T) {
	st := testTeam(t)
	s := begin(t, st)
	log := st.Log(s, 0)
	defer log.Close()
	next := func(want ...string) {
		t.Helper()
		s, err := st.Get(s.SessionID)
		must(t, err)
		entries, err := log.Next(ctx, s)
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Content)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
	tell(t, st, "", text("one"))
	next("one")
	readAll(t, st)
	next()
	deltas := wire.Event{Kind: wire.MessageDelta, Source: wire.SourceACP}
	must(t, st.mail.Box("bob").Log().Append(ctx, deltas.With("delta", "Wait"), deltas.With("delta", " …")))
	next()
	if got := log.SoFar(); got != "Wait …" {
		t.Errorf("so far %q", got)
	}
	must(t, st.mail.Box("bob").Log().Append(ctx, wire.Event{Kind: wire.TurnCompleted, Source: wire.SourceACP}))
	next("Wait …")
	move(t, st, s.SessionID, Paused)
	move(t, st, s.SessionID, Active)
	next("Session paused", "Session resumed")
	move(t, st, s.SessionID, Aborted)
	emit(t, st, "", output("after"))
	next("Session aborted")
	next()
}

// Long output becomes several events, cut between characters; bytes that are not UTF-8 are replaced.
func TestOutput(t *testing.T) {
	st := testTeam(t)
	id := begin(t, st).SessionID
	long := strings.Repeat("世", maxOutput/2)
	for _, text := range []string{"größer 👩‍👩‍👧", "a\xff\xc3", long} {
		emit(t, st, id, output(text))
	}
	_, got := said(t, st, id)
	if want := "größer 👩‍👩‍👧a\uFFFD\uFFFD" + long; strings.Join(got, "") != want || len(got) != 4 {
		t.Errorf("%d entries, not as emitted", len(got))
	}
}

// Of an agent that was retired and created again, the new log is read from its first event.
func TestAnotherLog(t *testing.T) {
	st := testTeam(t)
	for range 5 {
		emit(t, st, "", output("before"))
	}
	id := begin(t, st).SessionID
	_, err := keep.Retire(ctx, st.mail, "bob")
	must(t, err)
	if _, got := said(t, st, id); len(got) > 0 {
		t.Errorf("while the agent is gone: %q", got)
	}
	must(t, st.mail.Create(ctx, "bob"))
	emit(t, st, "", output("after"))
	if _, got := said(t, st, id); !slices.Equal(got, []string{"after"}) {
		t.Errorf("%q", got)
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
		if _, got := said(t, st, s.SessionID); len(got) != 2 {
			t.Fatalf("%q", got)
		}
		readAll(t, st)
	}
}

// An abort ends the sessions that it is for, and none that began after it was sent.
func TestAbort(t *testing.T) {
	st := testTeam(t)
	for _, c := range []struct {
		of   wire.UUID
		want State
	}{{"", Aborted}, {draftID, Active}} {
		tell(t, st, c.of, foreign.HumanInput{Kind: "abort"})
		early := begin(t, st).SessionID
		tell(t, st, c.of, foreign.HumanInput{Kind: "abort"})
		aborts, err := st.UnreadAborts(ctx, "bob")
		if err != nil || len(aborts) != 2 {
			t.Fatalf("%v, %v", aborts, err)
		}
		aborts[0].ID = "0190163d-8694-739b-aea5-966c26f8ad91" // long ago
		must(t, st.Abort(ctx, "bob", aborts[0]))
		if s, _ := st.Get(early); s.State != Active {
			t.Error("an abort of before ended it")
		}
		must(t, st.Abort(ctx, "bob", aborts[1]))
		if s, _ := st.Get(early); s.State != c.want {
			t.Errorf("it is %s", s.State)
		}
		readAll(t, st)
	}
	if st, err := Open("", OpenOptions{}); err == nil {
		st.Close()
		t.Error("a directory without a name was opened")
	}
}
