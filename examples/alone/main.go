// alone uses the packages that need nothing else of atm, on a mailbox of its own: alone DIR.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

func must[T any](x T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return x
}

func main() {
	ctx := context.Background()
	bob := must(mailbox.Create(ctx, filepath.Join(os.Args[1], "main", "bob")))
	defer bob.Close()
	entries := watcher.Open(ctx, []watcher.Mailbox{bob.Watched()}, watcher.Options{Messages: true, Events: true})
	defer entries.Close()

	input := must(session.Message(wire.UUID(wire.NewID()), foreign.HumanInput{Kind: foreign.HumanMessage, Text: "Go on."}))
	input.From = wire.Address{Agent: "alice"}
	must(bob.Deliver(ctx, *input))
	m := must(entries.Next(ctx)).Message
	said, _ := session.InputOf(m)
	fmt.Println(m.From, "says", said.Text)

	if err := bob.Log().Append(ctx, wire.Event{Kind: wire.TurnStarted, TurnID: "t1"}); err != nil {
		log.Fatal(err)
	}
	var state reducer.State
	state.Apply(must(entries.Next(ctx)).Event)
	fmt.Println("bob is", state.Evaluate(reducer.Evidence{Now: time.Now()}).Word)
}
