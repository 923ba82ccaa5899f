//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A target is what an action is about: a mailbox, and messages in it by their ids.
type target struct {
	me                            string
	unread, asks, owed, done, old string
	status                        string // of me, where it is known
}

// An action is a call, and when it is done.
type action struct {
	call
	note  func(result)        // what only this one makes of its output
	done  func(*census) error // what exit 0 stands for
	once  bool                // not to be done again: it would be another
	after func()              // what comes then, undisturbed
}

type namedAction struct {
	name  string
	begin func(w *world, at target) action
}

// actions are all that faults hit, each in a copy of the template; most are stressed as well.
var actions = []namedAction{
	{"send", send},
	{"send without id", sendWithoutID},
	{"send to three", sendToThree},
	{"send to all", func(w *world, at target) action {
		a := w.sending("alice", readers, "--", "--json", "--ack", "--once", newID(0))
		a.args[1], a.exits = "all", []int{6}
		return a
	}},
	{"send a file", sendFile},
	{"send a batch", func(w *world, at target) action { return w.batching(5, true) }},
	{"reply", reply},
	{"ack", ack},
	{"read", func(w *world, at target) action {
		whole := false
		return action{
			call: call{args: []string{"read", "--as", at.me}, reader: at.me},
			note: func(r result) {
				apart := strings.Contains(r.err, "not marked") || strings.Contains(r.err, "cannot be read") || strings.Contains(r.out, "no new messages")
				whole = whole || r.code == 0 && !apart
			},
			done: func(c *census) error {
				if whole && (c.isIn(at.me, "new", at.unread) == nil || c.isIn(at.me, "new", at.asks) == nil) {
					return fmt.Errorf("%s or %s is unread", at.unread, at.asks)
				}
				return nil // or it said that it could not mark
			},
		}
	}},
	{"ls", func(w *world, at target) action {
		listed := ""
		return action{
			call: call{args: []string{"ls", "--as", "bob", "--json"}},
			note: func(r result) { listed = r.out },
			done: func(*census) error { // a file that cannot be read is passed over, and hides no other
				if !strings.Contains(listed, at.unread) && !strings.Contains(listed, at.asks) {
					return fmt.Errorf("neither %s nor %s is listed", at.unread, at.asks)
				}
				return nil
			},
		}
	}},
	{"withdraw", withdraw},
	{"unread", unread},
	{"gc", gc},
	{"backup", func(w *world, at target) action {
		holdsAll := func(file string) error {
			c := w.unpack(file)
			for k, it := range w.items {
				if it.kind == "message" && !c.has(k) {
					return fmt.Errorf("%s of %s is not in the backup", k.token, k.agent)
				}
			}
			return nil
		}
		file := filepath.Join(w.root, "backup.1")
		return action{call: call{args: []string{"backup", file}}, once: true, done: func(*census) error { return holdsAll(file) }, after: func() {
			w.must("backup", file+"2")
			if err := holdsAll(file + "2"); err != nil {
				w.wrong("%v", err)
			}
		}}
	}},
	{"restore", func(w *world, at target) action {
		file, made := filepath.Join(w.root, "backup.1"), filepath.Join(w.root, "made")
		w.must("backup", file)
		restore := call{args: []string{"restore", file}, root: made}
		holdsAll := func(*census) error {
			c := w.at(made).census()
			for k, it := range w.items {
				if it.kind == "message" && !c.has(k) {
					return fmt.Errorf("%s of %s is not in the restored root", k.token, k.agent)
				}
			}
			return nil
		}
		return action{call: restore, once: true, done: holdsAll, after: func() {
			if _, err := os.Stat(made); err != nil { // else it is whole, whatever the exit code was
				w.mustRun(restore)
			}
			if err := holdsAll(nil); err != nil {
				w.wrong("%v", err)
			}
		}}
	}},
	{"retire", func(w *world, at target) action {
		a := w.joining(false, "carol")
		a.args = []string{"team", "retire", "carol"}
		return a
	}},
	{"add", func(w *world, at target) action {
		a := w.joining(true, "erin", "frank")
		a.args = []string{"team", "add", "erin", "frank"}
		return a
	}},
	{"init", func(w *world, at target) action {
		made := filepath.Join(w.root, "made")
		a := w.at(made).joining(true, "gina", "hal")
		a.args, a.root = []string{"init", "gina", "hal"}, made
		return a
	}},
	{"event", event1},
	{"event --sync", func(w *world, at target) action { return w.noting(at.me, "--sync", "--json") }},
	{"event after a torn line", func(w *world, at target) action {
		w.tearLog("bob", `{"seq":999,"at":"2026-`)
		return w.noting("bob", "--sync", "--json")
	}},
	{"event --stdin", stream},
	{"event --stdin --route", route},
	{"events", func(w *world, at target) action {
		f := &follower{world: w, agent: "bob"}
		return action{
			call: call{args: []string{"events", "bob", "--json", "--since", "0"}},
			note: func(r result) { f.last = 0; f.read(r) },
			done: func(c *census) error {
				if lines := c.logs["bob"]; f.last != lines[len(lines)-1].Seq {
					return fmt.Errorf("event %d is the last that is printed", f.last)
				}
				return nil
			},
		}
	}},
	{"status", func(w *world, at target) action {
		printed := ""
		return action{
			call: call{args: []string{"status", "bob", "--json"}},
			note: func(r result) { printed = r.out },
			done: func(*census) error {
				if w.isBroken() && strings.Contains(printed, `"state":"unknown"`) && strings.Contains(printed, "cannot be read") {
					return nil // it says so
				}
				return sameStatus(printed, at.status)
			},
			after: func() { w.judgeStatus("bob") },
		}
	}},
	{"gc of events", func(w *world, at target) action {
		return action{
			call: call{args: []string{"gc", "--keep", "0s"}},
			done: func(*census) error {
				if n := len(w.segments("bob")); n != 1 {
					return fmt.Errorf("%d segments are not in the archive", n)
				}
				return nil
			},
			after: func() {
				w.judgeArchive("bob")
				if err := sameStatus(w.must("status", "bob", "--json").out, at.status); err != nil {
					w.wrong("after gc: %v", err)
				}
			},
		}
	}},
	// Hooks of bob's program: whatever fails, exit 0, and nothing or one whole document. Then all
	// mail comes out, by hooks and by read, at most twice by hooks, and the second time marked.
	{"hook at a session's start", func(w *world, at target) action {
		s := w.newSession("bob")
		return s.calling(s.starts("startup"))
	}},
	{"hook at a prompt", func(w *world, at target) action {
		s := w.newSession("bob")
		return s.calling(s.prompts())
	}},
	{"hook at a stop", func(w *world, at target) action {
		s := w.working(2)
		s.tell(s.uses()[0])
		return s.calling(s.stops(false))
	}},
	{"hook that settles", func(w *world, at target) action {
		s := w.working(0)
		return s.calling(s.uses()[0])
	}},
	{"hook that settles and hands over", func(w *world, at target) action {
		s := w.working(1)
		uses := s.uses()
		return s.calling(uses[len(uses)-1])
	}},
	{"hook at a session's end", func(w *world, at target) action {
		s := w.working(0)
		return s.calling(s.ends("other"))
	}},
	{"hook that hands over again", func(w *world, at target) action {
		w.working(0)
		w.ageClaims("bob")
		s := w.newSession("bob")
		return s.calling(s.prompts())
	}},
	{"take", func(w *world, at target) action {
		job, had := w.sharedJob(false), false
		return action{
			call: call{args: []string{"take", "dave", "--lease", "1h", "--as", "carol"}, reader: "dave"},
			note: func(r result) { had = had || r.code == 0 && strings.Contains(r.out, "yours until") },
			done: func(c *census) error {
				if err := c.isIn("dave", "new", job); err != nil || !had {
					return err // one killed while it showed has not got it, and nobody has for a moment
				}
				return w.leased(job, "carol")
			},
		}
	}},
	{"ack what was taken", func(w *world, at target) action {
		job := w.sharedJob(true)
		a := moving("dave", "done", job, "ack", job, "--as", "carol", "--json")
		a.once = true
		a.after = func() {
			w.run(call{args: []string{"ack", job, "--as", "carol"}, exits: []int{3, 5}}) // it may have been done
			w.want(a.done(w.census()))
			w.toldOnce("message_acked", job)
		}
		return a
	}},
	{"renew", func(w *world, at target) action {
		job := w.sharedJob(true)
		return w.leasing(job, "carol", "take", "--renew", job, "--lease", "2h", "--as", "carol")
	}},
	{"give back", func(w *world, at target) action {
		job := w.sharedJob(true)
		a := w.leasing(job, "", "unread", job, "--as", "carol")
		a.once = true
		a.after = func() {
			w.run(call{args: []string{"unread", job, "--as", "carol"}, exits: []int{3, 5}})
			w.want(a.done(w.census()))
			w.toldOnce("message_returned", job)
			if !slices.ContainsFunc(w.claims("dave"), func(c claim) bool { return slices.Contains(c.IDs, job) && c.Times == 1 }) {
				w.wrong("it is not known that %s was given out once: %+v", job, w.claims("dave"))
			}
		}
		return a
	}},
	{"pending", func(w *world, at target) action {
		late := w.mail("carol", "--due", "1ms")
		w.mustRun(call{args: []string{"read", "--as", "carol"}, reader: "carol"})
		// What cannot be read is passed over, and hides nothing else.
		return action{call: call{args: []string{"pending"}}, after: func() {
			for range 2 {
				if r := w.must("pending", "--json"); strings.Count(r.out, late) != 1 {
					w.wrong("the late answer to %s is not shown once: %s", late, r)
				}
			}
			for _, f := range w.census().messages {
				if f.Type == "notice" {
					w.wrong("a notice, where no runner tells anybody: %s", f.path)
				}
			}
		}}
	}},
}

// want complains of an error.
func (w *world) want(err error) {
	if err != nil {
		w.wrong("%v", err)
	}
}

func send(w *world, at target) action {
	return w.sending("alice", []string{at.me}, one("--", "stdin", "--file"), "--json", "--once", newID(0))
}

func sendWithoutID(w *world, at target) action {
	a := w.sending("alice", []string{at.me}, "--", one("--ack", "--subject=Words"), "--json")
	a.once = true
	return a
}

func sendToThree(w *world, at target) action {
	a := w.batch(map[string]any{"to": readers, "requires_ack": true, "id": newID(1)})
	a.exits = []int{1}
	return a
}

func sendFile(w *world, at target) action {
	return w.sending("alice", []string{at.me}, "--attach", "--json", "--once", newID(0))
}

func reply(w *world, at target) action {
	w.excuse(at.me, at.owed)
	a := w.sending(at.me, []string{"alice"}, "--", "--json", "--once", newID(0))
	a.args[0], a.args[1], a.exits = "reply", at.owed, []int{3, 5} // withdrawn, or archived
	sent, warned := a.done, false
	a.note = func(r result) {
		warned = strings.HasPrefix(r.err, "atm: sent, but the message you answered is not marked: ")
	}
	a.done = func(c *census) error {
		if err := sent(c); err != nil || warned {
			return err
		}
		return c.isIn(at.me, "done", at.owed)
	}
	return a
}

// ack acknowledges a message that is read, and one that is not.
func ack(w *world, at target) action {
	w.excuse(at.me, at.asks)
	ids := slices.Compact([]string{at.owed, at.asks})
	args := append(append([]string{"ack"}, ids...), "--as", at.me, "--json")
	return action{call: call{args: args, exits: []int{3, 5}}, done: func(c *census) error {
		for _, id := range ids {
			if !slices.ContainsFunc(c.messages, func(f found) bool { return f.agent == "alice" && f.Type == "ack" && f.InReplyTo == id }) {
				return fmt.Errorf("alice has no ack of %s", id)
			}
		}
		return c.isIn(at.me, "done", ids...)
	}}
}

func withdraw(w *world, at target) action {
	a := moving(at.me, "withdrawn", at.unread, "withdraw", at.unread, "--as", "alice")
	a.exits = []int{3, 5, 6}
	return a
}

func unread(w *world, at target) action {
	a := moving(at.me, "new", at.done, "unread", at.done, "--as", at.me)
	a.exits = []int{3, 5} // withdrawn, or archived
	return a
}

func gc(w *world, at target) action {
	return moving(at.me, "archive", at.old, "gc", "--keep", "0s", "--keep-last", "0")
}

func event1(w *world, at target) action { return w.noting(at.me, "--json") }
func stream(w *world, at target) action { return w.streaming(at.me, 5, true) }
func route(w *world, at target) action  { return w.streaming(at.me, 5, true, "--route", "--sync") }

// sending is an action that sends one text: as words behind --, through stdin, or as --file or
// --attach.
func (w *world) sending(from string, to []string, how string, flags ...string) action {
	t, text := w.write()
	w.begin(t, item{kind: "message", from: from}, to...)
	c := call{args: append([]string{"send", strings.Join(to, ","), "--as", from}, flags...), texts: []token{t}}
	switch how {
	case "--":
		c.args = append(c.args, how, text)
	case "stdin":
		c.stdin = text + "\n"
	default:
		file := filepath.Join(w.home, string(t))
		w.want(os.WriteFile(file, []byte(text), 0o600))
		c.args = append(c.args, how, file)
	}
	return w.delivering(c)
}

// batching is an action that sends n texts, some to several, each with its own promise.
func (w *world) batching(n int, ids bool) action {
	var lines []map[string]any
	for i := range n {
		line := map[string]any{"to": readers[:1+i%2], "requires_ack": i%3 == 2}
		if ids || i%3 == 1 {
			line["id"] = newID(i % 3)
		}
		lines = append(lines, line)
	}
	return w.batch(lines...)
}

// batch is an action that sends a text for each line, whose other fields are given.
func (w *world) batch(lines ...map[string]any) action {
	c := call{args: []string{"send", "--batch", "--as", "alice"}}
	for _, line := range lines {
		t, text := w.write()
		w.begin(t, item{kind: "message", from: "alice"}, line["to"].([]string)...)
		c.texts, line["body"] = append(c.texts, t), text
		b, _ := json.Marshal(line)
		c.stdin += string(b) + "\n"
	}
	return w.delivering(c)
}

// delivering is an action that is done when all have got its texts.
func (w *world) delivering(c call) action {
	return action{call: c, done: func(have *census) error {
		for k := range w.items {
			if slices.Contains(c.texts, k.token) && !have.has(k) {
				return fmt.Errorf("%s has not got %s", k.agent, k.token)
			}
		}
		return nil
	}}
}

// moving is an action after which a message is in another place.
func moving(agent, place, id string, args ...string) action {
	return action{call: call{args: args}, done: func(c *census) error { return c.isIn(agent, place, id) }}
}

// leasing is an action after which the lease of a job of dave's is somebody's.
func (w *world) leasing(job, by string, args ...string) action {
	return action{call: call{args: args}, done: func(c *census) error {
		if err := c.isIn("dave", "new", job); err != nil {
			return err
		}
		return w.leased(job, by)
	}}
}

// joining is an action after which these are members, or are none.
func (w *world) joining(want bool, names ...string) action {
	return action{done: func(*census) error {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(w.team(), name, "inbox", "new")); (err == nil) != want {
				return fmt.Errorf("%s: a member: %v", name, err == nil)
			}
		}
		return nil
	}}
}

// mail sends somebody a text, undisturbed, and returns its id.
func (w *world) mail(to string, flags ...string) string {
	return w.mustSend(w.sending("alice", []string{to}, "--", append(flags, "--json")...), to)
}

// mustSend sends one text, and returns its id.
func (w *world) mustSend(a action, to string) string {
	w.mustRun(a.call)
	return w.idOf(to, a)
}

// idOf is the id of the one text that an action has sent; "": it has not said that it is in.
func (w *world) idOf(to string, a action) string {
	defer w.locked()()
	return w.items[key{to, a.texts[0]}].id
}

// sharedJob makes dave's inbox a shared one with a message, which carol has taken, or nobody has.
func (w *world) sharedJob(taken bool) (id string) {
	w.must("team", "add", "dave", "--shared")
	id = w.mail("dave")
	if taken {
		w.mustRun(call{args: []string{"take", "dave", "--lease", "1h", "--as", "carol"}, reader: "dave"})
	}
	return id
}

// leased says whether the lease of a job of dave's is somebody's; "": nobody's.
func (w *world) leased(job, want string) error {
	by := ""
	for _, c := range w.claims("dave") {
		if slices.Contains(c.IDs, job) && c.Until.After(time.Now()) {
			by = strings.TrimPrefix(c.Owner, "lease:")
		}
	}
	if by != want {
		return fmt.Errorf("the lease of %s is %q's, not %q's", job, by, want)
	}
	return nil
}

// toldOnce complains when dave's log tells something of a job more than once.
func (w *world) toldOnce(kind, job string) {
	n := 0
	for _, e := range w.census().logs["dave"] {
		if e.Kind == kind && strings.Contains(e.line, job) {
			n++
		}
	}
	if n > 1 {
		w.wrong("%s of %s is told %d times", kind, job, n)
	}
}
