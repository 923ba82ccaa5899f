package setup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/teams/policy"
)

// plugin is a tool's plugin of atm, and this user's own marketplace, which the tool remembers by its path.
type plugin struct{ tool, dir string }

func pluginOf(installer agentconfig.Installer, tool string) plugin {
	return plugin{tool, filepath.Join(cmp.Or(installer.State, installer.Home), "plugins", tool)}
}

// isOld reports whether another version of atm has written it.
func (p plugin) isOld(program *cli.App) bool {
	for path, text := range PluginFiles(program) {
		if there, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(path))); err != nil || string(there) != text {
			return p.isWritten()
		}
	}
	return false
}

func (p plugin) isWritten() bool {
	_, err := os.Stat(p.dir)
	return err == nil
}

// write writes the marketplace, with the examples of the commands.
func (p plugin) write(program *cli.App) error {
	for path, text := range PluginFiles(program) {
		path = filepath.Join(p.dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// PluginFiles are agentconfig.PluginFiles with the examples of a program's own commands.
func PluginFiles(program *cli.App) map[string]string {
	return agentconfig.PluginFiles(cmdline.Explained(program, "read", "reply", "send", "team"))
}

// commands are those with which the tool takes the plugin, or gives it back.
func (p plugin) commands(adds bool) (lines [][]string) {
	t := all.Find(p.tool).Plugin
	templates := t.Remove
	if adds {
		templates = t.Add
	}
	for _, template := range templates {
		var line []string
		for _, word := range template {
			line = append(line, strings.ReplaceAll(word, "$DIR", p.dir))
		}
		lines = append(lines, line)
	}
	return lines
}

// add has the tool take the plugin, or leaves what was. The person answers what the tool asks, and the tool's own words are
// shown; see canAsk.
func (p plugin) add(c *cli.Context) error {
	isNew := !p.isWritten()
	err := p.write(cmdline.LineOf(c).Program)
	if err == nil {
		_, err = runEach(c, p.commands(true))
	}
	if err != nil && isNew {
		for _, line := range p.commands(false) { // the marketplace is there before the plugin
			exec.CommandContext(c.Context, line[0], line[1:]...).Run()
		}
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	if err != nil {
		return failure.Failed("%w: nothing was changed", err).WithHint("without the plugin: `atm install %s`", p.tool)
	}
	return nil
}

// remove has the tool give the plugin back. The marketplace goes in any case: the person may have had the tool forget it before.
func (p plugin) remove(c *cli.Context) error {
	left, err := runEach(c, p.commands(false))
	if err != nil {
		err = failure.Failed("%w", err).WithHint("%s", shellLines(left))
	}
	return errors.Join(err, os.RemoveAll(p.dir))
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
