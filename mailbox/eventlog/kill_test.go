package eventlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// With ATM_TEST_ROLE set the test binary is a process that does one thing to a log again and again until it is killed.
// It prints that it begins, and what it has done.
func TestMain(m *testing.M) {
	if role := os.Getenv("ATM_TEST_ROLE"); role != "" {
		segmentSize = killSegment
		fmt.Println("begin")
		roles[role](existingLog(os.Getenv("ATM_TEST_TEAM"), nil))
	}
	os.Exit(m.Run())
}

var roles = map[string]func(*Log){"append": appender, "tear": tearer, "archive": archiver}

// killSegment makes the segments small, so that there are many.
const killSegment = 8 << 10

func random() *rand.Rand {
	return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
}

// failed prints an error, unless many processes waiting for a lock explain it.
func failed(err error) bool {
	var held *lockfile.HeldError
	if err != nil && !errors.As(err, &held) {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return err != nil
}

// appender appends one to five events at a time, and prints which were appended.
func appender(l *Log) {
	me := wire.NewID() // a process id comes again soon where many processes start
	for r, n := random(), 0; ; {
		var events []wire.Event
		for range 1 + r.IntN(5) {
			n++
			events = append(events, wire.Event{Kind: "test", Source: "cli"}.With("name", fmt.Sprintf("%s.%d", me, n)).With("pad", strings.Repeat("x", r.IntN(300))))
		}
		if failed(l.Append(ctx, events...)) {
			continue
		}
		for i := range events {
			fmt.Println("in", events[i].Field("name"))
		}
	}
}

// tearer leaves what a kill in the middle of a write leaves: the beginning of a line.
func tearer(l *Log) {
	for r := random(); ; time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond) {
		unlock, err := l.lock(ctx)
		if failed(err) {
			continue
		}
		if n, err := l.openNewest(os.O_RDWR | os.O_APPEND); err == nil && n.file != nil {
			e := wire.Event{Seq: n.seq + 1, At: time.Now(), Team: "main", Agent: "bob", Source: "cli", Kind: "torn"}
			line := append(e.Append(nil), '\n')
			if n.size < segmentSize {
				n.file.Write(line[:1+r.IntN(len(line)-2)])
			}
			n.file.Close()
		}
		unlock()
	}
}

// archiver archives segments as gc does, whether a follower has read them or not.
func archiver(l *Log) {
	for ; ; time.Sleep(50 * time.Millisecond) {
		_, _, err := l.Archive(ctx, time.Now().Add(time.Hour), false)
		failed(err)
	}
}

// follow reads the log as others append, until stop is closed and nothing more comes. It returns how often it saw each
// name, and the last number.
func follow(t *testing.T, l *Log, after uint64, stop <-chan struct{}) (names map[string]int, last uint64) {
	names, last = map[string]int{}, after
	c := l.Follow(after)
	defer c.Close()
	for ended := false; ; {
		e, err := c.Next()
		if err == io.EOF && !ended {
			select {
			case <-stop:
				ended = true // one more look
			case <-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond):
			}
			continue
		}
		if err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			return names, last
		}
		if e.Seq != last+1 {
			t.Errorf("event %d after %d", e.Seq, last)
		}
		last = e.Seq
		names[e.Field("name")]++
	}
}

// Eight processes append while they are killed at random, lines are torn, segments rotate every 8 KiB, and old ones are
// archived. Every event that was reported as appended is there once, numbers have no gap, and followers see each event
// once and in order.
func TestKilled(t *testing.T) {
	duration := testround.Lasts(t, 4*time.Second) / 2
	smallSegments(t, killSegment)
	path := testtree.Memory(t)
	l := openLog(t, path, nil)
	appendKinds(t, l, "first")
	end := time.Now().Add(duration)
	var mu sync.Mutex
	in := map[string]bool{}
	goesOn := func() bool { // on a busy machine until there are enough for some segments
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Before(end) || len(in) < 200 && time.Now().Before(end.Add(3*time.Minute))
	}
	var idle atomic.Int64 // processes that were killed before they had appended anything, for which the next get more time
	live := func(role string) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "ATM_TEST_ROLE="+role, "ATM_TEST_TEAM="+path)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Error(err)
			return
		}
		kill, n := time.Duration(30+rand.IntN(400))*time.Millisecond*time.Duration(8+idle.Load())/8, 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "begin" { // however long the start took
				time.AfterFunc(kill, func() { c.Process.Kill() })
			} else if name, ok := strings.CutPrefix(lines.Text(), "in "); ok {
				mu.Lock()
				in[name] = true
				mu.Unlock()
				n++
			} else {
				t.Error(role, lines.Text())
			}
		}
		if c.Wait(); role == "append" && n == 0 {
			idle.Add(1)
		}
	}
	var all, watching sync.WaitGroup
	for role, n := range map[string]int{"append": 8, "tear": 1, "archive": 1} {
		for range n {
			all.Go(func() {
				for goesOn() {
					live(role)
				}
			})
		}
	}
	stop := make(chan struct{})
	var seen [2]map[string]int
	var ended [2]uint64
	for i := range seen {
		watching.Go(func() { seen[i], ended[i] = follow(t, l, 1, stop) })
	}
	all.Wait()
	appendKinds(t, l, "last")
	close(stop)
	watching.Wait()
	// On a busy machine no process may have got that far.
	if _, _, err := l.Archive(ctx, time.Now().Add(time.Hour), false); err != nil {
		t.Error(err)
	}
	last, err := l.LastSeq()
	for i, names := range seen {
		if err != nil || ended[i] != last {
			t.Errorf("a follower ended at %d, the log at %d: %v", ended[i], last, err)
		}
		for name := range in {
			if names[name] != 1 {
				t.Errorf("event %s was seen %d times", name, names[name])
			}
		}
	}
	archived, _ := l.root.Names(l.archive())
	if len(archived) == 0 || len(in) == 0 {
		t.Errorf("%d segments were archived, %d events appended", len(archived), len(in))
	}
}
