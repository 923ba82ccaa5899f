package maildir

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Later is the state of an unread message that is not due yet. It lies in new like any other, and no reader is shown it:
// what lists unread messages leaves it out, unless a Range has Later.
const Later State = "later"

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
		id := wire.LaterAckID(m.ID, recipient, n)
		ack, err := b.OpenAnywhere(id)
		for err == nil && !isAckOf(ack.Message, m, recipient) { // another message has the id
			id = id.Next()
			ack, err = b.OpenAnywhere(id)
		}
		if err != nil {
			return outcome
		}
		if ack.State != Withdrawn {
			outcome = ack.Outcome()
		}
	}
}

func isAckOf(ack, m *wire.Message, recipient wire.Address) bool {
	return ack.Acks(m.ID) && ack.From.Team == recipient.Team && ack.From.Host == recipient.Host
}

// setLater sets the state Later. What somebody has had was due.
func (b *Box) setLater(it *Item) {
	if it.file == b.Unread().File(it.ID) && !b.IsDue(it.Message) {
		it.State = Later
	}
}

// Due returns those of the unread messages that are due, in their order.
func (b *Box) Due(unread []wire.ID) []wire.ID {
	later := b.later(unread)
	if len(later) == 0 {
		return unread
	}
	return slices.DeleteFunc(slices.Clone(unread), func(id wire.ID) bool { return later[id] })
}

// later returns those of the unread messages that are not due.
func (b *Box) later(unread []wire.ID) map[wire.ID]bool {
	if b.host != "" || len(unread) == 0 {
		return nil
	}
	later := map[wire.ID]bool{}
	waiting := b.waiting(unread)
	for _, id := range unread {
		if m := waiting[id]; m != nil && !b.IsDue(m) {
			later[id] = true
		}
	}
	return later
}

// waiting returns what unread messages wait for: a message without a text, or nil if it never waited. A message file never
// changes, so a process opens each once.
func (b *Box) waiting(unread []wire.ID) map[wire.ID]*wire.Message {
	known := map[wire.ID]*wire.Message{}
	if before, ok := b.store.waiting.Load(b.In()); ok {
		known = before.(map[wire.ID]*wire.Message)
	}
	isKnown := func(id wire.ID) bool { _, ok := known[id]; return ok }
	unseen := slices.DeleteFunc(slices.Clone(unread), isKnown)
	if len(unseen) == 0 {
		return known
	}
	known = maps.Clone(known)
	if len(known) > 2*len(unread)+1000 { // most have moved on
		clear(known)
		unseen = unread
	}
	for _, id := range unseen {
		known[id] = nil
	}
	mayWait := func(_ wire.ID, raw []byte) bool {
		return bytes.Contains(raw, []byte(`"not_before"`)) || bytes.Contains(raw, []byte(`"needs"`)) || bytes.Contains(raw, []byte(`\u`))
	}
	for _, it := range b.openEach(b.Unread(), unseen, nil, openAhead, mayWait, func(*BadError) {}) {
		if !it.NotBefore.IsZero() || len(it.Needs) > 0 {
			known[it.ID] = &wire.Message{NotBefore: it.NotBefore, Needs: it.Needs}
		}
	}
	b.store.waiting.Store(b.In(), known)
	return known
}

// HaveWaited lists the unread messages that are due now and were not when they came.
func (b *Box) HaveWaited() ([]wire.ID, error) {
	unread, err := b.UnreadIDs()
	waiting := b.waiting(unread)
	return slices.DeleteFunc(unread, func(id wire.ID) bool { return waiting[id] == nil }), err
}

// NextDue returns when the next of the unread messages that were listed last is due, as far as the clock decides that; zero:
// none is known.
func (b *Box) NextDue() (next time.Time) {
	known, _ := b.store.waiting.Load(b.In())
	waiting, _ := known.(map[wire.ID]*wire.Message)
	for _, m := range waiting {
		isNext := m != nil && m.NotBefore.After(time.Now()) && (next.IsZero() || m.NotBefore.Before(next))
		if isNext {
			next = m.NotBefore
		}
	}
	return next
}
