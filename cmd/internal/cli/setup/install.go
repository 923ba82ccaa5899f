package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
)

var installCommand = &cli.Command{
	Name: "install", ArgsUsage: "[TOOL]", Usage: "hooks for a coding agent, and permission to run atm",
	UsageText: `atm install claude
atm install codex --dry-run`,
	Description: `TOOL: claude, codex, gemini, opencode. The tool's own command takes atm's plugin: hooks, atm mcp, a
skill and /mail (for opencode it is one file). The agent may then read and send without asking you
(for opencode it prints what to allow), with files of its project only, but not run, type, approve
or stop; for that atm adds to your own settings of the tool, and prints what it added.
A claude that bypasses permissions asks you about what other programs send it, so atm sends it
nothing, and mail waits for its next prompt; not with --accept.`,
	Flags: append([]cli.Flag{&cli.BoolFlag{Name: "accept", Usage: "a claude that bypasses permissions takes messages without asking"}}, uninstallFlags...), Action: install,
}

var uninstallCommand = &cli.Command{
	Name: "uninstall", ArgsUsage: "[TOOL]", Usage: "remove what atm install added to a coding agent",
	UsageText:   `atm uninstall claude`,
	Description: "The tool's own command removes the plugin, and atm takes out of your settings what it added.",
	Flags:       uninstallFlags, Action: install,
}

var uninstallFlags = []cli.Flag{&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print what would change, and write nothing"}}

// install runs install and uninstall.
func install(c *cli.Context) error {
	r, err := installRequest(c)
	if err != nil {
		return err
	}
	p := command.PrinterOf(c)
	installer, err := installerInRoot(c)
	if err != nil {
		return err
	}
	isDry, lines := r.DryRun, installer.Commands(r.Tool, r.IsRemoval)
	if len(lines) > 0 && !isDry && !r.IsRemoval {
		if err := checkTool(c, r.Tool); err != nil {
			return err
		}
	}
	r.DryRun = true
	report, err := installer.Edit(r)
	var failed error // of the tool, which gives the plugin back; the files are changed all the same
	if err == nil && !isDry {
		// The tool is first, since it changes the files as well.
		if r.IsRemoval {
			failed = removePlugin(c, installer, r.Tool, lines)
		} else if err := addPlugin(c, installer, r.Tool, lines); err != nil {
			return err
		}
		r.DryRun = false
		report, err = installer.Edit(r)
	}
	if err != nil {
		return failure.Failed("%w", err).WithHint("fix it, then try again: `%s %s --dry-run`", p.Verb, r.Tool)
	}
	report.Plugin = lines
	if !r.IsRemoval && len(report.Files) > 0 {
		team := ""
		if p.Given.Team != "" {
			team = "ATM_TEAM=" + policy.Quote(p.Given.Team) + " "
		}
		p.Warn("an agent needs a name: `%sATM_AGENT=NAME %s`, or `atm run NAME -- %[2]s`", team, r.Tool)
	}
	if fault, _ := installer.Fault(r.Tool); fault != "" && !r.IsRemoval && !isDry {
		report.Notes = append(report.Notes, fault)
	}
	for _, note := range report.Notes {
		p.Warn("%s", note)
	}
	text := reportText(report)
	if !isDry {
		p = p.Confirming()
	}
	if failed != nil {
		return p.PrintDone(report, text, failed)
	}
	return p.PrintAs(report, cmp.Or(text, "nothing to change"))
}

// reportText lists the files that were changed, and the commands of the tool that were run, or would be.
func reportText(report *agentconfig.Report) (text string) {
	changed, ran := "changed", "ran"
	if report.DryRun {
		changed, ran = "would change", "would run"
	}
	for _, f := range report.Files {
		text += fmt.Sprintf("%s %s\n", changed, letter.Escape(f.Path))
		for _, change := range f.Changes {
			text += fmt.Sprintf("  %s\n", letter.Escape(change))
		}
	}
	for _, line := range report.Plugin {
		text += fmt.Sprintf("%s %s\n", ran, letter.Escape(policy.QuoteAll(line)))
	}
	return text
}

func installRequest(c *cli.Context) (agentconfig.Request, error) {
	tool := strings.TrimSuffix(strings.TrimSuffix(c.Args().First(), "-cli"), "-code") // claude-code
	r := agentconfig.Request{Tool: tool, IsRemoval: c.Command.Name == "uninstall", DryRun: c.Bool("dry-run"), Accept: c.Bool("accept")}
	if !slices.Contains(agentconfig.Tools(), tool) {
		return r, failure.Usage("which tool? one of %s", app.Join(agentconfig.Tools())).
			WithHint("`%s claude`", c.Command.HelpName).WithNearest(tool, agentconfig.Tools())
	}
	if r.Accept && !all.Find(tool).TakesAccept {
		return r, failure.Usage("--accept is for claude").WithHint("leave --accept out")
	}
	return r, nil
}

// lockIn takes a lock in this user's state directory.
func lockIn(ctx context.Context, g *app.Given, state, name string) (*lockfile.Lock, error) {
	if err := os.MkdirAll(filepath.Join(state, ".locks"), 0o700); err != nil {
		return nil, err
	}
	dir, err := durable.Open(state)
	if err != nil {
		return nil, err
	}
	return lockfile.In(dir).Lock(ctx, name, lockfile.Exclusive, g.LockTimeout, nil)
}

// installerInRoot is newInstaller for the root in which it is called: if that is accepted, it becomes writable in a
// sandbox.
func installerInRoot(c *cli.Context) (agentconfig.Installer, error) {
	g := command.Given(c)
	installer := newInstaller(c)
	found, _, err := rootdir.Find(g.Place())
	if errors.Is(err, rootdir.ErrNoRoot) {
		return installer, nil
	}
	if err == nil && found.CheckAccepted(c.Context) == nil {
		installer.Root = found.Path
	}
	return installer, err
}

// newInstaller returns an Installer that knows everything but the root.
func newInstaller(c *cli.Context) agentconfig.Installer {
	place := command.Given(c).Place()
	self, _ := os.Executable()
	return agentconfig.Installer{Home: place.Home, Dir: place.Dir, State: place.State, Self: self, Verbs: examples(cmdline.LineOf(c).Program)}
}
