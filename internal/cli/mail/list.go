package mail

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// A listing is messages and what is printed of them.
type listing struct {
	command.Listing
	text string
}

func (l listing) String() string { return l.text }

// lines is a listing with a line a message, cut to --limit; none is what is said of none.
func lines(c *cli.Context, r *letter.Renderer, l command.Listing, none string) listing {
	if n := c.Int("limit"); n > 0 && len(l.Messages) > n {
		l.More += len(l.Messages) - n
		l.Messages = l.Messages[:n]
	}
	if len(l.Messages) == 0 {
		return listing{l, none}
	}
	ids := make([]wire.ID, len(l.Messages))
	for i, m := range l.Messages {
		ids[i] = m.ID
	}
	r.Digits = letter.ShortLength(ids)
	text := ""
	for _, m := range l.Messages {
		text += line(r, m) + "\n"
	}
	if l.More > 0 {
		text += fmt.Sprintf("%d more: the same with --limit 0\n", l.More)
	}
	return listing{l, text}
}

// line is a message in a line: who wrote it, or of one that I sent where it is.
func line(r *letter.Renderer, m command.Message) string {
	age := letter.Age(r.Now, m.SentAt)
	var parts []string
	for _, at := range m.Recipients {
		parts = append(parts, strings.TrimSuffix(at.To, "@"+string(r.Team))+" "+at.State)
	}
	if m.Recipients != nil {
		return r.Short(m.ID) + " " + age + " " + strings.Join(parts, ", ") + title(m.Item)
	}
	for _, a := range m.To {
		parts = append(parts, r.Who(a))
	}
	text := r.Short(m.ID) + " " + r.Who(m.From) + " " + age
	if r.To {
		text = r.Short(m.ID) + " " + r.Who(m.From) + " to " + strings.Join(parts, ",") + " " + age
	}
	if m.State == mailbox.Done {
		text += ", read"
	} else if m.State != mailbox.Unread && m.State != "" {
		text += ", " + string(m.State)
	} else if m.RequiresAck {
		text += ", wants ack"
	}
	if lease := r.Lease(teams.LeaseFlags(m.Item)); lease != "" {
		text += ", " + lease
	}
	if m.Urgent() {
		text += ", urgent"
	}
	if m.Expired(r.Now) {
		text += ", expired"
	}
	return text + title(m.Item)
}

// title is the end of a line about a message: its subject, or how its body begins.
func title(it *mailbox.Item) string {
	if it.Title() == "" {
		return ""
	}
	return ": " + letter.Clip(letter.Escape(it.Title()), 100)
}

// rendered is a listing with whole messages.
func rendered(r *letter.Renderer, items []*mailbox.Item, none string) listing {
	l := listing{command.NewListing(items, 0), none}
	r.Digits = letter.ShortLength(command.IDs(items))
	var b strings.Builder
	for i, flags := range command.HeaderFlags(items, nil) {
		b.Write(r.Render(items[i].Message, flags))
	}
	if len(items) > 0 {
		l.text = b.String()
	}
	return l
}

// sender is the address that --from names; zero: anybody.
func sender(c *cli.Context, s *command.Scope) (wire.Address, error) {
	if !c.IsSet("from") {
		return wire.Address{}, nil
	}
	a, err := s.Address(c.String("from"))
	if err == nil && a.Agent != "drop" {
		_, err = s.Root.Mailbox(a)
	}
	return a, err
}
