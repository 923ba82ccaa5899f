package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Channel connects an agent's program with the people in its session. Its errors are ErrChannelClosed once the
// session is over, a *Error for what a session refuses, and I/O errors.
type Channel interface {
	// ID names the channel: cli:tty0, discord:thread:123.
	ID() string

	// Emit sends an event to the people. When it returns nil, the event is on record.
	Emit(ctx context.Context, e foreign.SessionEvent) error

	// Receive returns the next human input, nil if there is none within timeout. With 0 or less it does not wait.
	Receive(ctx context.Context, timeout time.Duration) (*Input, error)
}

// MailboxChannel is a channel of files: it emits to the agent's events, and receives from its inbox. Several receivers
// share the input: each gets what the others do not; but see Handle.
type MailboxChannel struct {
	store *Store
	id    wire.UUID
	name  string
	box   *maildir.Box
}

var _ Channel = (*MailboxChannel)(nil)

// Channel opens the channel of a session.
func (st *Store) Channel(id wire.UUID) (*MailboxChannel, error) {
	s, err := st.Get(id)
	if err != nil {
		return nil, err
	}
	c := &MailboxChannel{st, id, s.ChannelID, st.box(s)}
	return c, c.box.CheckPresent()
}

// ID returns the session's channel_id.
func (c *MailboxChannel) ID() string { return c.name }

// session reads the session; if it is gone, the error is ErrChannelClosed.
func (c *MailboxChannel) session() (*Session, error) {
	s, err := c.store.Get(c.id)
	if errors.Is(err, ErrNotFound) {
		return nil, ErrChannelClosed
	}
	return s, err
}

// Emit appends to the agent's events; see Events.
func (c *MailboxChannel) Emit(ctx context.Context, e foreign.SessionEvent) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	if !s.State.Alive() {
		return ErrChannelClosed
	}
	events, err := Events(c.id, e)
	if err != nil {
		return err
	}
	return c.box.Log().Append(ctx, events...)
}

// maxOutput is how many bytes of output one event holds. Escaped in the log they may take six times as much.
const maxOutput = 1 << 20

// Events returns what to append to an agent's log to emit e in a session; id "" means all its sessions. Long output
// becomes several events, cut between characters. Bytes that are not UTF-8 become U+FFFD. The error is a
// *Error.
func Events(id wire.UUID, e foreign.SessionEvent) (out []wire.Event, err error) {
	for content := string([]rune(e.Content)); content != "" || out == nil; {
		e.Content = wire.Clip(content, maxOutput)
		content = content[len(e.Content):]
		raw, err := e.MarshalJSON()
		if err != nil {
			return nil, &Error{Reason: "not an event: " + err.Error()}
		}
		event := wire.Event{Kind: e.Kind, Source: wire.SourceCLI, Wire: raw}
		if id != "" {
			event = event.With(FieldSession, string(id))
		}
		out = append(out, event)
	}
	return out, nil
}

// statePoll is how often a waiting Receive checks whether the session is over; no message reports that.
const statePoll = time.Second

// Receive returns the next human input for the session; while it is paused, only an abort. Received input counts as
// read, even if the program is then killed; see Handle.
func (c *MailboxChannel) Receive(ctx context.Context, timeout time.Duration) (in *Input, err error) {
	_, err = c.Handle(ctx, timeout, func(received Input) error {
		in = &received
		return nil
	})
	return in, err
}

// Handle is Receive for programs that must lose nothing when they are killed: the input counts as read only when
// handler has returned nil. handler runs under the reader's lock, so it must not change a session. If it takes longer
// than two seconds, the lock is released and another receiver may get the same input. It reports whether it had one.
func (c *MailboxChannel) Handle(ctx context.Context, timeout time.Duration, handler func(Input) error) (bool, error) {
	end := time.Now().Add(timeout)
	var w *watcher.Watcher
	for {
		done, err := c.handleNext(ctx, handler)
		left := time.Until(end)
		switch {
		case done, err != nil, left <= 0:
			return done, err
		case w == nil: // then look again, for input that arrived before the watch was set
			w = watcher.Open(ctx, []watcher.Mailbox{c.box}, watcher.Options{Messages: true})
			defer w.Close()
		default:
			limit, cancel := context.WithTimeout(ctx, min(left, statePoll))
			w.Next(limit) // only wakes: handleNext looks for itself
			cancel()
		}
	}
}

// handleNext handles one input if there is one.
func (c *MailboxChannel) handleNext(ctx context.Context, handler func(Input) error) (done bool, err error) {
	s, err := c.session()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return false, err
	}
	next := inbox.ReadOptions{Limit: 1, Match: func(m *maildir.Item) bool {
		in, ok := c.store.InputOf(c.box.Agent(), m.Message)
		return ok && in.For(c.id) && (s.State == Active || in.Kind == foreign.HumanAbort)
	}}
	_, err = inbox.Read(ctx, c.box, next, func(b inbox.Batch) (int, error) {
		if len(b.Items) == 0 {
			return 0, nil
		}
		in, _ := InputOf(b.Items[0].Message)
		if err := handler(in); err != nil {
			return 0, err
		}
		done = true
		return 1, nil
	})
	if errors.Is(err, maildir.ErrNoAgent) || err == nil && !done && !s.State.Alive() {
		return false, ErrChannelClosed
	}
	if unmarked, ok := errors.AsType[*inbox.UnmarkedError](err); ok { // it would be received again and again
		return false, fmt.Errorf("receive: the input is %w", unmarked)
	}
	return done, err
}
