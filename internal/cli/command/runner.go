package command

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// Interrupt breaks off a member's turn.
func (s *Scope) Interrupt(ctx context.Context, name wire.Name) (o control.Outcome, err error) {
	if err := s.MayAct("interrupt", name); err != nil {
		return o, err
	}
	err = s.AskRunner(ctx, name, func(c *control.Client) (err error) {
		o, err = c.Interrupt(ctx)
		return err
	})
	return o, err
}

// answerWithin is how long a runner may take to say who it is: it does at once unless it is stuck, or the machine.
const answerWithin = 3 * time.Second

// AskRunner has something asked of the runner of a member of this team.
func (s *Scope) AskRunner(ctx context.Context, name wire.Name, ask func(*control.Client) error) error {
	patient, cancel := context.WithTimeout(ctx, answerWithin)
	client, err := s.Team.DialRunner(patient, name)
	if cancel(); err == nil {
		defer client.Close()
		err = ask(client)
	}
	return s.RunnerError(name, err)
}

// RunnerError gives an error of a member's runner, if there is one, its exit code and its hint.
func (s *Scope) RunnerError(name wire.Name, err error) error {
	if said, ok := errors.AsType[*control.Error](err); ok {
		e := Failed("%s: %s", name, letter.Escape(said.Message)) // an option's words are the screen's
		e.Code = said.Code
		e.Exit = cmp.Or(map[string]int{"usage": ExitUsage, "refused": ExitRefused}[said.Code], e.Exit)
		return e.WithHint("%s", cmp.Or(said.Hint, "atm screen "+string(name)))
	}
	if silent, ok := errors.AsType[*control.NotAnsweringError](err); ok && silent.PID > 0 {
		return Failed("the runner of %s, process %d, does not answer", name, silent.PID).
			WithHint("kill -CONT %d, if it was stopped; atm stop %s ends it", silent.PID, name)
	}
	if errors.Is(err, control.ErrNoRunner) {
		return Failed("%s does not run", name).WithHint("%s", s.Team.RunAgain(name))
	}
	return err
}
