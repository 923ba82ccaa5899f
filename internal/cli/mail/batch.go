package mail

import (
	"bufio"
	"bytes"
	"context"
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
	go readBatch(os.Stdin, lines)
	bad := 0
	for ctx.Err() == nil {
		group := nextGroup(ctx, lines)
		if group == nil && bad > 0 {
			return command.Exit(command.ExitFailed)
		}
		if group == nil {
			return ctx.Err()
		}
		n, err := sendGroup(ctx, c, s, group)
		bad += n
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// nextGroup waits for a line, and takes what has arrived with it; nil: there are no
// more, or ctx has ended.
func nextGroup(ctx context.Context, lines <-chan batchLine) (group []batchLine) {
	select {
	case l, ok := <-lines:
		if !ok {
			return nil
		}
		group = append(group, l)
	case <-ctx.Done():
		return nil
	}
	for len(group) < batchSize && len(lines) > 0 {
		group = append(group, <-lines)
	}
	return group
}

// readBatch reads lines to the end. One that is too long for a message ends it.
func readBatch(from io.Reader, out chan<- batchLine) {
	defer close(out)
	in := bufio.NewScanner(from)
	in.Buffer(nil, wire.MaxFile+1)
	n := 1
	for ; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) > 0 {
			out <- batchLine{number: n, text: bytes.Clone(in.Bytes())}
		}
	}
	if err := in.Err(); err != nil {
		out <- batchLine{number: n, err: err}
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
	if old := s.Root.OwnMessage(s.Me, m.Supersedes); m.Supersedes != "" && (old == nil || old.From != s.Me.Address()) {
		return nil, command.Refused("supersedes: %s is not a message of yours", m.Supersedes.Short(6)).WithHint("atm ls --sent")
	}
	if m.InReplyTo != "" {
		o.Parent = s.Root.OwnMessage(s.Me, m.InReplyTo)
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
