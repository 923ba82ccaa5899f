package teams_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// The examples in example_*_test.go are the scripts of docs/cookbook as programs. They share the functions here: to ask
// a question under a name, so that a restarted program does not ask twice, and to answer as a member.

// ask asks a member as the member script, and returns the answer.
func ask(ctx context.Context, team *teams.Team, to, once, text string) (string, error) {
	answer, err := team.Ask(ctx, &teams.Message{From: "script", To: []string{to}, Once: once, Content: &wire.Message{Body: text}})
	return answer.Text, err
}

// send sends the same message without waiting.
func send(ctx context.Context, team *teams.Team, to, once, text string) error {
	_, err := team.Send(ctx, &teams.Message{From: "script", To: []string{to}, Once: once, Content: &wire.Message{Body: text, ReplyWanted: "yes"}})
	return err
}

// plays answers a member's mail until ctx ends, unless the answer is "".
func plays(ctx context.Context, team *teams.Team, name wire.Name, answer func(question string) string) {
	inbox := open(team, name)
	go func() {
		defer inbox.Close()
		for m, err := range inbox.Watch(ctx) {
			must(err)
			if text := answer(m.Body); text != "" {
				_, err := team.Send(ctx, &teams.Message{From: name, Answers: m, Content: &wire.Message{Body: text}})
				if ctx.Err() == nil {
					must(err)
				}
			}
		}
	}()
}

// open opens a member's mailbox.
func open(team *teams.Team, name wire.Name) *mailbox.Mailbox {
	box, err := team.Mailbox(name)
	must(err)
	return box
}

// says always gives the same answer.
func says(text string) func(string) string { return func(string) string { return text } }

// lastLine returns the last line of a question.
func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// aTeam makes a team with these members.
func aTeam(members ...wire.Name) (team *teams.Team, remove func()) {
	root, err := os.MkdirTemp("", "root")
	must(err)
	team, err = teams.Create(context.Background(), filepath.Join(root, "main"), members...)
	must(err)
	return team, func() { team.Close(); os.RemoveAll(root) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What became of a message, and who has mail.
func Example() {
	ctx := context.Background()
	team, remove := aTeam("alice", "bob")
	defer remove()
	please := &wire.Message{Body: "Rebase, please.", RequiresAck: true}
	_, err := team.Send(ctx, &teams.Message{From: "alice", To: []string{"bob", "carol"}, Content: please})
	fmt.Println("sent:", err)
	bob, err := team.Member(ctx, "bob")
	fmt.Println(bob.Name, "is", bob.State, "with", bob.Unread, "unread:", err)

	inbox := open(team, "bob")
	defer inbox.Close()
	fmt.Println(inbox.Read(ctx, 0, func(m *wire.Message) error {
		fmt.Println(m.From, "says", m.Body)
		return nil // it counts as read
	}))
	fmt.Println(team.Ack(ctx, "bob", teams.Ack{ID: please.ID, Text: "Done."}))
	all, err := team.Trace(ctx, "alice", please.ID)
	for _, stage := range all[0].Stages {
		fmt.Printf("%s %q\n", stage.Name, stage.Text)
	}
	fmt.Println(all[0].State, err)
	// Output:
	// sent: no agent "carol" in team "main"
	// bob is unknown with 1 unread: <nil>
	// alice@main says Rebase, please.
	// <nil>
	// <nil>
	// stored ""
	// read ""
	// acked "Done."
	// done <nil>
}

// A program says what its agent does: events without a Source are the agent's own word.
func ExampleTeam_Pending() {
	ctx := context.Background()
	team, remove := aTeam("alice", "bob")
	defer remove()
	inbox := open(team, "bob")
	defer inbox.Close()
	must(inbox.Log().Append(ctx,
		wire.Event{Kind: wire.TurnStarted, TurnID: "t1"},
		wire.Event{Kind: wire.ConfirmRequired, TurnID: "t1"}.With(wire.FieldTool, "Bash").With(wire.FieldPrompt, "make deploy"),
	))
	show := func() {
		bob, err := team.Member(ctx, "bob")
		must(err)
		fmt.Println("bob is", bob.State)
		questions, err := team.Pending(ctx)
		must(err)
		for _, q := range questions {
			fmt.Printf("%s %s %q\n", q.Kind, q.Tool, q.Prompt)
		}
	}
	show()
	must(inbox.Log().Append(ctx,
		wire.Event{Kind: wire.TurnCompleted, TurnID: "t1"},
		wire.Event{Kind: wire.WaitingForInput}.With(wire.FieldPrompt, "Which branch?"), // beside its turns
		wire.Event{Kind: wire.TurnStarted, TurnID: "t2"}, wire.Event{Kind: wire.TurnCompleted, TurnID: "t2"},
	))
	show()
	// Output:
	// bob is blocked
	// permission Bash "make deploy"
	// bob is blocked
	// prompt  "Which branch?"
}
