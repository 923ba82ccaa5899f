package reducer

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
)

// anyCall draws an input about the calls and questions of one turn.
func anyCall(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	switch pick("what", "ask", "ask", "call", "call", "said", "clock", "turn") {
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
	}
	return pick("kind", "turn_started", "turn_idle", "turn_completed", "waiting_for_input") + pick("turn", "", " turn_id=t1", " turn_id=t2")
}

// anyLine draws any input of a script.
func anyLine(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	if rapid.IntRange(0, 7).Draw(t, "what") == 0 {
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
		add("new", "idle", "thinking", "responding", "tool_running", "confirming", "awaiting_input", "starting", "error", "limited", "exited", "unknown")
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
		add("started", "2026-05-01T12:00:00Z", "2026-05-01T12:00:05Z")
	case "exited":
		add("code", "0", "1")
	case "usage":
		add("input_tokens", "5", "70")
		add("total_tokens", "6", "80")
		add("cost", "0.1", "0.3")
		add("currency", "USD", "EUR")
		add("context_size", "100")
	}
	return line
}

func lines(t *rapid.T, most int) []string {
	if rapid.Bool().Draw(t, "calls") {
		return rapid.SliceOfN(rapid.Custom(anyCall), 0, most).Draw(t, "lines")
	}
	return rapid.SliceOfN(rapid.Custom(anyLine), 0, most).Draw(t, "lines")
}

// played parses the lines once, so that several folds get the same events.
func played(t *rapid.T, lines []string) (events []wire.Event) {
	p := newPlayer()
	for _, l := range lines {
		if l[0] == '+' || l[0] == '-' {
			p.play(l)
			continue
		}
		e, err := p.event(l)
		if err != nil {
			t.Fatal(l, err)
		}
		events = append(events, *e)
	}
	return events
}

// Invariants that hold after any events: a State is valid, and folding goes on from its JSON.
func TestAlways(t *testing.T) {
	testround.Check(t, 100, func(t *rapid.T) {
		var s, snapped State // folded in one go, and through JSON at random
		for _, e := range played(t, lines(t, 60)) {
			s.Apply(&e)
			valid(t, &s)
			if rapid.Bool().Draw(t, "json") {
				snapped = fromJSON(&snapped)
			}
			if snapped.Apply(&e); !reflect.DeepEqual(snapped, s) {
				t.Fatal("from JSON it goes on otherwise at", e.Kind, diff(snapped, s))
			}
		}
	})
}

func diff(a, b State) string {
	return gocmp.Diff(a, b, gocmp.AllowUnexported(State{}, Session{}))
}

func valid(t *rapid.T, s *State) {
	if back := fromJSON(s); !reflect.DeepEqual(*s, back) {
		t.Fatal(diff(*s, back))
	}
	for ses := range s.Sessions() {
		if (ses.Waiting() != nil) != (ses.Word() == WordBlocked) || ses != &s.Shown && (ses.ID == "" || ses.ID == s.Shown.ID) {
			t.Fatal(show(s))
		}
	}
	if (s.Session().Word() == WordOff) && s.OffSince.IsZero() {
		t.Fatal("off since when?")
	}
	for _, held := range []bool{true, false} {
		v := s.Evaluate(Evidence{Now: s.HeardAt.Add(time.Second), IsRunnerLocked: held})
		if held && (v.Presence != Online || v.Word == WordOff) || v.Presence == Offline && v.Word != WordOff && v.Word != WordError {
			t.Fatal(v, show(s))
		}
	}
}

// model implements the first table of events a second time: one session, no questions, no screen, nothing forgotten.
type model struct {
	id     string
	own    bool
	status TurnStatus
	over   map[string]bool
	last   map[string]string // how turns ended
}

func (m *model) current(id string) bool {
	if id == "" || m.id == "" || id == m.id {
		return true
	}
	if m.own && m.status == TurnBusy && !m.over[id] {
		m.id, m.own = id, false
		return true
	}
	return false
}

func (m *model) begin(id string, seq int) {
	m.over[m.id] = m.id != ""
	m.id, m.own, m.status = id, id == "", TurnBusy
	if m.own {
		m.id = fmt.Sprint("turn-", seq)
	}
}

func (m *model) step(kind, id, status string, seq int) {
	switch kind {
	case "turn_started":
		if !m.over[id] && (id == "" || id != m.id) && !(id != "" && m.status == TurnBusy && m.current(id)) {
			m.begin(id, seq)
		}
	case "turn_completed":
		if !m.current(id) {
			m.over[id] = true
			return
		}
		wasIdle := m.status == TurnIdle && m.id != ""
		m.id = cmp.Or(id, m.id)
		if _, said := m.last[m.id]; !said || m.id == "" && m.status != TurnTerminal {
			m.last[m.id] = status
		}
		m.over[m.id] = m.id != ""
		if !wasIdle {
			m.status = TurnTerminal
		}
	case "turn_idle":
		if !m.current(id) {
			m.over[id] = true
			return
		}
		m.id = cmp.Or(id, m.id)
		m.over[m.id] = m.id != ""
		m.status = TurnIdle
	case "message_delta":
		if m.over[id] || m.status == TurnBusy && m.current(id) {
			return
		}
		m.begin(id, seq)
	}
}

type step struct{ kind, id, status string }

func anyStep(t *rapid.T) step {
	return step{
		rapid.SampledFrom([]string{"turn_started", "turn_completed", "turn_idle", "message_delta"}).Draw(t, "kind"),
		rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(t, "id"),
		rapid.SampledFrom([]string{Completed, Interrupted, Failed}).Draw(t, "status"),
	}
}

func (s step) line() string {
	line := s.kind
	if s.id != "" {
		line += " turn_id=" + s.id
	}
	if s.kind == "turn_completed" {
		line += " status=" + s.status
	}
	return line
}

// story draws the events of a well-behaved agent, some of which are then lost, repeated or late.
func story(t *rapid.T) (out []step) {
	for i := range rapid.IntRange(1, 8).Draw(t, "turns") {
		id := string(rune('a' + i))
		out = append(out, step{"turn_started", id, ""})
		for range rapid.IntRange(0, 3).Draw(t, "work") {
			out = append(out, step{"message_delta", id, ""})
		}
		out = append(out, step{"turn_completed", id, rapid.SampledFrom([]string{Completed, Interrupted, Failed}).Draw(t, "status")}, step{"turn_idle", id, ""})
	}
	for range rapid.IntRange(0, 6).Draw(t, "faults") {
		if len(out) < 2 {
			break
		}
		i := rapid.IntRange(0, len(out)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"lost", "twice", "late"}).Draw(t, "fault") {
		case "lost":
			out = slices.Delete(out, i, i+1)
		case "twice":
			out = slices.Insert(out, rapid.IntRange(i, len(out)).Draw(t, "again"), out[i])
		case "late":
			e := out[i]
			out = slices.Delete(out, i, i+1)
			out = slices.Insert(out, min(len(out), i+rapid.IntRange(1, 6).Draw(t, "by")), e)
		}
	}
	return out
}

// The fold agrees with the model.
func TestModel(t *testing.T) {
	testround.Check(t, 100, func(t *rapid.T) {
		steps := story(t)
		if rapid.Bool().Draw(t, "at random") {
			steps = rapid.SliceOfN(rapid.Custom(anyStep), 0, 25).Draw(t, "steps")
		}
		m := model{status: TurnIdle, over: map[string]bool{}, last: map[string]string{}}
		p := newPlayer()
		for i, s := range steps {
			m.step(s.kind, s.id, s.status, i+1)
			if _, err := p.play(s.line()); err != nil {
				t.Fatal(err)
			}
			got := p.state.Session()
			if got.Turn.Status != m.status || got.Turn.ID != m.id {
				t.Fatalf("after %v: turn %q %s, not %q %s", steps[:i+1], got.Turn.ID, got.Turn.Status, m.id, m.status)
			}
			if l, said := m.last[m.id]; said && m.status != TurnBusy && (got.Last == nil || got.Last.ID != m.id || got.Last.Status != l) {
				t.Fatalf("after %v: %v, not %s", steps[:i+1], got.Last, l)
			}
		}
	})
}

// A repeated event changes nothing. Here repeats are found by event_id; late-and-repeated.txt has those that are found
// by content.
func TestTwiceIsOnce(t *testing.T) {
	testround.Check(t, 100, func(t *rapid.T) {
		var s State
		for i, e := range played(t, lines(t, 40)) {
			e.Seq, e.EventID = uint64(2*i+1), cmp.Or(e.EventID, fmt.Sprint("own-", i))
			s.Apply(&e)
			once := fromJSON(&s)
			e.Seq++
			if counts := s.Apply(&e); counts {
				t.Fatal(e.Kind, "counts twice")
			}
			if once.Seq = s.Seq; !reflect.DeepEqual(once, s) {
				t.Fatal(e.Kind, diff(once, s))
			}
		}
	})
}
