package mail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var watchCommand = &cli.Command{
	Name: "watch", ArgsUsage: "[AGENT…]", Usage: "print messages and events as they happen, one per line",
	UsageText: `atm watch
atm watch bob --since 1h --no-follow`,
	Description: "Marks nothing as read. Runs until interrupted.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "start `D` ago"},
		cmdline.CountFlag("limit", 0, "start with the last `N`", "only new ones", "n", "tail"),
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
		&cli.BoolFlag{Name: "no-follow", Usage: "stop once all is shown"},
		cmdline.NoFlag("follow f all", "leave it out: atm watch follows everybody until interrupted"),
		cmdline.NoFlag("from author by agent", "atm watch NAME; mail from somebody: atm ls --from NAME"),
	},
	Action: command.With(app.OpenMeIfGiven, watch),
}

// A logLine is a message or an event, which watch prints as a line.
type logLine struct {
	watcher.Entry
	at time.Time
}

func watch(c *cli.Context, s *app.Scope, p *command.Printer) error {
	var boxes []*maildir.Box
	words := strings.Join(c.Args().Slice(), ",")
	for word := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == ',' }) {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	since, err := sinceFlag(c)
	o := watcher.Options{Messages: true, Events: true}
	if err == nil && len(boxes) == 0 {
		o.Boxes = s.Team.Boxes // later members too
		boxes, err = s.Team.Boxes()
	}
	if err != nil {
		return err
	}
	isFollowing := !c.Bool("no-follow")
	wantsEarlier := c.IsSet("since") || !isFollowing || c.Int("limit") > 0
	seen := map[string]bool{} // the watcher may bring some of the earlier ones again
	return s.FollowFor(command.GivenTimeout(c), func(ctx context.Context) error {
		return watcher.Until(ctx, boxes, o, func(e watcher.Entry) (done bool, err error) {
			if e == (watcher.Entry{}) {
				if wantsEarlier {
					err = printEarlier(ctx, c, s, boxes, since, seen)
				}
				return !isFollowing, err
			}
			l := logLine{e, time.Now()}
			if e.Box == nil || seen[l.key()] {
				return false, nil
			}
			return false, l.print(c, s)
		})
	})
}

// printEarlier prints the messages and events since a time, in order and at most the last --limit of them. It adds all
// to seen, and warns of those that it cannot read.
func printEarlier(ctx context.Context, c *cli.Context, s *app.Scope, boxes []*maildir.Box, since time.Time, seen map[string]bool) error {
	everything := maildir.Range{Unread: true, Owed: true, Done: true, Archive: true, Withdrawn: true, Since: since}
	var lines []logLine
	for _, box := range boxes {
		_, err := box.Walk(ctx, everything, func(it *maildir.Item) bool {
			lines = append(lines, logLine{watcher.Entry{Box: box, Message: it}, it.Written()})
			return true
		})
		events, logErr := box.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for i := range events {
			l := logLine{watcher.Entry{Box: box, Event: &events[i]}, events[i].At}
			if i > 0 && l.Event.Seq > events[i-1].Seq+1 {
				l.Gap = &eventlog.Gap{From: events[i-1].Seq + 1, To: l.Event.Seq - 1}
			}
			lines = append(lines, l)
		}
		command.PrinterOf(c).WarnUnreadable(teams.Unreadable(box, cmp.Or(err, logErr)))
	}
	lines = slices.DeleteFunc(lines, func(l logLine) bool { return l.at.Before(since) })
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	first := max(0, len(lines)-cmp.Or(c.Int("limit"), len(lines)))
	for i, l := range lines {
		seen[l.key()] = true
		if i < first {
			continue
		}
		if err := l.print(c, s); err != nil {
			return err
		}
	}
	return nil
}

// key identifies a message or an event. It has the event's time: a log that was replaced repeats seqs.
func (l logLine) key() string {
	if l.Message != nil {
		return l.Box.Path() + string(l.Message.ID)
	} else if l.Event != nil {
		return fmt.Sprint(l.Box.Path(), l.Event.Seq, l.Event.At)
	}
	return ""
}

func (l logLine) print(c *cli.Context, s *app.Scope) error {
	if l.Err != nil {
		command.PrinterOf(c).Warn("%v", teams.Unreadable(l.Box, l.Err))
		return nil
	}
	if l.Gap != nil && c.Bool("json") {
		if err := command.WriteJSON(command.PrinterOf(c).Out, map[string]*eventlog.Gap{"gap": l.Gap}); err != nil {
			return err
		}
	}
	if l.Message != nil {
		return command.PrinterOf(c).PrintAs(map[string]message{"message": {Item: l.Message}}, l.line(s, command.PrinterOf(c)))
	}
	return command.PrinterOf(c).PrintAs(l.Event, l.line(s, command.PrinterOf(c)))
}

func (l logLine) line(s *app.Scope, p *command.Printer) string {
	r, text, colour := p.Renderer(s), "", ""
	if l.Gap != nil {
		text = fmt.Sprintf("(events %d to %d are missing) ", l.Gap.From, l.Gap.To)
	}
	if m := l.Message; m != nil {
		title := letter.Clip(letter.Escape(m.Title()), 100)
		text, colour = app.JoinFilled(": ", "got "+r.Short(m.ID)+" from "+r.Who(m.From), title), "32"
	} else {
		phrase, about := describeEvent(l.Event, r)
		text += letter.Escape(strings.TrimRight(phrase+" "+letter.Clip(about, 200), ": "))
		colour = map[string]string{"asks:": "31", "error:": "31"}[phrase]
	}
	row := []string{letter.Stamp(l.at), r.Who(l.Box.Address()), text}
	if !p.IsTerminal() {
		return strings.Join(row, " ")
	}
	widest := 0
	for _, n := range s.Names() {
		widest = max(widest, len(n))
	}
	// One long name must not take all the room: it is longer than the others' column.
	row[1] = fmt.Sprintf("%-*s", min(widest, max(8, p.Width()/5)), row[1])
	return p.Columns([][]string{row}, "2", "1", colour)[0]
}

// phrases are what people read instead of the name of a kind.
var phrases = map[string]string{
	wire.TurnCompleted: "turn ended:", wire.TurnIdle: "is idle", wire.StreamError: "error:", wire.DroppedCounters: "lost events:",
	"state_change": "is now", "confirm_required": "asks:", "waiting_for_input": "asks:", "draft_ready": "has a draft:",
	"status_update": "says:", "message_delta": "says:", "agent_output": "says:",
	"thought_delta": "thinks:", "tool_call_start": "uses", "tool_call_end": "used",
	"session_start": "session began:", "session_end": "session ended:", "spawned": "program started", "exited": "program ended:",
	"restarting": "program restarts:", wire.EventAnnounced: "was notified of", wire.EventWithdrawn: "mail withdrawn:",
	wire.EventInjecting: "is being handed", wire.EventInjected: "was handed", wire.EventInjectionFailed: "could not be handed",
}

func describeEvent(e *wire.Event, r *letter.Renderer) (phrase, about string) {
	phrase = cmp.Or(phrases[e.Kind], strings.ReplaceAll(strings.TrimPrefix(e.Kind, "message_"), "_", " "))
	id := e.MessageID()
	switch {
	case e.Kind == "state_change":
		about = app.JoinFilled(", ", strings.ReplaceAll(e.Text("new"), "_", " "), e.Text("detail"))
		if answer := e.Text("answer"); answer != "" {
			about += "; answered: " + app.JoinFilled(" by ", answer, e.Text("by"))
		}
	case e.Kind == "confirm_required":
		about = app.JoinFilled(": ", e.Text("tool"), strings.Join(strings.Fields(e.Text("input", "prompt")), " "))
	case phrase == "asks:":
		about = e.Text("prompt")
	case wire.IsID(string(id)):
		about = app.JoinFilled(": ", r.Short(id), e.Text("reason", "stage"))
	case e.Kind == wire.TurnStarted || e.Kind == wire.TurnIdle || e.Kind == "spawned":
	case e.Kind == wire.TurnCompleted:
		about = strings.TrimPrefix(e.Text("status"), "completed")
	case e.Kind == wire.DroppedCounters:
		n, _ := e.Uint("dropped")
		about = fmt.Sprint(n)
	case e.Kind == "exited" && e.Text("reason") != "": // somebody stopped it: the exit code says nothing
		phrase = "program stopped"
	default:
		about = cmp.Or(e.Text("error_summary", "prompt", "summary", "message", "content"), foreign.Line(e))
	}
	return phrase, about
}
