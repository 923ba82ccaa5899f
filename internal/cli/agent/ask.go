package agent

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var askCommand = &cli.Command{
	Name: "ask", Aliases: []string{"prompt"}, ArgsUsage: "NAME [TEXT…]", Usage: "send, wait, and print the answer",
	UsageText: `atm ask bob "Which branch are you on?"`,
	Description: "The answer is a reply, or what the turn that it began has said in the end; stderr says how\n" +
		"long it took. No answer in time: exit 4; the message stays sent. Asked again under the same\n" +
		"--once it is one message: the wait goes on, and a turn that was cut short gets it again.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "message", Aliases: []string{"m", "body", "text"}, Usage: "the `TEXT`"},
		&cli.StringFlag{Name: "once", Usage: "send it once under a `NAME` of yours, however often it is asked"},
		command.TimeoutFlag(),
	},
	Action: ask,
}

// An answer is what ask prints.
type answer struct {
	Response string `json:"response"`
	MS       int64  `json:"duration_ms"`
	TurnID   string `json:"turn_id"`
	Status   string `json:"status"` // replied, or how the turn ended: completed, interrupted, failed
}

func (a answer) String() string {
	if command.Terminal() {
		return letter.EscapeBody(a.Response)
	}
	return a.Response
}

func ask(c *cli.Context) error {
	s, err := command.OpenMe(c)
	if err != nil {
		return err
	}
	if err := s.MayWrite(); err != nil {
		return err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return err
	}
	o, err := composeQuestion(c, s, box)
	if err != nil {
		return err
	}
	// Whoever no longer reads waits for nothing.
	return s.Follow(func(ctx context.Context) error { return awaitAnswer(ctx, c, s, box, o) })
}

// composeQuestion makes the message of the command line.
func composeQuestion(c *cli.Context, s *command.Scope, box *mailbox.Box) (*teams.Outgoing, error) {
	words := c.Args().Tail()
	if c.IsSet("message") {
		words = append(words, c.String("message"))
	}
	text, err := command.StdinText(c, words)
	if err != nil {
		return nil, err
	}
	m := &wire.Message{Body: text, ReplyWanted: "yes", Origin: s.Origin(), SentAt: time.Now().UTC()}
	o, err := outgoing(s, box.Address(), m)
	if err != nil {
		return nil, err
	}
	if !c.IsSet("once") {
		return o, nil
	}
	if _, err := o.Once(c.String("once")); err != nil {
		return nil, err
	}
	if it, err := box.Get(m.ID); err == nil && it.Body != m.Body {
		return nil, command.Refused("%s was sent before with another text: what answers it answers that", m.ID.Short(6)).
			WithHint("another --once NAME for this one; atm wait --reply %s%s waits for that answer", m.ID.Short(6), s.Flags())
	}
	return o, nil
}

// outgoing prepares a message to one member.
func outgoing(s *command.Scope, to wire.Address, m *wire.Message) (*teams.Outgoing, error) {
	o := &teams.Outgoing{From: s.Me, To: []wire.Address{to}, Message: m, Person: command.Person()}
	if err := s.Root.Prepare(o); err != nil {
		return nil, err
	}
	if len(o.Failed) > 0 {
		return nil, o.Failed[0].Err
	}
	return o, nil
}

// awaitAnswer sends the question and prints its answer. How long that took goes beside it: `$(atm
// ask …)` is the answer alone.
func awaitAnswer(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, o *teams.Outgoing) error {
	limited, cancel := context.WithCancel(ctx)
	timeout := command.Duration(c, "timeout")
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	team, err := s.Root.Team(box.Address().Team)
	if err != nil {
		return err
	}
	name := box.Agent()
	r, err := s.Root.Ask(limited, o, func(r *teams.Response) {
		if m, err := team.Summary(name); err == nil && r.Reply == nil {
			command.Warn(c, "sent %s to %s (%s)", r.ID.Short(6), name, m.Forecast(time.Now(), false))
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		short := r.ID.Short(6)
		return command.Timeout("sent %s, but no answer from %s within %s", short, name, timeout).
			WithHint("not yet: atm wait --reply %s%s, or atm trace %s says what keeps it", short, s.Flags(), short)
	}
	if err != nil {
		return command.Failed("%w", err).WithHint("atm trace %s says what became of the question", r.ID.Short(6))
	}
	if err := command.Print(c, answer{r.Text, r.Took.Milliseconds(), r.Turn, r.Status}); err != nil {
		return err
	}
	if r.Reply != nil {
		err = s.Me.MarkRead(ctx, r.Reply.ID)
	}
	command.Warn(c, "%s after %s", r.Status, r.Took.Round(time.Millisecond))
	return err
}
