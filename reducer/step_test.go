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

// TestAsk: who is asked gets all of it, where the state keeps it cut.
func TestAsk(t *testing.T) {
	var s State
	long := strings.Repeat("make && ", 100) + "rm -rf /"
	options := `[{"id":"1","label":"` + strings.Repeat("yes ", 200) + `"}]`
	ask := func(seq uint64, fields string) *Waiting {
		t.Helper()
		for _, e := range s.Apply(Input{Event: logged(t, seq, fields)}) {
			if e.Do == Ask {
				return e.Waiting
			}
		}
		return nil
	}
	q := quote(long)
	w := ask(1, `"kind":"confirm_required","tool":"Bash","prompt":`+q+`,"options":`+options)
	if w == nil || w.Prompt != long || w.Cut || string(w.Options) != options || w.Tool != "Bash" {
		t.Fatal(w)
	}
	if kept := s.Turn().Waiting(); len(kept.Prompt) > maxPrompt || !kept.Cut || kept.Options != nil || w == kept {
		t.Error(kept)
	}
	// More of it, with the same beginning, and again all of it.
	w = ask(2, `"kind":"confirm_required","id":"d1","tool":"Bash","prompt":`+q)
	if w == nil || w.Prompt != long || w.Cut || w.ID != "d1" || !w.Since.Equal(s.Turn().Waiting().Since) {
		t.Fatal(w)
	}
	// Options that come later, and those that came before.
	s = State{}
	ask(1, `"kind":"confirm_required","tool":"Bash","tool_call_id":"c1","prompt":"ls"`)
	if w = ask(2, `"kind":"confirm_required","tool_call_id":"c1","prompt":"List files","options":[{"id":"1"}]`); w == nil || w.Prompt != "ls" || string(w.Options) != `[{"id":"1"}]` {
		t.Error(w)
	}
	if w = ask(3, `"kind":"confirm_required","id":"d1","prompt":"ls -l"`); w == nil || w.Prompt != "ls -l" || string(w.Options) != `[{"id":"1"}]` || !w.Cut {
		t.Error(w)
	}
	if kept := s.Turn().Waiting(); kept.Tool != "Bash" || kept.Call != "c1" || string(kept.Options) != `[{"id":"1"}]` {
		t.Error(kept)
	}
	// What was said of tool and prompt by two is cut, since nobody said it.
	s = State{}
	ask(1, `"kind":"confirm_required","prompt":"ls"`)
	if w = ask(2, `"kind":"confirm_required","tool":"Bash"`); w == nil || !w.Cut || w.Prompt != "ls" {
		t.Error(w)
	}
	if w = ask(3, `"kind":"confirm_required","tool":"Bash","prompt":"make"`); w == nil || w.Cut || w.Prompt != "make" {
		t.Error(w)
	}
}
