// Package reply asks a question and waits for its answer.
package reply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Response is the answer to a question, and what became of the question.
type Response struct {
	history.Answer
	To    post.Recipient
	Reply *wire.Item // nil if the turn ended without a reply
}

// settleTime is how long a restart may take after a program has ended, and how long after the end of a turn, which the
// screen shows, a hook may report its response.
const settleTime = 1500 * time.Millisecond

// Observer has functions, each possibly nil, that Ask calls one at a time while it waits.
type Observer struct {
	// EndsWithTurn means that the end of the turn is enough, also of a program whose answer nobody knows, as for an editor.
	EndsWithTurn bool

	Sent    func(*Response)                         // after the question is delivered
	Event   func(e *wire.Event, turn *history.Turn) // an event of the recipient; turn: that of the question, or nil
	Message func(answer *wire.Item)                 // a message from the recipient
	Other   func(post.NoAnswer)                     // a reply that does not count, once
}

// Ask sends a question to one recipient and waits for what comes first: a reply that counts (CheckAnswer), which it does
// not mark as read, an ack that says that it is done, or the end of the turn that the question was handed into. A person
// answers with a reply or an ack only. Who declines, or is blocked, answers nothing: post.ErrDeclined.
//
// With an id or key that was used before (Outgoing.Message, Outgoing.Once) it sends nothing, but hands a question
// over again whose turn was cut short; if that was another question, it is a *maildir.IDTakenError. If ctx ends the wait, the
// Response has what is known so far.
func Ask(ctx context.Context, r *teamdir.Root, o *post.Outgoing, observer Observer) (*Response, error) {
	posted, unknown, err := post.Prepare(r, o)
	if err == nil && len(unknown) > 0 {
		err = unknown[0].Err
	}
	if err != nil {
		return &Response{}, err
	}
	a := &Response{Answer: history.Answer{ID: o.Message.ID}}
	if len(posted.To) != 1 || posted.To[0].Address() == o.From.Address() {
		return a, errors.New("ask exactly one other member")
	}
	box := posted.To[0]
	q := &asking{
		Response: a, observer: observer, message: o.Message, me: o.From, box: box, sentAt: o.Message.SentAt,
		root: r, isPerson: post.IsPerson(r, box.Address()), others: map[wire.ID]bool{},
	}
	if it, err := box.Get(a.ID); err == nil { // it was asked before
		q.sentAt = it.SentAt
	}
	if q.team, err = r.Team(box.Address().Team); err != nil {
		return a, err
	}
	if q.turns, err = q.team.HistorySince(box.Agent(), q.sentAt.Add(-24*time.Hour)); err != nil {
		return a, err
	}
	watched := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{box.Address(): q.turns.Seq()}}
	return a, watcher.Until(ctx, []watcher.Mailbox{q.me, box}, watched, func(e watcher.Entry) (done bool, err error) {
		if e == (watcher.Entry{}) {
			err = q.send(ctx, posted)
		}
		if err != nil {
			return false, err
		}
		q.note(e)
		return q.look(ctx, e.Err != nil)
	})
}

// asking is an Ask in progress.
type asking struct {
	*Response
	observer Observer
	root     *teamdir.Root
	message  *wire.Message
	me, box  *maildir.Box
	team     *teamdir.Team // of box
	isPerson bool          // the recipient is
	sentAt   time.Time
	turns    *history.History
	response string // of its turn, up to the event readTo
	readTo   uint64
	others   map[wire.ID]bool // the replies that do not count

	isAcked  bool      // an ack has come that was not looked at
	endedAt  time.Time // when the end of its turn was noticed; zero: it is open
	exitedAt time.Time // when the recipient's program ended; zero: it has not, or was restarted
	exitCode uint64
}

func (q *asking) send(ctx context.Context, posted *maildir.Post) error {
	q.To = post.Deliver(ctx, q.root, posted)[0]
	err := q.To.Err
	if err == nil && q.To.WasDelivered {
		q.isAcked = true // perhaps
		err = q.handOverAgain(ctx)
	}
	if err == nil && q.observer.Sent != nil {
		q.observer.Sent(q.Response)
	}
	q.isReplied(ctx)
	return err
}

// handOverAgain makes a question unread again if its turn was cut short.
func (q *asking) handOverAgain(ctx context.Context) error {
	if q.isReplied(ctx) || !q.turns.Delivery(q.ID).WasCutShort() {
		return nil
	}
	if err := q.box.MarkUnread(ctx, q.ID); err != nil {
		return err
	}
	q.turns.Delivery(q.ID).Reset()
	again := wire.Event{Source: wire.SourceCLI, Kind: wire.EventUnread}
	return q.box.Log().Append(ctx, again.With(wire.FieldID, string(q.ID)).With(wire.FieldBy, q.me.Address().String()))
}

// isReplied reports whether there is a reply, which it looks for and keeps in q.Reply.
func (q *asking) isReplied(ctx context.Context) bool {
	if q.Reply == nil {
		all := post.AnswersTo(ctx, q.root, q.message).Replies(q.message, wire.Address{})
		if len(all.Counted) > 0 {
			q.Reply = all.Counted[0]
		} else {
			q.noteOthers(all.Others)
		}
	}
	return q.Reply != nil
}

func (q *asking) noteOthers(others []post.NoAnswer) {
	for _, other := range others {
		if isNew := !q.others[other.ID]; isNew && q.observer.Other != nil {
			q.observer.Other(other)
		}
		q.others[other.ID] = true
	}
}

// look completes the Response once there is a reply or the turn has ended. A reply that was sent within the turn takes
// precedence over its end. At a tick it looks for what no event reports: the recipient was retired, or its runner
// killed.
func (q *asking) look(ctx context.Context, isTick bool) (done bool, err error) {
	delivery := q.turns.Delivery(q.ID)
	turn := delivery.Turn
	if q.isPerson {
		turn = nil // events tell nothing about people
	}
	if turn != nil {
		q.Turn = turn.ID
	}
	if q.isAcked && q.Reply == nil {
		ack, _ := post.AckOf(q.root, q.message, q.box.Address())
		if err := post.CheckDeclined(q.message, ack); err != nil {
			return true, err
		}
		if ack != nil && ack.Outcome() == "done" && (ack.Body != "" || q.isPerson) { // of a program its turn says more
			q.Reply = ack
		}
	}
	q.isAcked = false
	switch {
	case q.Reply != nil || turn.HasEnded() && q.isReplied(ctx):
		q.Status, q.Text, q.Took = "replied", q.Reply.Body, max(q.Reply.SentAt.Sub(q.sentAt), 0)
		q.From = q.Reply.From
		return true, nil
	case turn.HasEnded():
		q.endedAt = cmp.Or(q.endedAt, time.Now())
		isMute := turn.IsSeen && !q.observer.EndsWithTurn
		if q.readResponse(turn); q.response == "" && !turn.WasCutShort() && (isMute || time.Since(q.endedAt) < settleTime) {
			return false, nil // it only has a screen, which answers nothing: its reply may come
		}
		q.Status, q.Text, q.Took = cmp.Or(turn.Status, reducer.Completed), q.response, max(turn.EndedBy.At.Sub(q.sentAt), 0)
		q.From = q.box.Address()
		if isDone := turn.IsSeen && q.observer.EndsWithTurn && !turn.WasCutShort(); q.Text == "" && !isDone {
			err = fmt.Errorf("the turn of %s ended without an answer: %s", q.box.Agent(), q.Status)
		}
		return true, err
	case !q.exitedAt.IsZero() && time.Since(q.exitedAt) >= settleTime:
		if running, err := q.box.Store().Running(q.box.Agent()); err == nil && !running {
			return false, fmt.Errorf("%s exited with %d before it answered", q.box.Agent(), q.exitCode)
		}
		q.exitedAt = time.Time{}
	case isTick:
		if _, gone := q.team.Member(q.box.Agent()); errors.Is(gone, maildir.ErrNoMailbox) {
			return false, gone
		}
		if m, err := presence.One(ctx, q.team, q.box.Agent()); err == nil && m.RunnerGone && delivery.IsHanded && !q.isPerson {
			return false, fmt.Errorf("the runner of %s was killed before it answered", q.box.Agent())
		}
	}
	q.endedAt = time.Time{}
	return false, nil
}

// readResponse reads what was said in the turn, unless it has read so much of it.
func (q *asking) readResponse(turn *history.Turn) {
	if q.readTo == turn.To {
		return
	}
	if said, err := q.team.Content(q.box.Agent(), turn); err == nil {
		q.response, q.readTo = said.Response, turn.To
	}
}

// note applies what is new in the two mailboxes.
func (q *asking) note(entry watcher.Entry) {
	m, e := entry.Message, entry.Event
	if m != nil && entry.Address == q.me.Address() {
		isTheirs := m.From == q.box.Address()
		isInThread := isTheirs && m.Thread == q.message.ThreadID() && m.InReplyTo == "" // no reply to another message
		it, err := q.me.Get(m.ID)
		if err != nil { // it has moved on just now
			it = &wire.Item{Message: m}
		}
		if post.IsReply(m) && (isInThread || m.InReplyTo == q.ID) {
			if err := post.CheckAnswer(q.root, q.message, m); err == nil {
				q.Reply = it
			} else {
				q.noteOthers([]post.NoAnswer{{Item: it, Reason: err}})
			}
		}
		q.isAcked = q.isAcked || m.Type == wire.TypeAck && m.InReplyTo == q.ID
		if q.observer.Message != nil && isTheirs {
			q.observer.Message(it)
		}
	}
	if e == nil || entry.Address != q.box.Address() {
		return
	}
	q.turns.Apply(e)
	if q.observer.Event != nil {
		q.observer.Event(e, q.turns.Delivery(q.ID).Turn)
	}
	if e.Kind == wire.Exited && !q.isPerson {
		q.exitedAt = time.Now()
		q.exitCode, _ = e.Uint("code")
	}
}
