package mail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

var watchCommand = &cli.Command{
	Name: "watch", ArgsUsage: "[AGENT…]", Usage: "print messages and events as they happen, one per line",
	UsageText:   "atm watch\natm watch bob --since 1h --no-follow",
	Description: "Marks nothing as read. Runs until interrupted.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "start `D` ago"},
		cmdline.CountFlag("limit", 0, "start with the last `N`", "only new ones", "n", "tail", "last"),
		hidden("follow", "f", "all"), hidden("oneline"), cmdline.DurationFlag("timeout", 0, "stop after `D`"),
		&cli.BoolFlag{Name: "no-follow", Usage: "stop once all is shown"},
	},
	Action: command.With(command.OpenMeIfGiven, watch),
}

// A logLine is a message or an event, which watch prints as a line.
type logLine struct {
	entry
	at time.Time
}

func watch(c *cli.Context, s *command.Scope) error {
	var boxes []*mailbox.Box
	var err error
	words := strings.Join(c.Args().Slice(), ",")
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == ',' }) {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(boxes, func(b *mailbox.Box) bool { return b.Address() == box.Address() }) {
			boxes = append(boxes, box)
		}
	}
	o := watcher.Options{Messages: true, Events: true}
	if len(boxes) == 0 {
		o.Boxes = s.Team.Boxes // later members too
		boxes, err = s.Team.Boxes()
	}
	since, sinceErr := sinceFlag(c)
	if err := cmp.Or(err, sinceErr); err != nil {
		return err
	}
	seen := map[string]bool{}                           // the watcher may bring some of the earlier ones again
	follows := !c.Bool("no-follow") || c.Bool("follow") // --no-follow -f follows, as for `logs -f`
	return s.FollowFor(func(ctx context.Context) error {
		return watcher.Until(ctx, boxes, o, func(e entry) (done bool, err error) {
			if e == (entry{}) {
				if wantsEarlier(c) {
					err = printEarlier(c, s, readLog(ctx, boxes, since), seen)
				}
				return !follows, err
			}
			if l := (logLine{e, time.Now()}); e.Box != nil && !seen[l.key()] {
				err = l.print(c, s)
			}
			return false, err
		})
	})
}

func wantsEarlier(c *cli.Context) bool {
	return c.IsSet("since") || c.Bool("no-follow") || c.Int("limit") > 0
}

// printEarlier prints the last lines of the log, as far as the flags ask for them, and adds all to seen.
func printEarlier(c *cli.Context, s *command.Scope, earlier []logLine, seen map[string]bool) error {
	for _, l := range earlier {
		seen[l.key()] = true
	}
	limit := cmp.Or(c.Int("limit"), len(earlier))
	for _, l := range earlier[max(0, len(earlier)-limit):] {
		if err := l.print(c, s); err != nil {
			return err
		}
	}
	return nil
}

// key identifies a message or an event; "" is an error. It has the event's time: a log that was replaced repeats seqs.
func (l logLine) key() string {
	switch {
	case l.Message != nil:
		return l.Box.Path() + string(l.Message.ID)
	case l.Event != nil:
		return fmt.Sprint(l.Box.Path(), l.Event.Seq, l.Event.At)
	}
	return ""
}

// readLog returns the messages and events since a time, in order. It warns of those that it cannot read.
func readLog(ctx context.Context, boxes []*mailbox.Box, since time.Time) (lines []logLine) {
	everything := mailbox.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Since: since}
	for _, box := range boxes {
		_, err := box.Walk(ctx, everything, func(it *mailbox.Item) bool {
			lines = append(lines, logLine{entry{Box: box, Message: it}, it.Written()})
			return true
		})
		events, logErr := box.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for i := range events {
			e := &events[i]
			l := logLine{entry{Box: box, Event: e}, e.At}
			if i > 0 && e.Seq > events[i-1].Seq+1 {
				l.Gap = &eventlog.Gap{From: events[i-1].Seq + 1, To: e.Seq - 1}
			}
			lines = append(lines, l)
		}
		command.WarnUnreadable(teams.Unreadable(box, cmp.Or(err, logErr)))
	}
	lines = slices.DeleteFunc(lines, func(l logLine) bool { return l.at.Before(since) })
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	return lines
}

func (l logLine) print(c *cli.Context, s *command.Scope) error {
	if l.Err != nil {
		if gone := command.WarnUnreadable(teams.Unreadable(l.Box, l.Err)); gone != nil {
			command.Warn(c, "%v", gone)
		}
		return nil
	}
	if l.Gap != nil && c.Bool("json") {
		if err := command.PrintJSON(map[string]*eventlog.Gap{"gap": l.Gap}); err != nil {
			return err
		}
	}
	if l.Message != nil {
		return command.PrintAs(c, map[string]message{"message": {Item: l.Message}}, l.line(s))
	}
	return command.PrintAs(c, l.Event, l.line(s))
}

func (l logLine) line(s *command.Scope) string {
	r, text, colour := s.Renderer(), "", ""
	if l.Gap != nil {
		text = fmt.Sprintf("(events %d to %d are missing) ", l.Gap.From, l.Gap.To)
	}
	if m := l.Message; m != nil {
		title := letter.Clip(letter.Escape(m.Title()), 100)
		text, colour = command.JoinFilled(": ", "got "+r.Short(m.ID)+" from "+r.Who(m.From), title), "32"
	} else {
		text += describeEvent(l.Event, r)
		colour = map[string]string{"confirm_required": "31", "waiting_for_input": "31", wire.StreamError: "31"}[l.Event.Kind]
	}
	row := []string{letter.Stamp(l.at), r.Who(l.Box.Address()), text}
	if !command.Terminal() {
		return strings.Join(row, " ")
	}
	for _, n := range s.Names() {
		row[1] = fmt.Sprintf("%-*s", len(n), row[1])
	}
	return command.Columns([][]string{row}, "2", "1", colour)[0]
}

// phrases are what people read instead of the name of a kind.
var phrases = map[string]string{
	wire.TurnCompleted: "turn ended:", wire.TurnIdle: "is idle", wire.StreamError: "error:", wire.DroppedCounters: "lost events:",
	"state_change": "is now", "confirm_required": "asks:", "waiting_for_input": "asks:", "draft_ready": "has a draft:",
	"status_update": "says:", "message_delta": "says:", "agent_output": "says:", "agent_message_chunk": "says:",
	"agent_thought_chunk": "thinks:", "tool_call_start": "uses", "tool_call": "uses", "tool_call_end": "used",
	"session_start": "session began:", "session_end": "session ended:", "spawned": "program started", "exited": "program ended:",
	"restarting": "program restarts:", wire.EventAnnounced: "was notified of", wire.EventWithdrawn: "mail withdrawn:",
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
		about = wire.Line(e)
		if e.Text("reason") != "" { // somebody stopped it: the exit code says nothing
			phrase, about = "program stopped", ""
		}
	case "state_change":
		about = command.JoinFilled(", ", strings.ReplaceAll(e.Text("new"), "_", " "), e.Text("detail"))
		if answer := e.Text("answer"); answer != "" {
			about += "; answered: " + command.JoinFilled(" by ", answer, e.Text("by"))
		}
	case "confirm_required":
		input := strings.Join(strings.Fields(e.Text("input", "prompt")), " ")
		about = command.JoinFilled(": ", e.Text("tool"), input)
	case wire.StreamError, "waiting_for_input", "draft_ready", "status_update", "agent_output":
		about = e.Text("error_summary", "prompt", "summary", "message", "content")
	default:
		about = wire.Line(e)
	}
	isQuestion := phrase == "asks:" || e.Kind == "state_change"
	if id := e.MessageID(); wire.IsID(string(id)) && !isQuestion {
		about = command.JoinFilled(": ", r.Short(id), e.Text("reason"))
	}
	if e.Kind == wire.EventStage {
		about += ": " + e.Text("stage") + " at " + r.Called(e.Field("to"))
	}
	return letter.Escape(strings.TrimRight(phrase+" "+letter.Clip(about, 200), ": "))
}
