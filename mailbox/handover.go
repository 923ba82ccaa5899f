package mailbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// How long a session's claim is live without a sign from it, how long an answer may be on its way out,
// and how far apart the calls are of hooks that are installed twice.
const (
	sessionClaim = 10 * time.Minute
	answerGoes   = 10 * time.Second
	sameMoment   = 2 * time.Second
)

// maxHandovers is how often a message is handed to sessions in vain before it is left for who reads.
const maxHandovers = 2

// HookCall is one call of a hook of the agent's program, as far as mail goes.
//
// What a hook answers may be lost: its program was killed, or gave up waiting. So a message that goes out with an
// answer stays unread, under a claim of the session, until a later call shows that the session went on. When none
// comes, the message is handed over once more, and that is said; after that it is left for who reads.
type HookCall struct {
	Session string // the program's session; calls of another are no sign from it
	Name    string // tells it from the session's others: of one name are calls of hooks installed twice
	Loose   bool   // a later call may bear the name as well: only calls of one moment are one
	Shows   bool   // the session is beyond what was handed over before
	Begins  bool   // the program began anew: what its answers had is gone
	Ends    bool   // the session ends, which shows nothing
	Want    bool   // mail can go out with the answer
	Now     time.Time
}

func (call *HookCall) owner() string { return ownerSession + call.Session }

// made reports whether a claim was made by this very call.
func (call *HookCall) made(c claim) bool {
	return c.Owner == call.owner() && c.Call == call.Name && c.Call != "" &&
		(!call.Loose || call.Now.Sub(c.At).Abs() < sameMoment)
}

// Handover is what one call of a hook hands over. Sent or NotSent follows.
type Handover struct {
	Batch                 // no Items: nothing
	Left     int          // handed over too often in vain, and unread
	Repeated bool         // the same call, made at the same time, has handed mail over: the program goes on
	Received []wire.Event // message_read of what this call showed to be received, for the caller to append

	call HookCall
	claimed
}

// HandOver takes in what a call of a hook says about mail: what it shows to be received is moved; what is
// unread and unclaimed is chosen, as Read does, and claimed for the session. The Handover is never nil;
// with an error it holds what was done before it.
//
// A call that has nothing to do takes no lock.
func (b *Box) HandOver(ctx context.Context, call HookCall, opt ReadOptions) (*Handover, error) {
	call.Now = call.Now.UTC().Round(0)
	h := &Handover{call: call}
	var unread []wire.ID
	err := b.Present()
	if err == nil && call.Want {
		b.TakeIn(ctx) // what cannot be taken in now stays where it is
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
	err = b.updateClaims(ctx, func(all claims) error {
		errs = h.settleEarlier(b, all)
		if call.Want {
			errs = errors.Join(errs, h.claimNew(b, all, opt))
		}
		return nil
	})
	if err != nil { // nothing is claimed, so nothing may go out
		h.Batch, h.claimed = Batch{More: h.More + len(h.Items)}, claimed{}
	}
	return h, errors.Join(errs, err)
}

// settleEarlier carries out what this call says about the claims of its session: those that it ends without a sign
// are over, and what it shows to be received is moved. An answer that is not known to be out cannot have
// been. What cannot be read just now keeps nothing else from going out.
func (h *Handover) settleEarlier(b *Box, all claims) (err error) {
	batch := wire.NewID()
	for id, c := range all {
		switch {
		case c.Owner != h.call.owner() || h.call.made(c):
			continue
		case h.call.Begins || h.call.Ends:
			all[id] = c.endedAt(h.call.Now)
			continue
		case !h.call.Shows || !c.Offered:
			continue
		}
		moved := b.markRead(id)
		bad, isBad := errors.AsType[*BadError](moved)
		switch {
		case moved == nil:
			h.Received = append(h.Received, h.event(wire.EventRead, id).With("batch", string(batch)))
		case isBad && bad.Unreadable != nil:
			continue
		case !isBad && !errors.Is(moved, ErrNotFound):
			err = moved
			continue
		}
		delete(all, id)
	}
	return err
}

// claimNew chooses what goes out with this call's answer, and claims it.
func (h *Handover) claimNew(b *Box, all claims, opt ReadOptions) error {
	held := all.live(h.call.Now, b.running())
	for id, c := range all {
		if _, isHeld := held[id]; isHeld {
			h.Repeated = h.Repeated || h.call.made(c)
		} else if !c.isLease() && c.Times >= maxHandovers {
			held[id] = c
			h.Left++
		}
	}
	var err error
	opt.countsAll = true // an agent waits for its hook
	if h.Batch, err = b.choose(opt, held, true); err != nil {
		return err
	}
	mine := claim{Owner: h.call.owner(), Call: h.call.Name, At: h.call.Now, Until: h.call.Now.Add(answerGoes)}
	h.claimed = b.claim(all, h.Items, mine)
	return nil
}

// Sent says that the answer is out: from now on the claim waits for a sign. The events say to whom what
// was handed, for the caller to append.
func (h *Handover) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range h.Items {
		announced = append(announced, h.event(wire.EventAnnounced, it.ID))
	}
	return announced, h.update(ctx, func(_ wire.ID, c claim) claim {
		c.Offered, c.Until = true, c.At.Add(sessionClaim)
		return c
	})
}

// NotSent says that nothing went out: the messages are in nobody's hands.
func (h *Handover) NotSent(ctx context.Context) error { return h.update(ctx, h.notReceived) }

func (h *Handover) event(kind string, id wire.ID) wire.Event {
	e := event("hook", kind, id)
	e.Session = h.call.Session
	return e
}
