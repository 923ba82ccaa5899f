package mail

import (
	"cmp"
	"context"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
)

// deliver sends a message and, if the flags say so, waits for its ack and answer. With --json all is one document at the
// end.
func deliver(ctx context.Context, s *app.Scope, p *command.Printer, o *sendOptions) error {
	if o.IsAwaited { // from now on an interrupt is answered with what was sent
		_, stop := app.Interruptible(ctx)
		defer stop()
	}
	r, err := s.Send(ctx, &o.Message)
	if err != nil {
		return err
	}
	warn(p, r)
	failed, text := r.Err("sent to"), r.Text("sent to")
	if !o.IsAwaited || text == "" {
		return p.PrintDone(r, text, failed)
	}
	if !p.IsJSON {
		if err := p.PrintAs(r, text); err != nil {
			return err
		}
		if failed != nil {
			s.Given.Explain(failed).Print(p.Err)
			failed = failure.Exit(failure.ExitPartial)
		}
	}
	return cmp.Or(waitFor(s, p, o, r), failed)
}

// warn prints what else there is to say about what was sent.
func warn(p *command.Printer, r *app.Outcome) {
	for _, w := range r.Warnings {
		p.Warn("%s", w)
	}
}
