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

// Response is the answer to a question.
type Response struct {
	ID     wire.ID       // of the question
	Reply  *mailbox.Item // nil if the turn ended without a reply
	Turn   string        // the turn that the question was handed into; "": unknown
	Status string        // replied, or how the turn ended: completed, interrupted, failed
	Text   string        // the reply's body, or the turn's response; "": unknown
	Took   time.Duration
}

// settleTime is how long a restart may take after a program has ended, and how long after the end of a turn, which the
// screen shows, a hook may report its response.
const settleTime = 1500 * time.Millisecond

// Observer has functions, each possibly nil, that Ask calls one at a time while it waits.
type Observer struct {
	Sent    func(*Response)                 // after the question is delivered
	Event   func(e *wire.Event, turn *Turn) // an event of the recipient; turn: that of the question, or nil
	Message func(answer *mailbox.Item)      // a message from the recipient
}

// Ask, called after Prepare, delivers a question to one recipient and waits for what comes first: a reply, which it
// does not mark as read, or the end of the turn that the question was handed into.
//
// With an id or key that was used before (Outgoing.Message, SetIdempotencyKey) it sends nothing, but hands a question
// over again whose turn was cut short. If ctx ends the wait, the Response has what is known so far.
func (r *Root) Ask(ctx context.Context, o *Outgoing, observer Observer) (*Response, error) {
	a := &Response{ID: o.Message.ID}
	if len(o.Post.To) != 1 || o.Post.To[0].Address() == o.From.Address() {
		return a, errors.New("ask exactly one other member")
	}
	q := &question{Response: a, observer: observer, thread: o.Message.ThreadID(), me: o.From, box: o.Post.To[0], sentAt: o.Message.SentAt}
	it, err := q.box.Get(a.ID)
	if err == nil {
		q.sentAt = it.SentAt // it was asked before
	}
	if q.team, err = r.Team(q.box.Address().Team); err != nil {
		return a, err
	}
	if q.turns, err = q.team.Turns(q.box.Agent(), q.sentAt.Add(-24*time.Hour)); err != nil {
		return a, err
	}
	// The watcher is opened first, so that it misses nothing.
	q.watcher, err = watcher.Open(ctx, []*mailbox.Box{q.me, q.box}, watcher.Options{
		Messages: true, Events: true, After: map[wire.Address]uint64{q.box.Address(): q.turns.Seq()},
	})
	if err != nil {
		return a, err
	}
	defer q.watcher.Close()
	mailbox.Deliver(ctx, o.Post)
	err = o.Post.Outcomes[0].Err
	if err == nil && o.Post.Outcomes[0].AlreadyStored {
		err = q.handOverAgain(ctx)
	}
	if err != nil {
		return a, err
	}
	if observer.Sent != nil {
		observer.Sent(a)
	}
	return a, q.wait(ctx)
}

type question struct {
	*Response
	observer Observer
	me, box  *mailbox.Box
	team     *Team // of box
	thread   wire.ID
	sentAt   time.Time
	turns    *Turns
	watcher  *watcher.Watcher

	exitedAt time.Time // when the recipient's program ended; zero: it has not, or was restarted
	exitCode uint64
}

// handOverAgain makes a question unread again if its turn was cut short.
func (q *question) handOverAgain(ctx context.Context) error {
	if q.isReplied(ctx) || !q.turns.Delivery(q.ID).wasCutShort() {
		return nil
	}
	if err := q.box.MarkUnread(ctx, q.ID); err != nil {
		return err
	}
	q.turns.Delivery(q.ID).reset()
	again := wire.Event{Source: "cli", Kind: wire.EventUnread}
	return q.box.Log().Append(ctx, again.With("id", string(q.ID)).With("by", q.me.Address().String()))
}

// isAnswer reports whether a message answers the question: a reply to it, or a message of the recipient in its thread
// that is no reply to another one.
func (q *question) isAnswer(m *wire.Message) bool {
	return Answers(m, q.ID) || m.From == q.box.Address() && m.Thread == q.thread && Answers(m, "")
}

// isReplied reports whether there is a reply, which it looks for and keeps in q.Reply.
func (q *question) isReplied(ctx context.Context) bool {
	if q.Reply == nil {
		if all := Replies(ctx, q.me, q.ID, wire.Address{}); len(all) > 0 {
			q.Reply = all[0]
		}
	}
	return q.Reply != nil
}

// wait waits for a reply or the end of the turn. A reply that was sent within the turn takes precedence over its end.
func (q *question) wait(ctx context.Context) error {
	q.isReplied(ctx)
	var endedAt time.Time // when wait noticed the end of the turn; zero: it is open
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
			endedAt = time.Time{}
		} else if endedAt.IsZero() {
			endedAt = time.Now()
		}
		since := cmp.Or(endedAt, q.exitedAt) // when settleTime began; zero: it has not
		isSettled := !since.IsZero() && time.Since(since) >= settleTime
		if turn.HasEnded() && (isSettled || turn.Response != "" || turn.wasCutShort()) {
			return q.finish(turn)
		}
		if isSettled {
			if running, err := q.box.Store().Running(q.box.Agent()); err == nil && !running {
				return fmt.Errorf("%s exited with %d before it answered", q.box.Agent(), q.exitCode)
			}
			q.exitedAt, since = time.Time{}, time.Time{}
		}
		if err := q.next(ctx, since); err != nil {
			return err
		}
	}
}

// finish completes the Response of a turn that ended without a reply.
func (q *question) finish(turn *Turn) error {
	q.Status = cmp.Or(turn.Status, reducer.Completed)
	q.Text, q.Took = turn.Response, max(turn.EndedBy.At.Sub(q.sentAt), 0)
	if q.Status != reducer.Completed && q.Text == "" {
		return fmt.Errorf("the turn of %s ended without an answer: %s", q.box.Agent(), q.Status)
	}
	return nil
}

// next waits for the watcher's next entry, until settleTime after since (zero: now), and applies it. After a timeout it
// checks whether the runner was killed, which no event reports.
func (q *question) next(ctx context.Context, since time.Time) error {
	waitCtx, cancel := context.WithDeadline(ctx, cmp.Or(since, time.Now()).Add(settleTime))
	defer cancel()
	entry, err := q.watcher.Next(waitCtx)
	if err != nil {
		if q.team.LostRunner(q.box.Agent(), q.turns.Delivery(q.ID)) {
			return fmt.Errorf("the runner of %s was killed before it answered", q.box.Agent())
		}
		return ctx.Err()
	}
	m, e := entry.Message, entry.Event // both nil after a watcher error, which it retries
	if m != nil && entry.Box.Address() == q.me.Address() {
		if q.isAnswer(m.Message) {
			q.Reply = m
		}
		if q.observer.Message != nil && m.From == q.box.Address() {
			q.observer.Message(m)
		}
	}
	if e == nil || entry.Box.Address() != q.box.Address() {
		return nil
	}
	q.turns.Apply(e)
	if q.observer.Event != nil {
		q.observer.Event(e, q.turns.Delivery(q.ID).Turn)
	}
	if e.Kind == "exited" {
		q.exitedAt = time.Now()
		q.exitCode, _ = e.Uint("code")
	}
	return nil
}
