//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Deeds with messages that several share, and with answers that are due.
var leaseDeeds = []deed{
	{"take", func(p *template, w *world) act {
		j := w.chore(0)
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
		j := w.chore(1)
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
				j.tells(t, "message_taken", 1)
			},
		}
	}},
	{"renew", func(p *template, w *world) act {
		j := w.chore(1)
		return w.moving(call{args: []string{"take", "--renew", j.id, "--lease", "2h", "--as", "carol"}}, func(c *census) error {
			if err := c.lies("dave", j.id, "new"); err != nil {
				return err
			}
			return j.heldBy("carol@main")
		})
	}},
	{"give back", func(p *template, w *world) act {
		j := w.chore(1)
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
		}
		return a
	}},
	{"set aside", func(p *template, w *world) act {
		j := w.chore(5)
		a := w.moving(call{args: []string{"unread", j.id, "--as", "carol"}}, func(c *census) error { return c.lies("dave", j.id, "aside") })
		a.once = true
		a.after = func(t reporter) {
			j.expect(w.run(call{args: []string{"unread", j.id, "--as", "carol"}}), 0, 3, 5)
			for range 2 {
				w.must("team")
			}
			c := take(j.t, w.team())
			if err := c.lies("dave", j.id, "aside"); err != nil {
				t.Errorf("again, undisturbed: %v", err)
			}
			c.told(t, "alice", `"aside":"`+j.id, 1)
		}
		return a
	}},
	{"put back what was set aside", func(p *template, w *world) act {
		j := w.chore(5)
		w.must("unread", j.id, "--as", "carol")
		return w.moving(call{args: []string{"unread", j.id, "--as", "dave"}}, func(c *census) error {
			if err := c.lies("dave", j.id, "new"); err != nil {
				return err
			}
			return j.heldBy("")
		})
	}},
	{"send with a time", func(p *template, w *world) act {
		id := newID(0)
		a := w.sending([]string{"send", "carol", "--due", "1h", "--expires", "2h", "--id", id}, "carol")
		sent := a.done
		a.done = func(c *census) error {
			if err := sent(c); err != nil {
				return err
			}
			for _, what := range []string{"due", "expires"} {
				if notes, _ := filepath.Glob(filepath.Join(w.team(), "carol", "inbox", "dated", "*."+id+"."+what)); len(notes) == 0 {
					return fmt.Errorf("no note that it is %s", what)
				}
			}
			return nil
		}
		return a
	}},
	{"remind", func(p *template, w *world) act {
		if err := os.WriteFile(filepath.Join(w.team(), "team.toml"), []byte("lead = \"dave\"\n"), 0o600); err != nil {
			w.wrong("%v", err)
		}
		t, text := write(300)
		w.begin(t, "alice", "carol")
		w.stored(t, w.must("send", "carol", "--due", "1ms", "--as", "alice", "--json", "--", text))
		w.saw("carol", w.must("read", "--as", "carol").out)
		a := w.moving(call{args: []string{"pending"}}, func(*census) error { return nil })
		a.after = func(t reporter) {
			for range 2 {
				w.must("team")
			}
			c := take(w.t, w.team())
			c.told(t, "dave", `"overdue":"`, 1)
			c.told(t, "carol", `"overdue":"`, 1)
		}
		return a
	}},
}

// chore is a message in the shared inbox of dave.
type chore struct {
	*world
	id string
}

// chore makes dave's inbox a shared one with a message that carol has taken so
// often, and has in hand; 0: nobody has taken it.
func (w *world) chore(taken int) *chore {
	j := &chore{world: w}
	w.must("take", "--share", "--as", "dave")
	t, text := write(300)
	w.begin(t, "alice", "dave")
	r := w.must("send", "dave", "--as", "alice", "--json", "--", text)
	w.stored(t, r)
	var out printed
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		w.wrong("%v", err)
	}
	j.id = out.ID
	for n := range taken {
		if n > 0 {
			w.must("unread", j.id, "--as", "carol")
		}
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
			Taken struct{ By string }
		}
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		return err
	}
	for _, m := range list.Messages {
		if m.ID == j.id {
			if m.Taken.By != want {
				return fmt.Errorf("%s is in the hands of %q, not of %q", j.id, m.Taken.By, want)
			}
			return nil
		}
	}
	return fmt.Errorf("%s is not listed: %s", j.id, r)
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

// told says whether somebody has so many notices that say something.
func (c *census) told(t reporter, agent, what string, want int) {
	n := 0
	for _, f := range c.messages {
		if f.agent == agent && f.Type == "notice" && strings.Contains(string(f.Payload), what) {
			n++
		}
	}
	if n != want {
		t.Errorf("%s has %d notices of %s, not %d", agent, n, what, want)
	}
}
