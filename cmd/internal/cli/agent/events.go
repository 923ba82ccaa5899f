package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var eventsCommand = &cli.Command{
	Name: "events", ArgsUsage: "[AGENT]", Usage: "print my events or AGENT's, for programs (for people: atm watch)",
	UsageText: `atm events
atm events bob --kind turn_idle --follow
atm events bob --as-wire daemon --since 120`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Category: "watch", Usage: "keep printing new events until interrupted"},
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
		cmdline.CountFlag("since", 0, "only events after event `SEQ` (by time: atm watch --since 1h)", "all of them"),
		cmdline.ListFlag("kind", "only events of kind `K`, repeatable", "type"),
		cmdline.CountFlag("limit", 0, "only the last `N`", "all", "n", "tail"),
		cmdline.ChoiceFlag("as-wire", "in the vocabulary `daemon|session|acp`", "daemon", "session", "acp"),
	},
	Action: events,
}

// eventsOptions are the flags of events.
type eventsOptions struct {
	since, from uint64 // only those after it; where reading begins
	kinds       []string
	as          string // a vocabulary; "": ours
	limit       int    // 0: none
	follows     bool
	timeout     time.Duration
}

func events(c *cli.Context) error {
	k, err := openAgent(c)
	if err != nil {
		return err
	}
	drop.Ingest(c.Context, k.box, drop.Patience) // dropped files may be events; a read-only disk keeps them for later
	first, err := k.box.Log().FirstSeq()         // archived events are not missing
	if err != nil {
		return err
	}
	o := eventsOptions{
		since: uint64(c.Int("since")), from: max(first, 1) - 1, kinds: cmdline.List(c, "kind"), as: c.String("as-wire"), limit: c.Int("limit"),
		follows: c.Bool("follow"), timeout: command.GivenTimeout(c),
	}
	if c.IsSet("since") {
		o.from = min(o.since, o.from)
	}
	return k.events(o)
}

func (k *call) events(o eventsOptions) error {
	if err := k.skipToLast(&o); err != nil {
		return err
	}
	cursor := k.box.Log().Follow(o.from)
	defer cursor.Close()
	d, lines, out := &aswire.DaemonStream{}, []string{}, bufio.NewWriter(k.p.Out)
	for {
		last := cursor.Seq()
		e, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if e.Seq <= o.since {
			d.Translate(e)
			continue
		}
		k.warnMissing(last, &e)
		if text := k.eventLines(o, d, &e); o.limit > 0 {
			lines = slices.AppendSeq(lines, strings.Lines(text))
			lines = lines[max(0, len(lines)-o.limit):]
		} else if _, err := out.WriteString(text); err != nil {
			return err
		}
	}
	out.WriteString(strings.Join(lines, ""))
	if err := out.Flush(); err != nil || !o.follows {
		return err
	}
	last := cursor.Seq()
	w := watcher.Options{Events: true, After: map[wire.Address]uint64{k.box.Address(): last}}
	return k.s.FollowFor(o.timeout, func(ctx context.Context) error {
		return watcher.Until(ctx, []watcher.Mailbox{k.box}, w, func(e watcher.Entry) (done bool, err error) {
			if e.Event != nil {
				k.warnMissing(last, e.Event)
				last = e.Event.Seq
				_, err = io.WriteString(k.p.Out, k.eventLines(o, d, e.Event))
			} else if e.Address.Agent != "" {
				k.p.Warn("%v", e.Err)
			}
			return false, err
		})
	})
}

// skipToLast has reading begin with the first of the last events up to the limit. What the daemon's vocabulary says of an
// event depends on those before it.
func (k *call) skipToLast(o *eventsOptions) error {
	if o.limit == 0 || o.as == "daemon" {
		return nil
	}
	n := 0
	return k.box.Log().Backward(func(e *wire.Event) (enough bool) {
		n += strings.Count(k.eventLines(*o, nil, e), "\n")
		if enough = n >= o.limit; enough {
			o.from = max(o.from, e.Seq-1)
		}
		return enough || e.Seq <= o.since
	})
}

// warnMissing warns of events between the last one and the next, which were archived, or lost with a damaged file.
func (k *call) warnMissing(last uint64, next *wire.Event) {
	if next.Seq > last+1 {
		k.p.Warn("events %d to %d are not in the log", last+1, next.Seq-1)
	}
}

// eventLines renders an event.
func (k *call) eventLines(o eventsOptions, d *aswire.DaemonStream, e *wire.Event) (lines string) {
	events := []wire.Event{*e}
	if o.as == "daemon" {
		events = d.Translate(*e)
	}
	for _, e := range events {
		isWanted, line := len(o.kinds) == 0 || slices.Contains(o.kinds, e.Kind), ""
		switch {
		case o.as != "":
			theirs, isTheirs := foreign.AsWire(&e, foreign.Vocabulary(o.as))
			isWanted = isWanted && isTheirs && !foreign.IsHearsay(&e)
			if line = string(theirs); k.p.IsTerminal() {
				line = string(command.EscapeJSON(theirs))
			}
		case k.p.IsJSON:
			line = string(command.EscapeJSON(e.Append(nil)))
		default:
			line = letter.Clip(app.JoinFilled("  ", letter.Stamp(e.At), letter.Escape(e.Kind), letter.Escape(foreign.Line(&e))), 400)
			line = letter.Wrap(line, k.p.Width())
		}
		if isWanted {
			lines += line + "\n"
		}
	}
	return lines
}
