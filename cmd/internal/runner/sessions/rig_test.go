package sessions

import (
	"context"
	"errors"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/teamdir/snapshot"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/internal/testrig"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "4") // tests mostly wait
	testprogram.Main(m)
}

type rig struct {
	*testrig.Rig[ptyrun.Exit]
	own    Options
	knows  *follower      // of the agent
	people *session.Store // what people see
	opt    ptyrun.Options
	mail   *ptyrun.Mail
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	path := filepath.Join(testtree.Short(t), "main")
	team, err := teams.Create(t.Context(), path, "alice", "bob")
	must(t, err)
	t.Cleanup(func() { team.Close() })
	r := &rig{mail: &ptyrun.Mail{}}
	r.mail.Mailbox, err = team.Mailbox("bob")
	must(t, err)
	r.Rig = testrig.New[ptyrun.Exit](t, (*maildir.Box)(r.mail.Mailbox))
	if o.Capture == "" {
		o.Capture = Pipe
	}
	r.own, r.opt = o, ptyrun.Options{Run: string(wire.NewID()), Dir: path, Cols: 100, Rows: 30}
	r.people = r.openSessions(session.OpenOptions{})
	r.useSessions(session.OpenOptions{})
	return r
}

func (r *rig) openSessions(o session.OpenOptions) *session.Store {
	s, err := session.Open(r.opt.Dir, o)
	must(r.T, err)
	r.T.Cleanup(func() { s.Close() })
	return s
}

// useSessions opens the team's sessions anew for the runner.
func (r *rig) useSessions(o session.OpenOptions) {
	r.own.Store, r.own.State = r.openSessions(o), func() (*reducer.State, error) { return snapshot.State(r.Bob) }
	r.opt.Follow = func(run runhost.Followed) runhost.Follower {
		r.knows = newFollower(r.own, run)
		return r.knows.follows()
	}
}

// fake runs the fake agent.
func (r *rig) fake() *rig {
	r.T.Helper()
	r.opt.Command, r.opt.Env, r.opt.Driver = r.Command(testagent.Options{Profile: "claude"})
	return r
}

// run starts the runner, until the test ends or stops it.
func (r *rig) run() *rig {
	r.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	must(r.T, r.mail.Hold(ctx))
	r.opt.Mail = r.mail
	agent, err := ptyrun.Start(ctx, r.opt)
	must(r.T, err)
	r.Runs(cancel, agent.Wait, func() { r.mail.Release() })
	return r
}

// idle waits until bob is at his prompt and the runner knows the sessions.
func (r *rig) idle() *rig {
	r.T.Helper()
	r.Wait("the prompt", r.Has(`state_change new="idle"`))
	r.Wait("the sessions to be read", r.isKnown)
	return r
}

// isKnown reports whether the runner has read the sessions, hasSession whether it knows one that is alive.
func (r *rig) isKnown() bool { return r.knows.isReady() }

func (r *rig) hasSession() bool {
	r.knows.lock.Lock()
	defer r.knows.lock.Unlock()
	return len(r.knows.alive) > 0
}

func (r *rig) sessions() *session.Store { return r.people }

// open begins a session like a person.
func (r *rig) open() wire.UUID {
	r.T.Helper()
	s, err := r.sessions().New(r.T.Context(), session.Options{Agent: "bob"})
	must(r.T, err)
	return s.SessionID
}

// onlySession returns the only session.
func (r *rig) onlySession() *session.Session {
	r.T.Helper()
	list, bad, err := r.sessions().List()
	ended, _, endedErr := r.sessions().Ended()
	list, err = append(ended, list...), errors.Join(err, endedErr)
	if len(list) != 1 || len(bad) > 0 || err != nil {
		r.T.Fatalf("%d sessions, %v, %v", len(list), bad, err)
	}
	must(r.T, r.sessions().Said(context.Background(), list[0]))
	return list[0]
}

// awaitSession waits until the runner has begun a session, and knows it.
func (r *rig) awaitSession() *rig {
	r.T.Helper()
	r.Wait("a session", r.hasSession)
	return r
}

// move changes a session's state like a person.
func (r *rig) move(id wire.UUID, to session.State) {
	r.T.Helper()
	_, err := r.sessions().Change(r.T.Context(), id, func(s *session.Session) error { return s.Move(to, "by alice", time.Now()) })
	must(r.T, err)
}

// say sends bob input in a session; "": in any.
func (r *rig) say(id wire.UUID, in foreign.HumanInput) wire.ID {
	r.T.Helper()
	m, err := session.Message(id, in)
	must(r.T, err)
	m.From = wire.Address{Agent: "alice", Team: "main"}
	return r.Deliver(m)
}

func text(s string) foreign.HumanInput { return foreign.HumanInput{Kind: "message", Text: s} }

// outputs returns the output events in order.
func (r *rig) outputs() (out []string) {
	all, _ := r.Bob.Log().Newest(1 << 20)
	for i := range all {
		if said, ok := session.ChannelEvent(&all[i]); ok && said.Kind == "agent_output" {
			out = append(out, said.Content)
		}
	}
	return out
}

// log returns a session's log without the times.
func log(s *session.Session) (out []string) {
	for _, m := range s.Messages {
		out = append(out, m.Sender+": "+m.Content)
	}
	return out
}
