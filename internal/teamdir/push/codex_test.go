//go:build linux || darwin

package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

type object = map[string]any

// A scene is a team in which bob's conversation is the thread T of a pretended server of Codex.
type scene struct {
	t      *testing.T
	team   *teamdir.Team
	bob    *maildir.Box
	socket string

	mu      sync.Mutex
	status  object
	turn    object   // the last one; nil: there is none
	loaded  []string // its threads
	dir     string   // in which all work
	asks    string   // a request; "": it asks nothing
	got     []string // methods that change something, with the text
	answers []string
}

func newScene(t *testing.T) *scene {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, notices.Tell), "bob", "lead")
	s := &scene{t: t, team: team, bob: team.Box("bob"), status: object{"type": "idle"}, loaded: []string{"T"}}
	s.socket = waytest.Serve(t, waytest.Messages(s.take))
	own, _ := process.Find(os.Getpid())
	teamtest.Must(t, programs.Note(team, "bob", programs.Program{Tool: "codex", PID: own.PID, Start: own.Start, Session: "T", Server: s.socket}, true))
	s.happens(wire.SessionStart, "")
	return s
}

// happens reports an event, as bob's hooks do.
func (s *scene) happens(kind, turn string, pairs ...string) {
	e := wire.Event{Source: wire.SourceHook, Kind: kind, Session: "T", TurnID: turn}.With("transport", "hook")
	for pair := range slices.Chunk(pairs, 2) {
		e = e.With(pair[0], pair[1])
	}
	teamtest.Must(s.t, s.bob.Log().Append(s.t.Context(), e))
}

func (s *scene) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *scene) take(conn *websocket.Conn, data []byte) (goesOn bool) {
	s.set(func() {
		for _, text := range s.answer(data) {
			conn.Write(context.Background(), websocket.MessageText, []byte(text))
		}
	})
	return true
}

func (s *scene) answer(data []byte) (texts []string) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ThreadID string
			Input    []struct{ Text string }
		}
	}
	json.Unmarshal(data, &m)
	if m.Method == "" {
		s.answers = append(s.answers, string(data))
		return []string{`{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":7}}`}
	}
	if len(m.Params.Input) > 0 {
		s.got = append(s.got, m.Method+" "+m.Params.Input[0].Text)
	}
	thread := object{"thread": object{"id": m.Params.ThreadID, "status": s.status, "cwd": s.dir}}
	result, isKnown := object{
		"initialize": object{}, "thread/loaded/list": object{"data": s.loaded}, "thread/read": thread, "thread/resume": thread,
		"thread/turns/list": object{"data": []object{s.turn}}, "thread/queue/start": object{}, "turn/steer": object{},
		"thread/queue/add": object{"queuedSubmission": object{"id": "q"}},
	}[m.Method]
	if !isKnown {
		return nil
	}
	answer, _ := json.Marshal(object{"id": m.ID, "result": result})
	if texts = append(texts, string(answer)); m.Method == "thread/resume" && s.asks != "" {
		texts = append(texts, s.asks)
	}
	return texts
}

// send sends bob a message and returns what became of it, and what the server got.
func (s *scene) send(text string, change func(*wire.Message)) (push.Outcome, []string) {
	s.t.Helper()
	s.set(func() { s.got = nil })
	m := &wire.Message{Body: text}
	if change != nil {
		change(m)
	}
	out, err := post.Send(s.t.Context(), s.team.Root(), &post.Outgoing{From: s.team.Box("lead"), To: []wire.Address{s.bob.Address()}, Message: m})
	teamtest.Must(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	return out.To[0].Push, s.got
}

func (s *scene) look() presence.Member {
	s.t.Helper()
	m, err := presence.One(s.t.Context(), s.team, "bob")
	teamtest.Must(s.t, err)
	return m
}

// What comes while a turn runs begins the next one; only what is urgent goes into it.
func TestMailIntoAThread(t *testing.T) {
	s := newScene(t)
	if out, got := s.send("Rebase, please.", nil); out.By != "server queue" || !out.IsIn || len(got) != 1 || !strings.HasPrefix(got[0], "thread/queue/add [atm ") {
		t.Errorf("idle: %+v, %q", out, got)
	}
	if n := len(teamtest.UnreadOf(t, s.team, "bob")); n != 1 {
		t.Errorf("%d are unread: nothing has shown that the model has it", n)
	}
	s.set(func() { s.status, s.turn = object{"type": "active"}, object{"id": "U", "status": "inProgress"} })
	s.happens(wire.TurnStarted, "U")
	if out, got := s.send("And then?", nil); !out.IsIn || len(got) != 1 || !strings.HasPrefix(got[0], "thread/queue/add ") {
		t.Errorf("busy: %+v, %q", out, got)
	}
	if out, got := s.send("Stop!", func(m *wire.Message) { m.Priority = "urgent" }); !out.IsIn || len(got) != 1 || !strings.HasPrefix(got[0], "turn/steer ") {
		t.Errorf("urgent: %+v, %q", out, got)
	}
	s.set(func() { s.status = object{"type": "notLoaded"} })
	if out, got := s.send("Are you there?", nil); out.IsIn || len(got) > 0 || !strings.Contains(out.Why, "does not have its conversation") {
		t.Errorf("gone: %+v, %q", out, got)
	}
}

// Mail for later is given when it is due, by whoever looks then, once; and what waited for other mail by whoever acks that.
func TestMailForLater(t *testing.T) {
	s := newScene(t)
	looked, at := map[string]bool{}, time.Now().UTC().Add(500*time.Millisecond)
	if out, got := s.send("Soon.", func(m *wire.Message) { m.NotBefore = at }); out.By != "" || len(got) > 0 {
		t.Errorf("at once: %+v, %q", out, got)
	}
	push.Waited(t.Context(), s.team, looked)
	if early := len(s.got); early > 0 && time.Now().Before(at) {
		t.Errorf("early: %q", s.got)
	}
	time.Sleep(time.Until(at.Add(5 * time.Millisecond))) // the mailbox rounds it up to the next millisecond
	for range 2 {
		push.Waited(t.Context(), s.team, looked)
	}
	if len(s.got) != 1 || !strings.Contains(s.got[0], "Soon.") {
		t.Errorf("due: %q", s.got)
	}
	work := teamtest.Post(t, s.team, "bob", "lead", "work")
	if out, got := s.send("Behind it.", func(m *wire.Message) { m.Needs = []wire.ID{work} }); out.By != "" || len(got) > 0 {
		t.Errorf("before it is done: %+v, %q", out, got)
	}
	it, err := s.team.Box("lead").Get(work)
	teamtest.Must(t, err)
	ack := &wire.Message{}
	ack.SetOutcome("done")
	_, err = post.Ack(t.Context(), s.team.Root(), s.team.Box("lead"), s.team.Box("lead"), it.Message, ack)
	teamtest.Must(t, err)
	if text := strings.Join(s.got, "\n"); strings.Count(text, "Behind it.") != 1 {
		t.Errorf("done: %q", s.got)
	}
}

// Codex calls no hook when a turn has failed. Whoever looks sees it, and it is in the log from then on. At a usage limit nothing
// is given that would fail.
func TestFailedTurn(t *testing.T) {
	s := newScene(t)
	s.happens(wire.TurnStarted, "U1")
	s.set(func() {
		s.status, s.turn = object{"type": "systemError"}, object{"id": "U1", "status": "failed", "error": object{"message": "bad request"}}
	})
	for range 2 {
		if m := s.look(); m.State != reducer.WordIdle || m.LastTurn == nil || m.LastTurn.Status != reducer.Failed || m.Errors != 1 {
			t.Errorf("%s, last turn %+v, %d errors", m.State, m.LastTurn, m.Errors)
		}
	}
	if state, err := s.team.State("bob"); err != nil || state.Session().Last.Status != reducer.Failed {
		t.Errorf("the log says %+v, %v", state.Session().Last, err)
	}
	if out, _ := s.send("Again?", nil); !out.IsIn {
		t.Errorf("after a failure: %+v", out)
	}
	s.happens(wire.TurnStarted, "U1#2") // its queue goes on under the same id
	if m := s.look(); m.State != reducer.WordIdle || m.Errors != 2 {
		t.Errorf("under the same id: %s, %d errors", m.State, m.Errors)
	}
	s.happens(wire.TurnStarted, "U2")
	s.set(func() {
		until := time.Now().Add(2 * time.Hour).Format("Jan 2, 2006 3:04 PM")
		s.turn = object{"id": "U2", "status": "failed", "error": object{"message": "You’ve hit your usage limit. Try again at " + until + "."}}
	})
	out, got := s.send("And now?", nil)
	if m := s.look(); out.IsIn || len(got) > 0 || out.Why != "it is at its usage limit" || m.State != reducer.WordLimited || m.Until == nil {
		t.Errorf("at its limit: %+v, %q; %s until %v", out, got, m.State, m.Until)
	}
}

// What it asks is known with its answers when somebody looks, whether its hooks have told of it or not, until it is answered,
// wherever that is.
func TestQuestionsOfAThread(t *testing.T) {
	const command = `{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"T","turnId":"U","itemId":"call","command":"/bin/bash -lc 'touch a'"}}`
	const question = `{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"T","turnId":"U","itemId":"call","questions":[{"id":"db","question":"Which?","options":[{"label":"SQLite"}]}]}}`
	for about, c := range map[string]struct {
		flag, request string
		hook          func(*scene)
		line, answer  string
	}{
		"an approval": {"waitingOnApproval", command, func(s *scene) {
			s.happens(wire.ConfirmRequired, "U", "id", string(wire.NewID()), "tool", "Bash", "prompt", "touch a")
		}, "Bash: touch a", `{"id":7,"result":{"decision":"accept"}}`},
		"an approval without an id": {"waitingOnApproval", command, func(s *scene) { s.happens(wire.ConfirmRequired, "U", "tool", "Bash", "prompt", "touch a") },
			"Bash: touch a", `{"id":7,"result":{"decision":"accept"}}`},
		"of which no hook tells": {"waitingOnUserInput", question, func(*scene) {}, "Which?", `{"id":7,"result":{"answers":{"db":{"answers":["SQLite"]}}}}`},
	} {
		t.Run(about, func(t *testing.T) {
			s := newScene(t)
			s.happens(wire.TurnStarted, "U")
			c.hook(s)
			s.set(func() { s.status, s.asks = object{"type": "active", "activeFlags": []string{c.flag}}, c.request })
			var m presence.Member
			for range 2 {
				m = s.look()
				if m.State != reducer.WordBlocked || len(m.Questions) != 1 || m.Questions[0].Line() != c.line || !m.Questions[0].Served || len(m.Questions[0].Options) == 0 {
					t.Fatalf("%s, asks %+v", m.State, m.Questions)
				}
			}
			q := m.Questions[0]
			isAsked, _, err := programs.AnswerAtServer(t.Context(), s.team, "bob", q, q.Options[0], "")
			if s.set(func() {}); !isAsked || err != nil || fmt.Sprint(s.answers) != "["+c.answer+"]" {
				t.Errorf("%v, %v: %q", isAsked, err, s.answers)
			}
			s.set(func() { s.status, s.asks = object{"type": "active"}, "" })
			for until := time.Now().Add(time.Minute); len(s.look().Questions) > 0 || s.look().State != reducer.WordBusy; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("it still asks %+v", s.look().Questions)
				}
			}
		})
	}
}

// A program that does without the server says so, and its hooks hand over the mail.
func TestWithoutTheServer(t *testing.T) {
	s := newScene(t)
	own, _ := process.Find(os.Getpid())
	teamtest.Must(t, programs.Note(s.team, "bob", programs.Program{Tool: "codex", PID: own.PID, Start: own.Start, Session: "T"}, true))
	if out, got := s.send("Hello?", nil); out.IsIn || len(got) > 0 || !strings.Contains(out.Why, "--no-daemon") {
		t.Errorf("%+v, %q", out, got)
	}
	way := func(at string) programs.WayNow {
		all := programs.WaysNow(s.team, "bob")
		return all[slices.IndexFunc(all, func(w programs.WayNow) bool { return w.At == at })]
	}
	if idle, busy := way(agents.AtIdle), way(agents.AtBusy); idle.By != "" || busy.By != agents.ByHook {
		t.Errorf("idle %+v, busy %+v", idle, busy)
	}
}

// A new conversation is followed if it can only be this program's. One beside it shows one, too.
func TestNewConversation(t *testing.T) {
	s := newScene(t)
	s.dir = t.TempDir()
	bob := s.terminal("bob")
	now := func(about, want string) {
		t.Helper()
		p, err := programs.Program{Tool: "codex", PID: bob.PID, Start: bob.Start, Session: "T", Server: s.socket}.Now(s.team, "bob")
		if err != nil {
			_, p.Session, _ = strings.Cut(err.Error(), ": ")
		}
		if p.Session != want {
			t.Errorf("%s: %q, not %q", about, p.Session, want)
		}
	}
	now("none", "T")
	s.set(func() { s.loaded = []string{"T", "T2"} })
	teamtest.Must(t, programs.Note(s.team, "lead", programs.Program{Tool: "codex", PID: bob.PID, Start: bob.Start - 1, Session: "T2"}, true))
	now("of a program that has ended", "T")
	programs.Forget(s.team, "lead", programs.Program{PID: bob.PID})
	now("alone", "T2")
	programs.Forget(s.team, "bob", programs.Program{PID: bob.PID})
	carl := s.terminal("carl")
	now("it may be the other's first", "T")
	s.set(func() { s.loaded = []string{"T", "T2", "T3"} })
	now("one of two is not the other's", "!atm primer bob")
	teamtest.Must(t, programs.Note(s.team, "lead", programs.Program{Tool: "codex", PID: carl.PID, Start: carl.Start, Session: "T2"}, true))
	now("the other shows another one", "!atm primer bob")
	s.set(func() { s.loaded = []string{"T", "T2"} })
	now("the other shows the new one", "T")
}

// terminal starts a program that is called codex, under a member's name.
func (s *scene) terminal(agent string) process.Info {
	s.t.Helper()
	if runtime.GOOS == "darwin" {
		s.t.Skip("its own programs show no environment")
	}
	dir := s.t.TempDir()
	path, script := filepath.Join(dir, "codex"), filepath.Join(dir, "script")
	teamtest.Must(s.t, errors.Join(os.Symlink("/bin/sh", path), os.WriteFile(script, []byte("read line\n"), 0o600)))
	cmd := exec.Command(path, script)
	cmd.Dir, cmd.Env = s.dir, []string{"HOME=/home/dev", "ATM_AGENT=" + agent, "PWD=" + s.dir}
	in, err := cmd.StdinPipe()
	teamtest.Must(s.t, errors.Join(err, cmd.Start()))
	s.t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the kernel is starting it
		info, _ := process.Find(cmd.Process.Pid)
		if info.Name == "codex" && len(process.Arguments(info.PID)) == 2 && len(process.Environment(info.PID)) > 1 {
			return info
		}
		if time.Now().After(until) {
			s.t.Fatalf("it is %+v", info)
		}
	}
}
