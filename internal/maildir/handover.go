package maildir

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/wire"
)

const (
	sessionClaim = 10 * time.Minute // how long a session's claim is live without a later call
	pushClaim    = time.Hour        // likewise of what was pushed: it may wait for the end of a tool or for a person
	answerTime   = 10 * time.Second // how long it may take to write an answer
	sameMoment   = 2 * time.Second  // how far apart the two calls of a hook that is installed twice may be

	hookIngestTime = 4 * time.Second // how long a call goes on reading dropped files: its program waits for 10 s
)

// maxHandovers is how often a message is handed to sessions in vain before only Read shows it.
const maxHandovers = 2

// maxPushed is how many pushed messages may wait in a session: Claude Code drops what is more than 30 at a time of one
// sender. The others go out with its hooks.
const maxPushed = 20

// HookCall describes one call of a hook of the agent's program.
//
// A hook's answer may be lost, as when its program is killed or gives up waiting. So a message in an answer stays
// unread, claimed by the session, until a later call shows that the session went on. If none comes, the message is
// handed over once more, marked as a repeat; after that only Read shows it.
type HookCall struct {
	Session       string // the program's session; calls of other sessions prove nothing about this one
	Name          string // identifies the call in its session; a hook that is installed twice makes two calls of one name
	IsAmbiguous   bool   // a later call may have the same Name, so only calls at the same moment count as one
	ProvesReceipt bool   // the call proves that the session received the earlier answers
	IsNewProgram  bool   // the program has restarted: earlier answers may be lost
	EndsSession   bool   // the session ends, which proves nothing
	Forgets       string // what earlier calls whose Name starts so have answered may be lost; "": none
	CanCarryMail  bool   // the answer can carry mail
	Now           time.Time

	// IsPush says that the mail is not an answer to a hook, but is given to the program beside them. It may wait in the
	// program, so no other call proves that it was received than one that has it in its Shown.
	IsPush      bool
	KeepsPushed bool                      // with IsNewProgram: what was pushed is not lost, since a server has it
	Shown       []string                  // short ids (wire.ID.Short) of messages that the program shows its model with this call
	IsGone      func(session string) bool // reports whether the program of a session has ended; nil: that is not known
}

func (call *HookCall) owner() string { return ownerSession + call.Session }

// hasMade reports whether this call made the claim.
func (call *HookCall) hasMade(c claim) bool {
	hasItsName := c.Owner == call.owner() && c.Call == call.Name && c.Call != ""
	isAtOnce := call.Now.Sub(c.At).Abs() < sameMoment
	return hasItsName && (isAtOnce || !call.IsAmbiguous)
}

// Handover is the mail for one hook call. The caller calls Sent or NotSent after it.
type Handover struct {
	claimGroup              // without Items there is no mail
	GivenUp    int          // unread messages that were handed over too often in vain
	IsFull     bool         // as many pushed messages as may wait in the session
	Repeated   bool         // the same hook, installed twice, has just handed mail over: the program goes on
	Received   []wire.Event // message_read of messages that this call proves received, for the caller to append

	call HookCall
}

// HandOver moves the messages that the call proves received, and then selects unread, unclaimed messages as Read does
// and claims them for the session, if the store may act. The Handover is never nil; with an error it holds what was done
// before. Without mail or claims of the session no lock is taken.
func (b *Box) HandOver(ctx context.Context, call HookCall, opt ReadOptions) (*Handover, error) {
	call.Now = call.Now.UTC().Round(0)
	h := &Handover{call: call}
	var unread []wire.ID
	err := b.CheckPresent()
	if err == nil && call.CanCarryMail {
		limited, stop := context.WithTimeout(ctx, hookIngestTime)
		b.ingestUnlessMail(limited) // what cannot be ingested now stays where it is
		stop()
		unread, err = b.UnreadIDs()
	}
	if err != nil {
		return h, err
	}
	isMine := func(c claim) bool { return c.Owner == call.owner() }
	if len(unread) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(b.claims())), isMine) {
		return h, nil
	}
	var errs error
	opt.IDs = []wire.ID{} // no message that comes after mayAct was asked
	look := func() error {
		mayAct := b.store.BeforeLook()
		ids, err := b.UnreadIDs()
		opt.IDs = append(opt.IDs[:0], ids...)
		return cmp.Or(err, mayAct(ctx))
	}
	if len(unread) > 0 && look() != nil {
		errs = look() // again: the agent's next call may be far
	}
	mayCarry := call.CanCarryMail && errs == nil
	err = b.updateClaims(ctx, func(all claims) error {
		errs = errors.Join(errs, h.settleEarlier(b, all))
		if mayCarry {
			errs = errors.Join(errs, h.claimNew(b, all, opt))
		}
		return nil
	})
	if err != nil { // nothing is claimed, so nothing may be answered
		h.claimGroup = claimGroup{Batch: Batch{More: h.More + len(h.Items)}}
	}
	return h, errors.Join(errs, err)
}

// proves reports whether the call proves that its session has received a message that it claimed.
func (call *HookCall) proves(id wire.ID, c claim) bool {
	isShown := slices.ContainsFunc(call.Shown, func(short string) bool { return id.Short(len(short)) == short })
	return isShown || call.ProvesReceipt && c.Offered && !c.IsPush
}

// mayLose reports whether the call says that what its session claimed earlier may be lost.
func (call *HookCall) mayLose(c claim) bool {
	isLost := call.IsNewProgram && !(c.IsPush && call.KeepsPushed)
	isForgotten := call.Forgets != "" && strings.HasPrefix(c.Call, call.Forgets)
	return isLost || isForgotten || call.EndsSession
}

// hasOutlived reports whether a claim that still counts is of another session, whose program has ended.
func (call *HookCall) hasOutlived(c claim) bool {
	session, isSession := strings.CutPrefix(c.Owner, ownerSession)
	isOther := isSession && session != call.Session && c.Until.After(call.Now)
	return isOther && call.IsGone != nil && call.IsGone(session)
}

// settleEarlier settles the session's claims from earlier calls. If the program restarts, forgets them or ends they
// expire; if the call proves their messages received, these are moved, unless the answer was never written. A message
// that cannot be moved does not hold up the others. The claims of a session whose program has ended expire, too.
func (h *Handover) settleEarlier(b *Box, all claims) (err error) {
	batch := wire.NewID()
	for id, c := range all {
		switch {
		case h.call.hasOutlived(c):
			all[id] = c.endedAt(h.call.Now)
			continue
		case c.Owner != h.call.owner() || h.call.hasMade(c):
			continue
		case h.call.mayLose(c):
			all[id] = c.endedAt(h.call.Now)
			continue
		case !h.call.proves(id, c):
			continue
		}
		it, moveErr := b.markRead(id, c)
		bad, isBad := errors.AsType[*BadError](moveErr)
		switch {
		case moveErr == nil:
			h.Received = append(h.Received, b.WithType(h.event(wire.EventRead, id).With("batch", string(batch)), it))
		case isBad && bad.Unreadable != nil:
			continue
		case !isBad && !errors.Is(moveErr, ErrNotFound):
			err = moveErr
			continue
		}
		delete(all, id)
	}
	return err
}

// claimNew selects the messages for this call's answer, and claims them.
func (h *Handover) claimNew(b *Box, all claims, opt ReadOptions) (err error) {
	skipped, pushed := all.live(h.call.Now, b.isRunning()), 0
	for id, c := range all {
		if _, isLive := skipped[id]; isLive {
			h.Repeated = h.Repeated || h.call.hasMade(c)
			if c.IsPush && c.Owner == h.call.owner() {
				pushed++
			}
		} else if c.isGivenUp() {
			skipped[id] = c
			h.GivenUp++
		}
	}
	if h.IsFull = h.call.IsPush && pushed >= maxPushed; h.IsFull {
		return nil
	}
	opt.countsAll = true // an agent waits for its hook
	mine := claim{Owner: h.call.owner(), Call: h.call.Name, At: h.call.Now, Until: h.call.Now.Add(answerTime), IsPush: h.call.IsPush}
	h.claimGroup, err = b.claimUnread(all, opt, skipped, mine)
	return err
}

// Sent records that the answer was written: the claims now wait for a later call. The caller appends the events.
func (h *Handover) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range h.Items {
		announced = append(announced, h.event(wire.EventAnnounced, it.ID))
	}
	return announced, h.update(ctx, func(_ wire.ID, c claim) claim {
		c.Offered, c.Until = true, c.At.Add(sessionClaim)
		if c.IsPush {
			c.Until = c.At.Add(pushClaim)
		}
		return c
	})
}

// NotSent releases the messages because no answer was written.
func (h *Handover) NotSent(ctx context.Context) error { return h.update(ctx, h.restoreBefore) }

func (h *Handover) event(kind string, id wire.ID) wire.Event {
	e := event("hook", kind, id)
	e.Session = h.call.Session
	return e
}
