package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var waitVerb = &cmdline.Verb{
	Name: "wait", Summary: "wait for mail, an answer or an ack",
	Examples: []string{"atm wait", "atm wait --reply 9f3a1c --timeout 5m"},
	Notes: []string{
		"What is already so returns at once. Marks nothing: atm read does.",
		"Exit 4: waited in vain.",
	},
	Flags: []cmdline.Flag{
		{Name: "reply", Kind: cmdline.Strings, Arg: "ID", Usage: "an answer to that message"},
		{Name: "acked", Kind: cmdline.Strings, Arg: "ID", Usage: "every recipient's ack of it"},
		{Name: "every", Usage: "all of what is named, not any"},
		{Name: "timeout", Kind: cmdline.Duration, Arg: "D", Default: "90s", Usage: "0: for ever"},
	},
	Run: long(wait),
}

// waiter waits for what arrives in my mailbox. It watches from the moment it
// is made, so that nothing between a look and the wait is missed.
type waiter struct {
	w *watcher.Watcher
}

func (e *env) newWaiter(ctx context.Context) (*waiter, error) {
	w, err := watcher.Open(ctx, []*mailbox.Box{e.me}, watcher.Options{Messages: true})
	if err != nil {
		return nil, err
	}
	return &waiter{w}, nil
}

func (w *waiter) close() { w.w.Close() }

// until returns when check is satisfied: asked at once, and again whenever
// something arrived. A timeout of 0 is for ever.
func (w *waiter) until(ctx context.Context, timeout time.Duration, check func() (bool, error)) error {
	return w.each(ctx, timeout, check, func(*mailbox.Item) (bool, error) { return check() })
}

// each is until for conditions that one message decides: first looks at all
// there is, next at what arrived.
func (w *waiter) each(ctx context.Context, timeout time.Duration, first func() (bool, error), next func(*mailbox.Item) (bool, error)) error {
	if ok, err := first(); ok || err != nil {
		return err
	}
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		entry, err := w.w.Next(limited)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t := cmdline.Timeout("waited %s in vain", timeout)
			t.Extra = map[string]any{"timeout": true}
			return t
		}
		if err != nil {
			return err
		}
		if entry.Message == nil { // an error may pass: a directory that is moved and comes back
			continue
		}
		if ok, err := next(entry.Message); ok || err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return err
		}
	}
}

// goal is one thing that is waited for.
type goal struct {
	kind string // mail, reply, acked
	id   wire.ID
	msg  *wire.Message
	met  *mailbox.Item
	done bool
}

// look looks at everything that is there.
func (g *goal) look(ctx context.Context, e *env) error {
	switch g.kind {
	case "mail":
		b, err := e.me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(b.Items) > 0 {
			g.met, g.done = b.Items[0], true
		}
	case "reply":
		if r := teams.Replies(ctx, e.me, g.id, wire.Address{}); len(r) > 0 {
			g.met, g.done = r[0], true
		}
	case "acked":
		g.met, g.done = e.root.AckedBy(ctx, g.msg, e.me)
	}
	return nil
}

// see looks at one message that arrived.
func (g *goal) see(ctx context.Context, e *env, it *mailbox.Item) error {
	switch {
	case g.done:
	case g.kind == "mail":
		return g.look(ctx, e)
	case g.kind == "reply" && it.InReplyTo == g.id && it.Type != wire.TypeAck:
		g.met, g.done = it, true
	case g.kind == "acked" && it.InReplyTo == g.id:
		return g.look(ctx, e)
	}
	return nil
}

// meet waits until any of the goals, or every one, is met.
func (e *env) meet(ctx context.Context, w *waiter, timeout time.Duration, every bool, goals []*goal) error {
	enough := func() bool {
		n := 0
		for _, g := range goals {
			if g.done {
				n++
			}
		}
		return n == len(goals) || n > 0 && !every
	}
	return w.each(ctx, timeout,
		func() (bool, error) {
			for _, g := range goals {
				if err := g.look(ctx, e); err != nil {
					return false, err
				}
			}
			return enough(), nil
		},
		func(it *mailbox.Item) (bool, error) {
			for _, g := range goals {
				if err := g.see(ctx, e, it); err != nil {
					return false, err
				}
			}
			return enough(), nil
		})
}

func wait(ctx context.Context, e *env) error {
	if err := e.who(); err != nil {
		return err
	}
	var goals []*goal
	for _, kind := range []string{"reply", "acked"} {
		for _, s := range e.Strings(kind) {
			it, _, err := e.find(ctx, s, false)
			if err != nil {
				return err
			}
			if it.From != e.me.Address() {
				return cmdline.Refused("message %s is from %s, who gets what answers it", it.ID.Short(6), it.From).
					WithHint("atm trace %s tells how far it got", it.ID.Short(6))
			}
			goals = append(goals, &goal{kind: kind, id: it.ID, msg: it.Message})
		}
	}
	if len(goals) == 0 {
		goals = append(goals, &goal{kind: "mail"})
	}
	w, err := e.newWaiter(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	if why := w.w.Polling(); why != "" {
		e.Warn("%s: looking every half second instead", why)
	}
	if err := e.meet(ctx, w, e.Duration("timeout"), e.Bool("every"), goals); err != nil {
		return e.inVain(err, goals)
	}
	l := e.letters()
	for _, g := range goals {
		if !g.done {
			continue
		}
		if e.JSON() {
			out := map[string]any{"matched": g.kind, "agent": e.me.Agent()}
			if g.met != nil {
				out["message"] = jsonItem{Item: g.met}
			}
			if err := e.PrintJSON(out); err != nil {
				return err
			}
			continue
		}
		switch {
		case g.met == nil:
			err = e.print("%s: %s", g.kind, g.id.Short(6))
		case g.met.State == mailbox.Unread:
			err = e.print("%s: %s; atm read %s%s", g.kind, l.Header(g.met.Message, mailbox.Marks{}), g.met.ID.Short(6), e.typed())
		default:
			err = e.print("%s: %s", g.kind, l.Header(g.met.Message, mailbox.Marks{}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inVain says what did not come.
func (e *env) inVain(err error, goals []*goal) error {
	var c *cmdline.Error
	if !errors.As(err, &c) || c.Code != "timeout" {
		return err
	}
	var missing []string
	for _, g := range goals {
		if !g.done && g.id != "" {
			missing = append(missing, "--"+g.kind+" "+g.id.Short(6))
		}
	}
	if len(missing) > 0 {
		return c.WithHint("not yet; do other work, or again: atm wait %s%s", strings.Join(missing, " "), e.typed())
	}
	return c.WithHint("no mail yet; do other work, or again: atm wait%s", e.typed())
}

// await waits for what send was asked to wait for. The reply is shown, and
// marked when it was taken.
func (e *env) await(ctx context.Context, w *waiter, o *teams.Outgoing, s sent) error {
	var goals []*goal
	if e.Bool("wait-ack") {
		goals = append(goals, &goal{kind: "acked", id: o.Message.ID, msg: o.Message})
	}
	reply := &goal{kind: "reply", id: o.Message.ID}
	if e.Bool("wait-reply") {
		goals = append(goals, reply)
	}
	err := e.meet(ctx, w, e.Duration("timeout"), true, goals)
	var c *cmdline.Error
	if errors.As(err, &c) && c.Code == "timeout" {
		c.Message = "sent " + o.Message.ID.Short(6) + ", but " + c.Message
		c.Extra["id"], c.Extra["delivered"] = s.ID, s.Delivered
		return e.inVain(c, goals)
	}
	if err != nil {
		return err
	}
	l := e.letters()
	l.Bytes, l.Lines = readBytes, readLines
	switch {
	case reply.met == nil && e.JSON():
		return e.PrintJSON(s)
	case reply.met == nil:
		return e.sayAcks(ctx, o.Message)
	}
	text := l.Render(reply.met.Message, mailbox.Marks{})
	if e.JSON() {
		s.Reply = &jsonItem{Item: reply.met}
		text = marshalLine(s)
	}
	_, err = e.me.Read(ctx, mailbox.ReadOptions{IDs: []wire.ID{reply.met.ID}}, func(mailbox.Batch) (int, error) {
		out := &outlet.Outlet{File: e.Stdout, Patience: patience}
		return out.Show(ctx, []outlet.Piece{{Text: text, Message: true}})
	})
	return err
}

// sayAcks shows who acknowledged a message and with which words, which are
// read with that.
func (e *env) sayAcks(ctx context.Context, m *wire.Message) error {
	line := "acked " + m.ID.Short(6)
	read := []wire.ID{} // not nil, which would be everything
	for _, a := range m.To {
		ack, err := e.me.Get(teams.AckID(m.ID, a))
		if err != nil {
			continue
		}
		if ack.Body != "" {
			line += fmt.Sprintf(" (%s: %q)", a.Agent, mailbox.Clip(mailbox.Escape(ack.Body), 200))
		}
		read = append(read, ack.ID)
	}
	_, err := e.me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := (&outlet.Outlet{File: e.Stdout, Patience: patience}).Show(ctx, []outlet.Piece{{Text: []byte(line + "\n")}})
		return n * len(b.Items), err
	})
	return err
}
