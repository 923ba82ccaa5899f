package mail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// batchSize is how many messages share their syncs.
const batchSize = 100

const batchExample = `echo '{"to":"bob","body":"…"}' | atm send --batch`

// batchResult is one line of what send --batch prints.
type batchResult struct {
	Line int `json:"line"`
	sent
	Error *batchError `json:"error,omitempty"`
}

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

type batchLine struct {
	number int
	text   []byte
	err    error
	out    *teams.Outgoing
}

// sendBatch sends NDJSON messages of stdin. What has arrived is sent together, up
// to a hundred, and each result is printed once its message is durable.
func sendBatch(c *cli.Context, s *command.Scope) error {
	if c.Args().Present() || c.IsSet("to") {
		return command.Usage("--batch takes its messages from stdin alone").WithHint(batchExample)
	}
	for _, f := range messageFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return command.Usage("--batch takes no --%s: what it would say is in each line", name).
				WithHint(`echo '{"to":"bob","body":"…","subject":"…","requires_ack":true}' | atm send --batch`)
		}
	}
	if command.StdinTerminal() {
		return command.Usage("--batch reads NDJSON from a pipe or a file").WithHint(batchExample)
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	lines := make(chan batchLine, batchSize)
	go readBatch(ctx, os.Stdin, lines)
	bad := 0
	for {
		group, more := nextGroup(ctx, lines)
		n, err := sendGroup(ctx, c, s, group)
		bad += n
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !more && bad > 0 {
			return command.Exit(command.ExitFailed)
		}
		if !more {
			return nil
		}
	}
}

// nextGroup waits for a line, and takes what has arrived with it.
func nextGroup(ctx context.Context, lines <-chan batchLine) (group []batchLine, more bool) {
	select {
	case l, ok := <-lines:
		if !ok {
			return nil, false
		}
		group = append(group, l)
	case <-ctx.Done():
		return nil, true
	}
	for len(group) < batchSize {
		select {
		case l, ok := <-lines:
			if !ok {
				return group, false
			}
			group = append(group, l)
		default:
			return group, true
		}
	}
	return group, true
}

func readBatch(ctx context.Context, from io.Reader, out chan<- batchLine) {
	defer close(out)
	in := bufio.NewReaderSize(from, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(in, wire.MaxFile)
		l := batchLine{number: n, text: text}
		if err != nil && err != io.EOF {
			l.err = err
		}
		if len(bytes.TrimSpace(text)) > 0 || l.err != nil {
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

var errLongLine = errors.New("the line is too long for a message")

// readLine reads a line of at most max bytes; of a longer one the rest is passed
// over.
func readLine(in *bufio.Reader, max int) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > max {
			line, long = nil, true
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || err == io.EOF) {
			return nil, errLongLine
		}
		return line, err
	}
}

// sendGroup delivers some lines together and prints their results.
func sendGroup(ctx context.Context, c *cli.Context, s *command.Scope, group []batchLine) (bad int, err error) {
	var posts []*mailbox.Post
	for i := range group {
		l := &group[i]
		if l.err == nil {
			l.out, l.err = parseMessage(s, l.text)
		}
		if l.err == nil {
			l.err = mayAbort(s, l.out)
		}
		if l.err == nil {
			l.err = s.Root.Prepare(l.out)
		}
		if l.err == nil {
			posts = append(posts, l.out.Post)
		}
	}
	mailbox.Deliver(ctx, posts...)
	for _, l := range group {
		r := batchResult{Line: l.number, sent: newSent("")}
		if l.err != nil {
			e := command.Explain(c, l.err)
			r.Error = &batchError{e.Code, e.Message, e.Hint}
		} else {
			markAnswered(ctx, c, s, l.out)
			r.sent = resultOf(ctx, c, s, l.out)
		}
		if r.Error != nil || len(r.Failed) > 0 {
			bad++
		}
		if err := command.PrintJSON(r); err != nil {
			return bad, err
		}
	}
	return bad, nil
}

// parseMessage reads one message of a batch.
func parseMessage(s *command.Scope, text []byte) (*teams.Outgoing, error) {
	const hint = `a line is {"to":"bob","body":"…"}`
	m, to, err := wire.DecodeOutgoing(text, s.Team.Name)
	if err != nil {
		return nil, command.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(hint)
	}
	if (m.From != wire.Address{}) && m.From != s.Me.Address() {
		return nil, command.Refused("from: you are %s", s.Me.Address()).WithHint("leave \"from\" out")
	}
	if len(to) == 0 {
		return nil, command.Usage("to whom? the line has no \"to\"").WithHint(hint)
	}
	if m.Body == "" && m.Payload == nil {
		return nil, command.Usage("the line has no \"body\"").WithHint(hint)
	}
	if m.HasOurMeta() {
		return nil, command.Usage("meta: atm is ours").WithHint("take another key")
	}
	o := &teams.Outgoing{From: s.Me, Message: m, Given: m.ID != ""}
	if o.Given {
		if err := teams.GivenID(m.ID); err != nil {
			return nil, command.Usage("id: %v", err).WithHint("leave \"id\" out")
		}
	}
	if o.To, err = addresses(s, strings.Join(to, ",")); err != nil {
		return nil, err
	}
	if old := s.Root.Own(s.Me, m.Supersedes); m.Supersedes != "" && (old == nil || old.From != s.Me.Address()) {
		return nil, command.Refused("supersedes: %s is not a message of yours", m.Supersedes.Short(6)).WithHint("atm ls --sent")
	}
	if m.InReplyTo != "" {
		o.Parent = s.Root.Own(s.Me, m.InReplyTo)
	}
	for _, a := range m.Attachments {
		f, err := s.Team.Attachment(a)
		if err != nil {
			return nil, command.Usage("attachments: %v", err).WithHint("atm send --attach FILE stores the content")
		}
		f.Close()
	}
	m.Hop, m.Origin, m.SentAt = 0, s.Origin(), time.Time{}
	return o, nil
}

func quoteAck(who wire.Name, text string) string {
	return fmt.Sprintf("%s: %s", who, quoted(text))
}
