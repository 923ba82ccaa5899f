package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var eventsCommand = &cli.Command{
	Name: "events", ArgsUsage: "[AGENT]", Usage: "what happened to me, or to AGENT, for programs (for people: atm watch)",
	UsageText: "atm events\natm events bob --kind turn_idle --follow\natm events bob --as-wire daemon --since 120",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "and what comes, until interrupted"},
		&cli.IntFlag{Name: "since", Usage: "what came after event `SEQ`"},
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
	box.TakeIn(c.Context)            // a dropped file may be an event; on a disk that is read-only it waits
	base, _, err := box.Log().Base() // what lies in the archive is not missing
	if err != nil {
		return err
	}
	after, err := p.printPast(box, max(uint64(c.Int("since")), base.Seq))
	if err != nil || !c.Bool("follow") {
		return err
	}
	return s.Follow(func(ctx context.Context) error { return p.follow(ctx, box, after) })
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
		return fmt.Appendf(line, "%s\n", theirs)
	}
	if p.c.Bool("json") {
		return fmt.Appendf(line, "%s\n", command.EscapeJSON(e.Append(nil)))
	}
	said := strings.TrimRight(command.Stamp(e.At)+"  "+letter.Escape(e.Kind+"  "+wire.Line(e)), " ")
	return fmt.Appendf(line, "%s\n", letter.Clip(said, 400))
}
