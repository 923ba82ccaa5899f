// Package setup is the verbs around the root, the team and its state: they make
// and show them, connect coding agents' hooks, and look after what is on disk.
package setup

import "github.com/urfave/cli/v2"

// Commands are the verbs of this group.
func Commands() []*cli.Command {
	return []*cli.Command{
		initCommand, whereCommand, teamCommand, statusCommand, primerCommand,
		installCommand, uninstallCommand, hookCommand,
		doctorCommand, gcCommand, backupCommand, restoreCommand,
	}
}
