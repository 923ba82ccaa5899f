package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

var askCommand = &cli.Command{
	Name: "ask", Aliases: []string{"prompt"}, ArgsUsage: "NAME [TEXT…]", Usage: "send a question, wait, and print the answer",
	UsageText: `atm ask bob "Which branch are you on?"`,
	Description: `The answer is a reply, or the last text of the turn that the question started. Exit 4: no answer
in time; the question stays sent. Asking again with the same --once only waits, unless the agent's
turn was cut short: then it gets the question again. --json has the exact answer.`,
	Flags: []cli.Flag{
		command.MessageFlag(),
		&cli.StringFlag{Name: "once", Aliases: []string{"idempotency-key"}, Usage: "send it once under this `NAME`, however often you ask"},
		cmdline.TimeoutFlag(),
	},
	Action: command.With(app.OpenToWrite, ask),
}

var historyCommand = &cli.Command{
	Name: "history", Aliases: []string{"turns"}, ArgsUsage: "NAME", Usage: "show an agent's turns: when, how long, prompt, response, status",
	UsageText: `atm history bob    its mail: atm ls bob --all
atm history bob --limit 1 --json`,
	Description: "Shows only what events report; --json has whole prompts and responses.",
	Flags: []cli.Flag{cmdline.CountFlag("limit", 10, "the newest `N` (default 10); 0: all", "all", "n"),
		cmdline.NoFlag("since from with to", "mail: atm ls NAME --all --since 1h; events: atm watch NAME --since 1h --no-follow")},
	Action: withAgent(func(ctx context.Context, k *call) error {
		k.box.Ingest(ctx) // dropped files may be events
		turns, err := k.s.Team.Turns(k.name(), k.c.Int("limit"))
		return command.PrinterOf(k.c).PrintUnlessError(err, map[string]any{"agent": k.name(), "turns": turns}, command.Turns(k.name(), turns))
	}),
}

type answer struct {
	Response string `json:"response"`
	MS       int64  `json:"duration_ms"`
	TurnID   string `json:"turn_id"`
	Status   string `json:"status"` // replied, or how the turn ended: completed, interrupted, failed, cancelled, awaiting_input
	From     string `json:"from"`   // who has answered
}

// text is the answer alone. On a terminal it is indented, as whatever others wrote.
func (a answer) text(width int) string {
	if width > 0 {
		shown, _ := (&letter.Renderer{Width: width}).Body(a.Response, 0, 0)
		return string(shown)
	}
	return letter.EscapeBody(a.Response)
}

func ask(c *cli.Context, s *app.Scope, p *command.Printer) error {
	to := c.Args().First()
	if strings.Contains(to, ",") || to == "all" {
		return failure.Usage("atm ask asks one member").WithHint(`atm send %s "…" --wait-reply waits for the first answer`, policy.Quote(to))
	}
	box, err := s.MemberOrMe(to)
	if err != nil {
		return err
	}
	if box.Address() == s.Me.Address() {
		return failure.Usage("you cannot ask yourself").WithHint("atm team lists the others")
	}
	text, err := command.MessageText(c, c.Args().Tail())
	if err != nil {
		return err
	}
	once, err := command.Once(c)
	if err != nil {
		return err
	}
	m := &wire.Message{Body: text, ReplyWanted: "yes", Origin: s.Origin()}
	o := &teams.Outgoing{From: s.Me, To: []wire.Address{box.Address()}, Message: m, Once: once}
	isSent := false
	// Follow, since without a reader there is nobody to wait for.
	err = s.Follow(func(ctx context.Context) error {
		r, err := s.Ask(ctx, o, cmdline.Duration(c, "timeout"), func(forecast string) {
			if isSent = true; !c.Bool("json") {
				p.Warn("sent %s to %s (%s)", m.ID.Short(6), box.Agent(), forecast)
			}
		})
		if err != nil {
			return err
		}
		return printAnswer(ctx, c, s, r)
	})
	if isSent && errors.Is(err, context.Canceled) {
		e := s.InterruptedWait(m.ID, "reply", "turn-done")
		e.Done = map[string]any{"id": m.ID}
		return e
	}
	return err
}

// printAnswer prints the answer, and marks a reply as read.
func printAnswer(ctx context.Context, c *cli.Context, s *app.Scope, r *teams.Response) error {
	a := answer{r.Text, r.Took.Milliseconds(), r.Turn, r.Status, r.From.String()}
	if err := command.PrinterOf(c).PrintAs(a, a.text(command.PrinterOf(c).Width())); err != nil || r.Reply == nil {
		return err
	}
	if !c.Bool("json") {
		command.PrinterOf(c).Warn("%s answered: %s", s.Who(r.From), r.Reply.ID.Short(6))
	}
	command.PrinterOf(c).SetPrinted()
	if err := s.MayWrite(); err != nil { // my runner may have started in the meantime
		return err
	}
	return s.Me.MarkRead(ctx, r.Reply.ID)
}
