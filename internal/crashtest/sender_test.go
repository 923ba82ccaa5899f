//go:build unix

package crashtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// mortal is after how long a process is killed: one in three is.
func mortal() time.Duration {
	if rand.IntN(3) > 0 {
		return 0
	}
	return time.Duration(300+rand.IntN(1<<(6+rand.IntN(11)))) * time.Microsecond
}

// expect notes an exit code that nothing explains.
func (w *world) expect(r result, codes ...int) {
	switch {
	case r.code == -1:
		w.add("killed", 1)
	case (r.code == 5 || r.code == 1 && r.args[0] == "event") && strings.Contains(r.out+r.err, " is held by "):
		w.add("locks not got", 1) // five seconds may pass on a busy machine
	case !slices.Contains(codes, r.code) && !w.isBroken():
		w.wrong("exit code: %s", r)
	}
}

var readers = []string{"bob", "carol", "dave"}

// everyone has the spare agent with them, who is retired from time to time.
var everyone = []string{"bob", "carol", "dave", "erin"}

func one(of []string) string { return of[rand.IntN(len(of))] }

// send sends a text to one: as words, through stdin, from a file.
func (w *world) send() {
	from, to := one([]string{"alice", "dave"}), one(everyone)
	t, text := write(someSize())
	w.begin(t, from, to)
	c := call{args: []string{"send", to, "--as", from, "--json"}, kill: mortal()}
	switch rand.IntN(4) {
	case 0:
		c.stdin = strings.NewReader(text + "\n")
	case 1:
		file := filepath.Join(w.home, string(t))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			w.t.Error(err)
			return
		}
		defer os.Remove(file)
		c.args = append(c.args, "--file", file)
	default:
		c.args = append(c.args, "--", text)
	}
	if rand.IntN(3) == 0 {
		c.args = slices.Insert(c.args, 1, "--ack")
	}
	r := w.run(c)
	w.stored(t, r)
	if to == "erin" {
		w.expect(r, 0, 3)
	} else {
		w.expect(r, 0)
	}
}

// say is send for people: the line has the end of the id only.
func (w *world) say() {
	to := one(readers)
	t, text := write(someSize())
	id := newID(0)
	w.begin(t, "alice", to)
	r := w.run(call{args: []string{"send", "--as", "alice", to, "--id", id, "--", text}, kill: mortal()})
	if strings.HasPrefix(r.out, "sent "+id[30:]+" to "+to+" (") && strings.HasSuffix(r.out, "\n") {
		var p printed
		json.Unmarshal(fmt.Appendf(nil, `{"id":%q,"delivered":[{"to":%q}]}`, id, to), &p)
		w.promise(t, p)
	}
	w.expect(r, 0)
}

// newID is a UUIDv7 of so many days ago.
func newID(days int) string {
	ms := time.Now().AddDate(0, 0, -days).UnixMilli()
	a, b := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%x%03x-%012x", ms>>16, ms&0xffff, a&0xfff, 8+a>>12&3, a>>16&0xfff, b&0xffffffffffff)
}

// sendOnce sends the same id by two processes at once, and again later.
func (w *world) sendOnce() {
	to := []string{one(readers)}
	if rand.IntN(3) == 0 {
		to = slices.Clone(everyone[:2+rand.IntN(3)])
	}
	t, text := write(someSize())
	args := []string{"send", strings.Join(to, ","), "--as", "alice", "--json", "--id", newID(rand.IntN(4)), "--", text}
	if rand.IntN(3) == 0 {
		args = slices.Insert(args, 1, "--ack")
	}
	w.begin(t, "alice", to...)
	try := func() {
		r := w.run(call{args: args, kill: mortal()})
		w.stored(t, r)
		w.expect(r, 0, 6)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			try()
		})
	}
	both.Wait()
	w.mu.Lock()
	w.retries = append(w.retries, try)
	w.mu.Unlock()
}

// sendAgain sends an id again that was sent some time ago: it may have been
// read meanwhile, put back, withdrawn or archived.
func (w *world) sendAgain() {
	w.mu.Lock()
	var try func()
	if n := len(w.retries); n > 0 {
		try = w.retries[rand.IntN(n)]
	}
	w.mu.Unlock()
	if try != nil {
		try()
		w.add("sent again", 1)
	}
}

// sendAll sends to four at once, one of whom may not be there.
func (w *world) sendAll() {
	t, text := write(someSize())
	w.begin(t, "alice", everyone...)
	r := w.run(call{args: []string{"send", strings.Join(everyone, ","), "--as", "alice", "--json", "--", text}, kill: mortal()})
	w.stored(t, r)
	w.expect(r, 0, 6)
}

// attach sends a text as a file.
func (w *world) attach() {
	to := one(readers)
	t, text := write(someSize())
	w.begin(t, "alice", to)
	file := filepath.Join(w.home, string(t))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Error(err)
		return
	}
	defer os.Remove(file)
	r := w.run(call{args: []string{"send", to, "--as", "alice", "--json", "--attach", file}, kill: mortal()})
	w.stored(t, r)
	w.expect(r, 0)
}

// batch sends lines as they come; each has its own promise.
func (w *world) batch() {
	n := 1 + rand.IntN(20)
	tokens := make([]token, n)
	in, feed, err := os.Pipe()
	if err != nil {
		w.t.Error(err)
		return
	}
	defer in.Close()
	var lines []string
	for i := range n {
		t, text := write(someSize())
		tokens[i] = t
		to := []string{one(readers)}
		if rand.IntN(4) == 0 {
			to = readers
		}
		w.begin(t, "dave", to...)
		line := map[string]any{"to": to, "body": text, "requires_ack": rand.IntN(3) == 0}
		if rand.IntN(3) == 0 {
			line["id"] = newID(rand.IntN(3))
		}
		b, _ := json.Marshal(line)
		lines = append(lines, string(b)+"\n")
	}
	go func() {
		defer feed.Close()
		for _, l := range lines {
			if rand.IntN(5) == 0 {
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
			}
			if _, err := feed.WriteString(l); err != nil {
				return
			}
		}
	}()
	r := w.run(call{args: []string{"send", "--batch", "--as", "dave"}, stdin: in, kill: mortal()})
	for out := bufio.NewScanner(strings.NewReader(r.out)); out.Scan(); {
		var p printed
		if json.Unmarshal(out.Bytes(), &p) == nil && p.Line >= 1 && p.Line <= n {
			w.promise(tokens[p.Line-1], p)
		}
	}
	w.expect(r, 0)
}

// listed are messages as ls prints them.
func (w *world) listed(args ...string) []found {
	r := w.run(call{args: append([]string{"ls", "--json"}, args...), kill: mortal()})
	w.expect(r, 0)
	var list struct {
		Messages []letter `json:"messages"`
	}
	if json.Unmarshal([]byte(r.out), &list) != nil {
		return nil
	}
	out := make([]found, len(list.Messages))
	for i, m := range list.Messages {
		out[i].letter = m
		out[i].token, out[i].whole = tokenOf(m.Body)
		if out[i].token != "" && !out[i].whole && !strings.HasPrefix(m.From, "drop@") {
			w.wrong("ls shows a torn message: %s", m.ID)
		}
	}
	return out
}

// answer acknowledges or answers what some reader has.
func (w *world) answer() {
	me := one(readers)
	args := []string{"--limit", "5", "--as", me, []string{"--owed", "--owed", "--done"}[rand.IntN(3)]}
	if me == "carol" && rand.IntN(2) == 0 {
		args = args[:4] // unread: the answer reads it
	}
	list := w.listed(args...)
	if len(list) == 0 {
		return
	}
	m := list[rand.IntN(len(list))]
	from, _, _ := strings.Cut(m.From, "@")
	if from == "drop" || from == me || m.Type != "" {
		return
	}
	if me == "carol" {
		w.excuse(me, m.ID)
	}
	if rand.IntN(3) > 0 || m.InReplyTo != "" {
		r := w.run(call{args: []string{"ack", m.ID, "--as", me, "--json"}, kill: mortal()})
		w.acked(r)
		w.expect(r, 0)
		return
	}
	t, text := write(someSize())
	w.begin(t, me, from)
	r := w.run(call{args: []string{"reply", m.ID, "--as", me, "--json", "--", text}, kill: mortal()})
	w.stored(t, r)
	w.expect(r, 0)
}

// withdraw takes back what alice sent not long ago.
func (w *world) withdraw() {
	id := w.some("alice")
	if id == "" {
		time.Sleep(10 * time.Millisecond)
		return
	}
	r := w.run(call{args: []string{"withdraw", id, "--as", "alice", "--json"}, kill: mortal()})
	w.expect(r, 0, 3, 5, 6)
	w.add("withdrawals", 1)
}

// unread puts something of carol's back.
func (w *world) unread() {
	list := w.listed([]string{"--done", "--owed"}[rand.IntN(2)], "--limit", "5", "--as", "carol")
	if len(list) == 0 {
		return
	}
	r := w.run(call{args: []string{"unread", list[rand.IntN(len(list))].ID, "--as", "carol"}, kill: mortal()})
	if r.code == 5 && strings.Contains(r.err, "withdrawn by its sender") {
		return // since it was listed
	}
	w.expect(r, 0)
	w.add("put back", 1)
}
