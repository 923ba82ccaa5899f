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

// A claim says that somebody is handling an unread message: a runner types it, a hook
// has handed it to a session of the agent's program, or a member took it under a lease.
// While a claim is live, others pass the message over. A claim that is over stays until
// the message has left new, to say how often it was given out.
//
// Claims are advice. A file that is gone, is none, or is closed to us counts as none: its
// messages are unread, and are shown once more. Where reading it fails in another way,
// as with too many open files, who only looks does the same; but nothing is changed,
// since that would end the claims of others.
//
//	run/claims.json    a list of {"owner","ids","at","until"?,"times",…}
type claim struct {
	Owner string    `json:"owner"` // runner:<run>, session:<id> or lease:<agent>
	At    time.Time `json:"at"`

	// Until is when the claim ends. A runner's has none: it is live while the runner
	// lock is held.
	Until time.Time `json:"until,omitzero"`

	// Times is how often the message was given out, this time included.
	Times int `json:"times"`

	Call    string `json:"call,omitempty"`    // a session's: which call of its hook
	Offered bool   `json:"offered,omitempty"` // a session's: the hook's answer is out
}

// The owners of claims.
const (
	ownerRunner  = "runner:"
	ownerSession = "session:"
	ownerLease   = "lease:"
)

func (c claim) isRunner() bool { return strings.HasPrefix(c.Owner, ownerRunner) }
func (c claim) isLease() bool  { return strings.HasPrefix(c.Owner, ownerLease) }

// isLive reports whether the claim counts. One from the future is of a clock that was
// set back since.
func (c claim) isLive(now time.Time, running bool) bool {
	switch {
	case c.isRunner() && c.Until.IsZero():
		return running
	case c.At.After(now.Add(time.Minute)), c.Until.After(now.Add(MaxLease + time.Minute)):
		return false
	}
	return now.Before(c.Until)
}

// claims are those of a mailbox, by message.
type claims map[wire.ID]claim

// live are the claims that count.
func (all claims) live(now time.Time, running bool) claims {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c claim) bool { return !c.isLive(now, running) })
	return live
}

// release ends the claim of a message. uncounted is 1 when the message did not reach
// the owner, so that this time does not count.
func (all claims) release(id wire.ID, now time.Time, uncounted int) {
	c := all[id]
	c.Times, c.Until, c.Offered = c.Times-uncounted, now, false
	if all[id] = c; c.Times == 0 {
		delete(all, id)
	}
}

// keptFromReaders are the claims that keep messages from who reads: a runner's and the
// leases.
func (b *Box) keptFromReaders() claims {
	kept := b.claims().live(time.Now(), b.running())
	maps.DeleteFunc(kept, func(_ wire.ID, c claim) bool { return !c.isRunner() && !c.isLease() })
	return kept
}

const maxClaims = 8 << 20 // bytes of the file

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
	data, err := b.store.root.ReadFile(b.claimsFile(), maxClaims)
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

// updateClaims is changeClaims under the reader's lock.
func (b *Box) updateClaims(ctx context.Context, change func(claims) error) error {
	return b.locked(ctx, "reader", func() error { return b.changeClaims(change) })
}

// changeClaims changes what is claimed, in the one place where that happens. The
// reader's lock is held. Claims of messages that are no longer unread go.
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
	if maps.Equal(all, before) {
		return nil
	}
	if len(all) == 0 {
		return b.store.root.Remove(b.claimsFile())
	}
	var stored []storedClaim
	for _, id := range slices.Sorted(maps.Keys(all)) {
		i := slices.IndexFunc(stored, func(s storedClaim) bool { return s.claim == all[id] })
		if i < 0 {
			i, stored = len(stored), append(stored, storedClaim{claim: all[id]})
		}
		stored[i].IDs = append(stored[i].IDs, id)
	}
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	if err := b.mkdir(b.in("run")); err != nil {
		return err
	}
	if b.store.root.IsDir(b.claimsFile()) == nil {
		if err := b.setAside(b.claimsFile(), "claims.json", "it lay where the claims belong"); err != nil {
			return err
		}
	}
	return b.store.root.Replace(b.claimsFile(), append(data, '\n'), false)
}

// running reports whether the agent's runner lock is held. Where that cannot be told
// the runner counts as running: what it types is passed over.
func (b *Box) running() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// claimTime is a time as a claim has it.
func claimTime(t time.Time) time.Time { return t.UTC().Round(0) }

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")
