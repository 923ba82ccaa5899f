package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/agentconfig"
	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/git"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/wire"
)

var resumeFlag = &cli.BoolFlag{Name: "resume", Usage: "continue the last conversation; =false does not"}

var runCommand = &cli.Command{
	Name: "run", Category: "spawn launch start new new-session\n--role --prompt --branch --serves    a key of the member in team.toml: `atm help team.toml`", ArgsUsage: "NAME [CMD…]", Usage: "run a program as an agent, and type its mail in",
	UsageText: `atm run bob -- claude
atm run bob --detach -- codex
atm run dora --driver acp -- opencode acp`,
	Description: `This terminal is attached to it; Ctrl-\ d leaves it running, closing the terminal ends it.
Without CMD it runs that of team.toml, and restarts it when it crashes.
A shell is told to read its mail. A program is known by its name, or by --driver (plain: like a
shell). Nothing is typed into one that atm does not know: atm doctor -h.
--serve jobs: when idle it takes work from that shared inbox. --fork ID|AGENT: it begins with a copy
of a conversation. Hooks of Claude Code and opencode come along. It exits as the program does.`,
	Flags: []cli.Flag{
		cmdline.ChoiceFuncFlag("driver", "`DRIVER`: auto (default: by CMD), or one of atm doctor --driver all", config.Drivers),
		cmdline.ChoiceFlag("inject", "`HOW` mail comes: body, pointer (to atm read), off", config.Injects...),
		&cli.StringFlag{Name: "size", Usage: "terminal size (default `120x30`)"},
		&cli.StringFlag{Name: "cwd", Aliases: []string{"C"}, Category: "dir workdir", Usage: "run it in `DIR`"},
		cmdline.ListFlag("env", "environment variable `k=v`, repeatable", "e"),
		cmdline.ChoiceFlag("restart", "`WHEN`: never (given CMD), on-crash (without) or always", config.Restarts...),
		resumeFlag,
		&cli.BoolFlag{Name: "worktree", Category: "isolated", Usage: "run it in a git worktree of its own"},
		&cli.StringFlag{Name: "fork", Hidden: true},
		cmdline.ListFlag("serve", "", "serves"),
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Category: "background bg detached", Usage: "return once its prompt is shown, or say why it is not"},
	},
	Action: run,
}

// runOptions are the flags and words of run; up has --resume alone.
type runOptions struct {
	words                                    []string // the command; none: that of team.toml
	driver, inject, restart, size, cwd, fork string   // "": as team.toml says, or the default
	env, serves                              []string
	resume                                   *bool // nil: as team.toml says
	isDetached, isInWorktree                 bool
}

func resumeOf(c *cli.Context) *bool {
	if !c.IsSet("resume") {
		return nil
	}
	return new(c.Bool("resume"))
}

// run checks the whole command line before it creates anything. A new name becomes a member, with a warning.
func run(c *cli.Context) error {
	o := runOptions{
		words: c.Args().Tail(), driver: c.String("driver"), inject: c.String("inject"), restart: c.String("restart"), size: c.String("size"),
		cwd: c.String("cwd"), fork: c.String("fork"), env: cmdline.List(c, "env"), serves: cmdline.List(c, "serve"), resume: resumeOf(c),
		isDetached: c.Bool("detach"), isInWorktree: c.Bool("worktree"),
	}
	if err := cmdline.NotBoth(c, "cwd worktree"); err != nil {
		return err
	}
	if c.IsSet("fork") && o.fork == "" { // as of an unset variable
		return failure.Usage("--fork: the id is empty").WithHint("leave it out for a new conversation, or name a member: `atm run bob --fork alice -- claude`")
	}
	k, err := openAgent(c)
	unknown, isNew := errors.AsType[*teamdir.UnknownError](err)
	if isNew && k != nil && k.mayAdd(unknown) {
		k.box, err = k.s.Team.Box(unknown.Name), nil
	}
	if err != nil {
		if isNew && wire.IsName(string(unknown.Name)) && !unknown.Retired {
			e := k.p.Explain(err)
			return e.WithHint("%s; to have a new member of that name: `atm team add %s`", e.Hint, unknown.Name)
		}
		return err
	}
	plan, err := k.s.Team.Config()
	if err != nil {
		return err
	}
	if err := cmp.Or(k.s.MayAct(policy.Run, k.name()), app.CheckRunnable(k.s.Team, k.name())); err != nil {
		return err
	}
	if running, _ := k.s.Team.Running(k.name()); running {
		return failure.Refused("%s is already running", k.name()).WithHint("`atm attach %s` joins it, `atm stop %[1]s` ends it; one more needs a name of its own: `atm run NAME -- CMD`", k.name())
	}
	program, err := command.FindCompanion(c, app.Runner, "which runs agents")
	if err != nil {
		return err
	}
	spec, err := k.spec(c.Context, plan, o)
	if err != nil {
		return err
	}
	warnOfDrivers(k.p)
	if isNew {
		if _, err := process.LookUp(spec.Command[0], spec.Dir, spec.Env); err != nil {
			return failure.Failed("run %s: %w", spec.Command[0], err).
				WithHint("install it, or name another program: `atm run %s -- bash`", k.name())
		}
		k.p.Warn("%s is new in team %s", k.name(), k.s.Team.Name)
		if err := k.s.Team.Store.Create(c.Context, k.name()); err != nil {
			return err
		}
	}
	for _, other := range programs.Of(k.s.Team, k.name()) {
		k.p.Warn("%s was started as %s, too, and gets no mail while this one runs", other, k.name())
	}
	spec.Attended = !o.isDetached
	p, err := startRunner(program, spec, k.p.Err)
	if err != nil {
		return err
	}
	if o.isDetached {
		ctx, stop := app.Interruptible(c.Context)
		defer stop()
		return k.print(k.awaitReady(ctx, p))
	}
	if k.onTerminal() {
		return k.runAttached(c.Context, p)
	}
	return k.runHere(c.Context, p)
}

// warnOfDrivers says which of this person's drivers are not used, and why.
func warnOfDrivers(p *command.Printer) {
	for _, e := range agents.Own(agents.Dir()) {
		if err := e.Fault(); err != nil {
			p.Warn("%v: `atm doctor --driver all`", err)
		}
	}
}

// mayAdd reports whether an unknown name becomes a member: it has a command in team.toml, or no similar name exists.
func (k *call) mayAdd(e *teamdir.UnknownError) bool {
	plan, _ := k.s.Team.Config()
	near, isNear := failure.Nearest(string(e.Name), app.Strings(e.Members))
	isNear = isNear && max(len(near)-len(e.Name), len(e.Name)-len(near)) < 2 // bob and bobby are two
	return wire.IsName(string(e.Name)) && !e.Retired && e.Team == k.s.Team.Name && (!isNear || len(plan.Members[e.Name].Command) > 0)
}

func noCommand(t *teamdir.Team, name wire.Name) error {
	if err := app.CheckRunnable(t, name); err != nil {
		return err
	}
	start := strings.Replace(app.RunCommand(t, name), "-- CMD", "-- claude", 1)
	if _, err := exec.LookPath(string(name)); err == nil { // atm run bash
		start = "atm run NAME -- " + string(name)
	}
	return failure.Usage("no command to run for %s: team.toml gives none", name).WithHint("`%s`", start)
}

// spec combines the options and team.toml.
func (k *call) spec(ctx context.Context, plan *config.Config, o runOptions) (spec runspec.Spec, err error) {
	name := k.name()
	m, session, isPlanned := plan.Members[name], plan.SessionOf(name), len(o.words) == 0
	m.Worktree = m.Worktree || o.isInWorktree
	spec = runspec.Spec{
		Root: k.s.Root.Path, Team: k.box.Address().Team, Agent: name, Run: string(wire.NewID()), Command: o.words, Prompt: m.Prompt,
		Driver: cmp.Or(o.driver, m.Driver, "auto"), Inject: cmp.Or(o.inject, m.Inject, "body"),
		Restart: cmp.Or(o.restart, m.Restart, "never"),
		Session: session.Enabled != nil && *session.Enabled, Capture: session.OutputCapture, Rules: session.Rules(),
	}
	spec.GoesOn = m.AfterLimit == config.Continue
	if spec.Serves, err = k.served(m.Serves, o.serves, spec.Inject); err != nil {
		return spec, err
	}
	spec.Lease = m.LeaseTime()
	if spec.Resume = m.Resume; o.resume != nil {
		spec.Resume, spec.Anew = *o.resume, !*o.resume
	}
	if isPlanned {
		spec.Command, spec.Restart = m.Command, cmp.Or(o.restart, m.Restart, "on-crash")
	}
	if len(spec.Command) == 0 {
		return spec, noCommand(k.s.Team, name)
	}
	if spec.Fork, err = k.forked(ctx, o.fork); err != nil {
		return spec, err
	}
	for _, e := range agents.Own(agents.Dir()) {
		if e.Name == spec.Driver && e.File == nil {
			return spec, failure.Failed("%w", e.Fault()).WithHint("`atm doctor --driver all`")
		}
	}
	if spec.Cols, spec.Rows, err = config.ParseSize(cmp.Or(o.size, m.Size, "120x30")); err != nil {
		return spec, failure.Usage("size: %v", err).WithHint("--size 120x30")
	}
	for _, pair := range o.env {
		if name, _, isPair := strings.Cut(pair, "="); !isPair || !config.MaySetEnv(name) {
			return spec, failure.Usage("--env needs k=v with a variable that atm does not set itself, not %q", pair)
		}
	}
	spec.LastStop = k.s.Team.LastStop(name)
	if spec.Policy, err = policyFor(k.s, name); err != nil {
		return spec, err
	}
	if !k.s.Actor().IsAgent { // an agent may have written it there
		spec.On = plan.OnFor(name)
	}
	spec.Dir, err = k.chooseDir(ctx, m, isPlanned, o.cwd)
	for _, text := range slices.Concat([]string{spec.Root, spec.Dir}, spec.Command) { // they travel as JSON
		if err == nil && !utf8.ValidString(text) {
			err = failure.Failed("run %s: %q is not UTF-8", name, text).WithHint("rename it, or put the command into a script")
		}
	}
	spec.Env = environment(o.env, m, spec)
	k.bringHooks(&spec)
	return spec, err
}

// forked returns the id of the conversation of which a program gets a copy: what was asked for, or a member's.
func (k *call) forked(ctx context.Context, asked string) (id string, err error) {
	if asked == "" {
		return "", nil
	}
	if wire.IsName(asked) && !k.s.IsMember(asked) && !strings.ContainsAny(asked, "0123456789") { // ids of conversations have some
		return "", failure.NotFound("--fork: %q is no member, and no conversation's id", asked).
			WithHint("members: %s", app.Join(k.s.Names())).WithNearest(asked, app.Strings(k.s.Names()))
	}
	if id = asked; k.s.IsMember(asked) {
		m, err := presence.One(ctx, k.s.Team, wire.Name(asked))
		if id = string(m.Session); err != nil || id == "" {
			return "", cmp.Or(err, error(failure.NotFound("no conversation of %s is known", asked).WithHint("`atm status %s --json` has its id as session, once its program has told it", asked)))
		}
	}
	return id, nil
}

// served returns the shared inboxes that the agent takes work from, by team.toml or, instead of that, by its flags.
func (k *call) served(planned []wire.Name, asked []string, inject string) (served []wire.Name, err error) {
	names := app.Strings(planned)
	if len(asked) > 0 {
		names = strings.FieldsFunc(strings.Join(asked, ","), func(r rune) bool { return r == ',' })
	}
	for _, name := range names {
		box, err := k.s.Member(name)
		if err != nil {
			return nil, err
		}
		if shared, err := claim.Shared(box); err != nil || !shared || box.Address().Team != k.s.Team.Name {
			return nil, cmp.Or(err, error(failure.Refused("%s cannot serve the inbox of %s, which is not shared in its team", k.name(), name).
				WithHint("a person can make one that is: `atm team add jobs --shared`")))
		}
		served = append(served, box.Agent())
	}
	if len(served) > 0 && inject == "off" {
		return nil, failure.Usage("%s cannot serve %s: with --inject off it would not be told what it has taken", k.name(), served[0]).
			WithHint("leave --inject out, or let it run `atm take %s`", served[0])
	}
	return served, nil
}

// bringHooks has the program call atm's hooks in this run; one that speaks the Agent Client Protocol tells all by it.
func (k *call) bringHooks(spec *runspec.Spec) {
	if spec.Driver == "acp" {
		return
	}
	self, _ := os.Executable()
	self = (&agentconfig.Installer{Self: self}).Program()
	b, why := all.Bring(self, string(spec.Agent), spec.Command, spec.Env, k.box.Path())
	if why != "" {
		k.p.Warn("%s: atm brings no hooks to %s, since %s: only those of atm install tell what it does", spec.Agent, filepath.Base(spec.Command[0]), why)
	}
	spec.Brought = b
}

// policyFor returns the rules of team.toml; if an agent starts the agent, those of the last start by a person.
func policyFor(s *app.Scope, name wire.Name) (policy.Policy, error) {
	if !s.Actor().IsAgent {
		return s.Team.PolicyNow(name)
	}
	p, isSaved, err := s.Team.PolicyFor(name)
	if !isSaved {
		p = p.DenyOnly()
	}
	if p.IsPartial { // to save it would lose what is not known
		err = s.Team.CheckPolicy(name)
	}
	return p, err
}

// chooseDir returns the directory that was given, the member's worktree, its cwd in team.toml (always, if the command is
// from there) or the current directory.
func (k *call) chooseDir(ctx context.Context, m config.Member, isPlanned bool, dir string) (string, error) {
	switch {
	case dir != "":
	case m.Worktree:
		var done string
		var err error
		if dir, done, err = k.s.Team.Worktree(ctx, os.Environ(), k.name(), m, k.p.Err); err != nil {
			return "", err
		}
		if done != "" {
			k.p.Warn("%s: %s", k.name(), done)
		}
	case isPlanned || m.Cwd != "":
		dir = k.s.Team.WorkDir(m.Cwd)
	}
	full, err := filepath.Abs(dir) // fails where the current directory was removed
	info, statErr := os.Stat(full)
	if cmp.Or(err, statErr) != nil || !info.IsDir() {
		return "", failure.Failed("run %s: %s is not a directory", k.name(), cmp.Or(dir, ".")).WithHint("--cwd DIR chooses another")
	}
	return full, nil
}

// environment returns ours with the agent's identity, but without what says that it runs inside another agent or
// terminal, or which colours a person wants to see on theirs. The last value of a name counts.
func environment(given []string, m config.Member, spec runspec.Spec) []string {
	unset := append(programs.Marks(), "TMUX", "TMUX_PANE", "STY", "WINDOW", "COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION",
		"NO_COLOR", "FORCE_COLOR")
	env := slices.DeleteFunc(all.WithoutBrought(os.Environ()), func(pair string) bool {
		k, _, _ := strings.Cut(pair, "=")
		return slices.Contains(unset, k)
	})
	env = append(env, "TERM=xterm-256color", "COLORTERM=truecolor")
	for k, v := range m.Env {
		env = append(env, k+"="+v)
	}
	env = append(env, given...)
	env = append(env, "ATM_ROOT="+spec.Root, "ATM_TEAM="+string(spec.Team), "ATM_AGENT="+string(spec.Agent), "ATM_RUN="+spec.Run, app.ProjectDir+"="+spec.Dir)
	if m.Worktree {
		env = git.CleanEnviron(env)
	}
	return env
}
