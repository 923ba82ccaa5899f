package agent

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/mailbox"
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
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "driver", Usage: "the `DRIVER`: auto, claude, codex, gemini, opencode or plain"},
		&cli.StringFlag{Name: "inject", Usage: "`HOW` mail comes in: body, pointer (a line that says atm read) or off"},
		&cli.StringFlag{Name: "size", Usage: "its terminal is `120x30`, or as large as said"},
		&cli.StringFlag{Name: "cwd", Usage: "it runs in `DIR`"},
		&cli.StringSliceFlag{Name: "env", Usage: "a variable `k=v`; may be repeated"},
		&cli.StringFlag{Name: "restart", Usage: "`WHEN` it is started again: never (a CMD), on-crash (team.toml's) or always"},
		&cli.BoolFlag{Name: "record-input", Usage: "record what is typed, too: it may hold secrets"},
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "return when it waits at its prompt, or says why not"},
	},
	Action: run,
}

// drivers are those that --driver takes.
var drivers = strings.Fields("auto claude codex gemini opencode plain")

func run(c *cli.Context) error {
	s, sp, err := openSpec(c)
	if err != nil {
		return err
	}
	k := &call{c, s, sp.box}
	if running, _ := s.Team.Running(k.name()); running {
		return command.Refused("%s runs already", k.name()).WithHint("atm attach %s joins it, atm stop %s ends it", k.name(), k.name())
	}
	if c.Bool("detach") {
		ctx, stop := command.Interruptible(c.Context)
		defer stop()
		r, err := k.startReady(ctx, sp, quietWithin)
		if err != nil {
			return err
		}
		return command.Print(c, r)
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && command.Terminal() {
		return k.runAttached(sp)
	}
	command.Warn(c, "%s runs here, without a terminal to show it: atm screen %s", k.name(), k.name())
	return k.runHere(sp)
}

// A spec is what is to be run, and how.
type spec struct {
	runspec.Spec
	box     *mailbox.Box
	program string // atm-runner
}

// openSpec makes the spec of the command line. A new name is added and said, unless it is near an existing
// one.
func openSpec(c *cli.Context) (*command.Scope, *spec, error) {
	k, err := open(c)
	s, box := k.s, k.box
	unknown, isNew := errors.AsType[*teams.UnknownError](err)
	isNew = isNew && !unknown.Retired && unknown.Team == s.Team.Name
	if err != nil && !isNew {
		return nil, nil, err
	}
	plan, err := s.Team.Config()
	if err != nil {
		return nil, nil, err
	}
	if isNew {
		_, isNear := command.Nearest(string(unknown.Name), command.Strings(unknown.Members))
		if isNear && len(plan.Members[unknown.Name].Command) == 0 {
			return nil, nil, unknown
		}
		box = s.Team.Box(unknown.Name)
	}
	if err := s.MayAct("run", box.Agent()); err != nil {
		return nil, nil, err
	}
	sp, err := newSpec(c, s, plan, box, c.Args().Tail())
	if err == nil && isNew {
		command.Warn(c, "%s is new in team %s", box.Agent(), s.Team.Name)
		err = s.Team.Create(c.Context, box.Agent())
	}
	return s, sp, err
}

func noCommand(name wire.Name) error {
	return command.Usage("no command to run for %s: team.toml gives none", name).WithHint("atm run %s -- claude", name)
}

// newSpec makes a spec of flags and team.toml. words are the command, if one is given.
func newSpec(c *cli.Context, s *command.Scope, plan *config.Config, box *mailbox.Box, words []string) (sp *spec, err error) {
	name, m, restart := box.Agent(), plan.Members[box.Agent()], "never"
	isPlanned := len(words) == 0
	if isPlanned {
		words, restart = m.Command, "on-crash"
	}
	if len(words) == 0 {
		return nil, noCommand(name)
	}
	driver, inject := cmp.Or(c.String("driver"), m.Driver, "auto"), cmp.Or(c.String("inject"), m.Inject, "body")
	restart = cmp.Or(c.String("restart"), m.Restart, restart)
	err = errors.Join(oneOf("driver", driver, drivers), oneOf("inject", inject, config.Injects), oneOf("restart", restart, config.Restarts))
	if err != nil {
		return nil, err
	}
	cols, rows, err := config.ParseSize(cmp.Or(c.String("size"), m.Size, "120x30"))
	if err != nil {
		return nil, command.Usage("size: %v", err).WithHint("--size 120x30")
	}
	for _, pair := range c.StringSlice("env") {
		if !strings.Contains(pair, "=") {
			return nil, command.Usage("--env needs k=v, not %q", pair)
		}
	}
	session := plan.SessionOf(name)
	sp = &spec{box: box, Spec: runspec.Spec{
		Root: s.Root.Path, Team: box.Address().Team, Agent: name, Run: string(wire.NewID()), Command: words, Prompt: m.Prompt,
		Driver: driver, Inject: inject, Restart: restart, Cols: cols, Rows: rows, RecordInput: c.Bool("record-input"),
		Session: session.Enabled != nil && *session.Enabled, Capture: session.OutputCapture, Rules: session.Rules(),
	}}
	if sp.program, err = findRunner(c); err != nil { // before anything is made
		return nil, err
	}
	if sp.LastStop, err = s.Team.LastStop(name); err != nil {
		return nil, err
	}
	if sp.Policy, err = policyFor(s, name); err != nil {
		return nil, err
	}
	if sp.Dir, err = chooseDir(c, s, m, name, isPlanned); err != nil {
		return nil, err
	}
	sp.Env = sp.environment(c, m)
	return sp, nil
}

// policyFor are the rules that count: those of team.toml or, where an agent starts another, what
// they were when a person last did so.
func policyFor(s *command.Scope, name wire.Name) (policy.Policy, error) {
	now, err := s.Team.PolicyNow(name)
	if err != nil || !command.InAgent() {
		return now, err
	}
	saved, ok, err := s.Team.SavedPolicy(name)
	if err != nil || ok {
		return saved, err
	}
	return now.DenyOnly(), nil
}

func oneOf(flag, value string, of []string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return command.Usage("%s is one of %s, not %q", flag, strings.Join(of, ", "), value).WithCandidates(of...)
}

// chooseDir is where it runs: --cwd, the member's worktree, team.toml's cwd, which team.toml's
// command always runs in; else here.
func chooseDir(c *cli.Context, s *command.Scope, m config.Member, name wire.Name, isPlanned bool) (string, error) {
	dir := c.String("cwd")
	if dir == "" && m.Worktree {
		w, err := s.Team.Worktree(c.Context, os.Environ(), name, m.Cwd)
		if err != nil {
			return "", err
		}
		if dir = w.Dir; w.Done != "" {
			command.Warn(c, "%s: %s", name, w.Done)
		}
	} else if dir == "" && (isPlanned || m.Cwd != "") {
		dir = s.Team.WorkDir(m.Cwd)
	}
	if info, err := os.Stat(cmp.Or(dir, ".")); err != nil || !info.IsDir() {
		return "", command.Failed("run %s: %s is not a directory", name, dir).WithHint("--cwd DIR names another")
	}
	return filepath.Abs(cmp.Or(dir, "."))
}

// environment is the agent's: ours, with who it is, and without what would make it take itself
// for a part of another agent or terminal. Of a name that is there twice the last one counts.
func (sp *spec) environment(c *cli.Context, m config.Member) []string {
	unset := append(command.AgentMarks(), "TMUX", "TMUX_PANE", "STY", "WINDOW", "COLUMNS", "LINES", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		k, _, _ := strings.Cut(pair, "=")
		return slices.Contains(unset, k)
	})
	env = append(env, "TERM=xterm-256color", "COLORTERM=truecolor")
	for k, v := range m.Env {
		env = append(env, k+"="+v)
	}
	env = append(env, c.StringSlice("env")...)
	env = append(env, "ATM_ROOT="+sp.Root, "ATM_TEAM="+string(sp.Team), "ATM_AGENT="+string(sp.Agent), "ATM_RUN="+sp.Run)
	if m.Worktree && !c.IsSet("cwd") {
		env = git.WithoutRepository(env)
	}
	return env
}
