//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// loggers are whose logs events are written to.
var loggers = []string{"alice", "bob", "carol", "dave"}

// syncedToo adds --sync to some.
func (w *world) syncedToo(args []string) (all []string, sync bool) {
	if sync = rand.IntN(3) == 0; sync {
		args = append(args, "--sync")
	}
	return args, sync
}

// event notes one event.
func (w *world) event() {
	me := one(loggers)
	t, text := write(someSize())
	args, sync := w.syncedToo([]string{"event", "agent_output", "stream=std_out", "content=" + text, "--as", me})
	w.happens(t, me, sync)
	r := w.run(call{args: args, kill: mortal()})
	var seq uint64
	if n, _ := fmt.Sscanf(r.out, "event agent_output, seq %d\n", &seq); n == 1 && strings.HasSuffix(r.out, "\n") {
		w.happened(t, seq)
	}
	w.expect(r, 0)
}

// eventLine is one line for atm event --stdin: a session channel's, or one of
// no known kind that names an agent.
func eventLine(agent, id, text string) string {
	fields := map[string]any{"event_type": "agent_output", "stream": "std_out", "content": text}
	if agent != "" {
		fields = map[string]any{"kind": "note", "agent": agent, "text": text}
	}
	if id != "" {
		fields["event_id"] = id
	}
	b, _ := json.Marshal(fields)
	return string(b) + "\n"
}

// printedEvents notes what atm event --json says is in.
func (w *world) printedEvents(out string) {
	for line := range strings.Lines(out) {
		var e logLine
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &e) != nil || e.Seq == 0 {
			continue
		}
		if t, _ := tokenOf(e.text()); t != "" {
			w.happened(t, e.Seq)
		}
	}
}

// stream pipes events in as they come; each line that it prints is a promise.
func (w *world) stream() {
	me := one(loggers)
	args, sync := w.syncedToo([]string{"event", "--stdin", "--json", "--as", me})
	route := rand.IntN(3) == 0
	if route {
		args = append(args, "--route")
	}
	in, feed, err := os.Pipe()
	if err != nil {
		w.t.Error(err)
		return
	}
	defer in.Close()
	var lines []string
	for range 1 + rand.IntN(30) {
		t, text := write(someSize())
		to, name := me, ""
		if route {
			to = one(loggers)
			name = to
		}
		w.happens(t, to, sync)
		lines = append(lines, eventLine(name, "", text))
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
	r := w.run(call{args: args, stdin: in, kill: mortal()})
	w.printedEvents(r.out)
	w.expect(r, 0)
}

// eventTwice gives the same events, by their ids, to two processes at once, and
// once more: exit 0 is the promise, and each is in once.
func (w *world) eventTwice() {
	me := one(readers)
	var tokens []token
	var lines strings.Builder
	args, synced := w.syncedToo([]string{"event", "--stdin", "--as", me})
	for range 1 + rand.IntN(4) {
		t, text := write(rand.IntN(500))
		w.happens(t, me, synced)
		tokens = append(tokens, t)
		lines.WriteString(eventLine("", "id-"+string(t), text))
	}
	try := func() {
		r := w.run(call{args: args, text: lines.String(), kill: mortal()})
		w.expect(r, 0)
		if r.code == 0 {
			for _, t := range tokens {
				w.happened(t, 0)
			}
		}
	}
	var both sync.WaitGroup
	both.Go(try)
	both.Go(try)
	both.Wait()
	try()
}

// segmentSize is from where on a segment is followed by a new one.
const segmentSize = 16 << 20

// fill makes alice's newest segment full, so that the next event begins another;
// at most so many times, since it takes room. Hers, since an event's id is known
// for a MiB only, and the others rely on that.
func (w *world) fill(most int) {
	w.mu.Lock()
	full := w.count["segments filled"] >= most
	if !full {
		w.count["segments filled"]++
	}
	w.mu.Unlock()
	if full {
		time.Sleep(50 * time.Millisecond)
		return
	}
	w.fillLog("alice", mortal)
}

// never is the life of a process that is not killed.
func never() time.Duration { return 0 }

// fillLog appends large events until the newest segment is full.
func (w *world) fillLog(me string, kill func() time.Duration) {
	for !w.isBroken() {
		segs := w.segments(me)
		if len(segs) > 0 {
			if info, err := os.Stat(segs[len(segs)-1]); err == nil && info.Size() >= segmentSize {
				return
			}
		}
		t, text := write(3_700_000)
		w.happens(t, me, false)
		r := w.run(call{args: []string{"event", "--stdin", "--json", "--as", me}, text: eventLine("", "", text), kill: 4 * kill()})
		w.printedEvents(r.out)
		w.expect(r, 0)
	}
}

// tear leaves the beginning of a line at the end of somebody's log, as a kill in
// the middle of a large write does.
func (w *world) tear() {
	time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	me := one(loggers)
	lock, err := os.OpenFile(filepath.Join(w.team(), ".locks", me+".events"), os.O_RDONLY, 0)
	if err != nil {
		return // nobody has written yet
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		w.wrong("%v", err)
		return
	}
	segs := w.segments(me)
	if len(segs) == 0 {
		return
	}
	f, err := os.OpenFile(segs[len(segs)-1], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		w.wrong("%v", err)
		return
	}
	defer f.Close()
	line := `{"seq":1000000,"at":"2026-11-20T09:46:47.635359455Z","team":"main","agent":"` + me + `","source":"cli","kind":"torn"}`
	if _, err := f.WriteString(line[:1+rand.IntN(len(line))]); err != nil {
		w.wrong("%v", err)
	}
	w.add("lines torn", 1)
}

// follower reads an agent's events as they come.
type follower struct {
	*world
	agent string
	last  uint64
}

// follow reads on until over, by one process after another, each of them
// killed.
func (f *follower) follow(over func() bool) {
	for !over() {
		kill := time.Duration(20+rand.IntN(1500)) * time.Millisecond
		f.take(f.run(call{args: []string{"events", f.agent, "--follow", "--json", "--since", fmt.Sprint(f.last)}, kill: kill}))
	}
}

// end reads what is left, and expects it to be all.
func (f *follower) end(c *census) {
	r := f.must("events", f.agent, "--json", "--since", fmt.Sprint(f.last))
	f.take(r)
	lines := c.logs[f.agent]
	if n := len(lines); n > 0 && lines[n-1].Seq != f.last {
		f.t.Errorf("who followed the events of %s ends at %d, the log at %d", f.agent, f.last, lines[n-1].Seq)
	}
}

// take checks what a process printed: each number once, none missing but what
// is in the archive, and that is said.
func (f *follower) take(r result) {
	f.expect(r, 0, 130)
	archived := f.folded(f.agent)
	for out := []byte(r.out); ; {
		line, rest, whole := bytes.Cut(out, []byte{'\n'})
		if !whole {
			return
		}
		out = rest
		type gap struct {
			From uint64 `json:"from"`
			To   uint64 `json:"to"`
		}
		var e struct {
			Seq      uint64 `json:"seq"`
			Gap      *gap   `json:"gap"`
			Archived *gap   `json:"archived"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			f.wrong("events --json prints %s: %v", clip(string(line)), err)
			return
		}
		if g := e.Archived; g != nil {
			if g.From != f.last+1 || g.To > archived {
				f.wrong("events of %s, %d to %d are said to be in the archive, after %d, where %d are there", f.agent, g.From, g.To, f.last, archived)
			}
			f.last = g.To
			f.add("events followed too late", 1)
			continue
		}
		if g := e.Gap; g != nil {
			f.wrong("events of %s, %d to %d, are said to be missing", f.agent, g.From, g.To)
			f.last = g.To
			continue
		}
		if e.Seq != f.last+1 {
			f.wrong("events of %s: %d follows %d", f.agent, e.Seq, f.last)
		}
		f.last = e.Seq
		f.add("events followed", 1)
	}
}
