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

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// An Owner handles an unread message. In the file it is kind:id.
type Owner struct {
	kind ownerKind
	id   string
}

type ownerKind string

const (
	ofRunner  ownerKind = "runner"  // its id is the run's
	ofSession ownerKind = "session" // of the agent's program
	ofPush    ownerKind = "push"    // likewise
	ofLease   ownerKind = "lease"   // its id is a member; "": the message was given back
)

// OfSession is the owner of what a session of the agent's program got in a hook's answer.
func OfSession(id string) Owner { return Owner{ofSession, id} }

// PushedTo is the owner of what was given to a session beside its hooks: it may wait in the program.
func PushedTo(session string) Owner { return Owner{ofPush, session} }

// IsPush reports whether it is one of PushedTo.
func (o Owner) IsPush() bool { return o.kind == ofPush }

// Session returns the session of OfSession and PushedTo, "" for another owner.
func (o Owner) Session() string {
	if o.kind == ofSession || o.kind == ofPush {
		return o.id
	}
	return ""
}

// MarshalText implements encoding.TextMarshaler.
func (o Owner) MarshalText() ([]byte, error) { return []byte(string(o.kind) + ":" + o.id), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An owner of no known kind is nobody's: its claim ends by itself.
func (o *Owner) UnmarshalText(text []byte) error {
	kind, id, _ := strings.Cut(string(text), ":")
	*o = Owner{ownerKind(kind), id}
	return nil
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
func (c claim) isGivenUp() bool { return c.Owner.kind != ofLease && c.Times >= maxHandovers }

func (c claim) isLiveLease(now time.Time) bool {
	return c.Owner.kind == ofLease && c.isLive(now, false)
}

// isLive reports whether the claim counts. A claim from the future does not: the clock was set back since.
func (c claim) isLive(now time.Time, isRunning bool) bool {
	if c.Owner.kind == ofRunner && c.Until.IsZero() {
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
	if durable.IsAbsent(err) {
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

// A Claim is unread messages that one owner handles: a runner gives them to its agent, or a session of the agent's
// program gets them. They stay unread, and others skip them, until it is known what became of them: one of the methods says
// that. A method that failed may be called again. A Claim is not for concurrent use.
type Claim struct {
	Batch                   // without Items there is no mail
	Repeat map[wire.ID]bool // messages that were handed out before, and may have been received

	// Of Runner.Claim.
	Leased []wire.ID // skipped because they are leased
	Turn   string    // the turn that the messages went into, if known, for the event injected

	// Of HandOver.
	GivenUp    int  // unread messages that were handed over too often in vain
	IsFull     bool // as many pushed messages as may wait in the session
	IsRepeated bool // the same call, of a hook that is installed twice, has just claimed mail: the program goes on

	box    *Box
	left   []wire.ID // messages that are not known to have moved
	claim  claim     // the claim of each message, but for Times
	before claims    // all claims before

	runner   *Runner // nil: the owner is no runner
	isTyped  bool
	unlogged []wire.Event // once it is typed: those injected that are not in the log yet
}

// take selects messages as Read does, but for those in skipped, and claims them. It counts how often a message was
// handed out.
func (g *Claim) take(t *tx, c claim, opt ReadOptions, skipped claims) error {
	batch, err := t.choose(opt, t.claims, skipped)
	if err != nil {
		return err
	}
	g.Batch, g.Repeat, g.box, g.claim, g.before = batch, map[wire.ID]bool{}, t.Box, c, maps.Clone(t.claims)
	for _, it := range batch.Items {
		c.Times = t.claims[it.ID].Times + 1
		t.claims[it.ID] = c
		g.left = append(g.left, it.ID)
		if c.Times > 1 {
			g.Repeat[it.ID] = true
		}
	}
	return nil
}

// update replaces each claim of the group by change's result, unless the claim has changed meanwhile.
func (g *Claim) update(ctx context.Context, change func(wire.ID, claim) claim) error {
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

// Release undoes the claim: nothing of the messages was received. Of a runner's the caller logs injection_failed with the
// reason.
func (g *Claim) Release(ctx context.Context) error {
	g.forget()
	return g.update(ctx, func(id wire.ID, _ claim) claim { return g.before[id] })
}

// Expire ends the claim when it is not known whether the messages were received: the next one may be a repeat.
func (g *Claim) Expire(ctx context.Context) error {
	g.forget()
	return g.update(ctx, func(_ wire.ID, c claim) claim { return c.endedAt(inClaim(time.Now())) })
}

// forget says that the messages are not being typed any more.
func (g *Claim) forget() {
	for _, id := range g.left {
		if g.runner != nil {
			g.runner.typing.CompareAndDelete(id, g)
		}
	}
}

// Sent records that the mail was given to the program, which may not have received it yet, and returns the events
// message_announced for the caller to append.
func (g *Claim) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range g.Items {
		announced = append(announced, g.claim.Owner.event(wire.EventAnnounced, it.ID))
	}
	return announced, g.update(ctx, func(_ wire.ID, c claim) claim {
		c.Offered, c.Until = true, c.At.Add(sessionTime)
		if c.Owner.IsPush() {
			c.Until = c.At.Add(pushTime)
		}
		return c
	})
}

// Typed moves a runner's messages as read, since the agent received them, and logs injected; also for a message that the
// agent has moved meanwhile by answering it. A message that cannot be moved stays claimed. After an error, calling Typed
// again does what is missing.
//
// It logs before it moves: of what a killed runner moved the log always tells, so the next one can give it again.
func (g *Claim) Typed(ctx context.Context) error {
	var errs []error
	err := g.box.update(ctx, func(t *tx) error {
		if err := g.logInjected(ctx); err != nil {
			return err
		}
		g.left = slices.DeleteFunc(g.left, func(id wire.ID) (isMoved bool) {
			if _, err := t.markRead(id); err != nil && !errors.Is(err, ErrNotFound) {
				errs = append(errs, err)
				return false
			}
			delete(t.claims, id)
			g.runner.typing.CompareAndDelete(id, g)
			return true
		})
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// logInjected logs injected for all messages, each once.
func (g *Claim) logInjected(ctx context.Context) error {
	if !g.isTyped {
		for _, it := range g.Items {
			e := event("pty", wire.EventInjected, it.ID)
			e.TurnID = g.Turn
			g.unlogged = append(g.unlogged, g.box.WithType(e, it))
		}
		g.isTyped = true
	}
	err := g.box.Log().Append(ctx, g.unlogged...)
	g.unlogged = slices.DeleteFunc(g.unlogged, func(e wire.Event) bool { return err == nil || e.Seq != 0 })
	return err
}
