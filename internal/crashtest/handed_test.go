//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// handed is how often hooks handed a text over, and said so.
type handed struct {
	plain, marked int
}

var (
	letterHead = regexp.MustCompile(`^[0-9a-f]{6,32} from [^ ,]+, `)
	newMail    = regexp.MustCompile(`(?m)^\[atm\] ([0-9]+) new messages? for [a-z]+( \(([0-9]+) may be a repeat: [^)]*\))?; answer with `)
	spentMail  = regexp.MustCompile(`(?m)^\[atm\] ([0-9]+) unread messages? for [a-z]+, handed over twice and perhaps not seen: atm read`)
)

// handedOver notes the mail in a text that a hook put before the model. began
// is when the hook was started.
func (l *ledger) handedOver(me, text string, began time.Time) error {
	letters, marked := 0, 0
	var repeats []bool // of each letter
	for line := range strings.Lines(text) {
		if letterHead.MatchString(line) {
			again := strings.Contains(line, ", may be a repeat")
			repeats = append(repeats, again)
			if letters++; again {
				marked++
			}
		}
	}
	said, saidMarked := 0, 0
	if m := newMail.FindStringSubmatch(text); m != nil {
		said, _ = strconv.Atoi(m[1])
		saidMarked, _ = strconv.Atoi(m[3])
	}
	if said != letters || saidMarked != marked {
		return fmt.Errorf("it says %d messages, %d of them marked, and has %d and %d", said, saidMarked, letters, marked)
	}
	// The letters one by one: what a header says is of what stands below it.
	n := -1
	var body strings.Builder
	flush := func() {
		if n < 0 {
			return
		}
		tokens, _ := shown(body.String())
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, t := range tokens {
			k := key{me, t}
			if l.handed[k] == nil {
				l.handed[k] = &handed{}
			}
			if repeats[n] {
				l.handed[k].marked++
				l.count["handed over again"]++
			} else {
				l.handed[k].plain++
				l.count["handed over"]++
			}
			if at, ok := l.taken[k]; ok && began.After(at) && !l.putBack(me) {
				l.order = append(l.order, fmt.Sprintf("handed over after it was read: %s of %s", t, me))
			}
		}
	}
	for line := range strings.Lines(text) {
		if letterHead.MatchString(line) {
			flush()
			n++
			body.Reset()
		}
		body.WriteString(line)
	}
	flush()
	l.saw(me, text)
	return nil
}

// judgeHanded: a hook hands a message over once, and once more if nothing
// showed that it arrived; then it says so.
func (l *ledger) judgeHanded(t reporter, v *verdict) {
	for k, h := range l.handed {
		if (h.plain > 1 || h.marked > 1) && !l.putBack(k.agent) {
			v.doubled++
			t.Errorf("handed over %d times, and %d times marked as a repeat: %s of %s", h.plain, h.marked, k.token, k.agent)
		}
	}
}

// putBack says whether an agent's mail may have been put back, which makes it new.
func (l *ledger) putBack(agent string) bool { return agent == "carol" && l.count["put back"] > 0 }

// A claim as it lies on disk: who handles which unread messages.
type claim struct {
	Owner   string    `json:"owner"` // runner:<run>, session:<id> or lease:<agent>
	IDs     []string  `json:"ids"`
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"`
	Times   int       `json:"times"`
	Call    string    `json:"call,omitempty"`
	Offered bool      `json:"offered,omitempty"`
}

func (w *world) claimFile(agent string) string {
	return filepath.Join(w.team(), agent, "run", "claims.json")
}

// claims are what an agent's messages are claimed for.
func (w *world) claims(agent string) (all []claim) {
	data, err := os.ReadFile(w.claimFile(agent))
	if err != nil {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&all); err != nil && !w.cuts { // it is not synced
		w.wrong("torn: the claims of %s: %v: %s", agent, err, clip(string(data)))
	}
	return all
}

// age makes the claims of an agent so old that they count no more.
func (w *world) age(agent string) {
	all := w.claims(agent)
	if len(all) == 0 {
		return
	}
	for i, c := range all {
		all[i].At = c.At.Add(-11 * time.Minute)
		if !c.Until.IsZero() {
			all[i].Until = c.Until.Add(-11 * time.Minute)
		}
	}
	data, _ := json.Marshal(all)
	if err := os.WriteFile(w.claimFile(agent), append(data, '\n'), 0o600); err != nil {
		w.t.Error(err)
	}
}

// handOut has hooks hand over all that they may, to a session that goes on; the
// rest is read. Then nothing is unread, and nothing claimed. Nobody else may be
// at work.
func (w *world) handOut(t reporter, agent string, aged bool) {
	t.Helper()
	if aged {
		w.age(agent)
	} else {
		for _, c := range w.claims(agent) {
			s := w.newSession(agent)
			s.id = strings.TrimPrefix(c.Owner, "session:")
			s.tell(s.ends("other"))
		}
	}
	s := w.newSession(agent)
	text := s.tell(s.starts("startup"))
	n := 0
	for newMail.MatchString(text) {
		if n++; n > 2000 {
			t.Errorf("the hooks of %s hand mail over for ever", agent)
			return
		}
		text = s.tell(s.prompts())
	}
	// What is left was handed over twice, and that is said.
	r := w.must("ls", "--count", "--as", agent)
	left, spent := strings.TrimSpace(r.out), "0"
	if m := spentMail.FindStringSubmatch(text); m != nil {
		spent = m[1]
	}
	if left != spent {
		t.Errorf("%s messages of %s are unread, and the hook says of %s that they were handed over twice: %s", left, agent, spent, clip(text))
	}
	if left != "0" {
		w.add("left for atm read", 1)
	}
	w.pipe(call{args: []string{"read", "--full", "--as", agent}}, agent, []int{0}, all)
	if r := w.must("ls", "--count", "--as", agent); r.out != "0\n" {
		t.Errorf("unread by %s after everything was handed over and read: %s", agent, r.out)
	}
	s.tool()
	s.tell(s.stops(false))
	s.tell(s.ends("other"))
	if all := w.claims(agent); len(all) > 0 {
		t.Errorf("claims of %s that nobody settles: %+v", agent, all)
	}
}
