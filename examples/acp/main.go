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
)

func main() {
	ctx := context.Background()
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: os.Args[2:], ACP: &ptyrun.ACP{}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	go agent.Prompt(ctx, os.Args[1])
	for e := range agent.Events(ctx) {
		switch e.Kind {
		case "message_delta":
			fmt.Print(e.Text("delta"))
		case "confirm_required":
			fmt.Printf("\n[%s: yes]\n", e.Text("prompt"))
			agent.Answer(ctx, e.Text("id"), "")
		case "turn_completed":
			fmt.Printf("\n[%s %s]\n", e.Text("status"), e.Text("error"))
			return
		}
	}
}
