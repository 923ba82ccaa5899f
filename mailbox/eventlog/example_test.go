package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// openLog makes a mailbox, and returns its log and what removes both.
func openLog() (log *eventlog.Log, remove func()) {
	root, err := os.MkdirTemp("", "atm-example-")
	if err != nil {
		panic(err)
	}
	bob, err := mailbox.Create(context.Background(), filepath.Join(root, "main", "bob"))
	if err != nil {
		panic(err)
	}
	return bob.Log(), func() {
		bob.Close()
		os.RemoveAll(root)
	}
}

func ExampleLog_Append() {
	log, remove := openLog() // that of mailbox.Open(".atm/main/bob")
	defer remove()
	events := []wire.Event{{Kind: "turn_started", TurnID: "7"}, {Kind: "turn_idle", TurnID: "7"}}
	if err := log.Append(context.Background(), events...); err != nil {
		fmt.Println(err)
	}
	for _, e := range events {
		fmt.Println(e.Seq, e.Agent, e.Kind)
	}
	// Output:
	// 1 bob turn_started
	// 2 bob turn_idle
}

func ExampleLog_Follow() {
	log, remove := openLog()
	defer remove()
	events := log.Follow(0)
	defer events.Close()
	for _, kind := range []string{"turn_started", "turn_idle"} {
		log.Append(context.Background(), wire.Event{Kind: kind})
		for {
			e, err := events.Next()
			if errors.Is(err, io.EOF) {
				break // none yet: look again later, or when package watcher has news
			}
			fmt.Println(e.Seq, e.Kind, err)
		}
	}
	// Output:
	// 1 turn_started <nil>
	// 2 turn_idle <nil>
}
