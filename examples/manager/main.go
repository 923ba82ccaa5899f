// Command manager is a PTY manager: it starts an agent, gives it a task, answers what it asks and prints what happens.
//
//	go run . 'ls | wc -l' bash --norc
//	go run . 'explain main.go' claude
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

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
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: command})
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
		fmt.Println(e.Kind, e.Text(wire.FieldNew), e.Text(wire.FieldPrompt), e.Text(wire.FieldResponse))
		switch e.Kind {
		case wire.ConfirmRequired:
			if err := agent.Answer(ctx, e.Text(wire.FieldID), ""); err != nil {
				return err
			}
		case wire.TurnCompleted:
			screen, err := agent.Screen(ctx)
			fmt.Println(strings.Join(screen.Lines, "\n"))
			return err
		}
	}
	return context.Cause(ctx)
}
