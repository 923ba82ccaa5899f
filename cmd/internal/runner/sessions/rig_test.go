package sessions

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/teamdir/snapshot"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testprogram"
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

// rig is a team: alice writes, bob is run.
type rig struct {
	t      *testing.T
	store  *maildir.Store
	bob    *maildir.Box
	log    string // the fake agent's
	own    Options
	knows  *follower      // of the agent
	people *session.Store // what people see
	opt    ptyrun.Options
	mail   *ptyrun.Mail
	done   chan struct{}
	exit   ptyrun.Exit
	err    error
	stop   context.CancelFunc
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	path := filepath.Join(testtree.Short(t), "main")
	team, err := teams.Create(t.Context(), path, "alice", "bob")
	must(t, err)
	t.Cleanup(func() { team.Close() })
	r := &rig{t: t, log: filepath.Join(path, "fake.log"), done: make(chan struct{})}
	r.mail = &ptyrun.Mail{}
	r.mail.Mailbox, err = team.Mailbox("bob")
	must(t, err)
	r.bob = (*maildir.Box)(r.mail.Mailbox)
	r.store = r.bob.Store()
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
	must(r.t, err)
	r.t.Cleanup(func() { s.Close() })
	return s
}

// useSessions opens the team's sessions anew for the runner.
func (r *rig) useSessions(o session.OpenOptions) {
	r.own.Store, r.own.State = r.openSessions(o), func() (*reducer.State, error) { return snapshot.State(r.bob) }
	r.opt.Follow = func(run runhost.Followed) runhost.Follower {
		r.knows = newFollower(r.own, run)
		return r.knows.follows()
	}
}

// fake runs the fake agent.
func (r *rig) fake() *rig {
	r.t.Helper()
	argv, env, err := testagent.Command(testagent.Options{Profile: "claude", Log: r.log})
	must(r.t, err)
	r.opt.Command, r.opt.Env = argv, append(os.Environ(), env...)
	r.opt.Driver, _ = driver.Named("claude")
	return r
}

// run starts the runner, until the test ends or stops it.
func (r *rig) run() *rig {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	must(r.t, r.mail.Hold(ctx))
	r.stop, r.opt.Mail = cancel, r.mail
	agent, err := ptyrun.Start(ctx, r.opt)
	must(r.t, err)
	go func() {
		defer close(r.done)
		r.exit, r.err = agent.Wait()
	}()
	r.t.Cleanup(func() {
		cancel()
		<-r.done
		r.mail.Release()
	})
	return r
}

// wait waits until a condition holds.
func (r *rig) wait(what string, so func() bool) {
	r.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !so(); {
		if time.Now().After(end) {
			r.t.Fatal("it was never so: ", what)
		}
		select {
		case <-r.done:
			if !so() {
				r.t.Fatalf("the run ended (%+v, %v) before %s", r.exit, r.err, what)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *rig) client() *control.Client {
	var c *control.Client
	r.wait("the runner's socket", func() (so bool) {
		var err error
		c, err = control.Dial(r.t.Context(), filepath.Join(r.bob.Path(), "run"))
		return err == nil
	})
	r.t.Cleanup(func() { c.Close() })
	return c
}

// send delivers a message to bob.
func (r *rig) send(body string) wire.ID {
	return r.deliver(&wire.Message{ID: wire.NewID(), Body: body})
}

func (r *rig) deliver(m *wire.Message) wire.ID {
	r.t.Helper()
	m.From, m.To, m.SentAt = wire.Address{Agent: "alice", Team: "main"}, []wire.Address{r.bob.Address()}, time.Now().UTC()
	p := &maildir.Post{Message: m, Sender: r.store.Box("alice"), To: []*maildir.Box{r.bob}}
	maildir.Deliver(r.t.Context(), p)
	must(r.t, p.Outcomes[0].Err)
	return m.ID
}

// has reports whether bob has had an event whose fields have these values.
func (r *rig) has(kind string, fields ...string) func() bool {
	return func() bool {
		all, _ := r.bob.Log().Newest(1 << 20)
		return slices.ContainsFunc(all, func(e wire.Event) bool {
			is := e.Kind == kind
			for i := 0; i < len(fields); i += 2 {
				is = is && e.Text(fields[i]) == fields[i+1]
			}
			return is
		})
	}
}

func (r *rig) read(id wire.ID) func() bool {
	return func() bool {
		it, err := r.bob.Get(id)
		return err == nil && it.State != wire.Unread
	}
}

func (r *rig) unread(id wire.ID) bool {
	it, err := r.bob.Get(id)
	return err == nil && it.State == wire.Unread
}

// fakes returns the entries of one kind in the fake agent's log.
func (r *rig) fakes(event string) []string {
	es, err := testagent.ReadLog(r.log)
	must(r.t, err)
	return es.Texts(event)
}

// idle waits until bob is at his prompt and the runner knows the sessions.
func (r *rig) idle() *rig {
	r.t.Helper()
	r.wait("the prompt", r.has("state_change", "new", "idle"))
	r.wait("the sessions to be read", r.isKnown)
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
	r.t.Helper()
	s, err := r.sessions().New(r.t.Context(), session.Options{Agent: "bob"})
	must(r.t, err)
	return s.SessionID
}

// onlySession returns the only session.
func (r *rig) onlySession() *session.Session {
	r.t.Helper()
	list, bad, err := r.sessions().List()
	ended, _, endedErr := r.sessions().Ended()
	list, err = append(ended, list...), errors.Join(err, endedErr)
	if len(list) != 1 || len(bad) > 0 || err != nil {
		r.t.Fatalf("%d sessions, %v, %v", len(list), bad, err)
	}
	must(r.t, r.sessions().Said(context.Background(), list[0]))
	return list[0]
}

// awaitSession waits until the runner has begun a session, and knows it.
func (r *rig) awaitSession() *rig {
	r.t.Helper()
	r.wait("a session", r.hasSession)
	return r
}

// move changes a session's state like a person.
func (r *rig) move(id wire.UUID, to session.State) {
	r.t.Helper()
	_, err := r.sessions().Change(r.t.Context(), id, func(s *session.Session) error { return s.Move(to, "by alice", time.Now()) })
	must(r.t, err)
}

// say sends bob input in a session; "": in any.
func (r *rig) say(id wire.UUID, in foreign.HumanInput) wire.ID {
	r.t.Helper()
	m, err := session.Message(id, in)
	must(r.t, err)
	return r.deliver(m)
}

func text(s string) foreign.HumanInput { return foreign.HumanInput{Kind: "message", Text: s} }

// outputs returns the output events in order.
func (r *rig) outputs() (out []string) {
	all, _ := r.bob.Log().Newest(1 << 20)
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
