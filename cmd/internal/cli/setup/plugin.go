package setup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/policy"
)

// PluginFiles are agentconfig.PluginFiles with the examples of a program's own commands.
func PluginFiles(program *cli.App) map[string]string {
	return agentconfig.PluginFiles(examples(program))
}

func examples(program *cli.App) [][2]string {
	return cmdline.Explained(program, "read", "reply", "send", "team")
}

// checkTool returns an error if a tool cannot be started, or would ask and nobody could answer.
func checkTool(c *cli.Context, tool string) error {
	plugin := all.Find(tool).Plugin
	if name := plugin.Add[0][0]; exec.Command(name).Err != nil {
		return failure.Failed("%s is not on your PATH, and takes the plugin itself", name).
			WithHint("put it there, then: `%s`; or let atm start it, which needs no install: `atm run NAME -- %s`", cmdline.LineOf(c).Completed(), name)
	}
	if plugin.Asks && !canAsk(c) {
		return failure.Usage("%s asks before it takes a plugin, and here is no terminal on which to answer", tool).
			WithHint("in a terminal: %s", cmdline.LineOf(c).Completed())
	}
	return nil
}

// addPlugin has the tool take the plugin; one that it had goes first, since it may have a copy. The person answers what the tool
// asks, and the tool's own words are shown; see canAsk.
func addPlugin(c *cli.Context, installer agentconfig.Installer, tool string, lines [][]string) error {
	if len(lines) == 0 {
		return nil
	}
	giveBack := func() {
		for _, line := range installer.Commands(tool, true) {
			exec.CommandContext(c.Context, line[0], line[1:]...).Run() // some of it may not be there
		}
	}
	giveBack()
	err := installer.WriteFolder(tool)
	if err == nil {
		_, err = runEach(c, lines)
	}
	if err == nil {
		return nil
	}
	giveBack()
	err = errors.Join(err, os.RemoveAll(installer.Folder(tool)))
	return failure.Failed("%w: %s does not have the plugin", err, tool).WithHint("`%s`", cmdline.LineOf(c).Completed())
}

// removePlugin has the tool give the plugin back. The folder goes in any case: the person may have had the tool forget it before.
func removePlugin(c *cli.Context, installer agentconfig.Installer, tool string, lines [][]string) error {
	left, err := runEach(c, lines)
	if err != nil {
		err = failure.Failed("%w", err).WithHint("%s", shellLines(left))
	}
	return errors.Join(err, os.RemoveAll(installer.Folder(tool)))
}

// canAsk reports whether a person sees what a program asks, and can answer it.
func canAsk(c *cli.Context) bool {
	return output.IsTerminal(c.App.Reader) && output.IsTerminal(c.App.ErrWriter)
}

// runEach runs commands up to the first that fails, and returns those that are left. If nobody can answer what they ask, they
// find the end of their input in place of the answer.
func runEach(c *cli.Context, lines [][]string) (left [][]string, err error) {
	for i, line := range lines {
		cmd := exec.CommandContext(c.Context, line[0], line[1:]...)
		cmd.Stdout, cmd.Stderr = c.App.ErrWriter, c.App.ErrWriter
		if canAsk(c) {
			cmd.Stdin = c.App.Reader
		}
		if err := cmd.Run(); err != nil {
			return lines[i:], fmt.Errorf("%s: %w", policy.QuoteAll(line), err)
		}
	}
	return nil, nil
}

func shellLines(lines [][]string) string {
	var all []string
	for _, line := range lines {
		all = append(all, policy.QuoteAll(line))
	}
	return strings.Join(all, " && ")
}
