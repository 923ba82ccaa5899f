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

func channel(t *testing.T, st *Store, id wire.UUID) *MailboxChannel {
	c, err := st.Channel(id)
	must(t, err)
	return c
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

// encode returns the session as it is written.
func encode(t tb, s *Session) string {
	data, err := s.encode()
	must(t, err)
	return string(data)
}

func text(s string) foreign.HumanInput { return foreign.HumanInput{Kind: "message", Text: s} }

func output(s string) foreign.SessionEvent {
	return foreign.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: s}
}

// refresh folds the new events of a session's agent.
func refresh(t tb, st *Store, id wire.UUID) *Session {
	s, err := st.Change(ctx, id, nil)
	must(t, err)
	return s
}

// move moves a session to another state.
func move(t tb, st *Store, id wire.UUID, to State) {
	_, err := st.Change(ctx, id, func(s *Session) error { return s.Move(to, "", now()) })
	must(t, err)
}
