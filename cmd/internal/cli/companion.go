package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/cli/setup"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// companions are the verbs that are programs of their own, atm-VERB: what they link would slow down every start of atm.
var companions = []*cli.Command{
	{Name: "mcp", Usage: "offer the mail as MCP tools, on stdio"},
	{Name: "tui", Usage: "the team, your mail and what is waiting for you, in a terminal"},
	{Name: "acp", ArgsUsage: "NAME", Usage: "talk to a member from an editor: an ACP agent on stdio"},
	{
		Name: "bridge", Usage: "carry mail to and from the team on other machines, over NATS",
		Flags: command.CompanionFlags["bridge"], Subcommands: setup.BridgeCommands,
	},
	{
		Name: "web", Usage: "the team in a browser: who is busy, what is waiting for you, all mail",
		Flags: command.CompanionFlags["web"],
	},
}

// runCompanion replaces this process by a companion. It returns if there is none that can run.
func runCompanion(c *cli.Context, line *cmdline.Line) (code int, err error) {
	path, err := command.FindCompanion(c, "atm-"+line.Command.Name, "which does this")
	if err != nil {
		return 0, err
	}
	return replaceBy(path, line.Args()), nil
}

// runExternal replaces this process by the program atm-NAME, if there is one.
func runExternal(name string, args []string) (code int, found bool) {
	path, err := command.Companion("atm-" + name)
	if err != nil || strings.ContainsAny(name, `/\`) { // a path: a program in the working directory is not ours
		return 0, false
	}
	return replaceBy(path, args), true
}

// replaceBy replaces this process by a program; Windows cannot, so there it waits for the exit code.
func replaceBy(path string, args []string) (code int) {
	cmd := exec.Command(path, args...)
	err := syscall.Exec(path, cmd.Args, os.Environ())
	if errors.Is(err, errors.ErrUnsupported) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if cmd.ProcessState != nil {
		return cmd.ProcessState.ExitCode()
	}
	fmt.Fprintf(os.Stderr, "atm: run %s: %v\n", path, err)
	return failure.ExitFailed
}
