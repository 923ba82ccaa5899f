package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentteammail/atm/internal/agentconfig"
	"github.com/agentteammail/atm/internal/cmdline"
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
		return e.configure((*agentconfig.Installer).Install, "nothing to change")
	}),
}

// configure changes a tool's configuration, and prints what changed, or that
// nothing was.
func (e *env) configure(do func(*agentconfig.Installer, agentconfig.Request) (*agentconfig.Report, error), nothing string) error {
	r := agentconfig.Request{Local: e.Bool("local"), DryRun: e.Bool("dry-run")}
	if len(e.Args) == 0 {
		return cmdline.Usage("which tool?").WithHint("%s claude", e.Path).WithCandidates(agentconfig.Tools...)
	}
	r.Tool = e.Args[0]
	if err := knownTool(r.Tool); err != nil {
		return err
	}
	p := agentconfig.Installer{Getenv: e.Getenv}
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
		return e.explainConfigure(err, r)
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
func (e *env) printReport(rep *agentconfig.Report, nothing string) error {
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
func (e *env) findRoot(p *agentconfig.Installer) error {
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
	for _, t := range agentconfig.Tools {
		if t == name {
			return nil
		}
	}
	err := cmdline.Usage("no tool %q; there are %s", name, "claude, codex, gemini, opencode").WithCandidates(agentconfig.Tools...)
	if near, ok := cmdline.Nearest(name, agentconfig.Tools); ok {
		return err.WithHint("did you mean %s?", near).WithCandidates(near)
	}
	return err
}

// explainConfigure gives what went wrong with configuration files its way out,
// which repeats the command as it was given.
func (e *env) explainConfigure(err error, r agentconfig.Request) error {
	again := e.Path + " " + r.Tool
	if r.Local {
		again += " --local"
	}
	if r.Agent != "" {
		again += " --as " + cmdline.Escape(r.Agent)
	}
	var tracked *agentconfig.TrackedError
	if errors.As(err, &tracked) {
		failed := cmdline.Failed("%s", err)
		if e.Path == "atm uninstall" {
			return failed.WithHint("take atm's lines out of %s by hand, and commit that", cmdline.Escape(tracked.At))
		}
		if r.Local {
			return failed.WithHint("%s %s, without --local, writes your own configuration", e.Path, r.Tool)
		}
		return failed.WithHint("%s %s --local, in each worktree", e.Path, r.Tool)
	}
	if errors.Is(err, agentconfig.ErrChanged) {
		return cmdline.Failed("%s", err).WithHint("again: %s", again)
	}
	var path *fs.PathError
	if !errors.As(err, &path) {
		return cmdline.Failed("%s", err).WithHint("mend it, then try again: %s --dry-run", again)
	}
	failed := cmdline.Failed("%s", err)
	if errors.Is(err, fs.ErrPermission) {
		failed = cmdline.Refused("%s", err)
	}
	dir := cmdline.Escape(filepath.Dir(path.Path))
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return failed.WithHint("free some space, then again: %s", again)
	case !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission):
		return err
	case e.inAgent() || e.Getenv("ATM_AGENT") != "":
		return failed.WithHint("outside the agent's sandbox, as yourself: %s; it writes %s", again, dir)
	}
	return failed.WithHint("make %s writable, then again: %s", dir, again)
}
