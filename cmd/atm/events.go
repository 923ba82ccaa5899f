package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var eventsVerb = &cmdline.Verb{
	Name: "events", Args: "[AGENT]", Summary: "what happened to me, or to AGENT",
	Examples: []string{"atm events", "atm events bob --kind turn_idle --follow", "atm events bob --as-wire daemon --since 1h"},
	Flags: []cmdline.Flag{
		{Name: "follow", Aliases: []string{"f"}, Kind: cmdline.Bool, Usage: "and what comes, until interrupted"},
		{Name: "since", Kind: cmdline.String, Arg: "SEQ|D", Usage: "after that event, or since that long ago"},
		{Name: "kind", Kind: cmdline.Strings, Arg: "K", Usage: "only of this kind; several: any of them"},
		{Name: "limit", Aliases: []string{"n"}, Kind: cmdline.Int, Arg: "N", Usage: "the last N, 0: all"},
		{Name: "as-wire", Kind: cmdline.String, Arg: "daemon|session|acp", Usage: "those that are its, as their owner writes them"},
	},
	Notes:   []string{"The newest 200, all with --json, --as-wire, --since or --limit 0."},
	MaxArgs: 1,
	Run:     long(func(ctx context.Context, e *env) error { return quietEnd(events(ctx, e)) }),
}

func events(ctx context.Context, e *env) error {
	p := eventPrinter{env: e, kinds: e.Strings("kind"), as: wire.Vocabulary(e.String("as-wire")), out: bufio.NewWriterSize(e.Stdout, 64<<10)}
	if as := []string{"daemon", "session", "acp"}; e.Given("as-wire") && !slices.Contains(as, string(p.as)) {
		return cmdline.Usage("--as-wire: %q is none of %s", p.as, strings.Join(as, ", ")).WithCandidates(as...)
	}
	var box *mailbox.Box
	var err error
	if len(e.Args) == 0 {
		if err = e.who(); err == nil {
			box = e.me
		}
	} else if err = e.open(); err == nil {
		box, err = e.member(e.Args[0])
	}
	if err != nil {
		return err
	}
	for _, k := range p.kinds {
		e.warnKind(k)
	}
	// A dropped file may be an event. On a disk that is read-only it waits.
	box.TakeIn(ctx)
	after, err := e.eventsAfter(box)
	if err != nil {
		return err
	}
	if after, err = p.past(ctx, box, after); err != nil {
		return err
	}
	if e.Bool("follow") {
		return e.following(ctx, func(ctx context.Context) error { return p.follow(ctx, box, after) })
	}
	if !p.any && p.as == "" && !e.JSON() {
		return e.print("no events")
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

// eventsAfter is the number of the event after which to begin.
func (e *env) eventsAfter(box *mailbox.Box) (uint64, error) {
	s := e.String("since")
	if !e.Given("since") {
		n := uint64(e.newest())
		if n == 0 || len(e.Strings("kind")) > 0 || e.Given("as-wire") {
			return 0, nil
		}
		last, err := box.Log().LastSeq() // no gaps: the last n are known
		after := last - min(n, last)
		base, _, _ := box.Log().Base()
		e.sayMore(after - min(after, base.Seq))
		return after, err
	}
	if seq, err := strconv.ParseUint(s, 10, 64); err == nil {
		return seq, nil
	}
	t, err := teams.Since(s, time.Now(), cmdline.ParseDuration)
	if err != nil {
		return 0, e.noSince()
	}
	return box.Log().SeqBefore(t)
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

// eventPrinter prints events of one log.
type eventPrinter struct {
	*env
	kinds []string
	as    wire.Vocabulary
	out   *bufio.Writer
	any   bool // something was printed
}

// past prints what is in the log, and returns where it ended.
func (p *eventPrinter) past(ctx context.Context, box *mailbox.Box, after uint64) (uint64, error) {
	c := box.Log().Follow(after)
	defer c.Close()
	limit := p.newest()
	var last [][]byte // the newest limit, as a ring
	printed := 0
	for n := 0; ; n++ {
		ev, gap, err := c.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		line := p.line(&ev, p.archived(box, gap))
		p.any = p.any || len(line) > 0
		switch {
		case len(line) == 0:
		case limit == 0:
			if _, err := p.out.Write(line); err != nil {
				return 0, err
			}
		case len(last) < limit:
			last = append(last, line)
			printed++
		default:
			last[printed%limit] = line
			printed++
		}
	}
	if len(p.kinds) > 0 || p.as != "" {
		p.sayMore(uint64(printed - len(last)))
	}
	for i := range last {
		p.out.Write(last[(printed+i)%len(last)])
	}
	return c.Seq(), p.out.Flush()
}

// follow prints what comes.
func (p *eventPrinter) follow(ctx context.Context, box *mailbox.Box, after uint64) error {
	w, err := watcher.Open(ctx, []*mailbox.Box{box}, watcher.Options{Events: true, After: map[wire.Address]uint64{box.Address(): after}})
	if err != nil {
		return err
	}
	defer w.Close()
	if why := w.Polling(); why != "" {
		p.Warn("%s: looking every second instead", why)
	}
	for {
		entry, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if entry.Err != nil {
			p.Warn("%v", entry.Err)
			continue
		}
		if entry.Event == nil {
			continue
		}
		p.out.Write(p.line(entry.Event, p.archived(box, entry.Gap)))
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
}

// archived says which of the events that are not there are in the archive, and
// returns the gap that is left.
func (p *eventPrinter) archived(box *mailbox.Box, gap *eventlog.Gap) *eventlog.Gap {
	if gap == nil {
		return nil
	}
	base, ok, _ := box.Log().Base()
	if !ok || base.Seq < gap.From {
		return gap
	}
	there := eventlog.Gap{From: gap.From, To: min(gap.To, base.Seq)}
	if p.JSON() && p.as == "" {
		p.out.Write(appendGap(nil, "archived", there))
	} else {
		p.Warn("events %d to %d are in the archive: %s", there.From, there.To, box.Log().Root.Join(box.Log().Archive))
	}
	if there.To == gap.To {
		return nil
	}
	return &eventlog.Gap{From: there.To + 1, To: gap.To}
}

func appendGap(line []byte, name string, g eventlog.Gap) []byte {
	return fmt.Appendf(line, "{%q:{\"from\":%d,\"to\":%d}}\n", name, g.From, g.To)
}

// line is what is printed of an event and what is missing before it.
func (p *eventPrinter) line(ev *wire.Event, gap *eventlog.Gap) (line []byte) {
	if gap != nil {
		switch {
		case p.as != "":
			p.Warn("events %d to %d are missing", gap.From, gap.To)
		case p.JSON():
			line = appendGap(line, "gap", *gap)
		default:
			line = fmt.Appendf(line, "events %d to %d are missing\n", gap.From, gap.To)
		}
	}
	if len(p.kinds) > 0 && !slices.Contains(p.kinds, ev.Kind) {
		return line
	}
	switch {
	case p.as != "":
		theirs, ok := wire.AsWire(ev, p.as)
		if !ok {
			return line
		}
		if theirs = append(theirs, '\n'); p.terminal() {
			theirs = cmdline.EscapeJSON(theirs)
		}
		return append(line, theirs...)
	case p.JSON():
		return append(line, cmdline.EscapeJSON(append(ev.Append(nil), '\n'))...)
	}
	said := stamp(ev.At) + "  " + letter.Escape(ev.Kind)
	if d := wire.Line(ev); d != "" {
		said += "  " + letter.Escape(d)
	}
	return append(append(line, letter.Clip(said, 400)...), '\n')
}
