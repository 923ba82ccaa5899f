// Command day does what a team does in a day: it sends to everybody, watches, reads, asks and answers, gives out a job, runs
// an agent that asks for permission, and shows how all are.
//
//	go run . /tmp/try/main opencode acp
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := day(ctx, os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func day(ctx context.Context, dir string, command []string) error {
	team, err := teams.Create(ctx, dir, "lead", "alice", "bob")
	if err != nil {
		return err
	}
	defer team.Close()

	// The lead writes to everybody, and bob reads.
	sent, err := team.Send(ctx, &teams.Message{From: "lead", To: []string{"all"}, Content: &wire.Message{Body: "Good morning."}})
	if err != nil {
		return err
	}
	fmt.Println("sent to", len(sent.Receipts()))
	bob, err := team.Mailbox("bob")
	if err != nil {
		return err
	}
	show := func(m *wire.Message) error { fmt.Println("bob reads:", m.Body); return nil }
	if err := bob.Read(ctx, 0, show); err != nil {
		return err
	}

	// Bob waits for mail and answers the lead's question.
	go func() {
		for m, err := range bob.Watch(ctx) {
			if err == nil {
				_, err = team.Send(ctx, &teams.Message{From: "bob", Answers: m, Content: &wire.Message{Body: "Yes, all green."}})
			}
			if err != nil {
				fmt.Println("bob:", err)
			}
		}
	}()
	answer, err := team.Ask(ctx, &teams.Message{From: "lead", To: []string{"bob"}, Once: "tests", Content: &wire.Message{Body: "Do the tests pass?"}})
	if err != nil {
		return err
	}
	fmt.Println("bob answers:", answer.Text)

	// A job is taken by one of those who may, and is done when that one says so.
	if err := team.AddShared(ctx, "jobs"); err != nil {
		return err
	}
	if _, err = team.Send(ctx, &teams.Message{From: "lead", To: []string{"jobs"}, Content: &wire.Message{Body: "Tidy up."}}); err != nil {
		return err
	}
	job, err := team.Take(ctx, "bob", "jobs", time.Hour)
	if err != nil || job == nil {
		return fmt.Errorf("no job: %w", err)
	}
	if err := team.Ack(ctx, "bob", teams.Ack{ID: job.ID, Text: "tidy"}); err != nil {
		return err
	}
	done, err := team.Trace(ctx, "lead", job.ID)
	if err != nil {
		return err
	}
	fmt.Println("the job is", done[0].State)

	// Alice is an agent. What she wants to run is allowed, but for what pushes.
	alice, err := team.Mailbox("alice")
	if err != nil {
		return err
	}
	agent, err := ptyrun.Start(ctx, ptyrun.Options{
		Command: command, ACP: &ptyrun.ACP{}, Mail: &ptyrun.Mail{Mailbox: alice},
		Decide: func(q ask.Question) (ask.Answer, bool) {
			fmt.Println("alice", q.Summary())
			return ask.Answer{Deny: q.Input == "git push"}, true
		},
	})
	if err != nil {
		return err
	}
	defer agent.Close()
	answer, err = team.Ask(ctx, &teams.Message{From: "lead", To: []string{"alice"}, Content: &wire.Message{Body: "CONFIRM [make test]"}})
	if err != nil {
		return err
	}
	fmt.Println("alice is", answer.Status)

	members, err := team.Members(ctx)
	for _, m := range members {
		fmt.Println(m.Name, m.State, m.Unread, "unread")
	}
	return err
}
