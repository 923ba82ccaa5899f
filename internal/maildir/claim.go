package maildir

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

// A claim says who is handling an unread message: a runner that types it, a session of the agent's program that a hook
// handed it to, or a member who leased it. While a claim is live, others skip the message. An expired claim is kept
// until the message leaves new, because it counts how often the message was handed out.
//
// Claims are only advice. If the file is missing, damaged or not accessible, there are no claims, and messages are
// shown once more. If reading it fails in another way, as with too many open files, nothing is written: that would end
// live claims.
//
//	run/claims.json    a list of {"owner","ids","at","until"?,"times",…}
type claim struct {
	Owner   string    `json:"owner"` // runner:<run>, session:<id> or lease:<agent>
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"`    // absent in a runner's claim, live while the runner lock is held
	Times   int       `json:"times"`             // how often the message was handed out, this claim included
	Call    string    `json:"call,omitempty"`    // in a session's claim: the hook call that made it
	Offered bool      `json:"offered,omitempty"` // in a session's claim: the hook has answered, or the push is over
	IsPush  bool      `json:"push,omitempty"`    // in a session's claim: see HookCall.IsPush
	Acked   bool      `json:"acked,omitempty"`   // the message was acknowledged before it was put back
}

// Owners of claims begin with one of these.
const (
	ownerRunner  = "runner:"
	ownerSession = "session:"
	ownerLease   = "lease:"
)

func (c claim) isRunner() bool                 { return strings.HasPrefix(c.Owner, ownerRunner) }
func (c claim) isLease() bool                  { return strings.HasPrefix(c.Owner, ownerLease) }
func (c claim) isLiveLease(now time.Time) bool { return c.isLease() && c.isLive(now, false) }

// isBeingGiven reports whether it is not recorded yet that the message was given to the session. Such a claim is live for
// seconds (answerTime): its owner may have been killed.
func (c claim) isBeingGiven() bool { return strings.HasPrefix(c.Owner, ownerSession) && !c.Offered }

// isGivenUp reports whether the message was handed over in vain so often that only Read shows it.
func (c claim) isGivenUp() bool { return !c.isLease() && c.Times >= maxHandovers }

// isLive reports whether the claim counts. A claim from the future does not: the clock was set back since.
func (c claim) isLive(now time.Time, isRunning bool) bool {
	if c.isRunner() && c.Until.IsZero() {
		return isRunning
	}
	return now.Before(c.Until) && !c.At.After(now.Add(time.Minute)) && !c.Until.After(now.Add(MaxLease+time.Minute))
}

// endedAt returns the claim as expired: its owner may have received the message.
func (c claim) endedAt(now time.Time) claim {
	c.Until, c.Offered = now, false
	return c
}

// claimNow returns the time in a form that compares equal after a round trip through JSON.
func claimNow() time.Time { return time.Now().UTC().Round(0) }

// claims holds the claims of a mailbox by message.
type claims map[wire.ID]claim

func (all claims) live(now time.Time, isRunning bool) claims {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c claim) bool { return !c.isLive(now, isRunning) })
	return live
}

// hiddenFromReaders returns the live claims of messages that readers skip: a runner's, and leases.
func (b *Box) hiddenFromReaders() claims {
	hidden := b.claims().live(time.Now(), b.isRunning())
	maps.DeleteFunc(hidden, func(_ wire.ID, c claim) bool { return !c.isRunner() && !c.isLease() })
	return hidden
}

// isRunning reports whether the agent's runner lock is held, also if that is not known: readers then skip what a runner
// may be typing.
func (b *Box) isRunning() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// claimGroup is a batch of messages that were claimed together.
type claimGroup struct {
	Batch
	Repeat map[wire.ID]bool // messages that were handed out before, and may have been received

	box    *Box
	left   []wire.ID // messages that are not known to have moved
	claim  claim     // the claim of each message, but for Times and Acked
	before claims    // all claims before
}

// claimUnread selects messages as Read does, but for those in skipped, and adds a claim of each to all. It counts how
// often a message was handed out.
func (b *Box) claimUnread(all claims, opt ReadOptions, skipped claims, c claim) (claimGroup, error) {
	group := claimGroup{Repeat: map[wire.ID]bool{}, box: b, claim: c, before: maps.Clone(all)}
	batch, err := b.choose(opt, skipped)
	if err != nil {
		return claimGroup{}, err
	}
	group.Batch = batch
	for _, it := range batch.Items {
		c.Times, c.Acked = all[it.ID].Times+1, all[it.ID].Acked
		all[it.ID] = c
		group.left = append(group.left, it.ID)
		if c.Times > 1 {
			group.Repeat[it.ID] = true
		}
	}
	return group, nil
}

// update replaces each claim of the group by change's result, unless the claim has changed meanwhile.
func (g *claimGroup) update(ctx context.Context, change func(wire.ID, claim) claim) error {
	if len(g.left) == 0 {
		return nil
	}
	return g.box.updateClaims(ctx, func(all claims) error {
		for _, id := range g.left {
			c := all[id]
			if c.Owner == g.claim.Owner && c.At.Equal(g.claim.At) && c.Until.Equal(g.claim.Until) {
				all[id] = change(id, c)
			}
		}
		return nil
	})
}

// restoreBefore undoes a claim whose owner did not receive the message; it is for update.
func (g *claimGroup) restoreBefore(id wire.ID, _ claim) claim { return g.before[id] }

// storedClaim is an entry of the file, which may be for several messages.
type storedClaim struct {
	claim
	IDs []wire.ID `json:"ids"`
}

func (b *Box) claimsFile() string { return b.in("run/claims.json") }

func (b *Box) claims() claims {
	all, _ := b.readClaims()
	return all
}

// readClaims returns the claims, and an error if the file is ignored.
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

// claimsToChange reads the claims for an update; unlike claims it reports I/O errors.
func (b *Box) claimsToChange() (claims, error) {
	all, err := b.readClaims()
	var errno syscall.Errno
	if errors.As(err, &errno) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return all, nil
}

// updateClaims changes the claims under the reader lock.
func (b *Box) updateClaims(ctx context.Context, change func(claims) error) error {
	return b.locked(ctx, "reader", func() error { return b.changeClaims(change) })
}

// changeClaims changes the claims and drops those of messages that are no longer unread. The caller holds the reader
// lock.
func (b *Box) changeClaims(change func(claims) error) error {
	all, err := b.claimsToChange()
	if err != nil {
		return err
	}
	before := maps.Clone(all)
	maps.DeleteFunc(all, func(id wire.ID, _ claim) bool {
		isUnread, err := b.has(b.unread(), id)
		return err == nil && !isUnread
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
