package programs

import (
	"errors"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// Wakes reports whether this hook's program is the one that the member's mail wakes, and whether it is idle now. One that
// does not say counts as idle: it puts a wake behind the turn that runs.
func Wakes(t *teamdir.Team, name wire.Name) (may, isIdle bool) {
	p, ok := Bound(t, name)
	if own, found := process.Program(); !ok || !found || own.PID != p.PID {
		return false, false
	}
	s, err := p.Says()
	return true, err != nil || s.IsIdle()
}

// Says returns what a program says of itself.
func (p Program) Says() (*agents.Session, error) {
	read := all.Of(p.Tool).Session
	if read == nil {
		return nil, errors.New("it says nothing of itself")
	}
	return read(p.PID)
}

// TakesContextAtStop reports whether the program goes on with what its hook adds to the context where it would stop.
func (p Program) TakesContextAtStop() bool {
	s, err := p.Says()
	return err == nil && s.TakesContextAtStop
}
