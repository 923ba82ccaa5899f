package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var askCommand = &cli.Command{
	Name: "ask", Category: "prompt\npoll vote    atm ask NAME \"…\" --choice yes --choice no\n--choices --options    a flag for each: --choice red --choice green", ArgsUsage: "NAME [TEXT…]", Usage: "send a question, wait, and print the answer",
	UsageText: `atm ask bob "Which branch are you on?"
atm ask me "Deploy to prod?" --choice yes --choice "not yet"`,
	Description: `The answer is a reply, or the last text of the turn that the question started (of a member
elsewhere: a reply only). Exit 4: no answer in time; the question stays sent. Asking again with the
same --once only waits, unless the agent's turn was cut short: then it gets the question again.
--json has the exact answer.`,
	Flags: append([]cli.Flag{command.ChoiceFlag("offer answer `A`, repeatable")},
		command.MessageFlag(),
		&cli.StringFlag{Name: "once", Category: "idempotency-key", Usage: "send it once under this `NAME`, however often you ask"},
		cmdline.TimeoutFlag(),
	),
	Action: command.With(app.OpenToWrite, askMember),
}

type answer struct {
	foreign.PTYExecuteResult
	Choice string `json:"choice,omitempty"` // of those that were offered
	TurnID string `json:"turn_id"`
	Status string `json:"status"` // replied, or how the turn ended: completed, interrupted, failed, cancelled, awaiting_input
	From   string `json:"from"`   // who has answered

	At *time.Time `json:"at,omitempty"` // when the reply to a question with choices was sent
}

// text is the answer alone. On a terminal it is indented, as whatever others wrote.
func (a answer) text(width int) string {
	if width > 0 {
		shown, _ := (&letter.Renderer{Width: width}).Body(a.Response, 0, 0)
		return string(shown)
	}
	return letter.EscapeBody(a.Response)
}

func askMember(c *cli.Context, s *app.Scope, p *command.Printer) error {
	to := c.Args().First()
	if strings.Contains(to, ",") || s.IsGroup(to) {
		return failure.Usage("atm ask asks one member").WithHint("`atm send %s --wait-reply` waits for the first answer", policy.QuoteAll(c.Args().Slice()))
	}
	whom, err := s.Team.ParseAddress(to)
	if err != nil || whom.Host == "" {
		box, err := s.MemberOrMe(to)
		if err != nil {
			return err
		}
		whom = box.Address()
	}
	if whom == s.Me.Address() {
		return failure.Usage("you cannot ask yourself").WithHint("`atm team` lists the others")
	}
	text, err := command.MessageText(c, c.Args().Tail())
	if err != nil {
		return err
	}
	once, err := command.Once(c)
	if err != nil {
		return err
	}
	m := &wire.Message{Body: text, ReplyWanted: "yes"}
	if err := app.SetChoices(m, cmdline.List(c, "choice")); err != nil {
		return err
	}
	question := &teams.Message{To: []string{whom.String()}, Content: m, Once: once}
	isSent, timeout := false, cmdline.Duration(c, "timeout")
	// Follow, since without a reader there is nobody to wait for.
	err = s.Follow(func(ctx context.Context) error {
		a, err := s.Ask(ctx, question, timeout, func(to app.Delivered) {
			if isSent = true; !p.IsJSON {
				p.Warn("sent %s to %s (%s)", m.ID.Short(6), s.Who(whom), to.Note)
			}
		})
		if err != nil {
			return err
		}
		return printAnswer(ctx, s, p, a, m)
	})
	if isSent && errors.Is(err, context.Canceled) {
		e := s.InterruptedWait(m.ID, "reply", "turn-done")
		e.Done = map[string]any{"id": m.ID}
		return e
	}
	return err
}

// printAnswer prints the answer to a question, and marks a reply as read.
func printAnswer(ctx context.Context, s *app.Scope, p *command.Printer, got history.Answer, question *wire.Message) error {
	a := answer{foreign.PTYExecuteResult{Response: got.Text, DurationMS: uint64(got.Took.Milliseconds())}, question.Chosen(got.Text), got.Turn, got.Status, got.From.String(), nil}
	if got.Message != nil && len(question.Choices) > 0 {
		a.At = &got.Message.SentAt
	}
	if err := p.PrintAs(a, a.text(p.Width())); err != nil {
		return err
	}
	if len(question.Choices) > 0 && a.Choice == "" && !p.IsJSON {
		p.Warn("not one of the choices: %s", letter.Choices(question.Choices))
	}
	if got.Message == nil {
		return nil
	}
	if !p.IsJSON {
		p.Warn("%s answered: %s", s.Who(got.From), got.Message.ID.Short(6))
	}
	p.SetPrinted()
	if err := s.MayWrite(); err != nil { // my runner may have started in the meantime
		return err
	}
	return s.Me.MarkRead(ctx, got.Message.ID)
}
