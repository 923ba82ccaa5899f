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
	ctx := context.Background()
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: os.Args[2:]})
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
		fmt.Println(e.Kind, e.Text("new"), e.Text("prompt"), e.Text("response"))
		switch e.Kind {
		case wire.ConfirmRequired:
			if err := agent.Answer(ctx, e.Text("id"), ""); err != nil {
				log.Print(err)
			}
		case wire.TurnCompleted:
			screen, err := agent.Screen(ctx)
			fmt.Println(strings.Join(screen.Lines, "\n"), err)
			return
		}
	}
}
