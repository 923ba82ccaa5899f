//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Deeds with messages that several share, and with answers that are late.
var leaseDeeds = []deed{
	{"take", func(p *template, w *world) act {
		j := w.chore(false)
		had := false
		return act{
			call: call{args: []string{"take", "dave", "--lease", "1h", "--as", "carol"}},
			note: func(r result) {
				w.saw("dave", r.out)
				had = had || r.code == 0 && strings.Contains(r.out, "yours until")
			},
			done: func(c *census) error {
				if err := c.lies("dave", j.id, "new"); err != nil || !had {
					return err // who was killed showing has not got it, and nobody has for a moment
				}
				return j.heldBy("carol@main")
			},
		}
	}},
	{"ack what was taken", func(p *template, w *world) act {
		j := w.chore(true)
		return act{
			call: call{args: []string{"ack", j.id, "--as", "carol", "--json"}}, once: true,
			note: func(result) {},
			done: func(c *census) error { return c.lies("dave", j.id, "done") },
			after: func(t reporter) {
				// Refused where it had been done.
				j.expect(w.run(call{args: []string{"ack", j.id, "--as", "carol"}}), 0, 3, 5)
				if err := take(j.t, w.team()).lies("dave", j.id, "done"); err != nil {
					t.Errorf("again, undisturbed: %v", err)
				}
				j.tells(t, "message_acked", 1)
			},
		}
	}},
	{"renew", func(p *template, w *world) act {
		j := w.chore(true)
		return w.moving(call{args: []string{"take", "--renew", j.id, "--lease", "2h", "--as", "carol"}}, func(c *census) error {
			if err := c.lies("dave", j.id, "new"); err != nil {
				return err
			}
			return j.heldBy("carol@main")
		})
	}},
	{"give back", func(p *template, w *world) act {
		j := w.chore(true)
		a := w.moving(call{args: []string{"unread", j.id, "--as", "carol"}}, func(c *census) error {
			if err := c.lies("dave", j.id, "new"); err != nil {
				return err
			}
			return j.heldBy("")
		})
		a.once = true
		a.after = func(t reporter) {
			j.expect(w.run(call{args: []string{"unread", j.id, "--as", "carol"}}), 0, 3, 5)
			if err := j.heldBy(""); err != nil {
				t.Errorf("again, undisturbed: %v", err)
			}
			j.tells(t, "message_returned", 1)
			j.givenOut(t, 1)
		}
		return a
	}},
	{"pending", func(p *template, w *world) act {
		t, text := write(300)
		w.begin(t, "alice", "carol")
		r := w.must("send", "carol", "--due", "1ms", "--as", "alice", "--json", "--", text)
		w.stored(t, r)
		w.saw("carol", w.must("read", "--as", "carol").out)
		var out printed
		if err := json.Unmarshal([]byte(r.out), &out); err != nil {
			w.wrong("%v", err)
		}
		// What cannot be read is passed over, and hides nothing else.
		a := w.moving(call{args: []string{"pending"}}, func(*census) error { return nil })
		a.after = func(t reporter) {
			for range 2 {
				if r := w.must("pending", "--json"); strings.Count(r.out, out.ID) != 1 {
					t.Errorf("the late answer to %s is not shown once: %s", out.ID, r)
				}
			}
			// Nobody is told where no runner does it.
			for _, f := range take(w.t, w.team()).messages {
				if f.Type == "notice" {
					t.Errorf("a notice: %s", f.path)
				}
			}
		}
		return a
	}},
}

// chore is a message in the shared inbox of dave.
type chore struct {
	*world
	id string
}

// chore makes dave's inbox a shared one with a message that carol has taken, or
// nobody has.
func (w *world) chore(taken bool) *chore {
	j := &chore{world: w}
	w.must("team", "add", "dave", "--shared")
	t, text := write(300)
	w.begin(t, "alice", "dave")
	r := w.must("send", "dave", "--as", "alice", "--json", "--", text)
	w.stored(t, r)
	var out printed
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		w.wrong("%v", err)
	}
	j.id = out.ID
	if taken {
		w.saw("dave", w.must("take", "dave", "--lease", "1h", "--as", "carol").out)
	}
	return j
}

// heldBy says whether somebody has the message in hand; "": nobody has.
func (j *chore) heldBy(want string) error {
	r := j.must("ls", "dave", "--json")
	var list struct {
		Messages []struct {
			ID    string
			Lease struct{ By string }
		}
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		return err
	}
	for _, m := range list.Messages {
		if m.ID == j.id {
			if m.Lease.By != want {
				return fmt.Errorf("%s is in the hands of %q, not of %q", j.id, m.Lease.By, want)
			}
			return nil
		}
	}
	return fmt.Errorf("%s is not listed: %s", j.id, r)
}

// givenOut says whether the claims know how often the message was given out.
func (j *chore) givenOut(t reporter, want int) {
	for _, c := range j.claims("dave") {
		if slices.Contains(c.IDs, j.id) && c.Times == want {
			return
		}
	}
	t.Errorf("it is not known that %s was given out %d times: %+v", j.id, want, j.claims("dave"))
}

// tells says whether dave's log tells something of the message so often at most.
func (j *chore) tells(t reporter, kind string, most int) {
	n := 0
	for _, line := range take(j.t, j.team()).events["dave"] {
		if strings.Contains(line, `"kind":"`+kind+`"`) && strings.Contains(line, j.id) {
			n++
		}
	}
	if n > most {
		t.Errorf("%s is told %d times", kind, n)
	}
}
