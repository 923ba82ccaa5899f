package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var takeCommand = &cli.Command{
	Name: "take", Category: "pop dequeue work job jobs tasks next", ArgsUsage: "[AGENT]", Usage: "take the next message from a shared inbox",
	UsageText: `atm take jobs
atm take jobs --wait 10m --lease 30m
atm take --renew 9f3a1c`,
	Description: `The oldest unread message, or the oldest urgent one, is yours until the lease ends: nobody
else can take it.
atm ack or atm reply finishes it, atm unread gives it back. To create such an inbox:
atm team add jobs --shared. Exit 0 if it is empty.`,
	Flags: []cli.Flag{
		cmdline.DurationFlag("lease", 10*time.Minute, "lease it for `D` (default 10m, at most 24h)"),
		&cli.StringFlag{Name: "renew", Category: "extend", Usage: "renew the lease of `ID`"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait for a message"},
		cmdline.TimeoutFlag(),
	},
	Action: command.With(app.OpenToWrite, take),
}

// takeOptions are the flags and words of take.
type takeOptions struct {
	from           string // whose inbox
	waits, renews  bool
	id             string // of the message whose lease is renewed
	lease, timeout time.Duration
}

// taken is the JSON of take.
type taken struct {
	Message *message  `json:"message"` // nil: there is none
	Times   int       `json:"times,omitempty"`
	Until   time.Time `json:"until,omitzero"`
}

func take(c *cli.Context, s *app.Scope, p *command.Printer) error {
	if err := cmdline.NotBoth(c, "renew wait"); err != nil {
		return err
	}
	o := takeOptions{from: c.Args().First(), renews: c.IsSet("renew"), id: c.String("renew"), waits: c.Bool("wait"),
		lease: cmdline.Duration(c, "lease"), timeout: cmdline.Duration(c, "timeout")}
	if o.lease <= 0 || o.lease > holder.MaxLease {
		return failure.Usage("--lease %s: must be above 0 and at most %s", o.lease, holder.MaxLease).WithHint("--lease 10m; `atm take --renew ID` extends it")
	}
	if o.renews && o.from != "" {
		return failure.Usage("--renew is of a message: no AGENT beside it").WithHint("`atm take --renew %s`", o.id)
	}
	if o.renews {
		return renewLease(c.Context, s, p, o)
	}
	s.WarnUnaccepted()
	box, err := s.MemberOrMe(o.from)
	if _, isWord := errors.AsType[*teamdir.WordError](err); err != nil && (isWord || app.IsID(o.from)) {
		return failure.Usage("%s is no inbox: atm take takes the next message of a shared one", o.from).
			WithHint("`atm take QUEUE`; a file: `atm claim PATH`")
	}
	if err != nil {
		return err
	}
	shared, err := claim.Shared(box)
	switch {
	case err != nil:
		return err
	case box.Address().Team != s.Me.Address().Team:
		return failure.Refused("only members of team %s may take from its inboxes", box.Address().Team).
			WithHint("to put something into it: `atm send %s \"…\"`", box.Address())
	case !shared:
		return failure.Refused("the inbox of %s is not shared: only its owner may read it", box.Agent()).
			WithHint("`atm read` reads your own; a person can make one that is: `atm team add jobs --shared`")
	case !o.waits:
		isTaken, err := takeOne(c.Context, s, p, box, o.lease)
		if err != nil || isTaken {
			return err
		}
		return p.PrintAs(taken{}, "nothing to take")
	}
	err = s.Await(func(ctx context.Context) error {
		return app.UntilMail(ctx, o.timeout, box, func() (bool, error) { return takeOne(ctx, s, p, box, o.lease) })
	})
	if errors.Is(err, app.ErrTimeout) {
		return failure.Timeout("nothing to take within %s", o.timeout).
			WithHint("do other work, or wait again: `atm take %s --wait`", box.Agent())
	}
	return err
}

// takeOne leases and prints a message, if there is one. The lease counts once the reader of stdout has received it.
func takeOne(ctx context.Context, s *app.Scope, p *command.Printer, box *maildir.Box, lease time.Duration) (bool, error) {
	it, err := post.GiveJob(ctx, s.Team, box.Agent(), s.Me.Address(), lease, func(it *wire.Item, l wire.Lease) (bool, error) {
		r := p.Renderer(s)
		text := fmt.Appendf(r.Render(it.Message, letter.Flags{TimesTaken: it.TimesHandedOut}),
			"yours until %s: %s when it is done, %s gives it back, %s extends it\n", letter.Stamp(l.Until),
			p.Command("atm ack "+r.Short(it.ID)), p.Command("atm unread "+r.Short(it.ID)), p.Command("atm take --renew "+r.Short(it.ID)))
		document := taken{Message: &message{Item: it}, Times: it.TimesHandedOut + 1, Until: l.Until.UTC()}
		n, err := printReceived(ctx, s, p, document, text)
		return n > 0, err
	})
	return it != nil, err
}

func renewLease(ctx context.Context, s *app.Scope, p *command.Printer, o takeOptions) error {
	m, err := findHeld(ctx, s, o.id)
	if err == nil && !m.IsLeased {
		err = fmt.Errorf("message %s %w", m.ID.Short(6), maildir.ErrNotHeld)
	}
	if err != nil {
		return err
	}
	until, err := claim.RenewLease(ctx, m.Box, m.ID, s.Me.Address(), o.lease)
	return p.Confirming().PrintUnlessError(err, map[string]any{"id": m.ID, "until": until.UTC()}, m.ID.Short(6)+" is yours until "+letter.Stamp(until))
}
