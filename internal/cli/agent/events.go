package agent

import (
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
	UsageText: "atm events\natm events bob --kind turn_idle --follow\natm events bob --as-wire daemon --since 1h",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "and what comes, until interrupted"},
		&cli.StringFlag{Name: "since", Usage: "after that event, or since that long ago (`SEQ|D`)"},
		&cli.StringSliceFlag{Name: "kind", Usage: "only of the kind `K`; may be repeated"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "only the last `N`"},
		&cli.StringFlag{Name: "as-wire", Usage: "as their owner writes them: `daemon|session|acp`"},
	},
	Action: events,
}

func events(c *cli.Context) error {
	p := &eventPrinter{c: c, kinds: c.StringSlice("kind"), as: wire.Vocabulary(c.String("as-wire"))}
	if as := []string{"daemon", "session", "acp"}; c.IsSet("as-wire") && !slices.Contains(as, string(p.as)) {
		return command.Usage("--as-wire: %q is none of %s", p.as, strings.Join(as, ", ")).WithCandidates(as...)
	}
	s, box, err := openAgent(c)
	if err != nil {
		return err
	}
	box.TakeIn(c.Context) // a dropped file may be an event; on a disk that is read-only it waits
	after, err := firstEvent(c, box)
	if err != nil {
		return err
	}
	if after, err = p.printPast(box, after); err != nil || !c.Bool("follow") {
		return err
	}
	return s.Follow(func(ctx context.Context) error { return p.follow(ctx, box, after) })
}

// firstEvent is the number of the event after which to begin. What lies in the
// archive is not missing.
func firstEvent(c *cli.Context, box *mailbox.Box) (uint64, error) {
	base, _, err := box.Log().Base()
	since := c.String("since")
	if err != nil || since == "" {
		return base.Seq, err
	}
	if seq, err := strconv.ParseUint(since, 10, 64); err == nil {
		return max(seq, base.Seq), nil
	}
	at, err := teams.Since(since, time.Now(), command.ParseDuration)
	if err != nil {
		return 0, command.Usage("--since: %q is neither an event's number nor a moment", since).WithHint("atm events --since 2h")
	}
	seq, err := box.Log().SeqBefore(at)
	return max(seq, base.Seq), err
}

// An eventPrinter prints events of one log.
type eventPrinter struct {
	c     *cli.Context
	kinds []string
	as    wire.Vocabulary
}

// printPast prints what is in the log, and returns where that ended.
func (p *eventPrinter) printPast(box *mailbox.Box, after uint64) (uint64, error) {
	cursor := box.Log().Follow(after)
	defer cursor.Close()
	var lines [][]byte
	for {
		e, gap, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if line := p.line(&e, gap); line != nil {
			lines = append(lines, line)
		}
	}
	if n := p.c.Int("limit"); n > 0 {
		lines = lines[max(0, len(lines)-n):]
	}
	_, err := os.Stdout.Write(slices.Concat(lines...))
	return cursor.Seq(), err
}

// follow prints what comes.
func (p *eventPrinter) follow(ctx context.Context, box *mailbox.Box, after uint64) error {
	w, err := watcher.Open(ctx, []*mailbox.Box{box}, watcher.Options{Events: true, After: map[wire.Address]uint64{box.Address(): after}})
	if err != nil {
		return err
	}
	defer w.Close()
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
		if _, err := os.Stdout.Write(p.line(entry.Event, entry.Gap)); err != nil {
			return err
		}
	}
}

// line is what is printed of an event and of what is missing before it.
func (p *eventPrinter) line(e *wire.Event, gap *eventlog.Gap) (line []byte) {
	if gap != nil && p.c.Bool("json") && p.as == "" {
		line = fmt.Appendf(nil, "{\"gap\":{\"from\":%d,\"to\":%d}}\n", gap.From, gap.To)
	} else if gap != nil {
		command.Warn(p.c, "events %d to %d are missing", gap.From, gap.To)
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
	said := strings.TrimRight(command.Stamp(e.At)+"  "+letter.Escape(e.Kind+"  "+wire.Line(e)), " ")
	return append(line, letter.Clip(said, 400)+"\n"...)
}
