package session

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var states = []State{Active, Paused, Completed, Aborted}

// machine is some sessions of one agent on disk, and their models.
type machine struct {
	st     *Store
	models map[wire.UUID]*model
	ids    []wire.UUID
	runs   bool // the agent runs under a runner
}

type model struct {
	state    State
	ours     bool     // a runner began it
	isPaused bool     // because the agent is off
	log      []string // without the session's own lines
	drafts   []wire.UUID
	updated  time.Time
}

var draftIDs = []wire.UUID{
	"6f1c2a34-0b7e-4c1d-9a55-0123456789ab", "7a0b1c2d-3e4f-4a5b-8c6d-7e8f90a1b2c3", "11111111-2222-4333-8444-555555555555",
}

func (m *machine) some(t *rapid.T) (wire.UUID, *model) {
	if len(m.ids) == 0 {
		t.Skip("no session yet")
	}
	id := rapid.SampledFrom(m.ids).Draw(t, "session")
	return id, m.models[id]
}

func (m *machine) New(t *rapid.T) {
	if len(m.ids) >= 4 {
		t.Skip("enough")
	}
	s := begin(t, m.st)
	m.ids = append(m.ids, s.SessionID)
	m.models[s.SessionID] = &model{state: Active}
}

func (m *machine) Move(t *rapid.T) {
	id, was := m.some(t)
	to := rapid.SampledFrom(states).Draw(t, "to")
	_, err := m.st.Change(ctx, id, func(s *Session) error { return s.Move(to, "", now()) })
	isRefused := errors.As(err, new(*Error))
	switch isAlive := was.state.Alive(); {
	case err != nil && !isRefused, isRefused && isAlive && to == Aborted, !isRefused && !isAlive:
		t.Fatalf("%v to %s: %v", was.state, to, err)
	case !isRefused: // else nothing has changed
		was.state, was.isPaused = to, false
	}
}

// Run attaches a runner.
func (m *machine) Run(t *rapid.T) {
	if m.runs {
		t.Skip("it runs")
	}
	m.runs = true
	wants := rapid.Bool().Draw(t, "begin")
	must(t, m.st.Attach(ctx, "bob", AttachOptions{Begin: wants}))
	n := 0
	for _, o := range m.models {
		if o.isPaused {
			o.state, o.isPaused = Active, false
		}
		if o.state.Alive() {
			n++
		}
	}
	all, _, err := m.st.List()
	must(t, err)
	for _, s := range all {
		if m.models[s.SessionID] == nil && n == 0 && wants {
			n++
			m.ids = append(m.ids, s.SessionID)
			m.models[s.SessionID] = &model{state: Active, ours: true}
		}
	}
	if len(all) != len(m.ids) {
		t.Fatalf("%d sessions, not %d", len(all), len(m.ids))
	}
}

// End detaches the runner.
func (m *machine) End(t *rapid.T) {
	if !m.runs {
		t.Skip("it does not run")
	}
	m.runs = false
	well := rapid.Bool().Draw(t, "by itself")
	must(t, m.st.Detach(ctx, "bob", well, "it ended"))
	for _, o := range m.models {
		switch {
		case o.state != Active:
		case well && o.ours:
			o.state = Completed
		default:
			o.state, o.isPaused = Paused, true
		}
	}
}

// Crash ends the runner without detaching: the sessions stay as they are.
func (m *machine) Crash(t *rapid.T) { m.runs = false }

// Emit emits to one session, or with an event that names none to all.
func (m *machine) Emit(t *rapid.T) {
	id, was := m.some(t)
	word := rapid.StringMatching(`[a-zü世" \\]{1,5}`).Draw(t, "output")
	if rapid.Bool().Draw(t, "for all") {
		events, err := Events("", output(word))
		must(t, err)
		must(t, m.st.mail.Box("bob").Log().Append(ctx, events...))
		for _, o := range m.models {
			if o.state.Alive() {
				o.log = append(o.log, word)
			}
		}
		m.fold(t)
		return
	}
	c, err := m.st.Channel(id)
	must(t, err)
	err = c.Emit(ctx, output(word))
	if !was.state.Alive() {
		if err != ErrChannelClosed {
			t.Fatalf("a session that is %s took output: %v", was.state, err)
		}
		return
	}
	must(t, err)
	was.log = append(was.log, word)
}

// fold folds everything emitted so far, before a state changes.
func (m *machine) fold(t *rapid.T) {
	for _, id := range m.ids {
		refresh(t, m.st, id)
	}
}

func (m *machine) Draft(t *rapid.T) {
	id, was := m.some(t)
	draft := rapid.SampledFrom(draftIDs).Draw(t, "draft")
	c, err := m.st.Channel(id)
	must(t, err)
	err = c.Emit(ctx, foreign.SessionEvent{Kind: "draft_ready", DraftID: draft, Summary: "s", ArtifactCount: 1})
	if was.state.Alive() != (err == nil) {
		t.Fatal(err)
	}
	if err == nil && !slices.Contains(was.drafts, draft) {
		was.drafts = append(was.drafts, draft)
	}
}

// Input sends an input and receives it.
func (m *machine) Input(t *rapid.T) {
	id, was := m.some(t)
	if was.state != Active {
		t.Skip("nobody receives")
	}
	word := rapid.StringMatching(`[a-zü世" \\]{1,5}`).Draw(t, "text")
	m.fold(t)
	tell(t, m.st, id, text(word))
	c, err := m.st.Channel(id)
	must(t, err)
	in, err := c.Receive(ctx, 0)
	if err != nil || in == nil || in.Text != word {
		t.Fatalf("received %v, %v", in, err)
	}
	was.log = append(was.log, word)
	m.fold(t)
}

func (m *machine) Check(t *rapid.T) {
	for id, want := range m.models {
		s, err := m.st.Get(id)
		must(t, err)
		must(t, m.st.CatchUp(ctx, s))
		var log []string
		for _, e := range s.Messages {
			if e.Sender != SenderSystem {
				log = append(log, e.Content)
			}
		}
		if s.Notes.Runner.AutoPaused != want.isPaused || s.Notes.Runner.Owned != want.ours {
			t.Fatalf("%s: paused by itself %t, of a runner %t; not %t, %t", id, s.Notes.Runner.AutoPaused, s.Notes.Runner.Owned, want.isPaused, want.ours)
		}
		var drafts []wire.UUID
		for _, d := range s.Drafts() {
			drafts = append(drafts, d.ID)
		}
		if s.State != want.state || !slices.Equal(log, want.log) || !slices.Equal(drafts, want.drafts) {
			t.Fatalf("%s: %s\n%s", id, s.State, cmp.Diff(
				[]any{want.state, want.log, want.drafts}, []any{s.State, log, drafts}))
		}
		if s.UpdatedAt.Before(want.updated) {
			t.Fatalf("%s goes back in time", id)
		}
		want.updated = s.UpdatedAt
	}
}

// After any operations in any order, the sessions agree with their models.
func TestMachine(t *testing.T) {
	top := t.TempDir()
	// Thousands of syncs: in memory where possible.
	if dir, err := os.MkdirTemp("/dev/shm", "atm-session-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		top = dir
	}
	testround.Check(t, 8, func(t *rapid.T) {
		path, err := os.MkdirTemp(top, "team-")
		must(t, err)
		m := &machine{st: openTeam(t, path), models: map[wire.UUID]*model{}}
		defer m.st.Close()
		t.Repeat(map[string]func(*rapid.T){
			"new": m.New, "move": m.Move, "emit": m.Emit, "draft": m.Draft, "input": m.Input, "": m.Check,
			"run": m.Run, "end": m.End, "crash": m.Crash,
		})
	})
}
