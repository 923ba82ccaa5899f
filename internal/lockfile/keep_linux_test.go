package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

// A file that stayed open is not used when another lies at the path.
func TestKeptFileIsLookedAtAnew(t *testing.T) {
	d, path := team(t)
	file := filepath.Join(path, ".locks", "bob.reader")
	mustTry(t, d, "bob.reader", Exclusive).Unlock() // d keeps the file open
	if len(d.idle) != 1 {
		t.Fatalf("%d files kept", len(d.idle))
	}
	other := open(t, path)
	old := mustTry(t, other, "bob.reader", Exclusive)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	// Held is what lay there once: the lock is free.
	first := mustTry(t, d, "bob.reader", Exclusive)
	if !first.Current() || old.Current() {
		t.Errorf("current: first %v, old %v", first.Current(), old.Current())
	}
	first.Unlock()
	// Free is what lay there once: the lock is held.
	old.Unlock()
	second := mustTry(t, d, "bob.reader", Exclusive)
	var held *HeldError
	if _, err := other.Try("bob.reader", Exclusive, nil); !errors.As(err, &held) {
		t.Errorf("two holders: %v", err)
	}
	second.Unlock()
}

func TestLocksDirectoryMadeAnew(t *testing.T) {
	for _, kept := range []bool{true, false} {
		d, path := team(t)
		locks := filepath.Join(path, ".locks")
		if kept {
			mustTry(t, d, "bob.reader", Exclusive).Unlock()
		}
		if err := os.RemoveAll(locks); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Try("bob.reader", Exclusive, nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without .locks: %v", err)
		}
		if err := os.Mkdir(locks, 0o700); err != nil {
			t.Fatal(err)
		}
		l := mustTry(t, d, "bob.reader", Exclusive)
		if _, err := open(t, path).Try("bob.reader", Shared, nil); err == nil {
			t.Error("two holders")
		}
		l.Unlock()
	}
}

// Each holder has a file of their own, also within a process.
func TestManyGoroutines(t *testing.T) {
	before := openFiles(t)
	d, _ := team(t)
	var readers, writers atomic.Int32
	var wg sync.WaitGroup
	for i := range 3 * maxIdle {
		wg.Go(func() {
			for n := range 20 {
				m := Shared
				if (i+n)%8 == 0 {
					m = Exclusive
				}
				l, err := d.Lock(context.Background(), "bob.inbox", m, 0, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if m == Exclusive {
					if w, r := writers.Add(1), readers.Load(); w != 1 || r != 0 {
						t.Errorf("%d writers and %d readers", w, r)
					}
					writers.Add(-1)
				} else {
					readers.Add(1)
					if w := writers.Load(); w != 0 {
						t.Errorf("a reader and %d writers", w)
					}
					readers.Add(-1)
				}
				if err := errors.Join(l.Unlock(), l.Unlock()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(d.idle); n > maxIdle {
		t.Errorf("%d files kept", n)
	}
	for i := range 2 * maxIdle {
		mustTry(t, d, fmt.Sprintf("a%d.inbox", i), Shared).Unlock()
	}
	if n := len(d.idle); n > maxIdle {
		t.Errorf("%d files kept", n)
	}
	held := mustTry(t, d, "bob.reader", Exclusive)
	d.Close()
	if _, err := d.Try("bob.inbox", Shared, nil); err == nil {
		t.Error("a lock through a closed directory")
	}
	held.Unlock()
	// The team's directory and the runtime's own.
	if n := openFiles(t); n > before+4 {
		t.Errorf("%d files open, %d before", n, before)
	}
}

// Who takes a lock often looks at its file, not at its path: what happens to the
// file is seen at once.
func TestOften(t *testing.T) {
	d, path := team(t)
	file := filepath.Join(path, ".locks", "bob.events")
	get := func() Stamp {
		t.Helper()
		l := mustTry(t, d, "bob.events", Often)
		defer l.Unlock()
		if !l.Current() {
			t.Error("another file than the one at the path")
		}
		return l.Stamp()
	}
	was := get()
	if again := get(); again != was || !again.Known() {
		t.Errorf("stamp %v, before %v", again, was)
	}
	for what, deed := range map[string]func() error{
		"removed":  func() error { return os.Remove(file) },
		"renamed":  func() error { return os.Rename(file, file+".old") },
		"replaced": func() error { return errors.Join(os.WriteFile(file+".new", nil, 0o600), os.Rename(file+".new", file)) },
	} {
		get()
		if err := deed(); err != nil {
			t.Fatal(err)
		}
		get() // Current says so
		if t.Failed() {
			t.Fatal(what)
		}
	}
	was = get()
	l := mustTry(t, open(t, path), "bob.events", Exclusive)
	l.Moved()
	l.Unlock()
	if now := get(); now == was {
		t.Error("what is about to be moved has the stamp that it had")
	}
}
