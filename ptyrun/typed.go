package ptyrun

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// typingDone ends an injection that the program accepted. Only now do the messages become read.
func (r *runner) typingDone(t *typing) {
	r.mail.typing, r.mail.failures, r.restored = nil, 0, nil
	turn, ids, forever := r.beginTurn(t.text, r.now()), idsOf(t.items), context.Background()
	r.turn.ids = ids
	switch {
	case t.claim != nil && r.Inject != Pointer:
		t.claim.Turn = turn
		r.changeClaim(func() error {
			err := t.claim.Typed(forever)
			if _, ok := errors.AsType[*mailbox.UnloggedError](err); ok { // retry only the events
				r.appendForAll(wire.Event{Kind: wire.EventInjected, TurnID: turn}, ids)
			}
			return err
		})
	case t.claim != nil:
		r.changeClaim(func() error { return t.claim.NotTyped(forever) })
		r.appendForAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), ids)
	}
	r.addMarkers("injected:", t)
	r.writeRunInfo() // it has the driver of the program that got the mail
	r.releaseKeys()
}

func (r *runner) appendForAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		r.appendEvent(e.With("id", string(id)))
	}
}

// typingFailed ends an injection that the program did not accept, or may not have.
func (r *runner) typingFailed(t *typing, outcome, reason string) {
	r.mail.typing = nil
	r.Log.Warn("typing", "outcome", outcome, "reason", reason)
	isInPart := t.isSubmittedInPart()
	if isInPart {
		outcome = outcomeUnverified
	}
	ids := idsOf(t.items)
	r.appendForAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", reason), ids)
	hasEnded := r.prog == nil && t.hasBegun() // perhaps because of this text
	for _, id := range ids {
		switch {
		case isInPart:
			r.mail.tries[id] = control.MaxTries
		case outcome != outcomeFailed || hasEnded:
			r.mail.tries[id]++
		}
	}
	r.addMarkers("failed:", t)
	isCleared := !t.hasBegun() || r.clearDraft(t)
	if t.claim == nil {
		r.reportError("the first prompt was not typed: " + reason)
	} else {
		settle := t.claim.MaybeTyped // a program that hung may still read it
		if isCleared && t.returns == 0 && !isInPart {
			settle = t.claim.NotTyped
		}
		r.changeClaim(func() error { return settle(context.Background()) })
	}
	isLeftInBox := !t.isSubmitted() && r.prog != nil && !r.prog.driver.Plain
	if t.hasBegun() && (outcome == outcomeFailed || isLeftInBox) {
		r.retryLater(t)
	}
	r.releaseKeys()
}

// retryLater queues the messages of a text that the program did not accept, as far as its screen shows; nothing may
// happen until the next try. (If return keys were pressed, by us or a person, it may have: MaybeTyped marks the message
// as a possible repeat.)
func (r *runner) retryLater(t *typing) {
	m := &r.mail
	m.requeue(idsOf(t.items))
	m.retryAt = r.now().Add(min(retryFirst<<min(m.failures, 10), retryLast))
	m.failures++
}

// clearDraft removes the text from the draft and reports whether it did. It never removes a person's text.
func (r *runner) clearDraft(t *typing) bool {
	if !t.isMixed {
		// It may appear in the draft late, where it would block all mail.
		r.restored = &restoredDraft{text: t.draft, since: t.startedAt, silentVersion: t.versionBefore, isFailed: true}
		if t.isSubmitted() {
			r.restored.silentVersion = t.pressedVersion
		}
	}
	p := r.prog
	if p == nil || t.isSubmitted() && r.isSilentSince(t) { // it may ask something before it reads these keys
		return false
	}
	if r.returnGate() != "" || !p.driver.HasInBox(p.look(), t.draft) || !isPartOf(p.reading.Draft, t.draft) {
		return false
	}
	p.sendKeys(p.driver.ClearDraft(p.reading.Draft)...)
	return true
}
