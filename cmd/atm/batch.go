package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// batchSize is how many messages share their syncs.
const batchSize = 100

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

// reachedKey is what the state of a recipient depends on, within a group.
type reachedKey struct {
	to     wire.Address
	urgent bool
}

type inputLine struct {
	number int
	text   []byte
	err    error
}

// batch sends NDJSON messages of stdin. What has arrived is sent together, up
// to a hundred, and each result is printed once its message is durable.
func (e *env) batch(ctx context.Context) error {
	if len(e.Args) > 0 || len(e.Strings("to")) > 0 {
		return cmdline.Usage("--batch takes its messages from stdin alone").WithHint(`echo '{"to":"bob","body":"…"}' | atm send --batch`)
	}
	for _, f := range letterFlags {
		if f.Name != "dry-run" && e.Given(f.Name) {
			return cmdline.Usage("--batch takes no --%s: what it would say stands in each line", f.Name).
				WithHint(`echo '{"to":"bob","body":"…","subject":"…","requires_ack":true}' | atm send --batch`)
		}
	}
	if e.Stdin == nil || term.IsTerminal(int(e.Stdin.Fd())) {
		return cmdline.Usage("--batch reads NDJSON from a pipe or a file").WithHint(`echo '{"to":"bob","body":"…"}' | atm send --batch`)
	}
	lines := make(chan inputLine, batchSize)
	go readLinesOf(ctx, e.Stdin, lines)
	bad := 0
	for {
		var group []inputLine
		select {
		case l, ok := <-lines:
			if !ok {
				if bad > 0 {
					return &cmdline.Error{Exit: cmdline.ExitFailed, Printed: true}
				}
				return nil
			}
			group = append(group, l)
		case <-ctx.Done():
			return ctx.Err()
		}
	more:
		for len(group) < batchSize {
			select {
			case l, ok := <-lines:
				if !ok {
					break more
				}
				group = append(group, l)
			default:
				break more
			}
		}
		n, err := e.sendGroup(ctx, group)
		bad += n
		if err != nil {
			return err
		}
	}
}

func readLinesOf(ctx context.Context, from io.Reader, out chan<- inputLine) {
	defer close(out)
	in := bufio.NewReaderSize(from, 64<<10)
	for n := 1; ; n++ {
		text, long, err := readLine(in, wire.MaxFile)
		if len(bytes.TrimSpace(text)) > 0 || long {
			l := inputLine{number: n, text: text}
			if long {
				l.err = fmt.Errorf("the line has over %d bytes", wire.MaxFile)
			}
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil && err != io.EOF {
			out <- inputLine{number: n, err: fmt.Errorf("read stdin: %w", err)}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line of at most max bytes; of a longer one the rest is
// passed over.
func readLine(in *bufio.Reader, max int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			if len(line) > max {
				line, long = nil, true
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// sendGroup delivers some lines together and prints their results.
func (e *env) sendGroup(ctx context.Context, group []inputLine) (bad int, err error) {
	outs := make([]*teams.Outgoing, len(group))
	errs := make([]error, len(group))
	var posts []*mailbox.Post
	for i, l := range group {
		if errs[i] = l.err; l.err != nil {
			continue
		}
		if outs[i], errs[i] = e.parseLine(ctx, l.text); errs[i] != nil {
			continue
		}
		if errs[i] = e.mayBring(outs[i]); errs[i] == nil {
			errs[i] = e.root.Prepare(outs[i])
		}
		if errs[i] == nil {
			posts = append(posts, outs[i].Post)
		}
	}
	dry := e.Bool("dry-run")
	if !dry {
		mailbox.Deliver(ctx, posts...)
	}
	known := map[reachedKey]delivered{}
	for i, l := range group {
		r := batchResult{Line: l.number, sent: sent{Delivered: []delivered{}, Failed: []failed{}, DryRun: dry}}
		if errs[i] != nil {
			bad++
			code, msg, hint := e.failure(errs[i])
			r.Error = &batchError{code, msg, hint}
		} else {
			r.ID = outs[i].Message.ID
			outcomes := outs[i].Post.Outcomes
			if dry {
				outcomes = wouldReach(outs[i].Post)
			} else {
				e.answered(ctx, outs[i])
			}
			for _, out := range outcomes {
				if out.Err != nil {
					r.fail(e, out.Box.Address(), out.Err)
					continue
				}
				key := reachedKey{out.Box.Address(), outs[i].Message.Urgent()}
				d, ok := known[key]
				if !ok {
					d = e.reached(out.Box, time.Now(), key.urgent)
					known[key] = d
				}
				if d.Known = out.Known; d.Known {
					d.Differs = e.differs(out.Box, outs[i].Message)
				}
				r.Delivered = append(r.Delivered, d)
			}
			for _, f := range outs[i].Failed {
				r.fail(e, f.To, f.Err)
			}
			if len(r.Failed) > 0 {
				bad++
			}
		}
		if err := e.PrintJSON(r); err != nil {
			return bad, err
		}
	}
	return bad, nil
}

// aLine is a hint for a line that is no message.
const aLine = `a line is {"to":"bob","body":"…"}`

// notALine explains what is no message. The line's number is said beside it.
func notALine(err error) error {
	return cmdline.Usage("%s", strings.TrimPrefix(err.Error(), "line 1, ")).WithHint(aLine)
}

// parseLine reads one message of a batch.
func (e *env) parseLine(ctx context.Context, text []byte) (*teams.Outgoing, error) {
	m, to, err := wire.DecodeOutgoing(text, e.team.Name)
	if err != nil {
		return nil, notALine(err)
	}
	if (m.From != wire.Address{}) && m.From != e.me.Address() {
		return nil, cmdline.Refused("from: you are %s", e.me.Address())
	}
	o := &teams.Outgoing{From: e.me, Message: m, Given: m.ID != ""}
	if o.Given {
		if err := teams.GivenID(m.ID); err != nil {
			return nil, cmdline.Usage("id: %v", err)
		}
	}
	if len(to) == 0 {
		return nil, cmdline.Usage("to whom? the line has no \"to\"").WithHint(aLine)
	}
	if o.To, err = e.addresses(to); err != nil {
		return nil, err
	}
	if m.Body == "" && m.Payload == nil {
		return nil, cmdline.Usage("the line has no \"body\"").WithHint(aLine)
	}
	m.Hop = 0
	if old := e.root.OwnMessage(e.me, m.Supersedes); m.Supersedes != "" && (old == nil || old.From != e.me.Address()) {
		return nil, cmdline.Refused("supersedes: %s is no message of yours", m.Supersedes.Short(6))
	}
	if m.InReplyTo != "" {
		o.Parent = e.root.OwnMessage(e.me, m.InReplyTo)
	}
	if m.HasOurMeta() {
		return nil, cmdline.Usage("meta: atm is ours").WithHint("take another key")
	}
	for _, a := range m.Attachments {
		f, err := e.team.Attachment(a)
		if err != nil {
			return nil, cmdline.Usage("attachments: %v", err).WithHint("atm send --attach FILE stores the content")
		}
		f.Close()
	}
	m.Origin, m.SentAt = e.origin(), time.Time{}
	return o, nil
}
