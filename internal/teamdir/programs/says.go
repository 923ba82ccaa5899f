package programs

import (
	"errors"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
)

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
