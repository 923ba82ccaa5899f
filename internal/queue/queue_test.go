package queue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

var update = flag.Bool("update", false, "write what the scripts in testdata print now")

// player feeds inputs, one per line, to a queue and prints the agent's word for mail when it changes, and what is to be
// done.
//
//	KIND k=v …            an event, after its source (hook by default)
//	mail ID [urgent] [read] [due=10m] [expires=10m] [held=10m]
//	settled ID            it was answered or withdrawn
//	may ID                whether it may still be handed over
//	+5s                   the clock advances; -1h: it is set back
//	fill                  messages full1, full2, … arrive until there is no room, none of which may be typed
type player struct {
	state reducer.State
	queue Queue
	model *model
	now   time.Time
	seq   uint64
	word  reducer.Word
}

func newPlayer() *player {
	return &player{model: &model{}, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
}

// play carries out a line, and returns what is to be done then and what else it prints.
func (p *player) play(line string) (to To, said string) {
	if line[0] == '+' || line[0] == '-' {
		d, _ := time.ParseDuration(strings.TrimPrefix(line, "+"))
		p.now = p.now.Add(d)
		return p.queue.Next(p.state.Session().Word(), p.now), ""
	}
	w := strings.Fields(strings.ReplaceAll(line, "'", ""))
	switch w[0] {
	case "may":
		said = fmt.Sprint("= ", p.queue.MayHandOver(wire.ID(w[1]), p.now))
	case "fill":
		for n := 1; p.queue.HasRoom(); n++ {
			p.queue.Put(Message{ID: wire.ID(fmt.Sprint("full", n)), LeasedUntil: p.now.Add(1000 * time.Hour)}, p.now)
		}
	case "mail":
		m := p.message(w[1:])
		p.queue.Put(m, p.now)
		p.model.arrive(m, p.now)
	case "settled":
		p.queue.Remove(wire.ID(w[1]))
		p.model.remove(func(l *letter) bool { return l.ID == wire.ID(w[1]) })
	default:
		p.event(w)
	}
	return p.queue.Next(p.state.Session().Word(), p.now), said
}

func (p *player) message(w []string) Message {
	m := Message{ID: wire.ID(w[0])}
	is := map[string]*bool{"urgent": &m.Urgent, "read": &m.IsRead, "aside": &m.IsAside}
	at := map[string]*time.Time{"due": &m.DueAt, "expires": &m.ExpiresAt, "held": &m.LeasedUntil}
	for _, s := range w[1:] {
		k, v, _ := strings.Cut(s, "=")
		if d, err := time.ParseDuration(v); at[k] != nil && err == nil {
			*at[k] = p.now.Add(d)
		} else {
			*is[k] = true
		}
	}
	return m
}

func (p *player) event(w []string) {
	p.seq++
	e := wire.Event{Seq: p.seq, At: p.now, Team: "main", Agent: "bob", Source: "hook"}
	if slices.Contains([]string{"pty", "hook", "acp", "cli"}, w[0]) {
		e.Source, w = w[0], w[1:]
	}
	e.Kind = w[0]
	for _, s := range w[1:] {
		switch k, v, _ := strings.Cut(s, "="); k {
		case "turn_id":
			e.TurnID = v
		case "session":
			e.Session = v
		default:
			e = e.With(k, v)
		}
	}
	if p.state.Apply(&e) {
		p.queue.Apply(&e, p.now)
		p.model.applyEvent(&e, p.now)
	}
}

func (to To) lines() (out []string) {
	for _, do := range []struct {
		what string
		ids  []wire.ID
	}{{"overdue", to.Remind}, {"silent", to.Silent}, {"interrupt", to.Interrupt}, {"deliver", to.Deliver}} {
		if len(do.ids) > 0 {
			out = append(out, strings.Trim(fmt.Sprint("! "+do.what+" ", do.ids), "]"))
		}
	}
	for i := range out {
		out[i] = strings.Replace(out[i], "[", "", 1)
	}
	return out
}

// TestScripts plays testdata/*.txt: inputs, and indented by a tab what they change. `go test ./internal/queue -run Scripts
// -update` rewrites the files.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), "scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlayer()
			var got strings.Builder
			for line := range strings.Lines(string(data)) {
				if line[0] == '\t' {
					continue
				}
				got.WriteString(line)
				if line[0] == '#' || line[0] == '\n' {
					continue
				}
				to, said := p.play(strings.TrimSuffix(line, "\n"))
				out := to.lines()
				if word := p.state.Session().Word(); word != p.word {
					p.word = word
					out = slices.Insert(out, 0, string(word))
				}
				if said != "" {
					out = append(out, said)
				}
				for _, s := range out {
					got.WriteString("\t" + s + "\n")
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := gocmp.Diff(string(data), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// What is done about a message, by the agent's word.
func TestEveryWord(t *testing.T) {
	for _, c := range []struct {
		mail              string
		idle, busy, other string
	}{
		{"mail m1", "deliver", "", ""},
		{"mail m1 urgent", "deliver", "interrupt", ""},
		{"mail m1 expires=0s", "", "", ""},
		{"mail m1 expires=0s due=0s", "", "", ""},
		{"mail m1 held=10m", "", "", ""},
		{"mail m1 held=0s", "deliver", "", ""},
		{"mail m1 due=0s", "overdue, deliver", "overdue", "overdue"},
		{"mail m1 read due=0s", "overdue", "overdue", "overdue"},
	} {
		for _, word := range []reducer.Word{
			reducer.WordStarting, reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked, reducer.WordError, reducer.WordLimited,
			reducer.WordOff, reducer.WordUnknown,
		} {
			p := newPlayer()
			p.queue.Put(p.message(strings.Fields(c.mail)[1:]), p.now)
			var got []string
			for _, line := range p.queue.Next(word, p.now).lines() {
				got = append(got, strings.Fields(line)[1])
			}
			want := c.other
			switch word {
			case reducer.WordIdle:
				want = c.idle
			case reducer.WordBusy:
				want = c.busy
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s while %s: %q, not %q", c.mail, word, got, want)
			}
		}
	}
}

// anyHandover draws an input about two messages of an agent whose word seldom changes.
func anyHandover(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	id := pick("mail", "m1", "m2")
	switch pick("what", "event", "event", "event", "mail", "mail", "word", "word", "clock", "settled") {
	case "mail":
		return "mail " + id + pick("how", "", "", " urgent", " held=2s", " due=10m", " read", " due=2s read", " expires=2s")
	case "event":
		kind := pick("kind", wire.EventAnnounced, wire.EventInjecting, wire.EventInjectionFailed, wire.EventReturned, wire.EventRead,
			wire.EventInjected, wire.EventAcked, wire.EventWithdrawn)
		return pick("source", "hook", "hook", "pty") + " " + kind + " id=" + id + pick("by", "", "", " by=carol") + pick("session", "", " session=s1")
	case "settled":
		return "settled " + id
	case "clock":
		return pick("by", "+15s", "+10m", "+3s", "+1s")
	}
	return pick("word", "pty state_change new=idle", "pty state_change new=idle", "pty state_change new=thinking", "pty exited", "pty spawned pid=7",
		"session_end session=s1", "turn_started", "turn_idle", "confirm_required")
}

// The queue agrees with the model, and names nothing twice.
func TestModel(t *testing.T) {
	testround.Check(t, 3000, func(t *rapid.T) {
		p := newPlayer()
		for _, line := range rapid.SliceOfN(rapid.Custom(anyHandover), 0, 60).Draw(t, "lines") {
			got, _ := p.play(line)
			got.Remind = nil
			if want := p.model.next(p.state.Session().Word(), p.now); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s while %s: %q, not %q", line, p.state.Session().Word(), got.lines(), want.lines())
			}
			if more := p.queue.Next(p.state.Session().Word(), p.now).lines(); more != nil {
				t.Fatal("again:", more, "after", line)
			}
		}
	})
}

// model is a model of the messages: each is named once for each reason to hand it over, and never while it must not be.
type model struct {
	all   []*letter // in order of arrival
	word  reducer.Word
	since time.Time
}

type letter struct {
	Message
	offeredAt    time.Time // zero: no hook holds it
	offeredBy    string    // the hook's session
	isBeingTyped bool

	isDue        bool // a reason to hand it over has come since it was last named
	mayInterrupt bool
}

func (b *model) remove(is func(*letter) bool) { b.all = slices.DeleteFunc(b.all, is) }

func (b *model) next(word reducer.Word, now time.Time) (to To) {
	for _, l := range b.all {
		l.isDue = l.isDue || word != b.word
	}
	if word != b.word {
		b.word, b.since = word, now
	}
	over := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	for _, l := range b.all {
		from := slices.MaxFunc([]time.Time{l.offeredAt, b.since}, time.Time.Compare)
		if word == reducer.WordIdle && !l.offeredAt.IsZero() && now.Sub(from).Abs() >= 15*time.Second {
			l.endOffer()
			to.Silent = append(to.Silent, l.ID)
		}
		if over(l.LeasedUntil) {
			l.LeasedUntil, l.isDue = time.Time{}, true
		}
	}
	b.remove(func(l *letter) bool { return over(l.ExpiresAt) && !l.isBeingTyped })
	for _, l := range b.all {
		isFree := !l.isBeingTyped && l.offeredAt.IsZero() && l.LeasedUntil.IsZero()
		if l.IsRead || !isFree {
			continue
		}
		if word == reducer.WordIdle && l.isDue {
			l.isDue = false
			to.Deliver = append(to.Deliver, l.ID)
		}
		if word == reducer.WordBusy && l.Urgent && l.mayInterrupt {
			l.mayInterrupt = false
			to.Interrupt = append(to.Interrupt, l.ID)
		}
	}
	return to
}

func (b *model) arrive(m Message, now time.Time) {
	if !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now) {
		return
	}
	i := slices.IndexFunc(b.all, func(l *letter) bool { return l.ID == m.ID })
	if i < 0 {
		b.all = append(b.all, &letter{Message: m, isDue: true, mayInterrupt: true})
		return
	}
	l := b.all[i]
	wasKept, isReturned := l.IsRead, !l.LeasedUntil.IsZero() && m.LeasedUntil.IsZero()
	l.Message = m
	l.isDue = l.isDue || wasKept || isReturned
	l.mayInterrupt = l.mayInterrupt || wasKept
}

func (b *model) applyEvent(e *wire.Event, now time.Time) {
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
