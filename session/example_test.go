package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire/foreign"
)

// open opens the sessions of a new team with bob in it, in a directory that done removes.
func open() (store *session.Store, done func(), err error) {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		return nil, nil, err
	}
	team := filepath.Join(dir, "main")
	bob, err := mailbox.Create(context.Background(), filepath.Join(team, "bob"))
	if err == nil {
		err = bob.Close()
	}
	if err == nil {
		store, err = session.Open(team, session.OpenOptions{})
	}
	return store, func() { store.Close(); os.RemoveAll(dir) }, err
}

// A program that works for a session emits what it does; whoever follows the session sees each message once, by a number
// that it keeps between two looks.
func Example() {
	ctx := context.Background()
	store, done, err := open() // session.Open(".atm/main", …)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	s, err := store.New(ctx, session.Options{Agent: "bob"})
	if err != nil {
		fmt.Println(err)
		return
	}
	bob, err := store.Channel(s.SessionID)
	if err != nil {
		fmt.Println(err)
		return
	}
	var seen uint64
	follow := func() {
		s, err := store.Change(ctx, s.SessionID, nil) // folds what is new; it changes nothing else
		if err != nil {
			fmt.Println(err)
			return
		}
		var entries []session.Entry
		entries, seen = s.Entries(seen)
		for _, m := range entries {
			fmt.Printf("%s: %s\n", m.Sender, m.Content)
		}
	}
	for _, text := range []string{"Reading the parser.", "Two conflicts, both mine."} {
		if err := bob.Emit(ctx, foreign.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: text}); err != nil {
			fmt.Println(err)
			return
		}
		follow()
	}
	follow() // nothing is new
	fmt.Println(seen, "messages")
	// Output:
	// agent: Reading the parser.
	// agent: Two conflicts, both mine.
	// 2 messages
}
