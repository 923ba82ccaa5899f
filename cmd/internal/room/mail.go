package room

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

// projectOf names the project of a root: the directory that .atm is in, else the root itself.
func projectOf(root string) string {
	if filepath.Base(root) == rootdir.Name {
		root = filepath.Dir(root)
	}
	return filepath.Base(root)
}

// A want is what a message of mine wants.
type want struct {
	isUrgent, isAnswer bool // an answer or an ack
	due                time.Time
}

// wantsOf are what messages want, as far as they were read. A message never changes.
type wantsOf map[wire.ID]want

// readFirst is how many messages are read for the first snapshot, which must not wait for a large mailbox; readNext for each
// of the others.
const readFirst, readNext = 250, 4000

// read reads what the newest of my open mail wants, and forgets what is open no more. hasMore: there is more to read.
func (w wantsOf) read(r *Room, s *Snapshot) (hasMore bool) {
	open := slices.Concat(s.Unread, s.Owed)
	if len(w) > len(open) {
		isOpen := map[wire.ID]bool{}
		for _, id := range open {
			isOpen[id] = true
		}
		maps.DeleteFunc(w, func(id wire.ID, _ want) bool { return !isOpen[id] })
	}
	most := readFirst
	if len(w) > 0 {
		most = readNext
	}
	for _, id := range open {
		if _, isKnown := w[id]; isKnown {
			continue
		}
		if most--; most < 0 {
			return true
		}
		w[id] = want{}
		if it, err := r.Scope.Me.Get(id); err == nil { // else it wants no more than others: opening it tells why
			w[id] = wantOf(it.Message)
		}
	}
	return false
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
func SortUnread(items []*maildir.Item, now time.Time) {
	slices.SortStableFunc(items, func(a, b *maildir.Item) int {
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
