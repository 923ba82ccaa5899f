// Package agent is the verbs around running agents: they start and stop them,
// show and type into their terminals, ask them, answer what they ask, and keep
// their events.
//
// An agent runs under a runner (package ptyrun), which is this program under the
// hidden verb runner, in a session of its own. Everything here reaches it through
// its control socket (connect.go). A started agent is ready when its runner's status
// says so. A runner that ends says on its stdout how.
package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
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

// A memberResult is what became of a member: every verb that starts, stops, types
// into or answers an agent prints it.
type memberResult struct {
	ID     string    `json:"id,omitempty"` // of the question that was answered
	Name   wire.Name `json:"name"`
	State  string    `json:"state"` // ready, running, started, failed, stopped, restarted, typed, …
	Detail string    `json:"detail,omitempty"`
	Hint   string    `json:"hint,omitempty"` // of one that failed
	PID    int       `json:"pid,omitempty"`
	Ended  []string  `json:"ended,omitempty"` // processes that were ended with it
}

// resultOf is the result for what a runner did.
func resultOf(name wire.Name, o control.Outcome) memberResult {
	return memberResult{Name: name, State: o.Done, Detail: o.Detail, Ended: o.Ended}
}

// mostEnded is how many of the processes that were ended are named.
const mostEnded = 5

func (r memberResult) String() string {
	line := fmt.Sprintf("%s: %s", r.Name, letter.Escape(r.State))
	if r.Detail != "" {
		line += " (" + letter.Escape(r.Detail) + ")"
	}
	if r.PID > 0 {
		line += fmt.Sprintf(", process %d", r.PID)
	}
	if len(r.Ended) > 0 {
		shown := r.Ended[:min(len(r.Ended), mostEnded)]
		line += "; ended with it: " + letter.Escape(strings.Join(shown, ", "))
	}
	if n := len(r.Ended) - mostEnded; n > 0 {
		line += fmt.Sprintf(", %d more", n)
	}
	if r.Hint != "" {
		line += "\n  " + letter.Escape(r.Hint)
	}
	return line
}

// sleep waits, and reports whether that was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
