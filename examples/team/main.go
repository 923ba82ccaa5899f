// Command team runs an agent with a mailbox, asks it by mail, and prints the answer and how far the question got.
//
//	go run . /tmp/try/main 'What is in this directory?' claude
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
)

func main() {
	ctx := context.Background()
	team, err := teams.Create(ctx, os.Args[1], "bob", "script")
	if err != nil {
		log.Fatal(err)
	}
	defer team.Close()
	bob, err := team.Mailbox("bob")
	if err != nil {
		log.Fatal(err)
	}
	agent, err := ptyrun.Start(ctx, ptyrun.Options{Command: os.Args[3:], Mail: &ptyrun.Mail{Mailbox: bob}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	answer, err := team.Ask(ctx, teams.Message{From: "script", To: []string{"bob"}, Text: os.Args[2]})
	fmt.Println(answer.Status, answer.Text, err)
	all, err := team.Trace(ctx, "script", answer.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, stage := range all[0].Stages {
		fmt.Println(stage.Name, stage.At)
	}
}
