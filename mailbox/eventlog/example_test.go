package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// openLog opens the log of bob in a new team.
func openLog() *eventlog.Log {
	root, err := os.MkdirTemp("", "atm-example-") // left for the system to remove
	if err != nil {
		panic(err)
	}
	bob := filepath.Join(root, "main", "bob")
	if err := os.MkdirAll(bob, 0o700); err != nil {
		panic(err)
	}
	log, err := eventlog.Open(bob)
	if err != nil {
		panic(err)
	}
	return log
}

func ExampleLog_Append() {
	log := openLog() // eventlog.Open(".atm/main/bob")
	defer log.Close()
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
	log := openLog()
	defer log.Close()
	events := log.Follow(0)
	defer events.Close()
	for _, kind := range []string{"turn_started", "turn_idle"} {
		log.Append(context.Background(), wire.Event{Kind: kind})
		for {
			e, gap, err := events.Next()
			if errors.Is(err, io.EOF) {
				break // none yet: look again later, or when package watcher has news
			}
			fmt.Println(e.Seq, e.Kind, gap, err)
		}
	}
	// Output:
	// 1 turn_started <nil> <nil>
	// 2 turn_idle <nil> <nil>
}
