package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var eventsCommand = &cli.Command{
	Name: "events", ArgsUsage: "[AGENT]", Usage: "what happened to me, or to AGENT, for programs (for people: atm watch)",
	UsageText:   "atm events\natm events bob --kind turn_idle --follow\natm events bob --as-wire daemon --since 1h",
	Description: "The newest 200, all with --json, --as-wire, --since or --limit 0.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "and what comes, until interrupted"},
		&cli.StringFlag{Name: "since", Usage: "after that event, or since that long ago (`SEQ|D`)"},
		&cli.StringSliceFlag{Name: "kind", Usage: "only of the kind `K`; may be repeated"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "the last `N`; 0: all"},
		&cli.StringFlag{Name: "as-wire", Usage: "as their owner writes them: `daemon|session|acp`"},
	},
	Action: events,
}

// newestEvents is how many are shown where nobody said how many: what an agent asks
// in passing is not to fill what it can keep in mind.
const newestEvents = 200

func events(c *cli.Context) error {
	p := &eventPrinter{c: c, kinds: c.StringSlice("kind"), as: wire.Vocabulary(c.String("as-wire")), out: bufio.NewWriterSize(os.Stdout, 64<<10)}
	if as := []string{"daemon", "session", "acp"}; c.IsSet("as-wire") && !slices.Contains(as, string(p.as)) {
		return command.Usage("--as-wire: %q is none of %s", p.as, strings.Join(as, ", ")).WithCandidates(as...)
	}
	if err := p.open(); err != nil {
		return err
	}
	for _, kind := range p.kinds {
		warnKind(c, kind)
	}
	// A dropped file may be an event. On a disk that is read-only it waits.
	p.box.TakeIn(c.Context)
	after, err := p.after()
	if err != nil {
		return err
	}
	if after, err = p.past(c.Context, after); err != nil {
		return err
	}
	if c.Bool("follow") {
		return p.s.Follow(func(ctx context.Context) error { return p.follow(ctx, after) })
	}
	if !p.any && p.as == "" && !c.Bool("json") {
		return command.Print(c, command.Text("no events"))
	}
	return nil
}

// An eventPrinter prints events of one log.
type eventPrinter struct {
	c     *cli.Context
	s     *command.Scope
	box   *mailbox.Box
	kinds []string
	as    wire.Vocabulary
	out   *bufio.Writer
	any   bool // something was printed
}

func (p *eventPrinter) open() (err error) {
	if p.c.Args().Len() > 0 {
		p.s, p.box, err = openAgent(p.c)
		return err
	}
	if p.s, err = command.OpenMe(p.c); err == nil {
		p.box = p.s.Me
	}
	return err
}

// limit is how many of the last are wanted; 0: all.
func (p *eventPrinter) limit() int {
	if p.c.IsSet("limit") {
		return p.c.Int("limit")
	}
	if p.c.Bool("json") || p.c.IsSet("as-wire") || p.c.IsSet("since") || p.c.Bool("follow") {
		return 0
	}
	return newestEvents
}

// chosen reports whether only some of the events are wanted.
func (p *eventPrinter) chosen() bool { return len(p.kinds) > 0 || p.as != "" }

// sayMore says how many are not shown where nobody asked for so few.
func (p *eventPrinter) sayMore(n uint64) {
	if n == 0 || p.c.IsSet("limit") {
		return
	}
	all := strings.Join(append([]string{"atm events"}, p.c.Args().Slice()...), " ")
	for _, kind := range p.kinds {
		all += " --kind " + kind
	}
	command.Warn(p.c, "%d more before these: %s --limit 0%s", n, all, p.s.Flags())
}

// after is the number of the event after which to begin.
func (p *eventPrinter) after() (uint64, error) {
	since := p.c.String("since")
	if p.c.IsSet("since") {
		if seq, err := strconv.ParseUint(since, 10, 64); err == nil {
			return seq, nil
		}
		at, err := teams.Since(since, time.Now(), command.ParseDuration)
		if err != nil {
			return 0, command.Usage("--since: %q is neither an event's number nor a moment, as 120, 2h, 7d and 2006-01-02 are", since).
				WithHint("%s --since 2h", strings.Join(append([]string{"atm events"}, p.c.Args().Slice()...), " "))
		}
		return p.box.Log().SeqBefore(at)
	}
	limit := uint64(p.limit())
	if limit == 0 || p.chosen() {
		return 0, nil
	}
	last, err := p.box.Log().LastSeq() // no gaps: the last ones are known
	after := last - min(limit, last)
	base, _, _ := p.box.Log().Base()
	p.sayMore(after - min(after, base.Seq))
	return after, err
}

// past prints what is in the log, and returns where that ended.
func (p *eventPrinter) past(ctx context.Context, after uint64) (uint64, error) {
	cursor := p.box.Log().Follow(after)
	defer cursor.Close()
	limit, printed := p.limit(), 0
	var last [][]byte // the newest, at most limit
	for n := 0; ; n++ {
		e, gap, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		line := p.line(&e, p.withoutArchived(gap))
		if len(line) == 0 {
			continue
		}
		p.any = true
		printed++
		if limit == 0 {
			if _, err := p.out.Write(line); err != nil {
				return 0, err
			}
			continue
		}
		if last = append(last, line); len(last) > limit {
			last = last[1:]
		}
	}
	if p.chosen() && limit > 0 {
		p.sayMore(uint64(printed - len(last)))
	}
	for _, line := range last {
		p.out.Write(line)
	}
	return cursor.Seq(), p.out.Flush()
}

// follow prints what comes.
func (p *eventPrinter) follow(ctx context.Context, after uint64) error {
	w, err := watcher.Open(ctx, []*mailbox.Box{p.box}, watcher.Options{Events: true, After: map[wire.Address]uint64{p.box.Address(): after}})
	if err != nil {
		return err
	}
	defer w.Close()
	if why := w.Polling(); why != "" {
		command.Warn(p.c, "%s: looking every second instead", why)
	}
	for {
		entry, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if entry.Err != nil {
			command.Warn(p.c, "%v", entry.Err)
		}
		if entry.Event == nil {
			continue
		}
		p.out.Write(p.line(entry.Event, p.withoutArchived(entry.Gap)))
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
}

// withoutArchived says which of the events that are not there are in the archive,
// and returns the gap that is left.
func (p *eventPrinter) withoutArchived(gap *eventlog.Gap) *eventlog.Gap {
	if gap == nil {
		return nil
	}
	base, ok, _ := p.box.Log().Base()
	if !ok || base.Seq < gap.From {
		return gap
	}
	to := min(gap.To, base.Seq)
	if p.c.Bool("json") && p.as == "" {
		fmt.Fprintf(p.out, "{\"archived\":{\"from\":%d,\"to\":%d}}\n", gap.From, to)
	} else {
		command.Warn(p.c, "events %d to %d are in the archive: %s", gap.From, to, p.box.Log().Root.Join(p.box.Log().Archive))
	}
	if to == gap.To {
		return nil
	}
	return &eventlog.Gap{From: to + 1, To: gap.To}
}

// line is what is printed of an event and of what is missing before it.
func (p *eventPrinter) line(e *wire.Event, gap *eventlog.Gap) (line []byte) {
	switch {
	case gap == nil:
	case p.as != "":
		command.Warn(p.c, "events %d to %d are missing", gap.From, gap.To)
	case p.c.Bool("json"):
		line = fmt.Appendf(line, "{\"gap\":{\"from\":%d,\"to\":%d}}\n", gap.From, gap.To)
	default:
		line = fmt.Appendf(line, "events %d to %d are missing\n", gap.From, gap.To)
	}
	if len(p.kinds) > 0 && !slices.Contains(p.kinds, e.Kind) {
		return line
	}
	if p.as != "" {
		theirs, ok := wire.AsWire(e, p.as)
		if !ok {
			return line
		}
		if command.Terminal() {
			theirs = command.EscapeJSON(theirs)
		}
		return append(append(line, theirs...), '\n')
	}
	if p.c.Bool("json") {
		return append(append(line, command.EscapeJSON(e.Append(nil))...), '\n')
	}
	said := command.Stamp(e.At) + "  " + letter.Escape(e.Kind)
	if detail := wire.Line(e); detail != "" {
		said += "  " + letter.Escape(detail)
	}
	return append(append(line, letter.Clip(said, 400)...), '\n')
}
