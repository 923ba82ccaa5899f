//go:build linux || darwin

package follow

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/testteam"
	"github.com/agentteammail/atm/internal/push/codex"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/rootdir"
	"github.com/agentteammail/atm/wire"
)

func TestMain(m *testing.M) {
	lookEvery, retry = 100*time.Millisecond, 50*time.Millisecond
	testteam.Main(m, nil)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("not in 20 s: ", what)
		}
	}
}

// A scene is a team in which bob's conversation is the thread T of a server.
type scene struct {
	*fakeServer
	team *teams.Team
	bob  *mailbox.Box

	cancel context.CancelFunc
	ended  chan error // of the follower
}

func newScene(t *testing.T) *scene {
	made := testteam.New(t, "bob", "lead")
	t.Setenv("HOME", made.Dir)
	root := filepath.Join(made.Dir, ".atm")
	place := (&app.Given{Root: root}).Place()
	place.Dir = root
	found, _, err := rootdir.Find(place)
	must(t, err)
	opened, err := teams.OpenFound(found)
	must(t, err)
	t.Cleanup(func() { opened.Close() })
	team, err := opened.Team("main")
	must(t, err)
	dir, err := os.MkdirTemp("", "cx")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &scene{fakeServer: newServer(t, filepath.Join(dir, "s")), team: team, bob: team.Box("bob")}
	s.bind("T")
	return s
}

// bind notes that this process shows bob a conversation, as the hooks do.
func (s *scene) bind(thread string) { s.bindTo(os.Getpid(), thread) }

func (s *scene) bindTo(pid int, thread string) {
	s.t.Helper()
	p, _ := process.Find(pid)
	must(s.t, s.team.NoteProgram("bob", teams.Program{Tool: "codex", PID: p.PID, Start: p.Start, Session: thread}, true))
}

// follow starts a follower.
func (s *scene) follow() {
	ctx, cancel := context.WithCancel(s.t.Context())
	f := &follower{team: s.team, box: s.bob, thread: "T", socket: s.socket, log: slog.New(slog.DiscardHandler)}
	s.cancel, s.ended = cancel, make(chan error, 1)
	ended := s.ended
	go func() { ended <- f.run(ctx) }()
	s.t.Cleanup(s.kill)
}

// kill ends the follower.
func (s *scene) kill() {
	s.cancel()
	select {
	case err := <-s.ended:
		s.ended <- err
	case <-time.After(20 * time.Second):
		s.t.Error("the follower does not end")
	}
}

// ends waits until the follower ends by itself.
func (s *scene) ends() {
	s.t.Helper()
	select {
	case err := <-s.ended:
		must(s.t, err)
		s.ended <- nil
	case <-time.After(20 * time.Second):
		s.t.Fatal("the follower does not end")
	}
}

func (s *scene) isNoted() bool {
	p, ok := s.team.Bound("bob")
	return ok && p.Server == s.socket && len(p.Opens) == 1 && p.Opens[0] == agents.ServerQueue
}

func (s *scene) send(text string, change func(*wire.Message)) *wire.Message {
	s.t.Helper()
	o := &teams.Outgoing{From: s.team.Box("lead"), To: []wire.Address{s.bob.Address()}, Message: &wire.Message{Body: text}}
	if change != nil {
		change(o.Message)
	}
	must(s.t, s.team.Root().Send(s.t.Context(), o))
	return o.Message
}

func (s *scene) isRead(m *wire.Message) func() bool {
	return func() bool {
		it, err := s.bob.Get(m.ID)
		return err == nil && it.State != mailbox.Unread
	}
}

func (s *scene) isQueued(m *wire.Message) func() bool {
	return s.has(func() bool { return len(s.queue) == 1 && s.queue[0].ClientID == string(m.ID) })
}

func TestMailBeginsATurn(t *testing.T) {
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	m := s.send("Rebase, please.", nil)
	eventually(t, "the message in the queue", s.isQueued(m))
	s.mu.Lock()
	text := s.queue[0].Input[0].Text
	s.mu.Unlock()
	if !strings.HasPrefix(text, "[atm "+m.ID.Short(6)+" from lead, now]") || !strings.Contains(text, letter.NotTyped) {
		t.Errorf("it says %q", text)
	}
	if s.isRead(m)() {
		t.Error("it counts as read before the agent has it")
	}
	s.become(codex.Active, "U1")
	eventually(t, "the message to be read", s.isRead(m))
	s.become(codex.Idle, "")
	eventually(t, "the end of listening", s.has(func() bool { return s.asked[len(s.asked)-1] == "thread/unsubscribe" }))
}

// The hooks hand over what is not urgent while a turn runs.
func TestUrgentMailGoesIntoTheTurn(t *testing.T) {
	s := newScene(t)
	s.become(codex.Active, "U7")
	s.follow()
	eventually(t, "the note", s.isNoted)
	s.send("No hurry.", nil)
	m := s.send("Stop!", func(m *wire.Message) { m.Priority = "urgent" })
	eventually(t, "the message in the turn", s.has(func() bool {
		return len(s.steered) == 1 && s.steered[0].ClientID == string(m.ID) && s.steered[0].Expected == "U7"
	}))
	s.mu.Lock()
	s.take(s.steered[0])
	s.mu.Unlock()
	eventually(t, "the message to be read", s.isRead(m))
	if len(s.queue) > 0 {
		t.Errorf("in the queue: %v", s.queue)
	}
}

func TestWithdrawnMailLeavesTheQueue(t *testing.T) {
	s := newScene(t)
	s.follow()
	m := s.send("Never mind.", nil)
	eventually(t, "the message in the queue", s.isQueued(m))
	_, err := s.team.Root().Withdraw(t.Context(), s.team.Box("lead"), m, s.bob.Address(), nil)
	must(t, err)
	eventually(t, "an empty queue and inbox", func() bool {
		unread, err := s.bob.UnreadIDs()
		return err == nil && len(unread) == 0 && s.has(func() bool { return len(s.queue) == 0 })()
	})
}

// What a person has queued in the terminal is not ours, whatever its id.
func TestThePersonsQueueStays(t *testing.T) {
	s := newScene(t)
	theirs := queued{ID: "q", ClientID: string(wire.NewID())}
	s.queue = []queued{theirs}
	s.become(codex.Idle, "")
	s.follow()
	m := s.send("Beside that.", nil)
	eventually(t, "both in the queue", s.has(func() bool {
		return len(s.queue) == 2 && s.queue[0].ClientID == theirs.ClientID && s.queue[1].ClientID == string(m.ID)
	}))
	_, err := s.team.Root().Withdraw(t.Context(), s.team.Box("lead"), m, s.bob.Address(), nil)
	must(t, err)
	eventually(t, "only the person's in the queue", s.has(func() bool { return len(s.queue) == 1 && s.queue[0].ClientID == theirs.ClientID }))
}

// What the server has already is not given again after the process was killed.
func TestAfterAKill(t *testing.T) {
	s := newScene(t)
	s.follow()
	m := s.send("Once.", nil)
	eventually(t, "the message in the queue", s.isQueued(m))
	s.kill()
	s.mu.Lock() // the agent gets it while nobody follows
	s.turn = "U1"
	s.items = append(s.items, item{Type: codex.UserMessage, ID: "1", ClientID: s.queue[0].ClientID})
	s.queue = nil
	s.mu.Unlock()
	s.follow()
	eventually(t, "the message to be read", s.isRead(m))

	second := s.send("Twice?", nil)
	eventually(t, "the message in the queue", s.isQueued(second))
	s.kill()
	s.follow()
	third := s.send("Later.", nil)
	eventually(t, "the note", s.isNoted)
	s.become(codex.Active, "U2")
	eventually(t, "the message to be read", s.isRead(second))
	s.become(codex.Idle, "")
	eventually(t, "the message in the queue", s.isQueued(third))
	adds := 0
	for _, method := range s.asked {
		if method == "thread/queue/add" {
			adds++
		}
	}
	if adds != 3 {
		t.Errorf("given %d times", adds)
	}
}

// A kill between the claim and the push loses nothing, and one between the push and its note repeats nothing.
func TestKilledBesideThePush(t *testing.T) {
	for _, isIn := range []bool{false, true} {
		s := newScene(t)
		m := s.send("Once.", nil)
		claimedAt := time.Now().Add(-11 * time.Second) // its time is over
		h, err := s.bob.HandOver(t.Context(), mailbox.HookCall{Session: "T", Name: "push 1", IsPush: true, CanCarryMail: true, Now: claimedAt}, mailbox.ReadOptions{})
		must(t, err)
		if len(h.Items) != 1 {
			t.Fatal("nothing claimed")
		}
		if isIn {
			s.queue = []queued{{ID: "q", ClientID: string(m.ID)}}
		}
		s.follow()
		eventually(t, "the message in the queue", s.isQueued(m))
		s.become(codex.Active, "U1")
		eventually(t, "the message to be read", s.isRead(m))
		s.mu.Lock()
		if len(s.items) != 1 {
			t.Errorf("it got %v", s.items)
		}
		s.mu.Unlock()
	}
}

// Nothing is given to a thread whose program has ended, although the server still has it.
func TestThePersonHasLeft(t *testing.T) {
	s := newScene(t)
	program := exec.Command("sleep", "600")
	must(t, program.Start())
	s.team.ForgetProgram("bob", s.team.Programs("bob")[0])
	s.bindTo(program.Process.Pid, "T")
	s.follow()
	eventually(t, "the note", s.isNoted)
	program.Process.Kill()
	program.Wait()
	m := s.send("Are you there?", nil)
	s.ends()
	if s.isQueued(m)() {
		t.Error("it was given to nobody")
	}
}

// The turn that a pushed message begins may be the first one of a server: its hooks do not give the message again.
func TestSessionBeginsWithAPush(t *testing.T) {
	s := newScene(t)
	s.follow()
	m := s.send("Once.", nil)
	eventually(t, "the message in the queue", s.isQueued(m))
	begins := mailbox.HookCall{Session: "T", Name: "SessionStart", IsNewProgram: true, KeepsPushed: true, CanCarryMail: true, Now: time.Now()}
	h, err := s.bob.HandOver(t.Context(), begins, mailbox.ReadOptions{})
	must(t, err)
	if len(h.Items) != 0 {
		t.Errorf("it was given again")
	}
	s.become(codex.Active, "U1")
	eventually(t, "the message to be read", s.isRead(m))
}

func TestOneFollows(t *testing.T) {
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	if !s.team.IsFollowed("bob") {
		t.Error("bob is not followed")
	}
	first, stop := s.ended, s.cancel
	s.follow()
	s.ends()
	s.ended, s.cancel = first, stop
}

func TestEndings(t *testing.T) {
	for what, end := range map[string]func(*scene){
		"another conversation": func(s *scene) { s.bind("T2") },
		"retired": func(s *scene) {
			_, err := s.team.Retire(s.t.Context(), "bob")
			must(s.t, err)
		},
		"a runner": func(s *scene) {
			r, err := s.team.HoldRunner(s.t.Context(), "bob")
			must(s.t, err)
			s.t.Cleanup(func() { r.Release() })
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			s.follow()
			eventually(t, "the note", s.isNoted)
			end(s)
			s.ends()
		})
	}
}

func TestServerRestarts(t *testing.T) {
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	s.stop()
	m := s.send("While it is away.", nil)
	s.loaded = false
	s.listen()
	eventually(t, "the new server to be asked", s.has(func() bool { return s.asked[len(s.asked)-1] == "thread/loaded/list" }))
	s.mu.Lock()
	s.loaded = true // its terminal has come back
	s.mu.Unlock()
	eventually(t, "the message in the queue", s.isQueued(m))
}

func TestServerIsGoneForGood(t *testing.T) {
	before := patience
	patience = 100 * time.Millisecond
	t.Cleanup(func() { patience = before })
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	s.stop()
	err := <-s.ended
	if s.ended <- nil; !errors.Is(err, codex.ErrGone) {
		t.Error(err)
	}
}

// An approval can be given from elsewhere; the terminal's answer ends the question.
func TestApproval(t *testing.T) {
	s := newScene(t)
	must(t, os.WriteFile(s.team.Dir().Join("team.toml"), []byte("[[rules]]\ntool = \"Bash(touch a)\"\ndecision = \"allow\"\n"), 0o600))
	s.become(codex.Active, "U1")
	must(t, s.bob.Log().Append(t.Context(), wire.Event{Kind: wire.TurnStarted, Source: "hook", Session: "T", TurnID: "U1"}))
	s.follow()
	eventually(t, "the note", s.isNoted)
	ask := func(id int, command string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fakeServer.send(object{"id": id, "method": codex.ApproveCommand, "params": object{
			"threadId": "T", "turnId": "U1", "itemId": "call" + command, "command": "/bin/bash -lc '" + command + "'",
		}})
	}
	isPending := func(n int) func() bool {
		return func() bool {
			all, err := s.team.Questions("bob")
			return err == nil && len(all) == n
		}
	}
	ask(7, "touch a")
	eventually(t, "a rule to answer", s.has(func() bool { return len(s.answers) == 1 && s.answers[0] == `{"id":7,"result":{"decision":"accept"}}` }))
	ask(8, "rm a")
	eventually(t, "the question", isPending(1))
	s.mu.Lock()
	s.tell(codex.Resolved, object{"requestId": 8})
	s.mu.Unlock()
	eventually(t, "the question to be over", isPending(0))
	if len(s.answers) != 1 {
		t.Errorf("answered %v", s.answers)
	}
}
