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
	More     int        `json:"more"`
	Owed     []wire.ID  `json:"owed"`
	Bad      []badFile  `json:"bad,omitempty"`
}

// newListing is a listing whose lists are there, empty or not.
func newListing(items []jsonItem, more int) listing {
	return listing{Messages: append([]jsonItem{}, items...), More: more, Owed: []wire.ID{}}
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
	more := struct {
		Short      string           `json:"short"`
		State      string           `json:"state"`
		Lease      *leaseState      `json:"lease,omitempty"`
		Recipients []recipientState `json:"recipients,omitempty"`
	}{Short: j.ID.Short(6), State: string(j.State), Recipients: j.Recipients}
	if j.Lease != nil {
		more.Lease = &leaseState{j.Lease.By.String(), j.Lease.Until.UTC()}
	}
	message, err := j.Message.MarshalJSON()
	if err != nil {
		return nil, err
	}
	said, err := json.Marshal(more)
	if err != nil {
		return nil, err
	}
	return wire.Join(message, said)
}

// leaseState is who holds a message under a lease, as JSON says it.
type leaseState struct {
	By    string    `json:"by"`
	Until time.Time `json:"until"`
}

// flagsOf is what the headers of these items say beyond the messages' fields.
func flagsOf(shown, behind []*mailbox.Item, now time.Time) []letter.Flags {
	flags := letter.FlagsOf(mailbox.Messages(shown), mailbox.Messages(behind))
	for i, it := range shown {
		f := teams.LeaseFlags(it)
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
