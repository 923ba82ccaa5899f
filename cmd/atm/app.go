package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
)

// version is set by the build.
var version = "dev"

const mainHelp = `atm carries mail between coding agents and the people they work with.

  atm send bob "The parser is done."     more than a line: atm send bob <<'EOF'
  atm send bob,carol "Stop, please."     all is everybody but you
  atm read                               your new mail; each message shown once
  atm read --wait                        the same, and wait for it
  atm reply 9f3a1c "Rebased."            9f3a1c: the id that read shows
  atm ack 9f3a1c                         I have it and will act
  atm team                               who is busy, idle, blocked, off
  atm trace 9f3a1c                       how far your message got
  atm wait --reply 9f3a1c                or --idle bob, --turn-done bob, --exit bob

Mail     ls show thread search unread take withdraw watch log
Agents   run up down attach screen type interrupt stop restart play ask history
         pending approve reject session   status event events hook
Set-up   init install doctor where demo   team add|retire|restore   gc backup restore
Rest     primer completion; atm help VERB, atm help all

A file put into an inbox directory is a message too.
You are whoever --as NAME or ATM_AGENT says; a command never guesses.
Every command takes --json and --help. Exit 0: done, also without mail;
2 usage, 3 not found, 4 not yet, 5 refused, 6 in part. Errors name the way out.

A model? Run ` + "`atm primer`" + ` now; it is all you need.
`

// program is laid down by the compiler, with all verbs: nothing is made at start.
var program = cmdline.App{
	Name: "atm",
	Help: mainHelp,
	Flags: []cmdline.Flag{
		{Name: "root", Kind: cmdline.String, Arg: "DIR", Usage: "the directory that holds the teams"},
		{Name: "team", Kind: cmdline.String, Arg: "NAME", Usage: "the team"},
		{Name: "as", Kind: cmdline.String, Arg: "NAME", Usage: "who you are"},
		{Name: "lock-timeout", Kind: cmdline.Duration, Arg: "D", Default: "5s", Usage: "how long to wait for a lock"},
	},
	Verbs: []*cmdline.Verb{
		eventVerb, eventsVerb,
		runVerb, attachVerb, screenVerb, typeVerb, interruptVerb, stopVerb, restartVerb,
		upVerb, downVerb, askVerb, historyVerb, pendingVerb, approveVerb, rejectVerb,
	},
}

func app() *cmdline.App {
	a := program
	a.Version = version
	return &a
}

// run is a verb's function. It is given the surroundings and may return any
// error: that is explained on the way out. (Types, not functions that return
// closures: the table of verbs is then made by the compiler, not at each start.)
type run func(ctx context.Context, e *env) error

// long is run for verbs that wait or take long.
type long func(ctx context.Context, e *env) error

// Run runs the verb. The root stays open: the process ends after it.
func (f run) Run(ctx context.Context, c *cmdline.Call) error {
	e := &env{Call: c}
	return e.explain(f(ctx, e))
}

// Run runs the verb.
func (f long) Run(ctx context.Context, c *cmdline.Call) error {
	return run(func(ctx context.Context, e *env) error {
		return e.interruptible(ctx, func(ctx context.Context) error { return f(ctx, e) })
	}).Run(ctx, c)
}

// interruptible calls f with a context that an interrupt ends: exit 130. What
// is over in a moment needs no handler, which would cost a thread at every
// start. A closed pipe is then an error of write, not a death.
func (e *env) interruptible(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, letGo, err := e.hanging(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	outlet.IgnoreSIGPIPE()
	// What is stuck in a write that nobody reads ends all the same.
	var done atomic.Bool
	context.AfterFunc(ctx, func() {
		if !done.Load() {
			time.AfterFunc(time.Second, func() {
				if !done.Load() {
					os.Exit(cmdline.ExitInterrupted)
				}
			})
		}
	})
	err = f(ctx)
	done.Store(true)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true}
	}
	return err
}
