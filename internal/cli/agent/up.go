package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
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
		&cli.BoolFlag{Name: "foreground", Usage: "stay and say what happens; a killed runner is started again; ^C is down"},
	},
	Action: func(c *cli.Context) error {
		t, err := openStartup(c)
		if err != nil {
			return err
		}
		if c.Bool("foreground") {
			return t.foreground()
		}
		ctx, stop := command.Interruptible(c.Context)
		defer stop()
		if err = t.start(ctx); ctx.Err() != nil {
			command.Warn(c, "interrupted; the members that were started go on: atm up carries on, atm down stops them")
		}
		return err
	},
}

// A startup are the members that one `atm up` is about.
type startup struct {
	c     *cli.Context
	s     *command.Scope
	plan  *config.Config
	names []wire.Name // those that others are started after come first
	stops map[wire.Name]string

	printing sync.Mutex
	waiting  []wire.Name
}

// A memberResult is what became of one member.
type memberResult struct {
	Name    wire.Name `json:"name"`
	State   string    `json:"state"` // ready, running, unknown, stopped, off, failed; with --foreground any of `atm team`
	Detail  string    `json:"detail,omitempty"`
	PID     int       `json:"pid,omitempty"`
	At      string    `json:"at,omitempty"`      // RFC 3339; with --foreground
	Changed bool      `json:"changed,omitempty"` // the rules of team.toml are others since it was started
	Error   string    `json:"error,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	Tail    []string  `json:"tail,omitempty"` // the last lines of its screen
}

func (r memberResult) String() string {
	line := fmt.Sprintf("%s: %s", r.Name, r.State)
	if r.Detail != "" {
		line += " (" + letter.Escape(r.Detail) + ")"
	}
	if r.PID > 0 {
		line += fmt.Sprintf(", process %d", r.PID)
	}
	if r.At != "" {
		line = command.Stamp(time.Now()) + " " + line
	}
	return line
}

// openStartup finds the members that are meant: the named ones with those that they
// are started after, or all. Every member of team.toml gets its mailbox, people too.
func openStartup(c *cli.Context) (*startup, error) {
	s, err := command.OpenTeam(c)
	if err != nil {
		return nil, err
	}
	if !s.Root.Accepted {
		return nil, command.Refused("up: nobody here made or accepted %s; it may have come with a clone", s.Root.Path).WithHint("if it is yours: atm init")
	}
	plan, err := s.Team.Config()
	if err != nil {
		return nil, err
	}
	names, err := namesToStart(c, s, plan)
	if err != nil {
		return nil, err
	}
	t := &startup{c: c, s: s, plan: plan, names: plan.StartOrder(names), stops: map[wire.Name]string{}}
	for n := range plan.Members {
		if s.Team.Box(n).Exists() || s.Team.WasRetired(n) {
			continue
		}
		if err := addMember(c.Context, s.Team, n); err != nil {
			return nil, err
		}
	}
	for _, n := range t.names {
		if err := s.MayAct("start", n); err != nil {
			return nil, err
		}
		if t.stops[n], err = s.Team.LastStop(n); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func namesToStart(c *cli.Context, s *command.Scope, plan *config.Config) (names []wire.Name, err error) {
	startable := plan.Startable()
	for _, word := range c.Args().Slice() {
		name := wire.Name(word)
		if _, planned := plan.Members[name]; !planned {
			box, err := s.Member(word)
			if err != nil {
				return nil, err
			}
			name = box.Agent()
		}
		if len(startable) > 0 && !slices.Contains(startable, name) {
			return nil, command.Usage("team.toml gives %s no command", name).WithHint("%s", s.Team.RunAgain(name)).WithCandidates(command.Strings(startable)...)
		}
		names = append(names, name)
	}
	if len(startable) == 0 {
		return nil, command.Usage("team.toml gives nobody a command").
			WithHint("atm init --toml writes one to start from; atm run bob -- claude runs one agent without")
	}
	if len(names) == 0 {
		names = startable
	}
	return names, nil
}

// waitingSaid is how often `up` says which members it still waits for.
const waitingSaid = 5 * time.Second

// start starts the members that do not run, waits until all are ready, and says of
// each what became of it.
func (t *startup) start(ctx context.Context) error {
	t.waiting = slices.Clone(t.names)
	waiting, stop := context.WithCancel(ctx)
	go func() {
		for sleep(waiting, waitingSaid) {
			t.sayWaiting()
		}
	}()
	errs := t.plan.Start(ctx, t.names, func(ctx context.Context, n wire.Name) error {
		defer t.through(n)
		if len(t.plan.Members[n].Command) == 0 {
			return nil // somebody else starts it
		}
		r, err := t.bring(ctx, n)
		if err == nil {
			t.say(r)
		}
		return err
	})
	stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return t.failed(errs)
}

func (t *startup) through(n wire.Name) {
	t.printing.Lock()
	defer t.printing.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(m wire.Name) bool { return m == n })
}

func (t *startup) sayWaiting() {
	t.printing.Lock()
	defer t.printing.Unlock()
	if len(t.waiting) > 0 {
		command.Warn(t.c, "waiting for %s", command.Join(t.waiting))
	}
}

// say prints a result. That nobody reads it stops nothing.
func (t *startup) say(r memberResult) error {
	t.printing.Lock()
	defer t.printing.Unlock()
	err := command.Print(t.c, r)
	if r.Changed {
		command.Warn(t.c, "%s: its rules in team.toml changed since it was started, which counts from the next start: atm down %s; atm up %s", r.Name, r.Name, r.Name)
	}
	return err
}

// tries is how often a member is started or waited for that others start and stop
// meanwhile.
const tries = 5

// bring has a member run and be ready: started, or as it is.
func (t *startup) bring(ctx context.Context, n wire.Name) (memberResult, error) {
	for try := 1; ; try++ {
		r, err := t.bringOnce(ctx, n)
		again := errors.Is(err, errGone)
		var refused *command.Error
		if errors.As(err, &refused) && refused.Exit == command.ExitRefused {
			running, probe := t.s.Team.Running(n)
			again = probe == nil && running // somebody else was quicker, and theirs is waited for
		}
		if !again || try == tries {
			return r, err
		}
	}
}

func (t *startup) bringOnce(ctx context.Context, n wire.Name) (memberResult, error) {
	r := memberResult{Name: n}
	running, err := t.s.Team.Running(n)
	if err != nil {
		return r, err
	}
	box, err := t.s.Team.Member(n)
	if err != nil {
		return r, err
	}
	if running {
		st, err := awaitReady(ctx, t.c, t.s, box, nil, readyWithin)
		r.State, r.PID, r.Changed = "running", st.PID, t.s.Team.HasOtherRules(n)
		if st.State != "ready" {
			r.Detail = st.Detail
		}
		return r, err
	}
	sp, err := newSpec(t.c, t.s, t.plan, box, nil)
	if err != nil {
		t.noteFailure(ctx, n, err)
		return r, err
	}
	sp.lastStop = t.stops[n]
	p, err := startRunner(t.c, t.s, sp)
	if err != nil {
		return r, err
	}
	st, err := awaitReady(ctx, t.c, t.s, box, p, readyWithin)
	r.State, r.PID, r.Detail = st.State, st.PID, st.Detail
	return r, err
}

// noteFailure keeps the reason of a start that failed before there was a runner:
// `atm team` shows it.
func (t *startup) noteFailure(ctx context.Context, n wire.Name, err error) {
	var e *command.Error
	if !errors.As(err, &e) || e.Exit != command.ExitFailed {
		return
	}
	reason := strings.TrimPrefix(e.Message, fmt.Sprintf("run %s: ", n))
	event := wire.Event{Source: "cli", Kind: "state_change"}.With("new", "error").With("detail", reason)
	if err := t.s.Team.Box(n).Log().Append(ctx, event); err != nil {
		command.Warn(t.c, "%s: the reason could not be kept: %v", n, err)
	}
}

// failed names the members that are not ready, with what their screens showed last.
func (t *startup) failed(errs map[wire.Name]error) error {
	var failed []string
	started := 0
	for _, n := range t.names {
		if len(t.plan.Members[n].Command) > 0 {
			started++
		}
		if errs[n] == nil {
			continue
		}
		failed = append(failed, string(n))
		r := failure(t.c, n, errs[n])
		if t.c.Bool("json") {
			command.PrintJSON(r)
			continue
		}
		command.Warn(t.c, "%s: %s", n, r.Error)
		warnTail(t.c, errs[n], string(n))
		if r.Hint != "" {
			command.Warn(t.c, "%s: hint: %s", n, r.Hint)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	e := command.Failed("not ready: %s", strings.Join(failed, ", "))
	if len(failed) < started {
		e.Code, e.Exit = "partial", command.ExitPartial
	}
	return e.WithHint("atm up tries again")
}

func failure(c *cli.Context, n wire.Name, err error) memberResult {
	e := command.Explain(c, err)
	r := memberResult{Name: n, State: "failed", Error: strings.TrimPrefix(e.Message, string(n)+" "), Hint: e.Hint}
	r.Tail, _ = e.Extra["tail"].([]string)
	return r
}

// Times of --foreground.
const (
	superviseEvery = 500 * time.Millisecond
	runnerDeaths   = 5 // a runner that is killed so often within deathsWithin is not started again
	deathsWithin   = time.Minute
)

// foreground starts the team, says what becomes of it until it is interrupted,
// nobody reads on or nobody runs any more, and stops it. A signal cuts none of that
// short.
func (t *startup) foreground() error {
	ctx, stop := signal.NotifyContext(t.c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	output.IgnoreSIGPIPE()
	err := t.start(ctx)
	var partial *command.Error
	if errors.As(err, &partial) && partial.Exit == command.ExitPartial {
		command.Warn(t.c, "%v", err)
		err = nil
	}
	if err == nil {
		t.supervise(ctx)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // interrupted while they were started
	}
	// A member without a command here is somebody else's to stop.
	ours := slices.DeleteFunc(slices.Clone(t.names), func(n wire.Name) bool { return len(t.plan.Members[n].Command) == 0 })
	d := &shutdown{c: t.c, s: t.s, names: ours}
	return cmp.Or(err, d.stop(context.WithoutCancel(t.c.Context)))
}

// supervise says what becomes of the members and starts those again whose runner
// was killed. (A program that ends is its runner's to start again.)
func (t *startup) supervise(ctx context.Context) {
	before := map[wire.Name]string{}
	r := revival{startup: t, deaths: map[wire.Name][]time.Time{}, lost: map[wire.Name]bool{}}
	for left := true; left && !output.ReaderGone(os.Stdout); {
		left = false
		for _, n := range t.names {
			if len(t.plan.Members[n].Command) == 0 {
				continue
			}
			lastStop, stopErr := t.s.Team.LastStop(n) // before the look: a stop after it counts
			m, err := t.s.Team.Summary(n)
			if err != nil || m.Running {
				left = true // what cannot be told is no reason to end
				r.lost[n] = false
				if stopErr == nil {
					t.stops[n] = lastStop
				}
			}
			if now := fmt.Sprint(m.State, m.Detail); err == nil && before[n] != now {
				before[n] = now
				if t.say(nowIs(m)) != nil {
					return
				}
			}
			if err == nil && !m.Running && m.RunnerGone && t.plan.Members[n].Restart != "never" {
				left = r.start(ctx, n) || left
			}
		}
		if left && !sleep(ctx, superviseEvery) {
			return
		}
	}
}

func nowIs(m teams.Member) memberResult {
	r := memberResult{Name: m.Name, State: string(m.State), Detail: m.Detail, At: stampUTC()}
	if m.Running {
		r.PID = int(m.PID)
	}
	return r
}

// A revival starts members again whose runner was killed.
type revival struct {
	*startup
	deaths map[wire.Name][]time.Time
	lost   map[wire.Name]bool // it is left off
}

// start reports whether the member may run on.
func (r *revival) start(ctx context.Context, n wire.Name) bool {
	if r.lost[n] {
		return false
	}
	now := time.Now()
	recent := slices.DeleteFunc(r.deaths[n], func(at time.Time) bool { return now.Sub(at) > deathsWithin })
	r.deaths[n] = append(recent, now)
	if len(r.deaths[n]) > runnerDeaths {
		r.lost[n] = true
		r.say(memberResult{Name: n, State: "failed", Detail: "its runner is killed again and again", At: stampUTC()})
		return false
	}
	result, err := r.bring(ctx, n)
	var refused *command.Error
	if ctx.Err() != nil || errors.As(err, &refused) && refused.Exit == command.ExitRefused {
		r.lost[n] = true // it was stopped meanwhile
		return false
	}
	result.Detail = "again: its runner had been killed"
	if err != nil {
		result = failure(r.c, n, err)
		result.Detail = result.Error
	}
	result.At = stampUTC()
	r.say(result)
	return true
}

func stampUTC() string { return time.Now().UTC().Format(time.RFC3339) }
