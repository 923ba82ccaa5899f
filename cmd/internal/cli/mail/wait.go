package mail

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

var waitCommand = &cli.Command{
	Name: "wait", ArgsUsage: "[D]", Usage: "wait for mail, an answer, an ack, or an agent's state",
	UsageText: `atm wait --reply 9f3a1c
atm wait --idle bob --timeout 10m`,
	Description: `Returns at once if it is already so; after a send, wait for --turn-done ID. An agent may end its
turn without a reply: atm history NAME. --reply ID: one of each recipient, with --any the first.
Marks nothing as read. Exit 4: it did not happen in time.`,
	Flags: []cli.Flag{
		cmdline.ListFlag("reply", "an answer to `ID`"),
		cmdline.ListFlag("acked", "every recipient's ack of `ID`", "ack"),
		cmdline.ListFlag("read", "every recipient has read `ID`"),
		cmdline.ListFlag("idle", "`AGENT` is idle"),
		cmdline.ListFlag("finished", "`AGENT` is idle, background too"),
		cmdline.ListFlag("busy", "`AGENT` is in a turn"),
		cmdline.ListFlag("turn-done", "turn of `AGENT|ID` is over", "done"),
		cmdline.ListFlag("blocked", "`AGENT` asks something"),
		cmdline.ListFlag("exit", "`AGENT` is off", "off", "stopped"),
		&cli.BoolFlag{Name: "any", Category: "first or", Usage: "any of these, not all"},
		cmdline.TimeoutFlag("t"),
	},
	Action: command.With(app.OpenMeIfGiven, wait),
}

// kinds are the flags that name a condition.
var kinds = []string{"reply", "acked", "read", "idle", "finished", "busy", "blocked", "exit", "turn-done"}

func wait(c *cli.Context, s *app.Scope, p *command.Printer) error {
	timeout := cmdline.Duration(c, "timeout")
	if word := c.Args().First(); c.Args().Present() {
		var err error
		if timeout, err = cmdline.ParseDuration(word); err != nil {
			return failure.Usage("%q: %w", letter.Clip(word, 40), err).
				WithHint("`atm wait 30s` waits for mail; %s", failure.Say("`%s`", waitBy(c, word)))
		}
	}
	var wanted [][2]string
	for _, kind := range kinds {
		for _, words := range cmdline.List(c, kind) {
			wanted = append(wanted, [2]string{kind, words})
		}
	}
	w, err := NewWait(s, wanted, c.Bool("any"), timeout)
	if err != nil {
		return err
	}
	return s.Await(func(ctx context.Context) error { return Wait(ctx, s, p, w) })
}

// waitBy returns the command that waits for a word that has no flag in front: for what a flag of the command waits, else
// for an answer to an id, or until a member is idle.
func waitBy(c *cli.Context, word string) string {
	command, of := "atm wait", "idle"
	if _, err := wire.ParseFragment(word); err == nil {
		of = "reply"
	} else if !wire.IsName(word) {
		word = "NAME"
	}
	for _, kind := range kinds {
		for _, given := range cmdline.List(c, kind) {
			command, of = command+" --"+kind+" "+policy.Quote(given), kind
		}
	}
	return command + " --" + of + " " + policy.Quote(word)
}

// NewWait is a wait for all that is wanted, or any of it, each a kind and the words behind its flag; for mail if that is
// nothing.
func NewWait(s *app.Scope, wanted [][2]string, isAny bool, timeout time.Duration) (w app.Wait, err error) {
	w = app.Wait{Every: !isAny, Timeout: timeout}
	for _, one := range wanted {
		some, err := s.Conditions(one[0], one[1], w.Every)
		if err != nil {
			return w, err
		}
		w.Conditions = append(w.Conditions, some...)
	}
	if len(w.Conditions) > 0 {
		return w, nil
	}
	if isAny {
		return w, failure.Usage("--any does nothing without conditions").WithHint("for example `atm wait --any --idle bob --idle carol`")
	}
	if _, err = s.MemberOrMe(""); err == nil {
		w.Conditions = []*app.Condition{s.WhenMail()}
	}
	return w, err
}

// Wait waits, and prints what has met the conditions.
func Wait(ctx context.Context, s *app.Scope, p *command.Printer, w app.Wait) error {
	met, err := s.Wait(ctx, w)
	if err != nil {
		return err
	}
	var all []match
	text := ""
	for _, m := range met {
		all = append(all, newMatch(m))
		text += m.Kind + ": " + matchText(s, p, m) + "\n"
	}
	all[0].And = all[1:]
	return p.PrintAs(all[0], text)
}

// A match is the JSON of what has met a condition.
type match struct {
	Agent   wire.Name `json:"agent"` // "": several recipients
	Matched string    `json:"matched"`
	Message *message  `json:"message"`
	// Outcomes are what the recipients' acks say of the work.
	Outcomes []app.AckOutcome `json:"outcomes,omitempty"`
	And      []match          `json:"and,omitempty"` // further conditions that are met
}

func newMatch(m *app.Match) match {
	out := match{Agent: m.Agent, Matched: m.Kind, Outcomes: m.Acks}
	if m.Item != nil {
		out.Message = &message{Item: m.Item}
	}
	return out
}

func matchText(s *app.Scope, p *command.Printer, m *app.Match) string {
	switch {
	case m.Member != nil:
		return app.JoinFilled(", ", app.InState(*m.Member), m.Member.StateDetail())
	case m.Item == nil:
		return m.Message.Short(6)
	}
	var flags letter.Flags
	post.SetAnswer(s.Root, m.Item.Message, &flags)
	text := p.Renderer(s).Header(m.Item.Message, flags)
	if m.Item.Subject != "" {
		text += ", " + letter.Quote(m.Item.Subject, 100)
	}
	if len(m.Acks) > 1 {
		text += "; " + outcomesText(p.Renderer(s), m.Acks)
	}
	if m.Item.State == wire.Unread {
		text += "; " + s.Given.Command("atm read "+m.Item.ID.Short(6))
	}
	return text
}

// outcomesText is "bob declined, carol done".
func outcomesText(r *letter.Renderer, acks []app.AckOutcome) string {
	var parts []string
	for _, ack := range acks {
		parts = append(parts, r.Called(ack.To)+" "+ack.Outcome)
	}
	return strings.Join(parts, ", ")
}
