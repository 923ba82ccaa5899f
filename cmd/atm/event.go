package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var eventVerb = &cmdline.Verb{
	Name: "event", Args: "KIND [k=v…]", Summary: "note an event in my log",
	Examples: []string{"atm event turn_started turn_id=7", "my-agent --stream | atm event --stdin"},
	Notes: []string{
		"turn_started, turn_idle: turn_id thread_id transport    turn_completed: also status",
		"state_change: new previous detail; new: starting idle thinking responding tool_running",
		"  awaiting_input confirming exited error unknown        confirm_required: tool prompt id options",
		"session_start: source   session_end: reason   spawned: pid started   exited: code signal",
		"restarting: attempt pause_ms   stream_error: error_summary   dropped_counters: dropped unknown",
		"agent_output: stream content   draft_ready: draft_id summary artifact_count   goal_complete: goal_id",
		"waiting_for_input: prompt   status_update: message   message_delta: delta   turn_complete: status",
		"tool_call_start: tool tool_call_id   tool_call_end   error: message   server_request: request",
		"Each also turn_id session event_id. Any other kind or field is kept, and changes no state. A",
		"value is text, except where the field is a number, and where it is a JSON object or array.",
		"--stdin: as the daemon stream, a session channel, ACP, Codex's app-server or atm events --json",
		"writes it; bad lines are named, the others go on, exit 1.",
	},
	Flags: []cmdline.Flag{
		{Name: "stdin", Kind: cmdline.Bool, Usage: "events of any known vocabulary, a line each"},
		{Name: "route", Kind: cmdline.Bool, Usage: "with --stdin: to the agent that each names"},
		{Name: "sync", Kind: cmdline.Bool, Usage: "survive a power cut"},
	},
	MaxArgs: -1,
	Run: run(func(ctx context.Context, e *env) error {
		if e.Bool("stdin") {
			return e.interruptible(ctx, e.ingest)
		}
		return e.event(ctx)
	}),
}

// event appends the event of the command line.
func (e *env) event(ctx context.Context) error {
	switch {
	case e.Bool("route"):
		return cmdline.Usage("--route needs --stdin").WithHint("atm event KIND --as NAME notes one for NAME")
	case len(e.Args) == 0:
		return cmdline.Usage("which event?").WithHint("atm event turn_started turn_id=7; a stream of them: atm event --stdin")
	}
	kind := e.Args[0]
	var pairs [][2]string
	for _, word := range e.Args[1:] {
		k, v, ok := strings.Cut(word, "=")
		if !ok {
			return e.noPair(kind, word)
		}
		pairs = append(pairs, [2]string{k, v})
	}
	ev, err := wire.Compose(kind, pairs)
	if err != nil {
		return e.explainEvent(kind, pairs, err)
	}
	if err := e.who(); err != nil {
		return err
	}
	e.warnKind(kind)
	e.warnFields(kind, pairs)
	e.warnOther(&ev)
	ev.Source = "cli"
	events := []wire.Event{ev}
	appendTo := e.me.Log().Append
	if e.Bool("sync") {
		appendTo = e.me.Log().AppendSync
	}
	if err := appendTo(ctx, events...); err != nil {
		return err
	}
	switch {
	case e.JSON():
		return e.PrintJSON(&events[0])
	case events[0].Seq == 0:
		return e.print("event %s, there already", kind)
	}
	return e.print("event %s, seq %d", kind, events[0].Seq)
}

// together bounds how many lines share a lock, and their bytes.
const (
	togetherLines = 1000
	togetherBytes = 1 << 20
)

// ingest appends the events of stdin. What has arrived shares a lock.
func (e *env) ingest(ctx context.Context) error {
	if len(e.Args) > 0 {
		return cmdline.Usage("--stdin takes its events from stdin alone").WithHint("leave out %s", cmdline.Escape(e.Args[0]))
	}
	if e.Stdin == nil || term.IsTerminal(int(e.Stdin.Fd())) {
		return cmdline.Usage("--stdin reads NDJSON from a pipe or a file").WithHint(`echo '{"kind":"turn_idle"}' | atm event --stdin`)
	}
	open := e.who
	if e.Bool("route") {
		open = e.open
	}
	if err := open(); err != nil {
		return err
	}
	in := teams.Ingest{Team: e.team, To: e.me, Route: e.Bool("route"), Source: "cli", Sync: e.Bool("sync")}
	lines := make(chan inputLine, batchSize)
	go readLinesOf(ctx, e.Stdin, lines)
	appended, known, bad := 0, 0, 0
	other := e.Bool("route") // said that an event names another agent
	for {
		group, err := gather(ctx, lines)
		if err != nil {
			return err
		}
		if len(group) == 0 {
			break
		}
		in.Take(ctx, group)
		for i := range group {
			switch l := &group[i]; {
			case l.Err != nil && !e.Bool("route") && unwritable(l.Err):
				return fmt.Errorf("line %d and those after it: %w", l.Number, l.Err)
			case l.Err != nil:
				bad++
				err = e.badLine(l)
			case l.Event.Seq == 0:
				known++
			default:
				appended++
				other = other || e.warnOther(&l.Event)
				if e.JSON() {
					err = e.PrintJSON(&l.Event)
				}
			}
			if err != nil {
				return quietEnd(err)
			}
		}
	}
	if !e.JSON() {
		said := fmt.Sprintf("%d events", appended)
		if appended == 1 {
			said = "1 event"
		}
		if known > 0 {
			said += fmt.Sprintf(", %d there already", known)
		}
		if bad > 0 {
			said += fmt.Sprintf(", %d bad", bad)
		}
		if err := e.print("%s", said); err != nil {
			return quietEnd(err)
		}
	}
	if bad > 0 {
		return &cmdline.Error{Exit: cmdline.ExitFailed, Printed: true}
	}
	return nil
}

// gather waits for a line and takes what is there with it; nothing is the end.
func gather(ctx context.Context, lines <-chan inputLine) (group []teams.Ingested, err error) {
	size := 0
	for len(group) < togetherLines && size < togetherBytes {
		var l inputLine
		ok := false
		if len(group) == 0 {
			select {
			case l, ok = <-lines:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		} else {
			select {
			case l, ok = <-lines:
			default:
			}
		}
		if !ok {
			return group, nil
		}
		size += len(l.text)
		group = append(group, teams.Ingested{Number: l.number, Text: l.text, Err: l.err})
	}
	return group, nil
}

// unwritable reports whether an error is the log's, whatever the line says.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// badLine says what is wrong with a line, also when --quiet.
func (e *env) badLine(l *teams.Ingested) error {
	code, message, hint := e.failure(l.Err)
	var at *wire.DecodeError
	if !errors.As(l.Err, &at) { // that says where it is
		message = fmt.Sprintf("line %d: %s", l.Number, message)
	}
	if at != nil || errors.Is(l.Err, wire.ErrNotEvent) {
		code = "usage"
	}
	if e.JSON() {
		return e.PrintJSON(struct {
			Line  int        `json:"line"`
			Error batchError `json:"error"`
		}{l.Number, batchError{code, message, hint}})
	}
	_, err := fmt.Fprintf(e.Stderr, "atm: %s\n", letter.Escape(message))
	return err
}
