package mail

import (
	"cmp"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// deliver sends a message and, if the flags say so, waits for its ack and answer. With --json all is one document at the
// end.
func deliver(c *cli.Context, s *app.Scope, o *sendOptions) error {
	if o.IsAwaited { // from now on an interrupt is answered with what was sent
		_, stop := app.Interruptible(c.Context)
		defer stop()
	}
	r, err := s.Send(c.Context, &o.Message)
	if err != nil {
		return err
	}
	warn(c, r)
	failed, text := r.Err("sent to"), r.Text("sent to")
	if !o.IsAwaited || text == "" {
		return command.PrinterOf(c).PrintDone(r, text, failed)
	}
	if !c.Bool("json") {
		if err := command.PrinterOf(c).PrintAs(r, text); err != nil {
			return err
		}
		if failed != nil {
			s.Given.Explain(failed).Print(s.Given.Err)
			failed = failure.Exit(failure.ExitPartial)
		}
	}
	return cmp.Or(waitFor(c, s, o, r), failed)
}

// warn prints what else there is to say about what was sent.
func warn(c *cli.Context, r *app.Outcome) {
	for _, w := range r.Warnings {
		command.PrinterOf(c).Warn("%s", w)
	}
}
