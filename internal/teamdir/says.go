package teamdir

import (
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Wakes reports whether this hook's program is the one that the member's mail wakes, and whether it is idle now. One that
// does not say counts as idle: it puts a wake behind the turn that runs.
func (t *Team) Wakes(name wire.Name) (may, isIdle bool) {
	p, ok := t.Bound(name)
	if own, found := process.Program(); !ok || !found || own.PID != p.PID {
		return false, false
	}
	s, err := p.says()
	return true, err != nil || s.IsIdle()
}

// says returns what a program says of itself.
func (p Program) says() (*agents.Session, error) {
	read := all.Of(p.Tool).Session
	if read == nil {
		return nil, errors.New("it says nothing of itself")
	}
	return read(p.PID)
}

// TakesContextAtStop reports whether the program goes on with what its hook adds to the context where it would stop.
func (p Program) TakesContextAtStop() bool {
	s, err := p.says()
	return err == nil && s.TakesContextAtStop
}

// declaredState returns a member's state with what a program that its person started says in its file, if that counts
// against what its hooks said: they do not tell of an interrupt. nil: it does not.
func (m *Member) declaredState(s *reducer.State, now time.Time) *reducer.State {
	i := slices.IndexFunc(m.Programs, func(p Program) bool { return p.Session != "" && p.Session == s.Session().ID })
	if i < 0 || m.Running {
		return nil
	}
	session, err := m.Programs[i].says()
	if err != nil || session.ID != s.Session().ID || session.Activity == reducer.Unknown {
		return nil
	}
	says := reducer.Session{Activity: session.Activity}
	if says.Word() == s.Word() {
		return nil
	}
	claim := reducer.Claim{
		Activity: session.Activity, Source: reducer.FromFile, Since: session.Since, QuietFrom: session.Since, IsPrompt: session.IsIdle(),
	}
	if counts, _ := s.Weigh(claim, now, reducer.StaleAfter); !counts {
		return nil
	}
	e := wire.Event{Source: "pty", Kind: wire.StateChange, Session: session.ID, Team: s.Team, Agent: s.Agent, At: session.Since}
	e = e.With("new", string(claim.Activity)).With("evidence", string(reducer.FromFile)).With("detail", wire.Clip(session.WaitingFor, 40))
	return applyTo(s, e)
}
