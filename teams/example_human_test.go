package teams_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Human in the loop: bob prepares a release, and a person, me, approves it. The program may be restarted while the
// person decides.
func Example_human() {
	ctx, stop := context.WithCancel(context.Background())
	team, done := aTeam("bob", "me", "script")
	defer done()
	defer stop()
	plays(ctx, team, "bob", func(question string) string {
		if strings.HasPrefix(question, "Prepare") {
			return "faster, and two bugs less"
		}
		return "v1.4"
	})

	release := func(ctx context.Context) error {
		notes, err := ask(ctx, team, "bob", "1.4/notes", "Prepare release 1.4, and answer with its notes.")
		if err != nil {
			return err
		}
		answer, err := ask(ctx, team, "me", "1.4/go", "Release 1.4? It is "+notes)
		if err != nil {
			return err
		}
		if answer != "yes" {
			return send(ctx, team, "bob", "1.4/no", "No release: "+answer)
		}
		tag, err := ask(ctx, team, "bob", "1.4/release", "Release it, and answer with its tag.")
		fmt.Println("released", tag)
		return err
	}

	// The program asks, and ends before there is an answer.
	first, kill := context.WithCancel(ctx)
	over := make(chan error)
	go func() { over <- release(first) }()
	question := mailOf(ctx, team, "me")
	kill()
	fmt.Println(<-over)
	fmt.Println(question.Body)

	// The person answers, and the program runs again.
	types(ctx, team, "me", question, "yes")
	fmt.Println(release(ctx))
	me, err := team.Member(ctx, "me")
	fmt.Println("me has", me.Unread, "more questions", err)
	// Output:
	// context canceled
	// Release 1.4? It is faster, and two bugs less
	// released v1.4
	// <nil>
	// me has 0 more questions <nil>
}

// mailOf waits for a member's first message.
func mailOf(ctx context.Context, team *teams.Team, name wire.Name) *wire.Message {
	inbox := open(team, name)
	defer inbox.Close()
	for m, err := range inbox.Watch(ctx) {
		must(err)
		return m
	}
	panic(ctx.Err())
}

// types does what a person does with atm read and atm reply. Only so does the answer of a person count.
func types(ctx context.Context, team *teams.Team, person wire.Name, question *wire.Message, text string) {
	inbox, asker := open(team, person), open(team, question.From.Agent)
	defer inbox.Close()
	defer asker.Close()
	must(inbox.Read(ctx, 1, func(*wire.Message) error { return nil }))
	_, err := asker.Deliver(ctx, wire.Message{
		From: inbox.Address(), InReplyTo: question.ID, Thread: question.ThreadID(), Body: text, Origin: &wire.Origin{Via: "cli"},
	})
	must(err)
}
