package teams_test

import (
	"context"
	"fmt"
)

// Pipeline: each member continues from the answer of the previous one.
func Example_pipeline() {
	ctx, stop := context.WithCancel(context.Background())
	team, done := aTeam("alice", "bob", "carol", "script")
	defer done()
	defer stop()
	plays(ctx, team, "alice", func(q string) string { return "a plan for " + lastLine(q) })
	plays(ctx, team, "bob", func(q string) string { return "built after " + lastLine(q) })
	plays(ctx, team, "carol", func(q string) string { return "tested what was " + lastLine(q) })

	said := "a cache"
	for _, stage := range []struct {
		who, what string
	}{
		{"alice", "Plan this:"}, {"bob", "Do this, and say what you changed:"}, {"carol", "Test this:"},
	} {
		var err error
		if said, err = ask(ctx, team, stage.who, "cache/"+stage.who, stage.what+"\n"+said); err != nil {
			fmt.Println(stage.who, err)
			return
		}
	}
	fmt.Println(said)
	// Output:
	// tested what was built after a plan for a cache
}
