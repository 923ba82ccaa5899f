package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

var eventCommand = &cli.Command{
	Name: "event", ArgsUsage: "[KIND] [k=v…]", Usage: "add an event to my log",
	UsageText: `atm event turn_started turn_id=7
my-agent --stream | atm event --stdin`,
	Description: `turn_started, turn_idle: turn_id thread_id transport  turn_completed: + status
state_change: new previous detail   new: starting idle thinking responding
  tool_running awaiting_input confirming exited error unknown
confirm_required: tool prompt id options   server_request: id tool
session_start: source   session_end: reason   spawned: pid started
exited: code signal   restarting: attempt pause_ms   error: message
draft_ready: draft_id summary artifact_count   waiting_for_input: prompt
status_update: message   agent_output: stream content   message_delta: delta
stream_error: error_summary   dropped_counters: dropped unknown
tool_call_start: tool tool_call_id   tool_call_end   turn_complete: status
usage: the session's totals: input_tokens output_tokens cached_tokens
  total_tokens cost currency, and context_used context_size
goal_complete: goal_id
Each also takes turn_id session event_id and any other field. Kinds that only
atm writes (message_read, injected, …) are refused; unknown ones are kept.`,
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "stdin", Usage: "read NDJSON in any known vocabulary; exit 1 if a line was bad"},
		&cli.BoolFlag{Name: "route", Usage: "with --stdin: add each event to the log of the agent it names"},
		&cli.BoolFlag{Name: "sync", Usage: "sync to disk, to survive a power cut"},
	},
	Action: event,
}

// eventOptions are the flags of event.
type eventOptions struct {
	isRouted bool // each event goes to the log of the agent that it names
	syncs    bool
}

func event(c *cli.Context) error {
	p, o := command.PrinterOf(c), eventOptions{isRouted: c.Bool("route"), syncs: c.Bool("sync")}
	if c.Bool("stdin") {
		if c.Args().Present() || output.IsTerminal(p.In) {
			return failure.Usage("--stdin reads NDJSON from a pipe or a file").
				WithHint("echo '{\"kind\":\"turn_idle\"}' | `atm event --stdin`")
		}
		return ingest(c.Context, p, o)
	}
	line := cmdline.LineOf(c)
	if o.isRouted {
		stream := *line
		stream.Words = nil
		return failure.Usage("--route needs --stdin").WithHint("%s", stream.Completed("--stdin"))
	}
	if !c.Args().Present() {
		return failure.Usage("event needs a KIND or --stdin").
			WithHint("%s; for a stream of events: %s", line.Completed("turn_started", "turn_id=7"), line.Completed("--stdin"))
	}
	e, err := compose(c.Args().First(), c.Args().Tail())
	if errors.Is(err, errNotPair) {
		return failure.Usage("%v", err).WithHint("`atm event turn_started turn_id=7`")
	}
	if err != nil {
		return failure.Usage("%v", err).WithHint("`atm help event` lists the kinds and their fields")
	}
	s, err := app.OpenMe(p.Given)
	if err != nil {
		return err
	}
	warnOfSlip(p, e.Kind)
	e, err = appendEvent(c.Context, s.Me, e, o.syncs)
	text := fmt.Sprintf("event %s, seq %d", e.Kind, e.Seq)
	if e.Seq == 0 {
		text = fmt.Sprintf("event %s, already there", e.Kind)
	}
	return p.Confirming().PrintUnlessError(err, &e, text)
}

// warnOfSlip says where an unknown kind, which is kept, may be a known one mistyped.
func warnOfSlip(p *command.Printer, kind string) {
	if known := foreign.Slip(kind, failure.IsSlip); known != "" {
		p.Warn("%s is no kind that atm knows, and counts for nothing; did you mean %s?", kind, known)
	}
}

// appendEvent returns the event as it is in the log. Its Seq is 0 if the log had an event of this id already.
func appendEvent(ctx context.Context, box *maildir.Box, e wire.Event, syncs bool) (wire.Event, error) {
	e.Source = wire.SourceCLI
	events, write := []wire.Event{e}, box.Log().Append
	if syncs {
		write = box.Log().AppendSync
	}
	err := write(ctx, events...)
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

// ingest appends each event of stdin when its line is complete: to my log or, if it isRouted, to that of its agent.
func ingest(ctx context.Context, p *command.Printer, o eventOptions) error {
	openScope := app.OpenMe
	if o.isRouted {
		openScope = app.OpenMeIfGiven
	}
	s, err := openScope(p.Given)
	if err != nil {
		return err
	}
	whole := ctx // also at an interrupt
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	var total ingested
	err = command.EachLine(p.In, func(n int, line []byte, err error) error {
		var e wire.Event
		var to *maildir.Box
		if err == nil {
			e, to, err = readEvent(s, line, o.isRouted)
		}
		isBad := err != nil
		if !isBad {
			warnOfSlip(p, e.Kind)
			e, err = appendEvent(whole, to, e, o.syncs)
			isBad = errors.Is(err, eventlog.ErrNoEvent) // any other error is the log's
		}
		switch {
		case isBad:
			message := strings.TrimPrefix(p.Explain(err).Message, "line 1, ") // a decoder counts its own lines
			total.Bad, total.Errors = total.Bad+1, append(total.Errors, badLine{n, message})
			failure.PrintLine(p.Err, fmt.Sprintf("atm: line %d: %s", n, message))
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
		err = p.Confirming().Print(total)
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
