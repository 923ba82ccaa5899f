package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// A door is a way into a terminal's program beside its keys. A text that is pushed through it does not meet what a person
// has half written. A terminal without one is typed at, and so is one whose door is shut: the next time, once, as a repeat
// if the program may have the text.
//
// look and push run beside the loop, one at a time, and heed ctx. The loop calls the other methods meanwhile.
type door interface {
	// by is the way, of agents.WayNames.
	by() string
	// isVerbatim reports whether the program acts on nothing in what is pushed: else that has the form of what is typed.
	isVerbatim() bool
	// look returns nil if the program that runs now, and has this on its screen, takes a text; else why not.
	look(ctx context.Context, screen []string) error
	// push hands a text over. errUnconfirmed: the program may have it; after another error it has not.
	push(ctx context.Context, out pushText) error
	// isReceived reports whether the program has told that what was pushed last began a turn. Hooks and the screen tell, too.
	isReceived() bool
}

// pushText is a text for a door.
type pushText struct {
	id   wire.ID // of its first message
	from string  // who the program may say it is from
	text string
}

// errUnconfirmed says that the program may have a text, and has not said so.
var errUnconfirmed = errors.New("the program has not confirmed it")

// newDoor returns the door that a terminal's program may have; nil: none.
func (p *terminal) newDoor() door {
	switch {
	case p.driver.Name == "claude":
		return &claudeDoor{env: p.r.Env, pid: p.PID(), command: p.r.Command}
	case p.driver.Name == "codex" && p.r.serverDir != "":
		return &codexDoor{socket: filepath.Join(p.r.serverDir, serverSocket)}
	case p.driver.Name == "opencode":
		return &pluginDoor{&p.plugin, p.r.Box}
	}
	return nil
}

// doorState is a terminal's door as the loop sees it. Zero: there is none.
type doorState struct {
	door
	shut      error     // why it takes nothing; nil: it is open
	lookedAt  time.Time // zero: never
	isLooking bool
	restUntil time.Time // it was of no use
}

const (
	lookTime  = 3 * time.Second
	handTime  = 8 * time.Second // a plugin starts a process or two for it
	lookEvery = 2 * time.Second // while there is mail
)

func (d *doorState) isOpen() bool { return d.door != nil && !d.lookedAt.IsZero() && d.shut == nil }

// lookForDoor reports whether it is being found out whether the door is open, which is asked again before each mail.
func (p *terminal) lookForDoor(now time.Time) (isLooking bool) {
	d, r := &p.door, p.r
	switch {
	case d.door == nil, now.Before(d.restUntil):
		return false
	case d.isLooking:
		return true
	case !d.lookedAt.IsZero() && now.Before(d.lookedAt.Add(lookEvery)):
		return false
	}
	d.isLooking = true
	screen := p.emulator.Lines()
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, lookTime)
		defer cancel()
		shut := d.look(ctx, screen)
		r.post(func() { d.shut, d.isLooking, d.lookedAt = shut, false, r.now() })
	})
	return true
}

// isPushable reports whether mail goes through the terminal's door.
func (p *terminal) isPushable() bool { return p.door.isOpen() }

// mayPush reports whether a message goes through the door of the program that runs. One for which that was in vain is
// typed.
func (r *runner) mayPush(id wire.ID) bool {
	return r.prog != nil && r.prog.isPushable() && r.inject() != Execute && !r.mail.pushedInVain[id]
}

// pushRecipe is the recipe for a text that is pushed:
//
//	claim, compose     as for one that is typed, but a draft and a person's keys are no reason to wait
//	push               the door takes it                        failed: it is typed
//	isReceived         a hook, the door or the screen shows it  unverified: it is typed once, as a repeat
func (p *terminal) pushRecipe() []recipeStep { return []recipeStep{{p.push, p.isReceived}} }

func (p *terminal) push(t *typing) error {
	r := p.r
	if mail, isMail := strings.CutSuffix(t.text, letter.End); isMail {
		t.text = mail + letter.NotTyped + "\n" + letter.End
	}
	t.text = Clean(t.text)
	t.draft, t.isWaiting = t.text, true
	r.follower.HandleTyped(t.text)
	out := pushText{t.items[0].ID, t.claim.Sender(), t.text}
	if t.asPointer { // which has nothing of a sender's
		out.from = "atm"
	}
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, handTime)
		defer cancel()
		err := p.door.push(ctx, out)
		r.post(func() {
			if t.failed, t.isWaiting = err, false; err == nil || errors.Is(err, errUnconfirmed) {
				t.failed, t.startedAt, t.pressedAt, t.returns = nil, r.now(), r.now(), 1
			}
		})
	})
	return nil
}

// frameOf is how the first message of a text begins, in a prompt and on the screen.
func (r *runner) frameOf(t *typing) string {
	return r.renderer(r.now(), t.items).FrameStart(t.items[0].ID)
}

// isReceived reports whether the text has begun a turn, or has come into one that a person began at that moment. Where
// hooks report the turns, work on the screen is no sign: it may be a person's.
func (p *terminal) isReceived(t *typing, now time.Time) (bool, error) {
	r := p.r
	if t.failed != nil {
		return false, p.pushFailed(t, outcomeFailed, t.failed)
	}
	isSeen := p.driver.ShowsAbove(p.look(), r.frameOf(t)) || !r.state.HasHooks() && p.driver.HasAccepted(p.look(), t.draft)
	switch {
	case t.isShown || p.door.isReceived() || isSeen:
		return true, nil
	case r.stopping != nil:
		return false, p.pushFailed(t, outcomeUnverified, errUnconfirmed)
	case r.mustWait(t.pressedAt.Add(5*r.timing.accept), now):
		return false, nil
	}
	return false, p.pushFailed(t, outcomeUnverified, errUnconfirmed)
}

// pushFailed has a text typed that was pushed in vain, and what comes next for a while. A text that the program may have
// is given only once more.
func (p *terminal) pushFailed(t *typing, outcome string, err error) error {
	m, d := &p.r.mail, &p.door
	d.shut, d.restUntil = err, p.r.now().Add(retryLast)
	for _, id := range idsOf(t.items) {
		m.pushedInVain[id] = true
		if outcome == outcomeUnverified {
			m.tries[id] = control.MaxTries - 2 // and one more is counted
		}
	}
	m.requeue(idsOf(t.items))
	return &injectError{outcome, fmt.Sprintf("%s: %v", d.by(), err)}
}

// promptShown takes a prompt that hooks report for a receipt: of the text that is being pushed, or, late, of one that was
// to be typed because there was none.
func (r *runner) promptShown(e *wire.Event) {
	if e.Kind != wire.TurnStarted || e.Source != "hook" {
		return
	}
	t, prompt := r.mail.typing, e.Text("prompt")
	if t != nil && t.isPush && len(t.items) > 0 && strings.Contains(prompt, r.frameOf(t)) {
		t.isShown = true
		return
	}
	for id := range r.mail.pushedInVain {
		isGiven := t != nil && slices.Contains(t.ids, id)
		if isGiven || !strings.Contains(prompt, (&letter.Renderer{Digits: 6}).FrameStart(id)) {
			continue
		}
		r.mail.unqueue(id)
		r.changeClaim(func() error {
			c, err := r.Hold.Claim(context.Background(), []wire.ID{id})
			if err != nil {
				return err
			}
			return c.Typed(context.Background())
		})
	}
}
