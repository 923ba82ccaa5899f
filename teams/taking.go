package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// ErrNotShared says that an inbox is its owner's alone: nobody else takes from it.
var ErrNotShared = errors.New("is not shared: only its owner takes from it")

// MayTake reports why a member may not take from an inbox under a lease: from
// one's own always, from another's of the same team when it is shared.
func MayTake(box *mailbox.Box, by wire.Address) error {
	if box.Address() == by {
		return nil
	}
	shared, err := box.Shared()
	if err == nil && (!shared || by.Team != box.Address().Team) {
		err = fmt.Errorf("the inbox of %s %w", box.Agent(), ErrNotShared)
	}
	return err
}

// ackHolds is how long a message stays its holder's at least while its ack is
// under way.
const ackHolds = 30 * time.Second

// AckTaken is Ack for a message in box that by took under a lease: the ack
// reaches the sender, then the lease and the debt end. Nobody else can take the
// message in between. key names the very taking, none is whichever is by's.
// *mailbox.LeasedError or mailbox.ErrNotHeld where by does not hold it.
func (r *Root) AckTaken(ctx context.Context, box *mailbox.Box, by wire.Address, key wire.ID, m *wire.Message, text string, origin *wire.Origin) (Acked, error) {
	if _, err := box.Renew(ctx, m.ID, by, key, ackHolds); err != nil {
		return Acked{}, err
	}
	return r.ack(ctx, box, by, m, text, origin, func(delivered bool) error {
		if err := box.Finish(ctx, m.ID, by, key, delivered); err != nil {
			return err
		}
		_ = box.Answered(m.ID, m.DueAt) // who looks for it finds the ack as well
		return nil
	})
}

// Tidy does what is due about the leases of an inbox: what was taken too often
// and never finished is set aside, and its sender told, once. It is called by
// whoever looks; where nothing is due it takes no lock.
func (r *Root) Tidy(ctx context.Context, box *mailbox.Box, origin *wire.Origin) error {
	untold, err := box.Tidy(ctx)
	if err != nil {
		return err
	}
	for _, it := range untold {
		if err := r.tellAside(ctx, box, it, origin); err != nil {
			return fmt.Errorf("tell %s that %s was set aside: %w", it.From, it.ID.Short(6), err)
		}
		if err := box.Told(ctx, it.ID); err != nil {
			return err
		}
	}
	return nil
}

// tellAside tells a sender that nobody finished a message. The notice's id is
// derived from the last taking: told twice it is one notice, and another one
// after the message was put back and set aside again.
func (r *Root) tellAside(ctx context.Context, box *mailbox.Box, it *mailbox.Item, origin *wire.Origin) error {
	sender, err := r.Mailbox(it.From)
	var unknown *UnknownError
	switch {
	case it.From.Agent == "drop", errors.Is(err, ErrNoTeam), errors.Is(err, mailbox.ErrNoAgent), errors.As(err, &unknown):
		return nil // nobody here to be told
	case err != nil:
		return err
	}
	purpose := "aside"
	var tries []string
	if k := it.Takings.Last(); k != nil {
		purpose += " " + string(k.Key)
		for _, k := range it.Takings.Takes {
			if !k.Showing {
				tries = append(tries, fmt.Sprintf("  %s %s: %s", k.At.UTC().Format(time.RFC3339), k.By, letter.Clip(letter.Escape(k.End()), 200)))
			}
		}
	}
	payload, err := json.Marshal(map[string]any{"aside": it.ID, "takes": it.Takings})
	if err != nil {
		return err
	}
	name, short := box.Agent(), it.ID.Short(6)
	post := &mailbox.Post{Given: true, Sender: box, To: []*mailbox.Box{sender}, Message: &wire.Message{
		ID: wire.Derive(purpose, it.ID, box.Address()), Type: wire.TypeNotice, From: box.Address(), To: []wire.Address{it.From},
		InReplyTo: it.ID, Thread: it.ThreadID(), ReplyWanted: "no", SentAt: time.Now().UTC(), Origin: origin,
		Subject: fmt.Sprintf("nobody finished %s", short),
		Body: fmt.Sprintf("Your message %s was taken from the inbox of %s %d times and never finished. It is set aside there, and nobody is given it any more.\n%s\n\nTo have it taken again: atm unread %s --as %s",
			short, name, len(tries), strings.Join(tries, "\n"), short, name),
		Payload: payload,
	}}
	mailbox.Deliver(ctx, post)
	return post.Outcomes[0].Err
}

// taker is who holds a message in a mailbox under a lease just now, and whose
// mailbox that is; nil: nobody.
func (r *Root) taker(b *mailbox.Box, id wire.ID) *mailbox.Box {
	it, err := b.Get(id)
	if err != nil {
		return nil
	}
	k := it.Takings.Holder(time.Now())
	if k == nil {
		return nil
	}
	by, _ := r.Mailbox(k.By)
	return by
}

// Take is one taking of a message under a lease, as the events tell it.
type Take struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Ended time.Time `json:"ended,omitzero"` // zero: no event says so
	How   string    `json:"how,omitempty"`
	Seq   uint64    `json:"seq"` // the event
}

// take takes in an event about a lease.
func (p *Passage) take(e *wire.Event) {
	switch by := e.Field("by"); e.Kind {
	case wire.EventTaken:
		p.Takes = append(p.Takes, Take{By: by, At: e.At, Seq: e.Seq})
	case wire.EventReturned:
		p.ended(by, e.Field("how"), e.At)
	}
}

// ended closes the taking that is open.
func (p *Passage) ended(by, how string, at time.Time) {
	if n := len(p.Takes); n > 0 && p.Takes[n-1].By == by && p.Takes[n-1].Ended.IsZero() {
		p.Takes[n-1].Ended, p.Takes[n-1].How = at, how
	}
}

// LeaseFlags is what is shown of an item's lease.
func LeaseFlags(it *mailbox.Item, now time.Time) letter.Flags {
	f := letter.Flags{TimesTaken: it.Takings.Tries()}
	if k := it.Takings.Holder(now); k != nil {
		f.TakenBy, f.TakenUntil = k.By, k.Until()
	}
	return f
}
