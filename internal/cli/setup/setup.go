// Package setup is the verbs around the root, the team and its state: they make
// and show them, connect coding agents' hooks, and look after what is on disk.
package setup

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
)

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		initCommand, whereCommand, teamCommand, statusCommand, primerCommand,
		installCommand, uninstallCommand, hookCommand,
		doctorCommand, gcCommand, backupCommand, restoreCommand,
	}
}

// with makes an action of a function for what an action opens first.
func with(open func(*cli.Context) (*command.Scope, error), do func(*cli.Context, *command.Scope) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := open(c)
		if err != nil {
			return err
		}
		return do(c, s)
	}
}

// A result is what a verb prints: a JSON document, or a text that says the same.
type result struct {
	document any
	text     string
}

func (r result) String() string               { return r.text }
func (r result) MarshalJSON() ([]byte, error) { return json.Marshal(r.document) }

// printResult prints a document, or the text that the format and its arguments make.
func printResult(c *cli.Context, document any, format string, args ...any) error {
	return command.Print(c, result{document, fmt.Sprintf(format, args...)})
}
