package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var watchVerb = &cmdline.Verb{
	Name: "watch", Args: "[AGENT…]", Summary: "follow messages and events, a line each",
	Examples: []string{"atm watch", "atm watch bob --since 1h"},
	Notes:    []string{"Marks nothing; ends when interrupted."},
	Guesses:  []string{"tail", "monitor", "follow"},
	Flags: []cmdline.Flag{
		{Name: "since", Kind: cmdline.String, Arg: "SEQ|D", Usage: "from that event, or that long ago"},
	},
	MaxArgs: -1,
	Run:     long(watch),
}

var logVerb = &cmdline.Verb{
	Name: "log", Args: "[AGENT]", Summary: "the last hour's messages and events",
	Examples: []string{"atm log", "atm log bob --since 1d"},
	Flags: []cmdline.Flag{
		{Name: "since", Kind: cmdline.String, Arg: "SEQ|D", Default: "1h", Usage: "from that event, or that long ago"},
		{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Usage: "the last N, 0: all"},
	},
	Notes:   []string{"The newest 200; all with --json, --since or --limit 0."},
	Guesses: []string{"history"},
	MaxArgs: 1,
	Run:     long(logOf),
}

// happening is a message or an event in the order of a log.
type happening struct {
	at    time.Time
	agent wire.Address
	msg   *mailbox.Item
	event *wire.Event
	gap   *eventlog.Gap
}

// arrival is a message at one recipient.
type arrival struct {
	at wire.Address
	id wire.ID
}

// watched are the mailboxes that the arguments name, or all.
func (e *env) watched() ([]*mailbox.Box, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	if len(e.Args) == 0 {
		return e.team.Boxes()
	}
	var out []*mailbox.Box
	for _, a := range e.Args {
		b, err := e.member(a)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func watch(ctx context.Context, e *env) error {
	boxes, err := e.watched()
	if err != nil {
		return err
	}
	return e.following(ctx, func(ctx context.Context) error { return e.watchBoxes(ctx, boxes) })
}

func (e *env) watchBoxes(ctx context.Context, boxes []*mailbox.Box) (err error) {
	var past []happening
	opt := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	for _, b := range boxes {
		if opt.After[b.Address()], err = b.Log().LastSeq(); err != nil {
			e.Warn("%v", err) // of this one; the others are followed
		}
	}
	w, err := watcher.Open(ctx, boxes, opt)
	if err != nil {
		return err
	}
	defer w.Close()
	if why := w.Polling(); why != "" {
		e.Warn("%s: looking every second instead", why)
	}
	shown := map[arrival]bool{}
	if e.Given("since") {
		if past, err = e.past(ctx, boxes); err != nil {
			return err
		}
	}
	for _, h := range past {
		if h.event != nil && h.event.Seq > opt.After[h.agent] {
			continue // the watcher brings it
		}
		if h.msg != nil {
			shown[arrival{h.agent, h.msg.ID}] = true
		}
		if err := e.happened(h); err != nil {
			return err
		}
	}
	for {
		entry, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if entry.Err != nil {
			e.Warn("%v", entry.Err)
			continue
		}
		if entry.Message != nil && shown[arrival{entry.Box.Address(), entry.Message.ID}] {
			continue
		}
		h := happening{at: time.Now(), agent: entry.Box.Address(), msg: entry.Message, event: entry.Event, gap: entry.Gap}
		if h.event != nil {
			h.at = h.event.At
		}
		if err := e.happened(h); err != nil {
			return err
		}
	}
}

func quietEnd(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func logOf(ctx context.Context, e *env) error {
	boxes, err := e.watched()
	if err != nil {
		return err
	}
	past, err := e.past(ctx, boxes)
	if err != nil {
		return err
	}
	none := len(past) == 0
	if n := e.newest(); n > 0 && len(past) > n {
		e.sayMore(uint64(len(past) - n))
		past = past[len(past)-n:]
	}
	for _, h := range past {
		if err := e.happened(h); err != nil {
			return err
		}
	}
	if none && !e.JSON() {
		return e.print("nothing since %s", e.String("since"))
	}
	return nil
}

// past is what happened since --since, in order.
func (e *env) past(ctx context.Context, boxes []*mailbox.Box) ([]happening, error) {
	s := e.String("since")
	seq, err := strconv.ParseUint(s, 10, 64)
	var since time.Time
	if err != nil {
		if since, err = teams.Since(s, time.Now(), cmdline.ParseDuration); err != nil {
			return nil, e.noSince()
		}
	}
	var out []happening
	for _, b := range boxes {
		events, err := b.Log().Tail(func(events []wire.Event) bool {
			if len(events) == 0 {
				return false
			}
			if since.IsZero() {
				return events[0].Seq <= seq+1
			}
			return events[0].At.Before(since)
		})
		if errors.Is(err, mailbox.ErrNoAgent) {
			continue // retired meanwhile
		}
		if err != nil {
			e.Warn("%v", err) // of this one
		}
		last := uint64(0)
		for i := range events {
			ev := &events[i]
			if ev.Seq <= seq || ev.At.Before(since) {
				last = ev.Seq
				continue
			}
			h := happening{at: ev.At, agent: b.Address(), event: ev}
			if last > 0 && ev.Seq > last+1 {
				h.gap = &eventlog.Gap{From: last + 1, To: ev.Seq - 1}
			}
			last = ev.Seq
			out = append(out, h)
		}
		if since.IsZero() {
			continue // a sequence number says nothing about messages
		}
		_, _, err = b.Walk(ctx, mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Times: true, Since: since}, func(it *mailbox.Item) bool {
			if !it.Written.Before(since) {
				out = append(out, happening{at: it.Written, agent: b.Address(), msg: it})
			}
			return true
		})
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b happening) int { return a.at.Compare(b.at) })
	return out, nil
}

// happened prints one line.
func (e *env) happened(h happening) error {
	if e.JSON() {
		if h.gap != nil {
			if err := e.PrintJSON(map[string]any{"gap": map[string]uint64{"from": h.gap.From, "to": h.gap.To}, "agent": h.agent.Agent}); err != nil {
				return err
			}
		}
		switch {
		case h.event != nil:
			return e.PrintJSON(h.event)
		case h.msg != nil:
			return e.PrintJSON(struct {
				Message jsonItem  `json:"message"`
				Agent   wire.Name `json:"agent"`
			}{jsonItem{Item: h.msg}, h.agent.Agent})
		}
		return nil
	}
	l := e.renderer()
	at := stamp(h.at)
	if h.gap != nil {
		if err := e.print("%s %s events %d to %d are missing", at, l.Who(h.agent), h.gap.From, h.gap.To); err != nil {
			return err
		}
	}
	switch {
	case h.event != nil:
		detail := letter.Clip(letter.Escape(wire.Line(h.event)), 200)
		if id := h.event.MessageID(); wire.IsID(string(id)) && h.event.Kind != wire.EventTaken && h.event.Kind != wire.EventReturned && h.event.Kind != wire.EventAside {
			detail = l.Short(id)
			if by, err := wire.ParseAddress(h.event.Field("by"), ""); err == nil && by != h.agent {
				detail += " by " + l.Who(by)
			}
		}
		return e.print("%s", strings.TrimRight(at+" "+l.Who(h.agent)+" "+letter.Escape(h.event.Kind)+" "+detail, " "))
	case h.msg != nil:
		title := letter.Clip(letter.Escape(h.msg.Title()), 100)
		return e.print("%s", strings.TrimRight(at+" "+l.Who(h.agent)+" got "+l.Short(h.msg.ID)+" from "+l.Who(h.msg.From)+": "+title, ": "))
	}
	return nil
}

// newestEvents is how many are shown where nobody said how many: what an agent
// asks in passing is not to fill what it can keep in mind.
const newestEvents = 200

// newest is how many of the last are wanted; 0: all.
func (e *env) newest() int {
	switch {
	case e.Given("limit"):
		return e.Int("limit")
	case e.JSON() || e.Has("as-wire") && e.Given("as-wire"):
		return 0 // a program reads it, and wants what it asked for
	case e.Given("since"), e.Has("follow") && e.Bool("follow"):
		return 0
	}
	return newestEvents
}

// sayMore says how many are not shown where nobody asked for so few.
func (e *env) sayMore(n uint64) {
	if n == 0 || e.Given("limit") {
		return
	}
	all := e.Path
	for _, a := range e.Args {
		all += " " + a
	}
	if e.Has("kind") {
		for _, k := range e.Strings("kind") {
			all += " --kind " + k
		}
		if e.Given("as-wire") {
			all += " --as-wire " + e.String("as-wire")
		}
	}
	e.Warn("%d more before these: %s --limit 0%s", n, all, e.typed())
}

// noSince is the error for a --since that is neither a number nor a moment.
func (e *env) noSince() error {
	hint := e.Path
	for _, a := range e.Args {
		hint += " " + cmdline.Escape(a)
	}
	return cmdline.Usage("--since: %q is neither an event's number nor a moment, as 120, 2h, 7d and 2006-01-02 are", e.String("since")).
		WithHint("%s --since 2h", hint)
}
