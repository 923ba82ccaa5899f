package session_test

import (
	"context"
	"fmt"
	"os"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// An agent's program in its session: it tells, and takes what people say.
func ExampleMail() {
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

// team makes a team with one agent.
func team(agent wire.Name) (*mailbox.Store, func()) {
	path, _ := os.MkdirTemp("", "team")
	dir, err := atomicfile.Open(path, nil)
	if err != nil {
		panic(err)
	}
	locks, err := dir.Make(".locks")
	if err != nil {
		panic(err)
	}
	locks.Close()
	mail, err := mailbox.OpenStore(dir, "main")
	if err != nil {
		panic(err)
	}
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
