package crashtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// worker is the command of a taker: what it has started beats, in a session of
// its own, for as long as the message is worked on.
const worker = `
setsid sh -c 'while :; do echo "$0 $1 $(date +%s%N)" >>"$2"; sleep 0.01; done' "$ATM_MESSAGE" $$ "$1" </dev/null >/dev/null 2>&1 &
sleep 0.$(($$ % 4 + 1))
kill $!
wait
exit $(($$ % 3 > 1))
`

// Takers of a shared inbox run a command on each message, and are killed, or
// stopped for longer than their lease, at random. Never do two commands work on
// one message, nothing that a command started goes on, every message is finished,
// free or set aside, and of what is set aside the sender is told once.
func TestStressTake(t *testing.T) {
	d := duration(t, 3*time.Second)
	w := newWorld(t, quick(t), "alice", "jobs", "bob", "carol", "dave")
	w.must("take", "--share", "--as", "jobs")
	script, beats := filepath.Join(w.home, "work.sh"), filepath.Join(w.home, "beats")
	for name, text := range map[string]string{script: worker, beats: ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var killed, stopped, taken atomic.Int64
	end := time.Now().Add(d)
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; time.Now().Before(end); n++ {
			tok, text := write(100)
			w.begin(tok, "alice", "jobs")
			r := w.must("send", "jobs", "--as", "alice", "--json", "--", text)
			w.stored(tok, r)
			var out printed
			if json.Unmarshal([]byte(r.out), &out) == nil {
				w.excuse("jobs", out.ID) // read by commands, not by readers
			}
			time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
		}
	})
	for _, who := range []string{"bob", "carol", "dave"} {
		all.Go(func() {
			for time.Now().Before(end) {
				c := w.command(nil, "take", "jobs", "--lease", "2s", "--wait", "--timeout", "1s", "--as", who, "--", "sh", script, beats)
				if err := c.Start(); err != nil {
					t.Error(err)
					return
				}
				ended := make(chan struct{})
				go func() { defer close(ended); c.Wait() }()
				taken.Add(1)
				switch rand.IntN(8) {
				case 0, 1, 2, 3:
					select {
					case <-ended:
					case <-time.After(time.Duration(rand.IntN(500)) * time.Millisecond):
						c.Process.Kill()
						killed.Add(1)
					}
				case 4:
					select {
					case <-ended:
					case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
						c.Process.Signal(syscall.SIGSTOP)
						stopped.Add(1)
						time.Sleep(2500 * time.Millisecond) // longer than its lease
						c.Process.Signal(syscall.SIGCONT)
					}
				}
				<-ended
			}
		})
	}
	all.Wait()
	w.nothingWorks(t)
	ids := w.oneAtATime(t, beats)
	for range 2 {
		w.must("team")
	}
	c := take(t, w.team())
	v := w.judge(t, c)
	aside := 0
	for _, f := range c.messages {
		if f.agent == "jobs" && f.place == "aside" {
			aside++
			c.told(t, "alice", `"aside":"`+f.ID, 1)
		}
	}
	report := fmt.Sprintf("%s, %s: %s; %d takings, %d killed, %d stopped, %d messages worked on, %d set aside", t.Name(), d, v, taken.Load(), killed.Load(), stopped.Load(), ids, aside)
	t.Log(report)
	if os.Getenv("ATM_STRESS") != "" {
		fmt.Println(report)
	}
	if ids == 0 {
		t.Error("nothing was worked on")
	}
}

// nothingWorks waits until no process is left that a taker's command, or a
// guard, was.
func (w *world) nothingWorks(t *testing.T) {
	t.Helper()
	var left []string
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			env, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(env, []byte("HOME="+w.home+"\x00")) {
				continue
			}
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			left = append(left, filepath.Dir(file)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("still there:\n%s", strings.Join(left, "\n"))
	for _, l := range left {
		pid, _, _ := strings.Cut(filepath.Base(strings.Fields(l)[0]), " ")
		exec.Command("kill", "-9", pid).Run()
	}
}

// oneAtATime says whether the commands that beat for one message did so one after
// the other, and counts the messages.
func (w *world) oneAtATime(t *testing.T, beats string) int {
	t.Helper()
	type stint struct{ first, last int64 }
	stints := map[string]map[string]*stint{}
	f, err := os.Open(beats)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var id, pid string
		var at int64
		if _, err := fmt.Sscan(lines.Text(), &id, &pid, &at); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
			continue
		}
		if stints[id] == nil {
			stints[id] = map[string]*stint{}
		}
		s := stints[id][pid]
		if s == nil {
			s = &stint{at, at}
			stints[id][pid] = s
		}
		s.first, s.last = min(s.first, at), max(s.last, at)
	}
	for id, of := range stints {
		for a, s := range of {
			for b, o := range of {
				if over := min(s.last, o.last) - max(s.first, o.first); a < b && over > 0 {
					t.Errorf("two worked on %s for %s: %s and %s", id, time.Duration(over), a, b)
				}
			}
		}
	}
	return len(stints)
}
