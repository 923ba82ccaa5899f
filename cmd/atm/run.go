package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var runVerb = &cmdline.Verb{
	Name: "run", Args: "NAME [--] [CMD…]", Summary: "run a program in a terminal as that agent, its mail typed in",
	Examples: []string{"atm run bob -- claude", "atm run bob --detach -- codex", "atm run sh --driver plain -- bash"},
	Notes: []string{
		"This terminal is attached to it; Ctrl-\\ d leaves it running, closing the terminal",
		"ends it. No CMD: that of team.toml (docs/format.md), which is restarted on a crash.",
		"Exits with the program's code, 128+n for a signal.",
	},
	Flags: []cmdline.Flag{
		{Name: "detach", Usage: "return when it waits at its prompt, or why not; at the latest after 3s"},
		{Name: "driver", Kind: cmdline.String, Arg: "D", Usage: "auto, claude, codex, gemini, opencode or plain"},
		{Name: "inject", Kind: cmdline.String, Arg: "HOW", Usage: "body, pointer (one line that says atm read) or off"},
		{Name: "size", Kind: cmdline.String, Arg: "120x30", Usage: "of its terminal"},
		{Name: "cwd", Kind: cmdline.String, Arg: "DIR", Usage: "where it runs"},
		{Name: "env", Kind: cmdline.Pairs, Arg: "k=v", Usage: "in its environment"},
		{Name: "restart", Kind: cmdline.String, Arg: "WHEN", Usage: "never (for a CMD), on-crash (for team.toml's) or always"},
		{Name: "record-input", Usage: "record what is typed, too: it may hold secrets"},
		{Name: "leftovers", Kind: cmdline.String, Arg: "end|keep", Usage: "what a runner that was killed has left; end it (the default) or let it go on"},
	},
	MinArgs: 1, MaxArgs: -1, StopAfter: 1,
	Guesses: []string{"start", "spawn", "launch", "exec", "shell"},
	Run:     run(runAgent),
}

// plan is what is to be run.
type plan struct {
	box     *mailbox.Box
	command []string
	opt     ptyrun.Options
	keep    bool // what was left goes on
	policy  policy.Policy
	member  config.Member // as team.toml has it, with the command that is run
}

func runAgent(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	if !e.root.Accepted {
		return cmdline.Refused("nothing is started from %s: nobody here made or accepted it", e.root.Path).WithHint("if it is yours: atm init")
	}
	name, err := wire.ParseName(e.Args[0])
	if err != nil {
		f := cmdline.Usage("run: %v", err)
		if near, ok := cmdline.Nearest(e.Args[0], strs(e.memberNames())); ok {
			f.WithHint("did you mean %q?", near)
		}
		return f
	}
	if err := e.mayAct("run", name); err != nil {
		return err
	}
	if pipe := e.Getenv(runnerPipe); pipe != "" {
		return e.runDetached(ctx, name, pipe)
	}
	p, err := e.plan(ctx, name)
	if err != nil {
		return err
	}
	attached := term.IsTerminal(int(os.Stdin.Fd())) && e.terminal()
	switch {
	case e.Bool("detach"):
		return e.launch(ctx, p)
	case attached:
		all, err := e.launchFor(ctx, p)
		if err != nil {
			return err
		}
		var said *cmdline.Error
		exited, err := e.attachOwner(ctx, p.box)
		switch {
		case exited:
			if n, ok := lastNews(all); ok && n.Message != "" { // it was given up
				return &cmdline.Error{Exit: n.Exit, Code: "failed", Message: string(name) + " " + n.Message, Hint: "atm play " + string(name)}
			}
		case err != nil && !(errors.As(err, &said) && said.Printed):
			if over, ended := e.overAlready(p, all); over {
				return ended
			}
		}
		return err
	}
	e.Warn("%s runs here, with no terminal to show it: atm attach %s, atm play %s", name, name, name)
	return whileRunning(ctx, func(ctx context.Context) error { return e.runHere(ctx, p, func(news) {}) })
}

// plan makes of the command line and team.toml what is to be run.
func (e *env) plan(ctx context.Context, name wire.Name) (*plan, error) {
	toml, err := e.team.Config()
	if err != nil {
		return nil, err
	}
	m := toml.Members[name]
	p := &plan{command: e.Args[1:]}
	restart := "never"
	if len(p.command) == 0 {
		p.command, restart = m.Command, "on-crash"
	}
	if running, err := e.stillRuns(ctx, name); err == nil && running {
		return nil, cmdline.Refused("%s runs already", name).WithHint("atm attach %s joins it, atm stop %s ends it", name, name)
	}
	if len(p.command) == 0 {
		if err := e.misspelt(name, toml); err != nil {
			return nil, err
		}
		return nil, cmdline.Usage("run what? %s gives %s no command", filepath.Join(e.team.Dir().Path(), "team.toml"), name).WithHint("%s", strings.Replace(e.team.RunAgain(name), " -- CMD", " -- claude", 1))
	}
	if p.box, err = e.runnable(ctx, name); err != nil {
		return nil, err
	}
	p.member = m
	p.member.Command = p.command
	o := &p.opt
	o.Box, o.Command = p.box, p.command
	o.Dir = e.String("cwd")
	own := o.Dir == "" && m.Worktree
	switch {
	case own:
		w, err := e.team.Worktree(ctx, os.Environ(), name, m.Cwd)
		if err != nil {
			return nil, err
		}
		o.Dir = w.Dir
		if w.Done != "" {
			e.Warn("%s: %s", name, w.Done)
		}
	case o.Dir == "" && (m.Cwd != "" || len(e.Args) == 1): // team.toml's command runs in one place, wherever this is typed
		o.Dir = e.team.WorkDir(m.Cwd)
	}
	if o.Dir == "" {
		o.Dir, _ = os.Getwd()
	}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return nil, cmdline.Failed("run %s: %s is no directory", name, o.Dir)
	}
	choose := func(flag, toml, standard string, of ...string) string {
		v := e.String(flag)
		if v == "" {
			v = toml
		}
		if v == "" {
			v = standard
		}
		for _, w := range of {
			if v == w {
				return v
			}
		}
		if err == nil {
			err = cmdline.Usage("--%s is one of %s, not %q", flag, strings.Join(of, ", "), v)
		}
		return v
	}
	if e.String("driver") == "acp" || m.Driver == "acp" && !e.Given("driver") {
		return nil, cmdline.Failed("driver acp is not in this atm yet").WithHint("--driver auto runs the program in a terminal")
	}
	which := choose("driver", m.Driver, "auto", append([]string{"auto"}, driver.Names()...)...)
	o.Inject = ptyrun.Inject(choose("inject", m.Inject, "body", config.Injects...))
	o.Restart = ptyrun.Restart(choose("restart", m.Restart, restart, config.Restarts...))
	p.keep = choose("leftovers", "", "end", "end", "keep") == "keep"
	if err != nil {
		return nil, err
	}
	o.Auto = which == "auto"
	o.Driver = driver.ForCommand(p.command)
	if d, ok := driver.Named(which); ok {
		o.Driver = d
	}
	size := e.String("size")
	if size == "" {
		size = m.Size
	}
	if size == "" {
		size = "120x30"
	}
	if o.Cols, o.Rows, err = config.ParseSize(size); err != nil {
		return nil, cmdline.Usage("--size: %v", err)
	}
	o.Input, o.Prompt = e.Bool("record-input"), m.Prompt
	o.Run = string(wire.NewID())
	o.Env = e.environment(p, m.Env)
	if own {
		o.Env = git.WithoutRepository(o.Env)
	}
	if _, err := lookPath(p.command[0], o.Dir, o.Env); err != nil {
		return nil, cmdline.Failed("run %s: %v", name, err).WithHint("atm run %s -- bash runs a shell", name)
	}
	sessions := toml.SessionOf(name)
	o.Sessions = &ptyrun.Sessions{
		Begin: sessions.Enabled, Capture: ptyrun.Capture(sessions.OutputCapture), Rules: sessions.Rules(),
	}
	policy, err := e.policy(name, toml.Policy(name))
	if err != nil {
		return nil, err
	}
	p.policy, o.Sessions.Mute = policy, policy.Mute
	o.May = func(pid int, by string) error { return policy.MayAnswer(name, wire.Name(by), e.ofAgent(pid)) }
	o.Decide = func(tool, input string) ptyrun.Decision {
		return ptyrun.Decision(policy.Decide(name, tool, input, false))
	}
	return p, nil
}

// policy is whose rules count: what team.toml says now, or where an agent starts
// another, what it said when a person did so last.
func (e *env) policy(name wire.Name, now policy.Policy) (policy.Policy, error) {
	if now.Lead == "" {
		lead, err := e.team.Lead()
		if err != nil {
			return now, err
		}
		now.Lead = lead
	}
	if !e.inAgent() {
		return now, nil
	}
	kept, ok, err := e.team.SavedPolicy(name)
	if !ok {
		return now.DenyOnly(), err
	}
	return kept, nil
}

// stillRuns reports whether somebody runs, and is not about to end: a runner
// whose program has ended has a second to let go of its lock.
func (e *env) stillRuns(ctx context.Context, name wire.Name) (bool, error) {
	running, err := e.team.Running(name)
	if err != nil || !running {
		return false, err
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, releasedEvery) {
		if s, err := e.runnerStatus(ctx, name); err == nil && s.ChildPID != 0 {
			return true, nil
		}
		if running, err := e.team.Running(name); err != nil || !running {
			return false, err
		}
	}
	return true, ctx.Err()
}

// misspelt is the error of a name that no member has, and one that is near it.
func (e *env) misspelt(name wire.Name, plan *config.Config) error {
	_, err := e.team.Member(name)
	var unknown *teams.UnknownError
	if !errors.As(err, &unknown) || unknown.Retired {
		return nil
	}
	for n := range plan.Members {
		if !slices.Contains(unknown.Members, n) {
			unknown.Members = append(unknown.Members, n)
		}
	}
	slices.Sort(unknown.Members)
	if _, near := cmdline.Nearest(string(name), strs(unknown.Members)); !near {
		return nil
	}
	return unknown
}

// runnable is the agent's mailbox: a new name is added and said, unless it is
// near one that is there.
func (e *env) runnable(ctx context.Context, name wire.Name) (*mailbox.Box, error) {
	box, err := e.team.Member(name)
	var unknown *teams.UnknownError
	if !errors.As(err, &unknown) || unknown.Retired {
		return box, err
	}
	if _, near := cmdline.Nearest(string(name), strs(unknown.Members)); near {
		return box, err
	}
	if _, err := addAll(ctx, e.team, []wire.Name{name}); err != nil {
		return nil, err
	}
	if !e.Quiet() {
		e.Warn("%s is new in team %s", name, e.team.Name)
	}
	return e.team.Member(name)
}
