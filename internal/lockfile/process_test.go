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
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, path)
	c.Env = append(os.Environ(), "LOCKFILE_ROLE="+role)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c, bufio.NewScanner(out)
}

func childDir(path string) Dir {
	root, err := durable.Open(path, nil)
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

func TestManyProcesses(t *testing.T) {
	const processes = 8
	_, path := team(t)
	var mu sync.Mutex // guards all but path
	var all []*exec.Cmd
	stopped := false
	var wg sync.WaitGroup
	var longest time.Duration
	holds := make([]int, processes)
	mu.Lock()
	for p := range processes {
		c, out := process(t, "contend", path)
		all = append(all, c)
		wg.Go(func() {
			for {
				for out.Scan() {
					us, ok := strings.CutPrefix(out.Text(), "held ")
					if !ok {
						t.Error(out.Text())
						continue
					}
					d, _ := time.ParseDuration(us + "us")
					mu.Lock()
					longest = max(longest, d)
					holds[p]++
					mu.Unlock()
				}
				c.Wait()
				mu.Lock()
				if stopped {
					mu.Unlock()
					return
				}
				c, out = process(t, "contend", path) // it was killed: the next one
				all[p] = c
				mu.Unlock()
			}
		})
	}
	mu.Unlock()
	kills := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); kills++ {
		time.Sleep(time.Duration(5+rand.IntN(60)) * time.Millisecond)
		mu.Lock()
		all[rand.IntN(processes)].Process.Kill()
		mu.Unlock()
	}
	mu.Lock()
	stopped = true
	for _, c := range all {
		c.Process.Kill()
	}
	mu.Unlock()
	wg.Wait()
	t.Logf("%d kills, longest wait %v, holds %v", kills, longest, holds)
	if longest > 2*time.Second {
		t.Errorf("somebody waited %v", longest)
	}
	for p, n := range holds {
		if n == 0 {
			t.Errorf("process %d never held the lock", p)
		}
	}
	// Nobody is left: the lock is free.
	mustTry(t, open(t, path), "bob.reader", Exclusive)
}

// hold takes the lock, starts a child that lives on, and waits to be killed.
func hold(path string) {
	l, err := childDir(path).Lock(context.Background(), "bob.runner", Exclusive, 0, nil)
	if err != nil {
		panic(err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println(child.Process.Pid)
	time.Sleep(time.Minute)
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
	if runtime.GOOS == "linux" && (e.PID != c.Process.Pid || e.Command == "" || !strings.HasPrefix(filepath.Base(os.Args[0]), e.Command)) {
		t.Errorf("held by %q, pid %d, want pid %d", e.Command, e.PID, c.Process.Pid)
	}

	got := make(chan error)
	go func() {
		l, err := d.Lock(context.Background(), "bob.runner", Exclusive, 10*time.Second, nil)
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
