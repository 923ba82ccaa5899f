// Package claimfile reads and writes run/claims.json, which says who handles which unread message of a mailbox.
package claimfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// An Owner handles an unread message. In the file it is kind:id.
type Owner struct {
	Kind Kind
	ID   string
}

// Kind is what an owner is.
type Kind string

const (
	Runner  Kind = "runner"  // its id is the run's
	Session Kind = "session" // of the agent's program
	Push    Kind = "push"    // likewise
	Lease   Kind = "lease"   // its id is a member; "": the message was given back
)

// OfSession is the owner of what a session of the agent's program got in a hook's answer.
func OfSession(id string) Owner { return Owner{Kind: Session, ID: id} }

// PushedTo is the owner of what was given to a session beside its hooks: it may wait in the program.
func PushedTo(session string) Owner { return Owner{Kind: Push, ID: session} }

// IsPush reports whether it is one of PushedTo.
func (o Owner) IsPush() bool { return o.Kind == Push }

// Session returns the session of OfSession and PushedTo, "" for another owner.
func (o Owner) Session() string {
	if o.Kind == Session || o.Kind == Push {
		return o.ID
	}
	return ""
}

// MarshalText implements encoding.TextMarshaler.
func (o Owner) MarshalText() ([]byte, error) { return []byte(string(o.Kind) + ":" + o.ID), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An owner of no known kind is nobody's: its claim ends by itself.
func (o *Owner) UnmarshalText(text []byte) error {
	kind, id, _ := strings.Cut(string(text), ":")
	*o = Owner{Kind: Kind(kind), ID: id}
	return nil
}

// Entry says who is handling an unread message. While it is live, others skip the message. An expired claim is kept
// until the message leaves new, because it counts how often the message was handed out.
//
// Claims are only advice. If the file is missing, damaged or not accessible, there are no claims, and messages are
// shown once more. If reading it fails in another way, as with too many open files, nothing is written: that would end
// live claims.
//
//	run/claims.json    a list of {"owner","ids","at","until"?,"times",…}
type Entry struct {
	Owner   Owner     `json:"owner"`
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"`    // absent in a runner's claim, live while the runner lock is held
	Times   int       `json:"times"`             // how often the message was handed out, this claim included
	Call    string    `json:"call,omitempty"`    // in a session's claim: see claim.Recipient
	Offered bool      `json:"offered,omitempty"` // in a session's claim: the message was given to the program
}

// maxHandovers is how often a message is handed to sessions in vain before only a read shows it.
const maxHandovers = 2

// IsGivenUp reports whether the message was handed over in vain so often that only a read shows it.
func (c Entry) IsGivenUp() bool { return c.Owner.Kind != Lease && c.Times >= maxHandovers }

// IsLiveLease reports whether a member has the message under a lease that has not ended.
func (c Entry) IsLiveLease(now time.Time) bool {
	return c.Owner.Kind == Lease && c.IsLive(now, false)
}

// MaxLease is the longest lease.
const MaxLease = 24 * time.Hour

// IsLive reports whether the claim counts. A claim from the future does not: the clock was set back since.
func (c Entry) IsLive(now time.Time, isRunning bool) bool {
	if c.Owner.Kind == Runner && c.Until.IsZero() {
		return isRunning
	}
	return now.Before(c.Until) && !c.At.After(now.Add(time.Minute)) && !c.Until.After(now.Add(MaxLease+time.Minute))
}

// EndedAt returns the claim as expired: its owner may have received the message.
func (c Entry) EndedAt(now time.Time) Entry {
	c.Until, c.Offered = now, false
	return c
}

// Moment returns a time in a form that compares equal after a round trip through JSON.
func Moment(t time.Time) time.Time { return t.UTC().Round(0) }

// Table has the claims of a mailbox by message.
type Table map[wire.ID]Entry

// Live returns those of the claims that count.
func (all Table) Live(now time.Time, isRunning bool) Table {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c Entry) bool { return !c.IsLive(now, isRunning) })
	return live
}

// storedClaim is an entry of the file, which may be for several messages.
type storedClaim struct {
	Entry
	IDs []wire.ID `json:"ids"`
}

// Read returns the claims in a file, and an error if it is ignored.
func Read(dir *durable.Root, file string) (Table, error) {
	all := Table{}
	data, err := dir.ReadFile(file, 8<<20)
	if durable.IsAbsent(err) {
		return all, nil
	}
	var list []storedClaim
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return all, err
	}
	for _, s := range list {
		for _, id := range s.IDs {
			if wire.IsID(string(id)) {
				all[id] = s.Entry
			}
		}
	}
	return all, nil
}

// Write writes the claims to a file, or removes it if there are none.
func Write(dir *durable.Root, file string, all Table) error {
	if len(all) == 0 {
		return dir.Remove(file)
	}
	var list []storedClaim
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, storedClaim{all[id], []wire.ID{id}})
	}
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return dir.Replace(file, append(data, '\n'), false)
}
