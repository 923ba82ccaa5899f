package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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
	Flags: installFlags(),
	Action: func(c *cli.Context) error {
		return configure(c, (*agentconfig.Installer).Install, "nothing to change")
	},
}

var uninstallCommand = &cli.Command{
	Name: "uninstall", ArgsUsage: "[TOOL]", Usage: "take out of a coding agent's configuration what install put there",
	UsageText:   "atm uninstall claude\natm uninstall codex --local",
	Description: "The files get back what was in them. What you changed since is kept.",
	Flags:       installFlags(),
	Action: func(c *cli.Context) error {
		return configure(c, (*agentconfig.Installer).Uninstall, "nothing of atm is there")
	},
}

func installFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "local", Usage: "this worktree's own file, which git does not see"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "print what would change, and write nothing"},
	}
}

// installed is what install and uninstall print: a line a file, and one for each
// change in it.
type installed struct {
	*agentconfig.Report
	nothing string // is said where nothing changed
}

func (r installed) String() string {
	if len(r.Files) == 0 {
		return r.nothing
	}
	verb := "changed"
	if r.DryRun {
		verb = "would change"
	}
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s %s\n", verb, letter.Escape(f.Path))
		for _, change := range f.Changes {
			fmt.Fprintf(&b, "  %s\n", letter.Escape(change))
		}
	}
	return b.String()
}

func configure(c *cli.Context, do func(*agentconfig.Installer, agentconfig.Request) (*agentconfig.Report, error), nothing string) error {
	r, err := installRequest(c)
	if err != nil {
		return err
	}
	place := installPlace(c)
	if place.Root, err = acceptedRoot(c); err != nil {
		return err
	}
	if c.IsSet("as") {
		if err := checkAs(c, r, place.Root != ""); err != nil {
			return err
		}
		r.Agent = c.String("as")
	}
	report, err := do(&place, r)
	if err != nil {
		return explainInstall(c, err, r)
	}
	for _, note := range report.Notes {
		command.Warn(c, "%s", note)
	}
	return command.Print(c, installed{report, nothing})
}

func installRequest(c *cli.Context) (agentconfig.Request, error) {
	r := agentconfig.Request{Tool: c.Args().First(), Local: c.Bool("local"), DryRun: c.Bool("dry-run")}
	if r.Tool == "" {
		return r, command.Usage("which tool?").WithHint("%s claude", c.Command.HelpName).WithCandidates(agentconfig.Tools...)
	}
	if slices.Contains(agentconfig.Tools, r.Tool) {
		return r, nil
	}
	e := command.Usage("no tool %q; there are %s", r.Tool, strings.Join(agentconfig.Tools, ", ")).WithCandidates(agentconfig.Tools...)
	if near, ok := command.Nearest(r.Tool, agentconfig.Tools); ok {
		return r, e.WithHint("did you mean %s?", near).WithCandidates(near)
	}
	return r, e
}

// installPlace says what the surroundings are, but for the root.
func installPlace(c *cli.Context) agentconfig.Installer {
	at := command.Place(c)
	p := agentconfig.Installer{Home: at.Home, Dir: at.Dir, State: at.State, Getenv: os.Getenv}
	p.Self, _ = os.Executable()
	return p
}

// acceptedRoot is the root that agents here are to use, "" where there is none. No
// sandbox is opened for one that nobody here accepted.
func acceptedRoot(c *cli.Context) (string, error) {
	at := command.Place(c)
	found, passed, err := teams.Find(at)
	for _, p := range passed {
		command.Warn(c, "%s", p)
	}
	if errors.Is(err, teams.ErrNoRoot) && at.Flag == "" && at.Env == "" {
		return "", nil
	}
	if err != nil || !found.Accepted {
		return "", err
	}
	return found.Path, nil
}

// checkAs makes sure that --as is a name and, where there is a team, a member's.
func checkAs(c *cli.Context, r agentconfig.Request, hasRoot bool) error {
	if !r.Local {
		return command.Usage("who an agent is belongs to one worktree, not to all that you do with %s", r.Tool).
			WithHint("%s %s --local --as %s", c.Command.HelpName, r.Tool, letter.Escape(c.String("as")))
	}
	if hasRoot {
		_, err := command.OpenMe(c)
		return err
	}
	if _, err := wire.ParseAddress(c.String("as"), "main"); err != nil {
		return command.Usage("--as: %v", err).WithHint("--as bob")
	}
	return nil
}

// explainInstall gives what went wrong with a configuration file its hint, which
// repeats the command as it was given.
func explainInstall(c *cli.Context, err error, r agentconfig.Request) error {
	verb := c.Command.HelpName + " " + r.Tool
	again := verb
	if r.Local {
		again += " --local"
	}
	if r.Agent != "" {
		again += " --as " + letter.Escape(r.Agent)
	}
	failed := command.Failed("%w", err)
	var tracked *agentconfig.TrackedError
	if errors.As(err, &tracked) {
		if c.Command.Name == "uninstall" {
			return failed.WithHint("take atm's lines out of %s by hand, and commit that", tracked.At)
		}
		if r.Local {
			return failed.WithHint("%s, without --local, writes your own configuration", verb)
		}
		return failed.WithHint("%s --local, in each worktree", verb)
	}
	var path *fs.PathError
	if !errors.As(err, &path) {
		return failed.WithHint("mend it, then try again: %s --dry-run", again)
	}
	if errors.Is(err, fs.ErrPermission) {
		failed = command.Refused("%w", err)
	}
	dir := filepath.Dir(path.Path)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return failed.WithHint("free some space, then again: %s", again)
	case !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission):
		return err
	case command.InAgent() || os.Getenv("ATM_AGENT") != "":
		return failed.WithHint("outside the agent's sandbox, as yourself: %s; it writes %s", again, dir)
	}
	return failed.WithHint("make %s writable, then again: %s", dir, again)
}
