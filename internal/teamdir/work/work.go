// Package work has members take messages from shared inboxes by themselves.
package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Taker takes messages from shared inboxes for a member, one at a time: it leases the message, and sends the member a notice
// with its text and how to ack it, which is given to its program like all its mail. So a message of a member that is killed,
// or never acks, is given out again when the lease ends, and says so.
type Taker struct {
	Team  *teamdir.Team
	Agent wire.Name
	From  []wire.Name   // shared inboxes; the first that has something is taken from
	Lease time.Duration // for how long a message is the member's

	Origin *wire.Origin // of the notices; nil: a command's
}

// workBytes is how much of a message stands in the notice.
const workBytes = 6 << 10

// Of returns the message of a shared inbox that a notice of Take hands over; "": it is another message.
func Of(m *wire.Message) wire.ID {
	id := m.MetaString("work")
	if m.Type != wire.TypeNotice || m.IsDropped() || !wire.IsID(id) {
		return ""
	}
	return wire.ID(id)
}

// Take takes the next message for a member that is free, unless it holds one, has mail of its own or a paused session, or
// somebody else does this for it now. Nothing is taken that may not act.
func (w Taker) Take(ctx context.Context) (isTaken bool, err error) {
	if isAny, err := w.isAny(ctx); err != nil || !isAny {
		return false, err
	}
	if err := w.Team.Store.MayAct(ctx); err != nil { // before the lock: it may ask git
		return false, err
	}
	lock, err := w.Team.Locks().Lock(ctx, string(w.Agent)+".work", lockfile.Exclusive, 0, nil)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer lock.Unlock()
	if isFree, err := w.isFree(ctx); err != nil || !isFree {
		return false, err
	}
	me := w.Team.Box(w.Agent).Address()
	for _, name := range w.From {
		box := w.Team.Box(name)
		if shared, err := claim.Shared(box); err != nil || !shared {
			continue
		}
		var lease wire.Lease
		it, err := post.GiveJob(ctx, w.Team, name, me, w.Lease, func(_ *wire.Item, l wire.Lease) (bool, error) {
			lease = l
			return true, nil
		})
		if it != nil && err == nil {
			if err = w.tell(ctx, box, it, lease); err != nil {
				claim.EndLease(ctx, box, it.ID, me)
			}
		}
		if it != nil || err != nil {
			return it != nil && err == nil, err
		}
	}
	return false, nil
}

// Look takes the next message for a member that is free, or keeps what one that is at work has.
func (w Taker) Look(ctx context.Context, isFree bool) (err error) {
	if !isFree {
		return w.keep(ctx)
	}
	_, err = w.Take(ctx)
	return err
}

// isAny reports whether the inboxes have a message for anybody, and the member holds none of them.
func (w Taker) isAny(ctx context.Context) (bool, error) {
	for _, name := range w.From {
		isAny, err := claim.IsAnyFree(ctx, w.Team.Box(name))
		if err != nil && !errors.Is(err, maildir.ErrNoMailbox) {
			return false, err
		}
		if isAny {
			held, err := w.held()
			return len(held) == 0, err
		}
	}
	return false, nil
}

// held returns the mailboxes of the messages that the member holds.
func (w Taker) held() (held map[wire.ID]*maildir.Box, err error) {
	held = map[wire.ID]*maildir.Box{}
	for _, name := range w.From {
		box := w.Team.Box(name)
		ids, err := claim.LeasedBy(box, w.Team.Box(w.Agent).Address())
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			held[id] = box
		}
	}
	return held, nil
}

// isFree reports whether the member may take something: see Take. It withdraws what was handed over to it, and never read,
// of what it does not hold any more.
func (w Taker) isFree(ctx context.Context) (bool, error) {
	held, err := w.held()
	if len(held) > 0 || err != nil {
		return false, err
	}
	list, _ := w.Team.Sessions().Of(w.Agent) // an unreadable session withholds nothing
	if slices.ContainsFunc(list, func(s *session.Session) bool { return s.State == session.Paused }) {
		return false, nil
	}
	return w.forget(ctx)
}

// forget withdraws the unread notices of what the member does not hold, and reports whether there is no other mail to give
// it.
func (w Taker) forget(ctx context.Context) (isEmpty bool, err error) {
	me := w.Team.Box(w.Agent)
	ids, err := me.UnreadIDs()
	holds := w.Team.Holds(w.Agent)
	for _, id := range ids {
		it, failed := me.Get(id)
		switch {
		case errors.Is(failed, maildir.ErrNotFound): // read just now
		case failed != nil:
			return false, failed
		case Of(it.Message) != "":
			if isWithdrawn, err := withdrawUngiven(ctx, me, it); !isWithdrawn || err != nil {
				return false, err
			}
		case !it.Expired(time.Now()) && holds(it.Message).Why == "":
			return false, err
		}
	}
	return err == nil, err
}

// withdrawUngiven withdraws an unread notice, unless the member is just being given it.
func withdrawUngiven(ctx context.Context, me *maildir.Box, it *wire.Item) (isWithdrawn bool, err error) {
	state, err := me.Withdraw(ctx, it.ID, it.From)
	if errors.Is(err, maildir.ErrBeingTyped) || err == nil && state != wire.Unread {
		return false, nil
	}
	return err == nil, err
}

// tell sends the member a message that it has taken.
func (w Taker) tell(ctx context.Context, from *maildir.Box, it *wire.Item, lease wire.Lease) error {
	me, id := w.Team.Box(w.Agent), it.ID.Short(6)
	before := ""
	if it.TimesHandedOut > 0 {
		before = " It was given out before, and not finished: somebody may have begun."
	}
	l := &letter.Renderer{Now: time.Now(), Team: w.Team.Name, Bytes: workBytes}
	notice := &wire.Message{
		ID:   wire.Derive(fmt.Sprint("work ", it.TimesHandedOut), it.ID, me.Address()),
		Type: wire.TypeNotice, From: from.Address(), To: []wire.Address{me.Address()}, Thread: it.ThreadID(),
		ReplyWanted: "no", SentAt: time.Now().UTC(), ExpiresAt: lease.Until.UTC(), Origin: post.OrCommand(w.Origin),
		Body: fmt.Sprintf("This is yours until %s.%s When it is done: atm ack %s --done \"…\"; if not: --blocked or --declined, or atm unread %s gives it back. You get the next one after that.\n%s",
			letter.Stamp(lease.Until), before, id, id, l.Render(it.Message, letter.Flags{TimesTaken: it.TimesHandedOut})),
	}
	notice.SetMeta("work", wire.Quote(string(it.ID)))
	p := &maildir.Post{Message: notice, To: []*maildir.Box{me}, Derived: post.IsNoticeFrom(from.Address())}
	maildir.Deliver(ctx, p)
	return p.Outcomes[0].Err
}

// keep extends the leases of what the member holds.
func (w Taker) keep(ctx context.Context) error {
	held, err := w.held()
	for id, box := range held {
		lease, _, failed := claim.LastLease(box, id)
		if failed == nil && time.Until(lease.Until) < w.Lease*3/4 {
			_, failed = claim.RenewLease(ctx, box, id, lease.By, w.Lease)
		}
		err = cmp.Or(err, failed)
	}
	return err
}

// GiveBack gives back what the member holds, because its program has ended and a new one knows nothing of it. What that is
// just being given it keeps. Notices of anything else are not given any more.
func (w Taker) GiveBack(ctx context.Context) error {
	lock, err := w.Team.Locks().Lock(ctx, string(w.Agent)+".work", lockfile.Exclusive, w.Team.LockWait(), nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	held, errs := w.held()
	me := w.Team.Box(w.Agent)
	ids, err := me.UnreadIDs()
	errs = errors.Join(errs, err)
	for _, id := range ids {
		it, err := me.Get(id)
		if err != nil || Of(it.Message) == "" {
			continue
		}
		isWithdrawn, err := withdrawUngiven(ctx, me, it)
		if errs = errors.Join(errs, err); !isWithdrawn {
			delete(held, Of(it.Message))
		}
	}
	for id, box := range held {
		errs = errors.Join(errs, claim.EndLease(ctx, box, id, me.Address()))
	}
	return errs
}
