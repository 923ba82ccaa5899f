// Package mail is the verbs that send, show and wait for messages.
package mail

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		sendCommand, replyCommand, readCommand, ackCommand, lsCommand, showCommand, unreadCommand,
		threadCommand, searchCommand, traceCommand, withdrawCommand, waitCommand, watchCommand, takeCommand, claudeCommand,
	}
}

// hidden is a flag that says what is so already: it works, and changes nothing.
func hidden(name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Hidden: true}
}

func limitFlag() cli.Flag {
	return command.CountFlag("limit", letter.MaxMessages, "at most `N` (default 20); 0: all", "all", "n", "max")
}

func since(c *cli.Context) (t time.Time, err error) {
	if !c.IsSet("since") {
		return t, nil
	}
	if t, err = command.Since(c.String("since")); err != nil {
		err = command.Usage("--since: %v", err).WithHint("%s --since 2h", c.Command.HelpName)
	}
	return t, err
}

// sender is the address that --from names, also of somebody who is gone and left mail here; zero: anybody.
func sender(c *cli.Context, s *command.Scope) (a wire.Address, err error) {
	if !c.IsSet("from") {
		return a, nil
	}
	a, err = s.Writer(c.String("from"))
	if err != nil && strings.Contains(c.String("from"), "@") {
		found, _ := s.Team.Search(c.Context, teams.Query{From: c.String("from")})
		if len(found) > 0 {
			return found[0].From, nil
		}
	}
	return a, err
}

// namedThread is that of the message that --thread names; "": any.
func namedThread(c *cli.Context, s *command.Scope) (wire.ID, error) {
	if !c.IsSet("thread") {
		return "", nil
	}
	it, _, err := s.Find(c.String("thread"))
	if err != nil {
		return "", err
	}
	return it.ThreadID(), nil
}

func showPieces(ctx context.Context, pieces ...[]byte) (received int, err error) {
	return output.Show(ctx, os.Stdout, readerPatience, pieces)
}

// readerPatience is how long a reader that is there and does not read is waited for: a little less than Read keeps the
// lock, so that what then counts as received is marked before another reader can choose it.
const readerPatience = 1800 * time.Millisecond
