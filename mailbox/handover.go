package mailbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// HookCall is one call of a hook of the agent's program, as far as mail goes.
//
// What a hook answers may be lost: its program was killed, or gave up waiting.
// So a message that goes out with an answer stays unread, under a claim of the
// session, until a later call shows that the session went on. When none comes,
// the message is handed over once more, and that is said; after that it is
// left for who reads.
type HookCall struct {
	Session string // the program's session; calls of another are no sign from it

	// Name is what tells this call from the session's others; two of the same
	// name are one call, of hooks installed twice. Loose means that a later
	// call may bear the name as well: then only calls of one moment are one.
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

// Handover is what one call of a hook hands over. Let Out or Back follow.
type Handover struct {
	Batch                  // no Items: nothing
	Again map[wire.ID]bool // those that may be a repeat
	Left  int              // handed over twice in vain, and unread

	// Goes means that the same call, made at the same time, has handed mail
	// over: the program does not stop here.
	Goes bool

	// Settled are the message_read events of what this call showed to be
	// taken, for the caller to append.
	Settled []wire.Event

	box   *Box
	claim claim
}

// HandOver takes in what a call of a hook says about mail: what it shows to be
// taken is moved; what is unread and in nobody's hands is chosen, as Read
// does, and claimed for the session. The Handover is never nil; with an error
// it holds what was done before it.
//
// A call that has nothing to do takes no lock.
func (b *Box) HandOver(ctx context.Context, call HookCall, opt ReadOptions) (*Handover, error) {
	h := &Handover{box: b}
	call.Now = call.Now.UTC().Round(0)
	if call.Want {
		b.takeIn(ctx, nil) // what cannot be taken in now stays where it is
	}
	r, err := b.enter()
	if err != nil {
		return h, err
	}
	defer func() { r.close() }()
	book, err := r.book(call)
	if err != nil {
		return h, err
	}
	todo := book.due()
	if call.Want && !todo {
		if todo, err = r.beyond(ctx, book.held); err != nil {
			return h, err
		}
	}
	h.Goes, h.Left = book.goes, book.left
	if !todo {
		return h, nil
	}
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return h, err
	}
	defer unlock()
	again, err := b.enter()
	if err != nil {
		return h, err
	}
	r.close()
	r = again
	return h, h.under(r, call, opt)
}

// under is HandOver under the reader's lock.
func (h *Handover) under(r *room, call HookCall, opt ReadOptions) error {
	book, err := r.book(call)
	if err != nil {
		return err
	}
	h.Goes, h.Left = book.goes, book.left
	changed := book.due()
	var unmoved error
	h.Settled, unmoved = book.settle(r)
	if call.Want {
		opt.skip(book.held)
		batch, err := r.choose(opt, r.setAside, false)
		if err != nil {
			return errors.Join(unmoved, err)
		}
		if len(batch.Items) > 0 && (call.Worth == nil || call.Worth(batch)) {
			h.Batch, changed = batch, true
			h.claim = book.take(batch)
			h.Again = map[wire.ID]bool{}
			for _, id := range h.claim.Again {
				h.Again[id] = true
			}
		} else {
			h.More = batch.More + len(batch.Items)
		}
	}
	if !changed {
		return unmoved
	}
	if err := r.setClaims(book.claims); err != nil {
		h.Batch, h.Again = Batch{More: h.More + len(h.Items)}, nil
		return errors.Join(unmoved, err)
	}
	return unmoved
}

// Out says that the answer is out: from now on the claim waits for a sign. The
// events say to whom what was handed, for the caller to append.
func (h *Handover) Out(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range h.Items {
		announced = append(announced, wire.Event{Kind: wire.EventAnnounced, Source: "hook", Session: h.claim.Session}.With("id", string(it.ID)))
	}
	return announced, h.amend(ctx, func(c *claim) { c.Going = false })
}

// Back says that nothing went out: the messages are in nobody's hands.
func (h *Handover) Back(ctx context.Context) error {
	return h.amend(ctx, func(c *claim) {
		// What was handed over before stays so.
		c.IDs, c.Again, c.Going, c.Ended = c.Again, nil, false, true
	})
}

// amend changes this handover's claim, if it is still there.
func (h *Handover) amend(ctx context.Context, f func(*claim)) error {
	if len(h.Items) == 0 {
		return nil
	}
	unlock, err := h.box.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := h.box.enter()
	if err != nil {
		return err
	}
	defer r.close()
	all, err := r.claims()
	if err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		if c.Going && c.Session == h.claim.Session && c.Call == h.claim.Call && c.At.Equal(h.claim.At) {
			f(c)
			return r.setClaims(all)
		}
	}
	return nil
}

// book is what is claimed, as one call of a hook sees it.
type book struct {
	call   HookCall
	claims []claim

	held map[wire.ID]bool // not to be handed over by this call
	left int              // of these: handed over twice in vain
	goes bool

	leased map[wire.ID]bool // in somebody's hands under a lease

	stale bool // something claimed has been read
}

func (r *room) book(call HookCall) (*book, error) {
	b := &book{call: call, held: map[wire.ID]bool{}}
	var err error
	b.claims, err = r.claims()
	if err == nil {
		b.leased, _, err = r.holders(r.box.store.now())
	}
	for id := range b.leased {
		b.held[id] = true
	}
	if err != nil || len(b.claims) == 0 {
		return b, err
	}
	running := false
	if slices.ContainsFunc(b.claims, func(c claim) bool { return c.typed() }) {
		if running, err = r.box.store.Running(r.box.agent); err != nil {
			return b, err
		}
	}
	for i := range b.claims {
		c := &b.claims[i]
		b.stale = r.forgetRead(c) || b.stale
		switch {
		case b.ends(c): // what it has may be handed over at once
			b.hold(c.Again, true)
		case c.holds(call.Now, running):
			b.hold(c.IDs, false)
			b.goes = b.goes || b.same(c)
		default:
			b.hold(c.Again, true)
		}
	}
	return b, nil
}

func (b *book) hold(ids []wire.ID, spent bool) {
	for _, id := range ids {
		if spent && !b.held[id] {
			b.left++
		}
		b.held[id] = true
	}
}

// same reports whether a claim is of this very call.
func (b *book) same(c *claim) bool {
	return c.Session == b.call.Session && c.Call == b.call.Name && c.Call != "" &&
		(!b.call.Loose || b.call.Now.Sub(c.At).Abs() < atOnce)
}

// ends reports whether this call ends a claim without a sign.
func (b *book) ends(c *claim) bool {
	return (b.call.Begins || b.call.Ends) && c.Session == b.call.Session && !c.Ended && !b.same(c)
}

// shows reports whether this call shows that what a claim has was taken. An
// answer that is not known to have gone out cannot have been.
func (b *book) shows(c *claim) bool {
	return b.call.Shows && c.Session == b.call.Session && !c.Ended && !c.Going && !b.same(c)
}

// due reports whether this call changes a claim that is there.
func (b *book) due() bool {
	return b.stale || slices.ContainsFunc(b.claims, func(c claim) bool { return b.ends(&c) || b.shows(&c) })
}

// settle carries out what this call says about the claims of its session, and
// returns the events of what was moved.
func (b *book) settle(r *room) (read []wire.Event, err error) {
	batch := wire.NewID()
	for i := range b.claims {
		c := &b.claims[i]
		if b.ends(c) {
			c.Ended = true
			continue
		}
		if !b.shows(c) {
			continue
		}
		var kept []wire.ID
		for _, id := range c.IDs {
			if b.leased[id] {
				continue // taken since, and theirs who hold it
			}
			it, e := r.open(place{placeNew, "inbox/new"}, id)
			if e == nil {
				e = r.settle(it.Message)
			}
			var bad *BadError
			switch {
			case e == nil:
				ev := readEvent(id, batch)
				ev.Source, ev.Session = "hook", c.Session
				read = append(read, ev)
			case errors.Is(e, errGone):
			case errors.As(e, &bad):
				// What cannot be read just now was handed over all the same, and
				// keeps nothing else from going out.
				if bad.Unreadable != nil {
					kept = append(kept, id)
				}
			default:
				kept, err = append(kept, id), e
			}
		}
		c.IDs = kept
	}
	return read, err
}

// take claims a batch, out of what other claims held in vain.
func (b *book) take(batch Batch) claim {
	mine := claim{At: b.call.Now, Session: b.call.Session, Call: b.call.Name, Going: true}
	for _, it := range batch.Items {
		mine.IDs = append(mine.IDs, it.ID)
		for i := range b.claims {
			c := &b.claims[i]
			if n := slices.Index(c.IDs, it.ID); n >= 0 {
				c.IDs = slices.Delete(slices.Clone(c.IDs), n, n+1)
				mine.Again = append(mine.Again, it.ID)
			}
		}
	}
	b.claims = append(b.claims, mine)
	return mine
}

// beyond reports whether there is unread mail that is not held; what was
// dropped is taken in. No lock may be held.
func (r *room) beyond(ctx context.Context, held map[wire.ID]bool) (bool, error) {
	ids, _, err := r.unread(len(held)+1, false)
	if err == nil && r.takeInForeign(ctx) {
		ids, _, err = r.unread(len(held)+1, false)
	}
	return slices.ContainsFunc(ids, func(id wire.ID) bool { return !held[id] }), err
}
