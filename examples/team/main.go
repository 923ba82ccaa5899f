// Command team runs an agent that speaks the Agent Client Protocol with a mailbox, asks it by mail, and prints the answer and
// how far the question got.
//
//	go run . /tmp/try/main 'What is in this directory?' opencode acp
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, question string, command []string) error {
	team, err := teams.Create(ctx, dir, "bob", "script")
	if err != nil {
		return err
	}
	defer team.Close()
	bob, err := team.Mailbox("bob")
	if err != nil {
		return err
	}
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: command, ACP: &ptyrun.ACP{}, Mail: &ptyrun.Mail{Mailbox: bob}})
	if err != nil {
		return err
	}
	defer agent.Close()
	answer, err := team.Ask(ctx, &teams.Message{From: "script", To: []string{"bob"}, Content: &wire.Message{Body: question}})
	if err != nil {
		return err
	}
	fmt.Println(answer.Status, answer.Text)
	all, err := team.Trace(ctx, "script", answer.ID)
	for _, delivery := range all {
		for _, stage := range delivery.Stages {
			fmt.Println(stage.Name, stage.At)
		}
	}
	return err
}
