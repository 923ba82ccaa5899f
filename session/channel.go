package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Channel is the way between an agent's program and the people in its session.
// Its errors are wire.ErrChannelClosed once the session is over or the channel
// was closed, a *wire.SessionError for what a session refuses, and else those of
// the files or wires that it is made of.
type Channel interface {
	// ID names the channel: cli:tty0, discord:thread:123.
	ID() string

	// Emit tells the people. When it returns nil, what was emitted is on record.
	Emit(ctx context.Context, e wire.SessionEvent) error

	// Receive is the next thing that a person said, nil when nobody said
	// anything within timeout; 0 or less: only what is there.
	Receive(ctx context.Context, timeout time.Duration) (*Input, error)
}

// Mail is the channel made of files: what is emitted goes to the agent's
// events, human input comes out of its inbox.
type Mail struct {
	store *Store
	id    wire.UUID
	name  string
	box   *mailbox.Box

	turn   chan struct{} // held by who receives
	done   chan struct{}
	close  sync.Once
	noted  sync.Mutex
	events *watcher.Watcher // nil until somebody waits
}

var _ Channel = (*Mail)(nil)

// Channel opens the channel of a session that is alive. Close it.
func (st *Store) Channel(id wire.UUID) (*Mail, error) {
	s, err := st.Get(id)
	if err != nil {
		return nil, err
	}
	box := st.Mail.Box(wire.Name(s.AgentID))
	if err := box.Present(); err != nil {
		return nil, err
	}
	return &Mail{store: st, id: id, name: s.ChannelID, box: box, turn: make(chan struct{}, 1), done: make(chan struct{})}, nil
}

// ID is the session's channel_id.
func (c *Mail) ID() string { return c.name }

// Close ends the use of the channel, not the session. Whoever waits in Receive
// gets wire.ErrChannelClosed.
func (c *Mail) Close() error {
	c.close.Do(func() {
		close(c.done)
		c.noted.Lock()
		defer c.noted.Unlock()
		if c.events != nil {
			c.events.Close()
		}
	})
	return nil
}

func (c *Mail) closed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// maxOutput is the most that one event of output holds; what is longer becomes
// several. A line of the log takes eight times as much.
const maxOutput = 1 << 20

// Emit appends to the agent's events. Output of any length is taken, cut
// between characters where it is long; bytes that are not UTF-8 become U+FFFD
// (a program's output is for who reads it to put together: a character may come
// in two reads).
func (c *Mail) Emit(ctx context.Context, e wire.SessionEvent) error {
	if c.closed() {
		return wire.ErrChannelClosed
	}
	s, err := c.store.Get(c.id)
	if errors.Is(err, ErrNotFound) || err == nil && !s.State.Alive() {
		return wire.ErrChannelClosed
	}
	if err != nil {
		return err
	}
	events, err := Events(c.id, e)
	if err != nil {
		return err
	}
	return c.box.Append(ctx, mailbox.AppendOptions{}, events...)
}

// Events are what is appended to an agent's log for what it emits in a session;
// id "" is for all that it has. Several where output is long; a
// *wire.SessionError for what is no event.
func Events(id wire.UUID, e wire.SessionEvent) (out []wire.Event, err error) {
	for _, part := range parts(e) {
		raw := wire.Encode(part)
		if _, err := wire.Parse[wire.SessionEvent](raw); err != nil {
			return nil, &wire.SessionError{Reason: "no event: " + err.Error()}
		}
		of := wire.Event{Kind: part.Kind, Source: "cli", Wire: raw}
		if id != "" {
			of = of.With(FieldSession, string(id))
		}
		out = append(out, of)
	}
	return out, nil
}

// parts cuts output that is too long for one event.
func parts(e wire.SessionEvent) (out []wire.SessionEvent) {
	for e.Kind == "agent_output" && len(e.Content) > maxOutput {
		n := maxOutput
		for n > maxOutput-utf8.UTFMax && !utf8.RuneStart(e.Content[n]) {
			n--
		}
		first := e
		first.Content = e.Content[:n]
		out = append(out, first)
		e.Content = e.Content[n:]
	}
	return append(out, e)
}

// stateEvery is how often who waits for input looks whether the session is
// over: that is told by no message.
const stateEvery = time.Second

// Receive is the next human input for the session. While the session is paused
// only an abort is: the rest waits in the inbox. What a program that was killed
// had received and not yet used lies among the messages that were read; Take is
// for who must not miss that.
func (c *Mail) Receive(ctx context.Context, timeout time.Duration) (*Input, error) {
	var got *Input
	_, err := c.Take(ctx, timeout, func(in Input) error {
		got = &in
		return nil
	})
	return got, err
}

// Take is Receive for who must lose nothing in a crash: use is given the input
// before it counts as received, under the reader's lock for at most two
// seconds, and only if it returns nil is it. So an input is used at least once,
// and again only after a process was killed in between. It reports whether an
// input was received. use must not change a session, whose lock goes before.
func (c *Mail) Take(ctx context.Context, timeout time.Duration, use func(Input) error) (bool, error) {
	if c.closed() {
		return false, wire.ErrChannelClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	until := time.Now().Add(max(0, timeout))
	if timeout > 0 {
		// Before the first look: what comes between is not missed.
		if err := c.watch(ctx); err != nil {
			return false, err
		}
	}
	for {
		limit := time.Until(until)
		select {
		case c.turn <- struct{}{}:
		case <-c.done:
			return false, wire.ErrChannelClosed
		default:
			select {
			case c.turn <- struct{}{}:
			case <-c.done:
				return false, wire.ErrChannelClosed
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(max(0, limit)):
				return false, nil
			}
		}
		got, err := c.one(ctx, use)
		if !got && err == nil {
			if limit = time.Until(until); limit <= 0 {
				<-c.turn
				return false, nil
			}
			err = c.wait(ctx, min(limit, stateEvery))
		}
		<-c.turn
		if got || err != nil {
			return got, err
		}
	}
}

// one takes one input if there is one.
func (c *Mail) one(ctx context.Context, use func(Input) error) (bool, error) {
	s, err := c.store.Get(c.id)
	if errors.Is(err, ErrNotFound) {
		return false, wire.ErrChannelClosed
	}
	if err != nil {
		return false, err
	}
	got := false
	match := func(m *wire.Message) bool {
		in, ok := InputOf(m)
		return ok && in.For(c.id) && (s.State == wire.SessionActive || in.Kind == "abort")
	}
	// Mostly there is none, and a look takes no lock.
	batch, err := c.box.Peek(ctx, mailbox.ReadOptions{Match: match, Limit: 1})
	if err == nil && len(batch.Items) > 0 {
		batch, err = c.box.Read(ctx, mailbox.ReadOptions{Match: match, Limit: 1}, func(b mailbox.Batch) (int, error) {
			if len(b.Items) == 0 {
				return 0, nil // somebody else was quicker
			}
			in, _ := InputOf(b.Items[0].Message)
			if err := use(in); err != nil {
				return 0, err
			}
			got = true
			return 1, nil
		})
	}
	switch {
	case errors.Is(err, mailbox.ErrNoAgent):
		return false, wire.ErrChannelClosed
	case err != nil:
		return got, err
	case got && batch.Unmarked != nil:
		// It would be received again, and again.
		return false, fmt.Errorf("receive: the input cannot be marked as read: %w", batch.Unmarked)
	case got:
		return true, nil
	case !s.State.Alive():
		return false, wire.ErrChannelClosed
	}
	return false, nil
}

func (c *Mail) watch(ctx context.Context) error {
	c.noted.Lock()
	defer c.noted.Unlock()
	if c.events != nil {
		return nil
	}
	if c.closed() {
		return wire.ErrChannelClosed
	}
	w, err := watcher.Open(ctx, []*mailbox.Box{c.box}, watcher.Options{Messages: true})
	if err == nil {
		c.events = w
	}
	return err
}

// wait waits for a message, for at most so long.
func (c *Mail) wait(ctx context.Context, most time.Duration) error {
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_, err := c.events.Next(limit)
	switch {
	case errors.Is(err, watcher.ErrClosed):
		return wire.ErrChannelClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return nil // what it tells, or that it cannot look, the next look finds out
}

// Writer gives a channel the output of a program as it is written: whole
// characters, also where one comes in two writes. Flush tells what is left of
// one at the end.
type Writer struct {
	Context context.Context // nil: context.Background
	Channel Channel
	Stream  wire.OutputStream // std_out, std_err

	rest []byte
}

// Write emits p as output.
func (w *Writer) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	n := len(w.rest)
	for back := 1; back < utf8.UTFMax && back <= n; back++ {
		if b := w.rest[n-back]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(w.rest[n-back:]) {
				n -= back
			}
			break
		}
	}
	if err := w.emit(string(w.rest[:n])); err != nil {
		w.rest = w.rest[:len(w.rest)-len(p)]
		return 0, err
	}
	w.rest = append(w.rest[:0], w.rest[n:]...)
	return len(p), nil
}

// Flush emits the beginning of a character that never became whole.
func (w *Writer) Flush() error {
	text := string(w.rest)
	w.rest = nil
	return w.emit(text)
}

func (w *Writer) emit(text string) error {
	if text == "" {
		return nil
	}
	ctx := w.Context
	if ctx == nil {
		ctx = context.Background()
	}
	stream := w.Stream
	if stream == "" {
		stream = "std_out"
	}
	return w.Channel.Emit(ctx, wire.SessionEvent{Kind: "agent_output", Stream: stream, Content: strings.ToValidUTF8(text, "\uFFFD")})
}
