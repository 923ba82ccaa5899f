package mailbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// How long a session's claim is live without a sign from it, how long a hook's answer
// may be on its way out, and how far apart the calls are of hooks that are installed
// twice.
const (
	sessionClaim = 10 * time.Minute
	answerGoes   = 10 * time.Second
	sameMoment   = 2 * time.Second
)

// maxHandovers is how often a message is handed to sessions in vain before it is left
// for who reads.
const maxHandovers = 2

// HookCall is one call of a hook of the agent's program, as far as mail goes.
//
// What a hook answers may be lost: its program was killed, or gave up waiting. So a
// message that goes out with an answer stays unread, under a claim of the session,
// until a later call shows that the session went on. When none comes, the message is
// handed over once more, and that is said; after that it is left for who reads.
type HookCall struct {
	Session string // the program's session; calls of another are no sign from it

	// Name is what tells this call from the session's others; two of the same name are
	// one call, of hooks installed twice. Loose means that a later call may bear the
	// name as well: then only calls of one moment are one.
	Name  string
	Loose bool

	Shows  bool // the session is beyond what was handed over before
	Begins bool // the program began anew: what its answers had is gone
	Ends   bool // the session ends, which shows nothing
	Want   bool // mail can go out with the answer

	// Worth says whether a batch is worth an answer of its own; nil: any is.
	Worth func(Batch) bool

	Now time.Time
}

// owner is the owner of the session's claims.
func (call *HookCall) owner() string { return ownerSession + call.Session }

// made reports whether a claim was made by this very call.
func (call *HookCall) made(c claim) bool {
	return c.Owner == call.owner() && c.Call == call.Name && c.Call != "" &&
		(!call.Loose || call.Now.Sub(c.At).Abs() < sameMoment)
}

// ends reports whether this call ends a claim without a sign that it was received.
func (call *HookCall) ends(c claim) bool {
	return (call.Begins || call.Ends) && c.Owner == call.owner() && c.isLive(call.Now, true) && !call.made(c)
}

// shows reports whether this call shows that the messages of a claim were received. An
// answer that is not known to be out cannot have been.
func (call *HookCall) shows(c claim) bool {
	return call.Shows && c.Owner == call.owner() && c.Offered && !call.made(c)
}

// Handover is what one call of a hook hands over. Sent or NotSent follows.
type Handover struct {
	Batch                   // no Items: nothing
	Repeat map[wire.ID]bool // those that may have been handed over before
	Left   int              // handed over too often in vain, and unread

	// Repeated means that the same call, made at the same time, has handed mail over:
	// the program does not stop here.
	Repeated bool

	// Received are the message_read events of what this call showed to be received, for
	// the caller to append.
	Received []wire.Event

	box  *Box
	call HookCall
}

// HandOver takes in what a call of a hook says about mail: what it shows to be received
// is moved; what is unread and unclaimed is chosen, as Read does, and claimed for the
// session. The Handover is never nil; with an error it holds what was done before it.
//
// A call that has nothing to do takes no lock.
func (b *Box) HandOver(ctx context.Context, call HookCall, opt ReadOptions) (*Handover, error) {
	call.Now = claimTime(call.Now)
	h := &Handover{box: b, call: call}
	if err := b.Present(); err != nil {
		return h, err
	}
	all := b.claims()
	held, todo := h.look(all), false
	for id, c := range all {
		unread, err := b.has(b.unread(), id)
		todo = todo || call.ends(c) || call.shows(c) || err == nil && !unread
	}
	if call.Want {
		unread, err := b.listUnread(ctx)
		if err != nil {
			return h, err
		}
		todo = todo || slices.ContainsFunc(unread, func(id wire.ID) bool { _, ok := held[id]; return !ok })
	}
	if !todo {
		return h, nil
	}
	var errs []error
	err := b.updateClaims(ctx, func(all claims) error {
		errs = append(errs, h.settle(all))
		if call.Want {
			errs = append(errs, h.offer(all, opt))
		}
		return nil
	})
	if err != nil { // nothing is claimed, so nothing may go out
		h.Batch, h.Repeat = Batch{More: h.More + len(h.Items)}, nil
	}
	return h, errors.Join(append(errs, err)...)
}

// look says of the claims what this call must know, and returns those that keep their
// messages from being handed over by it.
func (h *Handover) look(all claims) (held claims) {
	h.Left, h.Repeated = 0, false
	held = claims{}
	running := h.box.running()
	for id, c := range all {
		switch {
		case c.isLive(h.call.Now, running) && !h.call.ends(c):
			held[id] = c
			h.Repeated = h.Repeated || h.call.made(c)
		case !c.isLease() && c.Times >= maxHandovers:
			held[id] = c
			h.Left++
		}
	}
	return held
}

// settle carries out what this call says about the claims of its session. What cannot
// be read just now keeps nothing else from going out.
func (h *Handover) settle(all claims) (err error) {
	batch := wire.NewID()
	for id, c := range all {
		if h.call.ends(c) {
			all.release(id, h.call.Now, 0)
			continue
		}
		if !h.call.shows(c) {
			continue
		}
		e := h.box.openAndMarkRead(id)
		if e == nil {
			read := readEvent(id, batch)
			read.Source, read.Session = "hook", h.call.Session
			h.Received = append(h.Received, read)
		}
		var bad *BadError
		switch isBad := errors.As(e, &bad); {
		case e == nil, e == errGone, isBad && bad.Unreadable == nil:
			delete(all, id)
		case !isBad:
			err = e
		}
	}
	return err
}

// offer chooses what goes out with this call's answer, and claims it.
func (h *Handover) offer(all claims, opt ReadOptions) error {
	b := h.box
	unread, _, err := b.list(b.unread().dir)
	if err != nil {
		return err
	}
	batch, err := b.choose(opt, unread, h.look(all), true)
	if err != nil {
		return err
	}
	if len(batch.Items) == 0 || h.call.Worth != nil && !h.call.Worth(batch) {
		h.More = batch.More + len(batch.Items)
		return nil
	}
	h.Batch, h.Repeat = batch, map[wire.ID]bool{}
	for _, it := range batch.Items {
		before := all[it.ID]
		if before.Times > 0 {
			h.Repeat[it.ID] = true
		}
		all[it.ID] = claim{
			Owner: h.call.owner(), Call: h.call.Name, At: h.call.Now, Until: h.call.Now.Add(answerGoes),
			Times: before.Times + 1,
		}
	}
	return nil
}

// Sent says that the answer is out: from now on the claim waits for a sign. The events
// say to whom what was handed, for the caller to append.
func (h *Handover) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range h.Items {
		announced = append(announced, wire.Event{Kind: wire.EventAnnounced, Source: "hook", Session: h.call.Session}.With("id", string(it.ID)))
	}
	return announced, h.change(ctx, func(all claims, id wire.ID) {
		c := all[id]
		c.Offered, c.Until = true, c.At.Add(sessionClaim)
		all[id] = c
	})
}

// NotSent says that nothing went out: the messages are in nobody's hands.
func (h *Handover) NotSent(ctx context.Context) error {
	return h.change(ctx, func(all claims, id wire.ID) { all.release(id, h.call.Now, 1) })
}

// change changes this handover's claims, those that are still there.
func (h *Handover) change(ctx context.Context, f func(claims, wire.ID)) error {
	if len(h.Items) == 0 {
		return nil
	}
	return h.box.updateClaims(ctx, func(all claims) error {
		for _, it := range h.Items {
			c := all[it.ID]
			if c.Owner == h.call.owner() && c.Call == h.call.Name && c.At.Equal(h.call.Now) && !c.Offered {
				f(all, it.ID)
			}
		}
		return nil
	})
}
