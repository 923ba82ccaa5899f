//go:build unix

package crashtest

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// dropIn puts a file into somebody's inbox: text, JSON, what is no JSON, an
// event, what is too large for a message; with mv, with cp, or slowly.
func (w *world) dropIn() {
	me := one(readers)
	t, text := write(someSize())
	d := drop{name: "note-" + string(t)}
	content := []byte(text)
	switch rand.IntN(8) {
	case 0:
		content, _ = json.Marshal(map[string]any{"body": text, "requires_ack": rand.IntN(2) == 0})
		d.name += ".json"
	case 1:
		content, _ = json.Marshal(map[string]any{"body": text, "from": "alice", "id": newID(rand.IntN(3))})
		d.name += ".json"
	case 2:
		content = []byte(`{"body": "` + strings.ReplaceAll(text, "\n", " "))
		d.name += ".json"
	case 3:
		content, _ = json.Marshal(map[string]any{"event_type": "agent_output", "stream": "std_out", "content": text})
		d.name += ".json"
	case 4:
		if rand.IntN(8) == 0 {
			content = append(content, make([]byte, 1200_000)...) // binary, and long
		}
	}
	w.lay(me, t, d)
	into := filepath.Join(w.team(), me, "inbox")
	if rand.IntN(4) == 0 {
		into = filepath.Join(into, "new")
	}
	there, whole := w.put(into, d.name, content, string(t))
	w.laid(me, t, there, whole)
}

// put writes a file and reports whether it is there for certain, and whether
// all of it is.
func (w *world) put(into, name string, content []byte, scratch string) (there, whole bool) {
	at := filepath.Join(into, name)
	aside := filepath.Join(w.root, ".aside-"+scratch)
	if rand.IntN(2) == 0 {
		aside = at + ".part"
	}
	switch rand.IntN(4) {
	case 0, 1:
		defer os.Remove(aside)
		if !w.written(aside, content) {
			return false, false
		}
		tool := []string{"mv", "cp"}[rand.IntN(2)]
		cmd := exec.Command(tool, aside, at)
		if cmd.Start() != nil {
			return false, false
		}
		if d := mortal(); d > 0 {
			defer time.AfterFunc(d, func() { cmd.Process.Kill() }).Stop()
		}
		err := cmd.Wait()
		if tool == "mv" {
			return err == nil && w.durable(into), true
		}
		return err == nil && w.durable(at, into), err == nil
	case 2: // slowly, and to the end
		return w.slowly(at, content, len(content))
	}
	// Slowly, and not always to the end: whoever wrote it died.
	n := headLine.FindIndex(content)[1]
	if n += rand.IntN(1 + len(content)); n > len(content) {
		n = len(content)
	}
	return w.slowly(at, content, n)
}

// slowly writes n bytes of content piece by piece.
func (w *world) slowly(at string, content []byte, n int) (there, whole bool) {
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, false
	}
	defer f.Close()
	for left := content[:n]; len(left) > 0; {
		m := 1 + rand.IntN(len(left))
		if _, err := f.Write(left[:m]); err != nil {
			return false, false
		}
		left = left[m:]
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
	}
	if w.cuts && f.Sync() != nil {
		return false, false
	}
	return w.durable(filepath.Dir(at)), n == len(content)
}

// written writes a file whole, and durably where the power may be cut.
func (w *world) written(path string, content []byte) bool {
	return os.WriteFile(path, content, 0o600) == nil && w.durable(path)
}

// durable makes files or directories durable where the power may be cut, and
// reports whether they are. A dropped file may have been taken away meanwhile:
// then nobody knows.
func (w *world) durable(paths ...string) bool {
	if !w.cuts {
		return true
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		err = f.Sync()
		// An xfs that has shut itself down says that a directory is synced; what
		// it says to a stat is the truth.
		_, e := f.Stat()
		f.Close()
		if err != nil || e != nil {
			return false
		}
	}
	return true
}
