package post

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// Held is a message that a member has: in its mailbox, or in the shared one from which it has taken it.
type Held struct {
	*wire.Item
	Box      *maildir.Box
	IsLeased bool
}

// FindHeld says where a member has a message that Find has found; withFinished, since an ack may be repeated, also where it
// had it and has finished it. The error is a *maildir.LeasedError, maildir.ErrNotHeld or a *NotYoursError.
func FindHeld(ctx context.Context, r *teamdir.Root, me *maildir.Box, it *wire.Item, box *maildir.Box, withFinished bool) (Held, error) {
	by := me.Address()
	from, err := FindLease(r, box, it.Message, by) // a box and an error: somebody else took it
	switch {
	case from != nil && err == nil:
		return Held{it, from, true}, nil
	case box.Address() == by && it.State != "" && it.Lease == nil:
		return Held{Item: it, Box: me}, nil
	case err != nil:
		return Held{}, err
	}
	if withFinished {
		answers := AnswersTo(ctx, r, it.Message)
		for _, to := range it.To {
			if box, err := r.Mailbox(to); err == nil && answers.HasFinished(it.Message, to, by) {
				return Held{Item: it, Box: box}, nil
			}
		}
	}
	for _, to := range it.To {
		box, err := r.Mailbox(to)
		if err != nil || to.Host != "" {
			continue
		}
		isShared, _ := claim.Shared(box)
		if job, err := box.Get(it.ID); isShared && err == nil && job.State == wire.Unread && job.Lease == nil {
			return Held{}, &NotYoursError{it.ID, to.Agent}
		}
	}
	return Held{}, &NotYoursError{ID: it.ID}
}

// NotYoursError is a maildir.ErrNotFound for a message that its finder does not have.
type NotYoursError struct {
	ID    wire.ID
	Inbox wire.Name // the shared one where anybody may take it; "": there is none
}

func (e *NotYoursError) Error() string {
	if e.Inbox != "" {
		return fmt.Sprintf("nobody has taken %s from %s", e.ID.Short(6), e.Inbox)
	}
	return fmt.Sprintf("message %s is not in your inbox", e.ID.Short(6))
}
func (e *NotYoursError) Is(target error) bool { return target == maildir.ErrNotFound }

// FindLease returns the mailbox, box or a recipient's, in which a member has taken an unread message under a lease; nil
// if there is none. If somebody else has taken it, the error is a *maildir.LeasedError or, after that lease has
// expired, maildir.ErrNotHeld.
func FindLease(r *teamdir.Root, box *maildir.Box, m *wire.Message, by wire.Address) (from *maildir.Box, err error) {
	for _, a := range append([]wire.Address{box.Address()}, m.To...) {
		if a.Host != "" { // no member here takes a message elsewhere
			continue
		}
		var lease wire.Lease
		isTaken := false
		b, bad := r.Mailbox(a)
		if bad == nil {
			lease, isTaken, bad = claim.LastLease(b, m.ID)
		}
		switch {
		case errors.Is(bad, maildir.ErrNoMailbox) || errors.Is(bad, teamdir.ErrNoTeam):
		case bad != nil:
			return nil, bad
		case lease.By == by:
			return b, nil
		case lease.Until.After(time.Now()):
			from, err = b, &maildir.LeasedError{ID: m.ID, Lease: lease}
		case isTaken:
			from, err = b, fmt.Errorf("message %s %w", m.ID.Short(6), maildir.ErrNotHeld)
		}
	}
	return from, err
}
