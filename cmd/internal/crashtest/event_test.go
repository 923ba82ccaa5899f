//go:build unix

package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// noting is an action that appends one event, given as words.
func (w *world) noting(me string, flags ...string) action {
	t, text := w.write()
	args := []string{"event", "agent_output", "stream=std_out", "content=" + text, "event_id=id-" + string(t), "--as", me}
	return w.appending(call{args: append(args, flags...), events: []key{{me, t}}})
}

// streaming is an action that pipes in n events: of a session channel, or with --route of no known
// kind, to several agents; ids makes it safe to give them once more.
func (w *world) streaming(me string, n int, ids bool, flags ...string) action {
	c := call{args: append([]string{"event", "--stdin", "--json", "--as", me}, flags...)}
	for i := range n {
		to := me
		t, text := w.write()
		fields := map[string]any{"event_type": "agent_output", "stream": "std_out", "content": text}
		if slices.Contains(flags, "--route") {
			to = readers[i%2]
			fields = map[string]any{"kind": "note", "agent": to, "text": text}
		}
		if ids {
			fields["event_id"] = "id-" + string(t)
		}
		b, _ := json.Marshal(fields)
		c.stdin += string(b) + "\n"
		c.events = append(c.events, key{to, t})
	}
	return w.appending(c)
}

// appending is an action that is done when its events are in the logs.
func (w *world) appending(c call) action {
	for _, k := range c.events {
		w.begin(k.token, item{kind: "event", sync: slices.Contains(c.args, "--sync")}, k.agent)
	}
	return action{call: c, done: func(have *census) error {
		places := have.places()
		for _, k := range c.events {
			if len(places[k]) == 0 {
				return fmt.Errorf("event %s of %s is not in", k.token, k.agent)
			}
		}
		return nil
	}}
}

// fillLog appends large events until the newest segment is full, so that the next event begins
// another.
func (w *world) fillLog(me string, kill func() time.Duration) {
	large := *w
	large.size = 3_700_000
	for !w.isBroken() {
		if segs := w.segments(me); len(segs) > 0 {
			if info, err := os.Stat(segs[len(segs)-1]); err == nil && info.Size() >= 16<<20 {
				return
			}
		}
		a := large.streaming(me, 1, false)
		a.kill = 4 * kill()
		w.run(a.call)
	}
}

func never() time.Duration { return 0 }

// fill fills alice's log, at most so many times, since it takes room. Hers, since an event's id is
// known for a MiB only, and the others rely on that.
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

// tear leaves the beginning of a line at the end of somebody's log, as a kill in the middle of a
// large write does.
func (w *world) tear() {
	pause(100)
	me := one(readers...)
	lock, err := os.Open(filepath.Join(w.team(), ".locks", me+".events"))
	if err != nil {
		return // nobody has written yet
	}
	defer lock.Close()
	w.want(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	line := `{"seq":1000000,"at":"2026-11-20T09:46:47.635359455Z","team":"main","agent":"` + me + `","source":"cli","kind":"torn"}`
	w.tearLog(me, line[:1+testround.Rand.IntN(len(line)-1)])
}

// tearLog writes something behind the last line of a log, and returns where.
func (w *world) tearLog(me, half string) (path string) {
	segs := w.segments(me)
	if len(segs) == 0 {
		return ""
	}
	path = segs[len(segs)-1]
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(half)
		f.Close()
	}
	w.want(err)
	w.add("lines torn", 1)
	return path
}

// follower reads an agent's events as they come.
type follower struct {
	*world
	agent string
	last  uint64
}

// follow reads on until over, by one process after another, each of them killed.
func (f *follower) follow(over func() bool) {
	for !over() {
		kill := time.Duration(20+testround.Rand.IntN(1500)) * time.Millisecond
		args := []string{"events", f.agent, "--follow", "--json", "--since", fmt.Sprint(f.last)}
		f.read(f.run(call{args: args, kill: kill, exits: []int{130}}))
	}
}

// end reads what is left, and expects it to be all.
func (f *follower) end(c *census) {
	f.read(f.must("events", f.agent, "--json", "--since", fmt.Sprint(f.last)))
	if lines := c.logs[f.agent]; len(lines) > 0 && lines[len(lines)-1].Seq != f.last {
		f.wrong("the follower of the events of %s ends at %d, the log at %d", f.agent, f.last, lines[len(lines)-1].Seq)
	}
}

// read checks what a process printed: each number once, and none missing.
func (f *follower) read(r result) {
	for line := range strings.Lines(r.out) {
		if !strings.HasSuffix(line, "\n") {
			return
		}
		var e struct {
			Seq   uint64
			Error *struct{} // it could not go on, and says so
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.wrong("events --json prints %s: %v", clip(line), err)
			return
		}
		if e.Error != nil {
			return
		}
		if e.Seq <= f.last || e.Seq > f.last+1 && !f.isBroken() { // else the archive may be what cannot be read
			f.wrong("events of %s: %d follows %d", f.agent, e.Seq, f.last)
		}
		f.last = e.Seq
		f.add("events followed", 1)
	}
}

// see asks what somebody does, and is killed while it folds the events or writes the fold down.
func (w *world) see() {
	me := one(readers...)
	args := one([]string{"status", me, "--json"}, []string{"team", "--json"}, []string{"status", me}, []string{"team"},
		[]string{"wait", "--idle", me, "--timeout", "100ms"}, []string{"events", me, "--limit", "20"}, []string{"watch", "--since", "1s", "--no-follow"})
	r := w.try(call{args: args, exits: []int{4}})
	if r.code == 0 && args[len(args)-1] == "--json" && !json.Valid([]byte(r.out)) {
		w.wrong("it prints no JSON: %s", r)
	}
	if testround.Rand.IntN(4) == 0 {
		w.spoil(me, one("gone", "torn", "zeros", "old"))
	}
}

func (w *world) stateFile(agent string) string { return filepath.Join(w.team(), agent, "state.json") }

// spoil does to a state.json what anybody may do, and what a power cut does: it is a cache.
func (w *world) spoil(agent, how string) {
	path := w.stateFile(agent)
	var err error
	switch how {
	case "gone":
		err = os.Remove(path)
	case "torn":
		err = os.Truncate(path, int64(testround.Rand.IntN(200)))
	case "zeros":
		err = os.WriteFile(path, make([]byte, 100), 0o600)
	case "old":
		err = os.WriteFile(path, []byte(`{"version":1,"seq":1,"crc":1,"state":{}}`), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !w.isBroken() {
		w.wrong("spoil state.json: %v", err)
	}
}

// status is what atm says of an agent.
func (w *world) status(agent string) string {
	w.t.Helper()
	return without(w.must("status", agent, "--json").out)
}

// without is a JSON object without some members, and without the presence, which is a matter of
// how long ago something was heard.
func without(out string, names ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(out), &fields) != nil {
		return "no JSON: " + out
	}
	for _, name := range append(names, "presence") {
		delete(fields, name)
	}
	b, _ := json.Marshal(fields)
	return string(b)
}

// sameStatus compares what two calls of status printed of the events. What waits in the mailbox is
// told as far as it can be read.
func sameStatus(got, want string) error {
	mail := []string{"unread", "owed", "owes_to", "bad"}
	if got, want := without(got, mail...), without(want, mail...); got != want {
		return fmt.Errorf("the status is\n%s\nand should be\n%s", got, want)
	}
	return nil
}

// judgeStatus: what is said of an agent is in the events: a state.json that is gone, torn, or of a
// log that is no more changes nothing. Nobody may be at work.
func (w *world) judgeStatus(agents ...string) {
	w.t.Helper()
	for _, agent := range agents {
		want := w.status(agent)
		for _, how := range []string{"gone", "torn", "zeros", "old", "asked again"} {
			w.spoil(agent, how)
			if got := w.status(agent); got != want {
				w.wrong("the status of %s, its state.json %s:\n%s\nand it was\n%s", agent, how, got, want)
			}
		}
	}
}

// judgeArchive: the events in the archive count: put back, they say the same.
func (w *world) judgeArchive(agents ...string) {
	w.t.Helper()
	other := w.at(w.root + "-unarchived")
	w.copyTo(w.t, other.root)
	defer os.RemoveAll(other.root)
	for _, agent := range agents {
		events := filepath.Join(other.team(), agent, "events")
		archived, _ := filepath.Glob(filepath.Join(other.team(), ".archive", agent, "events", "*.ndjson"))
		if len(archived) == 0 {
			continue
		}
		w.add("segments archived", len(archived))
		for _, path := range archived {
			w.want(os.Rename(path, filepath.Join(events, filepath.Base(path))))
		}
		other.spoil(agent, "gone")
		if got, want := other.status(agent), w.status(agent); got != want {
			w.wrong("the status of %s from all its events:\n%s\nand from those in the archive:\n%s", agent, got, want)
		}
	}
}

// splitLog makes two segments of the newest, as if the first were full. Nobody may be at work.
func (w *world) splitLog(agent string) {
	w.t.Helper()
	segs := w.segments(agent)
	path := segs[len(segs)-1]
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	at := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	var last logLine
	w.want(json.Unmarshal(data[at:], &last))
	w.want(os.WriteFile(filepath.Join(filepath.Dir(path), fmt.Sprintf("%020d.ndjson", last.Seq)), data[at:], 0o600))
	w.want(os.Truncate(path, int64(at)))
}
