package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func team(t testing.TB) (Dir, string) {
	t.Helper()
	path := t.TempDir()
	must(t, os.Mkdir(filepath.Join(path, ".locks"), 0o700))
	return open(t, path), path
}

func open(t testing.TB, path string) Dir {
	t.Helper()
	root, err := durable.Open(path)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return In(root)
}

func mustTry(t testing.TB, d Dir, name string, m Mode) *Lock {
	t.Helper()
	l, err := d.Lock(context.Background(), name, m, 0, nil)
	must(t, err)
	t.Cleanup(func() { l.Unlock() })
	return l
}

// A new lock file has its permissions before it is there: a process that is killed while it makes one does not keep the
// other users of a shared team out.
func TestAppearsWithItsPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows uses its own permissions")
	}
	_, path := team(t)
	made := "not moved into its place"
	root, err := durable.OpenFaulty(path, func(op, _ string) error {
		if files, _ := os.ReadDir(filepath.Join(path, ".locks")); op == "publish" && len(files) == 1 {
			info, _ := files[0].Info()
			made = info.Mode().String()
		}
		return nil
	})
	must(t, err)
	defer root.Close()
	mustTry(t, In(root), "bob.inbox", Exclusive)
	if made != "-rw-------" {
		t.Error(made)
	}
	if files, _ := os.ReadDir(filepath.Join(path, ".locks")); len(files) != 1 || files[0].Name() != "bob.inbox" {
		t.Error(files)
	}
}

func TestSharedAndExclusive(t *testing.T) {
	for _, c := range []struct {
		first, second Mode
		both          bool
	}{
		{Shared, Shared, true},
		{Shared, Exclusive, false},
		{Exclusive, Shared, false},
		{Exclusive, Exclusive, false},
	} {
		d, path := team(t)
		first := mustTry(t, d, "bob.inbox", c.first)
		second, err := open(t, path).Lock(context.Background(), "bob.inbox", c.second, 0, nil)
		if c.both != (err == nil) {
			t.Errorf("%v then %v: %v", c.first, c.second, err)
		}
		if held, err := d.Held("bob.inbox"); held != (c.first == Exclusive) || err != nil {
			t.Errorf("Held beside %v: %v, %v", c.first, held, err)
		}
		mustTry(t, d, "bob.reader", Exclusive) // another name is another lock
		if second != nil {
			second.Unlock()
		}
		for range 2 {
			if err := first.Unlock(); err != nil {
				t.Error(err)
			}
		}
		if first.Current() {
			t.Error("current after Unlock")
		}
		mustTry(t, d, "bob.inbox", Exclusive)
	}
}

func TestFileIsMadeOnlyAfterTheAgentWasSeen(t *testing.T) {
	d, path := team(t)
	file := filepath.Join(path, ".locks", "bob.reader")
	gone := errors.New("no agent bob")
	if _, err := d.Lock(context.Background(), "bob.reader", Exclusive, 0, func() error { return gone }); err != gone {
		t.Errorf("got %v", err)
	}
	if held, err := d.Held("bob.reader"); held || err != nil {
		t.Errorf("Held of an absent lock: %v, %v", held, err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock file is there: %v", err)
	}
	asked := 0
	seen := func() error { asked++; return nil }
	for range 3 {
		l, err := d.Lock(context.Background(), "bob.reader", Exclusive, time.Second, seen)
		must(t, err)
		if !l.Current() {
			t.Error("not current")
		}
		l.Unlock()
	}
	if asked != 1 {
		t.Errorf("seen was asked %d times", asked)
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() != 0 {
		t.Errorf("the lock file: %v, %v", info, err)
	}
}

func TestTheWaitEnds(t *testing.T) {
	d, path := team(t)
	mustTry(t, d, "bob.reader", Exclusive)
	const timeout = 100 * time.Millisecond
	start := time.Now()
	_, err := open(t, path).Lock(context.Background(), "bob.reader", Shared, timeout, nil)
	var held *HeldError
	if !errors.As(err, &held) || held.Lock != "bob.reader" {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took < timeout || took > timeout+20*time.Second {
		t.Errorf("a wait of %v took %v", timeout, took)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, name := range []string{"bob.reader", "bob.free"} { // the second once ctx is over
		if _, err := d.Lock(ctx, name, Exclusive, time.Minute, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who waited for the removed file must not come in beside the holder of the new one.
func TestFileReplacedWhileWaitedFor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	d, path := team(t)
	old := mustTry(t, d, "bob.reader", Exclusive)
	var inside atomic.Int32
	done := make(chan error)
	use := func() {
		l, err := d.Lock(context.Background(), "bob.reader", Exclusive, time.Minute, nil)
		if err == nil {
			if inside.Add(1) != 1 || !l.Current() {
				err = errors.New("two holders")
			}
			time.Sleep(5 * time.Millisecond)
			inside.Add(-1)
			l.Unlock()
		}
		done <- err
	}
	for range 3 {
		go use()
	}
	time.Sleep(10 * poll) // long enough that they wait; if not, nothing is shown
	must(t, os.Remove(filepath.Join(path, ".locks", "bob.reader")))
	go use()
	old.Unlock()
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The locks of a team that was moved go with it, whatever is at its path now.
func TestMovedTeam(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	d, path := team(t)
	held := mustTry(t, d, "bob.reader", Exclusive)
	must(t, os.Rename(path, path+".old"))
	defer os.RemoveAll(path + ".old")
	must(t, os.MkdirAll(filepath.Join(path, ".locks"), 0o700))
	mustTry(t, open(t, path), "bob.reader", Exclusive) // another team's
	mustTry(t, d, "bob.inbox", Exclusive)
	for _, moved := range []Dir{d, open(t, path+".old")} {
		if isHeld, err := moved.Held("bob.reader"); !isHeld || err != nil {
			t.Errorf("held: %v, %v", isHeld, err)
		}
	}
	if !held.Current() {
		t.Error("it is not current")
	}
}
