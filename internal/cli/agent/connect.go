package agent

import (
	"context"
	"errors"
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

func dial(ctx context.Context, box *mailbox.Box) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return control.Dial(ctx, filepath.Join(box.Path(), "run"))
}

// connect reaches an agent's runner, or explains why it cannot.
func connect(ctx context.Context, s *command.Scope, box *mailbox.Box) (*control.Client, error) {
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

// perform has the runner of the first argument's agent do something, and prints
// what came of it. verb stands in a refusal.
func perform(c *cli.Context, verb string, do func(ctx context.Context, client *control.Client) (memberResult, error)) error {
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	if err := s.MayAct(verb, box.Agent()); err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	client, err := connect(ctx, s, box)
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := do(ctx, client)
	if err != nil {
		return runnerError(s, box, err)
	}
	r.Name = box.Agent()
	return command.Print(c, r)
}

// refusals are the errors for what a runner answers instead of doing it.
var refusals = map[string]func(string, ...any) *command.Error{
	"failed": command.Failed, "usage": command.Usage, "ambiguous": command.Ambiguous, "not_found": command.NotFound,
	"timeout": command.Timeout, "locked": command.Locked, "refused": command.Refused,
}

// runnerError gives an error of a runner its exit code and its hint.
func runnerError(s *command.Scope, box *mailbox.Box, err error) error {
	name := box.Agent()
	if said, ok := errors.AsType[*control.Error](err); ok && refusals[said.Code] != nil {
		e := refusals[said.Code]("%s: %s", name, letter.Escape(said.Message)) // an option's words are the screen's
		if said.Hint != "" {
			return e.WithHint("%s", said.Hint)
		}
		return e.WithHint("atm screen %s", name)
	}
	if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
		return command.Failed("the runner of %s, process %d, does not answer", name, silent.PID).
			WithHint("kill -CONT %d, if it was stopped; atm stop %s ends it", silent.PID, name)
	}
	if errors.Is(err, control.ErrNoRunner) {
		return command.Failed("%s does not run", name).WithHint("%s", s.Team.RunAgain(name))
	}
	if errors.Is(err, control.ErrGone) {
		return command.Failed("the runner of %s ended before it answered", name).WithHint("atm status %s", name)
	}
	return err
}
