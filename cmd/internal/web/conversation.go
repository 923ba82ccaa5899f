package web

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

const (
	maxEvents  = 500  // of an agent, of which a page shows what is a session's
	maxEntries = 50   // of the log of a session
	maxEntry   = 4000 // characters of one
)

// A conversation is an open interactive session of a member, with the end of its log.
type conversation struct {
	*session.Session
	Entries []entry
	said    string // in a turn that has not ended
}

type entry struct {
	session.Entry
	Number int64 // the same on each page
	Who    string
}

// conversations returns the open sessions of a member.
func (p *page) conversations(ctx context.Context, name wire.Name) (all []conversation, err error) {
	store := p.Scope.Team.Sessions()
	sessions, err := store.Of(name)
	for _, s := range sessions {
		log := store.Log(s, maxEvents)
		entries, unreadable := log.Next(ctx, s)
		err = errors.Join(err, unreadable)
		c, number := conversation{Session: s, said: log.SoFar()}, int64(0)
		log.Close()
		for _, e := range entries[max(0, len(entries)-maxEntries):] {
			who := map[string]string{session.SenderAgent: string(name), session.SenderSystem: "atm"}[e.Sender]
			if who == "" {
				who = e.Sender
			}
			number = max(number+1, e.Timestamp.UnixNano())
			c.Entries = append(c.Entries, entry{e, number, who})
		}
		all = append(all, c)
	}
	return all, err
}

// Text is what was said, as far as it is shown.
func (e entry) Text() string { return letter.EscapeBody(letter.Clip(e.Content, maxEntry)) }

// SoFar is the end of what the agent says in a turn that has not ended.
func (c conversation) SoFar() string {
	said := []rune(c.said)
	return letter.EscapeBody(string(said[max(0, len(said)-maxEntry):]))
}

// Short is the beginning of its id.
func (c conversation) Short() string { return wire.ID(c.SessionID).Short(6) }
