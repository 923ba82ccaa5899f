package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// A claim says that somebody is handling an unread message: a runner types it, a hook has handed it to a
// session of the agent's program, or a member took it under a lease. While a claim is live, others pass
// the message over. One that is over stays until the message has left new, to say how often it was given
// out.
//
// Claims are advice. A file that is gone, is none, or is closed to us counts as none: its messages are
// unread, and are shown once more. Where reading it fails in another way, as with too many open files,
// nothing is changed, since that would end the claims of others.
//
//	run/claims.json    a list of {"owner","ids","at","until"?,"times",…}
type claim struct {
	Owner   string    `json:"owner"` // runner:<run>, session:<id> or lease:<agent>
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"`    // absent: a runner's, live while the runner lock is held
	Times   int       `json:"times"`             // the message was given out, this time included
	Call    string    `json:"call,omitempty"`    // a session's: which call of its hook
	Offered bool      `json:"offered,omitempty"` // a session's: the hook's answer is out
}

// The owners of claims.
const (
	ownerRunner  = "runner:"
	ownerSession = "session:"
	ownerLease   = "lease:"
)

func (c claim) isRunner() bool               { return strings.HasPrefix(c.Owner, ownerRunner) }
func (c claim) isLease() bool                { return strings.HasPrefix(c.Owner, ownerLease) }
func (c claim) isLeaseAt(now time.Time) bool { return c.isLease() && c.isLive(now, false) }

// isLive reports whether the claim counts. One from the future is of a clock that was set back since.
func (c claim) isLive(now time.Time, running bool) bool {
	if c.isRunner() && c.Until.IsZero() {
		return running
	}
	return now.Before(c.Until) && !c.At.After(now.Add(time.Minute)) && !c.Until.After(now.Add(MaxLease+time.Minute))
}

// claims are those of a mailbox, by message.
type claims map[wire.ID]claim

// live are the claims that count.
func (all claims) live(now time.Time, running bool) claims {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c claim) bool { return !c.isLive(now, running) })
	return live
}

// end ends a claim whose owner may have received the message.
func (all claims) end(id wire.ID, now time.Time) {
	c := all[id]
	c.Until, c.Offered = now, false
	all[id] = c
}

// claimed are messages that were claimed together, and of which the owner has not said yet whether it
// received them.
type claimed struct {
	box         *Box
	before, now claims
}

// claim claims messages for an owner, each once more than before. repeats were given out before.
func (b *Box) claim(all claims, items []*Item, c claim) (made claimed, repeats map[wire.ID]bool) {
	made, repeats = claimed{b, claims{}, claims{}}, map[wire.ID]bool{}
	for _, it := range items {
		before := all[it.ID]
		c.Times = before.Times + 1
		all[it.ID], made.before[it.ID], made.now[it.ID] = c, before, c
		if before.Times > 0 {
			repeats[it.ID] = true
		}
	}
	return made, repeats
}

// settle has f say what becomes of the claims of messages, none: of all that are left. Those for which it
// fails are left.
func (c *claimed) settle(ctx context.Context, ids []wire.ID, f func(all claims, id wire.ID) error) error {
	if len(ids) == 0 {
		ids = slices.Sorted(maps.Keys(c.now))
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { _, isLeft := c.now[id]; return !isLeft })
	if len(ids) == 0 {
		return nil
	}
	var errs []error
	left := maps.Clone(c.now)
	err := c.box.updateClaims(ctx, func(all claims) error {
		for _, id := range ids {
			if err := f(all, id); err != nil {
				errs = append(errs, err)
			} else {
				delete(left, id)
			}
		}
		return nil
	})
	if err == nil {
		c.now = left
	}
	return errors.Join(append(errs, err)...)
}

// update is settle for the claims that are still these: each becomes what f says.
func (c *claimed) update(ctx context.Context, ids []wire.ID, f func(before, now claim) claim) error {
	return c.settle(ctx, ids, func(all claims, id wire.ID) error {
		if all[id] == c.now[id] {
			all[id] = f(c.before[id], c.now[id])
		}
		return nil
	})
}

// notReceived is what becomes of a claim whose owner did not receive the message.
func notReceived(before, _ claim) claim { return before }

// keptFromReaders are the claims that keep messages from who reads: a runner's and the leases.
func (b *Box) keptFromReaders() claims {
	kept := b.claims().live(time.Now(), b.running())
	maps.DeleteFunc(kept, func(_ wire.ID, c claim) bool { return !c.isRunner() && !c.isLease() })
	return kept
}

// storedClaim is a claim as the file has it, where it may be of several messages.
type storedClaim struct {
	claim
	IDs []wire.ID `json:"ids"`
}

func (b *Box) claimsFile() string { return b.in("run/claims.json") }

// claims reads what is claimed.
func (b *Box) claims() claims {
	all, _ := b.readClaims()
	return all
}

// readClaims is claims, with the reason why the file counts for nothing.
func (b *Box) readClaims() (claims, error) {
	all := claims{}
	data, err := b.store.root.ReadFile(b.claimsFile(), 8<<20)
	if absent(err) {
		return all, nil
	}
	var stored []storedClaim
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		return all, err
	}
	for _, s := range stored {
		for _, id := range s.IDs {
			if wire.IsID(string(id)) {
				all[id] = s.claim
			}
		}
	}
	return all, nil
}

// claimsToChange is claims for who changes something by them.
func (b *Box) claimsToChange() (claims, error) {
	all, err := b.readClaims()
	var errno syscall.Errno
	if errors.As(err, &errno) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return all, nil
}

// updateClaims changes what is claimed, in the one place where that happens, under the reader's lock.
// Claims of messages that are no longer unread go.
func (b *Box) updateClaims(ctx context.Context, change func(claims) error) error {
	return b.locked(ctx, "reader", func() error { return b.changeClaims(change) })
}

// changeClaims is updateClaims for who holds the lock.
func (b *Box) changeClaims(change func(claims) error) error {
	all, err := b.claimsToChange()
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	maps.DeleteFunc(all, func(id wire.ID, _ claim) bool {
		unread, err := b.has(b.unread(), id)
		return err == nil && !unread
	})
	if err := change(all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(_ wire.ID, c claim) bool { return c == claim{} })
	if maps.Equal(all, before) {
		return nil
	}
	if len(all) == 0 {
		return b.store.root.Remove(b.claimsFile())
	}
	var stored []storedClaim
	for _, id := range slices.Sorted(maps.Keys(all)) {
		stored = append(stored, storedClaim{all[id], []wire.ID{id}})
	}
	data, err := json.Marshal(stored)
	if err == nil {
		err = b.mkdir(b.in("run"))
	}
	if err == nil && b.store.root.IsDir(b.claimsFile()) == nil {
		err = b.setAside(b.claimsFile(), "claims.json", "it lay where the claims belong")
	}
	if err != nil {
		return err
	}
	return b.store.root.Replace(b.claimsFile(), append(data, '\n'), false)
}

// running reports whether the agent's runner lock is held. Where that cannot be told the runner counts as
// running: what it types is passed over.
func (b *Box) running() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// claimNow is the present as a claim has it.
func claimNow() time.Time { return time.Now().UTC().Round(0) }

// probesEnd is how long a runner that starts waits for the lock: whoever probes it holds it shared for an
// instant.
const probesEnd = time.Second

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

// Runner is the hold of an agent's runner lock. As long as it lasts the agent counts as running, and what
// its holder claims is passed over by others.
type Runner struct {
	box    *Box
	lock   *lockfile.Lock
	owner  string   // of its claims
	typing sync.Map // by message: the *Claim that has not let go of it
}

// HoldRunner takes the agent's runner lock, for as long as the agent is run. There is one at a time:
// ErrRunning, with the process where the system tells. ErrNoAgent when there is no such agent. What dead
// runners were typing is claimed by nobody from now on.
func (s *Store) HoldRunner(ctx context.Context, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := b.lockRunner(ctx, lockfile.Exclusive)
	if err != nil {
		return nil, err
	}
	// The lock's file outlives the agent, who may have been retired meanwhile.
	if err := b.Present(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, owner: ownerRunner + string(wire.NewID())}
	s.runners.Store(agent, r)
	// What fails here is done with the first claim.
	b.updateClaimsAsRunner(ctx, func(*Runner, claims, time.Time) error { return nil })
	return r, nil
}

// lockRunner gets the runner lock, or says who runs the agent.
func (b *Box) lockRunner(ctx context.Context, m lockfile.Mode) (*lockfile.Lock, error) {
	l, err := b.store.locks.Lock(ctx, string(b.agent)+".runner", m, probesEnd, b.Present)
	if held := (*lockfile.HeldError)(nil); errors.As(err, &held) {
		by := ""
		if held.PID > 0 {
			by = fmt.Sprintf(": %s, process %d", held.Command, held.PID)
		}
		return nil, fmt.Errorf("%s %w%s", b.Address(), ErrRunning, by)
	}
	return l, err
}

// StillHeld reports whether the lock is held, and by the file that lies at its path. Otherwise another
// runner may have taken over: nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release lets go. Again is fine.
func (r *Runner) Release() error {
	r.box.store.runners.CompareAndDelete(r.box.agent, r)
	return r.lock.Unlock()
}

// updateClaimsAsRunner changes what is claimed, for this process's runner of the agent. It ends the
// claims of other runners first: only one holds the lock, so they are dead.
func (b *Box) updateClaimsAsRunner(ctx context.Context, change func(*Runner, claims, time.Time) error) error {
	held, _ := b.store.runners.Load(b.agent)
	r, _ := held.(*Runner)
	if r == nil || !r.StillHeld() {
		return fmt.Errorf("%s is not run by this process", b.Address())
	}
	now := claimNow()
	return b.updateClaims(ctx, func(all claims) error {
		for id, c := range all {
			if c.isRunner() && c.Owner != r.owner && c.Until.IsZero() {
				all.end(id, now)
			}
		}
		return change(r, all, now)
	})
}

// Claim is what a runner is typing to its agent. Until it says how that went the messages stay unread,
// and readers, hooks and who would withdraw them pass them over: Typed moves them, NotTyped and
// MaybeTyped let go of them. What a dead runner had is claimed again as a possible repeat.
//
// Its methods name the messages that they are about, none: all that are left. They take the reader's lock
// and give up with their context, so who ends while the context does gives them another. What failed may
// be said again. A Claim is not for concurrent use.
type Claim struct {
	Items  []*Item          // in the order in which they were asked for
	Repeat map[wire.ID]bool // those that may have been typed before
	Leased []wire.ID        // passed over since somebody holds them under a lease
	Turn   string           // that the messages went into, where it is known: for the event injected

	runner *Runner
	claimed
}

// Claim claims those of the messages that are unread and that nobody has claimed, in this order, and says
// so among the events (injecting). With an error nothing is claimed, as when this process does not hold
// the runner lock.
func (b *Box) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	c := &Claim{}
	err := b.updateClaimsAsRunner(ctx, func(r *Runner, all claims, now time.Time) error {
		c.runner = r
		live := all.live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, c claim) bool { // what was let go of, and could not be written
			_, isTyping := r.typing.Load(id)
			return c.Owner == r.owner && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !live[id].isLease() })
		batch, err := b.choose(ReadOptions{IDs: append([]wire.ID{}, ids...)}, live, true)
		if err != nil {
			return err
		}
		c.Items = batch.Items
		c.claimed, c.Repeat = b.claim(all, c.Items, claim{Owner: r.owner, At: now})
		var injecting []wire.Event
		for _, it := range c.Items {
			injecting = append(injecting, event("pty", wire.EventInjecting, it.ID))
		}
		return b.Log().Append(ctx, injecting...)
	})
	if err != nil {
		return nil, err
	}
	for id := range c.now {
		c.runner.typing.Store(id, c)
	}
	return c, nil
}

// Typed says that messages were taken by the agent: they are moved, as if they had been read, and then it
// is said among the events (injected). A message that its agent has answered by now, and so moved, counts
// too. What cannot be moved stays claimed, and is moved when this is said again; an *UnloggedError is
// about the events alone.
func (c *Claim) Typed(ctx context.Context, ids ...wire.ID) error {
	var unlogged []error
	err := c.settle(ctx, ids, func(all claims, id wire.ID) error {
		if err := c.box.markRead(id); err != nil && err != errGone {
			return err
		}
		delete(all, id)
		// Before the claim goes: who finds that sees what became of it.
		injected := event("pty", wire.EventInjected, id)
		injected.TurnID = c.Turn
		unlogged = append(unlogged, c.box.note(ctx, injected))
		return nil
	})
	return errors.Join(append(unlogged, err)...)
}

// NotTyped says that nothing of the messages has reached the agent. The caller says why among the events
// (injection_failed).
func (c *Claim) NotTyped(ctx context.Context, ids ...wire.ID) error {
	return c.letGo(ctx, ids, notReceived)
}

// MaybeTyped says that it is not known whether the messages have reached the agent: like NotTyped, and
// when they are handed over again that may be a repeat.
func (c *Claim) MaybeTyped(ctx context.Context, ids ...wire.ID) error {
	return c.letGo(ctx, ids, func(_, now claim) claim {
		now.Until = claimNow()
		return now
	})
}

func (c *Claim) letGo(ctx context.Context, ids []wire.ID, f func(before, now claim) claim) error {
	for id := range c.now {
		if len(ids) == 0 || slices.Contains(ids, id) {
			c.runner.typing.CompareAndDelete(id, c)
		}
	}
	return c.update(ctx, ids, f)
}
