// Package mail is the verbs that send, show and wait for messages.
package mail

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		sendCommand, replyCommand, readCommand, ackCommand, lsCommand, showCommand, unreadCommand,
		threadCommand, searchCommand, traceCommand, withdrawCommand, waitCommand, watchCommand, takeCommand,
	}
}

// findSent is a message that I sent.
func findSent(ctx context.Context, s *command.Scope, word string) (*mailbox.Item, error) {
	it, _, err := s.Find(ctx, word, false)
	if err == nil && it.From != s.Me.Address() {
		err = command.Refused("message %s is not yours but from %s", it.ID.Short(6), it.From).WithHint("atm ls --sent%s", s.Flags())
	}
	return it, err
}

// hidden is a flag that says what is so already: it works, and changes nothing.
func hidden(name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
}
