package teams

import (
	"github.com/agentteammail/atm/internal/push/claude"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// Wakes reports whether this hook's program, a Claude Code, is the one that the member's mail wakes, and whether it is idle
// now. One that does not say counts as idle: it puts a wake behind the turn that runs.
func (t *Team) Wakes(name wire.Name) (may, isIdle bool) {
	p, ok := t.bound(name)
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
