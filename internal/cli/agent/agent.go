// Package agent is the verbs around running agents: they start and stop them,
// show and type into their terminals, ask them, answer what they ask, and keep
// their events.
//
// An agent runs under a runner (package ptyrun), which is this program under the
// hidden verb runner, in a session of its own. Everything here reaches it through
// its control socket. Whether a started agent is ready is known in one way: its
// runner's status. A runner that ends says on its stdout how.
package agent

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		runCommand, runnerCommand, upCommand, downCommand,
		attachCommand, screenCommand, typeCommand, interruptCommand, stopCommand, restartCommand,
		askCommand, historyCommand, pendingCommand, approveCommand, rejectCommand,
		eventCommand, eventsCommand,
	}
}

// openAgent opens the team, and the mailbox of the agent that the first argument
// names. The scope's team is that agent's from then on.
func openAgent(c *cli.Context) (*command.Scope, *mailbox.Box, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, nil, err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return nil, nil, err
	}
	s.Team, err = s.Root.Team(box.Address().Team)
	return s, box, err
}
