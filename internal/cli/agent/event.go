package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

var eventCommand = &cli.Command{
	Name: "event", ArgsUsage: "[KIND] [k=v…]", Usage: "note an event in my log",
	UsageText: "atm event turn_started turn_id=7\nmy-agent --stream | atm event --stdin",
	Description: "turn_started, turn_idle: turn_id thread_id transport    turn_completed: also status\n" +
		"state_change: new previous detail; new: starting idle thinking responding tool_running\n" +
		"  awaiting_input confirming exited error unknown        confirm_required: tool prompt id options\n" +
		"session_start: source   session_end: reason   spawned: pid started   exited: code signal\n" +
		"stream_error: error_summary   agent_output: stream content   draft_ready: draft_id summary\n" +
		"waiting_for_input: prompt   status_update: message   message_delta: delta   turn_complete: status\n" +
		"tool_call_start: tool tool_call_id   tool_call_end   error: message   goal_complete: goal_id\n" +
		"Each also turn_id session event_id. Any other kind or field is kept, and changes no state.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "stdin", Usage: "lines of any known vocabulary; bad ones are named, the others go on, exit 1"},
		&cli.BoolFlag{Name: "route", Usage: "with --stdin: to the agent that each names"},
		&cli.BoolFlag{Name: "sync", Usage: "survive a power cut"},
	},
	Action: event,
}

// event appends the event of the command line.
func event(c *cli.Context) error {
	if c.Bool("stdin") {
		return ingest(c)
	}
	if c.Bool("route") || !c.Args().Present() {
		return command.Usage("which event? --route needs --stdin").WithHint("atm event turn_started turn_id=7; a stream of them: atm event --stdin")
	}
	var pairs [][2]string
	for _, word := range c.Args().Tail() {
		k, v, found := strings.Cut(word, "=")
		if !found {
			return command.Usage("%q is not k=v", word).WithHint("atm event turn_started turn_id=7")
		}
		pairs = append(pairs, [2]string{k, v})
	}
	e, err := wire.Compose(c.Args().First(), pairs)
	if err != nil {
		return command.Usage("%v", err).WithHint("atm help event lists the kinds and their fields")
	}
	s, err := command.OpenMe(c)
	if err != nil {
		return err
	}
	e.Source = "cli"
	events := []wire.Event{e}
	appendTo := s.Me.Log().Append
	if c.Bool("sync") {
		appendTo = s.Me.Log().AppendSync
	}
	if err := appendTo(c.Context, events...); err != nil {
		return err
	}
	noted := &events[0]
	if c.Bool("json") {
		return command.PrintJSON(noted)
	}
	if noted.Seq == 0 {
		return command.Print(c, command.Text(fmt.Sprintf("event %s, there already", noted.Kind)))
	}
	return command.Print(c, command.Text(fmt.Sprintf("event %s, seq %d", noted.Kind, noted.Seq)))
}

// ingest appends the events of stdin, each when its line is complete.
func ingest(c *cli.Context) error {
	if c.Args().Present() || term.IsTerminal(int(os.Stdin.Fd())) {
		return command.Usage("--stdin reads NDJSON from a pipe or a file").WithHint(`echo '{"kind":"turn_idle"}' | atm event --stdin`)
	}
	open := command.OpenMe
	if c.Bool("route") {
		open = command.OpenTeam
	}
	s, err := open(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	to := s.Me
	if c.Bool("route") {
		to = nil
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, wire.MaxFile)
	result := ingested{}
	for n := 1; ctx.Err() == nil && lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		e, err := s.Team.Ingest(ctx, lines.Bytes(), to, "cli", c.Bool("sync"))
		if at, ok := errors.AsType[*wire.DecodeError](err); ok {
			at.Line = n
		}
		if err != nil {
			result.Bad++
			fmt.Fprintf(os.Stderr, "atm: line %d: %s\n", n, letter.Escape(command.Explain(c, err).Message))
		} else if e.Seq == 0 {
			result.Known++
		} else {
			result.Appended++
		}
	}
	if err := cmp.Or(ctx.Err(), lines.Err()); err != nil {
		return fmt.Errorf("read stdin, after %s: %w", result, err)
	}
	if err := command.Print(c, result); err != nil {
		return err
	}
	if result.Bad > 0 {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// ingested says what became of lines; it is what event --stdin prints.
type ingested struct {
	Appended int `json:"appended"`
	Known    int `json:"known"` // there already
	Bad      int `json:"bad"`
}

func (n ingested) String() string {
	return fmt.Sprintf("%d appended, %d there already, %d bad", n.Appended, n.Known, n.Bad)
}
