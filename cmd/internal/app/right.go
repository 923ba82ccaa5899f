package app

import (
	"slices"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/wire"
)

// CheckRight is control.Handler's for an agent, whose processes descend from the process owner (0: unknown). Everybody may
// look; the rest is policy.Rights'. An agent that presses keys might answer by that. Whose process pid is weighs more than
// what it says: by.
func (s *Scope) CheckRight(p policy.Policy, agent wire.Name, owner int, right control.Right, pid int, by string) error {
	if right == control.Look {
		return nil
	}
	of, isAgent := s.AgentOf(pid)
	if slices.Contains(process.Ancestors(pid), owner) { // also where nobody can tell who holds the lock
		of, isAgent = s.Team.Box(agent).Address(), true
	}
	actor := policy.Actor{Name: wire.Name(by), IsAgent: isAgent}
	if of != (wire.Address{}) {
		actor.Name = s.nameOf(of)
	}
	act := policy.Stop
	switch {
	case right == control.Answer, right == control.Keys && isAgent:
		act = policy.Answer
	case right == control.Keys, right == control.Type:
		act = policy.Type
	}
	return p.Check(act, agent, actor)
}
