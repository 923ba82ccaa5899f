package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var upVerb = &cmdline.Verb{
	Name: "up", Args: "[NAME…]", Summary: "start the team: every member that team.toml gives a command",
	Examples: []string{"atm up", "atm up bob", "atm up --foreground"},
	Notes: []string{
		"Those that run stay as they are. Waits until each is ready, or says why it is not;",
		"who is named brings along whom they come after. Exit 6: some are not ready.",
	},
	Flags:   []cmdline.Flag{{Name: "foreground", Usage: "stay, show the team, start again whose runner died, stop all at the end"}},
	MaxArgs: -1,
	Guesses: []string{"start-all", "compose"},
	Run:     run(up),
}

var downVerb = &cmdline.Verb{
	Name: "down", Args: "[NAME…]", Summary: "stop the team, and everything that it started",
	Examples: []string{"atm down", "atm down bob"},
	Notes:    []string{"Their mail stays. Those that are started after others are stopped before them."},
	MaxArgs:  -1,
	Guesses:  []string{"stop-all", "shutdown"},
	Run:      long(down),
}

// turnout is what became of one member.
type turnout struct {
	Name  wire.Name `json:"name"`
	State string    `json:"state"` // ready, running, stopped, off, failed
	PID   int       `json:"pid,omitempty"`
	Error string    `json:"error,omitempty"`
}

func up(ctx context.Context, e *env) error {
	return e.interruptible(ctx, func(ctx context.Context) error {
		plan, names, err := e.crew()
		if err != nil {
			return err
		}
		started, err := e.startAll(ctx, plan, names)
		if !e.Bool("foreground") {
			return err
		}
		if err != nil {
			e.Warn("%v", err)
		}
		return e.supervise(ctx, plan, started)
	})
}

// crew is who is meant: the named ones with those they come after, or all.
func (e *env) crew() (*teams.Plan, []wire.Name, error) {
	if err := e.open(); err != nil {
		return nil, nil, err
	}
	if !e.root.Accepted {
		return nil, nil, cmdline.Refused("nothing is started from %s: nobody here made or accepted it", e.root.Path).WithHint("if it is yours: atm init")
	}
	plan, err := e.team.Plan()
	if err != nil {
		return nil, nil, err
	}
	names := plan.Startable()
	if len(names) == 0 {
		return nil, nil, cmdline.Usage("team.toml gives nobody a command").WithHint("atm run bob -- claude runs one; docs/format.md says how team.toml does")
	}
	if len(e.Args) > 0 {
		if names, err = namesOf(e.Args); err != nil {
			return nil, nil, err
		}
		for _, n := range names {
			if len(plan.Members[n].Command) == 0 {
				return nil, nil, cmdline.Usage("team.toml gives %s no command", n).WithHint("atm run %s -- CMD", n).WithCandidates(strs(plan.Startable())...)
			}
		}
	}
	return plan, plan.Needed(names), nil
}

// startAll starts who does not run, and says of each what became of it.
func (e *env) startAll(ctx context.Context, plan *teams.Plan, names []wire.Name) (started []wire.Name, err error) {
	var mu sync.Mutex
	errs := plan.InOrder(ctx, names, false, func(ctx context.Context, n wire.Name) error {
		if len(plan.Members[n].Command) == 0 {
			return nil // somebody else starts it
		}
		if running, err := e.team.Running(n); err != nil || running {
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				err = e.tellTurnout(turnout{Name: n, State: "running"})
			}
			return err
		}
		t, err := e.startMember(ctx, n)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			return err
		}
		started = append(started, n)
		return e.tellTurnout(t)
	})
	return started, e.sayFailed(names, errs)
}

// startMember runs `atm run NAME --detach`.
func (e *env) startMember(ctx context.Context, n wire.Name) (turnout, error) {
	out, err := e.self(ctx, "run", string(n), "--detach")
	var said struct {
		PID    int
		State  string
		Detail string
	}
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	return turnout{Name: n, State: said.State, PID: said.PID}, err
}

// self runs this program with --json for the team in force, and gives its
// result, or the error that it tells.
func (e *env) self(ctx context.Context, args ...string) ([]byte, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, exe, append(args, "--json", "--root", e.root.Path, "--team", string(e.team.Name))...)
	var out bytes.Buffer
	c.Stdout = &out
	err = c.Run()
	var told struct {
		Error *struct{ Message string }
		Tail  []string
	}
	if err != nil && json.Unmarshal(out.Bytes(), &told) == nil && told.Error != nil {
		if n := len(told.Tail); n > 0 {
			told.Error.Message += ": " + told.Tail[n-1]
		}
		err = errors.New(told.Error.Message)
	}
	return out.Bytes(), err
}

// tellTurnout says of one member what became of it, as soon as it is known.
func (e *env) tellTurnout(t turnout) error {
	if e.JSON() {
		return e.PrintJSON(t)
	}
	line := fmt.Sprintf("%s: %s", t.Name, t.State)
	if t.PID > 0 {
		line += fmt.Sprintf(", process %d", t.PID)
	}
	return e.print("%s", line)
}

// sayFailed names those of whom it went wrong.
func (e *env) sayFailed(names []wire.Name, errs map[wire.Name]error) error {
	if len(errs) == 0 {
		return nil
	}
	var failed []string
	for _, n := range names {
		err := errs[n]
		if err == nil {
			continue
		}
		failed = append(failed, string(n))
		if e.JSON() {
			e.PrintJSON(turnout{Name: n, State: "failed", Error: err.Error()})
		} else {
			e.Warn("%s: %s", n, strings.TrimPrefix(mailbox.EscapeBody(err.Error()), string(n)+" "))
		}
	}
	code := cmdline.Partial
	if len(errs) == len(names) {
		code = cmdline.Failed
	}
	return code("not ready: %s", strings.Join(failed, ", ")).WithHint("atm play %s shows its screen; atm up tries again", failed[0])
}

// supervise shows the team until it is interrupted, starts those again whose
// runner was killed, and stops at the end whom it has started.
func (e *env) supervise(ctx context.Context, plan *teams.Plan, started []wire.Name) error {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(superviseEvery)
		defer tick.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-tick.C:
			}
			for _, n := range started {
				m, err := e.team.Glance(n)
				if err == nil && !m.Running && m.Detail == reducer.RunnerGone {
					e.startMember(watching, n)
				}
			}
		}
	})
	err := e.following(watching, e.watchTeam)
	stop()
	wg.Wait()
	return errors.Join(err, e.stopAll(context.WithoutCancel(ctx), plan, started))
}

// superviseEvery is how often it is looked whether a runner was killed.
const superviseEvery = 2 * time.Second

func down(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	plan, err := e.team.Plan()
	if plan == nil {
		return err
	}
	names, err := namesOf(e.Args)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = e.team.Agents(); err != nil {
			return err
		}
	}
	return e.stopAll(ctx, plan, names)
}

// stopAll stops members, and what runners that were killed have left of them.
func (e *env) stopAll(ctx context.Context, plan *teams.Plan, names []wire.Name) error {
	var mu sync.Mutex
	errs := plan.InOrder(ctx, names, true, func(ctx context.Context, n wire.Name) error {
		out, err := e.self(ctx, "stop", string(n))
		if err != nil {
			return err
		}
		var said struct {
			Done  string
			Ended []string
		}
		if err := json.Unmarshal(out, &said); err != nil {
			return err
		}
		if said.Done == "not running" && len(said.Ended) == 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		return e.tellTurnout(turnout{Name: n, State: "stopped"})
	})
	if len(errs) == 0 {
		return nil
	}
	var failed []string
	for n, err := range errs {
		failed = append(failed, fmt.Sprintf("%s: %v", n, err))
	}
	return cmdline.Partial("not stopped: %s", strings.Join(failed, "; ")).WithHint("atm doctor")
}
