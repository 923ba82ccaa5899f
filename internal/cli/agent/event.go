package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
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
		"Each also turn_id session event_id. Any other kind or field is kept, and changes no state.\n" +
		"--stdin: lines as the daemon stream, a session channel, ACP, Codex's app-server or\n" +
		"atm events --json writes them; bad lines are named, the others go on, exit 1.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "stdin", Usage: "events of any known vocabulary, a line each"},
		&cli.BoolFlag{Name: "route", Usage: "with --stdin: to the agent that each names"},
		&cli.BoolFlag{Name: "sync", Usage: "survive a power cut"},
	},
	Action: func(c *cli.Context) error {
		if c.Bool("stdin") {
			return ingest(c)
		}
		return event(c)
	},
}

// event appends the event of the command line.
func event(c *cli.Context) error {
	if c.Bool("route") {
		return command.Usage("--route needs --stdin").WithHint("atm event KIND --as NAME notes one for NAME")
	}
	if c.Args().Len() == 0 {
		return command.Usage("which event?").WithHint("atm event turn_started turn_id=7; a stream of them: atm event --stdin")
	}
	kind := c.Args().First()
	var pairs [][2]string
	for _, word := range c.Args().Tail() {
		k, v, found := strings.Cut(word, "=")
		if !found {
			return notAPair(kind, word)
		}
		pairs = append(pairs, [2]string{k, v})
	}
	e, err := wire.Compose(kind, pairs)
	if err != nil {
		return explainEvent(kind, pairs, err)
	}
	s, err := command.OpenMe(c)
	if err != nil {
		return err
	}
	warnKind(c, kind)
	warnFields(c, kind, pairs)
	warnOther(c, s, &e)
	e.Source = "cli"
	events := []wire.Event{e}
	appendTo := s.Me.Log().Append
	if c.Bool("sync") {
		appendTo = s.Me.Log().AppendSync
	}
	if err := appendTo(c.Context, events...); err != nil {
		return err
	}
	return command.Print(c, notedEvent{&events[0]})
}

// notedEvent is what event prints.
type notedEvent struct{ *wire.Event }

func (e notedEvent) String() string {
	if e.Seq == 0 {
		return fmt.Sprintf("event %s, there already", e.Kind)
	}
	return fmt.Sprintf("event %s, seq %d", e.Kind, e.Seq)
}

// Lines that have arrived share a lock, up to these.
const (
	batchLines = 1000
	batchBytes = 1 << 20
)

// ingest appends the events of stdin.
func ingest(c *cli.Context) error {
	if c.Args().Len() > 0 {
		return command.Usage("--stdin takes its events from stdin alone").WithHint("leave out %s", c.Args().First())
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
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
	in := teams.Ingest{Team: s.Team, To: s.Me, Route: c.Bool("route"), Source: "cli", Sync: c.Bool("sync")}
	lines := make(chan teams.Ingested, batchLines)
	go readLines(ctx, os.Stdin, lines)
	counts := ingested{}
	for {
		batch, err := nextBatch(ctx, lines)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			break
		}
		in.Take(ctx, batch)
		for i := range batch {
			if err := counts.add(c, s, &batch[i]); err != nil {
				return err
			}
		}
	}
	if !c.Bool("json") {
		if err := command.Print(c, counts); err != nil {
			return err
		}
	}
	if counts.bad > 0 {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// ingested counts what became of lines.
type ingested struct {
	appended, known, bad int
	saidOther            bool
}

func (n ingested) String() string {
	said := fmt.Sprintf("%d events", n.appended)
	if n.appended == 1 {
		said = "1 event"
	}
	if n.known > 0 {
		said += fmt.Sprintf(", %d there already", n.known)
	}
	if n.bad > 0 {
		said += fmt.Sprintf(", %d bad", n.bad)
	}
	return said
}

func (n *ingested) add(c *cli.Context, s *command.Scope, l *teams.Ingested) error {
	if l.Err != nil && !c.Bool("route") && isUnwritable(l.Err) {
		return fmt.Errorf("line %d and those after it: %w", l.Number, l.Err)
	}
	if l.Err != nil {
		n.bad++
		return sayBadLine(c, l)
	}
	if l.Event.Seq == 0 {
		n.known++
		return nil
	}
	n.appended++
	if !c.Bool("route") && !n.saidOther {
		n.saidOther = warnOther(c, s, &l.Event)
	}
	if c.Bool("json") {
		return command.PrintJSON(&l.Event)
	}
	return nil
}

// isUnwritable reports whether an error is the log's, whatever the line says.
func isUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// sayBadLine says what is wrong with a line, also with --quiet.
func sayBadLine(c *cli.Context, l *teams.Ingested) error {
	e := command.Explain(c, l.Err)
	var at *wire.DecodeError
	if !errors.As(l.Err, &at) { // that says where it is
		e.Message = fmt.Sprintf("line %d: %s", l.Number, e.Message)
	}
	if at != nil || errors.Is(l.Err, wire.ErrNotEvent) {
		e.Code = "usage"
	}
	if !c.Bool("json") {
		_, err := fmt.Fprintf(os.Stderr, "atm: %s\n", letter.Escape(e.Message))
		return err
	}
	type lineError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
	return command.PrintJSON(struct {
		Line  int       `json:"line"`
		Error lineError `json:"error"`
	}{l.Number, lineError{e.Code, e.Message, e.Hint}})
}

// readLines sends the lines of a stream that say something.
func readLines(ctx context.Context, from io.Reader, to chan<- teams.Ingested) {
	defer close(to)
	in := bufio.NewReaderSize(from, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(in)
		l := teams.Ingested{Number: n, Text: text}
		if len(text) > wire.MaxFile {
			l.Text, l.Err = nil, fmt.Errorf("the line has over %d bytes", wire.MaxFile)
		} else if err != nil && err != io.EOF {
			l.Err = fmt.Errorf("read stdin: %w", err)
		}
		if l.Err != nil || len(bytes.TrimSpace(text)) > 0 {
			select {
			case to <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line; of one that is too long a little more than allowed.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line) <= wire.MaxFile {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// nextBatch waits for a line and takes those with it that are there; none is the
// end.
func nextBatch(ctx context.Context, lines <-chan teams.Ingested) (batch []teams.Ingested, err error) {
	select {
	case l, ok := <-lines:
		if !ok {
			return nil, nil
		}
		batch = append(batch, l)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for size := len(batch[0].Text); len(batch) < batchLines && size < batchBytes; {
		select {
		case l, ok := <-lines:
			if !ok {
				return batch, nil
			}
			size += len(l.Text)
			batch = append(batch, l)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// notAPair explains a word behind the kind that is not k=v: often a name stands
// before the kind.
func notAPair(kind, word string) error {
	e := command.Usage("%q is not k=v", word)
	meant := eventFor(word)
	if slices.Contains(wire.Kinds(), word) {
		meant = word
	}
	if meant != "" && slices.Contains(wire.Kinds(), kind) {
		return e.WithHint("atm event %s", meant)
	}
	if meant != "" {
		return e.WithHint("atm event %s --as %s", meant, kind)
	}
	fields := wire.FieldsOf(kind)
	if near, ok := command.Nearest(word, fields); ok {
		return e.WithHint("atm event %s %s=VALUE", kind, near)
	}
	if len(fields) > 0 {
		return e.WithHint("atm event %s %s=%s", kind, fields[0], word)
	}
	return e.WithHint("atm event %s %s=VALUE", kind, word)
}

// explainEvent names the way out where an event cannot be made.
func explainEvent(kind string, pairs [][2]string, err error) error {
	e := command.Usage("%v", err)
	if strings.Contains(kind, "=") {
		return e.WithHint("the kind comes first: atm event turn_started turn_id=7")
	}
	if near, ok := command.Nearest(strings.ReplaceAll(kind, "-", "_"), wire.Kinds()); ok && kind != near {
		return e.WithHint("atm event %s", near).WithCandidates(near)
	}
	for _, p := range pairs {
		if meant := eventFor(p[1]); kind == "state_change" && p[0] == "new" && meant != "" {
			return e.WithHint("atm event %s", meant)
		}
	}
	return e.WithHint("atm help event")
}

// warnKind says that a kind is a state, or looks misspelt.
func warnKind(c *cli.Context, kind string) {
	known := wire.Kinds()
	if slices.Contains(known, kind) {
		return
	}
	if meant, _, _ := strings.Cut(eventFor(kind), " "); meant != "" {
		command.Warn(c, "%q is a state and no kind of event; did you mean %s? atm help event lists them", kind, meant)
	} else if near, ok := command.Nearest(kind, known); ok {
		command.Warn(c, "%q means nothing to atm; did you mean %s?", kind, near)
	}
}

// meantFields are fields that are written for others.
var meantFields = map[string]string{
	"id": "turn_id", "turnid": "turn_id", "state": "new", "to": "new", "from": "previous",
}

// warnFields names the fields from which nothing is made.
func warnFields(c *cli.Context, kind string, pairs [][2]string) {
	fields := wire.FieldsOf(kind)
	for _, p := range pairs {
		if wire.Means(kind, p[0]) {
			continue
		}
		meant, ok := meantFields[p[0]]
		if !ok || !wire.Means(kind, meant) {
			meant, ok = command.Nearest(p[0], fields)
		}
		if ok {
			command.Warn(c, "%s of %s is kept and means nothing to atm; did you mean %s?", p[0], kind, meant)
		} else {
			command.Warn(c, "%s of %s is kept and means nothing to atm; its fields: %s", p[0], kind, strings.Join(fields, ", "))
		}
	}
}

// warnOther says that an event names another agent than the log's, where it stays;
// it reports whether it did.
func warnOther(c *cli.Context, s *command.Scope, e *wire.Event) bool {
	name := e.Names()
	a, err := wire.ParseAddress(name, s.Team.Name)
	if err != nil || a == s.Me.Address() {
		return false
	}
	command.Warn(c, "an event names %s, and goes into the log of %s: --as %s, or --stdin --route, writes into theirs", name, s.Me.Agent(), name)
	return true
}

// eventFor is the event, as it is typed, that puts an agent into a state which was
// named instead of a kind; "" for no state.
func eventFor(word string) string {
	switch word {
	case "busy", "running", "working", "active", "started", "start":
		return "turn_started turn_id=7"
	case "idle", "ready":
		return "turn_idle"
	case "done", "completed", "complete", "finished", "terminal", "stopped":
		return "turn_completed status=completed"
	case "failed", "interrupted":
		return "turn_completed status=" + word
	case "blocked", "permission":
		return "confirm_required tool=Bash"
	case "question", "waiting":
		return "waiting_for_input prompt=Which?"
	case "online":
		return "session_start source=startup"
	case "off", "offline":
		return "session_end reason=done"
	case "unknown", "starting", "thinking", "responding", "tool_running", "awaiting_input", "confirming":
		return "state_change new=" + word
	}
	return ""
}
