package mail

import (
	"cmp"
	"context"
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
		command.CountFlag("limit", 0, "begin with the last `N`", "what comes", "n", "tail", "last"),
		hidden("follow", "f"), hidden("oneline"), command.DurationFlag("timeout", 0, "end after `D`"),
		&cli.BoolFlag{Name: "no-follow", Usage: "end when all is shown"},
	},
	Action: command.With(command.OpenMeIfSaid, watch),
}

type happening struct {
	entry
	at time.Time
}

func watch(c *cli.Context, s *command.Scope) error {
	var boxes []*mailbox.Box
	var err error
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	if len(boxes) == 0 {
		boxes, err = s.Team.Boxes()
	}
	if err != nil {
		return err
	}
	from, err := since(c)
	if err != nil {
		return err
	}
	return s.FollowFor(func(ctx context.Context) error { return watchBoxes(ctx, c, s, boxes, from) })
}

func watchBoxes(ctx context.Context, c *cli.Context, s *command.Scope, boxes []*mailbox.Box, from time.Time) error {
	w, err := watcher.Open(ctx, boxes, watcher.Options{Messages: true, Events: true})
	if err != nil {
		return err
	}
	defer w.Close()
	limit := c.Int("limit")
	var earlier []happening
	if c.IsSet("since") || c.Bool("no-follow") || limit > 0 {
		earlier = happenings(ctx, boxes, from)
	}
	shown := map[string]bool{} // what the watcher may bring as well
	for i, h := range earlier {
		shown[h.key()] = true
		if i < len(earlier)-cmp.Or(limit, len(earlier)) {
			continue
		}
		if err := h.print(c, s); err != nil {
			return err
		}
	}
	for !c.Bool("no-follow") || c.Bool("follow") { // logs -f
		next, err := w.Next(ctx)
		if h := (happening{next, time.Now()}); err == nil && !shown[h.key()] {
			err = h.print(c, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// key tells happenings apart; that of an error is "". Another log may lie there later: its events have other times.
func (h happening) key() string {
	switch {
	case h.Message != nil:
		return h.Box.Path() + string(h.Message.ID)
	case h.Event != nil:
		return fmt.Sprint(h.Box.Path(), h.Event.Seq, h.Event.At)
	}
	return ""
}

// happenings are what happened since a moment, in order.
func happenings(ctx context.Context, boxes []*mailbox.Box, since time.Time) (out []happening) {
	everything := mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Since: since}
	for _, box := range boxes {
		_, _, err := box.Walk(ctx, everything, func(it *mailbox.Item) bool {
			if at := it.Written(); !at.Before(since) {
				out = append(out, happening{entry{Box: box, Message: it}, at})
			}
			return true
		})
		events, logErr := box.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for i := range events {
			e, h := &events[i], happening{entry{Box: box, Event: &events[i]}, events[i].At}
			if i > 0 && e.Seq > events[i-1].Seq+1 {
				h.Gap = &eventlog.Gap{From: events[i-1].Seq + 1, To: e.Seq - 1}
			}
			if !e.At.Before(since) {
				out = append(out, h)
			}
		}
		command.WarnUnreadable(teams.Unreadable(box, cmp.Or(err, logErr))) // the others are shown
	}
	slices.SortStableFunc(out, func(a, b happening) int { return a.at.Compare(b.at) })
	return out
}

func (h happening) print(c *cli.Context, s *command.Scope) error {
	if h.Err != nil {
		if gone := command.WarnUnreadable(teams.Unreadable(h.Box, h.Err)); gone != nil {
			command.Warn(c, "%v", gone)
		}
		return nil
	}
	if h.Gap != nil && c.Bool("json") {
		if err := command.PrintJSON(map[string]*eventlog.Gap{"gap": h.Gap}); err != nil {
			return err
		}
	}
	if h.Message != nil {
		return command.PrintAs(c, map[string]message{"message": {Item: h.Message}}, h.line(s))
	}
	return command.PrintAs(c, h.Event, h.line(s))
}

func (h happening) line(s *command.Scope) string {
	r, text, colour := s.Renderer(), "", ""
	if h.Gap != nil {
		text = fmt.Sprintf("(events %d to %d are missing) ", h.Gap.From, h.Gap.To)
	}
	if m := h.Message; m != nil {
		title := letter.Clip(letter.Escape(m.Title()), 100)
		text, colour = command.JoinFilled(": ", "got "+r.Short(m.ID)+" from "+r.Who(m.From), title), "32"
	} else {
		text += describeEvent(h.Event, r)
		colour = map[string]string{"confirm_required": "31", "waiting_for_input": "31", wire.StreamFailed: "31"}[h.Event.Kind]
	}
	row := []string{letter.Stamp(h.at), r.Who(h.Box.Address()), text}
	if !command.Terminal() {
		return strings.Join(row, " ")
	}
	for _, n := range s.Names() {
		row[1] = fmt.Sprintf("%-*s", len(n), row[1])
	}
	return command.Columns([][]string{row}, "2", "1", colour)[0]
}

// phrases are what events say to people, where that is not their kind's name.
var phrases = map[string]string{
	wire.TurnCompleted: "turn ended:", wire.TurnIdle: "is idle", wire.StreamFailed: "error:", wire.DroppedCounters: "lost events:",
	"state_change": "is now", "confirm_required": "asks:", "waiting_for_input": "asks:", "draft_ready": "has a draft:",
	"status_update": "says:", "message_delta": "says:", "agent_output": "says:", "agent_message_chunk": "says:",
	"agent_thought_chunk": "thinks:", "tool_call_start": "uses", "tool_call": "uses", "tool_call_end": "used",
	"session_start": "session began:", "session_end": "session ended:", "spawned": "program started", "exited": "program ended:",
	"restarting": "program starts again:", wire.EventAnnounced: "was told of", wire.EventWithdrawn: "mail withdrawn:",
	wire.EventInjecting: "is being handed", wire.EventInjected: "was handed", wire.EventInjectionFailed: "could not be handed",
}

func describeEvent(e *wire.Event, r *letter.Renderer) string {
	phrase, known := phrases[e.Kind]
	if !known {
		phrase = strings.ReplaceAll(strings.TrimPrefix(e.Kind, "message_"), "_", " ")
	}
	about := ""
	switch e.Kind {
	case wire.TurnStarted, wire.TurnIdle, "spawned":
	case wire.TurnCompleted:
		about = strings.TrimPrefix(e.Text("status"), "completed")
	case wire.DroppedCounters:
		n, _ := e.Uint("dropped")
		about = fmt.Sprint(n)
	case "exited":
		if about = wire.Line(e); e.Text("reason") != "" { // it was wanted: how it went says nothing
			phrase, about = "program stopped", ""
		}
	case "state_change":
		about = strings.ReplaceAll(e.Text("new"), "_", " ") + strings.TrimSuffix(", "+e.Text("detail"), ", ")
		if answer := e.Text("answer"); answer != "" {
			about += "; answered: " + strings.TrimSuffix(answer+" by "+e.Text("by"), " by ")
		}
	case wire.StreamFailed, "waiting_for_input", "draft_ready", "status_update", "agent_output":
		about = e.Text("error_summary", "prompt", "summary", "message", "content")
	default:
		about = wire.Line(e)
	}
	isQuestions := phrase == "asks:" || e.Kind == "state_change"
	if id := e.MessageID(); wire.IsID(string(id)) && !isQuestions {
		about = strings.TrimSuffix(r.Short(id)+": "+e.Text("reason"), ": ")
	}
	if e.Kind == wire.EventStage {
		about += ": " + e.Text("stage") + " at " + r.Called(e.Field("to"))
	}
	return letter.Escape(strings.TrimRight(phrase+" "+letter.Clip(about, 200), ": "))
}
