package ptyrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer"
)

// The program's exit ends the run, with its code, and its turn, without turn_idle.
func TestExit(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	r.Send("EXIT 7")
	<-r.Done
	if r.Err != nil || r.Exit.Code != 7 {
		t.Errorf("%+v, %v", r.Exit, r.Err)
	}
	// Its claim is settled beside the loop.
	events := slices.DeleteFunc(r.Events(), func(e string) bool { return e == "injected" })
	if got := events[len(events)-2:]; !slices.Equal(got, []string{"exited code=7", `turn_completed status="failed"`}) {
		t.Errorf("the last events are %q", got)
	}
}

// While what an exited program has left running is being ended, the runner answers and shows the last screen.
func TestServedWhileProcessesEnd(t *testing.T) {
	t.Parallel()
	r, slow := newRig(t), quick
	slow.Leftovers = time.Minute
	r.opt.timing = &slow
	end := filepath.Join(r.opt.Dir, "end")
	r.program("plain", "bash", "-c", `trap "" TERM HUP; until [ -e `+end+` ]; do sleep 0.02; done & echo started; read; exit 3`).run()
	r.Wait("the start", r.shows("started"))
	asking, attached, out := r.Client(), r.Client(), &viewed{}
	if _, err := r.Client().Type(t.Context(), control.TypeRequest{Text: []byte("x"), Enter: true}); err != nil {
		t.Fatal(err)
	}
	r.Wait("an answer without a program", func() bool {
		s, err := asking.Status(t.Context())
		return err == nil && s.ChildPID == 0
	})
	go attached.Attach(t.Context(), control.AttachRequest{Cols: 100, Rows: 30}, control.Terminal{Out: out})
	r.Wait("the last screen", func() bool { return strings.Contains(out.String(), "started") })
	must(t, os.WriteFile(end, nil, 0o600))
	<-r.Done
	if r.Exit.Code != 3 {
		t.Errorf("%+v", r.Exit)
	}
}

// A stop names the processes that it ended, not those that a restart ended.
func TestStopAfterRestart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	r := newRig(t).program("plain", "bash", "-c", "setsid sh -c 'echo \"[$$]\"; exec sleep 1000' & exec sleep 1000").run()
	started := func() string { return regexp.MustCompile(`\[\d+\]`).FindString(strings.Join(r.Screen(), "")) }
	first := ""
	r.Wait("the start", func() bool { first = started(); return first != "" })
	if _, err := r.Client().Restart(t.Context(), control.RestartRequest{}); err != nil {
		t.Fatal(err)
	}
	r.Wait("the end", r.Has("exited"))
	r.Wait("the next start", func() bool { next := started(); return next != "" && next != first })
	if out, err := r.Client().Stop(t.Context()); err != nil || len(out.Ended) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A stop during a restart is a stop.
func TestStopDuringRestart(t *testing.T) {
	t.Parallel()
	h := startFake(t, testagent.Options{Profile: "claude", Trap: "TERM"}, nil)
	await(t, h, "state_change")
	h.r.Call(func() { // both before its program is killed, which takes two seconds
		if out, err := h.r.restart(control.RestartRequest{}); err != nil || out.Done != "restarting" {
			t.Errorf("%+v, %v", out, err)
		}
		h.r.stop("asked to")
	})
	if exit, err := h.Wait(); err != nil || !exit.Stopped {
		t.Errorf("%+v, %v", exit, err)
	}
	starts := 0
	for e, err := range h.Events(t.Context()) {
		must(t, err)
		if e.Kind == "spawned" {
			starts++
		}
	}
	if starts != 1 {
		t.Errorf("%d starts", starts)
	}
}

// terminal is an attached terminal.
type viewed struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	slow chan struct{} // it reads nothing until this is closed

	hasOutput atomic.Bool
}

func (s *viewed) Write(p []byte) (int, error) {
	s.hasOutput.Store(true)
	if s.slow != nil {
		<-s.slow
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *viewed) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// attach attaches a terminal, and returns the channel for its keys.
func (r *rig) attach() chan<- []byte {
	r.T.Helper()
	keys, out, c := make(chan []byte), &viewed{}, r.Client()
	ctx, cancel := context.WithCancel(context.Background())
	r.T.Cleanup(cancel)
	go c.Attach(ctx, control.AttachRequest{Cols: 100, Rows: 30}, control.Terminal{In: keys, Out: out})
	r.Wait("the terminal to be painted", func() bool { return strings.Contains(out.String(), "❯") })
	return keys
}

// A person's half-typed line blocks mail, and is never submitted by us.
func TestPersonTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	keys := r.attach()
	keys <- []byte("a half-ty")
	r.Wait("the draft", func() bool { return strings.Contains(strings.Join(r.Screen(), "\n"), "a half-ty") })
	id := r.Send("hello")
	time.Sleep(800 * time.Millisecond)
	if !r.Unread(id) || len(r.Fakes(testagent.Submitted)) > 0 {
		t.Fatal("something was typed behind a person's line")
	}
	keys <- []byte("ped line\r")
	r.Wait("the message to be read", r.Read(id))
	got := r.Fakes(testagent.Submitted)
	if len(got) != 2 || got[0] != "a half-typed line" {
		t.Errorf("submitted %q", got)
	}
}

// When a small viewer leaves, the agent's terminal grows again: without room for its prompt it would get no mail.
func TestSmallTerminalLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{}).run().idle()
	size := func() string {
		c := r.Client()
		defer c.Close() // a runner serves a limited number of clients at once
		s, err := c.Screen(t.Context(), control.ScreenRequest{})
		must(t, err)
		return fmt.Sprintf("%dx%d", s.Cols, s.Rows)
	}
	join := func(cols, rows int, want ...string) (leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		c, done := r.Client(), make(chan struct{})
		go func() {
			defer close(done)
			c.Attach(ctx, control.AttachRequest{Cols: cols, Rows: rows}, control.Terminal{Out: &viewed{}})
		}()
		want = append(want, fmt.Sprintf("%dx%d", cols, rows))
		r.Wait("the size", func() bool { return size() == want[0] })
		return func() { cancel(); <-done }
	}
	large := join(110, 40)
	small := join(20, 5)
	small()
	r.Wait("the size of who is left", func() bool { return size() == "110x40" })
	join(100_000, 5, "1000x5")() // a screen keeps every cell
	large()
	r.Wait("the size at the start", func() bool { return size() == "100x30" })
	r.Wait("a message to be read", r.Read(r.Send("hello")))
}

// While the loop is stuck the runner greets and does not answer; then it goes on.
func TestStuckLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "sh", "-c", "echo '$ '; exec sleep 60")
	var isStuck atomic.Bool
	release := make(chan struct{})
	r.opt.now = func() time.Time {
		if isStuck.Load() {
			<-release
		}
		return time.Now()
	}
	r.run()
	r.Wait("the screen", func() bool { return strings.Contains(strings.Join(r.Screen(), "\n"), "$") })
	isStuck.Store(true)
	for what, ask := range map[string]func(*control.Client) error{
		"stop":      func(c *control.Client) error { _, err := c.Stop(t.Context()); return err },
		"interrupt": func(c *control.Client) error { _, err := c.Interrupt(t.Context()); return err },
		"attach": func(c *control.Client) error {
			_, err := c.Attach(t.Context(), control.AttachRequest{}, control.Terminal{Out: io.Discard})
			return err
		},
	} {
		c := r.Client()
		c.Patience = time.Second
		if err := ask(c); !errors.Is(err, control.ErrNotAnswering) {
			t.Errorf("%s: %v", what, err)
		}
	}
	isStuck.Store(false)
	close(release)
	if out, err := r.Client().Stop(t.Context()); err != nil || out.Done != "stopped" {
		t.Errorf("%+v, %v", out, err)
	}
}

// A viewer that was behind when the program exited, and caught up before the next one started, shows the next one.
func TestSlowTerminalOfTwoPrograms(t *testing.T) {
	for name, early := range map[string]bool{"caught up between them": true, "caught up after that": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			w := quick
			w.Backoff = time.Second
			r.opt.timing, r.opt.Restart = &w, OnCrash
			second, begin := filepath.Join(r.opt.Dir, "second"), filepath.Join(r.opt.Dir, "begin")
			r.program("plain", "sh", "-c", "if [ -e "+second+" ]; then echo the second; exec sleep 60; fi; touch "+second+ // zeros draw nothing; they are more than 256 pieces of 4 KiB, and what a socket holds
				"; until [ -e "+begin+" ]; do sleep 0.02; done; head -c 1600000 /dev/zero; exit 1").run()
			slow := &viewed{slow: make(chan struct{})}
			c := r.Client()
			go c.Attach(t.Context(), control.AttachRequest{Cols: r.opt.Cols, Rows: r.opt.Rows}, control.Terminal{Out: slow})
			r.Wait("the terminal", slow.hasOutput.Load)
			must(t, os.WriteFile(begin, nil, 0o600))
			r.Wait("the end of the first", r.Has("restarting"))
			if early {
				close(slow.slow)
				time.Sleep(w.Backoff / 2) // long enough to read everything
			}
			r.Wait("the second", func() bool { return strings.Contains(strings.Join(r.Screen(), "\n"), "the second") })
			if !early {
				close(slow.slow)
			}
			r.Wait("the terminal to show the second", func() bool { return strings.Contains(slow.String(), "the second") })
		})
	}
}

// Stopped in the pause before a restart, the agent is off, not starting for ever.
func TestStopBetweenTwoPrograms(t *testing.T) {
	t.Parallel()
	r := newRig(t).program("plain", "sh", "-c", "exit 3")
	w := quick
	w.Backoff = time.Minute
	r.opt.timing, r.opt.Restart = &w, OnCrash
	r.run()
	r.Wait("the pause", r.Has("restarting"))
	if out, err := r.Client().Stop(t.Context()); err != nil || out.Done != "stopped" {
		t.Fatalf("%+v, %v", out, err)
	}
	<-r.Done
	state := reducer.State{Team: "main", Agent: "bob"}
	all, err := r.Bob.Log().Newest(1 << 20)
	must(t, err)
	for i := range all {
		state.Apply(&all[i])
	}
	if turn := state.Session(); turn.Word() != reducer.WordOff || turn.Detail != "stopped" {
		t.Errorf("it is %s %s: %q", turn.Word(), turn.Detail, r.Events())
	}
}

// The next program starts when the end of the one before it is in the log: what its hooks report belongs behind that.
func TestRestartComesAfterTheEndInTheLog(t *testing.T) {
	t.Parallel()
	r, w := newRig(t).program("plain", "sh", "-c", `cat bob/events/* | grep -c '"kind":"exited"' >>starts; exec sleep 1000`), quick
	w.Logged = time.Hour
	r.opt.timing, r.opt.Restart = &w, OnCrash
	r.run()
	starts := func() string {
		lines, _ := os.ReadFile(filepath.Join(r.opt.Dir, "starts"))
		return string(lines)
	}
	r.Wait("the start", func() bool { return starts() == "0\n" })
	r.Wait("the start in the log", r.Has("spawned"))
	first, err := r.status()
	must(t, err)
	lock, err := r.Store.Locks().Lock(t.Context(), "bob.events", lockfile.Exclusive, time.Minute, nil)
	must(t, err)
	child, err := os.FindProcess(first.ChildPID)
	must(t, err)
	must(t, child.Kill())
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) && starts() == "0\n"; { // it would start now
		time.Sleep(20 * time.Millisecond)
	}
	must(t, lock.Unlock())
	r.Wait("the next start", func() bool { return strings.Count(starts(), "\n") == 2 })
	if starts() != "0\n1\n" {
		t.Errorf("ends in the log before each start: %q", starts())
	}
}
