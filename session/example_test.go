package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire/foreign"
)

// team makes a team with bob in it, in a directory that done removes.
func team() (t *teamdir.Team, done func(), err error) {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, ".atm")
	if _, err = rootdir.Make(path); err != nil {
		return nil, nil, err
	}
	root, err := teamdir.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if t, err = root.CreateTeam("main"); err == nil {
		err = t.Create(context.Background(), "bob")
	}
	return t, func() { root.Close(); os.RemoveAll(dir) }, err
}

// A program that works for a session emits what it does; whoever follows the session sees each message once, by a number
// that it keeps between two looks.
func Example() {
	ctx := context.Background()
	t, done, err := team()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	store := t.Sessions()
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
