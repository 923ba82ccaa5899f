package room

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/wire"
)

// A want is what a message of mine wants.
type want struct {
	isUrgent, isAnswer bool // an answer or an ack
	due                time.Time
}

// wantsOf are what messages want.
type wantsOf map[wire.ID]want

// openMail returns a part of my open mail, newest first, and adds what it wants. One that cannot be read wants no more than
// others: opening it tells why.
func (w wantsOf) openMail(me *maildir.Box, rg maildir.Range) (ids []wire.ID) {
	rg.Newest = true
	rg.Keep = func(h *headers.Header) bool {
		id := h.ID.ID()
		ids, w[id] = append(ids, id), want{h.Has(headers.IsUrgent), h.Has(headers.WantsAck) || h.Has(headers.WantsReply), h.Due}
		return false
	}
	rg.Bad = func(bad *maildir.BadError) {
		id, _ := maildir.MessageID(bad.Name)
		ids = append(ids, id)
	}
	me.Walk(rg, func(*wire.Item) bool { return true })
	return ids
}

func wantOf(m *wire.Message) want {
	return want{m.Urgent(), m.RequiresAck || m.ReplyWanted == "yes", m.DueAt}
}

// The ranks of mail, in the order in which it wants me.
const (
	rankUrgent = iota
	rankOverdue
	rankAnswer
	rankUnread
	rankRead
	ranks
)

func (w want) rank(isUnread bool, now time.Time) int {
	switch {
	case isUnread && w.isUrgent:
		return rankUrgent
	case !w.due.IsZero() && now.After(w.due):
		return rankOverdue
	case w.isAnswer || !isUnread:
		return rankAnswer
	}
	return rankUnread
}

// SortUnread sorts unread messages by what wants me first, newest first.
func SortUnread(items []*wire.Item, now time.Time) {
	slices.SortStableFunc(items, func(a, b *wire.Item) int {
		return cmp.Or(cmp.Compare(wantOf(a.Message).rank(true, now), wantOf(b.Message).rank(true, now)), b.SentAt.Compare(a.SentAt))
	})
}

// order orders Mail.
func (s *Snapshot) order(wants wantsOf, now time.Time) {
	var ranked [ranks][]wire.ID
	add := func(ids []wire.ID, rank func(want) int) {
		for _, id := range ids {
			if !s.Asks(id) {
				i := rank(wants[id])
				ranked[i] = append(ranked[i], id)
			}
		}
	}
	s.New = 0
	add(s.Unread, func(w want) int {
		s.New++
		return w.rank(true, now)
	})
	add(s.Owed, func(w want) int { return w.rank(false, now) })
	add(s.Read, func(want) int { return rankRead })
	s.Wanting = len(ranked[rankUrgent]) + len(ranked[rankOverdue]) + len(ranked[rankAnswer])
	s.Open = s.Wanting + len(ranked[rankUnread])
	s.Mail = slices.Concat(ranked[:]...)
}

// AsMine returns messages in the state of my own copies. One of which I have none is in no state: see ReadBy.
func (r *Room) AsMine(items []*wire.Item) (out []*wire.Item) {
	me := r.Scope.Me
	isMe := func(to wire.Address) bool { return me != nil && to.Agent == me.Agent() }
	for _, it := range items {
		var own *wire.Item
		if slices.ContainsFunc(it.To, isMe) {
			own, _ = me.Get(it.ID)
		}
		if own == nil && it.State != wire.Withdrawn {
			others := *it
			others.State, own = "", &others
		}
		out = append(out, cmp.Or(own, it))
	}
	return out
}

// ReadBy says who has read a message that is not to me: "read by 1 of 3", or "read" and "not read" if it is to one member.
func (r *Room) ReadBy(it *wire.Item) string {
	if it.State != "" {
		return ""
	}
	switch read, _, known := r.readers(it); {
	case known == 0:
		return ""
	case len(it.To) > 1:
		return fmt.Sprintf("read by %d of %d", read, known)
	case read == 1:
		return "read"
	}
	return "not read"
}

// readers counts those who have a message in their mailboxes here, and who of them has read it and who has not.
func (r *Room) readers(it *wire.Item) (read, unread, known int) {
	for _, to := range it.To {
		if to.Host != "" { // what became of it there is not looked at
			continue
		}
		box, err := r.Scope.Root.Mailbox(to)
		if err != nil {
			continue
		}
		if folder, isThere, err := box.Locate(it.ID); isThere && err == nil {
			known++
			switch folder.State {
			case wire.Owed, wire.Done:
				read++
			case wire.Unread:
				unread++
			}
		}
	}
	return read, unread, known
}

// IsPlain reports whether a message of mine is unread and wants no ack: one key or button marks all of these as read.
func IsPlain(it *wire.Item) bool { return it.State == wire.Unread && !it.RequiresAck }

// Notes are what the command line notes of a message, who has read it, and how many files are attached, the strong ones
// first: a narrow line cuts the others.
func Notes(said []letter.Note, it *wire.Item, readBy string) (notes []letter.Note) {
	for _, note := range said {
		if note.Text == letter.WantsAck && it.State == "" { // as it was sent; whether it got one is not known
			note.Text = "asked for an ack"
		}
		notes = append(notes, note)
	}
	if readBy != "" {
		notes = append(notes, letter.Note{Text: readBy})
	}
	if n := len(it.Attachments); n > 0 {
		notes = append(notes, letter.Note{Text: fmt.Sprint(n, " attached")})
	}
	slices.SortStableFunc(notes, func(a, b letter.Note) int {
		switch {
		case a.IsStrong == b.IsStrong:
			return 0
		case a.IsStrong:
			return -1
		}
		return 1
	})
	return notes
}
