package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var runCommand = &cli.Command{
	Name: "run", ArgsUsage: "NAME [CMD…]", Usage: "run a program in a terminal as that agent, its mail typed in",
	UsageText: "atm run bob -- claude\natm run bob --detach -- codex\natm run sh --driver plain -- bash",
	Description: "This terminal is attached to it; Ctrl-\\ d leaves it running, closing the terminal ends it.\n" +
		"No CMD: that of team.toml, which is restarted when it crashes.\n" +
		"Exits with the program's code, 128+n for a signal.",
	Flags: append(specFlags(),
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when it waits at its prompt, or says why not"},
	),
	Action: run,
}

// specFlags are the flags of run that its runner gets as well.
func specFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "driver", Usage: "the `DRIVER`: auto, claude, codex, gemini, opencode or plain"},
		&cli.StringFlag{Name: "inject", Usage: "`HOW` mail comes in: body, pointer (a line that says atm read) or off"},
		&cli.StringFlag{Name: "size", Usage: "its terminal is `120x30`, or as large as said"},
		&cli.StringFlag{Name: "cwd", Usage: "it runs in `DIR`"},
		&cli.StringSliceFlag{Name: "env", Usage: "a variable `k=v`; may be repeated"},
		&cli.StringFlag{Name: "restart", Usage: "`WHEN` it is started again: never (a CMD), on-crash (team.toml's) or always"},
		&cli.BoolFlag{Name: "record-input", Usage: "record what is typed, too: it may hold secrets"},
		&cli.StringFlag{Name: "leftovers", Usage: "`DO` with what a killed runner has left: end (the default) or keep"},
	}
}

func run(c *cli.Context) error {
	s, sp, err := openSpec(c)
	if err != nil {
		return err
	}
	if c.Bool("detach") {
		return runDetached(c, s, sp)
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal() {
		return runAttached(c, s, sp)
	}
	name := sp.box.Agent()
	command.Warn(c, "%s runs here, without a terminal to show it: atm attach %s, atm screen %s", name, name, name)
	exit, err := runHere(c, s, sp, false)
	if err == nil && exit.Loop {
		return endedEarly(c, s, sp.box, exit, "")
	}
	return errors.Join(err, exitWith(exit))
}

// exitWith ends this command with the code of a program that ended by itself.
func exitWith(exit ptyrun.Exit) error {
	if exit.Code == 0 || exit.Asked {
		return nil
	}
	return command.Exit(exit.Code)
}

// A spec is what is to be run, and how.
type spec struct {
	box      *mailbox.Box
	member   config.Member // as team.toml has it, with the command that is run
	options  ptyrun.Options
	policy   policy.Policy
	keepLeft bool   // what a killed runner has left goes on
	lastStop string // the last stop of the agent when this start was asked for
}

// openSpec makes the spec of the command line.
func openSpec(c *cli.Context) (*command.Scope, *spec, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, nil, err
	}
	plan, err := s.Team.Config()
	if err != nil {
		return nil, nil, err
	}
	box, err := memberToRun(c, s, plan)
	if err != nil {
		return nil, nil, err
	}
	if s.Team, err = s.Root.Team(box.Address().Team); err != nil {
		return nil, nil, err
	}
	if err := s.MayAct("run", box.Agent()); err != nil {
		return nil, nil, err
	}
	sp, err := newSpec(c, s, plan, box, c.Args().Tail())
	return s, sp, err
}

// memberToRun is the mailbox of the first argument. A new name is added and said,
// unless it is near an existing one.
func memberToRun(c *cli.Context, s *command.Scope, plan *config.Config) (*mailbox.Box, error) {
	box, err := s.Member(c.Args().First())
	var unknown *teams.UnknownError
	if !errors.As(err, &unknown) || unknown.Retired || unknown.Team != s.Team.Name {
		return box, err
	}
	name := unknown.Name
	planned := plan.Members[name]
	if _, near := command.Nearest(string(name), command.Strings(unknown.Members)); near && len(planned.Command) == 0 {
		return nil, err
	}
	if c.Args().Len() == 1 && len(planned.Command) == 0 {
		return nil, noCommand(s, name)
	}
	if err := s.MayAct("run", name); err != nil {
		return nil, err
	}
	if err := addMember(c.Context, s.Team, name); err != nil {
		return nil, err
	}
	command.Warn(c, "%s is new in team %s", name, s.Team.Name)
	return s.Team.Member(name)
}

// addMember makes a member's mailbox unless it is there.
func addMember(ctx context.Context, t *teams.Team, name wire.Name) error {
	if err := t.Create(ctx, name); !errors.Is(err, mailbox.ErrExists) {
		return err
	}
	return nil
}

func noCommand(s *command.Scope, name wire.Name) error {
	return command.Usage("no command to run for %s: %s gives none", name, filepath.Join(s.Team.Dir().Path(), "team.toml")).
		WithHint("%s", strings.Replace(s.Team.RunAgain(name), " -- CMD", " -- claude", 1))
}

// newSpec makes a spec of flags and team.toml. words are the command, if one is
// given.
func newSpec(c *cli.Context, s *command.Scope, plan *config.Config, box *mailbox.Box, words []string) (*spec, error) {
	name := box.Agent()
	m := plan.Members[name]
	sp := &spec{box: box, member: m}
	restartWhen, planned := "never", len(words) == 0
	if planned {
		words, restartWhen = m.Command, "on-crash"
	}
	if isRunning(c.Context, box) {
		return nil, command.Refused("%s runs already", name).WithHint("atm attach %s joins it, atm stop %s ends it", name, name)
	}
	if len(words) == 0 {
		return nil, noCommand(s, name)
	}
	sp.member.Command = words
	o := &sp.options
	o.Box, o.Command, o.Run, o.Prompt, o.Input = box, words, string(wire.NewID()), m.Prompt, c.Bool("record-input")
	if err := sp.chooseHow(c, m, restartWhen); err != nil {
		return nil, err
	}
	if err := sp.chooseDir(c, s, m, planned); err != nil {
		return nil, err
	}
	o.Env = environment(c, s, sp, m)
	if m.Worktree && !c.IsSet("cwd") {
		o.Env = git.WithoutRepository(o.Env)
	}
	if _, err := lookPath(words[0], o.Dir, o.Env); err != nil {
		return nil, command.Failed("run %s: %w", name, err).WithHint("atm run %s -- bash runs a shell", name)
	}
	sessions := plan.SessionOf(name)
	o.Sessions = &ptyrun.Sessions{
		Begin: sessions.Enabled, Capture: ptyrun.Capture(sessions.OutputCapture), Rules: sessions.Rules(),
	}
	if err := sp.choosePolicy(s); err != nil {
		return nil, err
	}
	var err error
	sp.lastStop, err = s.Team.LastStop(name)
	return sp, err
}

// isRunning reports whether an agent runs and is not about to end: a runner whose
// program has ended gets a second to let go of its lock.
func isRunning(ctx context.Context, box *mailbox.Box) bool {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		running, err := box.Store().Running(box.Agent())
		if err != nil || !running {
			return false // what is wrong shows when the lock is taken
		}
		status, err := statusOf(ctx, box)
		if err == nil && status.ChildPID != 0 || !sleep(ctx, probeEvery) {
			break
		}
	}
	return true
}

// chooseHow takes driver, inject, restart, leftovers and size from the flags, else
// from team.toml.
func (sp *spec) chooseHow(c *cli.Context, m config.Member, restartWhen string) error {
	which := cmp.Or(c.String("driver"), m.Driver, "auto")
	inject := cmp.Or(c.String("inject"), m.Inject, "body")
	restartWhen = cmp.Or(c.String("restart"), m.Restart, restartWhen)
	leftovers := cmp.Or(c.String("leftovers"), "end")
	if which == "acp" {
		return command.Failed("driver acp is not in this atm yet").WithHint("--driver auto runs the program in a terminal")
	}
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{
		{"driver", which, append([]string{"auto"}, driver.Names()...)},
		{"inject", inject, config.Injects},
		{"restart", restartWhen, config.Restarts},
		{"leftovers", leftovers, []string{"end", "keep"}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return command.Usage("--%s is one of %s, not %q", choice.flag, strings.Join(choice.of, ", "), choice.value).WithCandidates(choice.of...)
		}
	}
	for _, pair := range c.StringSlice("env") {
		if k, _, found := strings.Cut(pair, "="); !found || k == "" {
			return command.Usage("--env needs k=v, not %q", pair).WithHint("for example --env LANG=C")
		}
	}
	o := &sp.options
	o.Inject, o.Restart, o.Auto = ptyrun.Inject(inject), ptyrun.Restart(restartWhen), which == "auto"
	sp.keepLeft = leftovers == "keep"
	o.Driver = driver.ForCommand(o.Command)
	if named, ok := driver.Named(which); ok {
		o.Driver = named
	}
	var err error
	if o.Cols, o.Rows, err = config.ParseSize(cmp.Or(c.String("size"), m.Size, "120x30")); err != nil {
		return command.Usage("--size: %v", err).WithHint("--size 120x30")
	}
	return nil
}

// chooseDir is where it runs: --cwd, the member's worktree, team.toml's cwd, which
// team.toml's command always runs in; else here.
func (sp *spec) chooseDir(c *cli.Context, s *command.Scope, m config.Member, planned bool) error {
	o := &sp.options
	o.Dir = c.String("cwd")
	if o.Dir == "" && m.Worktree {
		w, err := s.Team.Worktree(c.Context, os.Environ(), sp.box.Agent(), m.Cwd)
		if err != nil {
			return err
		}
		o.Dir = w.Dir
		if w.Done != "" {
			command.Warn(c, "%s: %s", sp.box.Agent(), w.Done)
		}
	}
	if o.Dir == "" && (planned || m.Cwd != "") {
		o.Dir = s.Team.WorkDir(m.Cwd)
	}
	if o.Dir == "" {
		o.Dir, _ = os.Getwd()
	}
	if info, err := os.Stat(o.Dir); err != nil || !info.IsDir() {
		return command.Failed("run %s: %s is not a directory", sp.box.Agent(), o.Dir).WithHint("--cwd DIR names another")
	}
	return nil
}

// choosePolicy takes the rules that count: what team.toml says now or, where an
// agent starts another, what it said when a person last did so.
func (sp *spec) choosePolicy(s *command.Scope) error {
	name := sp.box.Agent()
	p, err := s.Team.PolicyNow(name)
	if err != nil {
		return err
	}
	if command.InAgent() {
		saved, ok, err := s.Team.SavedPolicy(name)
		if err != nil {
			return err
		}
		if p = p.DenyOnly(); ok {
			p = saved
		}
	}
	sp.policy = p
	o := &sp.options
	o.Sessions.Mute = p.Mute
	o.May = func(pid int, by string) error { return p.MayAnswer(name, wire.Name(by), s.IsAgent(pid)) }
	o.Decide = func(tool, input string) ptyrun.Decision { return ptyrun.Decision(p.Decide(name, tool, input, false)) }
	return nil
}

// environment is the agent's: ours, with who it is, and without what would make it
// take itself for a part of another agent or terminal.
func environment(c *cli.Context, s *command.Scope, sp *spec, m config.Member) []string {
	set := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}
	for k, v := range m.Env {
		set[k] = v
	}
	for _, pair := range c.StringSlice("env") {
		k, v, _ := strings.Cut(pair, "=")
		set[k] = v
	}
	set["ATM_ROOT"], set["ATM_TEAM"] = s.Root.Path, string(s.Team.Name)
	set["ATM_AGENT"], set["ATM_RUN"] = string(sp.box.Agent()), sp.options.Run
	unset := append(command.AgentMarks(), "TMUX", "TMUX_PANE", "STY", "WINDOW", "COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
	var env []string
	for _, pair := range os.Environ() {
		k, _, _ := strings.Cut(pair, "=")
		if _, ours := set[k]; !ours && !slices.Contains(unset, k) {
			env = append(env, pair)
		}
	}
	for k, v := range set {
		env = append(env, k+"="+v)
	}
	return env
}

// lookPath finds a program as the agent's environment would, so that a start that
// cannot succeed fails before there is a runner.
func lookPath(program, dir string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		if !isProgram(program) {
			return "", fmt.Errorf("%s is not a program", program)
		}
		return program, nil
	}
	for _, pair := range env {
		path, found := strings.CutPrefix(pair, "PATH=")
		if !found {
			continue
		}
		for _, d := range filepath.SplitList(path) {
			if !filepath.IsAbs(d) {
				d = filepath.Join(dir, d)
			}
			if isProgram(filepath.Join(d, program)) {
				return filepath.Join(d, program), nil
			}
		}
	}
	return "", fmt.Errorf("no program %q on the PATH", program)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
