package mail

import (
	"context"
	"fmt"
	"io"
	"slices"
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

var watchCommand = &cli.Command{
	Name: "watch", ArgsUsage: "[AGENT…]", Usage: "what happens: messages and events, a line each",
	UsageText:   "atm watch\natm watch bob --since 1h --no-follow",
	Description: "Marks nothing; goes on until it is interrupted.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "begin `D` earlier"},
		&cli.BoolFlag{Name: "no-follow", Usage: "end when all is shown"},
	},
	Action: watch,
}

// An entry is a message or an event, in the order of time.
type entry struct {
	watcher.Entry
	at time.Time
	s  *command.Scope
}

func watch(c *cli.Context) error {
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return err
	}
	boxes, err := s.Team.Boxes()
	if c.Args().Present() {
		boxes = nil
	}
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	if err != nil {
		return err
	}
	since := time.Time{}
	if c.IsSet("since") {
		if since, err = teams.Since(c.String("since"), time.Now(), command.ParseDuration); err != nil {
			return command.Usage("--since: %v", err).WithHint("atm watch --since 2h")
		}
	}
	return s.Follow(func(ctx context.Context) error { return watchBoxes(ctx, c, s, boxes, since) })
}

// watchBoxes shows what was since a moment, if that is asked for, and what comes.
func watchBoxes(ctx context.Context, c *cli.Context, s *command.Scope, boxes []*mailbox.Box, since time.Time) error {
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	for _, box := range boxes {
		last, err := box.Log().LastSeq()
		if err != nil {
			command.Warn(c, "%v", err) // of this one; the others are followed
		}
		options.After[box.Address()] = last
	}
	w, err := watcher.Open(ctx, boxes, options)
	if err != nil {
		return err
	}
	defer w.Close()
	shown := map[wire.ID]bool{} // messages, which the watcher may bring as well
	if c.IsSet("since") || c.Bool("no-follow") {
		past, err := history(ctx, c, s, boxes, since, options.After)
		if err != nil {
			return err
		}
		for _, e := range past {
			if e.Message != nil {
				shown[e.Message.ID] = true
			}
			if err := e.print(c); err != nil {
				return err
			}
		}
	}
	for !c.Bool("no-follow") {
		next, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if next.Err != nil {
			command.Warn(c, "%v", next.Err)
			continue
		}
		if next.Message != nil && shown[next.Message.ID] {
			continue
		}
		if err := (entry{next, time.Now(), s}).print(c); err != nil {
			return err
		}
	}
	return nil
}

// history is what happened since a moment, in order: the events up to those numbers.
func history(ctx context.Context, c *cli.Context, s *command.Scope, boxes []*mailbox.Box, since time.Time, upTo map[wire.Address]uint64) (out []entry, err error) {
	everything := mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Times: true, Since: since}
	for _, box := range boxes {
		_, _, err = box.Walk(ctx, everything, func(it *mailbox.Item) bool {
			if !it.Written.Before(since) {
				out = append(out, entry{watcher.Entry{Box: box, Message: it}, it.Written, s})
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		before, err := box.Log().SeqBefore(since)
		log := box.Log().Follow(before)
		for err == nil && log.Seq() < upTo[box.Address()] {
			var e wire.Event
			var gap *eventlog.Gap
			if e, gap, err = log.Next(); err == nil {
				out = append(out, entry{watcher.Entry{Box: box, Event: &e, Gap: gap}, e.At, s})
			}
		}
		if err != nil && err != io.EOF {
			command.Warn(c, "%v", err) // of this one
		}
		log.Close()
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.at.Compare(b.at) })
	return out, nil
}

func (e entry) print(c *cli.Context) error {
	if e.Gap != nil && c.Bool("json") {
		if err := command.PrintJSON(map[string]any{"gap": map[string]uint64{"from": e.Gap.From, "to": e.Gap.To}}); err != nil {
			return err
		}
	}
	return command.Print(c, e)
}

// MarshalJSON is the event as it is, or the message.
func (e entry) MarshalJSON() ([]byte, error) {
	if e.Event != nil {
		return e.Event.MarshalJSON()
	}
	return command.JSON(map[string]command.Message{"message": {Item: e.Message}})
}

func (e entry) String() string {
	r := e.s.Renderer()
	text := command.Stamp(e.at) + " " + r.Who(e.Box.Address()) + " "
	if e.Message != nil {
		return text + "got " + r.Short(e.Message.ID) + " from " + r.Who(e.Message.From) + title(e.Message)
	}
	if e.Gap != nil {
		text += fmt.Sprintf("(events %d to %d are missing) ", e.Gap.From, e.Gap.To)
	}
	return text + eventWords(e.Event, r)
}

// eventWords says an event in words: its kind, and the message or the text that it is about.
func eventWords(e *wire.Event, r *letter.Renderer) string {
	text := strings.ReplaceAll(strings.TrimPrefix(letter.Escape(e.Kind), "message_"), "_", " ")
	if id := e.MessageID(); wire.IsID(string(id)) {
		return text + " " + r.Short(id)
	}
	if said := wire.Line(e); said != "" {
		text += ": " + letter.Clip(letter.Escape(said), 200)
	}
	return text
}
