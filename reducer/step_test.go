package reducer

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// TestNumbers: an event of the log is folded once, in order; one of no log has
// its place after the last.
func TestNumbers(t *testing.T) {
	var s State
	fold := func(e wire.Event) {
		e.Team, e.Agent = "main", "bob"
		s.Apply(Input{Event: &e})
	}
	fold(wire.Event{Seq: 5, Kind: "turn_started", TurnID: "t1"})
	fold(wire.Event{Seq: 5, Kind: "turn_idle", TurnID: "t1"})
	fold(wire.Event{Seq: 4, Kind: "stream_error"})
	if got := show(&s); got != "busy: thinking, turn t1 busy" || s.Seq != 5 {
		t.Error(got, s.Seq)
	}
	fold(wire.Event{Kind: "turn_idle", TurnID: "t1"})
	fold(wire.Event{Kind: "turn_started"})
	if got := show(&s); got != "busy: thinking, turn turn-7 busy" || s.Seq != 7 {
		t.Error(got, s.Seq)
	}
	fold(wire.Event{Seq: 1<<64 - 1, Kind: "stream_error"})
	fold(wire.Event{Kind: "turn_idle"})
	if got := show(&s); got != "idle: idle, turn turn-7 idle; errors 1" {
		t.Error(got)
	}
}

// TestCut: no rule may go by what a State does not have whole, or by what nobody said together.
func TestCut(t *testing.T) {
	long := strings.Repeat("make && ", 100) + "rm -rf /"
	for _, c := range []struct {
		asked []string
		want  string
	}{
		{[]string{`"tool":"Bash","prompt":` + quote(long)}, `Bash "` + long[:maxPrompt] + `" cut`},
		{[]string{`"tool":"Bash","prompt":` + quote(long), `"id":"d1","tool":"Bash","prompt":` + quote(long[:maxPrompt])}, `Bash "` + long[:maxPrompt] + `" as d1`},
		{[]string{`"tool":"Bash","prompt":` + quote(long[:maxPrompt]), `"id":"d1","prompt":` + quote(long)}, `Bash "` + long[:maxPrompt] + `" as d1 cut`},
		{[]string{`"tool":"Bash","tool_call_id":"c1","prompt":"ls"`, `"tool_call_id":"c1","prompt":"List files"`}, `Bash "ls" for c1`},
		{[]string{`"tool":"Bash","tool_call_id":"c1","prompt":"ls"`, `"id":"d1","prompt":"ls -l"`}, `Bash "ls -l" as d1 for c1 cut`},
		{[]string{`"prompt":"ls"`, `"tool":"Bash"`}, `Bash "ls" cut`},
	} {
		var s State
		for i, fields := range c.asked {
			s.Apply(Input{Event: logged(t, uint64(i+1), `"kind":"confirm_required",`+fields)})
		}
		if got := showWaiting(s.Turn().Waiting()); got != "permission "+c.want {
			t.Errorf("%s\n%s, not\n%s", c.asked, got, c.want)
		}
	}
}

// TestAgentsStayApart: what is said of others, also of one with the same name, is nobody's business.
func TestAgentsStayApart(t *testing.T) {
	var s State
	for i, of := range [][2]wire.Name{{"main", "bob"}, {"other", "bob"}, {"main", "carol"}} {
		s.Apply(Input{Event: &wire.Event{Seq: uint64(i + 1), Team: of[0], Agent: of[1], Kind: "turn_started", TurnID: string(of[1])}})
		if s.Seq != 1 || s.Turn().ID != "bob" {
			t.Error(of, show(&s))
		}
	}
}
