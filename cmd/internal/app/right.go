package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// CheckRight is control.Handler's for an agent, whose processes descend from the process owner (0: unknown). Everybody may
// look. Who may answer is Policy.CheckAnswerer's, and so is which agents may press keys, since they might answer by that;
// the rest is Policy.CheckActor's. Whose process pid is weighs more than what it says: by.
func (s *Scope) CheckRight(p policy.Policy, agent wire.Name, owner int, right control.Right, pid int, by string) error {
	if right == control.Look {
		return nil
	}
	of, isAgents := s.AgentOf(pid)
	if slices.Contains(process.Ancestors(pid), owner) { // also where nobody can tell who holds the lock
		of, isAgents = s.Team.Box(agent).Address(), true
	}
	if of.Team == s.Team.Name {
		by = string(of.Agent)
	}
	verb := "type into"
	if right == control.Act {
		verb = "act on"
	}
	switch {
	case of.Team != "" && of.Team != s.Team.Name:
		return fmt.Errorf("%s is of another team", of)
	case right == control.Answer, right == control.Keys && isAgents:
		return p.CheckAnswerer(agent, wire.Name(by), isAgents)
	case right == control.Type && isAgents && wire.Name(by) == agent:
		return errors.New("an agent does not type into its own terminal: nobody may answer their own question")
	}
	return p.CheckActor(verb, agent, wire.Name(by), isAgents)
}
