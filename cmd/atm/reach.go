package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

// answerWithin is how long a runner may take to say a word. It does so at once,
// unless it is stopped or stuck: a machine under load must not look like that.
const answerWithin = 3 * time.Second

// agent is the mailbox of the first argument's agent; its team is the one in
// force from then on.
func (e *env) agent() (*mailbox.Box, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	b, err := e.member(e.Args[0])
	if err != nil {
		return nil, err
	}
	e.team, err = e.root.Team(b.Address().Team)
	return b, err
}

// reach connects to an agent's runner, or explains why not.
func (e *env) reach(ctx context.Context, b *mailbox.Box) (*control.Client, error) {
	c, err := e.dial(ctx, b)
	if err != nil {
		return nil, e.explainRunner(b, err)
	}
	return c, nil
}

// dial connects to an agent's runner, and says so when that takes long.
func (e *env) dial(ctx context.Context, b *mailbox.Box) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	slow := time.AfterFunc(control.Patience, func() { e.Warn("the runner of %s has not answered yet; waiting", b.Agent()) })
	defer slow.Stop()
	return control.Dial(ctx, runDir(b))
}

func runDir(b *mailbox.Box) string { return filepath.Join(b.Path(), "run") }

// explainRunner gives an error of a runner its exit code and the way out.
func (e *env) explainRunner(b *mailbox.Box, err error) error {
	name := b.Agent()
	var said *control.Error
	var silent *control.NotAnsweringError
	switch {
	case errors.As(err, &said):
		return saidBy(b, said)
	case errors.Is(err, control.ErrNoRunner):
		if running, err := b.Store().Running(name); err == nil && running {
			return cmdline.Failed("%s runs, but its runner does not listen", name).WithHint("again in a moment; atm doctor looks what is wrong")
		}
		return cmdline.Failed("%s does not run", name).WithHint("%s", e.runAgain(b))
	case errors.As(err, &silent):
		f := cmdline.Failed("the runner of %s does not answer", name).WithHint("atm doctor")
		if silent.PID > 0 {
			f.Message = fmt.Sprintf("the runner of %s, process %d, does not answer", name, silent.PID)
			f.WithHint("kill -CONT %d, if somebody stopped it; kill -9 %d ends it", silent.PID, silent.PID)
		}
		return f
	case errors.Is(err, control.ErrGone):
		return cmdline.Failed("the runner of %s ended before it had answered", name).WithHint("atm status %s", name)
	}
	return err
}

// runAgain is the command that runs a member as it ran last.
func (e *env) runAgain(b *mailbox.Box) string {
	t, err := e.root.Team(b.Address().Team)
	if err != nil {
		return "atm doctor"
	}
	return t.RunAgain(b.Agent())
}

// saidBy is what a runner answered instead of doing it.
func saidBy(b *mailbox.Box, said *control.Error) error {
	format := cmdline.Failed
	switch said.Code {
	case "usage":
		format = cmdline.Usage
	case "ambiguous":
		format = cmdline.Ambiguous
	case "not_found":
		format = cmdline.NotFound
	case "timeout":
		format = cmdline.Timeout
	case "locked":
		format = cmdline.Locked
	case "refused":
		format = cmdline.Refused
	}
	f := format("%s: %s", b.Agent(), letter.Escape(said.Message)) // an option's words are the screen's
	if said.Hint != "" {
		return f.WithHint("%s", said.Hint)
	}
	return f.WithHint("atm screen %s", b.Agent())
}
