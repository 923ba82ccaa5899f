package command

import (
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Message is a message as JSON shows it: its fields, its state and short id, and
// of one that I sent its state at each recipient.
type Message struct {
	*mailbox.Item
	Recipients []RecipientState
}

// RecipientState is what became of a message at one recipient; "": no evidence.
type RecipientState struct {
	To    string `json:"to"`
	State string `json:"state,omitempty"`
}

// MarshalJSON keeps the message's unknown fields, and adds what is known of it here.
func (m Message) MarshalJSON() ([]byte, error) {
	fields, err := m.Item.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	all, err := wire.ReadObject(fields)
	if err != nil {
		return nil, err
	}
	all = all.With("short", wire.Quote(m.ID.Short(6))).With("state", wire.Quote(string(m.State)))
	if len(m.Recipients) > 0 {
		recipients, err := wire.Marshal(m.Recipients)
		if err != nil {
			return nil, err
		}
		all = all.With("recipients", recipients)
	}
	return all.MarshalJSON()
}

// Listing is the JSON of read, ls, thread and search. Make it with NewListing:
// its lists are there, empty or not.
type Listing struct {
	Messages []Message `json:"messages"`
	More     int       `json:"more"`
	Owed     []wire.ID `json:"owed"`
}

// NewListing lists messages, with so many more that are not shown.
func NewListing(items []*mailbox.Item, more int) Listing {
	l := Listing{Messages: make([]Message, len(items)), More: more, Owed: []wire.ID{}}
	for i, it := range items {
		l.Messages[i] = Message{Item: it}
	}
	return l
}

// IDs are the ids of items.
func IDs(items []*mailbox.Item) []wire.ID {
	ids := make([]wire.ID, len(items))
	for i, it := range items {
		ids[i] = it.ID
	}
	return ids
}

// HeaderFlags are what the headers of items say beyond the messages' own fields;
// behind are further items, which may replace or follow these.
func HeaderFlags(shown, behind []*mailbox.Item) []letter.Flags {
	flags := letter.FlagsOf(mailbox.Messages(shown), mailbox.Messages(behind))
	for i, it := range shown {
		f := teams.LeaseFlags(it)
		f.SupersededBy, f.Newer = flags[i].SupersededBy, flags[i].Newer
		f.Withdrawn = it.State == mailbox.Withdrawn
		flags[i] = f
	}
	return flags
}
