//go:build unix

package sessions

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// hurried gives up on locks soon, and counts the failures that are logged under a message.
func (r *rig) hurried(message string) *counter {
	r.useSessions(session.OpenOptions{LockTimeout: 50 * time.Millisecond})
	return r.failures(message)
}

// failures counts those that are logged under a message.
func (r *rig) failures(message string) *counter {
	c := &counter{text: []byte("msg=" + message)}
	r.opt.Log = slog.New(slog.NewTextHandler(c, nil))
	return c
}

// counter counts the lines with a text.
type counter struct {
	text  []byte
	lines atomic.Int64
}

func (c *counter) Write(line []byte) (int, error) {
	if bytes.Contains(line, c.text) {
		c.lines.Add(1)
	}
	return len(line), nil
}

// known waits until the runner knows its session.
func (r *rig) known() wire.UUID {
	r.T.Helper()
	id := r.awaitSession().onlySession().SessionID
	r.Wait("what was said to be read", r.Read(r.say(id, text("hello"))))
	return id
}

// Whoever hears that the agent is ready finds the session that begins with it.
func TestReadyWithItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true}).fake()
	r.useSessions(session.OpenOptions{LockTimeout: 5 * time.Minute})
	release := r.Lock("team")
	r.run().Wait("the prompt", r.Has(`state_change new="idle"`))
	c := r.Client()
	isReady := func() bool {
		s, err := c.Status(t.Context())
		must(t, err)
		return s.Ready
	}
	r.Wait("what is given at the prompt to be read", r.Read(r.Send("SAY hello")))
	if isReady() {
		t.Error("it is ready, and its session has not begun")
	}
	release()
	r.Wait("it to be ready", isReady)
	if s := r.onlySession(); !s.State.Alive() {
		t.Errorf("the session is %s", s.State)
	}
}

// An abort does not wait for another process's lock; what cannot be written meanwhile is written by the next runner.
func TestAbortOfLockedSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true}).fake()
	r.hurried("sessions")
	r.run().idle()
	id := r.known()
	release := r.Lock("team")
	r.say(id, foreign.HumanInput{Kind: "abort"})
	select {
	case <-r.Done:
	case <-time.After(time.Minute):
		t.Fatal("the agent runs on")
	}
	release()
	if !r.Exit.Stopped {
		t.Errorf("%+v", r.Exit)
	}
	r.mail.Release()
	r.Done = make(chan struct{})
	r.run().Wait("the abort to be carried out", func() bool {
		s, err := r.sessions().Get(id)
		return err == nil && s.State == session.Aborted
	})
}

// An abort from before the run, of a session that is alive, is retried and finally read.
func TestEarlyAbortOfLockedSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}).fake()
	failures := r.hurried("sessions")
	abort := r.say(r.open(), foreign.HumanInput{Kind: "abort"})
	release := r.Lock("team")
	r.run()
	r.Wait("two failures", func() bool { return failures.lines.Load() >= 2 })
	r.Wait("the session", r.hasSession) // one that was over before the runner read it stops nobody
	if !r.Unread(abort) {
		t.Error("it was read, and has ended nothing")
	}
	release()
	<-r.Done
	if s := r.onlySession(); s.State != session.Aborted || r.Unread(abort) {
		t.Errorf("it is %s; the abort is unread: %v", s.State, r.Unread(abort))
	}
}

// A file that holds no session is the doctor's business: it holds no abort back and does not fill the log.
func TestFileThatIsNoSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true}).fake()
	failures := r.failures("sessions")
	must(t, r.Store.Dir().Mkdir(".sessions"))
	broken := filepath.Join(r.Store.Dir().Path(), ".sessions", "11111111-2222-4333-8444-555555555555.json")
	must(t, os.WriteFile(broken, []byte("{}"), 0o600))
	abort := r.say("", foreign.HumanInput{Kind: "abort"})
	r.run().idle()
	r.Wait("the old abort to be read", r.Read(abort))
	r.Wait("what was said", r.Read(r.say("", text("hello"))))
	if n := failures.lines.Load(); n > 0 {
		t.Errorf("%d failures are logged", n)
	}
}

// A goal is not lost because another process holds the lock when it is reached.
func TestGoalOfLockedSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Rules: session.Rules{OnGoal: true}}).fake()
	failures := r.hurried("sessions")
	r.run().idle().known()
	release := r.Lock("team")
	events, err := session.Events("", foreign.SessionEvent{Kind: "goal_complete", GoalID: "11111111-2222-4333-8444-555555555555"})
	must(t, err)
	must(t, r.Bob.Log().Append(t.Context(), events...))
	r.Wait("a failure", func() bool { return failures.lines.Load() > 0 })
	release()
	select {
	case <-r.Done:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	if s := r.onlySession(); s.EndedByRule() != "goal_complete" {
		t.Errorf("%s by %q", s.State, s.EndedByRule())
	}
}

// A session does not time out while a person types in the agent's terminal.
func TestSessionIsNotIdleWhileSomebodyTypes(t *testing.T) {
	t.Parallel()
	const idle = 3 * time.Second
	r := newRig(t, Options{Begin: true, Rules: session.Rules{WhenIdle: idle}}).fake()
	r.run().idle().awaitSession()
	keys := make(chan []byte)
	go r.Client().Attach(t.Context(), control.AttachRequest{Cols: 100, Rows: 30}, control.Terminal{In: keys, Out: io.Discard})
	last := time.Now()
	for typed := 0; typed < 6; typed++ {
		select {
		case <-r.Done: // only if this machine was too slow to type
			if d := time.Since(last); d < idle && typed > 0 {
				t.Fatalf("the agent was stopped %s after a key", d)
			}
			typed = 6
		case keys <- []byte("x"):
			last = time.Now()
			time.Sleep(idle / 4)
		}
	}
	<-r.Done
	if s := r.onlySession(); s.EndedByRule() != "idle_timeout: 3s" {
		t.Errorf("%s by %q", s.State, s.EndedByRule())
	}
}

// If another runner has taken over, the sessions are that runner's, even if this one noticed only at its end.
func TestSessionOfAnotherRunner(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig){
		"noticed":              func(*rig) {},
		"not yet noticed":      func(r *rig) { r.Stop() },
		"the program has left": func(r *rig) { r.Send("EXIT 0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Begin: true}).fake()
			r.run().idle().awaitSession()
			must(t, os.Remove(filepath.Join(r.opt.Dir, ".locks", "bob.runner")))
			hold, err := claim.HoldRunner(t.Context(), r.Store, "bob")
			must(t, err)
			defer hold.Release()
			end(r)
			<-r.Done
			if s := r.onlySession(); s.State != session.Active {
				t.Errorf("it is %s", s.State)
			}
		})
	}
}
