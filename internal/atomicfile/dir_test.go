package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func open(t testing.TB, fault Fault) *Dir {
	t.Helper()
	d, err := Open(t.TempDir(), fault)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t testing.TB, d *Dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.Path(), name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func publish(d *Dir, name, content string) error {
	dr, err := d.Draft("draft")
	if err != nil {
		return err
	}
	defer dr.Close()
	if _, err := dr.Write([]byte(content)); err != nil {
		return err
	}
	if err := dr.Sync(); err != nil {
		return err
	}
	return dr.Link(d, name)
}

func names(t testing.TB, d *Dir) (out []string) {
	t.Helper()
	if err := d.Names(func(n []string) bool { out = append(out, n...); return true }); err != nil {
		t.Fatal(err)
	}
	return out
}

// A draft has one name or several once it is linked, and before that none.
func TestDraft(t *testing.T) {
	d := open(t, nil)
	sub, err := d.Make("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	dr, err := d.Draft("draft")
	if err != nil {
		t.Fatal(err)
	}
	dr.Write([]byte("one "))
	dr.Write([]byte("two"))
	if err := errors.Join(dr.Sync(), dr.Link(d, "x"), dr.Link(sub, "y"), dr.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d    *Dir
		name string
	}{{d, "x"}, {sub, "y"}} {
		if b, err := c.d.ReadFile(c.name, 100); err != nil || string(b) != "one two" {
			t.Errorf("%s: %q, %v", c.name, b, err)
		}
	}
	if got := names(t, d); len(got) != 2 {
		t.Errorf("the draft left something: %q", got)
	}
}

func TestDraftThatIsNotLinked(t *testing.T) {
	d := open(t, nil)
	dr, err := d.Draft("draft")
	if err != nil {
		t.Fatal(err)
	}
	dr.Write([]byte("x"))
	if err := dr.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, d); len(got) != 0 {
		t.Errorf("it left %q", got)
	}
}

// Publishing and moving refuse to replace, and leave both as they were.
func TestNothingIsReplaced(t *testing.T) {
	d := open(t, nil)
	write(t, d, "old", "old")
	write(t, d, "other", "other")
	if err := publish(d, "old", "new"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := Move(d, "other", d, "old"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := Move(d, "none", d, "new"); !Absent(err) {
		t.Error(err)
	}
	for name, want := range map[string]string{"old": "old", "other": "other"} {
		if b, _ := d.ReadFile(name, 100); string(b) != want {
			t.Errorf("%s has %q", name, b)
		}
	}
}

func TestOneOfManyPublishes(t *testing.T) {
	d := open(t, nil)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = publish(d, "x", fmt.Sprint(i)) })
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Errorf("%d and %d published", won, i)
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if b, _ := d.ReadFile("x", 10); string(b) != fmt.Sprint(won) {
		t.Errorf("%q of %d", b, won)
	}
}

// Many replace one file at once: whoever looks sees one of them, whole, and
// nothing else is left.
func TestReplace(t *testing.T) {
	d := open(t, nil)
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), 10_000) }
	if err := d.Replace("x", []byte(text(0)), true); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for range 50 {
					if err := d.Replace("x", []byte(text(i)), false); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		b, err := d.ReadFile("x", 20_000)
		if err != nil || len(b) != 10_000 || string(b) != text(int(b[0]-'0')) {
			t.Fatalf("torn: %d bytes, %v", len(b), err)
		}
	}
	if got := names(t, d); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
}

func TestNamesAreOneComponent(t *testing.T) {
	d := open(t, nil)
	write(t, d, "x", "x")
	dr, err := d.Draft("draft")
	if err != nil {
		t.Fatal(err)
	}
	defer dr.Close()
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", "x\x00", "x/", "./x"} {
		_, err1 := d.Open(name)
		_, err2 := d.Sub(name)
		_, err3 := d.Append(name)
		_, err4 := d.Lstat(name)
		_, err5 := d.Draft(name)
		_, err6 := d.Make(name)
		for i, err := range []error{err1, err2, err3, err4, err5, err6, d.Mkdir(name), d.Remove(name), d.Replace(name, nil, false),
			Move(d, "x", d, name), Move(d, name, d, "y"), dr.Link(d, name)} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q, call %d: %v", name, i, err)
			}
		}
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	d := open(t, nil)
	outside := t.TempDir()
	os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600)
	os.Mkdir(filepath.Join(d.Path(), "real"), 0o700)
	for name, to := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "new"), "inside": "real"} {
		if err := os.Symlink(to, filepath.Join(d.Path(), name)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	for _, name := range []string{"dir", "inside", "file"} {
		if _, err := d.Sub(name); !errors.Is(err, ErrNotDirectory) {
			t.Errorf("Sub %s: %v", name, err)
		}
		if _, err := d.Make(name, "x"); !errors.Is(err, ErrNotDirectory) {
			t.Errorf("Make %s: %v", name, err)
		}
	}
	for _, name := range []string{"file", "dangling", "dir"} {
		if _, err := d.Open(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Open %s: %v", name, err)
		}
		if f, err := d.Append(name); err == nil {
			f.Close()
			t.Errorf("Append opened %s", name)
		}
	}
	if err := d.Replace("file", []byte("new"), false); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "secret" {
		t.Errorf("written through a link: %q", b)
	}
	if _, err := os.Lstat(filepath.Join(outside, "new")); err == nil {
		t.Error("made through a link")
	}
}

func TestReadFileLimit(t *testing.T) {
	d := open(t, nil)
	write(t, d, "x", "12345")
	write(t, d, "empty", "")
	if b, err := d.ReadFile("x", 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := d.ReadFile("x", 4); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if b, err := d.ReadFile("empty", 0); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := d.ReadFile("none", 4); !Absent(err) {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	d := open(t, nil)
	write(t, d, "x", "")
	d.Mkdir("empty")
	os.MkdirAll(filepath.Join(d.Path(), "full", "x"), 0o700)
	if err := errors.Join(d.Remove("x"), d.Remove("x"), d.Remove("empty")); err != nil {
		t.Error(err)
	}
	if err := d.Remove("full"); err == nil {
		t.Error("a directory that is not empty was removed")
	}
}

// A Dir is its descriptor: where it lies does not matter.
func TestDirThatIsMoved(t *testing.T) {
	d := open(t, nil)
	s, err := d.Make("s")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Rename(filepath.Join(d.Path(), "s"), filepath.Join(d.Path(), "moved")); err != nil {
		t.Skip("open directories do not move here: ", err)
	}
	if err := errors.Join(publish(s, "x", "x"), s.Replace("y", nil, true), s.Mkdir("z"), s.Sync()); err != nil {
		t.Fatal(err)
	}
	m, err := d.Sub("moved")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := names(t, m); len(got) != 3 {
		t.Errorf("in the moved directory: %q", got)
	}
}

// Every operation asks for a fault, and says what it was.
func TestFault(t *testing.T) {
	var asked []Op
	var fail Op
	d := open(t, func(op Op, name string) error {
		asked = append(asked, op)
		if op == fail {
			return syscall.EIO
		}
		return nil
	})
	write(t, d, "x", "x")
	do := map[Op]func() error{
		OpOpen:    func() error { _, err := d.ReadFile("x", 9); return err },
		OpRead:    func() error { _, err := d.ReadFile("x", 9); return err },
		OpCreate:  func() error { return publish(d, "new", "123456") },
		OpWrite:   func() error { return publish(d, "new", "123456") },
		OpSync:    func() error { return publish(d, "new", "123456") },
		OpLink:    func() error { return publish(d, "new", "123456") },
		OpRename:  func() error { return Move(d, "x", d, "y") },
		OpMkdir:   func() error { return d.Mkdir("dir") },
		OpRemove:  func() error { return d.Remove("x") },
		OpList:    func() error { return d.Names(func([]string) bool { return true }) },
		OpSyncDir: d.Sync,
	}
	for op, f := range do {
		asked, fail = nil, op
		err := f()
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), string(op)) || asked[len(asked)-1] != op {
			t.Errorf("%s: %v after %s", op, err, asked)
		}
		fail = ""
		if got := names(t, d); len(got) != 1 {
			t.Fatalf("after a failed %s: %q", op, got)
		}
	}
	for _, op := range []Op{OpCreate, OpWrite, OpSync, OpRename, OpSyncDir} {
		fail = op
		if err := d.Replace("x", []byte("new"), true); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), string(op)) {
			t.Errorf("Replace, %s: %v", op, err)
		}
		fail = ""
		want := "x"
		if op == OpSyncDir {
			want = "new" // in place, and not known to survive
		}
		if b, _ := d.ReadFile("x", 9); string(b) != want || len(names(t, d)) != 1 {
			t.Errorf("Replace, %s: %q in %q", op, b, names(t, d))
		}
	}
}

// A listing sees what is there when it begins, also the second, and one within
// another, and several at once.
func TestListings(t *testing.T) {
	d := open(t, nil)
	const many = 3000
	for i := range many {
		write(t, d, fmt.Sprintf("%040d", i), "")
	}
	for range 2 {
		if got := names(t, d); len(got) != many {
			t.Errorf("%d names", len(got))
		}
	}
	within := 0
	d.Names(func([]string) bool {
		within = len(names(t, d))
		return false // the place in the middle does not matter to who comes next
	})
	if within != many {
		t.Errorf("%d names within a listing", within)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := names(t, d); len(got) != many {
				t.Errorf("%d names beside others", len(got))
			}
		})
	}
	all.Wait()
	write(t, d, "one more", "")
	if got := names(t, d); len(got) != many+1 {
		t.Errorf("%d names, with one more", len(got))
	}
}
