package session

import (
	"context"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// unread is what was unread in an agent's inbox at some time.
type unread struct {
	ids   map[wire.ID]bool
	human []*wire.Message // those with human input
}

func (st *Store) readUnread(ctx context.Context, s *Session) (*unread, error) {
	u := &unread{ids: make(map[wire.ID]bool)}
	if !s.State.Alive() {
		return u, nil
	}
	ids, err := st.box(s).UnreadIDs()
	if err != nil {
		return u, err
	}
	for _, id := range ids {
		u.ids[id] = true
	}
	_, err = inbox.Walk(ctx, st.box(s), maildir.Range{Unread: true, With: headers.IsInput}, func(it *maildir.Item) bool {
		u.ids[it.ID] = true
		u.human = append(u.human, it.Message)
		return true
	})
	return u, err
}

// addNew opens what has arrived since, but for dropped files that nobody has looked at yet.
func (u *unread) addNew(box *maildir.Box) error {
	ids, err := box.UnreadIDs()
	for _, id := range ids {
		if u.ids[id] {
			continue
		}
		if it, bad := box.Get(id); bad == nil { // else it was read meanwhile, of which an event tells, or is no message
			u.human = append(u.human, it.Message)
		}
	}
	return err
}

// UnreadInput returns the human input in an agent's inbox, oldest first.
func (st *Store) UnreadInput(ctx context.Context, agent wire.Name) (all []Input, err error) {
	_, err = inbox.Walk(ctx, st.mail.Box(agent), maildir.Range{Unread: true, With: headers.IsInput}, func(it *maildir.Item) bool {
		if in, ok := InputOf(it.Message); ok {
			all = append(all, in)
		}
		return true
	})
	return all, err
}

// MarkRead marks an agent's input as read, of which somebody else has done what it says.
func (st *Store) MarkRead(ctx context.Context, agent wire.Name, in Input) error {
	return st.mail.Box(agent).MarkRead(ctx, in.ID)
}
