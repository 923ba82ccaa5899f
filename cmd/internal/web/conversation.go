package web

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

const (
	maxEntries = 50   // of the log of a session
	maxEntry   = 4000 // characters of one
)

// A conversation is an open interactive session of a member, with the end of its log.
type conversation struct {
	*session.Session
	Entries []entry
}

type entry struct {
	session.Entry
	Number uint64 // in the whole log
	Who    string
}

// conversations returns the open sessions of a member. It writes nothing: what the agent has said since a session was
// last saved is added in memory.
func (p *page) conversations(ctx context.Context, name wire.Name) (all []conversation, err error) {
	store := p.Scope.Team.Sessions()
	sessions, _, err := store.List()
	for _, s := range sessions {
		if s.AgentID != string(name) || !s.State.Alive() {
			continue
		}
		err = errors.Join(err, store.CatchUp(ctx, s))
		_, n := s.Entries(0)
		c := conversation{Session: s}
		first := n - min(n, maxEntries)
		entries, _ := s.Entries(first)
		for i, e := range entries {
			who := map[string]string{session.SenderAgent: string(name), session.SenderSystem: "atm"}[e.Sender]
			if who == "" {
				who = e.Sender
			}
			c.Entries = append(c.Entries, entry{e, n - uint64(len(entries)) + uint64(i), who})
		}
		all = append(all, c)
	}
	return all, err
}

// Text is what was said, as far as it is shown.
func (e entry) Text() string { return letter.EscapeBody(letter.Clip(e.Content, maxEntry)) }

// SoFar is the end of what the agent says in a turn that has not ended.
func (c conversation) SoFar() string {
	said := []rune(c.Notes.Said)
	return letter.EscapeBody(string(said[max(0, len(said)-maxEntry):]))
}

// Short is the beginning of its id.
func (c conversation) Short() string { return wire.ID(c.SessionID).Short(6) }
