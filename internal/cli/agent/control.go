package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

// answerWithin is how long a runner may take to say who it is. It does so at once
// unless it is stopped or stuck; a machine under load must not look like that.
const answerWithin = 3 * time.Second

func runDir(box *mailbox.Box) string { return filepath.Join(box.Path(), "run") }

func dial(ctx context.Context, box *mailbox.Box) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return control.Dial(ctx, runDir(box))
}

// connect reaches an agent's runner, or explains why it cannot. That it takes long
// is said.
func connect(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box) (*control.Client, error) {
	slow := time.AfterFunc(control.Patience, func() {
		command.Warn(c, "the runner of %s has not answered yet; waiting", box.Agent())
	})
	defer slow.Stop()
	client, err := dial(ctx, box)
	if err != nil {
		return nil, runnerError(s, box, err)
	}
	return client, nil
}

// statusOf is what an agent's runner says about itself.
func statusOf(ctx context.Context, box *mailbox.Box) (control.Status, error) {
	client, err := dial(ctx, box)
	if err != nil {
		return control.Status{}, err
	}
	defer client.Close()
	return client.Status(ctx)
}

// runnerError gives an error of a runner its exit code and its hint.
func runnerError(s *command.Scope, box *mailbox.Box, err error) error {
	name := box.Agent()
	var said *control.Error
	if errors.As(err, &said) {
		return saidBy(box, said)
	}
	var silent *control.NotAnsweringError
	if errors.As(err, &silent) && silent.PID > 0 {
		return command.Failed("the runner of %s, process %d, does not answer", name, silent.PID).
			WithHint("kill -CONT %d, if it was stopped; kill -9 %d ends it", silent.PID, silent.PID)
	}
	if errors.Is(err, control.ErrNotAnswering) {
		return command.Failed("the runner of %s does not answer", name).WithHint("atm doctor")
	}
	if errors.Is(err, control.ErrGone) {
		return command.Failed("the runner of %s ended before it answered", name).WithHint("atm status %s", name)
	}
	if !errors.Is(err, control.ErrNoRunner) {
		return err
	}
	if running, err := box.Store().Running(name); err == nil && running {
		return command.Failed("%s runs, but its runner does not listen", name).WithHint("try again in a moment; atm doctor looks for what is wrong")
	}
	return command.Failed("%s does not run", name).WithHint("%s", s.Team.RunAgain(name))
}

// saidBy is what a runner answered instead of doing it.
func saidBy(box *mailbox.Box, said *control.Error) error {
	as := map[string]func(string, ...any) *command.Error{
		"usage": command.Usage, "ambiguous": command.Ambiguous, "not_found": command.NotFound,
		"timeout": command.Timeout, "locked": command.Locked, "refused": command.Refused,
	}[said.Code]
	if as == nil {
		as = command.Failed
	}
	e := as("%s: %s", box.Agent(), letter.Escape(said.Message)) // an option's words are the screen's
	if said.Hint != "" {
		return e.WithHint("%s", said.Hint)
	}
	return e.WithHint("atm screen %s", box.Agent())
}

// perform has the runner of the first argument's agent do something, and prints
// what came of it. verb stands in a refusal.
func perform(c *cli.Context, verb string, do func(ctx context.Context, client *control.Client) (control.Outcome, error)) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	if err := s.MayAct(verb, box.Agent()); err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	client, err := connect(ctx, c, s, box)
	if err != nil {
		return err
	}
	defer client.Close()
	o, err := do(ctx, client)
	if err != nil {
		return runnerError(s, box, err)
	}
	return command.Print(c, outcome{Agent: string(box.Agent()), Outcome: o})
}

// An outcome is what a runner did.
type outcome struct {
	Agent string `json:"agent"`
	control.Outcome
	PID int `json:"pid,omitempty"` // of the program that was started
}

// mostEnded is how many of the processes that were ended are named.
const mostEnded = 5

func (o outcome) String() string {
	line := o.Agent + ": " + letter.Escape(o.Done)
	if o.PID > 0 {
		line += fmt.Sprintf(", process %d", o.PID)
	}
	if o.Detail != "" {
		line += " (" + letter.Escape(o.Detail) + ")"
	}
	for i, process := range o.Ended {
		if i == mostEnded {
			return line + fmt.Sprintf(", %d more", len(o.Ended)-mostEnded)
		}
		separator := ", "
		if i == 0 {
			separator = "; ended with it: "
		}
		line += separator + letter.Clip(letter.Escape(process), 60)
	}
	return line
}

// sleep waits, and reports whether that was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
