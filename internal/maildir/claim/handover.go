package claim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

const hookIngestTime = 4 * time.Second // how long a hook goes on reading dropped files: its program waits for 10 s

// maxPushed is how many pushed messages may wait in a session: Claude Code drops what is more than 30 at a time of one
// sender. The others go out with its hooks.
const maxPushed = 20

// sameMoment is how far apart the two calls of a hook that is installed twice may be.
const sameMoment = 2 * time.Second

// Given is an unread message that a session of the agent's program has, or had last, and is not known to have received.
type Given struct {
	ID wire.ID
	To holder.Holder
}

// IsLive reports whether the message is not given again yet.
func (g Given) IsLive(now time.Time) bool { return g.To.IsLive(now, false) }

// IsOf reports whether a session's handover gave the message, perhaps in another process. isAmbiguous: a later one may be
// called the same, and only those at the same moment count as one.
func (g Given) IsOf(to holder.Holder, isAmbiguous bool) bool {
	isNamed := g.To.Session() == to.Session() && g.To.Call == to.Call && to.Call != ""
	return isNamed && (!isAmbiguous || to.Since.Sub(g.To.Since).Abs() < sameMoment)
}

// AllGiven lists the messages that were handed over to sessions, oldest first.
func AllGiven(b *maildir.Box) (given []Given) {
	held, _ := b.Held()
	for _, id := range slices.Sorted(maps.Keys(held)) {
		if h := held[id]; h.Session() != "" {
			given = append(given, Given{id, h})
		}
	}
	return given
}

// Settle says what became of messages that were handed over, as effectOf tells of each: MarkRead, Repeat, or Nothing. It
// returns the events message_read for the caller to append. A message that cannot be moved does not hold up the others.
//
// A look without the lock comes first, so that no lock is taken where there is nothing to settle. Of mail that changes hands
// meanwhile, since whoever gives it is just recording that it was sent, effectOf is asked again under the lock. isThere says
// that the caller knows of mail that the first look may miss.
func Settle(ctx context.Context, b *maildir.Box, isThere bool, effectOf func(Given) delivery.Effect) (events []wire.Event, err error) {
	effects, isOver := map[Given]delivery.Effect{}, isThere
	for _, g := range AllGiven(b) {
		effects[g] = effectOf(g)
		isOver = isOver || effects[g] != delivery.Nothing
	}
	if !isOver {
		return nil, nil
	}
	batch := wire.NewID()
	err = b.Locked(ctx, "reader", func() (errs error) {
		for _, g := range AllGiven(b) {
			effect, isKnown := effects[g]
			if !isKnown {
				effect = effectOf(g)
			}
			switch effect {
			case delivery.Repeat:
				errs = errors.Join(errs, ignoreGone(b.HandTo(g.ID, g.To, g.To.Ended())))
			case delivery.MarkRead:
				it, err := markRead(b, g)
				if it != nil {
					events = append(events, b.WithType(hookEvent(g.To, wire.EventRead, g.ID).With("batch", string(batch)), it))
				}
				errs = errors.Join(errs, ignoreGone(err))
			}
		}
		return errs
	})
	return events, err
}

// markRead moves a message as read, and returns it; nil: it cannot be read.
func markRead(b *maildir.Box, g Given) (*wire.Item, error) {
	it, err := b.Open(b.HeldBy(g.To), g.ID)
	if err == nil {
		err = b.Move(g.ID, b.HeldBy(g.To), b.AfterRead(it.Message))
	}
	if bad, isBad := errors.AsType[*maildir.BadError](err); isBad {
		it, err = nil, nil
		if bad.Unreadable == nil { // nobody can have received it
			err = b.HandTo(g.ID, g.To, holder.Holder{})
		}
	}
	if err != nil {
		return nil, err
	}
	return it, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, maildir.ErrNotFound) {
		return nil
	}
	return err
}

// HandOver selects unread, unclaimed messages as Read does and gives them to a session of the agent's program, if the store
// may act. Mail may be lost on that way, as when the program is killed or gives up waiting. So it stays unread, held by
// the session, until Settle says that it was received. If that does not come, a message is handed over once more, marked as
// a repeat; after that only Read shows it.
//
// The caller calls Sent or Release after it. The Claim is never nil. Without mail no lock is taken.
func HandOver(ctx context.Context, b *maildir.Box, to holder.Holder, isAmbiguous bool, opt inbox.ReadOptions) (*Claim, error) {
	h := &Claim{}
	patience := drop.Patience
	if to.Kind == holder.Push {
		patience = 0
	}
	ids, err := lookForHook(ctx, b, patience)
	if err != nil || len(ids) == 0 {
		return h, err
	}
	opt.IDs, opt.CountsAll = append([]wire.ID{}, ids...), true // no message that comes after the look; an agent waits for its hook
	err = b.Locked(ctx, "reader", func() error {
		held, err := b.Held()
		if err != nil {
			return err
		}
		room := maxPushed
		for id, by := range held {
			g := Given{id, by}
			h.IsRepeated = h.IsRepeated || g.IsLive(to.Since) && g.IsOf(to, isAmbiguous)
			if g.IsLive(to.Since) && by.Kind == to.Kind && by.Who == to.Who {
				room--
			}
		}
		if to.Kind == holder.Push {
			if h.IsFull = room <= 0; h.IsFull {
				return nil
			}
			opt.Limit = min(cmp.Or(opt.Limit, room), room)
		}
		skipped, givenUp := notForHooks(held, ids, to.Since, b.IsRunning())
		h.GivenUp = givenUp
		return h.take(b, to, opt, held, skipped)
	})
	if err != nil { // nothing is claimed, so nothing may be answered
		h = &Claim{Batch: inbox.Batch{More: h.More + len(h.Items)}, GivenUp: h.GivenUp}
	}
	return h, err
}

// notForHooks returns the unread messages that hooks do not hand over: those that somebody has and, givenUp, those that were
// handed over too often in vain.
func notForHooks(held maildir.Held, unread []wire.ID, now time.Time, isRunning bool) (skipped maildir.Held, givenUp int) {
	skipped = held.Live(now, isRunning)
	for _, id := range unread {
		if _, isLive := skipped[id]; !isLive && held[id].IsGivenUp() {
			skipped[id] = held[id]
			givenUp++
		}
	}
	return skipped, givenUp
}

// lookForHook ingests dropped files, for which it waits, and lists the unread messages, if they may go out.
func lookForHook(ctx context.Context, b *maildir.Box, patience time.Duration) (ids []wire.ID, err error) {
	if err := b.CheckPresent(); err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, hookIngestTime)
	ingested, _ := drop.Ingest(limited, b, patience) // what cannot be ingested now stays where it is
	stop()
	if ids, err = b.UnreadFrom(ingested.Unread); err == nil && len(ids) > 0 {
		err = b.Store().MayAct(ctx)
	}
	return ids, err
}

func hookEvent(h holder.Holder, kind string, id wire.ID) wire.Event {
	e := maildir.Event(wire.SourceHook, kind, id)
	e.Session = h.Session()
	return e
}
