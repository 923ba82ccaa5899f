package session

import (
	"bytes"
	"context"

	"github.com/agentteammail/atm/internal/maildir"
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
	human := []byte(`"` + wire.TypeHumanInput + `"`)
	rg := maildir.Range{Unread: true, Keep: func(_ wire.ID, raw []byte) bool { return bytes.Contains(raw, human) }}
	_, err = st.box(s).Walk(ctx, rg, func(it *maildir.Item) bool {
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
