// Package inbox looks at the messages of a mailbox and reads them, as package maildir does once it has taken in what was
// dropped.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// Walk is Box.Walk, and with Unread it ingests dropped files first.
func Walk(ctx context.Context, b *maildir.Box, rg maildir.Range, f func(*wire.Item) bool) (maildir.Walked, error) {
	if rg.Unread {
		ingested, _ := drop.Ingest(ctx, b, 0) // what cannot be ingested now stays where it is
		rg.Listed = ingested.Unread
	}
	return b.Walk(rg, f)
}

// Counts says how many messages wait in a mailbox. Unread leaves out the leased ones, those that were set aside and those
// that are not due. Bad are the files that BadFiles lists.
type Counts struct{ Unread, Leased, Aside, Later, Owed, Bad int }

// Count ingests dropped files and counts messages without opening them. With an error it returns what it could count.
func Count(ctx context.Context, b *maildir.Box) (c Counts, err error) {
	ingested, err := drop.Ingest(ctx, b, 0)                                              // what cannot be ingested now stays where it is
	if errors.Is(err, maildir.ErrNoMailbox) || errors.Is(err, durable.ErrNotDirectory) { // a link to another's is no mailbox
		return c, err
	}
	unread, err := ingested.Unread, error(nil)
	if unread == nil {
		unread, err = b.List(b.Unread())
	}
	held, heldErr := b.Held()
	notDue := b.NotDue(held)
	c.Unread = unread.Len()
	for id, h := range held {
		switch {
		case h.IsLiveLease(time.Now()):
			c.Leased++
		case h.Kind == holder.Aside:
			c.Aside++
		case notDue[id]:
			c.Later++
		default:
			c.Unread++
		}
	}
	owed, owedErr := b.List(b.Owed())
	c.Owed = owed.Len()
	bad, badErr := drop.CountBad(b, ingested)
	c.Bad = bad
	return c, cmp.Or(err, heldErr, owedErr, badErr)
}

// dueFor is how long a day of done messages is searched for overdue answers after its last change.
const dueFor = 14 * 24 * time.Hour

// Due lists the unread, owed and recently read messages that have a due date, also those that gc has archived, but for
// expired ones. Some may have been answered. Files that were just dropped count from the next look at the inbox on.
func Due(b *maildir.Box) (due []*wire.Item, err error) {
	now := time.Now()
	rg := maildir.Range{Unread: true, Owed: true, Done: true, Archive: true, Since: now.Add(-dueFor), With: headers.HasDue}
	_, err = b.Walk(rg, func(it *wire.Item) bool {
		if !it.Expired(now) {
			due = append(due, it)
		}
		return true
	})
	return due, err
}
