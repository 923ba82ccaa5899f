package reducer

import (
	"cmp"
	"flag"
	"fmt"
	"reflect"
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

// anyHandover draws an input about two messages of an agent whose word seldom changes.
func anyHandover(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	id := pick("mail", "m1", "m2")
	switch pick("what", "event", "event", "event", "mail", "mail", "word", "word", "clock", "settled") {
	case "mail":
		return "mail " + id + pick("how", "", "", " urgent", " held=2s", " due=10m", " read", " due=2s read", " never", " expires=2s")
	case "event":
		kind := pick("kind", wire.EventAnnounced, wire.EventInjecting, wire.EventInjectionFailed, wire.EventReturned, wire.EventRead,
			wire.EventInjected, wire.EventAcked, wire.EventWithdrawn)
		return pick("source", "hook", "hook", "pty") + " " + kind + " id=" + id + pick("by", "", "", " by=carol") + pick("session", "", " session=s1")
	case "settled":
		return "settled " + id
	case "clock":
		return pick("by", "+10m", "+3s", "+1s")
	}
	return pick("word", "pty state_change new=idle", "pty state_change new=idle", "pty state_change new=thinking", "pty exited", "pty spawned pid=7",
		"session_end session=s1", "turn_started", "turn_idle", "confirm_required")
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
	case wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventWithdrawn, wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed, wire.EventReturned:
		line += " id=" + id()
	}
	return line
}

func lines(t *rapid.T, most int) []string {
	about := rapid.SampledFrom([]func(*rapid.T) string{anyLine, anyLine, anyCall, anyHandover, anyHandover}).Draw(t, "about")
	return rapid.SliceOfN(rapid.Custom(about), 0, most).Draw(t, "lines")
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
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set("6000") // of a third of a millisecond each
		defer f.Value.Set(f.DefValue)
	}
	rapid.Check(t, func(t *rapid.T) {
		ls := lines(t, 60)
		var s, snapped State // folded in one go, and through JSON at random
		var box inbox
		for i, in := range inputs(t, ls) {
			before := s.handoverWord()
			effects := s.Apply(in)
			valid(t, &s)
			if rapid.Bool().Draw(t, "json") {
				snapped = fromJSON(&snapped)
			}
			if got := snapped.Apply(in); !reflect.DeepEqual(snapped, s) || !reflect.DeepEqual(got, effects) {
				t.Fatal("from JSON it goes on otherwise at", ls[i], diff(snapped, s))
			}
			want := box.apply(in, s.handoverWord(), s.handoverWord() != before)
			if got := slices.DeleteFunc(slices.Clone(effects), func(e Effect) bool { return e.Do == Overdue }); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s while %s: %v, not %v", ls[i], s.handoverWord(), got, want)
			}
			if more := s.Apply(Input{Now: in.Now}); len(more) > 0 {
				t.Fatal("again:", more, "after", ls[i])
			}
			snapped.Apply(Input{Now: in.Now})
		}
	})
}

// inbox is a model of the messages: each is named once for each reason to hand it over, and never while it must not be.
type inbox struct {
	all    []*letter // in order of arrival
	events []string  // source and event_id of those that came
}

type letter struct {
	Mail
	offeredAt    time.Time // zero: no hook holds it
	offeredBy    string    // the hook's session
	isBeingTyped bool

	isDue        bool // a reason to hand it over has come since it was last named
	mayInterrupt bool
}

func (b *inbox) remove(is func(*letter) bool) { b.all = slices.DeleteFunc(b.all, is) }

func (b *inbox) apply(in Input, word Word, hasChanged bool) []Effect {
	for _, l := range b.all {
		l.isDue = l.isDue || hasChanged
	}
	if in.Arrived != nil {
		b.arrive(*in.Arrived, in.Now)
	}
	b.remove(func(l *letter) bool { return l.ID == in.Settled })
	if e := in.Event; e != nil {
		id := e.Source + " " + e.EventID
		if e.EventID == "" || !slices.Contains(b.events, id) {
			b.events = append(b.events, id)
			b.applyEvent(e, in.Now)
		}
	}
	over := func(t time.Time) bool { return !t.IsZero() && !t.After(in.Now) }
	for _, l := range b.all {
		if !l.offeredAt.IsZero() && in.Now.Sub(l.offeredAt).Abs() >= 10*time.Minute {
			l.endOffer()
		}
		if over(l.LeasedUntil) {
			l.LeasedUntil, l.isDue = time.Time{}, true
		}
	}
	b.remove(func(l *letter) bool { return over(l.ExpiresAt) && !l.isBeingTyped })
	interrupt, deliver := Effect{Do: Interrupt}, Effect{Do: Deliver}
	for _, l := range b.all {
		isFree := !l.isBeingTyped && l.offeredAt.IsZero() && l.LeasedUntil.IsZero()
		if l.IsRead || l.IsSuppressed || !isFree {
			continue
		}
		if word == WordIdle && l.isDue {
			l.isDue = false
			deliver.IDs = append(deliver.IDs, l.ID)
		}
		if word == WordBusy && l.Urgent && l.mayInterrupt {
			l.mayInterrupt = false
			interrupt.IDs = append(interrupt.IDs, l.ID)
		}
	}
	return slices.DeleteFunc([]Effect{interrupt, deliver}, func(e Effect) bool { return e.IDs == nil })
}

func (b *inbox) arrive(m Mail, now time.Time) {
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now) {
		return
	}
	i := slices.IndexFunc(b.all, func(l *letter) bool { return l.ID == m.ID })
	if i < 0 {
		b.all = append(b.all, &letter{Mail: m, isDue: true, mayInterrupt: true})
		return
	}
	l := b.all[i]
	wasKept, isReturned := l.IsRead || l.IsSuppressed, !l.LeasedUntil.IsZero() && m.LeasedUntil.IsZero()
	l.Mail = m
	l.isDue = l.isDue || wasKept || isReturned
	l.mayInterrupt = l.mayInterrupt || wasKept
}

func (b *inbox) applyEvent(e *wire.Event, now time.Time) {
	for _, l := range b.all {
		switch {
		case e.Kind == "exited":
			l.isBeingTyped = false
			l.endOffer()
		case e.Kind == "session_end" && e.Session == l.offeredBy:
			l.endOffer()
		}
	}
	isAbout := func(l *letter) bool { return l.ID == e.MessageID() }
	if isLastWord := e.Kind == wire.EventWithdrawn || e.Kind == wire.EventAcked && e.Field("by") != ""; isLastWord {
		b.remove(isAbout)
		return
	}
	for _, l := range b.all {
		if !isAbout(l) {
			continue
		}
		switch e.Kind {
		case wire.EventInjecting:
			l.isBeingTyped = true
		case wire.EventInjectionFailed:
			l.isBeingTyped = false
		case wire.EventInjected, wire.EventRead, wire.EventAcked:
			l.IsRead, l.isBeingTyped, l.offeredAt = true, false, time.Time{}
			b.remove(func(m *letter) bool { return m == l && l.DueAt.IsZero() }) // no answer is expected
			return
		case wire.EventReturned:
			l.LeasedUntil, l.isDue = time.Time{}, true
		case wire.EventAnnounced:
			if e.Source == "hook" {
				l.offeredAt, l.offeredBy = now, e.Session
			}
		}
	}
}

func (l *letter) endOffer() {
	if !l.offeredAt.IsZero() {
		l.offeredAt, l.isDue = time.Time{}, true
	}
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
	rapid.Check(t, func(t *rapid.T) {
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
			got := p.state.Turn()
			if got.Status != m.status || got.ID != m.id {
				t.Fatalf("after %v: turn %q %s, not %q %s", steps[:i+1], got.ID, got.Status, m.id, m.status)
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
