package maildir

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// IsDue reports whether readers of the mailbox are shown a message by now: see wire.Message.IsDue. A bridge sends what is in
// an outbox at once: it waits at the other end.
func (b *Box) IsDue(m *wire.Message) bool {
	return b.host != "" || m.IsDue(time.Now(), b.store.IsDone)
}

// IsDone reports whether a message that a member of the team has sent was acked as done by all its recipients. The last ack
// of each counts.
func (s *Store) IsDone(id wire.ID) bool {
	m := s.sent(id)
	if m == nil || len(m.To) == 0 {
		return false
	}
	sender := s.Box(m.From.Agent)
	return !slices.ContainsFunc(m.To, func(a wire.Address) bool { return sender.lastOutcome(m, a) != "done" })
}

// sent finds a message that a member of the team has sent: in that one's index, or if a power cut has torn it there, at a
// recipient; nil: there is none.
func (s *Store) sent(id wire.ID) *wire.Message {
	agents, _ := s.Agents()
	for _, name := range agents {
		if m, err := s.Box(name).Sent(id); err == nil && m.From == s.Box(name).Address() {
			return m
		}
	}
	for _, name := range agents {
		if it, err := s.Box(name).OpenAnywhere(id); err == nil && it.From == s.Box(it.From.Agent).Address() {
			return it.Message
		}
	}
	return nil
}

// lastOutcome returns the outcome that a recipient's last ack of a message gives, by the acks in the sender's mailbox; "": it
// gives none. From a shared inbox another member may have taken the message, and acked it for the recipient.
func (b *Box) lastOutcome(m *wire.Message, recipient wire.Address) (outcome string) {
	for n := 0; ; n++ {
		id := wire.AckID(m.ID, recipient, n)
		ack, err := b.OpenAnywhere(id)
		for err == nil && !isAckOf(ack.Message, m, recipient) { // another message has the id
			id = id.Next()
			ack, err = b.OpenAnywhere(id)
		}
		if err != nil {
			return outcome
		}
		if ack.State != wire.Withdrawn {
			outcome = ack.Outcome()
		}
	}
}

func isAckOf(ack, m *wire.Message, recipient wire.Address) bool {
	return ack.Acks(m.ID) && ack.From.Team == recipient.Team && ack.From.Host == recipient.Host
}

// setLater sets the state Later.
func (b *Box) setLater(it *wire.Item) {
	if it.IsWaiting && !b.IsDue(it.Message) {
		it.State = wire.Later
	}
}

// NotDue returns those of the messages that were delivered to wait, and are not due.
func (b *Box) NotDue(held Held) map[wire.ID]bool {
	var not map[wire.ID]bool
	for id, h := range held {
		if h.Kind != holder.Later {
			continue
		}
		isEarly := h.Until.After(time.Now())
		if !isEarly {
			it, err := b.Open(b.HeldBy(h), id)
			isEarly = err == nil && !b.IsDue(it.Message)
		}
		if isEarly {
			if not == nil {
				not = map[wire.ID]bool{}
			}
			not[id] = true
		}
	}
	return not
}

// HaveWaited lists the unread messages that are due now and were not when they came.
func (b *Box) HaveWaited() (ids []wire.ID, err error) {
	held, err := b.Held()
	notDue := b.NotDue(held)
	for id, h := range held {
		if h.Kind == holder.Later && !notDue[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// NextDue returns when the next of the messages that wait is due, as far as the clock decides that; zero: none is known.
func (b *Box) NextDue() (next time.Time) {
	held, _ := b.Held()
	for _, h := range held {
		isNext := h.Kind == holder.Later && h.Until.After(time.Now()) && (next.IsZero() || h.Until.Before(next))
		if isNext {
			next = h.Until
		}
	}
	return next
}

// placeFor is the directory of the inbox in which a message is delivered: new, or one in which it is held until it is due.
func (b *Box) placeFor(m *wire.Message) string {
	if b.host != "" || m.NotBefore.IsZero() && len(m.Needs) == 0 {
		return "new"
	}
	return "held/" + holder.Waits(m.NotBefore).Name()
}
