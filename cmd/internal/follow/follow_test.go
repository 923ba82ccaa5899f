//go:build linux || darwin

package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/cmd/internal/testteam"
	hooks "github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

func TestMain(m *testing.M) {
	lookEvery, retry, beginAfter = 100*time.Millisecond, 50*time.Millisecond, time.Hour
	testteam.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("not in time: ", what)
		}
	}
}

// A scene is a team in which bob's conversation is the thread T of a server.
type scene struct {
	*fakeServer
	made *testteam.Team
	team *teamdir.Team
	bob  *maildir.Box

	fault  *atomic.Pointer[func(op, name string) error] // see durable.Fault
	limit  int                                          // of messages in one text
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
	must(t, rootdir.Accept(place, found.Path))
	var fault atomic.Pointer[func(op, name string) error]
	durable.FailNext(found.Path, func(op, name string) error {
		if fails := fault.Load(); fails != nil {
			return (*fails)(op, name)
		}
		return nil
	})
	opened, err := teamdir.OpenFound(found, notices.Tell)
	must(t, err)
	t.Cleanup(func() { opened.Close() })
	team, err := opened.Team("main")
	must(t, err)
	dir, err := os.MkdirTemp("", "cx")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &scene{fakeServer: newServer(t, filepath.Join(dir, "s")), made: made, team: team, bob: team.Box("bob"), fault: &fault}
	s.bind("T")
	return s
}

// bind notes that this process shows bob a conversation, as the hooks do.
func (s *scene) bind(thread string) { s.bindTo(os.Getpid(), thread) }

func (s *scene) bindTo(pid int, thread string) {
	s.t.Helper()
	p, _ := process.Find(pid)
	must(s.t, programs.Note(s.team, "bob", programs.Program{Tool: "codex", PID: p.PID, Start: p.Start, Session: thread}, true))
}

// follow starts a follower.
func (s *scene) follow() {
	ctx, cancel := context.WithCancel(s.t.Context())
	f := &follower{team: s.team, box: s.bob, thread: "T", socket: s.socket, limit: max(1, s.limit), log: slog.New(slog.DiscardHandler)}
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
	case <-time.After(3 * time.Minute):
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
	case <-time.After(3 * time.Minute):
		s.t.Fatal("the follower does not end")
	}
}

func (s *scene) isNoted() bool {
	p, ok := programs.Bound(s.team, "bob")
	return ok && p.Server == s.socket && len(p.Opens) == 1 && p.Opens[0] == agents.ServerQueue
}

func (s *scene) send(text string, change func(*wire.Message)) *wire.Message {
	s.t.Helper()
	o := &post.Outgoing{From: s.team.Box("lead"), To: []wire.Address{s.bob.Address()}, Message: &wire.Message{Body: text}}
	if change != nil {
		change(o.Message)
	}
	_, err := post.Send(s.t.Context(), s.team.Root(), o)
	must(s.t, err)
	return o.Message
}

func (s *scene) isRead(m *wire.Message) func() bool {
	return func() bool {
		it, err := s.bob.Get(m.ID)
		return err == nil && it.State != maildir.Unread
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
	if is := regexp.MustCompile(`^\[atm ` + m.ID.Short(6) + ` from lead, (now|\d+s ago)\]`); !is.MatchString(text) || !strings.Contains(text, letter.NotTyped) {
		t.Errorf("it says %q", text)
	}
	if s.isRead(m)() {
		t.Error("it counts as read before the agent has it")
	}
	s.become(appserver.Active, "U1")
	eventually(t, "the message to be read", s.isRead(m))
	s.become(appserver.Idle, "")
	eventually(t, "the end of listening", s.has(func() bool { return s.asked[len(s.asked)-1] == "thread/unsubscribe" }))
}

// After a person has ended a turn Codex's queue waits for the next one.
func TestQueueThatWaits(t *testing.T) {
	before := beginAfter
	beginAfter = 50 * time.Millisecond
	t.Cleanup(func() { beginAfter = before })
	s := newScene(t)
	s.follow()
	first, second := s.send("Go on.", nil), s.send("And then?", nil)
	for _, m := range []*wire.Message{first, second} {
		eventually(t, "the message to begin a turn", s.has(func() bool {
			return len(s.started) == 1 && s.started[0].ClientID == string(m.ID) && len(s.queue) == 0
		}))
		s.mu.Lock()
		s.take(s.started[0])
		s.started = nil
		s.mu.Unlock()
		eventually(t, "the message to be read", s.isRead(m))
	}
}

// Without hooks all mail goes together, and is read when the agent has the text.
func TestAllMailAtOnce(t *testing.T) {
	s := newScene(t)
	s.limit = letter.MaxMessages
	all := []*wire.Message{s.send("One.", nil), s.send("Two.", nil), s.send("Three.", nil)}
	s.follow()
	eventually(t, "the messages in the queue", s.isQueued(all[0]))
	s.mu.Lock()
	text := s.queue[0].Input[0].Text
	s.mu.Unlock()
	if !regexp.MustCompile(`(?s)One\..*Two\..*Three\.`).MatchString(text) {
		t.Errorf("it says %q", text)
	}
	s.become(appserver.Active, "U1")
	for _, m := range all {
		eventually(t, "the message to be read", s.isRead(m))
	}
}

// The hooks hand over what is not urgent while a turn runs, as long as they are called.
func TestMailOfALongCommand(t *testing.T) {
	before := steerNow
	steerNow = 50 * time.Millisecond
	t.Cleanup(func() { steerNow = before })
	s := newScene(t)
	s.become(appserver.Active, "U7")
	s.follow()
	eventually(t, "the note", s.isNoted)
	m := s.send("No hurry.", nil)
	eventually(t, "the message in the turn", s.has(func() bool { return len(s.steered) == 1 && s.steered[0].ClientID == string(m.ID) }))
}

// Codex calls no hook when a turn has failed: the server tells, also of one that failed before anybody listened. Mail begins
// the next turn.
func TestFailedTurn(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		t.Run(fmt.Sprint(isLate), func(t *testing.T) {
			s := newScene(t)
			must(t, s.bob.Log().Append(t.Context(), wire.Event{Kind: wire.TurnStarted, Source: "hook", Session: "T", TurnID: "U1"}.With("transport", "hook")))
			fail := func() {
				s.become("systemError", "")
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = object{"id": "U1", "status": "failed", "error": object{"message": "You've hit your usage limit."}}
				s.tell(appserver.TurnCompleted, object{"turn": s.failed})
			}
			if s.become(appserver.Active, "U1"); isLate {
				fail()
			}
			s.follow()
			eventually(t, "the note", s.isNoted)
			if !isLate {
				eventually(t, "the subscription", s.has(func() bool { return slices.Contains(s.asked, "thread/resume") }))
				fail()
			}
			eventually(t, "the end of the turn", func() bool {
				st, err := s.team.State("bob")
				return err == nil && !st.Session().Turn.IsOpen() && st.Session().Last != nil && st.Session().Last.Status == reducer.Failed
			})
			m := s.send("Go on.", nil)
			eventually(t, "the message in the queue", s.isQueued(m))
		})
	}
}

// The conversation that was used last gets the mail: another window's of the same name, or the one that the program shows
// now, for who would start the next follower may have seen this one.
func TestOtherConversation(t *testing.T) {
	for _, where := range []string{"another window", "this window"} {
		t.Run(where, func(t *testing.T) {
			s := newScene(t)
			s.follow()
			eventually(t, "the note", s.isNoted)
			pid := os.Getpid()
			if where == "another window" {
				window := exec.Command("sleep", "600")
				must(t, window.Start())
				t.Cleanup(func() {
					window.Process.Kill()
					window.Wait()
				})
				pid = window.Process.Pid
			}
			s.mu.Lock()
			s.id = "T2"
			s.mu.Unlock()
			s.bindTo(pid, "T2")
			m := s.send("Hello.", nil)
			eventually(t, "the message in the queue", s.isQueued(m))
			if !s.has(func() bool { return s.queuedIn == "T2" })() {
				t.Error("it is in the conversation that was left")
			}
		})
	}
}

// So it is whatever the follower was about to do.
func TestOtherConversationMeanwhile(t *testing.T) {
	s := newScene(t)
	for what, do := range map[string]func(*follower) error{
		"check": (*follower).checkBound,
		"note":  func(f *follower) error { return f.note(nil) },
	} {
		f := &follower{team: s.team, box: s.bob, thread: "T", socket: s.socket}
		s.bind("T2")
		if err := do(f); !errors.Is(err, errOther) || f.thread != "T2" {
			t.Errorf("%s: %v, it follows %s", what, err, f.thread)
		}
		s.bind("T")
	}
}

// The hooks hand over what is not urgent while a turn runs.
func TestUrgentMailGoesIntoTheTurn(t *testing.T) {
	s := newScene(t)
	s.become(appserver.Active, "U7")
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
	_, err := post.Withdraw(t.Context(), s.team.Root(), s.team.Box("lead"), m, s.bob.Address(), nil)
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
	s.become(appserver.Idle, "")
	s.follow()
	m := s.send("Beside that.", nil)
	eventually(t, "both in the queue", s.has(func() bool {
		return len(s.queue) == 2 && s.queue[0].ClientID == theirs.ClientID && s.queue[1].ClientID == string(m.ID)
	}))
	_, err := post.Withdraw(t.Context(), s.team.Root(), s.team.Box("lead"), m, s.bob.Address(), nil)
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
	s.items = append(s.items, item{Type: appserver.UserMessage, ID: "1", ClientID: s.queue[0].ClientID})
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
	s.become(appserver.Active, "U2")
	eventually(t, "the message to be read", s.isRead(second))
	s.become(appserver.Idle, "")
	eventually(t, "the message in the queue", s.isQueued(third))
	s.mu.Lock()
	defer s.mu.Unlock()
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
		h, err := claim.HandOver(t.Context(), s.bob, claim.Recipient{Owner: claimfile.PushedTo("T"), Call: "push 1", Now: claimedAt}, inbox.ReadOptions{})
		must(t, err)
		if len(h.Items) != 1 {
			t.Fatal("nothing claimed")
		}
		if isIn {
			s.queue = []queued{{ID: "q", ClientID: string(m.ID)}}
		}
		s.follow()
		eventually(t, "the message in the queue", s.isQueued(m))
		s.become(appserver.Active, "U1")
		eventually(t, "the message to be read", s.isRead(m))
		if !s.has(func() bool { return len(s.items) == 1 })() {
			t.Errorf("it got %v", s.items)
		}
	}
}

// A server may queue late what it was given before a kill, and a turn may take that out of the queue while the process
// looks where it is.
func TestTakenBetweenTwoLooks(t *testing.T) {
	s := newScene(t)
	m := s.send("Once.", nil)
	claimedAt := time.Now().Add(-11 * time.Second) // its time is over
	_, err := claim.HandOver(t.Context(), s.bob, claim.Recipient{Owner: claimfile.PushedTo("T"), Call: "push 1", Now: claimedAt}, inbox.ReadOptions{})
	must(t, err)
	looks := 0
	s.odd = func(method string) (string, bool) {
		if method == "thread/queue/list" || method == "thread/items/list" {
			switch looks++; looks {
			case 3: // after two at the beginning, the first one before it is given once more
				s.queue = []queued{{ID: "q", ClientID: string(m.ID)}}
			case 4:
				s.status, s.turn = appserver.Active, "U1"
				s.take(s.queue[0])
				s.queue = nil
			}
		}
		return "", false
	}
	s.follow()
	eventually(t, "the message to be read", s.isRead(m))
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.asked, "thread/queue/add") {
		t.Error("it was given twice")
	}
}

// Nothing is given to a thread whose program has ended, although the server still has it.
func TestThePersonHasLeft(t *testing.T) {
	s := newScene(t)
	program := exec.Command("sleep", "600")
	must(t, program.Start())
	programs.Forget(s.team, "bob", programs.Of(s.team, "bob")[0])
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
	begins := hooks.Call{Box: s.bob, Session: "T", Name: "SessionStart", IsNewProgram: true, KeepsPushed: true, Now: time.Now()}
	_, err := begins.Settle(t.Context(), nil)
	must(t, err)
	h, err := begins.HandOver(t.Context(), inbox.ReadOptions{})
	must(t, err)
	if len(h.Items) != 0 {
		t.Errorf("it was given again")
	}
	s.become(appserver.Active, "U1")
	eventually(t, "the message to be read", s.isRead(m))
}

func TestOneFollows(t *testing.T) {
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	if !programs.IsFollowed(s.team, "bob") {
		t.Error("bob is not followed")
	}
	first, stop := s.ended, s.cancel
	s.follow()
	s.ends()
	s.ended, s.cancel = first, stop
}

// Whoever sends starts the process again that was killed, with nothing of its own environment.
func TestASenderStartsIt(t *testing.T) {
	s := newScene(t)
	home := filepath.Dir(s.socket)
	socket := filepath.Join(home, "app-server-control", "app-server-control.sock")
	must(t, os.Mkdir(filepath.Dir(socket), 0o700))
	s.stop()
	s.socket = socket
	s.listen()
	program := exec.Command("sleep", "600")
	program.Env = append(os.Environ(), "CODEX_HOME="+home, "HOME="+s.made.Dir, "XDG_STATE_HOME="+filepath.Join(s.made.Dir, ".state"), "OF=program")
	must(t, program.Start())
	t.Cleanup(func() { program.Process.Kill(); program.Wait() })
	programs.Forget(s.team, "bob", programs.Of(s.team, "bob")[0])
	s.bindTo(program.Process.Pid, "T")
	s.made.Env = append(s.made.Env, "ATM_AGENT=lead", "ATM_SHELL=lead@main", "CODEX_THREAD_ID=other", "OF=sender")

	s.made.Atm("send", "bob", "Nobody has followed it yet.")
	if programs.IsFollowed(s.team, "bob") || s.has(func() bool { return len(s.asked) > 0 })() {
		t.Fatal("a sender has begun to follow")
	}
	s.follow() // as the hook would
	eventually(t, "the first message in the queue", s.has(func() bool { return len(s.queue) == 1 }))
	s.kill()
	if out := s.made.Atm("status", "bob"); !strings.Contains(out, "process that gave it the mail has ended") {
		t.Error(out)
	}
	s.become(appserver.Active, "U1") // and takes that one
	s.become(appserver.Idle, "")

	out := s.made.Atm("send", "bob", "Start it.")
	if !strings.Contains(out, "it takes it") {
		t.Error(out)
	}
	eventually(t, "the second message in the queue", s.has(func() bool { return len(s.queue) == 1 }))
	followers := slices.DeleteFunc(process.Named("atm-more"), func(p process.Info) bool {
		return !slices.Contains(process.Arguments(p.PID), s.team.Root().Path)
	})
	if len(followers) != 1 {
		t.Fatal(followers)
	}
	for _, pair := range process.Environment(followers[0].PID) {
		name, value, _ := strings.Cut(pair, "=")
		isOurs := strings.HasPrefix(name, "ATM_") || strings.HasPrefix(name, "CODEX_") || name == "OF"
		if isOurs || name == "HOME" && value != s.made.Dir {
			t.Errorf("it has %s", pair)
		}
	}
	program.Process.Kill()
	program.Wait()
	s.made.Atm("send", "bob", "Has it ended?") // it looks now, not in half a minute
	eventually(t, "its end", func() bool { return !programs.IsFollowed(s.team, "bob") })
}

// A sender that does not reach the server, as in a sandbox, starts nothing and promises nothing.
func TestASenderWithoutTheServer(t *testing.T) {
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	s.kill()
	s.stop()
	started := false
	s.team.Root().StartFollower = func(*teamdir.Team, wire.Name, string, int) error { started = true; return nil }
	o := &post.Outgoing{From: s.team.Box("lead"), To: []wire.Address{s.bob.Address()}, Message: &wire.Message{Body: "Later."}}
	sent, err := post.Send(t.Context(), s.team.Root(), o)
	must(t, err)
	if when := outlook.Of(t.Context(), s.team.Root(), sent.To[0], o.Message).Text; started || strings.Contains(when, "takes it") {
		t.Error(started, when)
	}
}

func TestEndings(t *testing.T) {
	for what, end := range map[string]func(*scene){
		"retired": func(s *scene) {
			_, err := s.team.Retire(s.t.Context(), "bob")
			must(s.t, err)
		},
		"a runner": func(s *scene) {
			r, err := claim.HoldRunner(s.t.Context(), s.team.Store, "bob")
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
	s.mu.Lock()
	s.loaded = false
	s.mu.Unlock()
	s.listen()
	eventually(t, "the new server to be asked", s.has(func() bool { return s.asked[len(s.asked)-1] == "thread/loaded/list" }))
	s.mu.Lock()
	s.loaded = true // its terminal has come back
	s.mu.Unlock()
	eventually(t, "the message in the queue", s.isQueued(m))
}

// Whatever a server does, the mail stays unread and a line says why; when it does its work again it gets the mail, once.
func TestBadServers(t *testing.T) {
	const add = "thread/queue/add"
	for name, c := range map[string]struct {
		method, answer string // of every request without a method
		says           string
	}{
		"silent":            {"", "", "no answer within"},
		"talks nonsense":    {"", "{[", "no answer within"},
		"says other things": {"", `{"id":ID,"result":"x"}`, "answers with something else"},
		"refuses":           {add, `{"id":ID,"error":{"message":"not\nto\u001bday"}}`, "refuses: not"},
		"refuses all":       {"", `{"id":ID,"error":{"message":"not today"}}`, "refuses: not today"},
		"takes no mail":     {add, "", "thread/queue/add of thread T: no answer within"},
		"gives no place":    {add, `{"id":ID,"result":{}}`, "answers with something else"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.odd = func(method string) (string, bool) { return c.answer, c.method == "" || c.method == method }
			m := s.send("Once.", nil)
			s.follow()
			why := func() string {
				member, err := presence.Status(t.Context(), s.team, "bob")
				must(t, err)
				for _, w := range member.WaysIn {
					if w.At == agents.AtIdle && w.By == "" {
						return w.Why
					}
				}
				return ""
			}
			eventually(t, "the reason", func() bool { return strings.Contains(why(), c.says) })
			if w := why(); strings.ContainsAny(w, "\n\x1b") || len(w) > 400 {
				t.Errorf("it says %q", w)
			}
			if s.isRead(m)() {
				t.Error("it counts as read")
			}
			if c.method == add { // a new connection alone does not make it better
				s.mu.Lock()
				before := len(s.asked)
				s.conn.CloseNow()
				s.mu.Unlock()
				again := s.has(func() bool { return slices.Contains(s.asked[before:], "thread/queue/list") })
				eventually(t, "a new connection", func() bool {
					if why() == "" {
						t.Fatal("a new connection later, it says nothing")
					}
					return again()
				})
			}
			s.mu.Lock()
			s.odd = nil
			s.mu.Unlock()
			eventually(t, "the message in the queue", s.isQueued(m))
			s.become(appserver.Active, "U1")
			eventually(t, "the message to be read", s.isRead(m))
			if !s.has(func() bool { return len(s.items) == 1 })() {
				t.Errorf("it got %v", s.items)
			}
			eventually(t, "the way to be open", s.isNoted)
		})
	}
}

// Something else listens on the socket.
func TestNoServer(t *testing.T) {
	s := newScene(t)
	s.stop()
	l, err := net.Listen("unix", s.socket)
	must(t, err)
	go http.Serve(l, http.NotFoundHandler())
	t.Cleanup(func() { l.Close() })
	m := s.send("Later.", nil)
	s.follow()
	eventually(t, "the reason", func() bool {
		p, _ := programs.Bound(s.team, "bob")
		return strings.Contains(p.Shut, "404") && len(p.Opens) == 0
	})
	if s.isRead(m)() {
		t.Error("it counts as read")
	}
}

// While the disk is full nothing is given that could not be claimed; and what was given, and could not be noted, is not
// given twice.
func TestFullDisk(t *testing.T) {
	for name, isPushed := range map[string]bool{"before the push": false, "behind it": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			var refused atomic.Int32
			full := func(op, name string) error {
				isWrite := op == "write" || op == "rename"
				if !isWrite || !strings.Contains(name, "bob/") || !isPushed && !strings.Contains(name, "claims") {
					return nil
				}
				if isPushed && s.has(func() bool { return len(s.queue)+len(s.items) == 0 })() {
					return nil
				}
				refused.Add(1)
				return syscall.ENOSPC
			}
			s.fault.Store(&full)
			m := s.send("Once.", nil)
			s.follow()
			if isPushed {
				eventually(t, "the message in the queue", s.isQueued(m))
				s.become(appserver.Active, "U1")
			}
			eventually(t, "attempts", func() bool { return refused.Load() > 3 })
			if s.isRead(m)() || !isPushed && s.isQueued(m)() {
				t.Error("it was given, or counts as read")
			}
			s.fault.Store(nil)
			if !isPushed {
				eventually(t, "the message in the queue", s.isQueued(m))
				s.become(appserver.Active, "U1")
			}
			eventually(t, "the message to be read", s.isRead(m))
			if !s.has(func() bool { return len(s.queue) == 0 && len(s.items) == 1 })() {
				t.Errorf("it got %v", s.items)
			}
		})
	}
}

// The time for a server to come back begins when it goes, however long it was there.
func TestServerIsGoneForGood(t *testing.T) {
	before := patience
	patience = 100 * time.Millisecond
	t.Cleanup(func() { patience = before })
	s := newScene(t)
	s.follow()
	eventually(t, "the note", s.isNoted)
	time.Sleep(patience)
	s.mu.Lock()
	s.asked = nil
	s.conn.CloseNow()
	s.mu.Unlock()
	eventually(t, "a new connection", s.has(func() bool { return slices.Contains(s.asked, "initialize") }))
	s.stop()
	err := <-s.ended
	if s.ended <- nil; !errors.Is(err, appserver.ErrGone) {
		t.Error(err)
	}
}

// An approval can be given from elsewhere; the terminal's answer ends the question.
func TestApproval(t *testing.T) {
	s := newScene(t)
	must(t, os.WriteFile(s.team.Dir().Join("team.toml"), []byte("[[rules]]\ntool = \"Bash(touch a)\"\ndecision = \"allow\"\n"), 0o600))
	s.become(appserver.Active, "U1")
	must(t, s.bob.Log().Append(t.Context(), wire.Event{Kind: wire.TurnStarted, Source: "hook", Session: "T", TurnID: "U1"}))
	s.follow()
	eventually(t, "the note", s.isNoted)
	ask := func(id int, command string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fakeServer.send(object{"id": id, "method": appserver.ApproveCommand, "params": object{
			"threadId": "T", "turnId": "U1", "itemId": "call" + command, "command": "/bin/bash -lc '" + command + "'",
		}})
	}
	isPending := func(n int) func() bool {
		return func() bool {
			all, err := presence.Questions(s.team, "bob")
			return err == nil && len(all) == n
		}
	}
	ask(7, "touch a")
	eventually(t, "a rule to answer", s.has(func() bool { return len(s.answers) == 1 && s.answers[0] == `{"id":7,"result":{"decision":"accept"}}` }))
	ask(8, "rm a")
	eventually(t, "the question", isPending(1))
	s.mu.Lock()
	s.tell(appserver.Resolved, object{"requestId": 8})
	s.mu.Unlock()
	eventually(t, "the question to be over", isPending(0))
	if len(s.answers) != 1 {
		t.Errorf("answered %v", s.answers)
	}
}
