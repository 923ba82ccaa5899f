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
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// run returns when the turn is over; then nothing of the agent runs any more.
func run(task string, command []string) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: command, ACP: &ptyrun.ACP{}})
	if err != nil {
		return err
	}
	defer agent.Close()
	go func() {
		if err := agent.Prompt(ctx, task); err != nil {
			stop(err)
		}
	}()
	for e, err := range agent.Events(ctx) {
		if err != nil {
			return err
		}
		switch e.Kind {
		case wire.MessageDelta:
			fmt.Print(e.Text(wire.FieldDelta))
		case wire.ConfirmRequired:
			fmt.Printf("\n[%s: %s: yes]\n", e.Text(wire.FieldTool), e.Text(wire.FieldPrompt))
			if err := agent.Answer(ctx, e.Text(wire.FieldID), ""); err != nil {
				return err
			}
		case wire.TurnCompleted:
			fmt.Printf("\n[%s %s]\n", e.Text(wire.FieldStatus), e.Text(wire.FieldError))
			return nil
		}
	}
	return context.Cause(ctx)
}
