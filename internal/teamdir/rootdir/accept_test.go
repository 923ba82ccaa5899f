package rootdir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/testtree"
)

func accepted(p Place, root string) bool { return p.noted(root) }

// onlyNote returns the only note in the state directory.
func onlyNote(t *testing.T, p Place) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.State, "roots"))
	must(t, err)
	if len(entries) != 1 {
		t.Fatalf("%d files in the state directory, want one note", len(entries))
	}
	return filepath.Join(p.State, "roots", entries[0].Name())
}

func TestAccept(t *testing.T) {
	top := testtree.Make(t, "root a/.atm", "root b/.atm")
	root := filepath.Join(top, "a", ".atm")
	p := Place{Dir: filepath.Join(top, "a"), State: filepath.Join(top, "state", "atm"), UID: os.Getuid()}
	if accepted(p, root) {
		t.Fatal("accepted by nobody")
	}
	if f, _, err := Find(p); err != nil || f.CheckNoted() == nil {
		t.Fatalf("%+v, %v: want it found and not accepted", f, err)
	}
	must(t, Accept(p, root))
	if f, _, err := Find(p); err != nil || f.CheckNoted() != nil {
		t.Fatalf("%+v, %v: want it accepted", f, err)
	}
	if accepted(p, filepath.Join(top, "b", ".atm")) {
		t.Error("the other root is accepted too")
	}
	file := onlyNote(t, p)
	before, err := os.Stat(file)
	must(t, err)
	must(t, Accept(p, root))
	after, err := os.Stat(file)
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("accepting again wrote the note again")
	}
	if p.UID >= 0 {
		dir, err := os.Stat(filepath.Dir(file))
		must(t, err)
		if dir.Mode().Perm() != 0o700 || after.Mode().Perm() != 0o600 {
			t.Errorf("modes %v and %v, want 0700 and 0600", dir.Mode(), after.Mode())
		}
	}
	if accepted(Place{UID: p.UID}, root) || Accept(Place{UID: p.UID}, root) == nil {
		t.Error("without a state directory nothing is accepted")
	}
	if err := Accept(p, filepath.Join(top, "gone")); err == nil {
		t.Error("accepted what is not there")
	}
}

// Another directory at the same path is another root: somebody may have removed the old one and cloned a repository
// that has its own.
func TestAcceptedReplaced(t *testing.T) {
	top := testtree.Make(t, "root a/.atm")
	root := filepath.Join(top, "a", ".atm")
	p := Place{State: filepath.Join(top, "state"), UID: os.Getuid()}
	must(t, Accept(p, root))
	_, first, err := identify(root)
	must(t, err)
	must(t, os.Rename(root, filepath.Join(top, "old")))
	must(t, os.MkdirAll(root, 0o700))
	if accepted(p, root) {
		t.Error("the directory that took its place is accepted")
	}
	must(t, os.Remove(root))
	must(t, os.Rename(filepath.Join(top, "old"), root))
	if !accepted(p, root) {
		t.Error("put back, it is not accepted")
	}
	// ext4 reuses the inode number for the next directory.
	must(t, os.RemoveAll(root))
	must(t, os.Mkdir(root, 0o700))
	_, second, err := identify(root)
	must(t, err)
	if first == second {
		t.Skip("no birth times here, or too coarse ones: only the inode number tells")
	}
	if accepted(p, root) {
		t.Error("the directory made anew is accepted")
	}
}

// A note that is damaged, or that others own or may write, does not count, and is replaced.
func TestAcceptedBadNote(t *testing.T) {
	top := testtree.Make(t, "root a/.atm")
	root := filepath.Join(top, "a", ".atm")
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, file string, good []byte)
	}{
		{"torn", func(t *testing.T, file string, good []byte) {
			must(t, os.WriteFile(file, good[:len(good)/2], 0o600))
		}},
		{"empty", func(t *testing.T, file string, _ []byte) { must(t, os.Truncate(file, 0)) }},
		{"null", func(t *testing.T, file string, _ []byte) { must(t, os.WriteFile(file, []byte("null"), 0o600)) }},
		{"wrong types", func(t *testing.T, file string, _ []byte) {
			must(t, os.WriteFile(file, []byte(`{"path":1,"ino":"x"}`), 0o600))
		}},
		{"another root's", func(t *testing.T, file string, good []byte) {
			must(t, os.WriteFile(file, []byte(strings.Replace(string(good), "a/.atm", "b/.atm", 1)), 0o600))
		}},
		{"huge", func(t *testing.T, file string, good []byte) {
			must(t, os.WriteFile(file, append(good, strings.Repeat(" ", 1<<20)...), 0o600))
		}},
		{"writable by a group", func(t *testing.T, file string, _ []byte) {
			testtree.NeedUnix(t)
			must(t, os.Chmod(file, 0o660))
		}},
		{"directory writable by everybody", func(t *testing.T, file string, _ []byte) {
			testtree.NeedUnix(t)
			must(t, os.Chmod(filepath.Dir(file), 0o777))
		}},
		{"a link", func(t *testing.T, file string, _ []byte) {
			testtree.NeedUnix(t)
			must(t, os.Rename(file, file+".x"))
			must(t, os.Symlink(file+".x", file))
		}},
		{"somebody else's", func(t *testing.T, file string, _ []byte) {
			needRoot(t)
			must(t, os.Chown(file, 1001, 1001))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Place{State: filepath.Join(t.TempDir(), "state"), UID: os.Getuid()}
			must(t, Accept(p, root))
			file := onlyNote(t, p)
			good, err := os.ReadFile(file)
			must(t, err)
			tt.spoil(t, file, good)
			if accepted(p, root) {
				t.Fatal("believed")
			}
			must(t, Accept(p, root))
			if !accepted(p, root) {
				t.Error("not replaced")
			}
		})
	}
}

// Concurrent inits lose no note.
func TestAcceptAtOnce(t *testing.T) {
	top := testtree.Make(t)
	p := Place{State: filepath.Join(top, "state"), UID: os.Getuid()}
	var roots []string
	for _, name := range strings.Split("abcdefgh", "") {
		root := filepath.Join(top, name)
		must(t, os.Mkdir(root, 0o700))
		roots = append(roots, root)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if err := Accept(p, roots[i%len(roots)]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, root := range roots {
		if !accepted(p, root) {
			t.Errorf("the note about %s was lost", root)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(p.State, "roots")); len(entries) != len(roots) {
		t.Errorf("%d files, want %d and no temporary ones", len(entries), len(roots))
	}
}

func TestAcceptUnwritable(t *testing.T) {
	top := testtree.Make(t, "root a/.atm", "file state x")
	p := Place{State: filepath.Join(top, "state", "atm"), UID: os.Getuid()}
	err := Accept(p, filepath.Join(top, "a", ".atm"))
	if err == nil || !strings.HasPrefix(err.Error(), "record ") {
		t.Errorf("error %v", err)
	}
}

// A path that is not UTF-8 can be accepted.
func TestAcceptOddPath(t *testing.T) {
	testtree.NeedUnix(t)
	top := testtree.Make(t)
	root := filepath.Join(top, "a\xff\xfe\n")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Skip("this file system wants UTF-8: ", err)
	}
	p := Place{State: filepath.Join(top, "state"), UID: os.Getuid()}
	must(t, Accept(p, root))
	if !accepted(p, root) {
		t.Error("not accepted")
	}
	data, err := os.ReadFile(onlyNote(t, p))
	must(t, err)
	var n note
	must(t, json.Unmarshal(data, &n))
	if n.Path != filepath.Join(top, "a\uFFFD\n") {
		t.Errorf("the note says %q", n.Path)
	}
}

// The group may write an accepted root: that was its owner's choice.
func TestAcceptedGroup(t *testing.T) {
	top := testtree.Make(t, "root a/.atm", "group a/.atm", "group a/.atm/main")
	root := filepath.Join(top, "a", ".atm")
	p := Place{Dir: filepath.Join(top, "a"), State: filepath.Join(top, "state"), UID: os.Getuid()}
	if _, skipped, err := Find(p); err == nil || len(skipped) != 1 {
		t.Errorf("not accepted: %v, %q", err, skipped)
	}
	must(t, Accept(p, root))
	if f, skipped, err := Find(p); err != nil || f.CheckNoted() != nil || skipped != nil {
		t.Errorf("accepted: %+v, %q, %v", f, skipped, err)
	}
	if why := Distrusted(root, p.UID, false).Reason; why != "" {
		t.Errorf("Distrust says %q", why)
	}
	must(t, os.Chmod(filepath.Join(root, "main"), 0o777))
	if _, _, err := Find(p); err == nil {
		t.Error("found, though its team is writable by everybody")
	}
	if why := Distrusted(root, p.UID, false).Reason; why != "its team main is writable by everybody" {
		t.Errorf("Distrust says %q", why)
	}
	if why := Distrusted(root, -1, false).Reason; why != "" {
		t.Errorf("without uids Distrust says %q", why)
	}
	if why := Distrusted(filepath.Join(top, "gone"), p.UID, false).Reason; !strings.HasPrefix(why, "it cannot be examined: ") {
		t.Errorf("Distrust says %q", why)
	}
}
