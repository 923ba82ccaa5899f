package queue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

var update = flag.Bool("update", false, "write what the scripts in testdata print now")

// player feeds inputs, one per line, to a queue and prints the agent's word for mail when it changes, and what is to be
// done.
//
//	KIND k=v …            an event, after its source (hook by default)
//	mail ID [urgent] [never] [read] [due=10m] [expires=10m] [held=10m]
//	settled ID            it was answered or withdrawn
//	may ID                whether it may still be handed over
//	+5s                   the clock advances; -1h: it is set back
//	fill                  messages full1, full2, … arrive until there is no room, none of which may be typed
type player struct {
	state reducer.State
	queue Queue
	now   time.Time
	seq   uint64
	word  reducer.Word
}

func newPlayer() *player {
	return &player{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
}

// play carries out a line, and returns what is to be done then and what else it prints.
func (p *player) play(line string) (to To, said string) {
	if line[0] == '+' || line[0] == '-' {
		d, _ := time.ParseDuration(strings.TrimPrefix(line, "+"))
		p.now = p.now.Add(d)
		return p.queue.Next(p.state.MailWord(), p.now), ""
	}
	w := strings.Fields(strings.ReplaceAll(line, "'", ""))
	switch w[0] {
	case "may":
		said = fmt.Sprint("= ", p.queue.MayHandOver(wire.ID(w[1]), p.now))
	case "fill":
		for n := 1; p.queue.HasRoom(); n++ {
			p.queue.Put(Message{ID: wire.ID(fmt.Sprint("full", n)), IsSuppressed: true}, p.now)
		}
	case "mail":
		p.queue.Put(p.message(w[1:]), p.now)
	case "settled":
		p.queue.Remove(wire.ID(w[1]))
	default:
		p.event(w)
	}
	return p.queue.Next(p.state.MailWord(), p.now), said
}

func (p *player) message(w []string) Message {
	m := Message{ID: wire.ID(w[0])}
	is := map[string]*bool{"urgent": &m.Urgent, "never": &m.IsSuppressed, "read": &m.IsRead}
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
	}
}

func (to To) lines() (out []string) {
	for _, do := range []struct {
		what string
		ids  []wire.ID
	}{{"overdue", to.Remind}, {"interrupt", to.Interrupt}, {"deliver", to.Deliver}} {
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
				if word := p.state.MailWord(); word != p.word {
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
		{"mail m1 never", "", "", ""},
		{"mail m1 expires=0s", "", "", ""},
		{"mail m1 expires=0s due=0s", "", "", ""},
		{"mail m1 held=10m", "", "", ""},
		{"mail m1 held=0s", "deliver", "", ""},
		{"mail m1 due=0s", "overdue, deliver", "overdue", "overdue"},
		{"mail m1 read due=0s", "overdue", "overdue", "overdue"},
		{"mail m1 read never due=0s", "overdue", "overdue", "overdue"},
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

// anyLine draws an input.
func anyLine(t *rapid.T) string {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	id := func() string { return pick("mail", "m1", "m2", "m3", "m4") }
	session := func() string { return pick("session", "", " session=s1", " session=s2") }
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		return "mail " + id() + pick("how", "", "", " urgent", " due=2s", " due=10m", " expires=2s", " never", " urgent due=1s", " held=2s")
	case 1:
		return "settled " + id()
	case 2:
		return pick("clock", "+1s", "+1s", "+3s", "+10m", "-1h")
	case 3:
		return pick("source", "pty ", "hook ", "cli ") + pick("kind", wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventWithdrawn,
			wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed, wire.EventReturned) + " id=" + id() + session()
	case 4:
		return pick("kind", "turn_started", "turn_idle", "confirm_required tool=Bash", "tool_call_start", "session_end") + session()
	}
	return "pty " + pick("kind", "spawned pid=7", "exited pid=7", "state_change new=idle", "state_change new=thinking", "state_change new=limited")
}

// Mail is handed over only while the agent is idle, a turn is ended only while it is busy, and a message is named once
// until something changes.
func TestAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(anyLine), 0, 60).Draw(t, "lines")
		p := newPlayer()
		delivered := map[wire.ID]int{} // by which line it was named last
		changed := -1                  // which line changed the word last
		for i, line := range lines {
			before := p.state.MailWord()
			to, _ := p.play(line)
			word := p.state.MailWord()
			if word != before {
				changed = i
			}
			if len(to.Deliver) > 0 && word != reducer.WordIdle || len(to.Interrupt) > 0 && word != reducer.WordBusy {
				t.Fatal(to.lines(), "while", word, "at", line)
			}
			for _, id := range to.Deliver {
				at, again := delivered[id]
				if again && at >= changed && !raisedAgain(lines[at+1:i+1], id) {
					t.Fatal(id, "twice without a change, at", line)
				}
				delivered[id] = i
			}
			if more := p.queue.Next(word, p.now).lines(); more != nil {
				t.Fatal("again:", more, "after", line)
			}
		}
	})
}

// raisedAgain reports whether a line can make this message deliverable again without a change of the word: a hook handed
// it over, somebody had it, or it came back.
func raisedAgain(lines []string, id wire.ID) bool {
	raises := regexp.MustCompile("^mail|settled|message_(announced|read|acked|withdrawn|returned)|injected|session_end|exited|^[+-]")
	return slices.ContainsFunc(lines, func(l string) bool {
		return raises.MatchString(l) && (strings.Contains(l, string(id)) || !strings.Contains(l, " m"))
	})
}
