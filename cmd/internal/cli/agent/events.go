package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/aswire"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var eventCommand = &cli.Command{
	Name: "event", ArgsUsage: "[KIND] [k=v…]", Usage: "add an event to my log",
	UsageText: `atm event turn_started turn_id=7
my-agent --stream | atm event --stdin`,
	Description: `turn_started, turn_idle: turn_id thread_id transport    turn_completed: also status
state_change: new previous detail; new: starting idle thinking responding tool_running
  awaiting_input confirming exited error unknown        confirm_required: tool prompt id options
session_start: source   session_end: reason   spawned: pid started   exited: code signal
restarting: attempt pause_ms   server_request: id tool   dropped_counters: dropped unknown
draft_ready: draft_id summary artifact_count   waiting_for_input: prompt   status_update: message
stream_error: error_summary   agent_output: stream content   message_delta: delta   error: message
tool_call_start: tool tool_call_id   tool_call_end   turn_complete: status   goal_complete: goal_id
Each also takes turn_id session event_id and any other field. Kinds that only atm writes
(message_read, injected, …) are refused; unknown kinds are kept.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "stdin", Usage: "read NDJSON in any known vocabulary; exit 1 if it had to skip bad lines"},
		&cli.BoolFlag{Name: "route", Usage: "with --stdin: add each event to the log of the agent it names"},
		&cli.BoolFlag{Name: "sync", Usage: "sync to disk, to survive a power cut"},
	},
	Action: event,
}

var eventsCommand = &cli.Command{
	Name: "events", ArgsUsage: "[AGENT]", Usage: "print my events or AGENT's, for programs (for people: atm watch)",
	UsageText: `atm events
atm events bob --kind turn_idle --follow
atm events bob --as-wire daemon --since 120`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f", "watch"}, Usage: "keep printing new events until interrupted"},
		cmdline.DurationFlag("timeout", 0, "stop after `D`"),
		&cli.Uint64Flag{Name: "since", Usage: "only events after event `SEQ` (by time: atm watch --since 1h)"},
		cmdline.ListFlag("kind", "only events of kind `K`, repeatable", "type"),
		cmdline.CountFlag("limit", 0, "only the last `N`", "all", "n", "tail"),
		cmdline.NoFlag("agent name", "atm events NAME prints somebody's events"),
		cmdline.ChoiceFlag("as-wire", "in the vocabulary `daemon|session|acp`", "daemon", "session", "acp"),
	},
	Action: events,
}

func event(c *cli.Context) error {
	if c.Bool("stdin") {
		return ingest(c)
	}
	if c.Bool("route") || !c.Args().Present() {
		return failure.Usage("event needs a KIND or --stdin, and --route needs --stdin").
			WithHint("atm event turn_started turn_id=7; for a stream of events: atm event --stdin")
	}
	e, err := compose(c.Args().First(), c.Args().Tail())
	if errors.Is(err, errNotPair) {
		return failure.Usage("%v", err).WithHint("atm event turn_started turn_id=7")
	}
	if err != nil {
		return failure.Usage("%v", err).WithHint("atm help event lists the kinds and their fields")
	}
	s, err := app.OpenMe(command.Given(c))
	if err != nil {
		return err
	}
	e, err = appendEvent(c, s.Me, e)
	text := fmt.Sprintf("event %s, seq %d", e.Kind, e.Seq)
	if e.Seq == 0 {
		text = fmt.Sprintf("event %s, already there", e.Kind)
	}
	return command.PrinterOf(c).PrintUnlessError(err, &e, text)
}

// appendEvent returns the event as it is in the log. Its Seq is 0 if the log had an event of this id already.
func appendEvent(c *cli.Context, box *maildir.Box, e wire.Event) (wire.Event, error) {
	e.Source = "cli"
	events, write := []wire.Event{e}, box.Log().Append
	if c.Bool("sync") {
		write = box.Log().AppendSync
	}
	err := write(c.Context, events...)
	return events[0], err
}

type ingested struct {
	Appended int `json:"appended"`
	Known    int `json:"known"` // in the log already
	Bad      int `json:"bad"`

	Errors []badLine `json:"errors,omitempty"`
}

type badLine struct {
	Line    int    `json:"line"`
	Message string `json:"message"`
}

func (n ingested) String() string {
	return fmt.Sprintf("%d appended, %d already there, %d bad", n.Appended, n.Known, n.Bad)
}

// ingest appends each event of stdin when its line is complete: to my log or, with --route, to that of its agent.
func ingest(c *cli.Context) error {
	if c.Args().Present() || output.IsTerminal(c.App.Reader) {
		return failure.Usage("--stdin reads NDJSON from a pipe or a file").
			WithHint(`echo '{"kind":"turn_idle"}' | atm event --stdin`)
	}
	openScope := app.OpenMe
	if c.Bool("route") {
		openScope = app.OpenMeIfGiven
	}
	s, err := openScope(command.Given(c))
	if err != nil {
		return err
	}
	ctx, stop := app.Interruptible(c.Context)
	defer stop()
	var total ingested
	err = command.EachLine(c.App.Reader, func(n int, line []byte, err error) error {
		var e wire.Event
		var to *maildir.Box
		if err == nil {
			e, to, err = readEvent(s, line, c.Bool("route"))
		}
		isBad := err != nil
		if !isBad {
			e, err = appendEvent(c, to, e)
			isBad = errors.Is(err, eventlog.ErrNoEvent) // any other error is the log's
		}
		switch {
		case isBad:
			message := strings.TrimPrefix(command.Given(c).Explain(err).Message, "line 1, ") // a decoder counts its own lines
			total.Bad, total.Errors = total.Bad+1, append(total.Errors, badLine{n, message})
			failure.PrintLine(c.App.ErrWriter, fmt.Sprintf("atm: line %d: %s", n, message))
		case err != nil: // stop, so that no later event is in the log without this one
			return cmp.Or(ctx.Err(), fmt.Errorf("line %d: %w", n, err))
		case e.Seq == 0:
			total.Known++
		default:
			total.Appended++
		}
		return ctx.Err()
	})
	if err == nil {
		err = command.PrinterOf(c).Print(total)
	}
	if err == nil && total.Bad > 0 {
		return failure.Exit(failure.ExitFailed)
	}
	return err
}

// readEvent decodes a line and finds its mailbox: mine or, with route, its agent's. A count for all agents is mine.
func readEvent(s *app.Scope, line []byte, route bool) (e wire.Event, to *maildir.Box, err error) {
	if e, err = foreign.Adopt(line); err != nil {
		return e, nil, err
	}
	agent := foreign.AgentOf(&e)
	isForAll := e.Kind == wire.DroppedCounters && agent == "proxy:all"
	switch {
	case !route || isForAll && s.Me != nil:
		return e, s.Me, nil
	case isForAll:
		return e, nil, fmt.Errorf("%s means every agent of a stream: put --as NAME for the member that keeps the count", agent)
	case agent == "":
		return e, nil, errors.New("the event names no agent")
	}
	a, err := wire.ParseAddress(agent, s.Team.Name)
	if err == nil {
		to, err = s.Root.Mailbox(a)
	}
	return e, to, err
}

func events(c *cli.Context) error {
	k, err := openAgent(c)
	if err != nil {
		return err
	}
	k.box.Ingest(c.Context)              // dropped files may be events; a read-only disk keeps them for later
	first, err := k.box.Log().FirstSeq() // archived events are not missing
	if err != nil {
		return err
	}
	since, from := c.Uint64("since"), max(first, 1)-1
	if c.IsSet("since") {
		from = min(since, from)
	}
	cursor := k.box.Log().Follow(from)
	defer cursor.Close()
	d, lines := &aswire.Daemon{}, []string{}
	for {
		e, gap, err := cursor.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if e.Seq <= since {
			d.Translate(e)
		} else {
			lines = slices.AppendSeq(lines, strings.Lines(k.eventLines(d, &e, gap)))
		}
	}
	if limit := c.Int("limit"); limit > 0 {
		lines = lines[max(0, len(lines)-limit):]
	}
	if _, err := io.WriteString(c.App.Writer, strings.Join(lines, "")); err != nil || !c.Bool("follow") {
		return err
	}
	o := watcher.Options{Events: true, After: map[wire.Address]uint64{k.box.Address(): cursor.Seq()}}
	return k.s.FollowFor(command.GivenTimeout(k.c), func(ctx context.Context) error {
		return watcher.Until(ctx, []*maildir.Box{k.box}, o, func(e watcher.Entry) (done bool, err error) {
			if e.Event != nil {
				_, err = io.WriteString(c.App.Writer, k.eventLines(d, e.Event, e.Gap))
			} else if e.Box != nil {
				command.PrinterOf(c).Warn("%v", e.Err)
			}
			return false, err
		})
	})
}

// eventLines renders an event and the gap before it: events that were archived, or lost with a damaged file.
func (k *call) eventLines(d *aswire.Daemon, e *wire.Event, gap *eventlog.Gap) (lines string) {
	if gap != nil && k.c.Bool("json") && !k.c.IsSet("as-wire") {
		line, _ := command.JSON(map[string]any{"gap": gap})
		lines = string(line)
	} else if gap != nil {
		command.PrinterOf(k.c).Warn("events %d to %d are not in the log", gap.From, gap.To)
	}
	events, kinds, as := []wire.Event{*e}, cmdline.List(k.c, "kind"), k.c.String("as-wire")
	if as == "daemon" {
		events = d.Translate(*e)
	}
	for _, e := range events {
		isWanted, line := len(kinds) == 0 || slices.Contains(kinds, e.Kind), ""
		switch {
		case as != "":
			theirs, isTheirs := foreign.AsWire(&e, foreign.Vocabulary(as))
			isWanted = isWanted && isTheirs && !foreign.IsHearsay(&e)
			if line = string(theirs); command.PrinterOf(k.c).IsTerminal() {
				line = string(command.EscapeJSON(theirs))
			}
		case k.c.Bool("json"):
			line = string(command.EscapeJSON(e.Append(nil)))
		default:
			line = letter.Clip(app.JoinFilled("  ", letter.Stamp(e.At), letter.Escape(e.Kind), letter.Escape(foreign.Line(&e))), 400)
			line = letter.Wrap(line, command.PrinterOf(k.c).Width())
		}
		if isWanted {
			lines += line + "\n"
		}
	}
	return lines
}
