package reducer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestTimes: an event without a time has the input's; what a runner says of a
// process's start is taken over.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.FixedZone("", 7200))
	var s State
	s.Apply(Input{Now: now, Event: &wire.Event{Kind: "turn_started"}})
	if turn := s.Turn(); !turn.Since.Equal(now) || turn.Since.Location() != time.UTC || !turn.Began.Equal(now) || !s.Heard.Equal(now) {
		t.Error(turn.Since, turn.Began, s.Heard)
	}
	for started, want := range map[string]time.Time{
		"2026-05-01T09:59:58+00:00": now.Add(-2 * time.Second), "yesterday": now, "": now, "0000-01-01T00:00:00+14:00": now,
	} {
		var s State
		e := wire.Event{Kind: "spawned", At: now, Source: "pty"}.With("started", started)
		s.Apply(Input{Event: &e})
		if !s.Run.Started.Equal(want) || s.Run.PID != 0 {
			t.Errorf("%q: %v", started, s.Run.Started)
		}
	}
}

// TestWires: a wire that was not adopted says itself whose it is.
func TestWires(t *testing.T) {
	var s State
	for i, fields := range []string{
		`"kind":"message_delta","wire":{"session_id":"a","turn_id":"t1","update_type":"message_delta","delta":"x"}`,
		`"kind":"message_delta","wire":{"session_id":"b","turn_id":"t2","update_type":"message_delta","delta":"x"}`,
		`"kind":"turn_complete","wire":{"session_id":"a","turn_id":"t1","update_type":"turn_complete","status":"cancelled"}`,
		`"kind":"tool_call","session":"b","wire":{"params":{"sessionId":"c","update":{"sessionUpdate":"tool_call","title":"x","toolCallId":"1"}},"method":"session/update"}`,
		`"kind":"turn_started","wire":{"kind":"turn_started","agent":"zzz","turnId":"t9","threadId":"th"}`,
	} {
		s.Apply(Input{Event: logged(t, uint64(i+1), fields)})
	}
	want := []string{"a t1 terminal idle", "b t9 busy thinking"}
	var got []string
	for _, turn := range s.Turns {
		got = append(got, fmt.Sprint(turn.Session, " ", turn.ID, " ", turn.Status, " ", turn.Activity))
	}
	if !slices.Equal(got, want) {
		t.Error(got)
	}
}

// TestClone: nothing is shared, however the copy is changed.
func TestClone(t *testing.T) {
	p := newPlayer()
	for _, l := range []string{
		"pty spawned pid=7", "mail m1 urgent", "turn_started session=s1 turn_id=t1 event_id=e1", "turn_idle session=s1 turn_id=t1", "turn_completed session=s1 turn_id=t1 status=completed",
		"turn_started session=s1 turn_id=t2", "confirm_required session=s1 turn_id=t2 id=1 tool=a options=[1]", "confirm_required session=s1 turn_id=t2 id=2 tool=b",
	} {
		if _, err := p.play(l); err != nil {
			t.Fatal(err)
		}
	}
	code := int64(1)
	p.state.Run.Code = &code
	want := string(mustJSON(t, &p.state))
	c := p.state.Clone()
	if !reflect.DeepEqual(c, p.state) {
		t.Fatal("not a copy")
	}
	turn := c.Turn()
	turn.Ended[0], turn.Last.Status, turn.Requests[0].Tool, turn.Requests[0].Options[0], turn.Requests[1].Tool = "x", "x", "x", '{', "x"
	*c.Run.Code, c.Run.PID, c.EventIDs[0], c.mail.letters[0].ID = 9, 9, "x", "x"
	turn.Session = "x"
	if got := string(mustJSON(t, &p.state)); got != want || p.state.mail.letters[0].ID != "m1" {
		t.Error(got, want)
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
