package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Response is what came of asking a member.
type Response struct {
	ID     wire.ID       // of the question
	Reply  *mailbox.Item // what answered it, nil if its turn ended without
	Turn   string        // the turn that it was handed into, "" where that is not known
	Status string        // replied, or how the turn ended: completed, interrupted, failed
	Text   string        // the reply's text, or what the turn said in the end; "": nothing tells
	Took   time.Duration
}

// settles is how long a program that has ended may take to be started again, and how
// long after the end of a turn, which a screen shows, a hook may tell its text.
const settles = 1500 * time.Millisecond

// An Observer is told what Ask learns meanwhile, in order; what is nil is not told.
type Observer struct {
	Sent    func(*Response)                 // it has been delivered, and nothing is waited for yet
	Event   func(e *wire.Event, turn *Turn) // an event of who is asked; turn: into which the question went, nil while none is known
	Message func(answer *mailbox.Item)      // a message from who is asked
}

// Ask, after Prepare, delivers a question for one recipient, and returns what comes first: a reply, which is not
// marked as read, or the end of the turn that it was handed into.
//
// Asked again under an id or a key that was used before (Outgoing.Message, Once), nothing
// is sent again, but a question whose turn was cut short is handed over again. With the
// error of ctx, which ends the wait, the Response says what is known.
func (r *Root) Ask(ctx context.Context, o *Outgoing, see Observer) (*Response, error) {
	a := &Response{ID: o.Message.ID}
	if len(o.Post.To) != 1 || o.Post.To[0].Address() == o.From.Address() {
		return a, errors.New("a question is for one other member")
	}
	q := &asking{Response: a, see: see, thread: o.Message.ThreadID(), me: o.From, box: o.Post.To[0], sentAt: o.Message.SentAt}
	it, err := q.box.Get(a.ID)
	if o.Post.Given && err == nil {
		q.sentAt = it.SentAt // asked before: that is what is answered
	}
	if q.team, err = r.Team(q.box.Address().Team); err != nil {
		return a, err
	}
	if q.turns, err = q.team.Turns(q.box.Agent(), q.sentAt.Add(-24*time.Hour)); err != nil {
		return a, err
	}
	// Watching begins before the message is sent: nothing that comes of it is missed.
	q.watcher, err = watcher.Open(ctx, []*mailbox.Box{q.me, q.box}, watcher.Options{
		Messages: true, Events: true, After: map[wire.Address]uint64{q.box.Address(): q.turns.Seq()},
	})
	if err != nil {
		return a, err
	}
	defer q.watcher.Close()
	mailbox.Deliver(ctx, o.Post)
	err = o.Post.Outcomes[0].Err
	if err == nil && o.Post.Outcomes[0].Known {
		err = q.handAgain(ctx)
	}
	if err != nil {
		return a, err
	}
	if see.Sent != nil {
		see.Sent(a)
	}
	return a, q.wait(ctx)
}

type asking struct {
	*Response
	see     Observer
	me, box *mailbox.Box
	team    *Team // of box
	thread  wire.ID
	sentAt  time.Time
	turns   *Turns
	watcher *watcher.Watcher

	exited   time.Time // when its program ended; zero: it goes on, or that is not known
	exitCode uint64
}

func (q *asking) handAgain(ctx context.Context) error {
	if q.isReplied(ctx) || !q.turns.Delivery(q.ID).WasCutShort() {
		return nil
	}
	if err := q.box.MarkUnread(ctx, q.ID); err != nil {
		return err
	}
	q.turns.Delivery(q.ID).reset()
	again := wire.Event{Source: "cli", Kind: wire.EventAgain}
	return q.box.Log().Append(ctx, again.With("id", string(q.ID)).With("by", q.me.Address().String()))
}

// isAnswer reports whether a message answers the question: a reply to it, or what its recipient says in its
// thread that answers nothing else.
func (q *asking) isAnswer(m *wire.Message) bool {
	return Answers(m, q.ID) || m.From == q.box.Address() && m.Thread == q.thread && Answers(m, "")
}

func (q *asking) isReplied(ctx context.Context) bool {
	if q.Reply == nil {
		if all := Replies(ctx, q.me, q.ID, wire.Address{}); len(all) > 0 {
			q.Reply = all[0]
		}
	}
	return q.Reply != nil
}

// wait waits for a reply or for the end of the turn. A reply that was sent within the turn comes before its end.
func (q *asking) wait(ctx context.Context) error {
	q.isReplied(ctx)
	var endSeen time.Time // zero: the turn goes on
	for {
		turn := q.turns.Delivery(q.ID).Turn
		if turn != nil {
			q.Turn = turn.ID
		}
		if q.Reply != nil || turn.HasEnded() && q.isReplied(ctx) {
			q.Status, q.Text, q.Took = "replied", q.Reply.Body, max(q.Reply.SentAt.Sub(q.sentAt), 0)
			return nil
		}
		if !turn.HasEnded() {
			endSeen = time.Time{}
		} else if endSeen.IsZero() {
			endSeen = time.Now()
		}
		since := cmp.Or(endSeen, q.exited) // the beginning of what may settle; zero: nothing does
		isLate := !since.IsZero() && time.Since(since) >= settles
		if turn.HasEnded() && (isLate || turn.Response != "" || turn.WasCutShort()) {
			return q.finish(turn)
		}
		if isLate {
			if running, err := q.box.Store().Running(q.box.Agent()); err == nil && !running {
				return fmt.Errorf("%s ended with %d before it answered", q.box.Agent(), q.exitCode)
			}
			q.exited, since = time.Time{}, time.Time{}
		}
		if err := q.next(ctx, since); err != nil {
			return err
		}
	}
}

func (q *asking) finish(turn *Turn) error {
	q.Status = cmp.Or(turn.Status, reducer.Completed)
	q.Text, q.Took = turn.Response, max(turn.EndedBy.At.Sub(q.sentAt), 0)
	if q.Status != reducer.Completed && q.Text == "" {
		return fmt.Errorf("the turn of %s was %s, without an answer", q.box.Agent(), q.Status)
	}
	return nil
}

// next takes in one thing that the watcher tells, if it comes before what began at a time (zero: now) has settled.
// Else it looks for the runner: of its death no event tells.
func (q *asking) next(ctx context.Context, since time.Time) error {
	limit, cancel := context.WithDeadline(ctx, cmp.Or(since, time.Now()).Add(settles))
	defer cancel()
	entry, err := q.watcher.Next(limit)
	if err != nil && limit.Err() != nil {
		if q.team.LostRunner(q.box.Agent(), q.turns.Delivery(q.ID)) {
			return fmt.Errorf("the runner of %s was killed before an answer came", q.box.Agent())
		}
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	m, e := entry.Message, entry.Event // neither with an error of the watcher, which goes on trying
	if m != nil && entry.Box.Address() == q.me.Address() {
		if q.isAnswer(m.Message) {
			q.Reply = m
		}
		if q.see.Message != nil && m.From == q.box.Address() {
			q.see.Message(m)
		}
	}
	if e == nil || entry.Box.Address() != q.box.Address() {
		return nil
	}
	q.turns.Apply(e)
	if q.see.Event != nil {
		q.see.Event(e, q.turns.Delivery(q.ID).Turn)
	}
	if e.Kind == "exited" {
		q.exited = time.Now()
		q.exitCode, _ = e.Uint("code")
	}
	return nil
}
