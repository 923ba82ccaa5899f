//go:build unix

package crashtest

import (
	"archive/tar"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// gc archives all that is finished and of another day.
func (w *world) gc() {
	time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	r := w.run(call{args: []string{"gc", "--keep", "0s", "--keep-last", "0"}, kill: mortal()})
	w.expect(r, 0)
}

// look asks for what changes nothing.
func (w *world) look() {
	me := one(readers)
	args := [][]string{
		{"ls", "--as", me}, {"ls", "--count", "--as", me}, {"ls", "--all", "--limit", "0", "--as", me}, {"ls", "--sent", "--as", "alice"},
		{"read", "--last", "--as", me}, {"read", "--peek", "--as", me}, {"team"}, {"ls", "--bad", "--as", me}, {"watch", "--since", "1s", "--no-follow"},
	}[rand.IntN(9)]
	r := w.run(call{args: args, kill: mortal()})
	w.expect(r, 0)
	if id := w.some("alice"); id != "" {
		r := w.run(call{args: []string{[]string{"show", "trace", "thread"}[rand.IntN(3)], id, "--as", "alice"}, kill: mortal()})
		w.expect(r, 0)
	}
}

// retire moves the spare agent away and brings them back.
func (w *world) retire() {
	r := w.run(call{args: []string{"team", "retire", "erin"}, kill: mortal()})
	w.expect(r, 0, 3)
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	r = w.run(call{args: []string{"team", "restore", "erin"}, kill: mortal()})
	w.expect(r, 0, 3, 5)
	w.add("retirements", 1)
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
}

// backup takes a backup while all others work, and looks into it: what was
// acknowledged before it began is in it, whole.
func (w *world) backup() {
	time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
	w.mu.Lock()
	var want []key
	for k, p := range w.posts {
		if p.stored && k.agent != "erin" {
			want = append(want, k)
		}
	}
	w.mu.Unlock()
	file := filepath.Join(w.home, "backup-"+newID(0)+".tar.gz")
	defer os.Remove(file)
	r := w.run(call{args: []string{"backup", file}, kill: 4 * mortal()})
	w.expect(r, 0)
	if _, err := os.Stat(file); r.code != 0 && err != nil {
		return
	}
	if got, ok := w.unpack(file); ok {
		for _, k := range want {
			if !got[k] {
				w.wrong("not in the backup: %s of %s", k.token, k.agent)
			}
		}
		w.add("backups", 1)
	}
}

// unpack reads a backup: the texts in it.
func (w *world) unpack(file string) (got map[key]bool, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		w.wrong("backup: %v", err)
		return nil, false
	}
	defer f.Close()
	got = map[key]bool{}
	files := map[string]string{}      // attached texts, by hash
	attached := map[string][]string{} // and who has them
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			w.wrong("backup: %v", err)
			return nil, false
		}
		parts := strings.Split(h.Name, "/")
		if h.Typeflag != tar.TypeReg || len(parts) < 3 {
			continue
		}
		data, err := io.ReadAll(in)
		if err != nil {
			w.wrong("backup: %s: %v", h.Name, err)
			return nil, false
		}
		if parts[1] == ".files" {
			t, _ := tokenOf(strings.TrimRight(string(data), "\x00"))
			files[parts[2]] = string(t)
			continue
		}
		agent := parts[1]
		if parts[1] == ".archive" {
			agent = parts[2]
		}
		if !idName.MatchString(path.Base(h.Name)) || strings.Contains(h.Name, "/bad/") || strings.Contains(h.Name, "/sent/") {
			continue
		}
		var m letter
		if err := json.Unmarshal(data, &m); err != nil {
			w.wrong("torn in the backup: %s: %v", h.Name, err)
			continue
		}
		if t, _ := tokenOf(m.Body); t != "" {
			got[key{agent, t}] = true
		}
		for _, a := range m.Attachments {
			attached[a.SHA256] = append(attached[a.SHA256], agent)
		}
	}
	for hash, owners := range attached {
		for _, agent := range owners {
			got[key{agent, token(files[hash])}] = true
		}
	}
	return got, true
}
