package session_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// An agent's program in its session: it tells, and takes what people say.
func ExampleMailboxChannel() {
	ctx := context.Background()
	mail, done := team("bob")
	defer done()

	store := &session.Store{Mail: mail}
	s, err := store.New(ctx, session.Options{Agent: "bob"})
	if err != nil {
		fmt.Println(err)
		return
	}
	channel, err := store.Channel(s.SessionID)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer channel.Close()

	channel.Emit(ctx, wire.SessionEvent{Kind: "waiting_for_input", Prompt: "What next?"})
	say(mail, s.SessionID, wire.HumanInput{Kind: "message", Text: "The parser."})
	in, err := channel.Receive(ctx, 0)
	fmt.Println(in, err)
	in, err = channel.Receive(ctx, 0) // nothing more
	fmt.Println(in, err)

	s, err = store.Change(ctx, s.SessionID, func(s *session.Session) error {
		return s.Move(wire.SessionCompleted, "by bob", s.CreatedAt)
	})
	for _, m := range s.Messages {
		fmt.Printf("%s: %s\n", m.Sender, m.Content)
	}
	fmt.Println(channel.Emit(ctx, wire.SessionEvent{Kind: "status_update", Message: "late"}))
	// Output:
	// Message: The parser. <nil>
	// <nil> <nil>
	// ta-system: Waiting for input: What next?
	// human: The parser.
	// ta-system: Session completed by bob
	// channel closed
}

// What ends a session by itself: the same rules for a runner and for who looks.
func ExampleRules() {
	begun := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	s := &session.Session{}
	s.State, s.CreatedAt = wire.SessionActive, begun
	rules := session.Rules{WhenIdle: 300 * time.Second}

	fmt.Println(s.ApplyRules(rules, false, begun.Add(4*time.Minute)), s.State)
	fmt.Println(s.ApplyRules(rules, true, begun.Add(6*time.Minute)), s.State) // in a turn
	fmt.Println(s.ApplyRules(rules, false, begun.Add(6*time.Minute)), s.State, s.EndedBy(), s.Elapsed(begun.Add(6*time.Minute)))
	// Output:
	// <nil> active
	// <nil> active
	// <nil> completed idle_timeout: 300s 6m 0s
}

// team makes a team with one agent.
func team(agent wire.Name) (*mailbox.Store, func()) {
	path, _ := os.MkdirTemp("", "team")
	root, err := durable.Open(path, nil)
	if err == nil {
		err = root.MkdirAll(".locks")
	}
	if err != nil {
		panic(err)
	}
	mail := mailbox.NewStore(root, "main")
	if err := mail.Create(context.Background(), agent); err != nil {
		panic(err)
	}
	return mail, func() { mail.Close(); os.RemoveAll(path) }
}

// say delivers what a person says.
func say(mail *mailbox.Store, id wire.UUID, in wire.HumanInput) {
	m, err := session.Message(id, in)
	if err != nil {
		panic(err)
	}
	m.From = wire.Address{Agent: "me", Team: mail.Team}
	mailbox.Deliver(context.Background(), &mailbox.Post{Message: m, To: []*mailbox.Box{mail.Box("bob")}})
}
