package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/wire"
)

const (
	atOnce      = 100             // how many messages are delivered at once
	atOnceSize  = 16 << 20        // their bytes, but for the last one
	deliverTime = 2 * time.Second // for which a call of DeliverLater goes on
)

// DeliverLater delivers the messages that are due, unless another process does that now, or nothing in the store may act.
// While nothing is due, it costs one look into a directory. next is when the next one is due; zero: none is known.
//
// What cannot be delivered now, as on a full disk, stays and is tried again. What can not be delivered at all is set
// aside, and its sender gets a notice.
func DeliverLater(ctx context.Context, t *teamdir.Team) (next time.Time, err error) {
	return deliverFor(ctx, t, deliverTime)
}

// DeliverSome is DeliverLater for what others wait for: of much that is due it delivers a hundred messages.
func DeliverSome(ctx context.Context, t *teamdir.Team) { deliverFor(ctx, t, 0) }

// deliverFor delivers what is due, the first of it anyhow and the rest for as long as d, and goes on after an error.
func deliverFor(ctx context.Context, t *teamdir.Team, d time.Duration) (next time.Time, errs error) {
	due, next, err := dueLater(t)
	if err != nil || len(due) == 0 {
		return next, err
	}
	var all []*maildir.Post
	for until := time.Now().Add(d); len(due) > 0 && ctx.Err() == nil; {
		n, posts, err := deliverSome(ctx, t, due, 0)
		if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld {
			next, due = time.Time{}, nil
			break
		}
		due, all, errs = due[n:], append(all, posts...), errors.Join(errs, err)
		if n == 0 || !time.Now().Before(until) {
			break
		}
	}
	push.All(ctx, t.Root(), all)
	if len(due) > 0 && errs == nil {
		next = due[0].At
	}
	return next, errs
}

// dueLater lists the messages that are due, and returns the time of the next one.
func dueLater(t *teamdir.Team) (due []Later, next time.Time, err error) {
	all, err := ListLater(t, ToBeSent)
	all = slices.DeleteFunc(all, func(l Later) bool { return l.Waits })
	n, now := len(all), time.Now()
	if first := slices.IndexFunc(all, func(l Later) bool { return l.At.After(now) }); first >= 0 {
		n, next = first, all[first].At
	}
	return all[:n], next, err
}

// leaving is a message that is being delivered when it is due.
type leaving struct {
	Later
	post    *maildir.Post
	unknown []error // why recipients cannot get it, until somebody does something about it
	err     error   // why it cannot be delivered now
}

// deliverSome delivers the first of some messages side by side, and returns how many are over with for now. It waits so long
// for the lock. Those that came or went before it had the lock stay what they are.
func deliverSome(ctx context.Context, t *teamdir.Team, due []Later, timeout time.Duration) (n int, posts []*maildir.Post, errs error) {
	var all []*leaving
	bad, size := map[Later]string{}, 0
	for n < min(len(due), atOnce) && size < atOnceSize {
		l := due[n]
		n++
		m, err := LaterMessage(t, l)
		wrong, isBad := errors.AsType[*maildir.BadError](err)
		switch {
		case err == nil:
			all = append(all, prepareLeaving(t, l, m))
			size += len(m.Body) + len(m.Payload) + len(m.Meta) + len(m.Extra)
		case isBad && wrong.Unreadable == nil:
			bad[l] = wrong.Reason
		case !errors.Is(err, maildir.ErrNotFound):
			errs = errors.Join(errs, err)
		}
	}
	if err := t.Store.MayAct(ctx); err != nil { // before the lock: it may ask git
		return len(due), nil, err
	}
	lock, err := lockLater(ctx, t, timeout)
	if err != nil {
		return 0, nil, err
	}
	defer lock.Unlock()
	isGone := func(l Later) bool { // delivered or withdrawn meanwhile
		isThere, err := t.Dir().Exists(l.file())
		return err == nil && !isThere
	}
	for l, reason := range bad {
		if !isGone(l) {
			errs = errors.Join(errs, setLaterAside(t, l, nil, reason))
		}
	}
	var told []*maildir.Post
	all = slices.DeleteFunc(all, func(out *leaving) bool {
		if isGone(out.Later) || len(After(out.post.Message)) == 0 {
			return isGone(out.Later)
		}
		isFree, notices, err := hold(ctx, t, out.Later, out.post.Message)
		if told = append(told, notices...); errors.Is(err, maildir.ErrNotFound) { // what it waits for
			out.unknown, isFree = append(out.unknown, fmt.Errorf("it waits for a message that is not there: %w", err)), true
			out.post.To, err = nil, nil
		}
		errs = errors.Join(errs, err)
		return !isFree
	})
	for _, out := range all {
		posts = append(posts, out.post)
	}
	maildir.Deliver(ctx, posts...)
	for _, out := range all {
		errs = errors.Join(errs, finishLeaving(ctx, t, out))
	}
	return n, append(posts, told...), errors.Join(errs, t.Dir().Sync(teamdir.LaterDir))
}

func prepareLeaving(t *teamdir.Team, l Later, m *wire.Message) *leaving {
	out := &leaving{Later: l, post: &maildir.Post{Message: m, Given: true}}
	if sender := t.Box(l.From); sender.Exists() {
		out.post.Sender = sender
	}
	for _, a := range unique(m.To) {
		switch box, err := recipient(t.Root(), m.From, a); {
		case err == nil:
			out.post.To = append(out.post.To, box)
		case isFinal(err):
			out.unknown = append(out.unknown, err)
		default:
			out.err = cmp.Or(out.err, err)
		}
	}
	return out
}

// LaterObstacle returns why a message cannot be delivered now to a recipient who may get it later; nil: nothing is known.
func LaterObstacle(t *teamdir.Team, l Later) error {
	m, err := LaterMessage(t, l)
	if err != nil {
		return nil
	}
	return prepareLeaving(t, l, m).err
}

// isFinal reports whether an error says that a recipient cannot get a message until somebody does something about it. Which
// hosts are trusted may depend on the environment of a process: another one may know this one.
func isFinal(err error) bool {
	if _, isHost := errors.AsType[*teamdir.UnknownHostError](err); isHost {
		return false
	}
	_, isTaken := errors.AsType[*maildir.IDTakenError](err)
	_, isContent := errors.AsType[*maildir.ContentError](err)
	return isTaken || isContent || errors.Is(err, maildir.ErrNoAgent) || errors.Is(err, teamdir.ErrNoTeam)
}

// finishLeaving removes a message that all recipients have, or sets it aside for those that cannot get it. Otherwise it
// stays, and is tried again: those that have it do not get it twice.
func finishLeaving(ctx context.Context, t *teamdir.Team, out *leaving) error {
	for _, o := range out.post.Outcomes {
		if isFinal(o.Err) {
			out.unknown = append(out.unknown, o.Err)
		} else {
			out.err = cmp.Or(out.err, o.Err)
		}
	}
	m := out.post.Message
	switch {
	case out.err != nil:
		return out.err
	case len(out.unknown) == 0:
		forget(t, out.Later, After(m)...)
		return t.Dir().Remove(out.file())
	}
	reason := (&teamdir.UnreadableError{Err: errors.Join(out.unknown...)}).Error()
	_, err := tellSender(ctx, t, out.Later, m, "undelivered", "not delivered: ",
		fmt.Sprintf("Your message %s was not delivered: %s. To try again: atm retry %s", m.ID.Short(6), reason, m.ID.Short(6)))
	if err != nil {
		return err
	}
	return setLaterAside(t, out.Later, m, reason)
}

// setLaterAside moves a message that cannot be delivered out of the way. m is nil if the file is no message. The lock is
// held.
func setLaterAside(t *teamdir.Team, l Later, m *wire.Message, reason string) error {
	to := l
	to.State = Undelivered
	if err := t.Dir().MkdirAll(laterDirs[Undelivered]); err != nil {
		return err
	}
	t.Dir().Replace(to.file()+presence.ReasonSuffix, []byte(reason+"\n"), false) // for people, so an error does not matter
	if m != nil {
		t.Box(l.From).NoteSent(m)
	}
	return moveLater(t, l, Undelivered)
}
