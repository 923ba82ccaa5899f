package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

// process is a running atm command, and what it has printed.
type process struct {
	*exec.Cmd
	text         string
	documents    []json.RawMessage
	stdout       *json.Decoder
	stderr       bytes.Buffer   // warnings, or the error of a command that printed nothing
	confirmation io.WriteCloser // the stdin of a read
	ended        func()         // lets the next read begin
}

func (s *server) command(ctx context.Context, args []string) *process {
	p := &process{Cmd: exec.CommandContext(ctx, s.program, slices.Concat(s.flags, args)...)}
	p.Stderr, p.WaitDelay = &p.stderr, time.Second
	return p
}

func (p *process) start() error {
	stdout, err := p.StdoutPipe()
	p.stdout = json.NewDecoder(stdout)
	return cmp.Or(err, p.Start())
}

// next reads the next value that the command prints. It returns the error that the command prints, or io.EOF at the
// end.
func (p *process) next() error {
	var printed struct {
		Document json.RawMessage `json:"document"`
		Text     string          `json:"text"`
		Error    *failure.Error  `json:"error"`
		Hint     string          `json:"hint"`
	}
	var line json.RawMessage
	if err := p.stdout.Decode(&line); err != nil {
		return err
	}
	if err := json.Unmarshal(line, &printed); err != nil {
		return err
	}
	if printed.Error != nil {
		printed.Error.Hint = failure.Hint(printed.Hint)
	}
	switch {
	case printed.Error != nil && printed.Error.Code == "partial": // the error stands in the document
		printed.Document, printed.Text = line, withHint(printed.Error).Error()
	case printed.Error != nil:
		return printed.Error
	}
	p.text += printed.Text
	p.documents = append(p.documents, printed.Document)
	return nil
}

// end waits for the command and adds its warnings to the text. err is the error that next returned.
func (p *process) end(err error) error {
	exitErr := p.Wait()
	p.text = strings.TrimSpace(p.text + "\n" + p.stderr.String())
	if err == io.EOF && len(p.documents) == 0 {
		return fmt.Errorf("atm %s: %v %s", p.Args[1:], exitErr, p.text)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// run runs a command to its end.
func (s *server) run(ctx context.Context, stdin string, args []string) (*process, error) {
	p := s.command(ctx, args)
	p.Stdin = strings.NewReader(stdin)
	err := p.start()
	for err == nil {
		err = p.next()
	}
	return p, p.end(err)
}

// read runs atm read, which marks its messages after the response of the call is written. If the client has cancelled the
// call meanwhile it drops the response, so read marks nothing.
func (s *server) read(ctx context.Context, call string, args []string) (*process, error) {
	p := s.command(context.Background(), slices.Insert(args, 1, "--confirm"))
	confirmation, err := p.StdinPipe()
	if p.confirmation = confirmation; err != nil {
		return p, err
	}
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	p.ended = func() { <-s.reading }
	if err = p.start(); err == nil {
		err = cmp.Or(p.next(), ctx.Err())
	}
	if err != nil {
		defer p.ended()
		p.confirmation.Close()
		return p, p.end(err)
	}
	s.unconfirmed.Store(call, p)
	return p, nil
}

// confirm ends a read; its messages count as read if they were received.
func (p *process) confirm(wereReceived bool) {
	if wereReceived {
		p.confirmation.Write([]byte("\n")) // fails if the read had nothing to mark, and has ended
	}
	p.confirmation.Close()
	p.end(nil)
	p.ended()
}

func withHint(err error) error {
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Hint != "" {
		return fmt.Errorf("%w\nhint: %s", err, e.Hint)
	}
	return err
}
