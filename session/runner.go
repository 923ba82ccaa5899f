package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/headers"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// AttachOptions say what a runner wants of its agent's sessions.
type AttachOptions struct {
	Begin bool  // begin a session if none is alive
	Rules Rules // a session that one of them ends is completed
	State *reducer.State
}

// Attach is a runner's first call: it resumes the sessions of its agent that were paused because the agent was off, and
// begins one if wanted. Call it again after an error, and when a rule ends a session.
func (st *Store) Attach(ctx context.Context, agent wire.Name, o AttachOptions) error {
	isAnyAlive := false
	err := st.changeOf(ctx, agent, func(s *Session) error {
		err := o.Rules.Apply(s, o.State, now())
		isAnyAlive = isAnyAlive || s.State.Alive()
		if err == nil && s.IsAutoPaused() {
			return s.Move(Active, fmt.Sprintf("(%s runs again)", agent), now())
		}
		return err
	})
	if err == nil && !isAnyAlive && o.Begin {
		_, err = st.New(ctx, Options{Agent: agent, Alone: true, isOwned: true})
	}
	return err
}

// Detach is a runner's last call. completed means that the agent ended by itself without an error: sessions that a
// runner began are completed, all others are paused until the agent runs again. how is logged: "bob was stopped".
func (st *Store) Detach(ctx context.Context, agent wire.Name, completed bool, how string) error {
	return st.changeOf(ctx, agent, func(s *Session) error {
		switch {
		case s.State != Active:
			return nil
		case completed && s.Notes.Owned:
			return s.Move(Completed, "("+how+")", now())
		}
		return s.AutoPause("("+how+")", now())
	})
}

// Abort ends the sessions of an agent that an abort is for.
func (st *Store) Abort(ctx context.Context, agent wire.Name, abort Input) error {
	return st.changeOf(ctx, agent, func(s *Session) error {
		if !s.hears(abort) {
			return nil
		}
		return s.Move(Aborted, "by "+string(abort.From.Agent), abort.At)
	})
}

// changeOf changes the sessions of an agent that go on, one by one, the oldest first.
func (st *Store) changeOf(ctx context.Context, agent wire.Name, f func(*Session) error) error {
	list, err := st.Of(agent)
	for _, s := range list {
		_, failed := st.Change(ctx, s.SessionID, func(s *Session) error {
			if !s.State.Alive() { // it has just ended
				return nil
			}
			return f(s)
		})
		err = errors.Join(err, failed)
	}
	return err
}

// UnreadAborts returns the aborts in an agent's inbox that count, oldest first.
func (st *Store) UnreadAborts(ctx context.Context, agent wire.Name) (all []Input, err error) {
	_, err = inbox.Walk(ctx, st.mail.Box(agent), maildir.Range{Unread: true, With: headers.IsInput}, func(it *wire.Item) bool {
		if in, ok := st.InputOf(agent, it.Message); ok && in.Kind == foreign.HumanAbort {
			all = append(all, in)
		}
		return true
	})
	return all, err
}

// MarkRead marks an agent's input as read, of which somebody else has done what it says.
func (st *Store) MarkRead(ctx context.Context, agent wire.Name, in Input) error {
	return st.mail.Box(agent).MarkRead(ctx, in.ID)
}

// Modified returns when a session last changed, 1970 if there was never one. While it stays the same, nothing has
// changed. Zero means that this cannot be told yet: the clocks of file systems advance only every few milliseconds.
func (st *Store) Modified() time.Time {
	info, err := st.mail.Dir().Lstat(sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Unix(0, 0)
	}
	if err != nil || time.Since(info.ModTime()).Abs() < 100*time.Millisecond {
		return time.Time{}
	}
	return info.ModTime()
}
