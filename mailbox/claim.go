package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A claim says that somebody is handling an unread message: a runner types it, a hook has handed it to a session of the
// agent's program, or a member took it under a lease. While a claim is live, others pass the message over. One that is
// over stays until the message has left new, to say how often it was given out.
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

// endedAt is the claim of an owner who may have received the message, and handles it no longer.
func (c claim) endedAt(now time.Time) claim {
	c.Until, c.Offered = now, false
	return c
}

func claimNow() time.Time { return time.Now().UTC().Round(0) }

// claims are those of a mailbox, by message.
type claims map[wire.ID]claim

func (all claims) live(now time.Time, running bool) claims {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c claim) bool { return !c.isLive(now, running) })
	return live
}

// keptFromReaders are the claims that keep messages from who reads: a runner's and the leases.
func (b *Box) keptFromReaders() claims {
	kept := b.claims().live(time.Now(), b.running())
	maps.DeleteFunc(kept, func(_ wire.ID, c claim) bool { return !c.isRunner() && !c.isLease() })
	return kept
}

// running reports whether the agent's runner lock is held. Where that cannot be told the runner counts as
// running: what it types is passed over.
func (b *Box) running() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// claimed are messages that somebody claimed together.
type claimed struct {
	Repeat map[wire.ID]bool // those that were given out before: they may have been received

	box    *Box
	left   []wire.ID // those that are not known to be moved
	claim  claim     // that each has, but for Times
	before claims    // what was claimed then
}

// claim claims messages for an owner, each once more than before.
func (b *Box) claim(all claims, items []*Item, c claim) claimed {
	made := claimed{Repeat: map[wire.ID]bool{}, box: b, claim: c, before: maps.Clone(all)}
	for _, it := range items {
		c.Times = all[it.ID].Times + 1
		all[it.ID] = c
		made.left = append(made.left, it.ID)
		if c.Times > 1 {
			made.Repeat[it.ID] = true
		}
	}
	return made
}

// update changes those of the claims that are still these: each becomes what f says.
func (c *claimed) update(ctx context.Context, f func(wire.ID, claim) claim) error {
	if len(c.left) == 0 {
		return nil
	}
	return c.box.updateClaims(ctx, func(all claims) error {
		for _, id := range c.left {
			now, mine := all[id], c.claim
			if mine.Times = now.Times; now == mine {
				all[id] = f(id, now)
			}
		}
		return nil
	})
}

// notReceived is what becomes of a claim whose owner did not receive the message.
func (c *claimed) notReceived(id wire.ID, _ claim) claim { return c.before[id] }

// storedClaim is a claim as the file has it, where it may be of several messages.
type storedClaim struct {
	claim
	IDs []wire.ID `json:"ids"`
}

func (b *Box) claimsFile() string { return b.in("run/claims.json") }

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
	switch {
	case maps.Equal(all, before):
		return nil
	case len(all) == 0:
		return b.store.root.Remove(b.claimsFile())
	}
	return b.writeClaims(all)
}

func (b *Box) writeClaims(all claims) error {
	var stored []storedClaim
	for _, id := range slices.Sorted(maps.Keys(all)) {
		stored = append(stored, storedClaim{all[id], []wire.ID{id}})
	}
	data, err := json.Marshal(stored)
	if err == nil {
		err = b.mkdir(b.in("run"))
	}
	if err != nil {
		return err
	}
	return b.store.root.Replace(b.claimsFile(), append(data, '\n'), false)
}
