package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// runnerPipe, in the environment, says that this process is to be a runner and
// tells over which descriptor its parent hears of it.
const runnerPipe = "ATM_RUNNER_PIPE"

// whileRunning calls f with a context that a signal ends. Unlike interruptible
// it never cuts f short: to end an agent and all that it started takes some
// seconds, and what is left of it then is nobody's.
func whileRunning(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	outlet.IgnoreSIGPIPE()
	return f(ctx)
}

// runHere is the runner.
func (e *env) runHere(ctx context.Context, p *plan, tell func(news)) error {
	name := p.box.Agent()
	hold, err := p.box.Store().HoldRunner(ctx, name)
	if err != nil {
		return err
	}
	release := sync.OnceValue(hold.Release)
	defer release()
	if err := e.stillWanted(name); err != nil {
		return err
	}
	ctx, letGo, err := e.hanging(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	if err := e.noteLifeline(name); err != nil {
		return err
	}
	if err := e.leftovers(p, tell); err != nil {
		return err
	}
	if err := e.team.SavePolicy(name, p.policy); err != nil {
		return err
	}
	if err := e.team.SaveStart(name, p.member); err != nil {
		return err
	}
	state, err := e.team.State(name)
	if err != nil {
		return err
	}
	origin := &wire.Origin{Via: "runner", Run: p.opt.Run, UID: e.origin().UID}
	o := p.opt
	o.State = *state
	o.Held = hold.StillHeld
	o.Log = slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Started = func(pid int) { tell(news{Event: "started", PID: pid}) }
	o.Ready = func() { tell(news{Event: "ready"}) }
	o.Unsure = func() { tell(news{Event: "unsure"}) }
	o.Told = func(ctx context.Context, q ptyrun.Question) error {
		tell(news{Event: "asks", Detail: q.Dialog.Kind, Message: q.Dialog.Prompt})
		return e.team.NotifyRequest(ctx, p.box, teams.DialogRequest{
			ID: q.ID, Kind: q.Dialog.Kind, Prompt: q.Dialog.Prompt, Tool: q.Dialog.Tool, Input: q.Dialog.Input, Options: q.Options(),
		}, origin)
	}
	o.Answered = func(ctx context.Context, id wire.ID) error { return e.team.WithdrawRequest(ctx, p.box, id) }
	o.Overdue = func(ctx context.Context, idle bool) error {
		return e.team.Remind(ctx, p.box, idle, origin)
	}
	exit, err := ptyrun.Run(ctx, o)
	release() // before anybody hears of the end, who may start it anew at once
	if err != nil {
		return err
	}
	if exit.Loop {
		does := "crashes again and again"
		if exit.Code == 0 {
			does = "ends again and again"
		}
		ended := e.failedWith(p.box, exit.Tail, "%s %s", name, does)
		ended.Exit = cmp.Or(exit.Code, cmdline.ExitFailed)
		tell(news{Event: "failed", Exit: ended.Exit, Message: does, Tail: exit.Tail})
		return ended
	}
	if exit.Code != 0 && !exit.Asked {
		tell(news{Event: "failed", Exit: exit.Code, Detail: exit.Signal, Tail: exit.Tail})
		return &cmdline.Error{Exit: exit.Code, Printed: true, Message: fmt.Sprintf("%s ended with %d", name, exit.Code)}
	}
	tell(news{Event: "ended", Exit: exit.Code, Tail: exit.Tail})
	return nil
}

// leftovers names what a runner that was killed has left running, and ends it
// unless it is to go on.
func (e *env) leftovers(p *plan, tell func(news)) error {
	left, err := ptyrun.Leftovers(p.box)
	if err != nil || len(left.Processes) == 0 {
		return err
	}
	var named []string
	for _, q := range left.Processes {
		named = append(named, q.String())
	}
	say := "ended"
	if p.keep {
		p.opt.Kept = left.Runs
		say = "left running"
	} else if err := left.End(2 * time.Second); err != nil {
		return fmt.Errorf("end what the last runner of %s left (%s): %w", p.box.Agent(), strings.Join(named, ", "), err)
	}
	text := fmt.Sprintf("%s: what its last runner left was %s: %s", p.box.Agent(), say, strings.Join(named, ", "))
	tell(news{Event: "note", Message: text})
	if e.Getenv(runnerPipe) == "" {
		e.Warn("%s", text)
	}
	return nil
}

// runDetached is the runner as a process of its own, which tells its parent
// over a pipe how it goes; also why it does not begin.
func (e *env) runDetached(ctx context.Context, name wire.Name, pipe string) error {
	fd, err := strconv.Atoi(pipe)
	if err != nil {
		return cmdline.Usage("%s is no number", runnerPipe)
	}
	out := os.NewFile(uintptr(fd), "parent")
	defer out.Close()
	tell := func(n news) {
		line, _ := json.Marshal(n)
		out.Write(append(line, '\n')) // the parent may have gone: that is no error
	}
	p, err := e.plan(ctx, name)
	if err == nil {
		err = whileRunning(ctx, func(ctx context.Context) error { return e.runHere(ctx, p, tell) })
	}
	if err == nil {
		return nil
	}
	said := cmdline.Failed("%v", err)
	if errors.As(e.explain(err), &said); !said.Printed {
		tell(news{Event: "refused", Exit: said.Exit, Code: said.Code, Message: said.Message, Hint: said.Hint})
	}
	return err
}
