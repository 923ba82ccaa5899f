package ptyrun

import (
	"context"
	"errors"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// An injectError says why the program did not accept a text, or may not have. errNotInjected ends a recipe without an
// event, because nothing has happened.
type injectError struct{ outcome, reason string }

func (e *injectError) Error() string { return e.reason }

var errNotInjected = errors.New("nothing is typed")

// The outcomes of a failed injection, as in its event. Unverified: the text was not seen on the screen, or not seen to
// be accepted. Failed: it was not submitted or stayed in the draft. Stuck: the program did not read it.
const outcomeUnverified, outcomeFailed, outcomeStuck = "unverified", "failed", "stuck"

// typingDone ends an injection that the program accepted. Only now do the messages become read.
func (r *runner) typingDone(t *typing) {
	r.mail.typing, r.mail.failures = nil, 0
	turn, ids := r.prog.given(t), idsOf(t.items)
	r.mail.given, r.mail.givenPrompt, r.mail.hasPointer = ids, t.prompt, t.asPointer
	if t.prompt != nil {
		t.prompt.tell(nil)
	}
	switch {
	case t.claim != nil && !t.asPointer:
		t.claim.Turn = turn
		r.changeClaim(func() error {
			r.events.wait() // the log has the turn first: see undoLastTyping
			return t.claim.Typed(context.Background())
		})
	case t.claim != nil:
		r.changeClaim(func() error { return t.claim.Release(context.Background()) })
		r.appendForAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), ids)
	}
	r.addMarkers("injected:", t)
	r.writeRunInfo() // it has the driver of the program that got the mail
	r.releaseKeys()
}

// abandonTyping gives up the text being typed. One that is only being claimed needs nothing, since compose checks the gate
// once more; one that was submitted is watched by isAccepted as long as there is a program.
func (r *runner) abandonTyping(reason string) {
	t := r.mail.typing
	switch {
	case t.isSubmitted() && r.prog == nil:
		r.typingFailed(t, outcomeUnverified, reason+", after the return key")
	case t.hasBegun() && !t.isSubmitted():
		r.typingFailed(t, outcomeFailed, reason)
	case t != nil && t.step > 0 && r.prog == nil: // an agent that is given its texts beside the loop may have got it
		r.typingFailed(t, outcomeUnverified, reason)
	}
}

// typingFailed ends an injection that the program did not accept, or may not have. What becomes of the messages:
//
//	nothing was written             they stay as they were; compose has queued those that may be typed later
//	our text was removed in time,   the same, and they are typed again after a pause
//	or it was a pointer
//	something was written           the next handover is marked as a possible repeat; they are typed again after a
//	                                pause if the program visibly does not have them, else when the reducer says so
//	perhaps it was accepted         one of MaxTries
//	lines of it were submitted      the last of MaxTries: they must not run again
func (r *runner) typingFailed(t *typing, outcome, reason string) {
	m, ids, isInPart := &r.mail, idsOf(t.items), t.isSubmittedInPart()
	m.typing = nil
	if isInPart {
		outcome = outcomeUnverified
	}
	r.Log.Warn("typing", "outcome", outcome, "reason", reason)
	r.appendForAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", reason), ids)
	r.addMarkers("failed:", t)
	hasEndedProgram := r.prog == nil && t.hasBegun() // perhaps
	for _, id := range ids {
		switch {
		case isInPart:
			m.tries[id] = control.MaxTries
		case outcome != outcomeFailed || hasEndedProgram:
			m.tries[id]++
		}
	}
	wasTakenBack := t.hasBegun() && r.prog != nil && r.prog.takeBack(t)
	isUntouched := !t.hasBegun() || wasTakenBack && !t.isSubmitted() && !isInPart || t.asPointer
	if t.prompt != nil {
		if !t.prompt.tell(&injectError{outcome, "the text was not accepted: " + reason}) {
			r.reportError("the first prompt was not typed: " + reason)
		}
	} else if isUntouched {
		r.changeClaim(func() error { return t.claim.Release(context.Background()) })
	} else { // a program that hung may still read it
		r.changeClaim(func() error { return t.claim.Expire(context.Background()) })
	}
	isLeftInBox := !t.isSubmitted() && r.prog != nil && !r.prog.state().isPlain
	if t.hasBegun() && (outcome == outcomeFailed || isLeftInBox) {
		m.requeue(ids)
		m.retryAt = r.now().Add(min(retryFirst<<min(m.failures, 10), retryLast))
		m.failures++
	}
	r.releaseKeys()
}

func (r *runner) appendForAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		r.append(e.With("id", string(id)))
	}
}

func idsOf(items []*maildir.Item) []wire.ID {
	ids := make([]wire.ID, 0, len(items))
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}
