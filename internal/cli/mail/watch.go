package mail

import (
	"context"
	"errors"
	"fmt"
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

// An entry is a message, an event or a gap among the events, in the order of time.
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
	since := time.Now()
	if c.IsSet("since") {
		if since, err = teams.Since(c.String("since"), since, command.ParseDuration); err != nil {
			return command.Usage("--since: %v", err).WithHint("atm watch --since 2h")
		}
	} else if c.Bool("no-follow") {
		since = time.Time{}
	}
	return s.Follow(func(ctx context.Context) error { return watchBoxes(ctx, c, s, boxes, since) })
}

// watchedBoxes are the mailboxes that the words name, or all.
func watchedBoxes(c *cli.Context, s *command.Scope) (out []*mailbox.Box, err error) {
	if !c.Args().Present() {
		return s.Team.Boxes()
	}
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return nil, err
		}
		out = append(out, box)
	}
	return out, nil
}

// watchBoxes shows what was since a moment, and what comes.
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
		past, err := history(ctx, c, boxes, since, options.After)
		if err != nil {
			return err
		}
		for _, e := range past {
			if e.msg != nil {
				shown[e.msg.ID] = true
			}
			if err := e.print(c, s); err != nil {
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
		}
		at, agent := time.Now(), next.Box.Address()
		if next.Gap != nil {
			err = entry{at: at, agent: agent, gap: next.Gap}.print(c, s)
		}
		if next.Event != nil && err == nil {
			err = entry{at: next.Event.At, agent: agent, event: next.Event}.print(c, s)
		}
		if next.Message != nil && !shown[next.Message.ID] {
			err = entry{at: at, agent: agent, msg: next.Message}.print(c, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// history is what happened since a moment, in order: the events up to those numbers.
func history(ctx context.Context, c *cli.Context, boxes []*mailbox.Box, since time.Time, upTo map[wire.Address]uint64) (out []entry, err error) {
	for _, box := range boxes {
		events, err := box.Log().Tail(func(events []wire.Event) bool { return len(events) > 0 && events[0].At.Before(since) })
		if err != nil {
			command.Warn(c, "%v", err) // of this one
		}
		for i, e := range events {
			if e.At.Before(since) || e.Seq > upTo[box.Address()] {
				continue
			}
			if i > 0 && e.Seq > events[i-1].Seq+1 {
				out = append(out, entry{at: e.At, agent: box.Address(), gap: &eventlog.Gap{From: events[i-1].Seq + 1, To: e.Seq - 1}})
			}
			out = append(out, entry{at: e.At, agent: box.Address(), event: &events[i]})
		}
		everything := mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Times: true, Since: since}
		_, _, err = box.Walk(ctx, everything, func(it *mailbox.Item) bool {
			if !it.Written.Before(since) {
				out = append(out, entry{at: it.Written, agent: box.Address(), msg: it})
			}
			return true
		})
		if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.at.Compare(b.at) })
	return out, nil
}

func (e entry) print(c *cli.Context, s *command.Scope) error {
	e.r = s.Renderer()
	return command.Print(c, e)
}

// MarshalJSON is the event as it is, or what else there is under its name.
func (e entry) MarshalJSON() ([]byte, error) {
	if e.event != nil {
		return e.event.MarshalJSON()
	}
	if e.gap != nil {
		return command.JSON(map[string]any{"gap": map[string]uint64{"from": e.gap.From, "to": e.gap.To}})
	}
	return command.JSON(map[string]command.Message{"message": {Item: e.msg}})
}

func (e entry) String() string {
	text := command.Stamp(e.at) + " " + e.r.Who(e.agent) + " "
	if e.event != nil {
		return text + eventWords(e.event, e.r)
	}
	if e.gap != nil {
		return text + fmt.Sprintf("events %d to %d are missing", e.gap.From, e.gap.To)
	}
	return text + "got " + e.r.Short(e.msg.ID) + " from " + e.r.Who(e.msg.From) + title(e.msg)
}

// words are the kinds of events as people would say them behind the agent's name.
var words = map[string]string{
	wire.EventAnnounced:       "was told of",
	wire.EventRead:            "read",
	wire.EventAcked:           "acked",
	wire.EventInjecting:       "is being typed",
	wire.EventInjected:        "was typed",
	wire.EventInjectionFailed: "could not be typed",
	wire.TurnStarted:          "began a turn",
	wire.TurnIdle:             "is idle",
	wire.TurnCompleted:        "ended its turn",
	"waiting_for_input":       "asks",
	"confirm_required":        "asks for a permission",
	"server_request":          "asks for a permission",
}

// eventWords says an event as people would. `atm events` shows events as programs
// know them.
func eventWords(e *wire.Event, r *letter.Renderer) string {
	text := words[e.Kind]
	if text == "" {
		text = strings.ReplaceAll(letter.Escape(e.Kind), "_", " ")
	}
	if id := e.MessageID(); wire.IsID(string(id)) {
		return text + " " + r.Short(id)
	}
	if e.Kind == wire.TurnStarted || e.Kind == wire.TurnIdle {
		return text
	}
	said := e.Text("status", "prompt", "tool", "message", "summary", "error_summary", "reason")
	if said == "" {
		said = wire.Line(e)
	}
	if said == "" {
		return text
	}
	return text + ": " + letter.Clip(letter.Escape(said), 200)
}
