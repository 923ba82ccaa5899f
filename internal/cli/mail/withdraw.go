package mail

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take a message of yours back",
	UsageText:   "atm withdraw 9f3a1c",
	Description: "Unread: it is taken out of the inbox. Read: the reader gets a notice. Acked: refused, exit 5.",
	Action:      withdraw,
}

type withdrawal struct {
	To     string `json:"to"`
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

type withdrawals struct {
	ID         wire.ID      `json:"id"`
	Recipients []withdrawal `json:"recipients"`
}

func (w withdrawals) String() string {
	var b strings.Builder
	for _, r := range w.Recipients {
		b.WriteString(w.ID.Short(6) + " " + r.To + ": " + r.Result)
		if r.Error != "" {
			b.WriteString(": " + r.Error)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func withdraw(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	it, _, err := s.Find(c.Context, c.Args().First(), false)
	if err != nil {
		return err
	}
	short := it.ID.Short(6)
	if it.From != s.Me.Address() || it.Origin != nil && it.Origin.Via == "drop" {
		return command.Refused("message %s is from %s: only its sender withdraws it", short, it.From).
			WithHint("atm reply %s \"…\"%s", short, s.Flags())
	}
	out := withdrawals{ID: it.ID}
	failed, refused := 0, 0
	var first error
	for _, w := range s.Root.Withdraw(c.Context, s.Me, it.Message, s.Origin()) {
		r := withdrawalAt(c, w)
		if w.Err != nil {
			failed++
			if first == nil {
				first = w.Err
			}
		} else if w.State == "" {
			refused++
		}
		out.Recipients = append(out.Recipients, r)
	}
	if failed == len(out.Recipients) && failed > 0 {
		return first
	}
	if refused == len(out.Recipients) {
		return command.Refused("message %s is acknowledged", short).WithHint("atm reply %s \"…\"%s", short, s.Flags())
	}
	if err := command.Print(c, out); err != nil {
		return err
	}
	if failed+refused > 0 {
		return command.Exit(command.ExitPartial)
	}
	return nil
}

func withdrawalAt(c *cli.Context, w teams.Withdrawal) withdrawal {
	r := withdrawal{To: w.To.String()}
	switch {
	case w.Err != nil:
		r.Result, r.Error = "failed", command.Explain(c, w.Err).Message
	case w.State == mailbox.Unread:
		r.Result = "withdrawn"
	case w.State == mailbox.Withdrawn:
		r.Result = "withdrawn before"
	case w.State == "":
		r.Result = "acknowledged already, left alone"
	default:
		r.Result = "read already, a notice was sent"
	}
	return r
}
