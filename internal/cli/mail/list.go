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

// lines is a listing with a line a message, and none as what is said of none.
func lines(r *letter.Renderer, messages []command.Message, more int, none string) listing {
	l := listing{Listing: command.NewListing(nil, more), text: none}
	l.Messages = append(l.Messages, messages...)
	ids := make([]wire.ID, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	r.Digits = letter.ShortLength(ids)
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(line(r, m) + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d more: the same with --limit 0\n", more)
	}
	if b.Len() > 0 {
		l.text = b.String()
	}
	return l
}

// line is a message in a line: who wrote it, or of one that I sent where it is.
func line(r *letter.Renderer, m command.Message) string {
	parts := []string{r.Who(m.From) + " " + letter.Age(r.Now, m.SentAt)}
	if r.To {
		var to []string
		for _, a := range m.To {
			to = append(to, r.Who(a))
		}
		parts[0] = r.Who(m.From) + " to " + strings.Join(to, ",") + " " + letter.Age(r.Now, m.SentAt)
	}
	if m.Recipients != nil {
		parts = nil
		for _, at := range m.Recipients {
			parts = append(parts, strings.TrimSuffix(at.To, "@"+string(r.Team))+" "+at.State)
		}
		parts[0] = letter.Age(r.Now, m.SentAt) + " " + parts[0]
	}
	add := func(when bool, word string) {
		if when && word != "" {
			parts = append(parts, word)
		}
	}
	add(m.State == mailbox.Done && m.Recipients == nil, "read")
	add(m.State != mailbox.Unread && m.State != mailbox.Done, string(m.State))
	add(m.State == mailbox.Unread && m.RequiresAck, "wants ack")
	add(true, r.Lease(teams.LeaseFlags(m.Item)))
	add(m.Urgent(), "urgent")
	add(m.Expired(r.Now), "expired")
	text := r.Short(m.ID) + " " + strings.Join(parts, ", ")
	if title := m.Title(); title != "" {
		text += ": " + letter.Clip(letter.Escape(title), 100)
	}
	return text
}

// rendered is a listing with whole messages.
func rendered(r *letter.Renderer, items []*mailbox.Item, more int, none string) listing {
	r.Digits = letter.ShortLength(command.IDs(items))
	l := listing{command.NewListing(items, more), none}
	if len(items) > 0 {
		l.text = ""
	}
	for i, flags := range command.HeaderFlags(items, nil) {
		l.text += string(r.Render(items[i].Message, flags))
	}
	return l
}

// limited cuts a list to --limit, and says how many are left out.
func limited[T any](c *cli.Context, list []T) (shown []T, more int) {
	if n := c.Int("limit"); n > 0 && len(list) > n {
		return list[:n], len(list) - n
	}
	return list, 0
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
