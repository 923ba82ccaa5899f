package teams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Ask sends a message to one other member and waits for the answer as Await does.
//
// A program that was killed asks again under the same key: the question is sent once, and the answer may be there
// already. With another question under that key the error is ErrOtherText.
func (t *Team) Ask(ctx context.Context, m *Message) (history.Answer, error) {
	if m.Content != nil {
		m.Content.ReplyWanted = "yes"
	}
	out, err := t.outgoing(ctx, m)
	if err == nil && (len(out.To) != 1 || out.To[0] == out.From.Address()) {
		err = errors.New("ask exactly one other member")
	}
	if err == nil {
		_, err = post.Send(ctx, t.in().Root(), out)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return history.Answer{}, err
	}
	return t.Await(ctx, m.Content, Observer{})
}

// Observer has functions, each possibly nil, that Await calls one at a time while it waits.
type Observer struct {
	// EndsWithTurn means that the end of the turn is enough, also of a program whose answer nobody knows, as for an editor.
	EndsWithTurn bool

	Event   func(e *wire.Event, turn *history.Turn) // an event of the recipient since the question; turn: that of the question, or nil
	Message func(*wire.Item)                        // a message from the recipient: those that are unread, and each that comes
	Other   func(reply *wire.Item, why error)       // a reply that does not count as the answer, once
}

// Await waits for the answer to a message that a member has sent to one other: for what comes first of a reply that
// counts, an ack that says that it is done, and the end of the turn in which the recipient's program got the message. A
// person, and a member of another host or root, answers with a reply or an ack only. A reply stays unread. A message whose
// turn was cut short is handed over again.
//
// Errors: ErrDeclined if the recipient declines, or is blocked; that of ctx if it ends first; or why no answer can come.
// The Answer has what is known so far.
func (t *Team) Await(ctx context.Context, question *wire.Message, o Observer) (history.Answer, error) {
	q := &asking{
		Answer: history.Answer{ID: question.ID}, observer: o, message: question, root: t.in().Root(), others: map[wire.ID]bool{},
	}
	err := q.open(t.in())
	if err == nil {
		err = q.wait(ctx)
	}
	return q.Answer, err
}

// settleTime is how long a restart may take after a program has ended, and how long after the end of a turn, which the
// screen shows, a hook may report its response.
const settleTime = 1500 * time.Millisecond

// asking is an Await in progress.
type asking struct {
	history.Answer
	observer Observer
	root     *teamdir.Root
	message  *wire.Message
	me       *maildir.Box
	to       wire.Address
	box      *maildir.Box  // of the recipient; nil: it is on another host, or of another root
	team     *teamdir.Team // of box
	isPerson bool          // the recipient is: events tell nothing about people
	sentAt   time.Time
	turns    *history.History // of box
	response string           // of its turn, up to the event readTo
	readTo   uint64
	others   map[wire.ID]bool // the replies that do not count

	isAcked  bool      // an ack may have come that was not looked at
	endedAt  time.Time // when the end of its turn was noticed; zero: it is open
	exitedAt time.Time // when the recipient's program ended; zero: it has not, or was restarted
	exitCode uint64
}

func (q *asking) open(t *teamdir.Team) (err error) {
	m := q.message
	if len(m.To) != 1 || m.To[0] == m.From {
		return fmt.Errorf("wait for the answer to %s: it was not sent to exactly one other member", m.ID.Short(6))
	}
	if q.me, err = t.Member(m.From.Agent); err != nil {
		return err
	}
	q.to, q.sentAt, q.isPerson = m.To[0], m.SentAt, post.IsPerson(q.root, m.To[0])
	if q.to.Host != "" {
		return nil
	}
	if q.team, err = q.root.Team(q.to.Team); err != nil {
		return err
	}
	if q.box, err = q.team.Member(q.to.Agent); err != nil {
		return err
	}
	if it, err := q.box.Get(m.ID); err == nil { // it may have been sent before, under its key
		q.sentAt = it.SentAt
	}
	q.turns, err = q.team.HistorySince(q.to.Agent, q.sentAt.Add(-24*time.Hour))
	return err
}

func (q *asking) wait(ctx context.Context) error {
	boxes, options := []watcher.Mailbox{q.me}, watcher.Options{Messages: true, Events: true}
	if q.box != nil {
		boxes, options.After = append(boxes, q.box), map[wire.Address]uint64{q.to: q.turns.Seq()}
	}
	return watcher.Until(ctx, boxes, options, func(e watcher.Entry) (done bool, err error) {
		if e == (watcher.Entry{}) {
			q.isAcked = true // perhaps
			if err = q.handOverAgain(ctx); err != nil {
				return false, err
			}
			q.tellSoFar(ctx)
		}
		q.note(e)
		return q.look(ctx, e.Err != nil)
	})
}

// tellSoFar tells the observer what has come since the question was sent, and the unread messages from the recipient.
func (q *asking) tellSoFar(ctx context.Context) {
	if q.observer.Message != nil {
		unread, _ := inbox.Peek(ctx, q.me, inbox.ReadOptions{Match: func(it *wire.Item) bool { return it.From == q.to }})
		for _, it := range unread.Items {
			q.observer.Message(it)
		}
	}
	if q.observer.Event == nil || q.box == nil {
		return
	}
	events, _ := q.box.Log().Tail(func(e *wire.Event) bool { return e.At.Before(q.sentAt) })
	for _, e := range events {
		if !e.At.Before(q.sentAt) && e.Seq <= q.turns.Seq() { // later ones are watched
			q.observer.Event(&e, q.turns.Delivery(q.ID).Turn)
		}
	}
}

// handOverAgain makes a question unread again if its turn was cut short.
func (q *asking) handOverAgain(ctx context.Context) error {
	if q.isReplied(ctx) || q.box == nil || !q.turns.Delivery(q.ID).WasCutShort() {
		return nil
	}
	if err := q.box.MarkUnread(ctx, q.ID); err != nil {
		return err
	}
	q.turns.Delivery(q.ID).Reset()
	again := wire.Event{Source: wire.SourceCLI, Kind: wire.EventUnread}
	return q.box.Log().Append(ctx, again.With(wire.FieldID, string(q.ID)).With(wire.FieldBy, q.me.Address().String()))
}

// isReplied reports whether there is a reply, which it looks for and keeps in q.Message.
func (q *asking) isReplied(ctx context.Context) bool {
	if q.Message == nil {
		all := post.AnswersTo(ctx, q.root, q.message).Replies(q.message, wire.Address{})
		if len(all.Counted) > 0 {
			q.Message = all.Counted[0].Message
		} else {
			q.noteOthers(all.Others)
		}
	}
	return q.Message != nil
}

func (q *asking) noteOthers(others []post.NoAnswer) {
	for _, other := range others {
		if isNew := !q.others[other.ID]; isNew && q.observer.Other != nil {
			q.observer.Other(other.Item, other.Reason)
		}
		q.others[other.ID] = true
	}
}

// look completes the Answer once there is a reply or the turn has ended. A reply that was sent within the turn takes
// precedence over its end.
func (q *asking) look(ctx context.Context, isTick bool) (done bool, err error) {
	if q.isAcked && q.Message == nil {
		ack, _ := post.AckOf(q.root, q.message, q.to)
		if err := post.CheckDeclined(q.message, ack); err != nil {
			return true, err
		}
		if ack != nil && ack.Outcome() == "done" && (ack.Body != "" || q.isPerson || q.box == nil) { // of a program here its turn says more
			q.Message = ack.Message
		}
	}
	q.isAcked = false
	var turn *history.Turn
	if q.box != nil && !q.isPerson {
		turn = q.turns.Delivery(q.ID).Turn
	}
	if turn != nil {
		q.Turn = turn.ID
	}
	switch {
	case q.Message != nil || turn.HasEnded() && q.isReplied(ctx):
		q.Status, q.Text, q.Took = "replied", q.Message.Body, max(q.Message.SentAt.Sub(q.sentAt), 0)
		q.From = q.Message.From
		return true, nil
	case turn.HasEnded():
		q.endedAt = cmp.Or(q.endedAt, time.Now())
		isMute := turn.IsSeen && !q.observer.EndsWithTurn
		if q.readResponse(turn); q.response == "" && !turn.WasCutShort() && (isMute || time.Since(q.endedAt) < settleTime) {
			return false, nil // it only has a screen, which answers nothing: its reply may come
		}
		q.Status, q.Text, q.Took = cmp.Or(turn.Status, reducer.Completed), q.response, max(turn.EndedBy.At.Sub(q.sentAt), 0)
		q.From = q.to
		if isDone := turn.IsSeen && q.observer.EndsWithTurn && !turn.WasCutShort(); q.Text == "" && !isDone {
			err = fmt.Errorf("the turn of %s ended without an answer: %s", q.to.Agent, q.Status)
		}
		return true, err
	}
	q.endedAt = time.Time{}
	if !q.exitedAt.IsZero() && time.Since(q.exitedAt) >= settleTime {
		if running, err := q.box.Store().Running(q.to.Agent); err == nil && !running {
			return false, fmt.Errorf("%s exited with %d before it answered", q.to.Agent, q.exitCode)
		}
		q.exitedAt = time.Time{}
	}
	if isTick {
		err = q.impossible(ctx)
	}
	return false, err
}

// impossible says why no answer can come any more, of what no event reports.
func (q *asking) impossible(ctx context.Context) error {
	if q.box == nil {
		p := post.AnswersTo(ctx, q.root, q.message).Trace(q.message, q.to)
		switch {
		case p.State == wire.Withdrawn:
			return maildir.Withdrawn(q.ID)
		case p.Returned != nil:
			return fmt.Errorf("the message was returned: %s", p.Returned.Title())
		case p.IsTurnOver():
			q.Status = cmp.Or(p.Stage("turn_done").Text, reducer.Completed)
			return fmt.Errorf("the turn of %s ended without a reply", q.to)
		}
		return nil
	}
	if _, gone := q.team.Member(q.to.Agent); errors.Is(gone, maildir.ErrNoMailbox) {
		return gone
	}
	if it, err := q.box.Get(q.ID); err == nil && it.State == wire.Withdrawn {
		return maildir.Withdrawn(q.ID)
	}
	m, err := presence.One(ctx, q.team, q.to.Agent)
	if err == nil && m.RunnerGone && q.turns.Delivery(q.ID).IsHanded && !q.isPerson {
		return fmt.Errorf("the runner of %s was killed before it answered", q.to.Agent)
	}
	return nil
}

// readResponse reads what was said in the turn, unless it has read so much of it.
func (q *asking) readResponse(turn *history.Turn) {
	if q.readTo == turn.To {
		return
	}
	if said, err := q.team.Content(q.to.Agent, turn); err == nil {
		q.response, q.readTo = said.Response, turn.To
	}
}

// note applies what is new in the two mailboxes.
func (q *asking) note(entry watcher.Entry) {
	m, e := entry.Message, entry.Event
	if m != nil && entry.Address == q.me.Address() {
		isTheirs := m.From == q.to
		isInThread := isTheirs && m.Thread == q.message.ThreadID() && m.InReplyTo == "" // no reply to another message
		it, err := q.me.Get(m.ID)
		if err != nil { // it has moved on just now
			it = &wire.Item{Message: m}
		}
		if post.IsReply(m) && (isInThread || m.InReplyTo == q.ID) {
			if err := post.CheckAnswer(q.root, q.message, m); err == nil {
				q.Message = m
			} else {
				q.noteOthers([]post.NoAnswer{{Item: it, Reason: err}})
			}
		}
		q.isAcked = q.isAcked || m.Type == wire.TypeAck && m.InReplyTo == q.ID
		if q.observer.Message != nil && isTheirs {
			q.observer.Message(it)
		}
	}
	if e == nil || q.box == nil || entry.Address != q.to {
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
