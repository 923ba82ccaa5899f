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
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
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
	updated  time.Time
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
	must(t, m.st.Attach(ctx, "bob", AttachOptions{Begin: wants, State: &reducer.State{}}))
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
	if len(all) != n || len(all)+m.st.CountEnded() != len(m.ids) {
		t.Fatalf("%d sessions go on and %d are over, not %d of %d", len(all), m.st.CountEnded(), n, len(m.ids))
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

// Emit emits to one session, or with an event that names none to all. What is said when a session is over is not its.
func (m *machine) Emit(t *rapid.T) {
	id, _ := m.some(t)
	if rapid.Bool().Draw(t, "for all") {
		id = ""
	}
	word := rapid.StringMatching(`[a-zü世" \\]{1,5}`).Draw(t, "output")
	emit(t, m.st, id, output(word))
	m.hear(id, word)
}

// hear adds a word to the logs of one session or of all, if they go on.
func (m *machine) hear(id wire.UUID, word string) {
	for of, o := range m.models {
		if o.state.Alive() && (id == "" || id == of) {
			o.log = append(o.log, word)
		}
	}
}

// Input sends an input, which the agent reads now or later.
func (m *machine) Input(t *rapid.T) {
	id, was := m.some(t)
	if !was.state.Alive() {
		t.Skip("nobody may")
	}
	word := rapid.StringMatching(`[a-zü世" \\]{1,5}`).Draw(t, "text")
	tell(t, m.st, id, text(word))
	m.hear(id, word)
	if rapid.Bool().Draw(t, "read") {
		readAll(t, m.st)
	}
}

func (m *machine) Check(t *rapid.T) {
	for id, want := range m.models {
		s, log := said(t, m.st, id)
		if s.IsAutoPaused() != want.isPaused || s.Notes.Owned != want.ours {
			t.Fatalf("%s: paused by itself %t, of a runner %t; not %t, %t", id, s.IsAutoPaused(), s.Notes.Owned, want.isPaused, want.ours)
		}
		if s.State != want.state || !slices.Equal(log, want.log) {
			t.Fatalf("%s: %s\n%s", id, s.State, cmp.Diff([]any{want.state, want.log}, []any{s.State, log}))
		}
		if s.UpdatedAt.Before(want.updated) {
			t.Fatalf("%s goes back in time", id)
		}
		want.updated = s.UpdatedAt
	}
}

// After any operations in any order, the sessions agree with their models.
func TestMachine(t *testing.T) {
	top := testtree.Memory(t)
	testround.Check(t, 8, func(t *rapid.T) {
		path, err := os.MkdirTemp(top, "team-")
		must(t, err)
		m := &machine{st: openTeam(t, path), models: map[wire.UUID]*model{}}
		defer m.st.Close()
		t.Repeat(map[string]func(*rapid.T){
			"new": m.New, "move": m.Move, "emit": m.Emit, "input": m.Input, "": m.Check,
			"run": m.Run, "end": m.End, "crash": m.Crash,
		})
	})
}
