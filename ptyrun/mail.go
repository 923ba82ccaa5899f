package ptyrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/queue"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// mail is the queue of messages to give, and the one being given.
type mail struct {
	queue          []wire.ID       // to deliver, as the queue named them, in order
	giving         *giving         // nil: nothing is being given
	last           *giving         // what the agent got last; nil: nothing that could be undone
	prompts        []*prompt       // to give before any mail; the one being given among them
	isInterrupting bool            // a turn, for urgent mail
	needsReminder  bool            // an answer is overdue: remind the agent as soon as the gate opens
	remindAt       time.Time       // when overdue answers are checked next
	retryAt        time.Time       // when the next text may be given; zero: none has just failed
	pause          time.Duration   // before that; zero: the last text was accepted
	tries          map[wire.ID]int // how often a message was given, and nothing told whether it arrived
	lastFailure    wire.Event      // injection_failed, until the same message has another event
	wentOn         time.Time       // the end of the last usage limit after which the agent was told to go on
}

// prompt is a text that is given as if its person had typed it.
type prompt struct {
	text     string
	isUndone bool       // urgent mail undid its turn: it is given again after that mail
	isOver   bool       // nobody wants it any more
	done     chan error // gets the outcome, once; nil: the first prompt of a run, whose failure is reported
}

// end ends a prompt: it tells the outcome to whoever waits for it, and reports whether anybody does.
func (m *mail) end(p *prompt, err error) bool {
	m.prompts = slices.DeleteFunc(m.prompts, func(other *prompt) bool { return other == p })
	if p.done != nil {
		select {
		case p.done <- err:
		default: // it was told before
		}
	}
	return p.done != nil
}

// changedBy reads the message that an entry of the watcher reports or has changed; nil: there is none. It runs beside the
// loop.
func (r *runner) changedBy(e watcher.Entry) *maildir.Item {
	id := wire.ID("")
	switch {
	case e.Message != nil:
		id = e.Message.ID
	case e.Event != nil && e.Event.Kind == wire.EventUnread:
		id = e.Event.MessageID()
	}
	if id == "" {
		return nil
	}
	it, _ := r.Box.Get(id) // nil: it is gone
	return it
}

func (r *runner) handleEntry(e watcher.Entry, changed *maildir.Item) {
	switch {
	case e.Event != nil:
		if r.isFolded(e.Event) {
			r.state.Seq = max(r.state.Seq, e.Event.Seq)
		} else {
			r.foldEvent(e.Event, r.now())
		}
		if r.logged != nil {
			r.logged()
		}
		r.follower.HandleEvent(e.Event)
		r.takenBeside(e.Event)
		r.readBeside(e.Event)
		if e.Event.Source == "hook" && r.beside.by == "" { // it may have opened a way
			r.beside.lookedAt = time.Time{}
			r.lookBeside(r.now())
		}
		r.handleMailEvent(e.Event)
	case e.Err != nil:
		r.Log.Error("watching", "err", e.Err)
	}
	if changed != nil {
		r.messageArrived(changed, r.now())
	}
}

func (r *runner) handleMailEvent(e *wire.Event) {
	id := e.MessageID()
	if id == r.mail.lastFailure.MessageID() {
		r.mail.lastFailure = wire.Event{}
	}
	if e.Kind == wire.EventInjectionFailed && e.Field("reason") != noNotices {
		r.mail.lastFailure = *e
	}
	isBeingGiven := r.mail.giving != nil && slices.Contains(r.mail.giving.ids, id)
	if e.Kind == wire.EventUnread && e.Source == "cli" && !isBeingGiven { // somebody has it tried again, as if it were new
		delete(r.mail.tries, id)
		r.queue.Remove(id)
	}
}

// messageArrived tells the queue of a message that is new or has changed, if the queue has any use for it.
func (r *runner) messageArrived(it *maildir.Item, now time.Time) {
	mail := queue.Message{
		ID: it.ID, Urgent: it.Urgent(), ExpiresAt: it.ExpiresAt, DueAt: it.DueAt,
		IsRead: it.State != maildir.Unread,
	}
	if r.whyWithheld(it) != "" { // it may have been queued
		r.mail.unqueue(it.ID)
		r.queue.Remove(it.ID)
		r.stepQueue(now)
		return
	}
	if r.Inject == Off || mail.IsRead && mail.DueAt.IsZero() {
		return
	}
	if it.Lease != nil {
		mail.LeasedUntil = it.Lease.Until
	}
	if it.Message.Kind() == wire.TypeHumanInput {
		r.beside.atPrompt[it.ID] = true
	}
	r.hasMoreMail = r.hasMoreMail || !r.queue.HasRoom()
	r.queue.Put(mail, now)
	r.stepQueue(now)
}

// whyWithheld says why the follower withholds a message; "": it does not, or the message was read.
func (r *runner) whyWithheld(it *maildir.Item) string {
	if it.State != maildir.Unread {
		return ""
	}
	return r.follower.WhyWithheld(it.Message)
}

// readMoreMail gives the queue the mail that it had no room for. It reads beside the loop: there may be much.
func (r *runner) readMoreMail() {
	if !r.hasMoreMail || !r.queue.HasRoom() || r.isReadingMail {
		return
	}
	r.hasMoreMail, r.isReadingMail = false, true
	r.wg.Go(func() {
		ids, err := r.Box.UnreadIDs()
		isFull := false
		for i := 0; i < len(ids) && !isFull; i++ {
			it, err := r.Box.Get(ids[i])
			isOver := err == nil && !r.call(func() {
				r.messageArrived(it, r.now())
				isFull = r.hasMoreMail
			})
			if isOver {
				return
			}
		}
		r.post(func() { r.hasMoreMail, r.isReadingMail = r.hasMoreMail || err != nil, false })
	})
}

// foldEvent folds an event into the agent's state, and goes on with what that means for its mail.
func (r *runner) foldEvent(e *wire.Event, now time.Time) {
	if r.state.Apply(e) {
		r.queue.Apply(e, now)
	}
	r.stepQueue(now)
}

// stepQueue does what is to be done about mail now.
func (r *runner) stepQueue(now time.Time) {
	to := r.queue.Next(r.state.MailWord(), now)
	if len(to.Remind) > 0 {
		r.mail.needsReminder, r.mail.remindAt = true, r.now()
	}
	if len(to.Interrupt) > 0 && !r.mail.isInterrupting { // else for another urgent message; both are typed afterwards
		r.mail.isInterrupting = true
		r.wg.Go(func() {
			defer r.post(func() { r.mail.isInterrupting = false })
			if _, err := r.interruptTurn(byMail); err != nil { // the message waits for the turn's end
				r.Log.Warn("interrupting for urgent mail", "ids", to.Interrupt, "err", err)
			}
		})
	}
	if len(to.Deliver) > 0 {
		r.mail.enqueue(to.Deliver)
	}
	if r.state.Session().Word() != reducer.WordIdle {
		r.mail.queue = nil // it will be named again
	}
}

// stepMail goes on with the text under way, or begins to give the next.
func (r *runner) stepMail(now time.Time) {
	m := &r.mail
	isPromptNext := len(m.prompts) > 0 && !(m.prompts[0].isUndone && len(m.queue) > 0)
	switch {
	case m.giving != nil:
		r.stepGiving(now)
	case !isPromptNext && len(m.queue) == 0:
	case !isPromptNext && r.prog != nil && r.lookBeside(now):
	case r.mustWait(m.retryAt, now):
	case isPromptNext && r.gate(now) != control.GateOpen, !isPromptNext && r.mailGate(now) != control.GateOpen:
	case isPromptNext:
		m.giving = &giving{state: delivery.Unread, text: m.prompts[0].text, prompt: m.prompts[0]}
		r.claim(m.giving)
	default:
		n, by := r.nextTogether(m.queue, now)
		m.giving = &giving{state: delivery.Unread, ids: slices.Clone(m.queue[:n])}
		if by != way(&r.beside) {
			r.claim(m.giving)
			return
		}
		m.giving.way, m.last = by, nil
		m.unqueue(m.giving.ids...)
		r.happened(delivery.Got, "")
	}
}

// usesPrompt reports whether a text is being given by the agent's own way, so that a draft is not a person's.
func (r *runner) usesPrompt() bool {
	return r.mail.giving != nil && r.mail.giving.way != way(&r.beside)
}

// nextTogether returns how many of the messages that are next go together, and by which way.
func (r *runner) nextTogether(queue []wire.ID, now time.Time) (n int, by way) {
	n, by = 1, r.wayOf(queue, now)
	for !r.isAlone(queue[0]) && n < min(len(queue), maxClaimed) && !r.isAlone(queue[n]) && r.wayOf(queue[n:], now) == by {
		n++
	}
	return n, by
}

// wayOf returns the best way for the message that is next: beside the prompt, unless that was in vain before.
func (r *runner) wayOf(queue []wire.ID, now time.Time) way {
	b := &r.beside
	mayGo := r.onTerminal() != nil && r.inject() == Body && b.isOpen(now)
	if mayGo && (len(queue) == 0 || !b.atPrompt[queue[0]] && r.mail.tries[queue[0]] == 0) {
		return b
	}
	return r.prog
}

// isAlone reports whether a message is typed by itself: if it made the program exit, others would be lost with it.
func (r *runner) isAlone(id wire.ID) bool { return r.inject() == Execute || r.mail.tries[id] > 0 }

// enqueue queues messages that the queue has named. requeue puts messages that were not typed back in front.
func (m *mail) enqueue(ids []wire.ID) {
	m.unqueue(ids...)
	m.queue = append(m.queue, m.retriable(ids)...)
	m.retryAt = time.Time{} // the state has changed: try at once
}

func (m *mail) requeue(ids []wire.ID) {
	m.unqueue(ids...)
	m.queue = append(m.retriable(ids), m.queue...)
}

func (m *mail) unqueue(ids ...wire.ID) {
	m.queue = slices.DeleteFunc(m.queue, func(id wire.ID) bool { return slices.Contains(ids, id) })
}

// retriable returns those messages that were not tried too often.
func (m *mail) retriable(ids []wire.ID) []wire.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return m.tries[id] >= control.MaxTries })
}

// changeClaim settles a claim, in order. If that fails it is retried beside later claims, so that a stuck claim blocks
// no other mail.
func (r *runner) changeClaim(change func() error) {
	r.claims.do(func() {
		if change() != nil {
			r.wg.Go(func() { r.retry("changing a claim", change) })
		}
	})
}

// remindEvery is how often overdue answers are checked. Tests shorten it.
var remindEvery = time.Minute

// stepReminders sends what is due about overdue answers: when the queue names one, when the gate opens after that,
// and every minute, because the queue does not know of mail that was read before the runner started.
func (r *runner) stepReminders(now time.Time) {
	m := &r.mail
	isDue := !r.mustWait(m.remindAt, now)
	if r.Remind == nil || !isDue && !m.needsReminder {
		return
	}
	isOpen := m.giving == nil && r.gate(now) == control.GateOpen
	if !isDue && !isOpen {
		return
	}
	m.remindAt, m.needsReminder = now.Add(remindEvery), m.needsReminder && !isOpen
	isIdle := isOpen && r.inject() != Execute // which would run the reminder
	r.notify("sending reminders of overdue answers", func() error { return r.Remind(context.Background(), isIdle) })
}

// undoLastTyping makes unread what a killed runner typed last, unless the program has shown since then that its model got
// it: the program may have exited before. A shell has run the text, which must not be repeated.
func undoLastTyping(ctx context.Context, box *maildir.Box) error {
	if last, _ := runinfo.Read(box.Store().Dir(), box.Agent()); last.Driver == "plain" {
		return nil
	}
	events, err := box.Log().Tail(provesWork)
	if err != nil || len(events) == 0 {
		return err
	}
	ended := "" // the turn that showed work before it was logged what had begun it
	if provesWork(&events[0]) {
		ended = events[0].TurnID
	}
	var errs []error
	var again []wire.Event
	hasNewer := map[wire.ID]bool{} // messages of which a later event tells what became of them
	for _, e := range slices.Backward(events) {
		id := e.MessageID()
		isTyped := e.Kind == wire.EventInjected && e.Field("as") != "pointer"
		if isTyped && !hasNewer[id] && (e.TurnID == "" || e.TurnID != ended) {
			if err := box.MarkUndone(ctx, id); err != nil {
				errs = append(errs, err)
			} else {
				again = append(again, wire.Event{Source: "pty", Kind: wire.EventUnread}.With("id", string(id)))
			}
		}
		hasNewer[id] = true
	}
	return errors.Join(append(errs, box.Log().Append(ctx, again...))...)
}

// provesWork reports whether an event shows that the program was at work, and did more than think, or that it is another
// program. What becomes of messages others do, too; and what it tells at its start hooks may tell late.
func provesWork(e *wire.Event) bool {
	switch e.Kind {
	case wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed, wire.EventAnnounced, wire.EventRead, wire.EventAcked,
		wire.EventWithdrawn, wire.EventReturned, wire.EventUnread, wire.EventStage, wire.StreamError, wire.TurnStarted, wire.SessionStart:
		return false
	case wire.StateChange:
		return e.Field("new") != string(reducer.Thinking)
	}
	return true
}
