//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A deed is something that a command does, which faults may hit: send, read.
type deed struct {
	name  string
	begin func(p *template, w *world) act
}

// An act is a deed in one copy of the template.
type act struct {
	call call
	note func(result)        // takes down what the process printed
	done func(*census) error // whether it is done: what exit 0 stands for
	once bool                // not to be done again: it would be another
	next func() call         // the call, where it is not the same each time

	after func(reporter) // what comes then, undisturbed
}

// deeds are all that faults hit.
func deeds() []deed { return slices.Concat(mailDeeds, eventDeeds, hookDeeds, leaseDeeds) }

var mailDeeds = []deed{
	{"send", func(p *template, w *world) act {
		return w.sending([]string{"send", "bob", "--id", newID(0)}, "bob")
	}},
	{"send without id", func(p *template, w *world) act {
		a := w.sending([]string{"send", "bob"}, "bob")
		a.once = true
		return a
	}},
	{"send to three", func(p *template, w *world) act {
		return w.sending([]string{"send", "bob,carol,dave", "--ack", "--id", newID(1)}, "bob", "carol", "dave")
	}},
	{"send to all", func(p *template, w *world) act {
		return w.sending([]string{"send", "all", "--id", newID(1)}, "bob", "carol", "dave")
	}},
	{"send a file", func(p *template, w *world) act {
		t, text := write(2000)
		w.begin(t, "alice", "bob")
		file := filepath.Join(w.root, "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			w.wrong("%v", err)
		}
		return w.noting(call{args: []string{"send", "bob", "--as", "alice", "--json", "--id", newID(0), "--attach", file}}, t)
	}},
	{"send a batch", batching},
	{"reply", func(p *template, w *world) act {
		a := w.sending([]string{"reply", p.owed, "--as", "bob", "--id", newID(0)}, "alice")
		sent, note, warned := a.done, a.note, false
		a.note = func(r result) {
			note(r)
			warned = strings.HasPrefix(r.err, "atm: sent; the message answered: ")
		}
		a.done = func(c *census) error {
			if err := sent(c); err != nil || warned {
				return err
			}
			return c.lies("bob", p.owed, "done")
		}
		return a
	}},
	{"ack", func(p *template, w *world) act {
		// Of one that is read, and of one that is not.
		w.excuse("bob", p.asks)
		return act{
			call: call{args: []string{"ack", p.owed, p.asks, "--as", "bob", "--json"}},
			note: w.acked,
			done: func(c *census) error {
				for _, id := range []string{p.owed, p.asks} {
					if err := c.lies("bob", id, "done"); err != nil {
						return err
					}
					if !slices.ContainsFunc(c.messages, func(f found) bool { return f.agent == "alice" && f.Type == "ack" && f.InReplyTo == id }) {
						return fmt.Errorf("alice has no ack of %s", id)
					}
				}
				return nil
			},
		}
	}},
	{"read", func(p *template, w *world) act {
		return act{
			call: call{args: []string{"read", "--as", "bob"}},
			note: func(r result) {
				w.saw("bob", r.out)
				if r.code == 0 && !strings.Contains(r.err, "not marked") && !strings.Contains(r.err, "cannot be read") && !strings.Contains(r.out, "no new messages") {
					w.add("read whole", 1)
				}
			},
			done: func(c *census) error {
				if w.count["read whole"] == 0 {
					return nil // it said that it could not mark
				}
				for _, id := range []string{p.unread, p.asks} {
					if c.lies("bob", id, "new") == nil {
						return fmt.Errorf("%s is unread", id)
					}
				}
				return nil
			},
		}
	}},
	{"ls", func(p *template, w *world) act {
		var listed []string
		return act{
			call: call{args: []string{"ls", "--as", "bob", "--json"}},
			note: func(r result) {
				var list struct {
					Messages []letter `json:"messages"`
				}
				listed = nil
				if json.Unmarshal([]byte(r.out), &list) == nil {
					for _, m := range list.Messages {
						listed = append(listed, m.ID)
					}
				}
			},
			done: func(*census) error {
				// A file that cannot be read is passed over, and hides no other.
				if !slices.Contains(listed, p.unread) && !slices.Contains(listed, p.asks) {
					return fmt.Errorf("neither %s nor %s is listed", p.unread, p.asks)
				}
				return nil
			},
		}
	}},
	{"withdraw", func(p *template, w *world) act {
		return w.moving(call{args: []string{"withdraw", p.unread, "--as", "alice"}}, func(c *census) error { return c.lies("bob", p.unread, "withdrawn") })
	}},
	{"unread", func(p *template, w *world) act {
		return w.moving(call{args: []string{"unread", p.done, "--as", "bob"}}, func(c *census) error { return c.lies("bob", p.done, "new") })
	}},
	{"gc", func(p *template, w *world) act {
		return w.moving(call{args: []string{"gc", "--keep", "0s", "--keep-last", "0"}}, func(c *census) error { return c.lies("bob", p.old, "archive") })
	}},
	{"backup", func(p *template, w *world) act {
		n := 0
		var file string
		a := w.moving(call{}, func(*census) error {
			if got, ok := w.unpack(file); ok {
				for k := range w.posts {
					if !got[k] {
						return fmt.Errorf("%s of %s is not in it", k.token, k.agent)
					}
				}
			}
			return nil
		})
		a.next = func() call {
			n++
			file = filepath.Join(w.root, fmt.Sprintf("backup.%d", n))
			return call{args: []string{"backup", file}}
		}
		return a
	}},
	{"retire", func(p *template, w *world) act {
		return w.moving(call{args: []string{"team", "retire", "carol"}}, func(c *census) error { return w.member("carol", false) })
	}},
	{"add", func(p *template, w *world) act {
		return w.moving(call{args: []string{"team", "add", "erin", "frank"}}, func(c *census) error {
			if err := w.member("erin", true); err != nil {
				return err
			}
			return w.member("frank", true)
		})
	}},
	{"init", func(p *template, w *world) act {
		made := *w
		made.root = filepath.Join(w.root, "made")
		return w.moving(call{args: []string{"init", "gina", "hal"}, root: made.root}, func(c *census) error {
			if err := made.member("gina", true); err != nil {
				return err
			}
			return made.member("hal", true)
		})
	}},
}

// lies says whether a message is where it should be.
func (c *census) lies(agent, id, place string) error {
	for _, f := range c.messages {
		if f.agent == agent && f.ID == id {
			if f.place == place {
				return nil
			}
			return fmt.Errorf("%s is in %s, not in %s", id, f.place, place)
		}
	}
	return fmt.Errorf("%s is nowhere", id)
}

// member says whether somebody is a member, or is none, as they should be.
func (w *world) member(name string, want bool) error {
	_, err := os.Stat(filepath.Join(w.team(), name, "inbox", "new"))
	if (err == nil) != want {
		return fmt.Errorf("%s: a member: %v", name, err == nil)
	}
	return nil
}

// moving is an act that prints nothing that binds.
func (w *world) moving(c call, done func(*census) error) act {
	return act{call: c, note: func(result) {}, done: done}
}

// sending is an act that sends one text, by alice unless the arguments name
// somebody.
func (w *world) sending(args []string, to ...string) act {
	t, text := write(1000)
	from := "alice"
	if !slices.Contains(args, "--as") {
		args = append(args, "--as", "alice")
	} else {
		from = "bob"
	}
	w.begin(t, from, to...)
	return w.noting(call{args: append(args, "--json", "--", text)}, t)
}

// batching sends five texts, each with an id.
func batching(p *template, w *world) act {
	var tokens []token
	var lines strings.Builder
	for i := range 5 {
		t, text := write(500)
		to := []string{"bob", "carol"}[:1+i%2]
		w.begin(t, "alice", to...)
		tokens = append(tokens, t)
		line, _ := json.Marshal(map[string]any{"to": to, "body": text, "id": newID(0)})
		lines.Write(append(line, '\n'))
	}
	return w.noting(call{args: []string{"send", "--batch", "--as", "alice"}, text: lines.String()}, tokens...)
}

// noting is an act whose process prints an object for each text that it sent.
func (w *world) noting(c call, tokens ...token) act {
	return act{
		call: c,
		note: func(r result) {
			for line := range strings.Lines(r.out) {
				var out printed
				if json.Unmarshal([]byte(line), &out) == nil && len(out.Delivered) > 0 {
					w.promise(tokens[max(0, out.Line-1)], out)
				}
			}
		},
		done: func(c *census) error {
			for k := range w.posts {
				if slices.Contains(tokens, k.token) && !slices.ContainsFunc(c.messages, func(f found) bool { return f.agent == k.agent && f.token == k.token }) {
					return fmt.Errorf("%s has not got %s", k.agent, k.token)
				}
			}
			return nil
		},
	}
}
