package reducer

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/wire"
)

// anyCall draws an input about the calls and questions of one turn.
func anyCall(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	switch pick("what", "ask", "ask", "call", "call", "said", "clock", "turn", "mail") {
	case "ask":
		return pick("source", "pty", "hook", "acp") + " confirm_required" + pick("turn", "", " turn_id=t1") + pick("id", "", " id=d1", " id=d2", " id=d3") +
			pick("call", "", " tool_call_id=c1", " tool_call_id=c2") + pick("tool", "", " tool=Bash", " tool=Edit") + pick("prompt", "", " prompt=ls", " prompt=make")
	case "call":
		return pick("kind", "tool_call_start", "tool_call_end") + pick("turn", "", " turn_id=t1") +
			pick("call", "", " tool_call_id=c1", " tool_call_id=c2") + pick("tool", "", " tool=Bash", " tool=Edit")
	case "said":
		return pick("source", "pty", "hook") + " state_change new=" + pick("new", "thinking", "confirming", "awaiting_input", "idle", "unknown") + pick("id", "", " id=d1", " id=d2")
	case "clock":
		return pick("by", "+1s", "+3s")
	case "turn":
		return pick("kind", "turn_started", "turn_idle", "turn_completed", "waiting_for_input") + pick("turn", "", " turn_id=t1", " turn_id=t2")
	}
	return "mail " + pick("mail", "m1", "m2") + pick("how", "", " urgent")
}

// anyLine draws any input of a script.
func anyLine(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	id := func() string { return pick("mail", "m1", "m2", "m3", "m4") }
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		return "mail " + id() + pick("how", "", "", " urgent", " due=2s", " due=10m", " expires=2s", " never", " urgent due=1s", " held=2s")
	case 1:
		return "settled " + id()
	case 2:
		return pick("clock", "+1s", "+1s", "+3s", "+10m", "-1h")
	}
	// The kinds that move a turn are drawn more often than the others.
	kind := pick("kind", append(slices.Clone(allKinds), "some_new_kind",
		"turn_started", "turn_completed", "turn_idle", "turn_started", "turn_completed", "turn_idle", "tool_call_start", "tool_call_end",
		"state_change", "state_change", "confirm_required", "confirm_required", "session_start", "session_end", "spawned", "exited")...)
	line := pick("source", "pty", "hook", "hook", "acp", "cli") + " " + kind
	add := func(key string, values ...string) {
		if v := pick(key, append(values, make([]string, len(values))...)...); v != "" {
			line += " " + key + "=" + v
		}
	}
	add("session", "s1", "s2", "s3", "s4")
	add("turn_id", "t1", "t2", "t3")
	add("event_id", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8")
	add("tool_call_id", "c1", "c2")
	switch kind {
	case "state_change":
		add("new", "idle", "thinking", "responding", "tool_running", "confirming", "awaiting_input", "starting", "error", "exited", "unknown")
		add("id", "d1", "d2")
	case "state_update":
		add("state", "running", "requires_action", "idle")
	case "turn_completed", "turn_complete":
		add("status", "completed", "interrupted", "failed")
	case "tool_call", "tool_call_update":
		add("status", "pending", "in_progress", "completed", "failed")
		add("title", "Bash", "Edit")
	case "tool_call_start", "tool_call_end":
		add("tool", "Bash", "Edit")
	case "confirm_required", "waiting_for_input":
		add("tool", "Bash", "Edit")
		add("id", "d1", "d2")
		add("prompt", "ls", "make")
	case "session_start":
		// "source" moves all fields under wire, tool_call_id too
		line = strings.ReplaceAll(line, " tool_call_id=c1", "")
		add("source", "startup", "resume", "clear", "compact")
	case "session_end":
		add("reason", "clear", "resume", "other")
	case "spawned":
		add("pid", "7", "8")
	case "exited":
		add("code", "0", "1")
	case wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventWithdrawn, wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed, wire.EventReturned:
		line += " id=" + id()
	}
	return line
}

func lines(t *rapid.T, most int) []string {
	if rapid.Bool().Draw(t, "calls") {
		return rapid.SliceOfN(rapid.Custom(anyCall), 0, most).Draw(t, "lines")
	}
	return rapid.SliceOfN(rapid.Custom(anyLine), 0, most).Draw(t, "lines")
}

// inputs parses the lines once, so that several folds get the same inputs.
func inputs(t *rapid.T, lines []string) (ins []Input) {
	p := newPlayer()
	for _, l := range lines {
		in, _, err := p.input(l)
		if err != nil {
			t.Fatal(l, err)
		}
		ins = append(ins, *in)
	}
	return ins
}

// Invariants that hold after any inputs.
func TestAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := lines(t, 60)
		var s, snapped State                  // folded in one go, and through JSON at random
		named, changes := map[string]int{}, 0 // effect and message: how often the word had changed when it was last named
		for i, in := range inputs(t, ls) {
			before := s.handoverWord()
			effects := s.Apply(in)
			valid(t, &s)
			if s.handoverWord() != before {
				changes++
			}
			if rapid.Bool().Draw(t, "json") {
				snapped = fromJSON(&snapped)
			}
			if got := snapped.Apply(in); !reflect.DeepEqual(snapped, s) || !reflect.DeepEqual(got, effects) {
				t.Fatal("from JSON it goes on otherwise at", ls[i], diff(snapped, s))
			}
			for _, e := range effects {
				word := s.handoverWord()
				if e.Do == Deliver && word != WordIdle || e.Do == Interrupt && word != WordBusy {
					t.Fatal(e.Do, "while", word, "at", ls[i])
				}
				for _, id := range e.IDs {
					at, again := named[string(e.Do+EffectKind(id))]
					named[string(e.Do+EffectKind(id))] = changes
					fresh := in.Arrived != nil && in.Arrived.ID == id // put back, or removed and reported again
					if again && !fresh && e.Do == Deliver && at == changes && !raisedAgain(ls[:i+1]) {
						t.Fatal(e.Do, id, "twice without a change, at", ls[i])
					}
				}
			}
			if more := s.Apply(Input{Now: in.Now}); len(more) > 0 {
				t.Fatal("again:", more, "after", ls[i])
			}
			snapped.Apply(Input{Now: in.Now})
		}
	})
}

// raisedAgain reports whether a line can make a message deliverable again without a change of the word: a hook handed
// it over, or it came back.
func raisedAgain(lines []string) bool {
	return regexp.MustCompile("settled|message_(announced|read|acked|withdrawn|returned|taken)|injected| held=").MatchString(strings.Join(lines, "\n"))
}

func diff(a, b State) string {
	return gocmp.Diff(a, b, gocmp.AllowUnexported(State{}, message{}))
}

func valid(t *rapid.T, s *State) {
	if back := fromJSON(s); !reflect.DeepEqual(*s, back) {
		t.Fatal(diff(*s, back))
	}
	for i := range s.Turns {
		if (s.Turns[i].Waiting() != nil) != (s.Turns[i].Word() == WordBlocked) {
			t.Fatal(show(s))
		}
	}
	if n := s.findUnnamed(); n >= 0 && s.Turns[n].Activity != Exited {
		for i := range s.Turns {
			if i != n && s.Turns[i].Activity != Exited {
				t.Fatal("beside a program without a name lives another session")
			}
		}
	}
	if (s.Turn().Word() == WordOff) && s.OffSince.IsZero() {
		t.Fatal("off since when?")
	}
	for _, held := range []bool{true, false} {
		v := s.Evaluate(Evidence{Now: s.HeardAt.Add(time.Second), IsRunnerLocked: held})
		if held && (v.Presence != Online || v.Word == WordOff) || v.Presence == Offline && v.Word != WordOff && v.Word != WordError {
			t.Fatal(v, show(s))
		}
	}
}

// A repeated event changes nothing. Here repeats are found by event_id; late-and-repeated.txt has those that are found
// by content.
func TestTwiceIsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		for i, in := range inputs(t, lines(t, 40)) {
			if in.Event == nil {
				continue
			}
			e := *in.Event
			e.Seq, e.EventID = uint64(2*i+1), cmp.Or(e.EventID, fmt.Sprint("own-", i))
			s.Apply(Input{Now: in.Now, Event: &e})
			once := fromJSON(&s)
			e.Seq++
			s.Apply(Input{Now: in.Now, Event: &e})
			if once.Seq, once.inbox = s.Seq, s.inbox; !reflect.DeepEqual(once, s) {
				t.Fatal(e.Kind, diff(once, s))
			}
		}
	})
}
