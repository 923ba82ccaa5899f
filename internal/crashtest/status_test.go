//go:build unix

package crashtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// see asks what somebody does, and is killed while it folds or writes the fold
// down.
func (w *world) see() {
	me := one(loggers)
	args := [][]string{
		{"status", me, "--json"}, {"status", me}, {"team", "--json"}, {"team"},
		{"wait", "--idle", me, "--timeout", "100ms"}, {"events", me, "--limit", "20"}, {"watch", "--since", "1s", "--no-follow"},
	}[rand.IntN(7)]
	r := w.run(call{args: args, kill: mortal()})
	w.expect(r, 0, 4)
	if r.code == 0 && args[len(args)-1] == "--json" && !json.Valid([]byte(r.out)) {
		w.wrong("it prints no JSON: %s", r)
	}
	if rand.IntN(4) == 0 {
		w.spoil(me)
	}
}

func (w *world) stateFile(agent string) string { return filepath.Join(w.team(), agent, "state.json") }

// spoils are what anybody may do to a state.json, and what a power cut does: it is
// a cache.
var spoils = map[string]func(path string) error{
	"gone":  os.Remove,
	"torn":  func(path string) error { return os.Truncate(path, int64(rand.IntN(200))) },
	"zeros": func(path string) error { return os.WriteFile(path, make([]byte, 100), 0o600) },
	"old": func(path string) error {
		return os.WriteFile(path, []byte(`{"version":1,"seq":1,"crc":1,"state":{}}`), 0o600)
	},
}

// spoil does one of them.
func (w *world) spoil(agent string) {
	for _, f := range spoils { // in no order
		if err := f(w.stateFile(agent)); err != nil && !errors.Is(err, fs.ErrNotExist) && !w.isBroken() {
			w.wrong("spoil state.json: %v", err)
		}
		return
	}
}

// status is what atm says of an agent; without its presence, which is a matter
// of how long ago something was heard.
func (w *world) status(agent string) string {
	w.t.Helper()
	r := w.must("status", agent, "--json")
	return without(r.out)
}

// without is a JSON object without some members, and without its presence.
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

// judgeStatus: what is said of an agent is in the events: a state.json that is
// gone, torn, or of a log that is no more changes nothing, nor does it that old
// events are in the archive. Nobody may be at work.
func (w *world) judgeStatus(t reporter, agents ...string) {
	t.Helper()
	for _, agent := range agents {
		want := w.status(agent)
		same := func(how string) {
			if got := w.status(agent); got != want {
				t.Errorf("the status of %s, %s:\n%s\nand it was\n%s", agent, how, got, want)
			}
		}
		for how, f := range spoils {
			if err := f(w.stateFile(agent)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
			same("its state.json " + how)
		}
		same("asked again")
	}
}

// judgeArchive: the fold up to what is in the archive is that of the events
// there: put back, they say the same.
func (w *world) judgeArchive(t reporter, agents ...string) {
	t.Helper()
	other := *w
	other.root = w.root + "-unarchived"
	if err := copyTree(w.root, other.root); err != nil {
		t.Errorf("%v", err)
		return
	}
	defer os.RemoveAll(other.root)
	for _, agent := range agents {
		events := filepath.Join(other.team(), agent, "events")
		archived, _ := filepath.Glob(filepath.Join(other.team(), ".archive", agent, "events", "*.ndjson"))
		if len(archived) == 0 {
			continue
		}
		w.add("segments archived", len(archived))
		for _, path := range archived {
			if err := os.Rename(path, filepath.Join(events, filepath.Base(path))); err != nil {
				t.Errorf("%v", err)
			}
		}
		for _, path := range []string{filepath.Join(events, "base.json"), other.stateFile(agent)} {
			if err := os.Remove(path); err != nil && !strings.HasSuffix(path, "state.json") {
				t.Errorf("%v", err)
			}
		}
		if got, want := other.status(agent), w.status(agent); got != want {
			t.Errorf("the status of %s from all its events:\n%s\nand from the base:\n%s", agent, got, want)
		}
	}
}
