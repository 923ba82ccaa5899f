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

// Owner says who handles an unread message: runner:<run>, session:<id>, push:<session id> or lease:<agent>.
type Owner string

const (
	ownerRunner  Owner = "runner:"
	ownerSession Owner = "session:"
	ownerPush    Owner = "push:"
	ownerLease   Owner = "lease:"
)

// OfSession is the owner of what a session of the agent's program got in a hook's answer.
func OfSession(id string) Owner { return ownerSession + Owner(id) }

// PushedTo is the owner of what was given to a session beside its hooks: it may wait in the program.
func PushedTo(session string) Owner { return ownerPush + Owner(session) }

func (o Owner) is(kind Owner) bool { return strings.HasPrefix(string(o), string(kind)) }

// Session returns the session of OfSession and PushedTo, "" for another owner.
func (o Owner) Session() string {
	for _, kind := range []Owner{ownerSession, ownerPush} {
		if id, ok := strings.CutPrefix(string(o), string(kind)); ok {
			return id
		}
	}
	return ""
}

// claim says who is handling an unread message. While it is live, others skip the message. An expired claim is kept
// until the message leaves new, because it counts how often the message was handed out.
//
// Claims are only advice. If the file is missing, damaged or not accessible, there are no claims, and messages are
// shown once more. If reading it fails in another way, as with too many open files, nothing is written: that would end
// live claims.
//
//	run/claims.json    a list of {"owner","ids","at","until"?,"times",…}
type claim struct {
	Owner   Owner     `json:"owner"`
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"`    // absent in a runner's claim, live while the runner lock is held
	Times   int       `json:"times"`             // how often the message was handed out, this claim included
	Call    string    `json:"call,omitempty"`    // in a session's claim: see Recipient
	Offered bool      `json:"offered,omitempty"` // in a session's claim: the message was given to the program
}

const (
	sessionTime = 10 * time.Minute // how long a session's claim is live
	pushTime    = time.Hour        // likewise of what was pushed: it may wait for the end of a tool or for a person
	answerTime  = 10 * time.Second // how long it may take to write an answer
)

// maxHandovers is how often a message is handed to sessions in vain before only Read shows it.
const maxHandovers = 2

// isBeingGiven reports whether it is not recorded yet that the message was given to the session. Such a claim is live for
// seconds (answerTime): whoever gives it may have been killed.
func (c claim) isBeingGiven() bool { return c.Owner.Session() != "" && !c.Offered }

// isGivenUp reports whether the message was handed over in vain so often that only Read shows it.
func (c claim) isGivenUp() bool { return !c.Owner.is(ownerLease) && c.Times >= maxHandovers }

func (c claim) isLiveLease(now time.Time) bool { return c.Owner.is(ownerLease) && c.isLive(now, false) }

// isLive reports whether the claim counts. A claim from the future does not: the clock was set back since.
func (c claim) isLive(now time.Time, isRunning bool) bool {
	if c.Owner.is(ownerRunner) && c.Until.IsZero() {
		return isRunning
	}
	return now.Before(c.Until) && !c.At.After(now.Add(time.Minute)) && !c.Until.After(now.Add(MaxLease+time.Minute))
}

// endedAt returns the claim as expired: its owner may have received the message.
func (c claim) endedAt(now time.Time) claim {
	c.Until, c.Offered = now, false
	return c
}

// inClaim returns a time in a form that compares equal after a round trip through JSON.
func inClaim(t time.Time) time.Time { return t.UTC().Round(0) }

// claims holds the claims of a mailbox by message.
type claims map[wire.ID]claim

func (all claims) live(now time.Time, isRunning bool) claims {
	live := maps.Clone(all)
	maps.DeleteFunc(live, func(_ wire.ID, c claim) bool { return !c.isLive(now, isRunning) })
	return live
}

// hiddenFromReaders returns the live claims of messages that readers skip: a runner's, and leases.
func (b *Box) hiddenFromReaders(all claims) claims {
	if len(all) == 0 {
		return nil
	}
	hidden := all.live(time.Now(), b.isRunning())
	maps.DeleteFunc(hidden, func(_ wire.ID, c claim) bool { return c.Owner.Session() != "" })
	return hidden
}

// isRunning reports whether the agent's runner lock is held, also if that is not known: readers then skip what a runner
// may be typing.
func (b *Box) isRunning() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// tx is a mailbox under its reader lock, under which messages move and claims change.
type tx struct {
	*Box
	claims claims // as they are to be
	stored claims // as they are in the file
}

// update runs change under the reader lock, and writes the claims if it has changed them.
func (b *Box) update(ctx context.Context, change func(*tx) error) error {
	return b.locked(ctx, "reader", func() error {
		all, err := b.readClaims()
		var errno syscall.Errno
		if errors.As(err, &errno) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		t := &tx{b, all, maps.Clone(all)}
		if err := change(t); err != nil {
			return err
		}
		return t.save()
	})
}

// save writes the claims if they have changed, without those of messages that are no longer unread, unless they are new.
func (t *tx) save() error {
	if maps.Equal(t.claims, t.stored) {
		return nil
	}
	maps.DeleteFunc(t.claims, func(id wire.ID, c claim) bool {
		isUnread, err := t.has(t.unread(), id)
		return c == claim{} || err == nil && !isUnread && c == t.stored[id]
	})
	err := t.write()
	if err == nil {
		t.stored = maps.Clone(t.claims)
	}
	return err
}

// storedClaim is an entry of the file, which may be for several messages.
type storedClaim struct {
	claim
	IDs []wire.ID `json:"ids"`
}

func (t *tx) write() error {
	if len(t.claims) == 0 {
		return t.store.root.Remove(t.claimsFile())
	}
	var list []storedClaim
	for _, id := range slices.Sorted(maps.Keys(t.claims)) {
		list = append(list, storedClaim{t.claims[id], []wire.ID{id}})
	}
	data, err := json.Marshal(list)
	if err == nil {
		err = t.mkdir(t.in("run"))
	}
	if err != nil {
		return err
	}
	return t.store.root.Replace(t.claimsFile(), append(data, '\n'), false)
}

func (b *Box) claimsFile() string { return b.in("run/claims.json") }

// claims returns the claims for a caller that only looks.
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
	var list []storedClaim
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return all, err
	}
	for _, s := range list {
		for _, id := range s.IDs {
			if wire.IsID(string(id)) {
				all[id] = s.claim
			}
		}
	}
	return all, nil
}

// Claimed is a batch of messages that one owner has claimed together.
type Claimed struct {
	Batch
	Repeat map[wire.ID]bool // messages that were handed out before, and may have been received

	box    *Box
	left   []wire.ID // messages that are not known to have moved
	claim  claim     // the claim of each message, but for Times
	before claims    // all claims before
}

// claim selects messages as Read does, but for those in skipped, and claims them. It counts how often a message was
// handed out.
func (t *tx) claim(c claim, opt ReadOptions, skipped claims) (Claimed, error) {
	group := Claimed{Repeat: map[wire.ID]bool{}, box: t.Box, claim: c, before: maps.Clone(t.claims)}
	batch, err := t.choose(opt, t.claims, skipped)
	if err != nil {
		return Claimed{}, err
	}
	group.Batch = batch
	for _, it := range batch.Items {
		c.Times = t.claims[it.ID].Times + 1
		t.claims[it.ID] = c
		group.left = append(group.left, it.ID)
		if c.Times > 1 {
			group.Repeat[it.ID] = true
		}
	}
	return group, nil
}

// update replaces each claim of the group by change's result, unless the claim has changed meanwhile.
func (g *Claimed) update(ctx context.Context, change func(wire.ID, claim) claim) error {
	if len(g.left) == 0 {
		return nil
	}
	return g.box.update(ctx, func(t *tx) error {
		for _, id := range g.left {
			c := t.claims[id]
			if c.Owner == g.claim.Owner && c.At.Equal(g.claim.At) && c.Until.Equal(g.claim.Until) {
				t.claims[id] = change(id, c)
			}
		}
		return nil
	})
}

// Release undoes the claim: nothing of the messages was received.
func (g *Claimed) Release(ctx context.Context) error {
	return g.update(ctx, func(id wire.ID, _ claim) claim { return g.before[id] })
}

// Expire ends the claim when it is not known whether the messages were received: the next handover may be a repeat.
func (g *Claimed) Expire(ctx context.Context) error {
	return g.update(ctx, func(_ wire.ID, c claim) claim { return c.endedAt(inClaim(time.Now())) })
}
