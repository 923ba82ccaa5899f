// Package setup has the verbs that make and show the root and its teams, connect the hooks of coding agents, and
// maintain the files. Each verb is in a file of its name, uninstall in install.go. What init shows before somebody accepts
// it is in accept.go; what happens at a hook's call, in package hook.
package setup

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		initCommand, whereCommand, teamCommand, statusCommand, primerCommand,
		installCommand, uninstallCommand, hookCommand,
		doctorCommand, gcCommand, backupCommand, restoreCommand, linkCommand,
	}
}

// parseNames parses names, also several in a word with commas between.
func parseNames(words []string) (names []wire.Name, err error) {
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			n, err := wire.ParseName(part)
			if err != nil {
				return nil, failure.Usage("%v", err).
					WithHint("a name has lower-case letters, digits and dashes, such as alice or reviewer-2")
			}
			names = append(names, n)
		}
	}
	return names, nil
}

// reserved are names that nobody gets any more, though a member that has one keeps it.
var reserved = []wire.Name{"team", "everyone", "everybody", "here", "channel"}

func addMembers(ctx context.Context, t *teamdir.Team, names []wire.Name) (added []wire.Name, err error) {
	added = []wire.Name{}
	c, _ := t.Config() // doctor reports its mistakes
	for _, n := range names {
		if c.Groups[n] != nil && !t.Store.IsAgent(n) {
			return added, failure.Refused("%q is a group in team.toml", n).WithHint("another name, for the member or for the group")
		}
		if slices.Contains(reserved, n) && !t.Store.IsAgent(n) {
			return added, failure.Usage("%q is no name: it would read as a word of atm", n).
				WithHint("another name; another team: `atm init --team TEAM NAME…`")
		}
	}
	for _, n := range names {
		if err := t.Store.Create(ctx, n); err == nil {
			added = append(added, n)
		} else if !errors.Is(err, mailbox.ErrExists) {
			return added, err
		}
	}
	return added, nil
}
