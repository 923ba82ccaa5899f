//go:build unix

package crashtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// drop puts a file into somebody's inbox: text, JSON, what is no JSON, an event, what is too large
// for a message; with mv, with cp, or slowly and perhaps not to its end.
func (w *world) drop() {
	me := one(readers...)
	t, text := w.write()
	name := "note-" + string(t)
	content := []byte(text)
	if testround.Rand.IntN(2) == 0 {
		name += ".json"
		content, _ = json.Marshal(one(
			map[string]any{"body": text, "requires_ack": testround.Rand.IntN(2) == 0},
			map[string]any{"body": text, "from": "alice", "id": newID(testround.Rand.IntN(3))},
			map[string]any{"event_type": "agent_output", "stream": "std_out", "content": text}))
		if testround.Rand.IntN(4) == 0 {
			content = []byte(`{"body": "` + strings.ReplaceAll(text, "\n", " "))
		}
	} else if testround.Rand.IntN(32) == 0 {
		content = append(content, make([]byte, 1200_000)...) // binary, and long
	}
	w.begin(t, item{kind: "drop", from: name, cut: true}, me)
	var isThere, isWhole bool
	at := filepath.Join(w.team(), me, "inbox", one("", "", "", "new"), name)
	switch testround.Rand.IntN(4) {
	case 0, 1:
		isThere, isWhole = w.moveIn(at, content, string(t))
	case 2:
		isThere, isWhole = w.writeSlowly(at, content, len(content))
	case 3: // whoever wrote it died, perhaps before the end
		head := headLine.FindIndex(content)[1]
		isThere, isWhole = w.writeSlowly(at, content, head+testround.Rand.IntN(len(content)-head+1))
	}
	defer w.locked()()
	it := w.items[key{me, t}]
	it.promised, it.cut = isThere, !isWhole
}

// moveIn writes a file beside, and has mv or cp take it in, which may be killed. It reports whether
// the file is there for certain, and whether all of it is.
func (w *world) moveIn(at string, content []byte, name string) (there, whole bool) {
	aside := one(at+".part", filepath.Join(w.root, ".aside-"+name))
	defer os.Remove(aside)
	if os.WriteFile(aside, content, 0o600) != nil || !w.durable(aside) {
		return false, false
	}
	tool := one("mv", "cp")
	cmd := exec.Command(tool, aside, at)
	if cmd.Start() != nil {
		return false, false
	}
	if d := mortal(); d > 0 {
		defer time.AfterFunc(d, func() { cmd.Process.Kill() }).Stop()
	}
	err := cmd.Wait()
	if tool == "mv" {
		return err == nil && w.durable(filepath.Dir(at)), true
	}
	return err == nil && w.durable(at, filepath.Dir(at)), err == nil
}

// writeSlowly writes n bytes of content piece by piece.
func (w *world) writeSlowly(at string, content []byte, n int) (there, whole bool) {
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, false
	}
	defer f.Close()
	for left := content[:n]; len(left) > 0; pause(3) {
		m := 1 + testround.Rand.IntN(len(left))
		if _, err := f.Write(left[:m]); err != nil {
			return false, false
		}
		left = left[m:]
	}
	if w.cuts && f.Sync() != nil {
		return false, false
	}
	return w.durable(filepath.Dir(at)), n == len(content)
}

// durable makes files or directories durable where the power may be cut, and reports whether they
// are. A dropped file may have been taken away meanwhile: then nobody knows.
func (w *world) durable(paths ...string) bool {
	for _, path := range paths {
		if !w.cuts {
			return true
		}
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		err = f.Sync()
		// An xfs that has shut itself down says that a directory is synced; what it says to a stat is
		// the truth.
		_, e := f.Stat()
		f.Close()
		if err != nil || e != nil {
			return false
		}
	}
	return true
}

// dropNote lays a small file in bob's inbox.
func (w *world) dropNote() {
	t, text := write(300)
	w.want(os.WriteFile(filepath.Join(w.team(), "bob", "inbox", "note.txt"), []byte(text), 0o600))
	w.begin(t, item{kind: "drop", from: "note.txt", promised: true}, "bob")
}
