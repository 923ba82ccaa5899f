package post

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// GiveJob leases the next job of a shared inbox to a member, for atm take and for those that serve the inbox: the oldest urgent
// one, else the oldest, but for expired ones, those that the inbox's from keeps, and those that the member has declined. A
// job that was acked is done, whatever kept it from moving; one that was given out often enough in vain is set aside. show is
// as in claim.Lease.
func GiveJob(ctx context.Context, t *teamdir.Team, from wire.Name, to wire.Address, d time.Duration, show func(*wire.Item, wire.Lease) (received bool, err error)) (it *wire.Item, err error) {
	box := t.Box(from)
	if err := endTries(ctx, t, box); err != nil {
		return nil, err
	}
	isIn := t.NotKept(from)
	mayGive := func(it *wire.Item) bool {
		isDeclined := it.TimesHandedOut > 0 && slices.Contains(Decliners(box, it.ID), to)
		return (isIn == nil || isIn(it)) && !isDeclined
	}
	for _, urgent := range []bool{true, false} {
		it, err = claim.Lease(ctx, box, to, d, inbox.ReadOptions{Current: true, Match: func(it *wire.Item) bool {
			return (it.Urgent() || !urgent) && mayGive(it)
		}}, show)
		if it != nil || err != nil {
			break
		}
	}
	return it, err
}

// endTries looks after the jobs whose lease has ended.
func endTries(ctx context.Context, t *teamdir.Team, box *maildir.Box) error {
	held, err := box.Held()
	now := time.Now()
	for id, h := range held {
		if h.Kind != holder.Lease || h.IsLive(now, false) {
			continue
		}
		it, failed := box.Get(id)
		switch {
		case failed != nil: // it is done meanwhile, or cannot be read
		case isAcked(t.Root(), it.Message, box.Address()):
			failed = box.MarkAcked(ctx, id, box.Address())
		case h.Times >= t.Tries(box.Agent()):
			failed = setAside(ctx, t, box, it, h)
		}
		_, isTaken := errors.AsType[*maildir.LeasedError](failed) // by somebody just now
		if !isTaken && !errors.Is(failed, maildir.ErrNotFound) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func isAcked(r *teamdir.Root, m *wire.Message, recipient wire.Address) bool {
	ack, err := AckOf(r, m, recipient)
	return err == nil && ack.Outcome() != "declined"
}

// setAside tells the sender of a job that nobody gets it any more, and then does so.
func setAside(ctx context.Context, t *teamdir.Team, box *maildir.Box, it *wire.Item, h holder.Holder) error {
	id, queue := it.ID.Short(6), box.Agent()
	why := fmt.Sprintf("it was given out %d times, and nobody finished it", h.Times)
	if no := Decliners(box, it.ID); len(no) > 0 {
		var names []string
		for _, a := range no {
			names = append(names, string(a.Agent))
		}
		why += "; declined by " + strings.Join(names, ", ")
	}
	told := &wire.Message{
		ID:   wire.Derive(fmt.Sprint("set aside ", h.Since.UnixMilli()), it.ID, box.Address()),
		Type: wire.TypeNotice, InReplyTo: it.ID, Thread: it.ThreadID(), ReplyWanted: "no",
		Subject: "set aside: " + it.Title(),
		Body:    fmt.Sprintf("%s took your message %s out of the queue: %s.\natm unread %s --as %s puts it back, atm withdraw %s takes it back.", queue, id, why, id, queue, id),
	}
	_, err := Send(ctx, t.Root(), &Outgoing{From: box, To: []wire.Address{it.From}, Message: told, Derived: IsNoticeFrom(box.Address())})
	if err != nil && !errors.Is(err, maildir.ErrNoMailbox) && !errors.Is(err, teamdir.ErrNoTeam) {
		return err
	}
	return box.Locked(ctx, "reader", func() error { return box.HandTo(it.ID, h, h.SetAside()) })
}

// Decliners lists the members that gave a job back since they will not do it, the last one first.
func Decliners(box *maildir.Box, id wire.ID) (by []wire.Address) {
	since := id.Time().Add(-24 * time.Hour) // clocks differ
	box.Log().Tail(func(e *wire.Event) bool {
		if e.Kind == wire.EventReturned && e.MessageID() == id && e.Field("outcome") == "declined" {
			if a, err := wire.ParseAddress(e.Field(wire.FieldBy), box.Address().Team); err == nil {
				by = append(by, a)
			}
		}
		return e.At.Before(since)
	})
	return by
}

// passOn gives back a job that a member declines, for the next one who serves its inbox. It reports false, and does nothing, if
// nobody is left to do it: then the sender gets the member's ack.
func passOn(ctx context.Context, r *teamdir.Root, me, box *maildir.Box, m *wire.Message, why string) (isPassed bool, err error) {
	t, err := r.Team(box.Address().Team)
	if err != nil {
		return false, err
	}
	no := append(Decliners(box, m.ID), me.Address(), m.From)
	isLeft := slices.ContainsFunc(t.Takers(box.Agent()), func(n wire.Name) bool { return !slices.Contains(no, t.Box(n).Address()) })
	if !isLeft {
		return false, nil
	}
	return true, claim.EndLease(ctx, box, m.ID, me.Address(), "outcome", "declined", "text", wire.Clip(why, 4096))
}

// tellTaker tells a member that a job which it has taken was withdrawn.
func tellTaker(ctx context.Context, r *teamdir.Root, me *maildir.Box, m *wire.Message, taker wire.Address, origin *wire.Origin) error {
	told := withdrawnNotice(m, taker, "which you had taken", origin)
	_, err := Send(ctx, r, &Outgoing{From: me, To: []wire.Address{taker}, Message: told, Derived: IsNoticeFrom(me.Address())})
	return err
}
