package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/install"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var localFlag = cmdline.Flag{Name: "local", Usage: "this worktree's own file, which git does not see"}

var installVerb = &cmdline.Verb{
	Name: "install", Args: "TOOL", Summary: "hooks for a coding agent, and leave to run atm",
	Examples: []string{"atm install claude", "atm install codex --local --as bob", "atm install gemini --dry-run"},
	Notes: []string{
		"TOOL: claude, codex, gemini, opencode. Writes your own configuration of it,",
		"never a file that a repository tracks; keeps what is there, and prints what it",
		"changed. Agents may then read and send without being asked about it, and not",
		"run, type, approve or stop. --local with --as NAME: who the agent is here.",
	},
	Flags: []cmdline.Flag{localFlag, {Name: "dry-run", Usage: "print what would change, and write nothing"}},
	// One word too few is said better than "an argument is missing".
	MaxArgs: 1,
	Run: run(func(ctx context.Context, e *env) error {
		return e.configure((*install.Place).Install, "nothing to change")
	}),
}

// configure changes a tool's configuration, and prints what changed, or that
// nothing was.
func (e *env) configure(do func(*install.Place, install.Request) (*install.Report, error), nothing string) error {
	r := install.Request{Local: e.Bool("local"), DryRun: e.Bool("dry-run")}
	if len(e.Args) == 0 {
		return cmdline.Usage("which tool?").WithHint("%s claude", e.Path).WithCandidates(install.Tools...)
	}
	r.Tool = e.Args[0]
	if err := knownTool(r.Tool); err != nil {
		return err
	}
	p := install.Place{Getenv: e.Getenv}
	if err := e.findRoot(&p); err != nil {
		return err
	}
	if e.Given("as") {
		if !r.Local {
			return cmdline.Usage("who an agent is belongs to one worktree, not to all that you do with %s", r.Tool).
				WithHint("%s %s --local --as %s", e.Path, r.Tool, cmdline.Escape(e.String("as")))
		}
		if err := e.someMember(p.Root); err != nil {
			return err
		}
		r.Agent = e.String("as")
	}
	rep, err := do(&p, r)
	if err != nil {
		return explainConfigure(err, r)
	}
	for _, n := range rep.Notes {
		e.Warn("%s", n)
	}
	if e.JSON() {
		return e.PrintJSON(rep)
	}
	return e.printReport(rep, nothing)
}

// printReport prints a line for each file, and one for each change in it.
func (e *env) printReport(rep *install.Report, nothing string) error {
	if len(rep.Files) == 0 {
		return e.print("%s", nothing)
	}
	verb := "changed"
	if rep.DryRun {
		verb = "would change"
	}
	for _, f := range rep.Files {
		if err := e.print("%s %s", verb, cmdline.Escape(f.Path)); err != nil {
			return err
		}
		for _, c := range f.Changes {
			if err := e.print("  %s", cmdline.Escape(c)); err != nil {
				return err
			}
		}
	}
	return nil
}

// findRoot says what the surroundings are. A root that nobody here accepted is
// none: no sandbox is opened for it.
func (e *env) findRoot(p *install.Place) error {
	at := e.place()
	p.Home, p.Dir, p.State = at.Home, at.Dir, at.State
	p.Self, _ = os.Executable()
	f, passed, err := teams.Find(at)
	for _, s := range passed {
		e.Warn("%s", s)
	}
	switch {
	case errors.Is(err, teams.ErrNoRoot) && at.Flag == "" && at.Env == "":
		return nil
	case err != nil:
		return err
	case f.Accepted:
		p.Root = f.Path
	}
	return nil
}

// someMember makes sure that --as is a name, and where there is a team, one of
// its members.
func (e *env) someMember(root string) error {
	if root != "" {
		return e.who()
	}
	_, err := wire.ParseAddress(e.String("as"), "main")
	if err != nil {
		return cmdline.Usage("--as: %v", err)
	}
	return nil
}

func knownTool(name string) error {
	for _, t := range install.Tools {
		if t == name {
			return nil
		}
	}
	err := cmdline.Usage("no tool %q; there are %s", name, "claude, codex, gemini, opencode").WithCandidates(install.Tools...)
	if near, ok := cmdline.Nearest(name, install.Tools); ok {
		return err.WithHint("did you mean %s?", near).WithCandidates(near)
	}
	return err
}

// explainConfigure gives what went wrong with configuration files its way out.
func explainConfigure(err error, r install.Request) error {
	var tracked *install.TrackedError
	var path *fs.PathError
	switch {
	case errors.As(err, &tracked) && r.Local:
		return cmdline.Failed("%s", err).WithHint("atm install %s, without --local, writes your own configuration", r.Tool)
	case errors.As(err, &tracked):
		return cmdline.Failed("%s", err).WithHint("atm install %s --local, in each worktree", r.Tool)
	case errors.As(err, &path) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)):
		return cmdline.Failed("%s", err).WithHint("free some space, then again: atm install %s", r.Tool)
	case errors.As(err, &path) && (errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)):
		c := cmdline.Refused
		if errors.Is(err, syscall.EROFS) {
			c = cmdline.Failed
		}
		return c("%s", err).WithHint("outside the agent's sandbox, as yourself: atm install %s; it writes %s", r.Tool, cmdline.Escape(filepath.Dir(path.Path)))
	case errors.As(err, &path):
		return err
	}
	return cmdline.Failed("%s", err).WithHint("mend it, then try again: atm install %s --dry-run", r.Tool)
}
