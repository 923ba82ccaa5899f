// Package inbox is the mail of an agent that runs, and the prompts that it is given like mail: which text is next, whether it
// may be given now, as what words, by which way, and what becomes of its messages then. It knows the agent as a run.Agent and
// reads no screen; what it may not do itself is in its Options.
//
//	inbox     what it is told of, and what is due
//	prompt    texts that somebody waits for
//	giving    one text on its way, by the table of package delivery
//	letter    the words of a text
//	gate      why no text may be given now
//	carry     what goes beside the agent's prompt
//	root      whether what is in the mailbox may act, and is still there
//	undo      what is unread again
//	limit     going on behind a usage limit
//	work      what the agent takes by itself
package inbox

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/queue"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// An Inbox is the mail of an agent that runs: which text is next, how it is given, and what becomes of it.
type Inbox struct {
	*run.Run
	o          Options
	hold       *claim.Runner
	checkEvery time.Duration // run.Timing.Check, for Watch

	claims        loop.Worker   // claims messages and settles the claims
	queue         queue.Queue   // the mail that it was told of
	hasMoreMail   bool          // there is unread mail that the queue had no room for
	isReadingMail bool          // that mail is being read
	rereads       atomic.Uint64 // how often Reread was called

	next           []wire.ID       // to deliver, as the queue named them, in order
	giving         *giving         // nil: nothing is being given
	last           *giving         // what the agent got last; nil: nothing that could be undone
	prompts        []*Prompt       // to give before any mail; the one being given among them
	isInterrupting bool            // a turn, for urgent mail
	needsReminder  bool            // an answer is overdue: remind the agent as soon as the gate opens
	remindAt       time.Time       // when overdue answers are checked next
	retryAt        time.Time       // when the next text may be given; zero: none has just failed
	pause          time.Duration   // before that; zero: the last text was accepted
	tries          map[wire.ID]int // how often a message was given, and nothing told whether it arrived
	lastFailure    wire.Event      // injection_failed, until the same message has another event
	wentOn         time.Time       // the end of the last usage limit after which the agent was told to go on

	carrying carrying
	root     rootState
	work     work
}

// Inject is how mail gets into the agent: see ptyrun.Inject.
type Inject string

// Body, Pointer and Off are those of ptyrun.
const Body, Pointer, Off Inject = "body", "pointer", "off"

// Options say how the agent gets its mail, and who is told of what.
type Options struct {
	Inject      Inject
	Prompt      string  // typed once, at the first idle
	Carrier     Carrier // gives mail beside its prompt; nil: all mail is typed
	HasTerminal bool
	IsPlain     bool // its driver says so, while no program runs
	GoesOn      bool // it is told to go on when a usage limit is over that has ended its turn

	Withhold func(*wire.Message) string // says why a message must not be given now, beside the loop; nil: all may
	Body     func(*wire.Message) string // what is given as its body; nil: that

	Work interface { // that the agent takes by itself: see ptyrun.Work; nil: none
		Look(ctx context.Context, isFree bool) error
		GiveBack(ctx context.Context) error
	}

	HasAnswered func(context.Context, *wire.Message) bool // see ptyrun.Options; nil: nothing is known of that

	Interrupt func() error      // interrupts the turn for urgent mail, and returns when it is over
	Remind    func(isIdle bool) // sends what is due about overdue answers; nil: nothing is
	Dropped   func()            // is called when a text is not being given any more
	Gone      func(error)       // is called when its mailbox is gone, or somebody else has it
}

// New returns the mail of a run, whose runner lock is hold.
func New(r *run.Run, hold *claim.Runner, o Options) *Inbox {
	in := &Inbox{Run: r, o: o, hold: hold, tries: map[wire.ID]int{}, remindAt: r.Now().Add(r.Timing.Check), checkEvery: r.Timing.Check}
	in.queue.Patience = 5 * r.Timing.Accept
	if o.Prompt != "" && o.Inject != Off {
		in.prompts = []*Prompt{{text: o.Prompt}}
	}
	return in
}

// ChangedBy reads the message that an entry of the watcher reports or has changed: see Read.
func (in *Inbox) ChangedBy(e watcher.Entry) (tell func()) {
	switch {
	case e.Message != nil:
		return in.Read(e.Message.ID)
	case e.Event != nil && e.Event.Kind == wire.EventUnread:
		return in.Read(e.Event.MessageID())
	}
	return nil
}

// Read reads a message beside the loop, and returns what tells the loop of it; nil: it is gone.
func (in *Inbox) Read(id wire.ID) (tell func()) {
	it, err := in.Box.Get(id)
	if err != nil || it.State == wire.Later { // the watcher reports it when it is due
		return nil
	}
	asked := in.rereads.Load()
	isWithheld := in.isWithheld(it)
	return func() {
		if isWithheld {
			in.withheld(asked, id)
		} else {
			in.Arrived(it, in.Now())
		}
	}
}

// Reread reads a message again, because whether it is withheld may have changed. It may be called from any goroutine.
func (in *Inbox) Reread(id wire.ID) {
	in.rereads.Add(1)
	in.readBeside(id)
}

func (in *Inbox) readBeside(id wire.ID) {
	in.Go(func() {
		if tell := in.Read(id); tell != nil {
			in.Post(tell)
		}
	})
}

// withheld takes messages that may have been queued out of the queue: it is told of them again when they may be given. Where
// it was told while that was asked, nobody tells it again, so it asks again.
func (in *Inbox) withheld(asked uint64, ids ...wire.ID) {
	if in.rereads.Load() != asked {
		for _, id := range ids {
			in.readBeside(id)
		}
		return
	}
	in.unqueue(ids...)
	for _, id := range ids {
		in.queue.Remove(id)
	}
	in.stepQueue(in.Now())
}

// isWithheld reports whether a message must not be given now. It runs beside the loop.
func (in *Inbox) isWithheld(it *wire.Item) bool {
	return it.State == wire.Unread && in.o.Withhold != nil && in.o.Withhold(it.Message) != ""
}

// HandleEvent acts on an event from the log.
func (in *Inbox) HandleEvent(e *wire.Event) {
	id := e.MessageID()
	if e.Source == wire.SourceHook {
		in.carrying.mayOpen = true
		if e.Kind == wire.EventAnnounced {
			in.unqueue(id)
			if in.State.Session().Word() == reducer.WordIdle { // it begins a turn, which is not that of the last text
				in.last = nil
			}
		}
	}
	if id == in.lastFailure.MessageID() {
		in.lastFailure = wire.Event{}
	}
	if e.Kind == wire.EventInjectionFailed {
		in.lastFailure = *e
	}
	isBeingGiven := in.giving != nil && slices.Contains(in.giving.IDs, id)
	if e.Kind == wire.EventUnread && e.Source == wire.SourceCLI && !isBeingGiven { // somebody has it tried again, as if it were new
		delete(in.tries, id)
		in.queue.Remove(id)
	}
}

// Arrived tells the queue of a message that is new or has changed, if the queue has any use for it.
func (in *Inbox) Arrived(it *wire.Item, now time.Time) {
	mail := queue.Message{
		ID: it.ID, Urgent: it.Urgent(), ExpiresAt: it.ExpiresAt, DueAt: it.DueAt,
		IsRead: it.State != wire.Unread, AtPrompt: it.Message.Kind() == wire.TypeHumanInput, IsAside: it.StartsNoTurn(),
	}
	if in.o.Inject == Off || mail.IsRead && mail.DueAt.IsZero() {
		return
	}
	if it.Lease != nil {
		mail.LeasedUntil = it.Lease.Until
	}
	in.carrying.isNews = true
	in.hasMoreMail = in.hasMoreMail || !in.queue.HasRoom()
	in.queue.Put(mail, now)
	in.stepQueue(now)
}

// readMoreMail gives the queue the mail that it had no room for. It reads beside the loop: there may be much.
func (in *Inbox) readMoreMail() {
	if !in.hasMoreMail || !in.queue.HasRoom() || in.isReadingMail {
		return
	}
	in.hasMoreMail, in.isReadingMail = false, true
	in.Go(func() {
		ids, err := in.Box.UnreadIDs()
		isFull := false
		for i := 0; i < len(ids) && !isFull; i++ {
			tell := in.Read(ids[i])
			isOver := tell != nil && !in.Call(func() {
				tell()
				isFull = in.hasMoreMail
			})
			if isOver {
				return
			}
		}
		in.Post(func() { in.hasMoreMail, in.isReadingMail = in.hasMoreMail || err != nil, false })
	})
}

// Fold folds an event into the agent's state, and goes on with what that means for its mail.
func (in *Inbox) Fold(e *wire.Event, now time.Time) {
	if in.State.Apply(e) {
		in.queue.Apply(e, now)
	}
	in.stepQueue(now)
}

// stepQueue does what is to be done about mail now.
func (in *Inbox) stepQueue(now time.Time) {
	to := in.queue.Next(in.State.Session().Word(), now)
	if len(to.Silent) > 0 {
		in.takeBack(to.Silent)
	}
	if len(to.Remind) > 0 {
		in.needsReminder, in.remindAt = true, in.Now()
	}
	if len(to.Interrupt) > 0 && !in.isInterrupting { // else for another urgent message; both are typed afterwards
		in.isInterrupting = true
		in.Go(func() {
			defer in.Post(func() { in.isInterrupting = false })
			if err := in.o.Interrupt(); err != nil { // the message waits for the turn's end
				in.Log.Warn("interrupting for urgent mail", "ids", to.Interrupt, "err", err)
			}
		})
	}
	if len(to.Deliver) > 0 {
		in.enqueue(to.Deliver)
	}
	if in.State.Session().Word() != reducer.WordIdle {
		in.next = nil // it will be named again
	}
}

// stepMail goes on with the text under way, or begins to give the next.
func (in *Inbox) stepMail(now time.Time) {
	isPromptNext, next := len(in.prompts) > 0 && !(in.prompts[0].isUndone && len(in.next) > 0), in.typedNext(now)
	switch {
	case in.giving != nil:
		in.stepGiving(now)
	case !isPromptNext && len(next) == 0, in.MustWait(in.retryAt, now), in.Gate(now) != control.GateOpen:
	case isPromptNext:
		in.giving = &giving{Text: run.Text{State: delivery.Unread, Words: in.prompts[0].text}, prompt: in.prompts[0]}
		in.claim(in.giving)
	default:
		in.giving = &giving{Text: run.Text{State: delivery.Unread, IDs: slices.Clone(next[:in.together(next)])}}
		in.claim(in.giving)
	}
}

// UsesPrompt reports whether a text is being given, so that a draft is not a person's.
func (in *Inbox) UsesPrompt() bool { return in.giving != nil }

// together returns how many of the messages that are next go together.
func (in *Inbox) together(next []wire.ID) (n int) {
	for n = 1; !in.isAlone(next[0]) && n < min(len(next), maxClaimed) && !in.isAlone(next[n]); n++ {
	}
	return n
}

// isAlone reports whether a message is typed by itself: if it made the program exit, others would be lost with it.
func (in *Inbox) isAlone(id wire.ID) bool { return in.tries[id] > 0 }

// enqueue queues messages that the queue has named. requeue puts messages that were not typed back in front.
func (in *Inbox) enqueue(ids []wire.ID) {
	in.unqueue(ids...)
	in.next = append(in.next, in.retriable(ids)...)
	in.retryAt = time.Time{} // the state has changed: try at once
}

func (in *Inbox) requeue(ids []wire.ID) {
	in.unqueue(ids...)
	in.next = append(in.retriable(ids), in.next...)
}

func (in *Inbox) unqueue(ids ...wire.ID) {
	in.next = slices.DeleteFunc(in.next, func(id wire.ID) bool { return slices.Contains(ids, id) })
}

// retriable returns those messages that were not tried too often.
func (in *Inbox) retriable(ids []wire.ID) []wire.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return in.tries[id] >= control.MaxTries })
}

// ChangeClaim settles a claim, in order. If that fails it is retried beside later claims, so that a stuck claim blocks
// no other mail.
func (in *Inbox) ChangeClaim(change func() error) {
	in.claims.Do(func() {
		if change() != nil {
			in.Go(func() { in.Retry("changing a claim", change) })
		}
	})
}

// stepReminders sends what is due about overdue answers: when the queue names one, when the gate opens after that,
// and every minute, because the queue does not know of mail that was read before the runner started.
func (in *Inbox) stepReminders(now time.Time) {
	isDue := !in.MustWait(in.remindAt, now)
	if in.o.Remind == nil || !isDue && !in.needsReminder {
		return
	}
	isOpen := in.giving == nil && in.Gate(now) == control.GateOpen
	if !isDue && !isOpen {
		return
	}
	in.remindAt, in.needsReminder = now.Add(in.Timing.Remind), in.needsReminder && !isOpen
	in.o.Remind(isOpen)
}

// Given returns the text that is being given; nil: none.
func (in *Inbox) Given() *run.Text {
	if in.giving == nil {
		return nil
	}
	return &in.giving.Text
}

// IsGiving reports whether a text is being given, or about to be.
func (in *Inbox) IsGiving() bool { return in.giving != nil || len(in.next) > 0 }

// IsSent reports whether a text was sent off by the agent's own way, so that its turn is about to begin.
func (in *Inbox) IsSent() bool {
	g := in.giving
	return g != nil && g.way != nil && g.State == delivery.Sent
}

// AddStatus adds what is known of the mail, now that the root is moved or not.
func (in *Inbox) AddStatus(s *control.Status, isMoved bool) {
	in.root.isMoved = isMoved
	s.Untyped = in.lastFailure.Field("reason")
	if isMoved || !in.UsesPrompt() { // else the draft is not a person's
		s.Gate = in.mailGate(in.Now())
	}
	if c := &in.carrying; c.by != "" && s.Ways.Prompt != "" {
		s.Ways.Prompt = c.by
	}
}

// WaitClaims waits until all that was given is noted.
func (in *Inbox) WaitClaims() { in.claims.Wait() }

// Step does what is due. Without a program a claim may have come, and no more.
func (in *Inbox) Step(now time.Time) {
	if in.Agent != nil {
		in.stepQueue(now) // an answer may be due, or a lease have ended
		in.stepLimit(now)
	}
	in.stepCarrier(now)
	in.stepMail(now)
	in.stepReminders(now)
	in.stepWork(now)
}
