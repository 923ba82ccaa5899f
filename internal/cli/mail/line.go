package mail

import (
	"strings"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// A lineRenderer shows a message in a line of a list.
type lineRenderer struct {
	*letter.Renderer
	to bool // name the recipients
}

func (r lineRenderer) line(m command.Message) string {
	who := r.Who(m.From)
	if r.to {
		who += " to " + r.whoAll(m.To)
	}
	parts := []string{who + " " + letter.Age(r.Now, m.SentAt)}
	add := func(when bool, word string) {
		if when {
			parts = append(parts, word)
		}
	}
	add(m.State == mailbox.Done, "read")
	add(m.State != mailbox.Unread && m.State != mailbox.Done && m.State != "", string(m.State))
	add(m.State == mailbox.Unread && m.RequiresAck, "wants ack")
	lease := r.Lease(teams.LeaseFlags(m.Item))
	add(lease != "", lease)
	add(m.Urgent(), "urgent")
	add(m.Origin != nil && m.Origin.Via == "drop" && m.From.Agent != "drop", "dropped as a file")
	add(m.Expired(r.Now), "expired")
	return r.Short(m.ID) + " " + strings.Join(parts, ", ") + r.title(m)
}

// sentLine is the line of a message that I sent.
func (r lineRenderer) sentLine(m command.Message) string {
	states := make([]string, len(m.Recipients))
	for i, at := range m.Recipients {
		state := at.State
		if state == "" {
			state = "no evidence"
		}
		states[i] = strings.TrimSuffix(at.To, "@"+string(r.Team)) + " " + state
	}
	return r.Short(m.ID) + " " + letter.Age(r.Now, m.SentAt) + " " + strings.Join(states, ", ") + r.title(m)
}

func (r lineRenderer) title(m command.Message) string {
	title := m.Title()
	if title == "" {
		return ""
	}
	return ": " + letter.Clip(letter.Escape(title), 100)
}

func (r lineRenderer) whoAll(to []wire.Address) string {
	names := make([]string, len(to))
	for i, a := range to {
		names[i] = r.Who(a)
	}
	return strings.Join(names, ",")
}
