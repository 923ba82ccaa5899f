//go:build unix

package lockfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentteammail/atm/internal/durable"
)

// The test binary, executed again with LOCKFILE_ROLE set, is a process that
// locks.
func TestMain(m *testing.M) {
	switch os.Getenv("LOCKFILE_ROLE") {
	case "contend":
		contend(os.Args[1])
	case "hold":
		hold(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

func process(t *testing.T, role, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.Command(self, path)
	c.Env = append(os.Environ(), "LOCKFILE_ROLE="+role)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c, bufio.NewScanner(out)
}

func childDir(path string) Dir {
	root, err := durable.Open(path)
	if err != nil {
		panic(err)
	}
	return In(root)
}

// contend locks again and again and prints how long each wait was. Whether
// somebody else is inside too is told by a record lock on another file: opened
// first, it is closed first when the process is killed, so it never outlives
// the lock that it watches.
func contend(path string) {
	oracle, err := os.OpenFile(filepath.Join(path, "oracle"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	record := func(kind int16) error {
		return unix.FcntlFlock(oracle.Fd(), unix.F_SETLK, &unix.Flock_t{Type: kind})
	}
	d := childDir(path)
	for i := 0; ; i++ {
		start := time.Now()
		var l *Lock
		var err error
		switch i % 4 {
		case 0:
			l, err = d.Lock(context.Background(), "bob.reader", Exclusive, 0, nil)
		case 1: // gives up often
			l, err = d.Lock(context.Background(), "bob.reader", Exclusive, time.Duration(rand.IntN(300))*time.Microsecond, nil)
		default:
			l, err = d.Lock(context.Background(), "bob.reader", Exclusive, time.Minute, nil)
		}
		var held *HeldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			panic(err)
		}
		waited := time.Since(start)
		if err := record(unix.F_WRLCK); err != nil {
			fmt.Println("two holders:", err)
			os.Exit(1)
		}
		if rand.IntN(8) == 0 {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		}
		if err := record(unix.F_UNLCK); err != nil {
			panic(err)
		}
		if err := l.Unlock(); err != nil {
			panic(err)
		}
		fmt.Println("held", waited.Microseconds())
	}
}

// Nobody starves, and nobody is inside beside another. (What kills do is the mailbox's test.)
func TestManyProcesses(t *testing.T) {
	const life = 4 * time.Second // as long as who starves waits, namely until the others have gone
	_, path := team(t)
	var wg sync.WaitGroup
	for p := range 8 {
		c, out := process(t, "contend", path)
		wg.Go(func() {
			holds, longest := 0, time.Duration(0)
			for ; out.Scan(); holds++ {
				if holds == 0 { // however long it took to come so far
					time.AfterFunc(life, func() { c.Process.Kill() })
				}
				us, ok := strings.CutPrefix(out.Text(), "held ")
				if !ok {
					t.Error(out.Text())
				}
				d, _ := time.ParseDuration(us + "us")
				longest = max(longest, d)
			}
			if holds == 0 || longest > life {
				t.Errorf("process %d held the lock %d times, and waited %v", p, holds, longest)
			}
		})
	}
	wg.Wait()
	// Nobody is left: the lock is free.
	mustTry(t, open(t, path), "bob.reader", Exclusive)
}

// hold takes the lock, starts a child that lives on, and waits to be killed.
func hold(path string) {
	l, err := childDir(path).Lock(context.Background(), "bob.runner", Exclusive, 0, nil)
	if err != nil {
		panic(err)
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println(child.Process.Pid)
	time.Sleep(10 * time.Minute)
	runtime.KeepAlive(l)
}

func TestHolderKilled(t *testing.T) {
	d, path := team(t)
	c, out := process(t, "hold", path)
	if !out.Scan() {
		t.Fatal("the holder did not start")
	}
	var child int
	fmt.Sscan(out.Text(), &child)
	defer unix.Kill(child, unix.SIGKILL)

	if held, err := d.Held("bob.runner"); !held || err != nil {
		t.Errorf("Held: %v, %v", held, err)
	}
	_, err := d.Lock(context.Background(), "bob.runner", Exclusive, time.Millisecond, nil)
	var e *HeldError
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}

	got := make(chan error)
	go func() {
		l, err := d.Lock(context.Background(), "bob.runner", Exclusive, time.Minute, nil)
		if err == nil {
			l.Unlock()
		}
		got <- err
	}()
	time.Sleep(10 * time.Millisecond)
	c.Process.Kill()
	if err := <-got; err != nil {
		t.Errorf("after the holder was killed: %v", err)
	}
	if err := unix.Kill(child, 0); err != nil {
		t.Errorf("the holder's child should live on: %v", err)
	}
}
