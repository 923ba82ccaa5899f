package sessions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Input queued behind a turn is also held when the session is paused before the turn ends.
func TestPausedBehindATurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}).fake()
	id := r.open()
	r.run().idle()
	r.Wait("the turn", r.Read(r.Send("THINK 10m")))
	said := r.say(id, text("behind the turn"))
	r.move(id, session.Paused)
	if _, err := r.Client().Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait("the end of the turn", r.Has("turn_completed"))
	r.Wait("mail to be read", r.Read(r.Send("ordinary mail")))
	if !r.Unread(said) {
		t.Error("typed while the session is paused")
	}
	r.move(id, session.Active)
	r.Wait("what was said", r.Read(said))
}

// An abort, however it is sent, ends the session and the agent with everything that it started, and is never typed.
func TestAbortedSession(t *testing.T) {
	t.Parallel()
	for name, abort := range map[string]func(r *rig, id wire.UUID){
		"by its message alone": func(r *rig, id wire.UUID) { r.say(id, foreign.HumanInput{Kind: "abort"}) },
		"by its state alone":   func(r *rig, id wire.UUID) { r.move(id, session.Aborted) },
		"as a dropped file": func(r *rig, id wire.UUID) {
			must(r.T, os.WriteFile(filepath.Join(r.Bob.Path(), "inbox", "stop.json"), []byte(`{"input_type":"abort"}`), 0o600))
		},
		"while it is paused": func(r *rig, id wire.UUID) {
			r.move(id, session.Paused)
			r.say(id, foreign.HumanInput{Kind: "abort"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{}).fake()
			id := r.open()
			r.run().idle()
			r.Wait("the orphan", r.Read(r.Send("LEAVE-ORPHAN 10m")))
			r.Wait("the orphan's start", func() bool { return len(r.Fakes(testagent.Orphaned)) > 0 })
			abort(r, id)
			<-r.Done
			if r.Err != nil || !r.Exit.Stopped {
				t.Errorf("%+v, %v", r.Exit, r.Err)
			}
			if s := r.onlySession(); s.State != session.Aborted {
				t.Errorf("it is %s", s.State)
			}
			if left, err := process.Leftovers(r.opt.Run); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
			if got := strings.Join(r.Fakes(testagent.Submitted), "\n"); strings.Contains(got, "abort") {
				t.Errorf("submitted %q", got)
			}
			if ids, err := r.Bob.UnreadIDs(); len(ids) != 0 || err != nil {
				t.Errorf("%d unread, %v", len(ids), err)
			}
		})
	}
}

// An abort from before the run ends nothing that began later, and is read.
func TestLateAbort(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true}).fake()
	old := r.say("", foreign.HumanInput{Kind: "abort"})
	r.run().idle().awaitSession()
	r.Wait("the abort to be read", r.Read(old))
	r.Wait("mail to be read", r.Read(r.Send("hello")))
	if s := r.onlySession(); s.State != session.Active {
		t.Errorf("it is %s", s.State)
	}
}

// A session and its agent end when nobody has said anything for long enough, and not before.
func TestSessionIdles(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Rules: session.Rules{WhenIdle: 12 * time.Second}}).fake()
	r.run().idle()
	r.Wait("a turn that is longer", r.Read(r.Send("THINK 13s")))
	<-r.Done
	s := r.onlySession()
	if r.Err != nil || !r.Exit.Stopped || s.State != session.Completed || s.EndedByRule() != "idle_timeout: 12s" {
		t.Errorf("%+v, %v; %s by %q", r.Exit, r.Err, s.State, s.EndedByRule())
	}
	if !r.Has(`turn_completed status="completed"`)() {
		t.Error("the turn was cut off")
	}
}

// A session that has reached its goal ends, and the agent when its turn is over.
func TestSessionReachesItsGoal(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Rules: session.Rules{OnGoal: true}}).fake()
	r.run().idle().awaitSession()
	r.Wait("a turn", r.Read(r.Send("THINK 1s")))
	events, err := session.Events("", foreign.SessionEvent{Kind: "goal_complete", GoalID: "11111111-2222-4333-8444-555555555555"})
	must(t, err)
	must(t, r.Bob.Log().Append(t.Context(), events...))
	<-r.Done
	if s := r.onlySession(); s.State != session.Completed || s.EndedByRule() != "goal_complete" {
		t.Errorf("%s by %q", s.State, s.EndedByRule())
	}
	if !r.Has(`turn_completed status="completed"`)() {
		t.Error("the turn was cut off")
	}
}

// A session that another process ends by the rules stops the agent, too; one that a person completes does not.
func TestSessionEndedByOthers(t *testing.T) {
	t.Parallel()
	rules := session.Rules{WhenIdle: time.Hour}
	r := newRig(t, Options{Rules: rules}).fake()
	id := r.open()
	r.run().idle()
	r.move(id, session.Completed)
	second := r.open()
	r.Wait("mail to be read", r.Read(r.say(second, text("hello"))))
	_, err := r.sessions().Change(t.Context(), second, func(s *session.Session) error {
		return rules.Apply(s, &reducer.State{}, time.Now().Add(2*time.Hour))
	})
	must(t, err)
	<-r.Done
	if !r.Exit.Stopped {
		t.Errorf("%+v", r.Exit)
	}
}

// A session begun by the runner completes when the agent exits by itself; otherwise it stays alive for the next runner.
func TestSessionOfARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *rig)
		want session.State
	}{
		"left":    {func(r *rig) { r.Send("EXIT 0") }, session.Completed},
		"crashed": {func(r *rig) { r.Send("EXIT 3") }, session.Paused},
		"stopped": {func(r *rig) { r.Stop() }, session.Paused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Begin: true}).fake()
			r.run().idle().awaitSession()
			first := r.onlySession()
			if first.State != session.Active || first.ChannelID != "cli:tty0" || !first.Notes.Owned {
				t.Fatalf("%+v", first.InteractiveSession)
			}
			c.end(r)
			<-r.Done
			r.mail.Release()
			if s := r.onlySession(); s.State != c.want || s.IsAutoPaused() != (c.want == session.Paused) {
				t.Fatalf("it is %s", s.State)
			}
			if c.want != session.Paused {
				return
			}
			r.Done = make(chan struct{})
			r.run()
			r.Wait("the session to go on", func() bool { return r.onlySession().State == session.Active })
			if s := r.onlySession(); s.SessionID != first.SessionID || s.IsAutoPaused() {
				t.Errorf("%+v", s.InteractiveSession)
			}
		})
	}
}

// With Log only the recording has the output.
func TestOutputIsLogged(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Capture: Log}).fake()
	r.opt.Command, r.opt.Driver, r.opt.ACP = append(r.opt.Command, "acp"), nil, &ptyrun.ACP{}
	r.run().awaitSession()
	r.Wait("the turn", r.Read(r.Send("hello")))
	r.Wait("the answer", r.Has("turn_completed"))
	r.Wait("the next", r.Read(r.Send("more")))
	if got := r.outputs(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got := log(r.onlySession()); len(got) < 2 || got[0] != "ta-system: Mail from alice: hello" || !strings.HasPrefix(got[1], "agent: [[") {
		t.Errorf("log %q", got)
	}
}

// The answers of an agent that speaks ACP are output, and in the session's log once.
func TestOutputWithoutATerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Capture: Pipe}).fake()
	r.opt.Command, r.opt.Driver, r.opt.ACP = append(r.opt.Command, "acp"), nil, &ptyrun.ACP{}
	r.run().awaitSession()
	r.Wait("the turn", r.Read(r.Send("hello")))
	r.Wait("the answer", func() bool { return strings.Contains(strings.Join(r.outputs(), "\n"), "hello") })
	if got := strings.Join(log(r.onlySession()), "\n"); strings.Count(got, "agent: [[") != 1 {
		t.Errorf("log %q", got)
	}
}

// What an agent that speaks ACP says is output while its turn runs, and in the session's log once.
func TestOutputStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Capture: Pipe})
	goOn := filepath.Join(t.TempDir(), "go-on")
	r.opt.Command = []string{"sh", "-c", `say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while read -r line; do
case $line in
*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}' ;;
*'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}' ;;
*'"method":"session/prompt"'*)
	say 'one '
	until [ -e "$0" ]; do sleep 0.05; done
	say two
	echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}' ;;
esac
done`, goOn}
	r.opt.ACP = &ptyrun.ACP{}
	r.run().awaitSession()
	r.Send("hello")
	r.Wait("the first words", func() bool { return slices.Equal(r.outputs(), []string{"one "}) })
	must(t, os.WriteFile(goOn, nil, 0o600))
	r.Wait("the answer", func() bool { return slices.Contains(log(r.onlySession()), "agent: one two") })
	r.Wait("the rest", func() bool { return slices.Equal(r.outputs(), []string{"one ", "two"}) })
	if got := strings.Join(log(r.onlySession()), "\n"); strings.Count(got, "agent: ") != 1 {
		t.Errorf("log %q", got)
	}
}

// The answer of an agent that exits right behind it is output, too.
func TestOutputOfTheLastTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true, Capture: Pipe})
	r.opt.Command = []string{"sh", "-c", `while read -r line; do
case $line in
*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}' ;;
*'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}' ;;
*'"method":"session/prompt"'*)
	echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"goodbye"}}}}'
	echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
	exit ;;
esac
done`}
	r.opt.ACP = &ptyrun.ACP{}
	r.run().awaitSession()
	r.Send("hello")
	<-r.Done
	if got := strings.Join(r.outputs(), "\n"); got != "goodbye" {
		t.Errorf("the output is %q", got)
	}
}

// Sessions that cannot be read hold no mail back, and are used as soon as they can be read.
func TestSessionsInTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Begin: true}).fake()
	path := filepath.Join(r.Store.Dir().Path(), ".sessions")
	must(t, os.WriteFile(path, nil, 0o600))
	r.run().idle()
	r.Wait("what was said", r.Read(r.say("", text("hello"))))
	must(t, os.Remove(path))
	r.awaitSession()
}

// Mail that is kept is not typed and interrupts nothing.
func TestKeptMail(t *testing.T) {
	t.Parallel()
	urgent := wire.NewID()
	var isAsked atomic.Bool
	r := newRig(t, Options{WhyKept: func(m *wire.Message) string {
		if m.ID != urgent {
			return ""
		}
		isAsked.Store(true)
		return "bob takes mail from lead only"
	}}).fake()
	r.run().idle()
	r.Wait("the turn", r.Read(r.Send("THINK 10m")))
	r.Send("urgent", func(m *wire.Message) { m.ID, m.Priority = urgent, "urgent" })
	last := r.Send("ordinary mail")
	r.Wait("the mail to be seen", isAsked.Load)
	if r.Has("turn_completed")() {
		t.Error("kept mail has ended the turn")
	}
	if _, err := r.Client().Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Wait("mail to be read", r.Read(last))
	if !r.Unread(urgent) {
		t.Error("typed although it is kept")
	}
}
