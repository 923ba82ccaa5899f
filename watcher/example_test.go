package watcher_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/watcher"
)

// A program shows the mail and the events of a member as they come. Here somebody drops a file for her.
func Example() {
	team, err := makeTeam("alice")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(team))

	ctx := context.Background()
	w, err := watcher.OpenTeam(ctx, team, watcher.Options{Messages: true, Events: true}, "alice")
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	os.WriteFile(filepath.Join(team, "alice", "inbox", "note.txt"), []byte("rebase, please"), 0o600)
	e, err := w.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case e.Message != nil:
		fmt.Printf("%s got: %s\n", e.Address, e.Message.Body)
	case e.Event != nil:
		fmt.Println(e.Address, e.Event.Kind)
	case e.Err != nil:
		fmt.Println(e.Address, e.Err)
	}
	// Output: alice@main got: rebase, please
}

// makeTeam makes what atm init and atm team add do.
func makeTeam(agent string) (team string, err error) {
	root, err := os.MkdirTemp("", "atm-")
	team = filepath.Join(root, "main")
	for _, dir := range []string{".locks", agent + "/inbox/tmp", agent + "/inbox/new", agent + "/inbox/cur", agent + "/inbox/done", agent + "/inbox/bad", agent + "/sent", agent + "/events"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(team, dir), 0o700)
		}
	}
	return team, err
}
