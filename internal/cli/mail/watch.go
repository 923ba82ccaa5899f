package mail

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
	Description: "Marks nothing; goes on until it is interrupted. With --limit the newest of what was before.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "begin `D` earlier, or behind an event's number"},
		&cli.BoolFlag{Name: "no-follow", Usage: "end when all is shown"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "of what was before the last `N`"},
		hidden("follow", "f"),
	},
	Action: watch,
}

// An entry is a message or an event in the order of time. It prints itself.
type entry struct {
	at    time.Time
	agent wire.Address
	msg   *mailbox.Item
	event *wire.Event
	gap   *eventlog.Gap

	r *letter.Renderer
}

func watch(c *cli.Context) error {
	s, err := command.OpenMeIfSaid(c)
	if err != nil {
		return err
	}
	boxes, err := watchedBoxes(c, s)
	if err != nil {
		return err
	}
	return s.Follow(func(ctx context.Context) error {
		if c.Bool("no-follow") {
			past, err := history(ctx, c, boxes)
			if err != nil {
				return err
			}
			if len(past) == 0 && !c.Bool("json") {
				return command.Print(c, command.Text("nothing happened"))
			}
			return printEntries(c, s, past)
		}
		return watchBoxes(ctx, c, s, boxes)
	})
}

// watchedBoxes are the mailboxes that the words name, or all.
func watchedBoxes(c *cli.Context, s *command.Scope) ([]*mailbox.Box, error) {
	if !c.Args().Present() {
		return s.Team.Boxes()
	}
	var out []*mailbox.Box
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return nil, err
		}
		out = append(out, box)
	}
	return out, nil
}

// watchBoxes shows what was before, as far as that is asked for, and what comes.
func watchBoxes(ctx context.Context, c *cli.Context, s *command.Scope, boxes []*mailbox.Box) error {
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
	if why := w.Polling(); why != "" {
		command.Warn(c, "%s: looking every second instead", why)
	}
	shown := map[wire.Address]map[wire.ID]bool{}
	if c.IsSet("since") {
		past, err := history(ctx, c, boxes)
		if err != nil {
			return err
		}
		past = slices.DeleteFunc(past, func(e entry) bool { // these the watcher brings
			return e.event != nil && e.event.Seq > options.After[e.agent]
		})
		for _, e := range past {
			if shown[e.agent] == nil {
				shown[e.agent] = map[wire.ID]bool{}
			}
			if e.msg != nil {
				shown[e.agent][e.msg.ID] = true
			}
		}
		if err := printEntries(c, s, past); err != nil {
			return err
		}
	}
	for {
		next, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if next.Err != nil {
			command.Warn(c, "%v", next.Err)
			continue
		}
		e := entry{at: time.Now(), agent: next.Box.Address(), msg: next.Message, event: next.Event, gap: next.Gap}
		if e.msg != nil && shown[e.agent][e.msg.ID] {
			continue
		}
		if e.event != nil {
			e.at = e.event.At
		}
		if err := printEntries(c, s, []entry{e}); err != nil {
			return err
		}
	}
}

func printEntries(c *cli.Context, s *command.Scope, entries []entry) error {
	for _, e := range entries {
		e.r = s.Renderer()
		if e.gap != nil && c.Bool("json") {
			gap := map[string]any{"gap": map[string]uint64{"from": e.gap.From, "to": e.gap.To}, "agent": e.agent.Agent}
			if err := command.PrintJSON(gap); err != nil {
				return err
			}
		}
		if err := command.Print(c, e); err != nil {
			return err
		}
	}
	return nil
}

// since is what --since says: an event's number, or a moment.
func since(c *cli.Context) (seq uint64, at time.Time, err error) {
	word := c.String("since")
	if word == "" {
		return 0, time.Time{}, nil
	}
	if seq, err = strconv.ParseUint(word, 10, 64); err == nil {
		return seq, time.Time{}, nil
	}
	if at, err = teams.Since(word, time.Now(), command.ParseDuration); err != nil {
		return 0, at, command.Usage("--since: %q is neither an event's number nor a moment", word).WithHint("atm watch --since 2h")
	}
	return 0, at, nil
}

// history is what happened since --since, in order; at most the last --limit.
func history(ctx context.Context, c *cli.Context, boxes []*mailbox.Box) ([]entry, error) {
	seq, at, err := since(c)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, box := range boxes {
		events, err := box.Log().Tail(func(events []wire.Event) bool {
			return len(events) > 0 && (!at.IsZero() && events[0].At.Before(at) || seq > 0 && events[0].Seq <= seq+1)
		})
		if errors.Is(err, mailbox.ErrNoAgent) {
			continue // retired meanwhile
		}
		if err != nil {
			command.Warn(c, "%v", err) // of this one
		}
		out = append(out, eventsSince(box, events, seq, at)...)
		if seq > 0 {
			continue // a number says nothing about messages
		}
		everything := mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Times: true, Since: at}
		_, _, err = box.Walk(ctx, everything, func(it *mailbox.Item) bool {
			if !it.Written.Before(at) {
				out = append(out, entry{at: it.Written, agent: box.Address(), msg: it})
			}
			return true
		})
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.at.Compare(b.at) })
	if n := c.Int("limit"); n > 0 && len(out) > n {
		command.Warn(c, "%d more before these: --limit 0 shows all", len(out)-n)
		out = out[len(out)-n:]
	}
	return out, nil
}

// eventsSince are events after a number and a moment, with the gaps among them.
func eventsSince(box *mailbox.Box, events []wire.Event, seq uint64, at time.Time) (out []entry) {
	last := uint64(0)
	for i := range events {
		e := &events[i]
		if e.Seq > seq && !e.At.Before(at) {
			next := entry{at: e.At, agent: box.Address(), event: e}
			if last > 0 && e.Seq > last+1 {
				next.gap = &eventlog.Gap{From: last + 1, To: e.Seq - 1}
			}
			out = append(out, next)
		}
		last = e.Seq
	}
	return out
}

// MarshalJSON is the event as it is, or the message and whose it is.
func (e entry) MarshalJSON() ([]byte, error) {
	if e.event != nil {
		return e.event.MarshalJSON()
	}
	return command.JSON(struct {
		Message command.Message `json:"message"`
		Agent   wire.Name       `json:"agent"`
	}{command.Message{Item: e.msg}, e.agent.Agent})
}

func (e entry) String() string {
	begin := command.Stamp(e.at) + " " + e.r.Who(e.agent) + " "
	if e.msg != nil {
		text := begin + "got " + e.r.Short(e.msg.ID) + " from " + e.r.Who(e.msg.From)
		if title := e.msg.Title(); title != "" {
			text += ": " + letter.Clip(letter.Escape(title), 100)
		}
		return text
	}
	text := begin + eventWords(e.event, e.r)
	if e.gap != nil {
		text = begin + "events " + strconv.FormatUint(e.gap.From, 10) + " to " + strconv.FormatUint(e.gap.To, 10) + " are missing\n" + text
	}
	return text
}
