package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

var upCommand = &cli.Command{
	Name: "up", ArgsUsage: "[NAME…]", Usage: "start the team: every member that team.toml gives a command",
	UsageText: "atm up\natm up bob\natm up --foreground\natm init --toml    writes a team.toml to start from",
	Description: "Members that run stay as they are, and are waited for. Each is ready, or it is said why not;\n" +
		"a member that is named brings along those that it is started after. Interrupted, or killed:\n" +
		"again carries on. Exit 6: some are not ready.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "foreground", Usage: "stay until interrupted or until nobody runs any more, then stop them"},
		&cli.BoolFlag{Name: "detach", Aliases: []string{"d", "all"}, Hidden: true},
	},
	Action: command.With(command.OpenTeam, up),
}

var downCommand = &cli.Command{
	Name: "down", ArgsUsage: "[NAME…]", Usage: "stop the team, and everything that it started",
	UsageText:   "atm down\natm down bob",
	Description: "Their mail and their worktrees stay.",
	Flags:       []cli.Flag{&cli.BoolFlag{Name: "all", Hidden: true}},
	Action:      command.With(command.OpenTeam, down),
}

type startup struct {
	c       *cli.Context
	s       *command.Scope
	plan    *config.Config
	program string      // atm-runner
	order   []wire.Name // those that others are started after come first
	names   []wire.Name // the same without those that have no command here
	told    *results
}

// results are told as they come; with --json they are one document at the end, unless the verb goes on.
type results struct {
	Members []result `json:"members"`

	c        *cli.Context
	isStream bool
	mu       sync.Mutex
}

func (r *results) String() string { return "" } // told already

func (r *results) isDocument() bool { return r.c.Bool("json") && !r.isStream }

func (r *results) tell(one result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Members = append(r.Members, one); !r.isDocument() {
		command.Print(r.c, one) // that nobody reads it starts and stops nothing
	}
}

// end is the error of the verb. Where nobody was told of, that is all there is to print.
func (r *results) end(err error) error {
	if !r.isDocument() || err != nil && len(r.Members) == 0 {
		return err
	}
	return cmp.Or(command.Tell(r.c, err), command.Print(r.c, r))
}

func up(c *cli.Context, s *command.Scope) (err error) {
	u := &startup{c: c, s: s, told: &results{c: c, Members: []result{}, isStream: c.Bool("foreground")}}
	if u.plan, err = s.Team.Config(); err != nil {
		return err
	}
	if u.program, err = findRunner(c); err != nil {
		return err
	}
	if err := u.choose(c.Args().Slice()); err != nil {
		return err
	}
	if c.Bool("foreground") {
		return u.foreground()
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	return u.told.end(u.start(ctx))
}

// choose finds the members that are meant: the named ones with those that they are started after, or all.
// Every member of team.toml gets its mailbox, people too.
func (u *startup) choose(words []string) error {
	names, named := u.plan.Startable(), []wire.Name(nil)
	for _, word := range words {
		a, _ := u.s.Address(word) // @bob, bob@main
		isOurs := a == wire.Address{Agent: a.Agent, Team: u.s.Team.Name} && slices.Contains(names, a.Agent)
		if !isOurs || u.isRetired(a.Agent) {
			if _, err := u.s.Member(word); err != nil {
				return err
			}
			return noCommand(u.s.Team, a.Agent)
		}
		named = append(named, a.Agent)
	}
	if len(words) > 0 {
		names = named
	}
	if len(names) == 0 {
		return command.Usage("team.toml gives nobody a command").
			WithHint("atm init --toml writes one to start from; atm run bob -- claude runs one agent without")
	}
	u.order = u.plan.StartOrder(names)
	for _, n := range u.order {
		if err := u.s.MayAct("start", n); err != nil {
			return err
		}
		if u.isRetired(n) {
			command.Warn(u.c, "%s is retired: atm team restore %[1]s%s brings it back; else take it out of team.toml", n, u.s.Flags())
		} else if len(u.plan.Members[n].Command) > 0 {
			u.names = append(u.names, n)
		}
	}
	for n := range u.plan.Members {
		if u.isRetired(n) {
			continue
		}
		if err := u.s.Team.Create(u.c.Context, n); err != nil && !errors.Is(err, mailbox.ErrExists) {
			return err
		}
	}
	return nil
}

func (u *startup) start(ctx context.Context) error {
	errs := u.plan.Start(ctx, u.order, func(ctx context.Context, n wire.Name) error {
		if !slices.Contains(u.names, n) {
			return nil // somebody else starts it
		}
		r, err := u.bring(ctx, n)
		if err == nil {
			u.told.tell(r)
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []wire.Name
	hint := "atm up tries again"
	for _, n := range u.names {
		if errs[n] == nil {
			continue
		}
		failed = append(failed, n)
		u.sayFailed(ctx, n, errs[n])
		if u.isRunning(n) { // and asks something
			hint = fmt.Sprintf("atm attach %s", n)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	e := command.Failed("not ready: %s", command.Join(failed)).WithHint("%s", hint)
	if len(failed) < len(u.names) {
		e.Code, e.Exit = "partial", command.ExitPartial
	}
	return e
}

// sayFailed says why a member is not ready. Of one that does not run its log says so, too: `atm team` shows it.
func (u *startup) sayFailed(ctx context.Context, n wire.Name, why error) {
	e := command.Explain(u.c, why)
	u.told.tell(result{Name: n, State: "failed", Detail: strings.TrimSuffix(e.Message+"; "+e.Hint, "; ")})
	if !u.isRunning(n) {
		event := wire.Event{Source: "cli", Kind: "state_change"}.With("new", "error").With("detail", e.Message)
		u.s.Team.Box(n).Log().Append(ctx, event)
	}
}

// bring has a member run and be ready: started, or as it is, also where somebody else is quicker to start it.
func (u *startup) bring(ctx context.Context, n wire.Name) (result, error) {
	k := u.call(n)
	if !u.isRunning(n) {
		spec, err := k.spec(u.plan, nil)
		if err != nil {
			return result{}, err
		}
		p, err := startRunner(u.program, spec)
		if err != nil {
			return result{}, err
		}
		r, err := k.awaitReady(ctx, p, readyWithin)
		refused, isOurs := errors.AsType[*command.Error](err)
		if !isOurs || refused.Exit != command.ExitRefused || !u.isRunning(n) {
			return r, err
		}
	}
	return k.awaitReady(ctx, &runnerProcess{}, readyWithin)
}

// foreground starts the team, waits until it is interrupted, nobody reads on or nobody runs any more, and
// stops it. A signal cuts none of that short.
func (u *startup) foreground() error {
	ctx, stop := output.UntilSignal(u.c.Context)
	defer stop()
	err := u.start(ctx)
	for slices.ContainsFunc(u.names, u.isRunning) && !output.ReaderGone(os.Stdout) && command.Sleep(ctx, time.Second) {
	}
	var agents []*call
	for _, n := range u.names {
		agents = append(agents, u.call(n))
	}
	_, stopErr := stopAll(context.WithoutCancel(u.c.Context), u.told, agents, false)
	return cmp.Or(err, stopErr)
}

func (u *startup) call(n wire.Name) *call { return &call{u.c, u.s, u.s.Team.Box(n)} }

func (u *startup) isRetired(n wire.Name) bool {
	return !u.s.Team.Box(n).Exists() && u.s.Team.WasRetired(n)
}

// isRunning: what cannot be told is no reason to end.
func (u *startup) isRunning(n wire.Name) bool {
	running, err := u.s.Team.Running(n)
	return running || err != nil
}

// down reads no team.toml: whatever is wrong there, what runs can be stopped.
func down(c *cli.Context, s *command.Scope) error {
	var agents []*call
	for _, word := range c.Args().Slice() {
		its := *s
		box, err := its.Enter(word)
		if err != nil {
			return err
		}
		agents = append(agents, &call{c, &its, box})
	}
	isNamed := len(agents) > 0
	if !isNamed {
		boxes, err := s.Team.Boxes()
		if err != nil {
			return err
		}
		for _, box := range boxes {
			agents = append(agents, &call{c, s, box})
		}
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	told := &results{c: c, Members: []result{}}
	stopped, err := stopAll(ctx, told, agents, isNamed || c.Bool("json"))
	if err == nil && stopped == 0 && !isNamed {
		command.Warn(c, "nobody of team %s was running", s.Team.Name)
	}
	return told.end(err)
}

// stopAll stops agents, all at once, but whoever asks for it last: this process ends with it. Those that
// did not run are said where all are to be.
func stopAll(ctx context.Context, told *results, agents []*call, sayAll bool) (stopped int, err error) {
	var mu sync.Mutex
	var errs []error
	stop := func(k *call) {
		r, err := k.stop(ctx)
		mu.Lock()
		defer mu.Unlock()
		isStopped := err == nil && r.State != "not running"
		if isStopped {
			stopped++
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("not stopped: %s: %w", k.name(), err))
		} else if isStopped || sayAll {
			told.tell(result{Name: k.name(), State: r.State})
		}
	}
	var others sync.WaitGroup
	var me *call
	for _, k := range agents {
		if who, isAgent := k.s.Actor(); isAgent && who == k.name() {
			me = k
		} else {
			others.Go(func() { stop(k) })
		}
	}
	others.Wait()
	if me != nil {
		stop(me)
	}
	if ctx.Err() != nil || len(errs) == 0 {
		return stopped, ctx.Err()
	}
	e := command.Explain(told.c, errors.Join(errs...))
	e.Message = strings.ReplaceAll(e.Message, "\n", "; ")
	if stopped > 0 || e.Exit != command.ExitRefused {
		e.Code, e.Exit = "partial", command.ExitPartial
	}
	return stopped, e
}
