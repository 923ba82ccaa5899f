package main

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// listing is the JSON of read, ls, thread and search.
type listing struct {
	Messages []jsonItem `json:"messages"`
	More     int        `json:"more,omitempty"`
	Owed     []string   `json:"owed,omitempty"`
	Bad      []badFile  `json:"bad,omitempty"`
}

type badFile struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Size   int64  `json:"size"`
	State  string `json:"state"`
}

// jsonItem is a message as JSON shows it: its fields, its state and short id.
type jsonItem struct {
	*mailbox.Item
	Recipients []recipientState
}

type recipientState struct {
	To    string `json:"to"`
	State string `json:"state,omitempty"`
}

func (j jsonItem) MarshalJSON() ([]byte, error) {
	more := []wire.Field{{Key: "short", Raw: wire.AppendString(nil, j.ID.Short(6))}}
	if j.State != "" {
		more = append(more, wire.Field{Key: "state", Raw: wire.AppendString(nil, string(j.State))})
	}
	if t := j.Takings; t != nil {
		raw, err := json.Marshal(taken(t))
		if err != nil {
			return nil, err
		}
		more = append(more, wire.Field{Key: "taken", Raw: raw})
	}
	if len(j.Recipients) > 0 {
		raw, err := json.Marshal(j.Recipients)
		if err != nil {
			return nil, err
		}
		more = append(more, wire.Field{Key: "recipients", Raw: raw})
	}
	return j.Message.Append(nil, more...), nil
}

// takenState is who took a message under a lease, as JSON says it.
type takenState struct {
	By    string           `json:"by,omitempty"` // who holds it now
	Until *time.Time       `json:"until,omitempty"`
	Tries int              `json:"tries"`
	Takes []mailbox.Taking `json:"takes"`
}

func taken(t *mailbox.Takings) takenState {
	s := takenState{Tries: t.Tries(), Takes: t.Takes}
	if k := t.Holder(time.Now()); k != nil {
		until := k.Until().UTC()
		s.By, s.Until = k.By.String(), &until
	}
	return s
}

// flagsOf is what the headers of these items say beyond the messages' fields.
func flagsOf(shown, behind []*mailbox.Item, now time.Time) []letter.Flags {
	flags := letter.FlagsOf(mailbox.Messages(shown), mailbox.Messages(behind))
	for i, it := range shown {
		f := teams.LeaseFlags(it, now)
		f.SupersededBy, f.Newer = flags[i].SupersededBy, flags[i].Newer
		f.Withdrawn = it.State == mailbox.Withdrawn
		flags[i] = f
	}
	return flags
}

func jsonItems(items []*mailbox.Item) []jsonItem {
	out := make([]jsonItem, len(items))
	for i, it := range items {
		out[i] = jsonItem{Item: it}
	}
	return out
}

func idsOf(items []*mailbox.Item) []wire.ID {
	out := make([]wire.ID, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}

// marshalLine is v as one line of JSON, as Call.PrintJSON writes it.
func marshalLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // our own types
	}
	return cmdline.EscapeJSON(b.Bytes())
}
