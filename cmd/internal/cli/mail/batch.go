package mail

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir/once"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

const batchExample = `echo '{"to":"bob","body":"…","requires_ack":true}' | atm send --batch`

type batchResult struct {
	Line int `json:"line"`
	*app.Outcome
	Error *failure.Error `json:"error,omitempty"`
}

// A batchLine is a line of a batch.
type batchLine struct {
	n    int
	text []byte
	err  error // it could not be read
}

// batchSize is how many lines are sent at once, if that many are there, and batchBytes how many bytes of them: more share
// a flush of the disk.
const (
	batchSize  = 64
	batchBytes = 8 << 20
)

func sendBatch(ctx context.Context, s *app.Scope, p *command.Printer, isAlone bool) error {
	if !isAlone || !command.HasText(p.In) {
		return failure.Usage("--batch takes no other flag and no text: it reads messages from a pipe or a file on stdin").WithHint(batchExample)
	}
	if err := p.CheckStdin(); err != nil {
		return err
	}
	b := &batch{ctx: ctx, s: s, p: p, progress: func(int) {}}
	ctx, stop := output.UntilSignal(ctx) // and then it says what was sent, however slow the disk is
	defer stop()
	if !p.IsTerminal() { // where each message gets its line
		b.progress = p.Progress("sent %d messages")
	}
	in := bufio.NewReaderSize(readUntil(ctx, p.In), 64<<10)
	readErr := command.EachLine(in, func(n int, text []byte, err error) error {
		b.add(batchLine{n, text, err})
		next, _ := in.Peek(in.Buffered())
		if len(b.waiting) == batchSize || b.bytes >= batchBytes || !bytes.Contains(next, []byte("\n")) { // the next line may be long in coming
			b.send()
		}
		return ctx.Err()
	})
	b.send()
	if ctx.Err() != nil {
		e := failure.Failed("interrupted: sent %s, of the first %s", letter.Many(b.sent, "message"), letter.Many(b.last, "line")).
			WithHint("to send the rest: tail -n +%d FILE | `atm send --batch`", b.last+1)
		e.Exit = failure.ExitInterrupted
		return e
	}
	if err := cmp.Or(readErr, b.printErr); err != nil {
		return err
	}
	if b.isAnyBad {
		return failure.Exit(failure.ExitFailed)
	}
	return nil
}

// A batch sends lines in their order, and prints a result for each.
type batch struct {
	ctx      context.Context // for a whole portion, also at an interrupt
	s        *app.Scope
	p        *command.Printer
	progress func(sent int)
	waiting  []batchLine      // read, and not sent yet
	messages []*teams.Message // one for each, nil for a bad one
	bytes    int              // of the lines that wait

	last, sent int
	isAnyBad   bool
	printErr   error // the lines that follow are sent all the same
}

// add reads a line. What a message answers or replaces may be in a line before it, which is sent first.
func (b *batch) add(line batchLine) {
	var m *teams.Message
	if line.err == nil {
		m, line.err = batchMessage(b.s, line.text)
	}
	if line.err == nil && (m.Content.InReplyTo != "" || m.Content.Supersedes != "") {
		b.send()
		if line.err = b.resolve(m); line.err != nil {
			m = nil
		}
	}
	b.waiting, b.messages = append(b.waiting, line), append(b.messages, m)
	b.bytes += len(line.text)
}

// resolve finds the messages that m answers and replaces.
func (b *batch) resolve(m *teams.Message) error {
	if m.Content.InReplyTo != "" {
		m.Answers = search.OwnMessage(b.s.Me, m.Content.InReplyTo)
	}
	old := search.OwnMessage(b.s.Me, m.Content.Supersedes)
	if m.Content.Supersedes != "" && (old == nil || old.From != b.s.Me.Address()) {
		return notYours()
	}
	return nil
}

func (b *batch) send() {
	good := slices.DeleteFunc(slices.Clone(b.messages), func(m *teams.Message) bool { return m == nil })
	sent := b.s.SendAll(b.ctx, good)
	for i, line := range b.waiting {
		r := batchResult{Line: line.n, Outcome: b.s.NewOutcome("")}
		err := line.err
		if b.messages[i] != nil {
			if err = sent[0].Err; err == nil {
				r.Outcome = sent[0].Outcome
				warn(b.p, r.Outcome)
			}
			sent = sent[1:]
		}
		if err != nil {
			r.Error = b.s.Given.Explain(err)
		}
		b.last, b.sent = line.n, b.sent+min(len(r.Delivered), 1)
		b.isAnyBad = b.isAnyBad || err != nil || len(r.Failed) > 0
		b.printErr = cmp.Or(b.printErr, command.WriteJSON(b.p.Out, r))
	}
	b.progress(b.sent)
	b.waiting, b.messages, b.bytes = nil, nil, 0
}

func notYours() error {
	return failure.Refused("\"from\", \"supersedes\" or \"meta.atm\" is not yours to set").WithHint("leave it out")
}

// readUntil returns a reader of f that fails as soon as the context has ended, though f may be a pipe that stays open.
func readUntil(ctx context.Context, f io.Reader) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() { // ends with f, or the process
		_, err := io.Copy(w, f)
		w.CloseWithError(err)
	}()
	return r
}

// batchMessage makes a message of a line; resolve completes it.
func batchMessage(s *app.Scope, line []byte) (*teams.Message, error) {
	m, err := wire.DecodeDraft(line, s.Team.Name, "to")
	var to []string
	if err == nil {
		to, err = namesIn(line)
	}
	if err != nil {
		return nil, failure.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(batchExample)
	}
	if len(to) == 0 {
		return nil, failure.Usage("\"to\" is missing").WithHint(batchExample)
	}
	if strings.TrimSpace(m.Body) == "" && m.Payload == nil {
		return nil, failure.Usage("\"body\" is missing or blank").WithHint(batchExample)
	}
	if m.From != (wire.Address{}) && m.From != s.Me.Address() || m.HasOurMeta() {
		return nil, notYours()
	}
	m.SentAt = time.Time{}
	if err := checkType(m); err != nil {
		return nil, err
	}
	extra, _ := wire.ReadObject(m.Extra)
	if extra.Has("at") || extra.Has("in") { // it would go out at once
		return nil, failure.Usage("a line of a batch is sent now: it has no \"at\" or \"in\"").WithHint("later: `atm send NAME \"…\" --in 2h`")
	}
	key := extra.Text("once") // no field of a message
	if extra.Has("once") && (m.ID != "" || once.CheckName(key) != nil) {
		return nil, failure.Usage("\"once\" must be one line of 1 to 200 bytes, without \"id\"").WithHint(batchExample)
	}
	m.Extra = extra.Without("once").Encode()
	return &teams.Message{Content: m, To: to, Once: key}, nil
}

// checkType refuses what other verbs send.
func checkType(m *wire.Message) error {
	switch m.Type {
	case wire.TypeAck:
		return failure.Usage("an ack cannot be sent as a message").WithHint("`atm ack ID --text \"…\"`")
	case wire.TypeNotice, wire.TypePermissionRequest:
		return failure.Usage("a %s cannot be sent as a message", m.Type).WithHint(`leave "type" out`)
	case wire.TypePermissionReply:
		return failure.Usage("an answer to a question cannot be sent as a message").WithHint("`atm pending`; `atm approve NAME`")
	case wire.TypeHumanInput:
		body, _, err := foreign.HumanText(m.Payload)
		m.Body = cmp.Or(m.Body, body)
		if err != nil {
			return failure.Usage("the payload is not human input: %v", err).WithHint("`atm help session`")
		}
	}
	return nil
}

// namesIn returns what a line of a batch has as "to", one name or several: groups too, which are no addresses.
func namesIn(line []byte) (names []string, err error) {
	o, _ := wire.ReadObject(line)
	if raw := o.Get("to"); raw != nil && raw[0] == '"' {
		names = []string{wire.Unquote(raw)}
	} else if raw != nil && wire.Unmarshal(raw, &names) != nil {
		err = wire.Locate(line, &wire.MemberError{Name: "to", Msg: "must be a name or a list of names"})
	}
	return names, err
}
