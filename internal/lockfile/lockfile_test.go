package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
)

func team(t testing.TB) (Dir, string) {
	t.Helper()
	path := t.TempDir()
	if err := os.Mkdir(filepath.Join(path, ".locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	return open(t, path), path
}

func open(t testing.TB, path string) Dir {
	t.Helper()
	root, err := durable.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return In(root)
}

func mustTry(t testing.TB, d Dir, name string, m Mode) *Lock {
	t.Helper()
	l, err := d.Try(name, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Unlock() })
	return l
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
		second, err := open(t, path).Try("bob.inbox", c.second, nil)
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
	if _, err := d.Try("bob.reader", Exclusive, func() error { return gone }); err != gone {
		t.Errorf("got %v", err)
	}
	if held, err := d.Held("bob.reader"); held || err != nil {
		t.Errorf("Held of an absent lock: %v, %v", held, err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock file is there: %v", err)
	}
	// A deadline of seen's own is no timeout of the lock.
	late := func() error { return context.DeadlineExceeded }
	if _, err := d.Lock(context.Background(), "bob.reader", Exclusive, time.Second, late); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	asked := 0
	seen := func() error { asked++; return nil }
	for range 3 {
		l, err := d.Lock(context.Background(), "bob.reader", Exclusive, time.Second, seen)
		if err != nil {
			t.Fatal(err)
		}
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

func TestNamesAreOneComponent(t *testing.T) {
	d, _ := team(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "/x", "a\x00"} {
		if _, err := d.Try(name, Shared, nil); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	d, path := team(t)
	mustTry(t, d, "bob.reader", Exclusive)
	for _, timeout := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond} {
		start := time.Now()
		_, err := open(t, path).Lock(context.Background(), "bob.reader", Shared, timeout, nil)
		var held *HeldError
		if !errors.As(err, &held) || held.Lock != "bob.reader" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < timeout || took > timeout+500*time.Millisecond {
			t.Errorf("a wait of %v took %v", timeout, took)
		}
	}
}

func TestContextEndsTheWait(t *testing.T) {
	d, _ := team(t)
	mustTry(t, d, "bob.reader", Exclusive)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Lock(ctx, "bob.reader", Exclusive, 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := d.Lock(ctx, "bob.free", Exclusive, 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestLockComesToAWaiter(t *testing.T) {
	d, _ := team(t)
	first := mustTry(t, d, "bob.reader", Exclusive)
	got := make(chan error)
	go func() {
		l, err := d.Lock(context.Background(), "bob.reader", Exclusive, 0, nil)
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	time.Sleep(5 * poll) // long enough that it waits; if not, nothing is shown
	first.Unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// However short the time, a free lock is got, and a wait that was given up holds
// nothing.
func TestShortTimeout(t *testing.T) {
	d, path := team(t)
	for range 20 {
		l, err := d.Lock(context.Background(), "bob.runner", Exclusive, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, path).Lock(context.Background(), "bob.runner", Exclusive, 1, nil); err == nil {
			t.Fatal("two holders")
		}
		l.Unlock()
	}
}

func TestFileReplacedWhileHeld(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	d, path := team(t)
	file := filepath.Join(path, ".locks", "bob.reader")
	first := mustTry(t, d, "bob.reader", Exclusive)
	if !first.Current() {
		t.Error("not current")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if first.Current() {
		t.Error("current after the file was removed")
	}
	second := mustTry(t, d, "bob.reader", Exclusive)
	if first.Current() || !second.Current() {
		t.Errorf("current: first %v, second %v", first.Current(), second.Current())
	}
}

// A process that waited for the removed file must not come in beside the one that
// holds the new.
func TestFileReplacedWhileWaitedFor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed")
	}
	d, path := team(t)
	file := filepath.Join(path, ".locks", "bob.reader")
	old := mustTry(t, d, "bob.reader", Exclusive)
	var inside atomic.Int32
	done := make(chan error)
	const waiting = 4
	for range waiting {
		go func() {
			l, err := d.Lock(context.Background(), "bob.reader", Exclusive, 10*time.Second, nil)
			if err != nil {
				done <- err
				return
			}
			if inside.Add(1) != 1 {
				err = errors.New("two holders")
			}
			time.Sleep(5 * time.Millisecond)
			if !l.Current() {
				err = errors.New("held the removed file")
			}
			inside.Add(-1)
			l.Unlock()
			done <- err
		}()
	}
	time.Sleep(20 * time.Millisecond)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	other, err := d.Lock(context.Background(), "bob.reader", Exclusive, 10*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if inside.Add(1) != 1 {
		t.Error("two holders")
	}
	old.Unlock()
	time.Sleep(20 * time.Millisecond)
	inside.Add(-1)
	other.Unlock()
	for range waiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestMovedTeamIsNoticed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	path := filepath.Join(t.TempDir(), "main")
	if err := os.MkdirAll(filepath.Join(path, ".locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	mustTry(t, d, "bob.reader", Exclusive).Unlock()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		for _, name := range []string{"bob.reader", "bob.inbox"} {
			if _, err := d.Try(name, Exclusive, nil); err == nil || !strings.Contains(err.Error(), "another directory") {
				t.Errorf("Try %s: %v", name, err)
			}
			if _, err := d.Lock(context.Background(), name, Shared, 0, nil); err == nil || !strings.Contains(err.Error(), "another directory") {
				t.Errorf("Lock %s: %v", name, err)
			}
		}
	}
	refused()
	if err := os.MkdirAll(filepath.Join(path, ".locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	mustTry(t, open(t, path), "bob.reader", Exclusive) // held: the other team's lock is none of ours
	refused()
}

// A team that is moved while its lock is waited for ends the wait.
func TestTeamMovedWhileWaitedFor(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	d, path := team(t)
	mustTry(t, d, "bob.reader", Exclusive)
	got := make(chan error)
	go func() {
		_, err := d.Lock(context.Background(), "bob.reader", Exclusive, 0, nil)
		got <- err
	}()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(path + ".old")
	if err := <-got; err == nil || !strings.Contains(err.Error(), "another directory") {
		t.Error(err)
	}
}

func TestHeldErrorReads(t *testing.T) {
	for want, e := range map[string]*HeldError{
		"lock bob.reader is held by atm (pid 123)": {Lock: "bob.reader", PID: 123, Command: "atm"},
		"lock bob.reader is held by pid 123":       {Lock: "bob.reader", PID: 123},
		"lock bob.reader is held":                  {Lock: "bob.reader"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	d, _ := team(b)
	for b.Loop() {
		l, err := d.Lock(context.Background(), "bob.reader", Exclusive, time.Second, nil)
		if err != nil {
			b.Fatal(err)
		}
		l.Unlock()
	}
}
