package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, fault Fault) *Root {
	t.Helper()
	r, err := OpenFaulty(t.TempDir(), fault)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func write(t testing.TB, r *Root, name, content string) {
	t.Helper()
	must(t, os.WriteFile(r.Join(name), []byte(content), 0o600))
}

func has(t testing.TB, r *Root, name, want string) {
	t.Helper()
	if b, err := r.ReadFile(name, 100); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v, want %q", name, b, err, want)
	}
}

func names(t testing.TB, r *Root, dir string) []string {
	t.Helper()
	out, err := r.Names(dir)
	must(t, err)
	return out
}

// Create, Publish and Move refuse to replace, and leave both as they were.
func TestNothingIsReplaced(t *testing.T) {
	r := open(t, nil)
	write(t, r, "old", "old")
	write(t, r, "other", "other")
	publish := r.Publish("old", strings.NewReader("new"), true)
	for _, err := range []error{r.Create("old", []byte("new")), publish, r.Move("other", "old"), r.Move("old", "old")} {
		if !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	if err := r.Move("none", "new"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	has(t, r, "old", "old")
	has(t, r, "other", "other")
}

// Of two that move to one name at once, without a lock, one succeeds: looking first is not enough.
func TestMoveAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it cannot rename in one step that replaces nothing")
	}
	r := open(t, nil)
	for i := range 300 {
		var moved atomic.Int32
		var g sync.WaitGroup
		for _, old := range []string{"a", "b"} {
			write(t, r, old, old)
			g.Go(func() {
				if r.Move(old, fmt.Sprint(i)) == nil {
					moved.Add(1)
				}
			})
		}
		g.Wait()
		if n := moved.Load(); n != 1 {
			t.Fatalf("round %d: %d moved", i, n)
		}
		r.Remove("a")
		r.Remove("b")
	}
}

// Many replace one file at once: a reader sees one of them, whole, and nothing else
// is left.
func TestReplace(t *testing.T) {
	r := open(t, nil)
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), 10_000) }
	must(t, r.Replace("x", []byte(text(0)), true))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				if err := r.Replace("x", []byte(text(i)), false); err != nil {
					t.Error(err)
				}
				b, err := r.ReadFile("x", 20_000)
				if err != nil || len(b) != 10_000 || string(b) != text(int(b[0]-'0')) {
					t.Errorf("torn: %d bytes, %v", len(b), err)
				}
			}
		})
	}
	all.Wait()
	if got := names(t, r, "."); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
}

func TestLinksAreNotOpened(t *testing.T) {
	r := open(t, nil)
	outside := t.TempDir()
	os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600)
	r.Mkdir("real")
	write(t, r, "mine", "mine")
	for name, to := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "new"), "inside": "real", "near": "mine"} {
		if err := os.Symlink(to, r.Join(name)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	if err := r.MkdirAll("mine/a/b"); !errors.Is(err, ErrNotDirectory) {
		t.Error("below a file: ", err)
	}
	if is, not := r.IsDir("real"), r.IsDir("missing"); is != nil || !errors.Is(not, fs.ErrNotExist) {
		t.Errorf("%v, %v", is, not)
	}
	for _, name := range []string{"dir", "inside", "file"} {
		_, err1 := r.Sub(name)
		_, err2 := r.Names(name)
		for i, err := range []error{err1, err2, r.Mkdir(name), r.MkdirAll(name), r.IsDir(name), r.Sync(name)} {
			if !errors.Is(err, ErrNotDirectory) {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
	}
	for _, name := range []string{"file", "dangling", "dir", "near"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_CREATE | os.O_APPEND} {
			if _, err := r.OpenFile(name, flag); !errors.Is(err, ErrNotRegular) {
				t.Errorf("open %s: %v", name, err)
			}
		}
		if err := r.Create(name, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create %s: %v", name, err)
		}
	}
	if _, err := r.Open("dir/secret"); err == nil {
		t.Error("out through a linked directory")
	}
	if err := r.Replace("file", []byte("new"), false); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "secret" {
		t.Errorf("written through a link: %q", b)
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("made through a link")
	}
}

// Every operation asks for a fault, says what it was and leaves nothing behind.
func TestFault(t *testing.T) {
	var asked []string
	var fail string
	r := open(t, func(op, name string) error {
		asked = append(asked, op)
		if op == fail {
			return syscall.EIO
		}
		return nil
	})
	write(t, r, "x", "x")
	create := func() error { return r.Create("new", []byte("123456")) }
	replace := func() error { return r.Replace("x", []byte("new"), true) }
	for _, c := range []struct {
		op   string
		do   func() error
		left string // what x holds
	}{
		{"open", func() error { _, err := r.ReadFile("x", 9); return err }, "x"},
		{"read", func() error { _, err := r.ReadFile("x", 9); return err }, "x"},
		{"open", create, "x"},
		{"write", create, "x"},
		{"fsync", create, "x"},
		{"publish", func() error { return r.Publish("y", strings.NewReader("new"), true) }, "x"},
		{"rename", func() error { return r.Move("x", "y") }, "x"},
		{"mkdir", func() error { return r.MkdirAll("dir/below") }, "x"},
		{"remove", func() error { return r.Remove("x") }, "x"},
		{"list", func() error { _, err := r.Names("."); return err }, "x"},
		{"fsync directory", func() error { return r.Sync(".") }, "x"},
		{"open", replace, "x"},
		{"write", replace, "x"},
		{"fsync", replace, "x"},
		{"rename", replace, "x"},
		{"fsync directory", replace, "new"}, // in place, and not known to survive
	} {
		asked, fail = nil, c.op
		err := c.do()
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), c.op) || asked[len(asked)-1] != c.op {
			t.Errorf("%s: %v after %s", c.op, err, asked)
		}
		if c.left == "new" && !strings.Contains(err.Error(), "/x is written, but") {
			t.Error(err)
		}
		fail = ""
		if got := names(t, r, "."); len(got) != 1 {
			t.Fatalf("after a failed %s: %q", c.op, got)
		}
		has(t, r, "x", c.left)
	}
}

// Errors of package os name files by their full paths.
func TestFullPaths(t *testing.T) {
	r := open(t, nil)
	for _, err := range []error{r.MoveOver("none", "x"), r.Move("none", "x")} {
		if want := r.Join("none") + " " + r.Join("x") + ": "; !strings.Contains(err.Error(), " "+want) {
			t.Error(err)
		}
	}
	if err := r.Mkdir("closed"); err != nil || os.Chmod(r.Join("closed"), 0) != nil {
		t.Fatal(err)
	}
	if _, err := r.Sub("closed"); err != nil && !strings.Contains(err.Error(), " "+r.Join("closed")+": ") { // root may open it
		t.Error(err)
	}
	err := r.withFullPath(&fs.PathError{Op: "sync", Path: r.Path() + "/.", Err: syscall.EIO}) // as an open "." is called
	if err.Error() != "sync "+r.Path()+": "+syscall.EIO.Error() {
		t.Error(err)
	}
}

// Where its directory cannot be made, WritePrivate says why, and only that.
func TestWritePrivate(t *testing.T) {
	r := open(t, nil)
	must(t, WritePrivate(r.Join("keys/host"), []byte("x")))
	if err := WritePrivate(r.Join("keys/host/x"), nil); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// A directory that stays open is not used once another one has its name: what is written then is in that one. Nor does a
// link, which is followed inside the tree, hide what it leads to.
func TestDirectoryIsReplaced(t *testing.T) {
	r, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.MkdirAll("bob/inbox/new"))
	must(r.MkdirAll("archive"))
	must(r.Create("bob/inbox/new/1", []byte("before")))
	must(r.Move("bob", "archive/bob"))
	if err := r.Create("bob/inbox/new/2", nil); !IsAbsent(err) {
		t.Errorf("nobody is there: %v", err)
	}
	must(r.MkdirAll("bob/inbox/new"))
	must(r.Create("bob/inbox/new/2", []byte("after")))
	must(r.Move("bob/inbox/new/2", "bob/inbox/2"))
	must(r.Sync("bob/inbox"))
	if _, err := r.Lstat("bob/inbox/2"); err != nil {
		t.Error(err)
	}
	if names, err := r.Names("archive/bob/inbox/new"); err != nil || len(names) != 1 || names[0] != "1" {
		t.Error(names, err)
	}
	if err := os.Symlink("../bob", r.Join("archive/link")); err != nil {
		t.Skip(err)
	}
	if _, err := r.Lstat("archive/link/inbox/2"); err != nil {
		t.Error(err)
	}
	if _, err := r.Lstat("/run/info.json"); err == nil {
		t.Error("a path outside of the root is opened")
	}
	must(r.MkdirAll("many"))
	for i := range 3 * mostKept {
		dir := fmt.Sprint("many/", i)
		must(r.MkdirAll(dir))
		must(r.Create(dir+"/x", nil))
	}
	if n := len(r.kept.byName); n > mostKept {
		t.Errorf("%d directories are open", n)
	}
}
