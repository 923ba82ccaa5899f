package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// What Trusted Autonomy tests of an interactive session, written by somebody who has the public packages alone. Package
// wire/foreign has the same for the types of the channel.

func newSession(t *testing.T) *session.Session {
	t.Helper()
	store, _, done, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	s, err := store.New(context.Background(), session.Options{Agent: "bob", Channel: "cli:tty0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// move moves a session through states, and fails if one is refused.
func move(t *testing.T, s *session.Session, states ...session.State) {
	t.Helper()
	for _, to := range states {
		if err := s.Transition(to, time.Now()); err != nil || s.State != to {
			t.Fatal(s.State, err)
		}
	}
}

func TestNewInteractiveSessionIsActive(t *testing.T) {
	if s := newSession(t); s.State != session.Active || len(s.Messages) > 0 || len(s.DraftIDs) > 0 || !s.State.Alive() {
		t.Errorf("%+v", s)
	}
}

func TestLogMessageAddsToHistory(t *testing.T) {
	s := newSession(t)
	s.LogMessage(session.SenderHuman, "Focus on the auth module", time.Now())
	s.LogMessage(session.SenderAgent, "Understood, working on auth", time.Now())
	if m := s.Messages; len(m) != 2 || m[0].Sender != "human" || m[1].Sender != "agent" {
		t.Errorf("%+v", m)
	}
}

func TestAddDraftDeduplicates(t *testing.T) {
	s, later, id := newSession(t), time.Now().Add(time.Hour), wire.UUID(wire.NewID())
	s.AddDraft(id, time.Now())
	s.AddDraft(id, later)
	if len(s.DraftIDs) != 1 || !s.UpdatedAt.Equal(later) {
		t.Error(s.DraftIDs, s.UpdatedAt, later)
	}
}

func TestValidTransitions(t *testing.T) {
	move(t, newSession(t), session.Paused, session.Active, session.Completed)
}

func TestInvalidTransitionIsAnError(t *testing.T) {
	s := newSession(t)
	move(t, s, session.Completed)
	if err := s.Transition(session.Active, time.Now()); err == nil || s.State != session.Completed {
		t.Error(s.State, err)
	}
}

func TestAbortFromActive(t *testing.T) {
	s := newSession(t)
	if move(t, s, session.Aborted); s.State.Alive() {
		t.Error(s.State)
	}
}

func TestAbortFromPaused(t *testing.T) {
	s := newSession(t)
	if move(t, s, session.Paused, session.Aborted); s.State.Alive() {
		t.Error(s.State)
	}
}

func TestSessionRoundTrip(t *testing.T) {
	s := newSession(t)
	s.LogMessage(session.SenderHuman, "Test message", time.Now())
	s.AddDraft(wire.UUID(wire.NewID()), time.Now())
	data, err := json.Marshal(s.InteractiveSession) // as its owner has it
	var back session.InteractiveSession
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || back.SessionID != s.SessionID || back.GoalID != s.GoalID || back.ChannelID != s.ChannelID ||
		back.AgentID != s.AgentID || len(back.Messages) != 1 || len(back.DraftIDs) != 1 {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestElapsedDisplay(t *testing.T) {
	s := newSession(t)
	if text := s.Elapsed(time.Now()); !strings.HasSuffix(text, "s") {
		t.Error(text)
	}
	s.CreatedAt = time.Now().Add(-5 * time.Minute)
	if text := s.Elapsed(time.Now()); !strings.Contains(text, "m") {
		t.Error(text)
	}
}
