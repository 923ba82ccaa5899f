package claim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

const hookIngestTime = 4 * time.Second // how long a hook goes on reading dropped files: its program waits for 10 s

// maxPushed is how many pushed messages may wait in a session: Claude Code drops what is more than 30 at a time of one
// sender. The others go out with its hooks.
const maxPushed = 20

// sameMoment is how far apart the two calls of a hook that is installed twice may be.
const sameMoment = 2 * time.Second

// Recipient is a session of the agent's program to which mail is handed over. It may be lost, as when the program is
// killed or gives up waiting. So it stays unread, claimed by Owner, until Settle says that it was received. If that does
// not come, the message is handed over once more, marked as a repeat; after that only Read shows it.
type Recipient struct {
	claimfile.Owner           // see OfSession and PushedTo
	Call            string    // identifies the handover among those to the session; "": none is the same
	IsAmbiguous     bool      // a later one may have the same Call: only those at the same moment count as one
	Now             time.Time // zero: now
}

// Given is an unread message that was handed over and is not known to be received.
type Given struct {
	ID     wire.ID
	To     Recipient // Now is when
	IsSent bool      // the program has got it
	IsLive bool      // it is not handed over again, yet
}

// IsOf reports whether this handover gave the message, perhaps in another process.
func (g Given) IsOf(to Recipient) bool {
	isNamed := g.To.Session() == to.Session() && g.To.Call == to.Call && to.Call != ""
	return isNamed && (!to.IsAmbiguous || to.Now.Sub(g.To.Now).Abs() < sameMoment)
}

// AllGiven lists the messages that were handed over to sessions, oldest first.
func AllGiven(b *maildir.Box, now time.Time) []Given { return givenIn(b.Claims(), now) }

func givenIn(all claimfile.Table, now time.Time) (given []Given) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if c := all[id]; c.Owner.Session() != "" {
			given = append(given, Given{id, Recipient{Owner: c.Owner, Call: c.Call, Now: c.At}, c.Offered, c.IsLive(now, false)})
		}
	}
	return given
}

// Settle says what became of messages that were handed over. Those that their recipient has received are marked as read; it
// returns the events message_read for the caller to append. Those that may be lost are handed over once more. A message that
// cannot be moved does not hold up the others. With neither no lock is taken.
func Settle(ctx context.Context, b *maildir.Box, received, lost []Given, now time.Time) (events []wire.Event, err error) {
	if len(received)+len(lost) == 0 {
		return nil, nil
	}
	batch := wire.NewID()
	var errs error
	err = b.Update(ctx, func(t *maildir.Tx) error {
		isAsGiven := func(g Given) bool {
			c := t.Claims[g.ID]
			return c.Owner == g.To.Owner && c.At.Equal(g.To.Now)
		}
		for _, g := range lost {
			if isAsGiven(g) {
				t.Claims[g.ID] = t.Claims[g.ID].EndedAt(claimfile.Moment(now))
			}
		}
		for _, g := range received {
			if !isAsGiven(g) {
				continue
			}
			it, err := t.MoveToRead(g.ID)
			bad, isBad := errors.AsType[*maildir.BadError](err)
			switch {
			case err == nil:
				events = append(events, b.WithType(hookEvent(g.To.Owner, wire.EventRead, g.ID).With("batch", string(batch)), it))
			case isBad && bad.Unreadable != nil:
				continue
			case !isBad && !errors.Is(err, maildir.ErrNotFound):
				errs = err
				continue
			}
			delete(t.Claims, g.ID)
		}
		return nil
	})
	return events, errors.Join(errs, err)
}

// HandOver selects unread, unclaimed messages as Read does and claims them for a session, if the store may act. The
// caller calls Sent or Release after it. The Claim is never nil. Without mail no lock is taken.
func HandOver(ctx context.Context, b *maildir.Box, to Recipient, opt inbox.ReadOptions) (*Claim, error) {
	h := &Claim{}
	if to.Now.IsZero() {
		to.Now = time.Now()
	}
	ids, err := lookForHook(ctx, b)
	if err != nil || len(ids) == 0 {
		return h, err
	}
	opt.IDs, opt.CountsAll = append([]wire.ID{}, ids...), true // no message that comes after the look; an agent waits for its hook
	now := claimfile.Moment(to.Now)
	err = b.Update(ctx, func(t *maildir.Tx) error {
		room := maxPushed
		for _, g := range givenIn(t.Claims, now) {
			h.IsRepeated = h.IsRepeated || g.IsLive && g.IsOf(to)
			if g.IsLive && g.To.Owner == to.Owner {
				room--
			}
		}
		if to.IsPush() {
			if h.IsFull = room <= 0; h.IsFull {
				return nil
			}
			opt.Limit = min(cmp.Or(opt.Limit, room), room)
		}
		skipped, givenUp := notForHooks(t.Claims, ids, now, b.IsRunning())
		h.GivenUp = givenUp
		return h.take(t, claimfile.Entry{Owner: to.Owner, Call: to.Call, At: now, Until: now.Add(answerTime)}, opt, skipped)
	})
	if err != nil { // nothing is claimed, so nothing may be answered
		h = &Claim{Batch: inbox.Batch{More: h.More + len(h.Items)}, GivenUp: h.GivenUp}
	}
	return h, err
}

// notForHooks returns the claims of unread messages that hooks do not hand over: those that are live and, of givenUp others,
// those that were handed over too often in vain.
func notForHooks(all claimfile.Table, unread []wire.ID, now time.Time, isRunning bool) (skipped claimfile.Table, givenUp int) {
	skipped = all.Live(now, isRunning)
	for _, id := range unread {
		if _, isLive := skipped[id]; !isLive && all[id].IsGivenUp() {
			skipped[id] = all[id]
			givenUp++
		}
	}
	return skipped, givenUp
}

// lookForHook ingests dropped files and lists the unread messages, if they may go out.
func lookForHook(ctx context.Context, b *maildir.Box) (ids []wire.ID, err error) {
	if err := b.CheckPresent(); err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, hookIngestTime)
	ingested, _ := drop.IngestUnlessMail(limited, b) // what cannot be ingested now stays where it is
	stop()
	if ingested.Unread != nil {
		ids = ingested.Unread.IDs()
	} else {
		ids, err = b.UnreadIDs()
	}
	if err == nil && len(ids) > 0 {
		err = b.Store().MayAct(ctx)
	}
	return ids, err
}

func hookEvent(o claimfile.Owner, kind string, id wire.ID) wire.Event {
	e := maildir.Event(wire.SourceHook, kind, id)
	e.Session = o.Session()
	return e
}
