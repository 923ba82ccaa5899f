package reducer

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A logged event is folded once, in order; an event without a number comes after the last.
func TestNumbers(t *testing.T) {
	var s State
	fold := func(e wire.Event) {
		e.Team, e.Agent = "main", "bob"
		s.Apply(&e)
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

// shared returns what two values both point to.
func shared(a, b any) (out []string) {
	found := map[uintptr]bool{}
	var walk func(v reflect.Value, path string, visit func(uintptr, string))
	walk = func(v reflect.Value, path string, visit func(uintptr, string)) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
				visit(v.Pointer(), path)
				walk(v.Elem(), path, visit)
			}
		case reflect.Slice:
			if v.Len() > 0 {
				visit(v.Pointer(), path)
			}
			for i := range v.Len() {
				walk(v.Index(i), path, visit)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
			}
		}
	}
	walk(reflect.ValueOf(a), "", func(p uintptr, _ string) { found[p] = true })
	walk(reflect.ValueOf(b), "", func(p uintptr, path string) {
		if found[p] {
			out = append(out, path)
		}
	})
	return out
}

// A view shares nothing with the state, and so stays as it is when that goes on.
func TestViewSharesNothing(t *testing.T) {
	p := newPlayer()
	for _, line := range []string{
		"pty spawned pid=7", "turn_started turn_id=t0", "tool_call_start tool_call_id=c0 tool=Bash", "tool_call_end tool_call_id=c0 tool=Bash",
		"turn_completed turn_id=t0 status=failed error=boom", "turn_started turn_id=t1", "tool_call_start tool_call_id=c1 tool=Bash", "tool_call_end tool_call_id=c1 tool=Bash",
		"confirm_required id=a tool=Bash options=[{\"id\":\"1\"}]", "confirm_required id=b tool=Edit", "confirm_required id=c tool=Read",
	} {
		if _, err := p.play(line); err != nil {
			t.Fatal(err)
		}
	}
	v := p.state.Evaluate(Evidence{Now: p.now})
	if ses := v.Session; ses.Last == nil || ses.Requests[0].Options == nil || ses.EndedTurns == nil || ses.Calls == nil || ses.EndedCalls == nil {
		t.Fatalf("this shows too little: %+v", ses)
	}
	if both := shared(&p.state, &v); both != nil {
		t.Error("both have", both)
	}
	before := fmt.Sprintf("%+v", v.Session)
	for _, line := range []string{"permission_result id=a", "permission_result id=b", "turn_completed turn_id=t1"} {
		if _, err := p.play(line); err != nil {
			t.Fatal(err)
		}
	}
	if after := fmt.Sprintf("%+v", v.Session); after != before {
		t.Errorf("%s\nwas %s", after, before)
	}
}

// Events of other agents are ignored, also of one with the same name in another team.
func TestAgentsStayApart(t *testing.T) {
	var s State
	for i, of := range [][2]wire.Name{{"main", "bob"}, {"other", "bob"}, {"main", "carol"}} {
		s.Apply(&wire.Event{Seq: uint64(i + 1), Team: of[0], Agent: of[1], Kind: "turn_started", TurnID: string(of[1])})
		if s.Seq != 1 || s.Session().Turn.ID != "bob" {
			t.Error(of, show(&s))
		}
	}
}

// The conversation to continue is the one that the program began first, and what followed that; not that of a program
// that it runs.
func TestConversation(t *testing.T) {
	spawned := "pty spawned pid=7"
	for _, c := range []struct {
		want   string
		events []string
	}{
		{"", []string{spawned}},
		{"", []string{spawned, "turn_started turn_id=t1", "pty exited code=1 pid=7", "pty restarting attempt=1"}},
		{"s1", []string{spawned, "turn_started turn_id=t1", "turn_started session=s1 turn_id=t2"}},
		{"s1", []string{spawned, "session_start session=s1 source=startup", "session_start session=s2 source=startup", "turn_started session=s2 turn_id=t1", "session_end session=s2 reason=other", "pty exited code=1 pid=7"}},
		{"s1", []string{spawned, "turn_started session=s1 turn_id=t1", "turn_started session=s2 turn_id=t2"}},
		{"s2", []string{spawned, "session_start session=s1 source=startup", "session_end session=s1 reason=clear", "session_start session=s2 source=clear"}},
		{"s2", []string{spawned, "session_start session=s1 source=startup", "session_start session=s2 source=clear", "session_end session=s1 reason=clear"}},
		{"", []string{spawned, "session_start session=s1 source=startup", "session_end session=s1 reason=clear", "pty exited code=1 pid=7"}},
		{"s2", []string{spawned, "session_start session=s1 source=startup", "session_end session=s1 reason=resume", "session_start session=s2 source=resume"}},
		{"s1", []string{spawned, "session_start session=s1 source=startup", "pty exited code=1 pid=7", "session_start session=s2 source=startup"}},
		{"", []string{spawned, "session_start session=s1 source=startup", "pty exited code=1 pid=7", "pty spawned pid=8"}},
		{"s1", []string{"pty spawned pid=8 resumed=s1", "pty exited code=1 pid=8"}},
		{"s2", []string{"pty spawned pid=8 resumed=s1", "session_start session=s2 source=resume"}},
	} {
		p := newPlayer()
		for _, line := range c.events {
			if _, err := p.play(line); err != nil {
				t.Fatal(err)
			}
		}
		if got := p.state.Run.Conversation; got != c.want {
			t.Errorf("after %q it is %q, want %q", c.events, got, c.want)
		}
	}
}

// A program that is started has nothing of the one before but how its last turn ended, also if the clock was set back. If it
// told its session before its runner told of it, that is its own.
func TestSessionOfANewProgram(t *testing.T) {
	spawned, since := "pty spawned pid=8 run=r2", " started=2026-05-01T12:01:00Z"
	start := func(session, source string) string { return "session_start session=" + session + " source=" + source }
	killed := []string{"pty spawned pid=7 run=r1", start("s1", "startup"), "turn_started session=s1 turn_id=t1"}
	crashed := append(slices.Clone(killed), "pty exited pid=7 code=1")
	for _, c := range []struct {
		before, after []string // one minute lies between
		want          string
	}{
		{nil, []string{spawned, start("s2", "startup"), "session_end session=s2 reason=clear", start("s3", "clear")}, "idle: idle, turn - idle, session s3; s3 of 1"},
		{crashed, []string{spawned, start("s2", "startup")}, "idle: idle, turn - idle, session s2; last t1 failed; s2 of 1"},
		{crashed, []string{spawned + " resumed=s1", start("s1", "resume")}, "idle: idle, turn t1 idle, session s1; last t1 failed; s1 of 1"},
		{crashed, []string{"pty restarting attempt=1", spawned, start("s2", "startup")}, "idle: idle, turn - idle, session s2; last t1 failed; s2 of 1"},
		{killed, []string{spawned}, "starting: starting, turn - idle; last t1 failed after 1m1s;  of 0"},
		{killed, []string{spawned, start("s2", "startup")}, "idle: idle, turn - idle, session s2; last t1 failed after 1m1s; s2 of 1"},
		{crashed, []string{"-2m", spawned + " started=2026-05-01T11:59:00Z"}, "starting: starting, turn - idle; last t1 failed;  of 0"},
		{crashed, []string{start("s2", "startup"), spawned + since}, "idle: idle, turn - idle, session s2; last t1 failed; s2 of 1"},
		{killed, []string{start("s2", "startup"), spawned + since}, "idle: idle, turn - idle, session s2; s2 of 1"},
		{killed, []string{start("s1", "resume"), spawned + since + " resumed=s1"}, "idle: idle, turn t1 idle, session s1; last t1 interrupted after 1m1s; s1 of 1"},
		{nil, []string{start("s2", "startup"), "turn_started session=s2 turn_id=t9", spawned + since}, "busy: thinking, turn t9 busy, session s2; s2 of 1"},
	} {
		p := newPlayer()
		for _, line := range slices.Concat(c.before, []string{"+61s"}, c.after, []string{"json"}) {
			if _, err := p.play(line); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%s; %s of %d", show(&p.state), p.state.Run.Conversation, p.state.Run.Sessions); got != c.want {
			t.Errorf("after %q %q: %q, not %q", c.before, c.after, got, c.want)
		}
	}
}

// Parts of one question are one, and two calls of a tool are two.
func TestIsSameQuestion(t *testing.T) {
	notice := Waiting{Kind: "permission"}
	call := func(prompt string) Waiting { return Waiting{Kind: "permission", Tool: "Bash", Prompt: prompt} }
	withID := func(prompt string) Waiting { w := call(prompt); w.ID = "d1"; return w }
	for _, c := range []struct {
		a, b Waiting
		want bool
	}{
		{notice, call("ls"), true},
		{call("ls"), notice, true},
		{call("ls"), call("ls"), true},
		{call("ls"), call("rm"), false},
		{call("ls"), withID("a dialog about ls"), true},
		{withID("ls"), Waiting{Kind: "permission", Tool: "Bash", ID: "d2"}, false},
		{call("ls"), Waiting{Kind: "permission", Tool: "Read"}, false},
		{call("ls"), Waiting{Kind: "prompt"}, true},
		{notice, Waiting{Kind: "prompt", Tool: "Ask"}, false},
	} {
		if got := c.a.isSame(&c.b); got != c.want {
			t.Errorf("%+v, %+v: %v", c.a, c.b, got)
		}
	}
}
