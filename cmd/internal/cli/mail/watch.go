package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var watchCommand = &cli.Command{
	Name: "watch", Category: "log logs tail monitor follow stream subscribe timeline feed", ArgsUsage: "[AGENT…]", Usage: "print messages and events as they happen, one per line",
	UsageText: `atm watch
atm watch bob --since 1h --no-follow
atm watch --mail-me 'idle bob, error *'`,
	Description: "Marks nothing as read. Runs until interrupted.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "start `D` ago"},
		cmdline.CountFlag("limit", 0, "start with the last `N`", "only new ones", "n", "tail"),
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
		&cli.BoolFlag{Name: "no-follow", Usage: "stop once all is shown"},
		&cli.BoolFlag{Name: "run", Usage: "run the commands that [[on]] in team.toml has for it"},
		&cli.BoolFlag{Name: "mail-me", Usage: "get mail about these states instead; none: about none; no words: list them"},
	},
	Action: func(c *cli.Context) error {
		if c.Bool("mail-me") {
			return command.With(app.OpenToWrite, mailMe)(c)
		}
		return command.With(app.OpenMeIfGiven, watch)(c)
	},
}

// A logLine is a message or an event, which watch prints as a line.
type logLine struct {
	watcher.Entry
	at time.Time
}

// watchOptions are the flags and words of watch.
type watchOptions struct {
	names       []string
	since       time.Time // zero: ever
	limit       int       // of earlier ones; 0: all
	hasEarlier  bool      // earlier ones are shown
	isFollowing bool
	timeout     time.Duration
	commands    *notices.Commands // nil: it runs none
}

func watch(c *cli.Context, s *app.Scope, p *command.Printer) (err error) {
	w := watchOptions{limit: c.Int("limit"), isFollowing: !c.Bool("no-follow"), timeout: command.GivenTimeout(c)}
	w.hasEarlier = c.IsSet("since") || !w.isFollowing || w.limit > 0
	w.names = strings.FieldsFunc(strings.Join(c.Args().Slice(), ","), func(r rune) bool { return r == ',' })
	var boxes []watcher.Mailbox
	for _, word := range w.names {
		members, err := s.Members(word)
		if err != nil && c.Bool("run") { // watch --run 'make test'
			e := s.Given.Explain(err)
			return e.WithHint("the commands are those of [[on]] in team.toml: `atm watch --run`; %s", e.Hint)
		}
		if err != nil {
			return err
		}
		for _, a := range members {
			box, err := s.Member(a.String())
			if err != nil {
				return err
			}
			boxes = append(boxes, box)
		}
	}
	w.since, err = sinceFlag(c, "since")
	err = cmp.Or(err, cmdline.NotBoth(c, "run no-follow", "timeout no-follow"))
	if err == nil && c.Bool("run") {
		w.commands, err = startCommands(s)
	}
	o := watcher.Options{Messages: true, Events: true}
	if w.commands != nil {
		defer w.commands.Close()
		o.After = w.commands.After()
	}
	if err == nil && len(boxes) == 0 {
		o.Mailboxes = s.Team.Mailboxes // later members too
		boxes, err = s.Team.Mailboxes()
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{} // the watcher may bring some of the earlier ones again
	return s.FollowFor(w.timeout, func(ctx context.Context) error {
		return watcher.Until(ctx, boxes, o, func(e watcher.Entry) (done bool, err error) {
			if e == (watcher.Entry{}) {
				if w.hasEarlier {
					err = printEarlier(ctx, s, p, boxes, w, seen)
				}
				return !w.isFollowing, err
			}
			if w.commands != nil {
				w.commands.Handle(ctx, e)
			}
			l := logLine{e, time.Now()}
			if e.Address.Agent == "" || seen[l.key()] {
				return false, nil
			}
			return false, l.print(s, p)
		})
	})
}

// startCommands begins to run the owner's commands for what happens.
func startCommands(s *app.Scope) (*notices.Commands, error) {
	c, err := s.Team.Config()
	if err = cmp.Or(err, s.CheckAccepted()); err != nil {
		return nil, err
	}
	if s.IsInAgent() {
		return nil, failure.Refused("an agent may not run the commands of [[on]]").WithHint("ask a person: `atm watch --run`")
	}
	if len(c.On) == 0 {
		return nil, failure.NotFound("there is no [[on]] in %s", s.Team.Dir().Join(config.File)).
			WithHint("`atm init --toml` writes a team.toml with an example")
	}
	return notices.StartCommands(s.Team, c.OnFor, app.OwnEnvironment())
}

// printEarlier prints the messages and events since a time, in order and at most the last ones up to the limit. What is
// shown goes into seen where later ones follow. It warns of those that it cannot read.
func printEarlier(ctx context.Context, s *app.Scope, p *command.Printer, boxes []watcher.Mailbox, w watchOptions, seen map[string]bool) error {
	var mail []logLine
	var sources []iter.Seq[logLine]
	total := 0
	for _, watched := range boxes {
		team, err := s.Root.Team(watched.Address().Team)
		if err != nil {
			return err
		}
		box := team.Box(watched.Address().Agent)
		received, mailErr := w.mailOf(ctx, box)
		mail = append(mail, received...)
		from, to, n, logErr := w.eventsOf(box.Log())
		total += n
		sources = append(sources, func(yield func(logLine) bool) {
			cursor := box.Log().Follow(from)
			defer cursor.Close()
			for cursor.Seq() < to {
				e, err := cursor.Next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						p.WarnUnreadable(teamdir.Unreadable(box, err))
					}
					return
				}
				if l := (logLine{watcher.Entry{Address: box.Address(), Event: &e}, e.At}); !l.at.Before(w.since) && !yield(l) {
					return
				}
			}
		})
		p.WarnUnreadable(teamdir.Unreadable(box, cmp.Or(mailErr, logErr)))
	}
	mail = w.last(mail)
	skip := max(0, total+len(mail)-cmp.Or(w.limit, total+len(mail)))
	for l := range inOrder(append([]iter.Seq[logLine]{slices.Values(mail)}, sources...)) {
		if w.isFollowing {
			seen[l.key()] = true
		}
		if skip--; skip >= 0 {
			continue
		}
		if err := l.print(s, p); err != nil {
			return err
		}
	}
	return nil
}

// mailOf returns the messages of a mailbox that may be shown: of each folder the last ones up to the limit.
func (w watchOptions) mailOf(ctx context.Context, box *maildir.Box) (lines []logLine, errs error) {
	has := map[wire.ID]bool{} // one that is read meanwhile is in two folders
	for _, rg := range []maildir.Range{{Unread: true}, {Owed: true}, {Done: true, Archive: true}, {Withdrawn: true}} {
		rg.Since, rg.Limit, rg.Newest = w.since, w.limit, w.limit > 0
		_, err := inbox.Walk(ctx, box, rg, func(it *wire.Item) bool {
			if at := search.Written(it); !has[it.ID] && !at.Before(w.since) {
				has[it.ID] = true
				lines = append(lines, logLine{watcher.Entry{Address: box.Address(), Message: it.Message}, at})
			}
			return true
		})
		errs = errors.Join(errs, err)
	}
	return lines, errs
}

// last puts lines in order, and returns the last ones up to the limit.
func (w watchOptions) last(lines []logLine) []logLine {
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	if w.limit == 0 {
		return lines
	}
	return slices.Clone(lines[max(0, len(lines)-w.limit):])
}

// eventsOf returns which events of a log are shown: those after one up to another, and how many they are; 0 for all, which
// are not counted.
func (w watchOptions) eventsOf(log *eventlog.Log) (from, to uint64, n int, err error) {
	if w.limit == 0 && w.since.IsZero() {
		first, err := log.FirstSeq()
		return max(first, 1) - 1, math.MaxUint64, 0, err
	}
	err = log.Backward(func(e *wire.Event) (enough bool) {
		if e.At.Before(w.since) {
			return true
		}
		if n++; n == 1 {
			to = e.Seq
		}
		from = e.Seq - 1
		return n == w.limit
	})
	return from, to, n, err
}

// inOrder yields lines by their time, from sources that have each theirs in order.
func inOrder(sources []iter.Seq[logLine]) iter.Seq[logLine] {
	type head struct {
		logLine
		next func() (logLine, bool)
	}
	return func(yield func(logLine) bool) {
		var heads []*head
		for _, lines := range sources {
			next, stop := iter.Pull(lines)
			defer stop()
			if l, ok := next(); ok {
				heads = append(heads, &head{l, next})
			}
		}
		for len(heads) > 0 {
			h := slices.MinFunc(heads, func(a, b *head) int { return a.at.Compare(b.at) })
			if !yield(h.logLine) {
				return
			}
			var ok bool
			if h.logLine, ok = h.next(); !ok {
				heads = slices.DeleteFunc(heads, func(other *head) bool { return other == h })
			}
		}
	}
}

// key identifies a message or an event. It has the event's time: a log that was replaced repeats seqs.
func (l logLine) key() string {
	if l.Message != nil {
		return l.Address.String() + string(l.Message.ID)
	} else if l.Event != nil {
		return fmt.Sprint(l.Address, l.Event.Seq, l.Event.At)
	}
	return ""
}

func (l logLine) print(s *app.Scope, p *command.Printer) error {
	team, err := s.Root.Team(l.Address.Team)
	if err != nil {
		return err
	}
	box := team.Box(l.Address.Agent)
	if l.Err != nil {
		p.Warn("%v", teamdir.Unreadable(box, l.Err))
		return nil
	}
	if l.Message != nil {
		it, err := box.Get(l.Message.ID)
		if err != nil { // it has moved on just now
			it = &wire.Item{Message: l.Message}
		}
		return p.PrintAs(map[string]message{"message": {Item: it}}, l.line(s, p))
	}
	return p.PrintAs(l.Event, l.line(s, p))
}

func (l logLine) line(s *app.Scope, p *command.Printer) string {
	r, text, colour := p.Renderer(s), "", ""
	if m := l.Message; m != nil {
		title := letter.Clip(letter.Escape(m.Title()), 100)
		text, colour = app.JoinFilled(": ", "got "+r.Short(m.ID)+" from "+r.Who(m.From), title), "32"
	} else {
		phrase, about := describeEvent(l.Event, r)
		text += letter.Escape(strings.TrimRight(phrase+" "+letter.Clip(about, 200), ": "))
		colour = map[string]string{"asks:": "31", "error:": "31", "command failed:": "31"}[phrase]
	}
	row := []string{letter.Stamp(l.at), r.Who(l.Address), text}
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
	wire.StateChange: "is now", wire.ConfirmRequired: "asks:", wire.WaitingForInput: "asks:", wire.DraftReady: "has a draft:",
	wire.StatusUpdate: "says:", wire.MessageDelta: "says:", wire.AgentOutput: "says:",
	wire.ThoughtDelta: "thinks:", wire.ToolCallStart: "uses", wire.ToolCallEnd: "used",
	wire.SessionStart: "session began:", wire.SessionEnd: "session ended:", wire.Spawned: "program started", wire.Exited: "program ended:",
	wire.Restarting: "program restarts:", wire.EventAnnounced: "was notified of", wire.EventWithdrawn: "mail withdrawn:",
	wire.CommandFailed:  "command failed:",
	wire.EventInjecting: "is being handed", wire.EventInjected: "was handed", wire.EventInjectionFailed: "could not be handed",
}

func describeEvent(e *wire.Event, r *letter.Renderer) (phrase, about string) {
	phrase = cmp.Or(phrases[e.Kind], strings.ReplaceAll(strings.TrimPrefix(e.Kind, "message_"), "_", " "))
	id := e.MessageID()
	switch {
	case e.Kind == wire.StateChange:
		about = app.JoinFilled(", ", strings.ReplaceAll(e.Text("new"), "_", " "), e.Text("detail"))
		if answer := e.Text("answer"); answer != "" {
			about += "; answered: " + app.JoinFilled(" by ", answer, e.Text("by"))
		}
	case phrase == "asks:":
		about = (&ask.Question{Tool: e.Text("tool"), Input: e.Text("input"), Prompt: e.Text("prompt")}).Line()
	case e.Kind == wire.CommandFailed:
		about = app.JoinFilled(": ", e.Text("event"), e.Text("command"), e.Text("reason"))
	case wire.IsID(string(id)):
		about = app.JoinFilled(": ", r.Short(id), e.Text("reason", "stage"))
	case e.Kind == wire.TurnStarted || e.Kind == wire.TurnIdle || e.Kind == wire.Spawned:
	case e.Kind == wire.TurnCompleted:
		about = strings.TrimPrefix(e.Text("status"), "completed")
	case e.Kind == wire.DroppedCounters:
		n, _ := e.Uint("dropped")
		about = fmt.Sprint(n)
	case e.Kind == wire.Exited && e.Text("reason") != "": // somebody stopped it: the exit code says nothing
		phrase = "program stopped"
	default:
		about = cmp.Or(e.Text("error_summary", "prompt", "summary", "message", "content"), foreign.Line(e))
	}
	return phrase, about
}
