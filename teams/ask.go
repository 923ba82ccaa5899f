package teams

import (
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
	ID    wire.ID   // of the question
	Sent  time.Time // when it was asked first
	Known bool      // it was there before
	Again bool      // its turn had been cut short, and it was put back to be handed over again

	Reply  *mailbox.Item // what answered it, nil if its turn ended without
	Turn   string        // the turn that it was handed into, "" where that is not known
	Status string        // Replied, or how the turn ended: completed, interrupted, failed
	Text   string        // the reply's text, or what the turn said in the end; "": nothing tells
	Took   time.Duration
}

// Replied is the status of a Response that is a reply.
const Replied = "replied"

// CutShortError is the error of a turn that ended without an answer and
// otherwise than by its completion. Asking again under the same id hands the
// question over again.
type CutShortError struct {
	Agent  wire.Name
	Status string // interrupted, failed
}

func (e *CutShortError) Error() string {
	return fmt.Sprintf("the turn of %s was %s, without an answer", e.Agent, e.Status)
}

// EndedError is the error of a question whose recipient's program, and its runner,
// ended before there was an answer. What was not handed over waits.
type EndedError struct {
	Agent wire.Name
	Code  int // of the program; 128+n for a signal
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("%s ended with %d before it answered", e.Agent, e.Code)
}

// mayReturn is how long a program that has ended may take to be started again.
const mayReturn = 1500 * time.Millisecond

// answerFollows is how long is waited for what a turn has said, when its end is
// known: a screen may show that before a hook tells.
const answerFollows = 1500 * time.Millisecond

// Ask delivers a question that was prepared for one recipient, and returns what
// comes first: a reply, or the end of the turn that it was handed into. sent, if
// not nil, is called when it has been delivered and before anything is waited
// for. The reply is not marked as read.
//
// Asked again under an id or name that was asked before (Outgoing.Given, Once),
// nothing is sent again: the answer is there at once, or waited for, and what was
// cut short is handed over again. With the error of ctx, which ends the wait, the
// Response says what is known; a question is only lost to whoever ignores its id.
func (r *Root) Ask(ctx context.Context, o *Outgoing, sent func(*Response)) (*Response, error) {
	a := &Response{ID: o.Message.ID, Sent: o.Message.SentAt}
	if len(o.Failed) > 0 {
		return a, o.Failed[0].Err
	}
	if len(o.Post.To) != 1 || o.Post.To[0].Address() == o.From.Address() {
		return a, errors.New("a question is for one other member")
	}
	box, m := o.Post.To[0], o.Message
	t, err := r.Team(box.Address().Team)
	if err != nil {
		return a, err
	}
	if it, err := box.Get(m.ID); o.Post.Given && err == nil {
		m, a.Sent = it.Message, it.SentAt // asked before: that is what is answered
	}
	p, last, err := t.Passage(box, m)
	if err != nil {
		return a, err
	}
	// Watching begins before the message is sent: nothing that comes of it is missed.
	w, err := watcher.Open(ctx, []*mailbox.Box{o.From, box}, watcher.Options{
		Messages: true, Events: true, After: map[wire.Address]uint64{box.Address(): last},
	})
	if err != nil {
		return a, err
	}
	defer w.Close()
	mailbox.Deliver(ctx, o.Post)
	out := o.Post.Outcomes[0]
	if out.Err != nil {
		return a, out.Err
	}
	q := &asking{Response: a, me: o.From, box: box, team: t, passage: p, watcher: w}
	if a.Known = out.Known; a.Known {
		if err := q.anew(ctx); err != nil {
			return a, err
		}
	}
	if sent != nil {
		sent(a)
	}
	return a, q.wait(ctx)
}

// asking is a question that waits for its answer.
type asking struct {
	*Response
	me, box *mailbox.Box
	team    *Team
	passage *Passage
	watcher *watcher.Watcher

	ended time.Time // when its program ended; zero: it goes on, or that is not known
	code  int
}

// anew hands a question over once more whose turn was cut short before it was
// answered: its recipient was stopped or killed, and whoever asks again wants the
// answer all the same.
func (q *asking) anew(ctx context.Context) error {
	if q.replied(ctx) || !q.passage.CutShort() {
		return nil
	}
	if _, err := q.box.MarkUnread(ctx, q.ID); err != nil {
		return err
	}
	again := wire.Event{Source: "cli", Kind: wire.EventAgain}.With("id", string(q.ID)).With("by", q.me.Address().String())
	if err := q.box.Log().Append(ctx, again); err != nil {
		return err
	}
	q.Again = true
	q.passage.Again()
	return nil
}

// replied looks for a reply.
func (q *asking) replied(ctx context.Context) bool {
	if q.Reply == nil {
		if all := Replies(ctx, q.me, q.ID, wire.Address{}); len(all) > 0 {
			q.Reply = all[0]
		}
	}
	return q.Reply != nil
}

func (q *asking) wait(ctx context.Context) error {
	q.replied(ctx)
	for goesOn := true; goesOn; {
		for q.Reply == nil && !q.passage.Ended.Is() {
			if err := q.alive(ctx); err != nil {
				return err
			}
		}
		q.Turn = q.passage.Turn
		// One that was sent within the turn came before its end.
		if q.replied(ctx) {
			q.Status, q.Text, q.Took = Replied, q.Reply.Body, max(q.Reply.SentAt.Sub(q.Sent), 0)
			return nil
		}
		var err error
		if goesOn, err = q.respond(ctx); err != nil {
			return err
		}
	}
	q.Status, q.Took = q.passage.Status, max(q.passage.Ended.At.Sub(q.Sent), 0)
	if q.Status == "" {
		q.Status = reducer.Completed
	}
	if q.Status != reducer.Completed && q.Text == "" {
		return &CutShortError{q.box.Agent(), q.Status}
	}
	return nil
}

// alive is next, and an error when the program has ended and stays away.
func (q *asking) alive(ctx context.Context) error {
	limit := ctx
	if !q.ended.IsZero() {
		var cancel context.CancelFunc
		limit, cancel = context.WithDeadline(ctx, q.ended.Add(mayReturn))
		defer cancel()
	}
	e, err := q.next(limit)
	switch {
	case err != nil && limit.Err() != nil && ctx.Err() == nil:
		if running, bad := q.box.Store().Running(q.box.Agent()); bad == nil && !running && !q.replied(ctx) {
			return &EndedError{q.box.Agent(), q.code}
		}
		q.ended = time.Time{}
	case err != nil:
		return err
	case e == nil:
	case e.Kind == "exited":
		n, _ := e.Uint("code")
		q.ended, q.code = time.Now(), int(n)
	case e.Kind == "restarting", e.Kind == "spawned":
		q.ended = time.Time{}
	}
	return nil
}

// next takes in one thing that the watcher tells.
func (q *asking) next(ctx context.Context) (*wire.Event, error) {
	e, err := q.watcher.Next(ctx)
	switch {
	case err != nil:
		return nil, err
	case e.Err != nil && !errors.Is(e.Err, mailbox.ErrNoAgent):
		return nil, nil // it goes on trying
	case e.Message != nil && e.Box.Address() == q.me.Address() && Answers(e.Message.Message, q.ID):
		q.Reply = e.Message
	case e.Event != nil && e.Box.Address() == q.box.Address():
		q.passage.Step(e.Event)
		return e.Event, nil
	}
	return nil, nil
}

// respond finds what the turn has said in the end. goesOn says that it was no
// end, or that a reply came.
func (q *asking) respond(ctx context.Context) (goesOn bool, err error) {
	limit, cancel := context.WithTimeout(ctx, answerFollows)
	defer cancel()
	some := 4
	if q.Known {
		some = 0 // it may be long ago
	}
	for {
		turns, err := q.team.History(q.box.Agent(), some)
		if err != nil {
			return false, err
		}
		for _, past := range turns {
			if past.ID == q.passage.Turn && past.Response != "" {
				q.Text = past.Response
				return false, nil
			}
		}
		if q.passage.CutShort() {
			return false, nil
		}
		if _, err := q.next(limit); err != nil {
			return false, ctx.Err() // nothing more is said
		}
		if q.Reply != nil || !q.passage.Ended.Is() {
			return true, nil
		}
	}
}
