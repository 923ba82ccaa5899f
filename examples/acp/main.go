// Command acp is a client of the Agent Client Protocol: it asks an agent and prints the answer as it comes.
//
//	go run . 'What is in this directory?' opencode acp
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/wire"
)

func main() {
	ctx := context.Background()
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: os.Args[2:], ACP: &ptyrun.ACP{}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	go func() {
		if err := agent.Prompt(ctx, os.Args[1]); err != nil {
			log.Print(err)
		}
	}()
	for e, err := range agent.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch e.Kind {
		case wire.MessageDelta:
			fmt.Print(e.Text("delta"))
		case wire.ConfirmRequired:
			fmt.Printf("\n[%s: yes]\n", e.Text("prompt"))
			if err := agent.Answer(ctx, e.Text("id"), ""); err != nil {
				log.Print(err)
			}
		case wire.TurnCompleted:
			fmt.Printf("\n[%s %s]\n", e.Text("status"), e.Text("error"))
			return
		}
	}
}
