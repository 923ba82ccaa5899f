package ptyrun

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// What people say in the agent's sessions: when it may be typed, and what an
// abort does.

// inputCame takes in a message of human input, and reports whether the reducer
// is to hear of it.
func (r *runner) noteInput(it *mailbox.Item) bool {
	s := r.binding
	if s == nil || it.State != mailbox.Unread {
		return true
	}
	in, ok := session.InputOf(it.Message)
	switch {
	case !ok:
		return true
	case in.Kind == "abort":
		if s.input[it.ID] == nil {
			s.input[it.ID] = it
			r.abort(in)
		}
		return false
	}
	s.input[it.ID] = it
	if s.held[it.ID] = r.withholds(it) != ""; s.held[it.ID] {
		return false
	}
	return true
}

// withholds says why a message is kept from the agent.
func (r *runner) withholds(it *mailbox.Item) string {
	s := r.binding
	if !s.known {
		return "its sessions are not known yet"
	}
	why, _ := session.Withheld(it.Message, s.all, s.Mute)
	return why
}

// settle holds human input, or lets it go, by how the sessions are now.
func (r *runner) settle(id wire.ID, it *mailbox.Item) {
	s := r.binding
	if in, _ := session.InputOf(it.Message); in.Kind == "abort" {
		return
	}
	held := r.withholds(it) != ""
	switch was := s.held[id]; {
	case held && !was:
		s.held[id] = true
		r.mail.unqueue(id)
		r.apply(reducer.Input{Now: r.Now(), Settled: id})
	case !held && was:
		s.held[id] = false
		r.messageArrived(it, r.Now())
	}
}

// inputGone takes in that a message is no longer unread.
func (r *runner) inputGone(e *wire.Event) {
	if s := r.binding; s != nil && (e.Kind == wire.EventRead || e.Kind == wire.EventInjected || e.Kind == wire.EventWithdrawn) {
		delete(s.input, e.MessageID())
		delete(s.held, e.MessageID())
	}
}

// knowsSessions reports whether what is to be typed is judged by how the sessions are
// this moment. If not it has them looked at, and says when to ask again.
func (r *runner) knowsSessions(ids []wire.ID, now time.Time) (ok bool, next time.Time) {
	s := r.binding
	if s == nil {
		return true, next
	}
	for _, id := range ids {
		if s.input[id] == nil {
			continue
		}
		switch again := s.asked.Add(lookEvery / 10); {
		case s.looking > 0:
			return false, next
		case now.Before(s.retry), !s.changed(): // what cannot be read keeps nothing back
			return true, next
		case now.Before(again): // it has just changed
			return false, again
		}
		s.asked = now
		r.lookAgain(nil)
		return false, next
	}
	return true, next
}

// withheld says why one of the messages may not be typed any more, and which of
// them still may.
func (r *runner) withheld(items []*mailbox.Item) (why string, rest []wire.ID) {
	for _, it := range items {
		if s := r.binding; s != nil && s.held[it.ID] {
			why = r.withholds(it)
		} else {
			rest = append(rest, it.ID)
		}
	}
	return why, rest
}

// abort ends the sessions for which an abort is meant, and the agent with them:
// at once, whoever holds the sessions' lock and whether or not they can be
// written. It is never typed, and read when all that is done. One that is older
// than this run, and for no session that is alive, has come too late.
func (r *runner) abort(in session.Input) {
	s := r.binding
	ids := s.alive()
	r.lookAgain(func(ctx context.Context) error {
		all, err := s.look(r.Box.Agent())
		if err == nil || all != nil {
			ids = aliveOf(all)
		}
		ids = slices.DeleteFunc(ids, func(id wire.UUID) bool { return !in.For(id) })
		if (in.ForAny() || len(ids) > 0) && !in.ID.Time().Before(s.began.Truncate(time.Millisecond)) {
			r.post(func() { r.dismiss("aborted by " + string(in.From.Agent)) })
		}
		for _, id := range ids {
			_, bad := s.store.Change(ctx, id, nil)
			err = errors.Join(err, bad)
		}
		if err == nil {
			_, err = r.Box.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{in.ID}}, func(b mailbox.Batch) (int, error) { return len(b.Items), nil })
		}
		if err != nil { // as long as it is unread whoever changes a session takes it in
			r.post(func() { s.aborts = append(s.aborts, in) })
		}
		return err
	})
}
