package ptyrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// mail is what is to be typed.
type mail struct {
	queue          []wire.ID       // named by the reducer to be handed over, in order
	typing         *typing         // on its way in; nil: nothing is
	isPrompted     bool            // the first prompt was typed, or given up
	isPromptUndone bool            // it was typed, and undone by urgent mail, which goes before it now
	isInterrupting bool            // into the turn, for urgent mail
	needsReminder  bool            // an answer is: the agent is to be reminded as soon as it may be typed into
	retryAt        time.Time       // after a failure
	tries          map[wire.ID]int // how often a message was typed and perhaps not taken
	failures       int             // in a row
	lastFailure    wire.Event      // that typing a message in failed, until something else is told of it
}

func (r *runner) handleEntry(e watcher.Entry) {
	now := r.Now()
	switch {
	case e.Message != nil:
		if old := e.Message.Supersedes; old != "" {
			r.rereadMessage(old)
		}
		r.messageArrived(e.Message, now)
	case e.Event != nil:
		r.apply(reducer.Input{Now: now, Event: e.Event})
		r.handleSessionEvent(e.Event)
		r.answerLoggedQuestion(e.Event)
		if e.Event.Kind == wire.EventInjectionFailed {
			r.mail.lastFailure = *e.Event
		} else if e.Event.MessageID() == r.mail.lastFailure.MessageID() {
			r.mail.lastFailure = wire.Event{}
		}
		switch id := e.Event.MessageID(); e.Event.Kind {
		case wire.EventAgain: // the watcher tells of a message once
			r.rereadMessage(id)
		case wire.EventWithdrawn:
			if it, err := r.Box.Get(id); err == nil {
				r.rereadMessage(it.Supersedes)
			}
		}
	case e.Err != nil:
		r.Log.Error("watching", "err", e.Err)
	}
}

func (r *runner) rereadMessage(id wire.ID) {
	if it, err := r.Box.Get(id); err == nil {
		r.messageArrived(it, r.Now())
	}
}

func (r *runner) messageArrived(it *mailbox.Item, now time.Time) {
	mail := &reducer.Mail{
		ID: it.ID, Urgent: it.Urgent(), Expires: it.ExpiresAt, Due: it.DueAt,
		Read: it.State != mailbox.Unread, Never: it.SupersededBy != "",
	}
	if !r.admitsInput(it) || r.Inject == Off || mail.Read && mail.Due.IsZero() {
		return
	}
	if it.Lease != nil && it.Lease.Until.After(now) {
		mail.Held = it.Lease.Until
	}
	r.hasMoreMail = r.hasMoreMail || !r.state.HasRoom()
	r.apply(reducer.Input{Now: now, Arrived: mail})
}

// readMailLeft tells the reducer of the mail that it had no room for, now that it has some.
func (r *runner) readMoreMail() {
	if !r.hasMoreMail || !r.state.HasRoom() {
		return
	}
	ids, err := r.Box.UnreadIDs()
	r.hasMoreMail = err != nil
	for _, id := range ids {
		r.rereadMessage(id)
		if r.hasMoreMail {
			return
		}
	}
}

func (r *runner) apply(in reducer.Input) {
	for _, e := range r.state.Apply(in) {
		switch e.Do {
		case reducer.Deliver:
			r.mail.enqueue(e.IDs)
		case reducer.Interrupt:
			if r.mail.isInterrupting { // for another urgent one, and this comes with it
				break
			}
			r.mail.isInterrupting = true
			r.wg.Go(func() {
				defer r.post(func() { r.mail.isInterrupting = false })
				if _, err := r.interrupt(r.ctx, true); err != nil { // it waits for the turn's end, as other mail does
					r.Log.Warn("interrupting for urgent mail", "ids", e.IDs, "err", err)
				}
			})
		case reducer.Overdue:
			r.mail.needsReminder = true
			r.requestOverdueCheck()
		}
	}
	if r.state.Turn().Word() != reducer.WordIdle {
		r.mail.queue = nil // it will be named again
	}
}

// stepMail carries on with what is being typed, or begins with what is queued.
func (r *runner) stepMail(now time.Time) {
	m := &r.mail
	if m.typing != nil {
		m.typing.resume()
		return
	}
	isFirst := !m.isPrompted && r.Prompt != "" && r.Inject != Off && !(m.isPromptUndone && len(m.queue) > 0)
	switch {
	case !isFirst && len(m.queue) == 0:
		if m.needsReminder && r.gate(now) == control.GateOpen {
			r.requestOverdueCheck()
		}
	case r.mustWait(m.retryAt, now) || r.gate(now) != control.GateOpen:
	case isFirst:
		m.isPrompted = true
		r.begin(&typing{text: r.Prompt})
	case r.knowsSessions(m.queue, now):
		n := 1
		for !r.isAlone(m.queue[0]) && n < min(len(m.queue), maxClaimed) && !r.isAlone(m.queue[n]) {
			n++
		}
		r.begin(&typing{ids: slices.Clone(m.queue[:n])})
	}
}

// isAlone reports whether a message is typed with no other: one that the program ended on would take these with it.
func (r *runner) isAlone(id wire.ID) bool { return r.prog.driver.Plain || r.mail.tries[id] > 0 }

func (m *mail) enqueue(ids []wire.ID) {
	m.unqueue(ids...)
	m.queue = append(m.queue, m.retriable(ids)...)
	m.retryAt = time.Time{} // something has happened
}

func (m *mail) requeue(ids []wire.ID) {
	m.unqueue(ids...)
	m.queue = append(m.retriable(ids), m.queue...)
}

func (m *mail) unqueue(ids ...wire.ID) {
	m.queue = slices.DeleteFunc(m.queue, func(id wire.ID) bool { return slices.Contains(ids, id) })
}

// notTiredOf are those messages that were not tried too often.
func (m *mail) retriable(ids []wire.ID) []wire.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return m.tries[id] >= control.MaxTries })
}

// changeClaim says what became of a claim, in order. What fails is tried again until the run is over,
// beside what is claimed next: one claim that is stuck blocks no other mail.
func (r *runner) changeClaim(change func() error) {
	r.claims.do(func() {
		if change() != nil {
			r.wg.Go(func() { r.retry("changing a claim", change) })
		}
	})
}

func (r *runner) requestOverdueCheck() {
	select {
	case r.overdueCheck <- struct{}{}:
	default:
	}
}

// remindEvery is how often overdue answers are looked for. Tests shorten it.
var remindEvery = time.Minute

// remind sends what is due about answers that are overdue, beside the loop: when the reducer names one, when the agent
// may be typed into after that, and every minute, since that knows nothing of what was read before the runner began.
func (r *runner) remind() {
	for next := checkEvery; r.Remind != nil; next = remindEvery {
		select {
		case <-r.overdueCheck:
		case <-time.After(next):
		case <-r.done:
			return
		}
		isIdle, err := inLoop(r, func() (bool, error) {
			p := r.prog
			isShell := p != nil && p.driver.Plain // which would run the reminder
			isOpen := p != nil && r.mail.typing == nil && r.gate(r.Now()) == control.GateOpen
			r.mail.needsReminder = r.mail.needsReminder && !isOpen // else once it is: what was just typed may not show yet
			return isOpen && !isShell, nil
		})
		if err != nil {
			return
		}
		if err := r.Remind(r.ctx, isIdle); err != nil {
			r.Log.Error("telling of overdue answers", "err", err)
		}
	}
}

// takeBackUnseen makes unread what was typed last by a runner that was killed, unless the program has shown
// since then more than that it thinks: it may have ended before its model got the text. What a shell got it runs, and
// that may not come twice.
func undoLastTyping(ctx context.Context, box *mailbox.Box) error {
	if last, _ := runinfo.Read(box.Store().Dir(), box.Agent()); last.Driver == "plain" {
		return nil
	}
	events, err := box.Log().Tail(func(e *wire.Event) bool {
		isThinking := e.Kind == "state_change" && e.Field("new") == string(reducer.Thinking)
		return e.Kind != wire.EventInjected && e.Kind != wire.TurnStarted && !isThinking
	})
	for _, e := range events {
		if e.Kind == wire.EventInjected && e.Field("as") != "pointer" {
			err = errors.Join(err, box.MarkUndone(ctx, e.MessageID()), box.Log().Append(ctx, wire.Event{Source: "pty", Kind: wire.EventAgain}.With("id", string(e.MessageID()))))
		}
	}
	return err
}
