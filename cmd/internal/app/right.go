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

// CheckRight is control.Handler's for an agent, whose processes descend from the process owner (0: unknown). A person has
// every right, and answers under a name that may. An agent may only look: the lead may also act for others, and press
// keys if it may answer; an agent's own processes may end its turn or its program, and neither type into it nor answer
// what it asks. Whose process pid is weighs more than what it says: by.
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
	isOwn, isLead := wire.Name(by) == agent, wire.Name(by) == p.Lead && by != ""
	switch {
	case of.Team != "" && of.Team != s.Team.Name:
		return fmt.Errorf("%s is of another team", of)
	case right == control.Answer, right == control.Keys && isAgents:
		return p.CheckAnswerer(agent, wire.Name(by), isAgents)
	case !isAgents, isLead && !isOwn, isOwn && right == control.Act:
		return nil
	case isOwn:
		return errors.New("an agent does not type into its own terminal: nobody may answer their own question")
	}
	return fmt.Errorf("of the agents only the lead may do that to %s", agent)
}
