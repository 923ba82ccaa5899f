package mail

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// A message is a message as JSON shows it: its fields, its state and short id. One that I
// sent has its state at each recipient, and at is the state at the one furthest behind.
type message struct {
	*mailbox.Item
	recipients []recipientState
	at         mailbox.State
}

// recipientState is what became of a message at one recipient.
type recipientState struct {
	To    string `json:"to"`
	State string `json:"state,omitempty"`
}

// MarshalJSON keeps the message's unknown fields, and adds what is known of it here.
func (m message) MarshalJSON() ([]byte, error) {
	fields, err := m.Item.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	all, err := wire.ReadObject(fields)
	if err != nil {
		return nil, err
	}
	all = all.With("short", wire.Quote(m.ID.Short(6))).With("state", wire.Quote(string(cmp.Or(m.State, m.at))))
	if l := m.Lease; l != nil {
		all = all.With("lease", fmt.Appendf(nil, `{"by":%q,"until":%q}`, l.By, l.Until.UTC().Format(time.RFC3339Nano)))
	}
	if len(m.recipients) > 0 {
		recipients, err := wire.Marshal(m.recipients)
		if err != nil {
			return nil, err
		}
		all = all.With("recipients", recipients)
	}
	return all.MarshalJSON()
}

// A listing is the JSON of read, ls, thread and search. Its lists are there, empty or not.
type listing struct {
	Messages []message `json:"messages"`
	More     int       `json:"more"`
	Owed     []wire.ID `json:"owed"`
}

func newListing(items []*mailbox.Item) *listing {
	l := &listing{Messages: make([]message, len(items)), Owed: []wire.ID{}}
	for i, it := range items {
		l.Messages[i].Item = it
	}
	return l
}

func (l *listing) ids() []wire.ID {
	ids := make([]wire.ID, len(l.Messages))
	for i, m := range l.Messages {
		ids[i] = m.ID
	}
	return ids
}

// printLines prints a line a message, cut to --limit; none is what is said of none.
func (l *listing) printLines(c *cli.Context, r *letter.Renderer, none string) error {
	if n := c.Int("limit"); len(l.Messages) > n {
		l.More += len(l.Messages) - n
		l.Messages = l.Messages[:n]
	}
	r.Digits = letter.ShortLength(l.ids())
	text, rows := "", [][]string{}
	for _, m := range l.Messages {
		row := cells(r, m)
		rows = append(rows, row)
		text += strings.Join(row[:3], " ")
		for i, mark := range []string{", ", ": "} {
			if cell := row[3+i]; cell != "" {
				text += mark + cell
			}
		}
		text += "\n"
	}
	if command.Terminal() {
		text = command.Columns(rows, "36", "1", "2", "33", "")
	}
	if l.More > 0 {
		text += fmt.Sprintf("%d more: the same with --limit %d\n", l.More, len(l.Messages)+l.More)
	}
	if len(l.Messages) == 0 {
		text = none
	}
	return command.PrintAs(c, l, text)
}

// cells are a message in a line: its id, who wrote it, when, what is to be known about
// it, and its title; of one that I sent, where it is instead of who wrote it.
func cells(r *letter.Renderer, m message) []string {
	id, age, title := r.Short(m.ID), letter.Age(r.Now, m.SentAt), letter.Clip(letter.Escape(m.Title()), 100)
	if m.recipients != nil {
		var at []string
		for _, one := range m.recipients {
			at = append(at, strings.TrimSuffix(one.To, "@"+string(r.Team))+" "+one.State)
		}
		return []string{id, age, strings.Join(at, ", "), "", title}
	}
	from := r.Who(m.From)
	if r.To {
		var to []string
		for _, a := range m.To {
			to = append(to, r.Who(a))
		}
		from += " to " + strings.Join(to, ",")
	}
	var notes []string
	note := func(text string, isSo bool) {
		if isSo && text != "" {
			notes = append(notes, text)
		}
	}
	note("read", m.State == mailbox.Done)
	note(string(m.State), m.State != mailbox.Done && m.State != mailbox.Unread)
	note("wants ack", m.RequiresAck && (m.State == mailbox.Unread || m.State == ""))
	note(r.Lease(teams.LeaseFlags(m.Item)), true)
	note("urgent", m.Urgent())
	note("expired", m.Expired(r.Now))
	return []string{id, from, age, strings.Join(notes, ", "), title}
}

// letters are whole messages, each as a piece to print; behind are further items, which
// may replace or follow these.
func letters(r *letter.Renderer, items, behind []*mailbox.Item) (pieces [][]byte) {
	flags := letter.FlagsOf(mailbox.Messages(items), mailbox.Messages(behind))
	for i, it := range items {
		f := teams.LeaseFlags(it)
		f.SupersededBy, f.Newer, f.Withdrawn = flags[i].SupersededBy, flags[i].Newer, it.State == mailbox.Withdrawn
		pieces = append(pieces, r.Render(it.Message, f))
	}
	return pieces
}

// printLetters prints whole messages.
func printLetters(c *cli.Context, r *letter.Renderer, items []*mailbox.Item, none string) error {
	l, text := newListing(items), ""
	r.Digits = letter.ShortLength(l.ids())
	for _, piece := range letters(r, items, nil) {
		text += string(piece)
	}
	if text == "" {
		text = none
	}
	return command.PrintAs(c, l, text)
}
