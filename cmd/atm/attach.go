package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

var attachVerb = &cmdline.Verb{
	Name: "attach", Args: "NAME", Summary: "join an agent's terminal; Ctrl-\\ d leaves it",
	Examples: []string{"atm attach bob", "atm attach bob --read-only"},
	Notes: []string{
		"Several may; both can type, and its terminal is as large as the one that was resized last.",
		"Ctrl-\\ is sent with the next key, unless that is d. While your line is not sent no mail is typed in.",
	},
	Flags: []cmdline.Flag{
		{Name: "read-only", Usage: "look only: nothing you type is sent, and no size"},
	},
	Guesses: []string{"join"},
	MinArgs: 1, MaxArgs: 1,
	Run: run(attach),
}

func attach(ctx context.Context, e *env) error {
	if e.Stdin == nil || !term.IsTerminal(int(e.Stdin.Fd())) || !e.terminal() {
		return cmdline.Usage("attach joins a terminal, and this is none").WithHint("atm screen %s", cmdline.Escape(e.Args[0]))
	}
	b, err := e.agent()
	if err != nil {
		return err
	}
	if who, agent := e.actor(); agent && who == b.Agent() {
		return cmdline.Refused("this is the terminal of %s already: it would show itself, for ever", who).WithHint("atm screen %s", who)
	}
	if !e.Bool("read-only") {
		if err := e.mayAct("type into", b.Agent()); err != nil {
			return err
		}
	}
	c, err := e.reach(ctx, b)
	if err != nil {
		return err
	}
	a := &attachment{env: e, box: b, readOnly: e.Bool("read-only")}
	end, err := a.follow(ctx, c)
	if err != nil {
		return err
	}
	return e.sayEnding(b, end)
}

// attachOwner joins the terminal of an agent that this process has started. The
// agent's end is this process's; closing the terminal, or asking this process to
// end, ends the agent; the detach key alone leaves it running.
func (e *env) attachOwner(ctx context.Context, b *mailbox.Box) (exited bool, err error) {
	c, err := e.reach(ctx, b)
	if err != nil {
		return false, err
	}
	a := &attachment{env: e, box: b, owner: true}
	end, err := a.follow(ctx, c)
	switch {
	case end.Exit != nil && end.Exit.Code != 0:
		return true, &cmdline.Error{Exit: end.Exit.Code, Printed: true, Message: fmt.Sprintf("%s ended with %d", b.Agent(), end.Exit.Code)}
	case end.Exit != nil:
		return true, nil
	case err != nil:
		return false, err
	}
	return false, e.sayEnding(b, end)
}

// sayEnding says how an attachment ended.
func (e *env) sayEnding(b *mailbox.Box, end control.Ending) error {
	name := b.Agent()
	if e.JSON() {
		out := map[string]any{"agent": name, "detached": end.Exit == nil}
		if end.Exit != nil {
			out["exit"] = end.Exit
		}
		if end.Reason != "" {
			out["reason"] = end.Reason
		}
		return e.PrintJSON(out)
	}
	switch {
	case end.Exit != nil && end.Exit.Signal != "":
		return e.print("%s ended: %s", name, letter.Escape(end.Exit.Signal))
	case end.Exit != nil:
		return e.print("%s ended: exit %d", name, end.Exit.Code)
	case end.Detached:
		return e.print("detached; %s goes on: atm attach %s", name, name)
	}
	return cmdline.Failed("the runner of %s ended the attachment: %s", name, end.Reason).WithHint("atm attach %s", name)
}

// endWithin is how long this process may take, after a signal, to come to its
// end by itself.
const endWithin = 2 * time.Second

// An attachment is an agent's terminal shown on this one.
type attachment struct {
	env      *env
	box      *mailbox.Box
	readOnly bool
	owner    bool // what ends this process ends the agent
}

// follow shows the terminal until it is left or ends, and closes c.
func (a *attachment) follow(ctx context.Context, c *control.Client) (end control.Ending, err error) {
	e := a.env
	con, err := openConsole(e.Stdin, e.Stdout)
	if err != nil {
		c.Close()
		return end, err
	}
	defer con.close()
	if a.readOnly {
		e.Warn("looking at %s; %s leaves", a.box.Agent(), control.DetachKey)
	} else {
		e.Warn("attached to %s; %s detaches", a.box.Agent(), control.DetachKey)
	}
	for {
		end, why, err := a.once(ctx, con, c)
		switch {
		case end.Exit != nil:
			return end, nil
		case errors.Is(why, errSuspended):
			con.pause()
			if c, err = e.reach(ctx, a.box); err != nil {
				return end, err
			}
			continue
		case end.Gone || errors.Is(why, errHungUp) || errors.Is(why, errAsked):
			if a.owner {
				a.stop()
			}
			return end, &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true, Message: "interrupted"}
		case err != nil:
			return end, e.explainRunner(a.box, err)
		}
		return end, nil
	}
}

// once shows the terminal until something ends that. why is what a signal asked
// for.
func (a *attachment) once(ctx context.Context, con *console, c *control.Client) (end control.Ending, why, err error) {
	defer c.Close()
	ctx, err = con.enter(ctx)
	if err != nil {
		return end, nil, err
	}
	defer con.leave()
	size := con.size()
	end, err = c.Attach(ctx, control.AttachRequest{Cols: size.Cols, Rows: size.Rows, ReadOnly: a.readOnly},
		control.Terminal{In: con.typed, Out: con, Sizes: con.sizes})
	return end, context.Cause(ctx), err
}

// stop ends an agent whose terminal has gone. Nobody is there to be told how
// that went; the runner ends it in any case, once asked.
func (a *attachment) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin/2)
	defer cancel()
	c, err := control.Dial(ctx, runDir(a.box))
	if err != nil {
		return
	}
	defer c.Close()
	c.Stop(ctx, control.StopRequest{})
}
