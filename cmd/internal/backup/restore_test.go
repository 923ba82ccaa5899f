package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// tree returns the content of the files below a directory; nil: there is none.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	}))
	return files
}

// newBackup makes a backup with mail in most places.
func newBackup(t *testing.T) []byte {
	t.Helper()
	ctx := context.Background()
	r, team := newTeam(t, "alice", "bob", "gone")
	attached, err := filestore.Add(team.Dir(), "a.txt", strings.NewReader("content"))
	must(t, err)
	must(t, team.Box("gone").MarkRead(ctx, postMail(t, team, "alice", "gone", "to one who is retired")))
	if _, err := team.Retire(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	postMail(t, team, "alice", "bob", "unread", attached)
	must(t, team.Box("bob").MarkRead(ctx, postMail(t, team, "alice", "bob", "read")))
	must(t, team.Box("alice").Log().Append(ctx, wire.Event{Source: "cli", Kind: "turn_started"}))
	must(t, os.WriteFile(team.Dir().Join("team.toml"), []byte("# nothing\n"), 0o600))
	return save(t, r)
}

// A restore that is killed or fails at whatever operation leaves the root that was there, or all of the new one, and
// never a part of that. What is set aside is whole.
func TestRestoreKilled(t *testing.T) {
	data, killed := newBackup(t), errors.New("killed")
	_, whole := restore(t, data)
	want := tree(t, filepath.Dir(whole.Dir().Path()))
	for _, isInPlace := range []bool{false, true} {
		points := int64(0)
		for isOver := false; !isOver; points++ {
			above, aside := t.TempDir(), ""
			place := filepath.Join(above, ".atm")
			if isInPlace {
				aside = "aside"
				_, err := rootdir.Make(place)
				must(t, err)
			}
			before := tree(t, place)
			var done atomic.Int64
			in := open(t, above, func(op, name string) error {
				if done.Add(1) > points {
					return killed
				}
				return nil
			})
			_, err := Restore(t.Context(), in, ".atm", aside, bytes.NewReader(data), func(int) {})
			if isOver = err == nil; !isOver && !errors.Is(err, killed) {
				t.Fatal(err)
			}
			now, set := tree(t, place), tree(t, filepath.Join(above, "aside"))
			isUntouched := cmp.Equal(now, before) && set == nil
			isAway := now == nil && cmp.Equal(set, before)
			isDone := cmp.Equal(now, want) && cmp.Equal(set, before)
			if !isDone && (isOver || !isUntouched && !isAway) {
				t.Fatalf("killed at %d: %d files, and %d aside", points, len(now), len(set))
			}
			if isDone || isUntouched && points%8 > 0 {
				continue
			}
			if now == nil { // somebody finds no root, and repeats it so
				aside = ""
			}
			_, err = Restore(t.Context(), open(t, above, nil), ".atm", aside, bytes.NewReader(data), func(int) {})
			if must(t, err); !cmp.Equal(tree(t, place), want) {
				t.Fatalf("killed at %d, and repeated: %s", points, cmp.Diff(want, tree(t, place)))
			}
		}
		t.Logf("killed at %d operations", points)
	}
}

// What is in the place of the root stays: a root, a file, or a link. An empty directory is a place for one.
func TestRestoreWhereSomethingIs(t *testing.T) {
	data := newBackup(t)
	for what, put := range map[string]func(place string) error{
		"a root": func(place string) error { _, err := rootdir.Make(place); return err },
		"a file": func(place string) error { return os.WriteFile(place, nil, 0o600) },
		"a link": func(place string) error { return os.Symlink("nowhere", place) },
		"":       func(place string) error { return os.Mkdir(place, 0o700) },
	} {
		above := t.TempDir()
		must(t, put(filepath.Join(above, ".atm")))
		_, err := Restore(t.Context(), open(t, above, nil), ".atm", "", bytes.NewReader(data), func(int) {})
		if wasThere := errors.Is(err, fs.ErrExist); wasThere != (what != "") || !wasThere && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if names, _ := os.ReadDir(above); len(names) != 1 {
			t.Errorf("%s: left over: %v", what, names)
		}
	}
}

// What a killed restore has left long ago goes with the next one; what another one writes now stays.
func TestRestoreRemovesLeftovers(t *testing.T) {
	above := t.TempDir()
	for name, age := range map[string]time.Duration{"..atm.OLD.making": 48 * time.Hour, "..atm.NEW.making": 0, "..other.OLD.making": 48 * time.Hour} {
		must(t, os.MkdirAll(filepath.Join(above, name, "main"), 0o700))
		must(t, os.Chtimes(filepath.Join(above, name), time.Time{}, time.Now().Add(-age)))
	}
	_, err := Restore(t.Context(), open(t, above, nil), ".atm", "", bytes.NewReader(newBackup(t)), func(int) {})
	must(t, err)
	names, _ := open(t, above, nil).Names(".")
	if want := []string{"..atm.NEW.making", "..other.OLD.making", ".atm"}; !cmp.Equal(names, want) {
		t.Error(names)
	}
}

// entry is one of a hostile tar.
type entry struct {
	name    string
	kind    byte // 0: a regular file
	content string
	link    string
	hole    int64 // the size that a sparse entry pretends to have
	lie     int64 // the size that the header says, which is not the content's
	long    int   // how much longer its name is, in a record of PAX
}

// makeTar makes a tar that begins as a backup does. archive/tar writes neither holes nor lies, so this does.
func makeTar(entries ...entry) []byte {
	var b bytes.Buffer
	for _, e := range append([]entry{{name: "FORMAT", content: "1\n"}}, entries...) {
		var records []string
		if e.hole > 0 {
			records = []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + e.name, fmt.Sprintf("GNU.sparse.realsize=%d", e.hole)}
			e.content = fmt.Sprintf("1\n%d\n0\n", e.hole)
			e.content += strings.Repeat("\x00", 512-len(e.content))
		}
		if e.long > 0 {
			records = []string{"path=" + e.name + strings.Repeat("x", e.long)}
		}
		if records != nil {
			text := ""
			for _, r := range records {
				n := len(r) + 2
				for n < len(fmt.Sprintf("%d %s\n", n, r)) {
					n++
				}
				text += fmt.Sprintf("%d %s\n", n, r)
			}
			b.Write(block("x", 'x', text, "", int64(len(text))))
		}
		size := int64(len(e.content))
		if e.lie > 0 {
			size = e.lie
		}
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		b.Write(block(e.name, e.kind, e.content, e.link, size))
	}
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

func block(name string, kind byte, content, link string, size int64) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000600\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o\x00", size))
	copy(h[136:], "00000000000\x00        ")
	h[156] = kind
	copy(h[157:], link)
	copy(h[257:], "ustar\x0000")
	if kind == tar.TypeGNUSparse { // one that has no data
		copy(h[257:], "ustar  \x00")
		copy(h[386:], "00000000000\x0000000000000\x00")
		copy(h[483:], "30000000000\x00")
	}
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	h = append(h, content...)
	return append(h, make([]byte, (512-len(content)%512)%512)...)
}

func mail(to, body string) entry {
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: body}
	data, _ := m.Encode()
	return entry{name: "main/" + to + "/inbox/new/" + string(m.ID) + ".json", content: string(data)}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// refused restores a file that is no backup, and checks that nothing of it is left, nor much memory was used.
func refused(t *testing.T, data []byte, reason string) {
	t.Helper()
	above := t.TempDir()
	in := open(t, above, nil)
	var err error
	began := time.Now()
	used := allocated(func() { _, err = Restore(t.Context(), in, ".atm", "", bytes.NewReader(data), func(int) {}) })
	if !errors.Is(err, ErrNotBackup) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%v, not %q", err, reason)
	}
	if used > 8<<20 || time.Since(began) > 20*time.Second {
		t.Errorf("%d bytes of memory, %v", used, time.Since(began))
	}
	for _, dir := range []string{above, filepath.Dir(above)} {
		names, _ := os.ReadDir(dir)
		if dir == above && len(names) > 0 || slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() == "evil" }) {
			t.Errorf("left over: %v", names)
		}
	}
}

// What no backup has is refused, and with it all that comes with it.
func TestRestoreHostile(t *testing.T) {
	const large = 3 << 30
	id := string(wire.NewID())
	for name, e := range map[string]entry{
		"a log that is a hole":     {name: "main/bob/events/00000000000000000001.ndjson", hole: large},
		"a hole, in the old way":   {name: "main/bob/inbox/note", kind: tar.TypeGNUSparse},
		"an absolute path":         {name: "/tmp/evil", content: "x"},
		"a path up":                {name: "main/../../evil", content: "x"},
		"a path up, further down":  {name: "main/bob/inbox/../../../../evil", content: "x"},
		"a directory up":           {name: "main/../../evil/", kind: tar.TypeDir},
		"a link":                   {name: "main/bob/inbox/new/" + id + ".json", kind: tar.TypeSymlink, link: "/etc/passwd"},
		"a link for a directory":   {name: "main/bob", kind: tar.TypeSymlink, link: ".."},
		"a hard link":              {name: "main/bob/inbox/x", kind: tar.TypeLink, link: "/etc/passwd"},
		"a device":                 {name: "main/bob/inbox/x", kind: tar.TypeChar},
		"a FIFO":                   {name: "main/bob/inbox/x", kind: tar.TypeFifo},
		"a format":                 {name: "FORMAT", content: "2"},
		"what init hides it with":  {name: ".gitignore", content: "x"},
		"a lock":                   {name: "main/.locks/bob.runner", content: "x"},
		"a socket's place":         {name: "main/bob/run/control.sock", content: "x"},
		"a policy":                 {name: "main/bob/run/policy.json", content: "{}"},
		"a cache":                  {name: "main/bob/state.json", content: "{}"},
		"a worktree":               {name: "main/.worktrees/bob/x", content: "x"},
		"a repository":             {name: "main/bob/.git/config", content: "x"},
		"another case of the team": {name: "MAIN/bob/inbox/x", content: "x"},
		"another case":             {name: "main/Bob/inbox/x", content: "x"},
		"a file for a team":        {name: "main", content: "x"},
		"a long name":              {name: "main/bob/inbox/bad/", long: 1 << 19},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, makeTar(entry{name: "main/bob/inbox/note", content: "n"}, mail("bob", "before"), e, mail("bob", "after")), "")
		})
	}
}

// Sizes that are not true, and a file that is cut off, are refused.
func TestRestoreDamaged(t *testing.T) {
	log := "main/bob/events/00000000000000000001.ndjson"
	for name, e := range map[string]entry{
		"too long":           {name: log, content: "x", lie: 5000},
		"far too long":       {name: log, content: "x", lie: 4 << 30},
		"a message":          {name: "main/bob/inbox/new/" + string(wire.NewID()) + ".json", content: "x", lie: 1 << 30},
		"shorter than it is": {name: "main/bob/inbox/x", content: strings.Repeat("x", 2000), lie: 3},
	} {
		t.Run(name, func(t *testing.T) { refused(t, makeTar(mail("bob", "before"), e), "") })
	}
	data := newBackup(t)
	for n := 1024; n < len(data)-1024; n += 768 {
		refused(t, data[:n], "")
	}
	refused(t, []byte("something else"), "it does not begin with FORMAT")
}

// What a file in it is in the way of is an error, and leaves nothing.
func TestRestoreMisfit(t *testing.T) {
	for name, e := range map[string]entry{
		"a path through a file": {name: "main/bob/inbox/note/x", content: "x"},
		"the same file twice":   {name: "main/bob/inbox/note", content: "x"},
	} {
		above := t.TempDir()
		data := makeTar(entry{name: "main/bob/inbox/note", content: "n"}, e)
		_, err := Restore(t.Context(), open(t, above, nil), ".atm", "", bytes.NewReader(data), func(int) {})
		if names, _ := os.ReadDir(above); err == nil || !strings.Contains(err.Error(), e.name) || len(names) > 0 {
			t.Errorf("%s: %v, %v", name, err, names)
		}
	}
}

// Large files are copied piece by piece, and an interrupted restore leaves nothing.
func TestRestoreLarge(t *testing.T) {
	large := strings.Repeat("x", 48<<20)
	data := makeTar(mail("bob", "one"), entry{name: "main/.files/x", content: large})
	above := t.TempDir()
	in := open(t, above, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Restore(ctx, in, ".atm", "", &endingReader{bytes.NewReader(data), 4 << 20, cancel}, func(int) {})
	if names, _ := os.ReadDir(above); !errors.Is(err, context.Canceled) || len(names) > 0 {
		t.Error(err, names)
	}
	used := allocated(func() { _, err = Restore(t.Context(), in, ".atm", "", bytes.NewReader(data), func(int) {}) })
	if must(t, err); used > 8<<20 {
		t.Errorf("%d bytes of memory", used)
	}
	if got := tree(t, filepath.Join(above, ".atm"))["main/.files/x"]; got != large {
		t.Errorf("%d bytes of %d", len(got), len(large))
	}
}

// endingReader calls end after some bytes.
type endingReader struct {
	io.ReadSeeker
	left int
	end  func()
}

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if r.left -= n; r.left < 0 {
		r.end()
	}
	return n, err
}
