package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var askCommand = &cli.Command{
	Name: "ask", Aliases: []string{"prompt"}, ArgsUsage: "NAME [TEXT…]", Usage: "send a question, wait, and print the answer",
	UsageText: `atm ask bob "Which branch are you on?"`,
	Description: "The answer is a reply, or the last text of the turn that the question started; stderr says how\n" +
		"long it took. Exit 4: no answer in time; the question stays sent. Asking again with the same\n" +
		"--once only waits, unless the agent's turn was cut short: then it gets the question again.",
	Flags: []cli.Flag{
		command.MessageFlag(),
		&cli.StringFlag{Name: "once", Usage: "send it once under this `NAME`, however often you ask"},
		cmdline.TimeoutFlag(),
	},
	Action: command.With(command.OpenToWrite, ask),
}

var historyCommand = &cli.Command{
	Name: "history", Aliases: []string{"turns"}, ArgsUsage: "NAME", Usage: "show an agent's turns: when, how long, prompt, response, status",
	UsageText:   "atm history bob\natm history bob --limit 1 --json",
	Description: "Shows only what events report; --json has whole prompts and responses.",
	Flags:       []cli.Flag{cmdline.CountFlag("limit", 10, "the newest `N` (default 10); 0: all", "all", "n", "last", "tail")},
	Action: withAgent(func(ctx context.Context, k *call) error {
		k.box.Ingest(ctx) // dropped files may be events
		turns, err := k.s.Team.History(k.name(), k.c.Int("limit"))
		return command.PrintUnlessError(k.c, err, map[string]any{"agent": k.name(), "turns": turns}, command.Turns(k.name(), turns))
	}),
}

type answer struct {
	Response string `json:"response"`
	MS       int64  `json:"duration_ms"`
	TurnID   string `json:"turn_id"`
	Status   string `json:"status"` // replied, or how the turn ended: completed, interrupted, failed, cancelled, awaiting_input
}

func (a answer) String() string {
	if command.Terminal() {
		return letter.EscapeBody(a.Response)
	}
	return a.Response
}

func ask(c *cli.Context, s *command.Scope) (err error) {
	k := &call{c: c, s: s}
	if k.box, err = s.MemberOrMe(c.Args().First()); err == nil {
		s.Team, err = s.Root.Team(k.box.Address().Team) // the hints, of what I do next, keep my team
	}
	if err != nil {
		return err
	}
	if k.box.Address() == s.Me.Address() {
		return failure.Usage("you cannot ask yourself").WithHint("atm team lists them")
	}
	text, err := command.MessageText(c, c.Args().Tail())
	if err != nil {
		return err
	}
	m := &wire.Message{Body: text, ReplyWanted: "yes", Origin: s.Origin()}
	o := &teams.Outgoing{From: s.Me, To: []wire.Address{k.box.Address()}, Message: m}
	if err := s.Root.PrepareAll(o); err != nil {
		return err
	}
	if c.IsSet("once") {
		if err := o.SetIdempotencyKey(c.String("once")); err != nil {
			return err
		}
		if it, err := k.box.Get(m.ID); err == nil && it.Body != m.Body {
			return failure.Refused("%s was already sent with another text, and an answer would be to that", m.ID.Short(6)).
				WithHint("use another --once NAME; atm wait --reply %s%s waits for that answer", m.ID.Short(6), s.Flags())
		}
	}
	// Follow, since without a reader there is nobody to wait for.
	err = s.Follow(func(ctx context.Context) error { return k.awaitAnswer(ctx, o) })
	if sent := o.Post.Outcomes; errors.Is(err, context.Canceled) && len(sent) > 0 && sent[0].Stored {
		return s.Interrupted(m.ID, "--reply", "--turn-done")
	}
	return err
}

// awaitAnswer sends the question and prints its answer, but the duration on stderr: `$(atm ask …)` is the answer alone.
func (k *call) awaitAnswer(ctx context.Context, o *teams.Outgoing) error {
	name, timeout := k.name(), cmdline.Duration(k.c, "timeout")
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := k.s.Root.Ask(limited, o, teams.Observer{Sent: func(r *teams.Response) {
		// The timeout begins here: however short it is, the question is sent.
		time.AfterFunc(cmp.Or(timeout, 1<<62), cancel)
		if m, err := k.s.Team.Summary(name); err == nil && r.Reply == nil {
			forecast := m.Forecast(o.Message)
			if o.Post.Outcomes[0].AlreadyStored {
				forecast = "before"
			}
			command.Warn(k.c, "sent %s to %s (%s)", r.ID.Short(6), name, forecast)
		}
	}})
	short := r.ID.Short(6)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		state := ""
		if m, err := k.s.Team.Status(ctx, name); err == nil {
			state = ": it is " + command.JoinFilled(", ", string(m.State), m.StateDetail(), m.Held)
		}
		e := failure.Timeout("sent %s, but no answer from %s within %s%s", short, name, timeout, state).
			WithHint("wait on: atm wait --reply %s --turn-done %[1]s%[2]s; atm trace %[1]s says what holds it up", short, k.s.Flags())
		e.Done = map[string]any{"id": r.ID}
		return e
	}
	if len(o.Post.Outcomes) == 0 || !o.Post.Outcomes[0].Stored {
		return err
	}
	if errors.Is(err, mailbox.ErrNoAgent) { // it was retired meanwhile
		return fmt.Errorf("sent %s, but %w", short, err)
	}
	if err != nil {
		return failure.Failed("%w", err).WithHint("atm trace %s says what became of the question", short)
	}
	if err := command.Print(k.c, answer{r.Text, r.Took.Milliseconds(), r.Turn, r.Status}); err != nil {
		return err
	}
	command.SetPrinted(k.c)
	if r.Reply != nil {
		if err = k.s.MayWrite(); err == nil { // my runner may have started in the meantime
			err = k.s.Me.MarkRead(ctx, r.Reply.ID)
		}
	}
	command.Warn(k.c, "%s after %s", r.Status, r.Took.Round(time.Millisecond))
	return err
}
