package history_test

import (
	"fmt"
	"time"

	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// An agent's events say which turns it had.
func ExampleFull() {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	event := func(seq uint64, seconds int, kind, name, text string) wire.Event {
		e := wire.Event{Seq: seq, At: noon.Add(time.Duration(seconds) * time.Second), Kind: kind, TurnID: "t1"}
		return e.With(name, text)
	}
	turns := history.Full([]wire.Event{
		event(1, 0, wire.TurnStarted, "prompt", "Run the tests."),
		event(2, 40, wire.TurnCompleted, "response", "All green."),
	}, 10)
	for _, t := range turns {
		fmt.Printf("%s: %q, %q, %s after %s\n", t.ID, t.Prompt, t.Response, t.Status, t.Duration())
	}
	// Output:
	// t1: "Run the tests.", "All green.", completed after 40s
}
