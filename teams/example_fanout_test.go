package teams_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Fan-out and gather: three members answer the same question concurrently, and one of them merges the answers.
func Example_fanOut() {
	ctx, stop := context.WithCancel(context.Background())
	team, done := aTeam("alice", "bob", "carol", "script")
	defer done()
	defer stop()
	for _, who := range []wire.Name{"bob", "carol"} {
		plays(ctx, team, who, says(string(who)+"'s idea"))
	}
	plays(ctx, team, "alice", func(question string) string {
		if answers, ok := strings.CutPrefix(question, "Make one answer of:"); ok {
			return fmt.Sprint("the best of ", strings.Count(answers, "'s idea"))
		}
		return "alice's idea"
	})

	all := []string{"alice", "bob", "carol"}
	for _, who := range all { // start all
		if err := send(ctx, team, who, "name", "What shall we call it?"); err != nil {
			fmt.Println(err)
			return
		}
	}
	answers := "Make one answer of:"
	for _, who := range all { // the same name: wait, and send nothing
		answer, err := ask(ctx, team, who, "name", "What shall we call it?")
		if err != nil {
			answer = "no answer: " + err.Error()
		}
		answers += "\n" + who + ": " + answer
	}
	fmt.Println(ask(ctx, team, "alice", "name/gather", answers))
	// Output:
	// the best of 3 <nil>
}
