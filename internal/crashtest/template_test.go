//go:build unix

package crashtest

import (
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A template is a small team with mail in every state, copied for each fault.
type template struct {
	*world
	unread, asks, owed, done, old string // ids in bob's mailbox
	said                          string // by status, of bob
}

// newTemplate makes one in memory where the system has a place for that.
func newTemplate(t testing.TB) *template {
	t.Helper()
	w := newWorld(t, quick(t), "alice", "bob", "carol", "dave")
	p := &template{world: w}
	send := func(flags ...string) string {
		tok, text := write(300)
		w.begin(tok, "alice", "bob")
		r := w.must(append(append([]string{"send", "bob", "--as", "alice", "--json"}, flags...), "--", text)...)
		w.stored(tok, r)
		var out printed
		if err := json.Unmarshal([]byte(r.out), &out); err != nil {
			t.Fatal(err)
		}
		return out.ID
	}
	p.old = send("--id", newID(3))
	p.done = send()
	p.owed = send("--ack")
	w.pipe(call{args: []string{"read", "--as", "bob"}}, "bob", []int{0}, all)
	p.unread = send()
	send()
	p.asks = send("--ack")
	p.history()
	tok, text := write(300)
	w.lay("bob", tok, drop{name: "note.txt"})
	if err := os.WriteFile(filepath.Join(w.team(), "bob", "inbox", "note.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.laid("bob", tok, true, true)
	w.judge(t, take(t, w.team()))
	c, err := p.copy(w.root + "-asked")
	if err != nil {
		t.Fatal(err)
	}
	p.said = c.must("status", "bob", "--json").out
	return p
}

// quick is a directory in memory, or any.
func quick(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "crashtest"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// copy is a copy of the team and of what was promised in it. What goes wrong
// in it is told to the copy's caller.
func (p *template) copy(root string) (*world, error) {
	w := *p.world
	w.root = root
	l := newLedger()
	p.mu.Lock()
	maps.Copy(l.posts, p.posts)
	maps.Copy(l.drops, p.drops)
	maps.Copy(l.got, p.got)
	maps.Copy(l.events, p.events)
	maps.Copy(l.traces, p.traces)
	p.mu.Unlock()
	w.ledger = l
	return &w, copyTree(p.root, root)
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		at := filepath.Join(to, rel)
		if e.IsDir() {
			return os.Mkdir(at, 0o700)
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			out.Close()
			return err
		}
		return out.Close()
	})
}
