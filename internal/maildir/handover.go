package maildir

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

const hookIngestTime = 4 * time.Second // how long a hook goes on reading dropped files: its program waits for 10 s

// Recipient is a session of the agent's program to which mail is handed over. It may be lost, as when the program is
// killed or gives up waiting. So it stays unread, claimed by Owner, until Settle says that it was received. If that does
// not come, the message is handed over once more, marked as a repeat; after that only Read shows it.
type Recipient struct {
	Owner           // see OfSession and PushedTo
	Call  string    // identifies the handover among those to the session
	Now   time.Time // zero: now
}

// Given is an unread message that was handed over and is not known to be received.
type Given struct {
	ID     wire.ID
	To     Recipient // Now is when
	IsSent bool      // the program has got it
	IsLive bool      // it is not handed over again, yet
}

// Given lists the messages that were handed over to sessions, oldest first.
func (b *Box) Given(now time.Time) (given []Given) {
	all := b.claims()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if c := all[id]; c.Owner.Session() != "" {
			given = append(given, Given{id, Recipient{c.Owner, c.Call, c.At}, c.Offered, c.isLive(now, false)})
		}
	}
	return given
}

// isAsGiven reports whether the message is still claimed as it was when Given listed it.
func (t *tx) isAsGiven(g Given) bool {
	c := t.claims[g.ID]
	return c.Owner == g.To.Owner && c.At.Equal(g.To.Now)
}

// Settle marks messages as read that their recipient has received, and returns the events message_read for the caller to
// append. A message that cannot be moved does not hold up the others.
func (b *Box) Settle(ctx context.Context, received []Given) (events []wire.Event, err error) {
	if len(received) == 0 {
		return nil, nil
	}
	batch := wire.NewID()
	var errs error
	err = b.update(ctx, func(t *tx) error {
		for _, g := range received {
			if !t.isAsGiven(g) {
				continue
			}
			it, err := t.markRead(g.ID)
			bad, isBad := errors.AsType[*BadError](err)
			switch {
			case err == nil:
				events = append(events, b.WithType(g.To.event(wire.EventRead, g.ID).With("batch", string(batch)), it))
			case isBad && bad.Unreadable != nil:
				continue
			case !isBad && !errors.Is(err, ErrNotFound):
				errs = err
				continue
			}
			delete(t.claims, g.ID)
		}
		return nil
	})
	return events, errors.Join(errs, err)
}

// Expire says of messages that their recipient may not have received them: they are handed over once more.
func (b *Box) Expire(ctx context.Context, lost []Given, now time.Time) error {
	if len(lost) == 0 {
		return nil
	}
	return b.update(ctx, func(t *tx) error {
		for _, g := range lost {
			if t.isAsGiven(g) {
				t.claims[g.ID] = t.claims[g.ID].endedAt(inClaim(now))
			}
		}
		return nil
	})
}

// Handover is mail for a session. The caller calls Sent or Release after it.
type Handover struct {
	Claimed     // without Items there is no mail
	GivenUp int // unread messages that were handed over too often in vain
}

// HandOver selects unread, unclaimed messages as Read does and claims them for a session, if the store may act. The
// Handover is never nil. Without mail no lock is taken.
func (b *Box) HandOver(ctx context.Context, to Recipient, opt ReadOptions) (*Handover, error) {
	h := &Handover{}
	if to.Now.IsZero() {
		to.Now = time.Now()
	}
	ids, mayAct, err := b.lookForHook(ctx)
	if err != nil || len(ids) == 0 {
		return h, err
	}
	if mayAct != nil { // once more: the agent's next call may be far
		again := b.store.BeforeLook()
		if ids, err = b.UnreadIDs(); err == nil {
			err = again(ctx)
		}
		if err != nil {
			return h, err
		}
	}
	opt.IDs, opt.countsAll = append([]wire.ID{}, ids...), true // no message that comes after the look; an agent waits for its hook
	now := inClaim(to.Now)
	err = b.update(ctx, func(t *tx) (err error) {
		skipped := t.claims.live(now, b.isRunning())
		for _, id := range ids {
			if _, isLive := skipped[id]; !isLive && t.claims[id].isGivenUp() {
				skipped[id] = t.claims[id]
				h.GivenUp++
			}
		}
		h.Claimed, err = t.claim(claim{Owner: to.Owner, Call: to.Call, At: now, Until: now.Add(answerTime)}, opt, skipped)
		return err
	})
	if err != nil { // nothing is claimed, so nothing may be answered
		h.Claimed = Claimed{Batch: Batch{More: h.More + len(h.Items)}}
	}
	return h, err
}

// lookForHook ingests dropped files and lists the unread messages. mayAct is why none of them may go out; nil: they may.
func (b *Box) lookForHook(ctx context.Context) (ids []wire.ID, mayAct, err error) {
	if err := b.CheckPresent(); err != nil {
		return nil, nil, err
	}
	limited, stop := context.WithTimeout(ctx, hookIngestTime)
	b.ingestUnlessMail(limited) // what cannot be ingested now stays where it is
	stop()
	isAllowed := b.store.BeforeLook()
	if ids, err = b.UnreadIDs(); err == nil && len(ids) > 0 {
		mayAct = isAllowed(ctx)
	}
	return ids, mayAct, err
}

// Sent records that the mail was given to the program, and returns the events message_announced for the caller to append.
func (h *Handover) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range h.Items {
		announced = append(announced, h.claim.Owner.event(wire.EventAnnounced, it.ID))
	}
	return announced, h.update(ctx, func(_ wire.ID, c claim) claim {
		c.Offered, c.Until = true, c.At.Add(sessionTime)
		if c.Owner.is(ownerPush) {
			c.Until = c.At.Add(pushTime)
		}
		return c
	})
}

func (o Owner) event(kind string, id wire.ID) wire.Event {
	e := event("hook", kind, id)
	e.Session = o.Session()
	return e
}
