package teams_test

import (
	"context"
	"fmt"
	"strings"
)

// Pair: alice writes and bob reviews until he approves. A second run under the same names sends nothing, since it finds
// all answers.
func Example_pair() {
	ctx, stop := context.WithCancel(context.Background())
	team, done := aTeam("alice", "bob", "script")
	defer done()
	defer stop()
	reviews := 0
	plays(ctx, team, "alice", says("parser.go is written."))
	plays(ctx, team, "bob", func(string) string {
		if reviews++; reviews < 2 {
			return "There is no test."
		}
		return "Approved."
	})

	for range 2 {
		if _, err := ask(ctx, team, "alice", "parser/write", "Write the parser."); err != nil {
			fmt.Println(err)
			return
		}
		for round := 1; round <= 5; round++ {
			verdict, err := ask(ctx, team, "bob", fmt.Sprintf("parser/review %d", round), "Review the parser.")
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("round %d: %s\n", round, verdict)
			if strings.HasPrefix(verdict, "Approved") {
				break
			}
			if _, err := ask(ctx, team, "alice", fmt.Sprintf("parser/mend %d", round), "bob says: "+verdict); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	fmt.Println("bob was asked", reviews, "times")
	// Output:
	// round 1: There is no test.
	// round 2: Approved.
	// round 1: There is no test.
	// round 2: Approved.
	// bob was asked 2 times
}
