package reducer_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// The events of an agent, as its log has them. It began a turn at noon, ran a tool, and asks whether it may push.
func logged() []wire.Event {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	bob := wire.Event{Team: "main", Agent: "bob", Source: "hook", Session: "s1", TurnID: "t1"}
	event := func(seq uint64, after time.Duration, kind string) wire.Event {
		e := bob
		e.Seq, e.At, e.Kind = seq, noon.Add(after), kind
		return e
	}
	return []wire.Event{
		event(1, 0, "turn_started"),
		event(2, 5*time.Second, "tool_call_start").With("tool", "Bash").With("tool_call_id", "c1"),
		event(3, 9*time.Second, "tool_call_end").With("tool", "Bash").With("tool_call_id", "c1"),
		event(4, 10*time.Second, "confirm_required").With("tool", "Bash").With("input", "git push"),
	}
}

// A state is the fold of a log. What is true of the agent now also depends on the time, and on what is known beside it.
func ExampleState_Evaluate() {
	var s reducer.State
	for _, e := range logged() {
		s.Apply(&e)
	}
	noon := logged()[0].At
	for _, now := range []time.Time{noon.Add(time.Minute), noon.Add(time.Hour)} {
		v := s.Evaluate(reducer.Evidence{Now: now})
		fmt.Printf("%s (%s) since %s, %s\n", v.Word, v.Detail, v.Since.Format(time.TimeOnly), v.Presence)
	}
	for _, q := range s.Requests() {
		fmt.Printf("asks: %s %s: %s\n", q.Kind, q.Tool, q.Input)
	}
	// Output:
	// blocked (permission) since 12:00:10, online
	// blocked (permission) since 12:00:10, unknown
	// asks: permission Bash: git push
}

// A snapshot is the state's JSON. The fold goes on from it, and what it has already is no news to it.
func ExampleState_Apply() {
	var s reducer.State
	events := logged()
	for _, e := range events {
		s.Apply(&e)
	}
	snapshot, err := json.Marshal(&s)
	if err != nil {
		fmt.Println(err)
		return
	}
	var later reducer.State
	if err := json.Unmarshal(snapshot, &later); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(later.Apply(&events[3]), later.Word())

	end := events[0]
	end.Seq, end.At, end.Kind = 5, end.At.Add(20*time.Second), wire.TurnCompleted
	fmt.Println(later.Apply(&end), later.Word())
	last := later.Session().Last
	fmt.Println(last.ID, last.Status, last.Duration())
	// Output:
	// false blocked
	// true idle
	// t1 completed 20s
}
