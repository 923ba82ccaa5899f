package session

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var ctx = context.Background()

// tb is a test, a check of rapid, or a process.
type tb interface{ Fatal(...any) }

func must(t tb, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// openTeam opens the team in a directory, with bob in it.
func openTeam(t tb, path string) *Store {
	bob, err := mailbox.Create(ctx, filepath.Join(path, "bob"))
	if err == nil {
		err = bob.Close()
	}
	if !errors.Is(err, mailbox.ErrExists) {
		must(t, err)
	}
	st, err := Open(path, OpenOptions{})
	must(t, err)
	return st
}

func testTeam(t *testing.T) *Store {
	st := openTeam(t, filepath.Join(t.TempDir(), "main"))
	t.Cleanup(func() { st.Close() })
	return st
}

func begin(t tb, st *Store) *Session {
	s, err := st.New(ctx, Options{Agent: "bob"})
	must(t, err)
	return s
}

// tell delivers human input; id "" is for any session.
func tell(t tb, st *Store, id wire.UUID, in foreign.HumanInput) {
	m, err := Message(id, in)
	must(t, err)
	m.From, m.To = wire.Address{Agent: "me", Team: "main"}, []wire.Address{{Agent: "bob", Team: "main"}}
	m.Origin = &wire.Origin{Via: "cli"}
	p := &maildir.Post{Message: m, To: []*maildir.Box{st.mail.Box("bob")}}
	maildir.Deliver(ctx, p)
	must(t, p.Outcomes[0].Err)
}

// emit appends an event to the agent's log; id "" is for all its sessions.
func emit(t tb, st *Store, id wire.UUID, e foreign.SessionEvent) {
	events, err := Events(id, e)
	must(t, err)
	must(t, st.mail.Box("bob").Log().Append(ctx, events...))
}

// readAll marks all of the agent's mail as read.
func readAll(t tb, st *Store) {
	ids, err := st.mail.Box("bob").UnreadIDs()
	must(t, err)
	for _, id := range ids {
		must(t, st.mail.Box("bob").MarkRead(ctx, id))
	}
}

func text(s string) foreign.HumanInput { return foreign.HumanInput{Kind: "message", Text: s} }

func output(s string) foreign.SessionEvent {
	return foreign.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: s}
}

// said reads a session with what was said, but for its own lines.
func said(t tb, st *Store, id wire.UUID) (s *Session, contents []string) {
	s, err := st.Get(id)
	must(t, err)
	must(t, st.Said(ctx, s))
	for _, e := range s.Messages {
		if e.Sender != SenderSystem {
			contents = append(contents, e.Content)
		}
	}
	return s, contents
}

// move moves a session to another state.
func move(t tb, st *Store, id wire.UUID, to State) {
	_, err := st.Change(ctx, id, func(s *Session) error { return s.Move(to, "", now()) })
	must(t, err)
}
