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
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var installCommand = &cli.Command{
	Name: "install", ArgsUsage: "[TOOL]", Usage: "hooks for a coding agent, and permission to run atm",
	UsageText: `atm install claude
atm install codex --local --as bob
atm install gemini --mcp --dry-run
atm install claude --plugin`,
	Description: `TOOL: claude, codex, gemini, opencode. Writes your own configuration of the tool, never a
file that a repository tracks; keeps what is there, and prints what it changed. The agent may then
read and send without asking you (for opencode it prints what to allow), with files of its project
only, but not run, type, approve or stop. Refuses what the tool would ignore, with the reason.
--local --as NAME also names the agent in this worktree. A claude that bypasses permissions asks you
about what other programs send it, so atm sends it nothing and its hook wakes it; not with --accept.
--plugin has the tool take hooks, atm mcp, a skill and /mail as one plugin (claude, codex, gemini).`,
	Flags: installFlags, Action: install,
}

var uninstallCommand = &cli.Command{
	Name: "uninstall", ArgsUsage: "[TOOL]", Usage: "remove what atm install added to a coding agent's configuration",
	UsageText: `atm uninstall claude
atm uninstall codex --local`,
	Description: "Restores what was in the files before, and keeps your own changes since then.",
	Flags:       uninstallFlags, Action: install,
}

var uninstallFlags = []cli.Flag{
	&cli.BoolFlag{Name: "local", Usage: "use this worktree's own file, which git ignores"},
	&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print what would change, and write nothing"},
}

var installFlags = slices.Insert(slices.Clone(uninstallFlags), 1,
	cli.Flag(&cli.BoolFlag{Name: "mcp", Usage: "only the entry that starts atm mcp"}),
	cli.Flag(&cli.BoolFlag{Name: "plugin", Usage: "the hooks, atm mcp, a skill and /mail as a plugin of the tool"}),
	cli.Flag(&cli.BoolFlag{Name: "claims", Usage: "claude refuses to edit what another member has claimed"}),
	cli.Flag(&cli.BoolFlag{Name: "accept", Usage: "a claude that bypasses permissions takes messages without asking"}))

// install runs install and uninstall.
func install(c *cli.Context) error {
	r, err := installRequest(c)
	if err != nil {
		return err
	}
	if r.Plugin && !r.DryRun && all.Find(r.Tool).Plugin.Asks && !canAsk(c) {
		return failure.Usage("%s asks before it takes a plugin, and here is no terminal on which to answer", r.Tool).
			WithHint("in a terminal: %s", cmdline.LineOf(c).Completed())
	}
	p, installs := command.PrinterOf(c), c.Command.Name == "install"
	installer, err := installerInRoot(c.Context, p.Given)
	if err != nil {
		return err
	}
	if r.Agent != "" && installer.Root != "" {
		if _, err := app.OpenMe(p.Given); err != nil {
			return err
		}
	}
	if installer.State != "" && !r.DryRun { // two installs would lose each other's lines in a file that both change
		lock, err := lockIn(c.Context, p.Given, installer.State, "install")
		if err != nil {
			return err
		}
		defer lock.Unlock()
	}
	do := installer.Install
	plugin := pluginOf(installer, r.Tool)
	hasPlugin := !r.Local && plugin.isWritten()
	switch {
	case !installs:
		do = installer.Uninstall
	case installer.HasPlugin(r.Tool) && !r.Local && !r.Plugin && !r.DryRun:
		return failure.Failed("%s has atm's plugin, and with it atm's hooks", r.Tool).WithHint("`atm install %s --plugin`, or `atm uninstall %[1]s` before", r.Tool)
	}
	dry := r
	dry.DryRun = true
	report, err := do(dry)
	var failed error // of the tool, which gives the plugin back; the files are changed all the same
	if !r.DryRun && err == nil {
		// The tool is first: it changes the files as well, and the hooks stay until it has the plugin.
		if !installs && hasPlugin {
			failed = plugin.remove(c)
		} else if r.Plugin {
			if err := plugin.add(c); err != nil {
				return err
			}
		}
		report, err = do(r)
	}
	if errors.Is(err, agentconfig.ErrTracked) {
		return failure.Failed("%w", err).WithHint("`atm install` changes no file that others share: try with --local, or without")
	} else if errors.Is(err, agentconfig.ErrLeadsOut) {
		return failure.Failed("%w", err).WithHint("make a directory of it, or leave out --local")
	} else if err != nil {
		return failure.Failed("%w", err).WithHint("fix it, then try again: `%s %s%s --dry-run`", p.Verb, r.Tool, flagsOf(r))
	}
	if installs && r.Agent == "" && !r.MCP && len(report.Files) > 0 {
		team := ""
		if p.Given.Team != "" {
			team = "ATM_TEAM=" + policy.Quote(p.Given.Team) + " "
		}
		p.Warn("an agent needs a name: `%sATM_AGENT=NAME %s`, or `atm run NAME -- %[2]s`", team, r.Tool)
	}
	for _, note := range report.Notes {
		p.Warn("%s", note)
	}
	if (r.Plugin || hasPlugin && !installs) && failed == nil {
		report.Plugin = plugin.commands(installs)
	}
	text := reportText(report)
	if text == "" && !installs {
		other := dry
		other.Local = !r.Local
		if there, err := do(other); err == nil && len(there.Files) > 0 {
			other.DryRun = r.DryRun
			p.Warn("it is installed elsewhere: `atm uninstall %s%s`", r.Tool, flagsOf(other))
		}
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
	r := agentconfig.Request{Tool: tool, Agent: c.String("as")}
	r.Local, r.DryRun, r.MCP = c.Bool("local"), c.Bool("dry-run"), c.Bool("mcp")
	r.Plugin, r.Accept, r.Claims = c.Bool("plugin"), c.Bool("accept"), c.Bool("claims")
	if !slices.Contains(agentconfig.Tools(), tool) {
		return r, failure.Usage("which tool? one of %s", app.Join(agentconfig.Tools())).
			WithHint("`%s claude%s`", c.Command.HelpName, flagsOf(r)).WithNearest(tool, agentconfig.Tools())
	}
	if r.Agent != "" && !r.Local {
		r.Local = true
		return r, failure.Usage("--as names the agent of one worktree, so it needs --local").
			WithHint("`%s %s%s`", c.Command.HelpName, tool, flagsOf(r))
	}
	v := all.Find(tool)
	if r.Plugin && (r.Local || r.MCP || v.Plugin == nil) {
		return r, failure.Usage("--plugin is for your own configuration of claude, codex or gemini, and has the entry for atm mcp").
			WithHint("leave --plugin out, or the flags beside it")
	}
	if r.Accept && (!v.TakesAccept || r.Local || r.MCP) {
		return r, failure.Usage("--accept is for your own configuration of claude").WithHint("leave --accept out")
	}
	if r.Claims && (!v.TakesClaims || r.MCP) {
		return r, failure.Usage("--claims is for the hooks of claude").WithHint("leave --claims out")
	}
	_, err := wire.ParseName(cmp.Or(r.Agent, "none"))
	return r, err
}

// flagsOf returns the flags of a request, for a hint.
func flagsOf(r agentconfig.Request) (flags string) {
	if r.MCP {
		flags += " --mcp"
	}
	if r.Plugin {
		flags += " --plugin"
	}
	if r.Claims {
		flags += " --claims"
	}
	if r.Accept {
		flags += " --accept"
	}
	if r.Local {
		flags += " --local"
	}
	if r.Agent != "" {
		flags += " --as " + letter.Escape(r.Agent)
	}
	if r.DryRun {
		flags += " --dry-run"
	}
	return flags
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
func installerInRoot(ctx context.Context, g *app.Given) (agentconfig.Installer, error) {
	installer := newInstaller(g)
	found, _, err := rootdir.Find(g.Place())
	if errors.Is(err, rootdir.ErrNoRoot) {
		return installer, nil
	}
	if err == nil && found.CheckAccepted(ctx) == nil {
		installer.Root = found.Path
	}
	return installer, err
}

// newInstaller returns an Installer that knows everything but the root.
func newInstaller(g *app.Given) agentconfig.Installer {
	place := g.Place()
	self, _ := os.Executable()
	return agentconfig.Installer{Home: place.Home, Dir: place.Dir, State: place.State, Self: self}
}
