package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var installCommand = &cli.Command{
	Name: "install", ArgsUsage: "[TOOL]", Usage: "hooks for a coding agent, and permission to run atm",
	UsageText: "atm install claude\natm install codex --local --as bob\natm install gemini --dry-run",
	Description: "TOOL: claude, codex, gemini, opencode. Writes your own configuration of it, never a file\n" +
		"that a repository tracks; keeps what is there, and prints what it changed. Agents may then\n" +
		"read and send without being asked about it, and not run, type, approve or stop.\n" +
		"--local with --as NAME: who the agent is here.",
	Flags:  installFlags,
	Action: func(c *cli.Context) error { return configure(c, (*agentconfig.Installer).Install, "nothing to change") },
}

var uninstallCommand = &cli.Command{
	Name: "uninstall", ArgsUsage: "[TOOL]", Usage: "take out of a coding agent's configuration what install put there",
	UsageText:   "atm uninstall claude\natm uninstall codex --local",
	Description: "The files get back what was in them. What you changed since is kept.",
	Flags:       installFlags,
	Action: func(c *cli.Context) error {
		return configure(c, (*agentconfig.Installer).Uninstall, "nothing of atm is there")
	},
}

var installFlags = []cli.Flag{
	&cli.BoolFlag{Name: "local", Usage: "this worktree's own file, which git does not see"},
	&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print what would change, and write nothing"},
}

func configure(c *cli.Context, do func(*agentconfig.Installer, agentconfig.Request) (*agentconfig.Report, error), nothing string) error {
	r := agentconfig.Request{Tool: c.Args().First(), Local: c.Bool("local"), DryRun: c.Bool("dry-run")}
	if err := checkTool(c, r.Tool); err != nil {
		return err
	}
	place := installPlace(c)
	var err error
	if place.Root, err = acceptedRoot(c); err != nil {
		return err
	}
	if c.IsSet("as") {
		r.Agent = c.String("as")
		if err := checkAs(c, r, place.Root != ""); err != nil {
			return err
		}
	}
	report, err := do(&place, r)
	if err != nil {
		return explainInstall(err)
	}
	for _, note := range report.Notes {
		command.Warn(c, "%s", note)
	}
	return command.Print(c, result{report, changeText(report, nothing)})
}

// changeText is a line a file, and one for each change in it.
func changeText(report *agentconfig.Report, nothing string) string {
	if len(report.Files) == 0 {
		return nothing
	}
	verb := map[bool]string{false: "changed", true: "would change"}[report.DryRun]
	var b strings.Builder
	for _, f := range report.Files {
		fmt.Fprintf(&b, "%s %s\n", verb, letter.Escape(f.Path))
		for _, change := range f.Changes {
			fmt.Fprintf(&b, "  %s\n", letter.Escape(change))
		}
	}
	return b.String()
}

func checkTool(c *cli.Context, tool string) error {
	if slices.Contains(agentconfig.Tools, tool) {
		return nil
	}
	near, ok := command.Nearest(tool, agentconfig.Tools)
	if !ok {
		return command.Usage("which tool? there are %s", strings.Join(agentconfig.Tools, ", ")).WithHint("%s claude", c.Command.HelpName)
	}
	return command.Usage("no tool %q", tool).WithHint("did you mean %s?", near).WithCandidates(near)
}

// installPlace says what the surroundings are, but for the root.
func installPlace(c *cli.Context) agentconfig.Installer {
	at := command.Place(c)
	p := agentconfig.Installer{Home: at.Home, Dir: at.Dir, State: at.State}
	p.Self, _ = os.Executable()
	return p
}

// acceptedRoot is the root that agents here are to use, "" where there is none. No
// sandbox is opened for one that nobody here accepted.
func acceptedRoot(c *cli.Context) (string, error) {
	found, _, err := teams.Find(command.Place(c))
	var named *teams.NoRootError
	if errors.Is(err, teams.ErrNoRoot) && !errors.As(err, &named) || err == nil && !found.Accepted {
		return "", nil
	}
	return found.Path, err
}

// checkAs makes sure that --as is a name and, where there is a team, a member's.
func checkAs(c *cli.Context, r agentconfig.Request, hasRoot bool) error {
	if !r.Local {
		return command.Usage("who an agent is belongs to one worktree, not to all that you do with %s", r.Tool).
			WithHint("%s %s --local --as %s", c.Command.HelpName, r.Tool, letter.Escape(r.Agent))
	}
	_, err := wire.ParseName(r.Agent)
	if err == nil && hasRoot {
		_, err = command.OpenMe(c)
	}
	return err
}

// explainInstall gives what went wrong with a configuration file its hint.
func explainInstall(err error) error {
	var path *fs.PathError
	if errors.Is(err, agentconfig.ErrTracked) {
		return command.Failed("%w", err).WithHint("atm install writes no file that others share: try it with --local, or without")
	}
	if errors.As(err, &path) {
		return err
	}
	return command.Failed("%w", err).WithHint("mend it, then try again: atm %s --dry-run", letter.Escape(strings.Join(os.Args[1:], " ")))
}
