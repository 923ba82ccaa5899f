package session

import (
	"context"
	"errors"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

var ctx = context.Background()

type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// openTeam opens the team in a directory, with these agents.
func openTeam(t tb, path string, agents ...wire.Name) *Store {
	t.Helper()
	return openFaulty(t, path, nil, agents...)
}

func openFaulty(t tb, path string, fault durable.Fault, agents ...wire.Name) *Store {
	t.Helper()
	root, err := durable.Open(path, fault)
	if err == nil {
		err = root.MkdirAll(".locks")
	}
	if err != nil {
		t.Fatal(err)
	}
	m := mailbox.NewStore(root, "main")
	for _, a := range agents {
		if err := m.Create(ctx, a); err != nil && !errors.Is(err, mailbox.ErrExists) {
			t.Fatal(err)
		}
	}
	return &Store{Mail: m}
}

func testTeam(t *testing.T, agents ...wire.Name) *Store {
	t.Helper()
	st := openTeam(t, t.TempDir(), agents...)
	t.Cleanup(func() { st.Mail.Close() })
	return st
}

func begin(t tb, st *Store, agent wire.Name) *Session {
	t.Helper()
	s, err := st.New(ctx, Options{Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func channel(t *testing.T, st *Store, id wire.UUID) *MailboxChannel {
	t.Helper()
	c, err := st.Channel(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// tell delivers human input; id "" is for any session.
func tell(t tb, st *Store, agent wire.Name, id wire.UUID, in wire.HumanInput) wire.ID {
	t.Helper()
	m, err := Message(id, in)
	if err != nil {
		t.Fatal(err)
	}
	m.From = wire.Address{Agent: "me", Team: "main"}
	m.To = []wire.Address{{Agent: agent, Team: "main"}}
	p := &mailbox.Post{Message: m, To: []*mailbox.Box{st.Mail.Box(agent)}}
	mailbox.Deliver(ctx, p)
	if err := p.Outcomes[0].Err; err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// encode is the session as it is written.
func encode(t tb, s *Session) string {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func text(s string) wire.HumanInput { return wire.HumanInput{Kind: "message", Text: s} }

func output(s string) wire.SessionEvent {
	return wire.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: s}
}

// move takes a session to another state.
func move(t tb, st *Store, id wire.UUID, to wire.InteractiveSessionState) *Session {
	t.Helper()
	s, err := st.Change(ctx, id, func(s *Session) error { return s.Move(to, "", now()) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}
