package teamdir

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents/claude"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Wakes reports whether this hook's program, a Claude Code, is the one that the member's mail wakes, and whether it is idle
// now. One that does not say counts as idle: it puts a wake behind the turn that runs.
func (t *Team) Wakes(name wire.Name) (may, isIdle bool) {
	p, ok := t.Bound(name)
	if own, found := process.Program(); !ok || !found || own.PID != p.PID {
		return false, false
	}
	s, err := p.claudeSession()
	return true, err != nil || s.IsIdle()
}

// claudeSession returns what a Claude Code says of itself.
func (p Program) claudeSession() (*claude.Session, error) {
	return claude.Find(claude.ConfigDir(process.Environment(p.PID)), p.PID)
}

// TakesContextAtStop reports whether the program, a Claude Code, goes on with what its hook Stop adds to the context. Older
// ones end their turn with it; and 2.1.332 shows its model twice why it may not stop.
func (p Program) TakesContextAtStop() bool {
	s, err := p.claudeSession()
	return err == nil && s.IsSince(2, 1, 197)
}

// declaredState returns a member's state with what a Claude Code that its person started says in its file, if that counts
// against what its hooks said: they do not tell of an interrupt. nil: it does not.
func (m *Member) declaredState(s *reducer.State, now time.Time) *reducer.State {
	i := slices.IndexFunc(m.Programs, func(p Program) bool { return p.Tool == "claude" && p.Session != "" && p.Session == s.Session().ID })
	if i < 0 || m.Running {
		return nil
	}
	session, err := m.Programs[i].claudeSession()
	if err != nil || session.ID != s.Session().ID {
		return nil
	}
	since := time.UnixMilli(session.StatusAt)
	claim := reducer.Claim{Source: reducer.FromFile, Since: since, QuietFrom: since}
	switch session.Status {
	case claude.Idle, claude.Shell:
		claim.Activity, claim.IsPrompt = reducer.Idle, true
	case claude.Busy:
		claim.Activity = reducer.Thinking
	case claude.Waiting:
		claim.Activity = reducer.AwaitingInput
		if session.WaitingFor == "permission prompt" {
			claim.Activity = reducer.Confirming
		}
	default:
		return nil
	}
	says := reducer.Session{Activity: claim.Activity}
	if says.Word() == s.Word() {
		return nil
	}
	if counts, _ := s.Weigh(claim, now, reducer.StaleAfter); !counts {
		return nil
	}
	e := wire.Event{Source: "pty", Kind: "state_change", Session: session.ID, Team: s.Team, Agent: s.Agent, At: since}
	e = e.With("new", string(claim.Activity)).With("evidence", string(reducer.FromFile)).With("detail", wire.Clip(session.WaitingFor, 40))
	return applyTo(s, e)
}
