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
func open() (store *session.Store, team string, done func(), err error) {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		return nil, "", nil, err
	}
	team = filepath.Join(dir, "main")
	bob, err := mailbox.Create(context.Background(), filepath.Join(team, "bob"))
	if err == nil {
		err = bob.Close()
	}
	if err == nil {
		store, err = session.Open(team, session.OpenOptions{})
	}
	return store, team, func() { store.Close(); os.RemoveAll(dir) }, err
}

// A program that works for a session emits what it does; whoever follows the session sees each message once.
func Example() {
	ctx := context.Background()
	store, dir, done, err := open() // session.Open(".atm/main", …)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	bob, err := mailbox.Open(dir + "/bob")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bob.Close()
	s, err := store.New(ctx, session.Options{Agent: "bob"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := store.Log(s, 0)
	defer log.Close()
	follow := func() {
		entries, err := log.Next(ctx, s)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, m := range entries {
			fmt.Printf("%s: %s\n", m.Sender, m.Content)
		}
	}
	for _, text := range []string{"Reading the parser.", "Two conflicts, both mine."} {
		events, err := session.Events(s.SessionID, foreign.SessionEvent{Kind: "agent_output", Stream: "std_out", Content: text})
		if err == nil {
			err = bob.Log().Append(ctx, events...)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		follow()
	}
	follow() // nothing is new
	// Output:
	// agent: Reading the parser.
	// agent: Two conflicts, both mine.
}
