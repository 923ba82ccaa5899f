package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/failure"
)

type answer struct {
	text      string
	documents []json.RawMessage
	token     string // identifies the response of an unconfirmed read
}

// process is a running atm command.
type process struct {
	*exec.Cmd
	answer
	confirmation *io.PipeWriter // the stdin of a read
	stdout       *json.Decoder
	stderr       bytes.Buffer // warnings, or the error of a command that printed nothing
}

func (s *server) start(ctx context.Context, stdin io.Reader, args []string) (*process, error) {
	p := &process{Cmd: exec.CommandContext(ctx, s.program, slices.Concat(s.flags, args)...)}
	p.Stdin, p.Stderr, p.WaitDelay = stdin, &p.stderr, time.Second
	stdout, err := p.StdoutPipe()
	p.stdout = json.NewDecoder(stdout)
	return p, cmp.Or(err, p.Start())
}

// next reads the next value that the command prints. It returns the error that the command prints, or io.EOF at the
// end.
func (p *process) next() error {
	var printed struct {
		Document json.RawMessage `json:"document"`
		Text     string          `json:"text"`
		Error    *failure.Error  `json:"error"`
	}
	if err := p.stdout.Decode(&printed); err != nil {
		return err
	}
	if printed.Error != nil {
		return printed.Error
	}
	p.text += printed.Text
	p.documents = append(p.documents, printed.Document)
	return nil
}

// end waits for the command and adds its warnings to the answer. err is the error that next returned.
func (p *process) end(err error) (answer, error) {
	if p.confirmation != nil {
		p.confirmation.Close()
	}
	exitErr := p.Wait()
	p.text = strings.TrimSpace(p.text + "\n" + p.stderr.String())
	if err != io.EOF {
		return p.answer, err
	}
	if len(p.documents) == 0 {
		return p.answer, fmt.Errorf("atm %s: %v %s", p.Args[1:], exitErr, p.text)
	}
	return p.answer, nil
}

func (s *server) run(ctx context.Context, stdin string, args []string) (answer, error) {
	p, err := s.start(ctx, strings.NewReader(stdin), args)
	for err == nil {
		err = p.next()
	}
	return p.end(err)
}

// read runs atm read, which marks its messages after the response is written. If the client has cancelled the call
// meanwhile it drops the response, so read marks nothing.
func (s *server) read(ctx context.Context, c call) (answer, error) {
	stdin, confirmation := io.Pipe()
	p, err := s.start(context.Background(), stdin, slices.Insert(c.args, 1, "--confirm"))
	p.confirmation = confirmation
	if err == nil {
		err = cmp.Or(p.next(), ctx.Err())
	}
	if err != nil {
		return p.end(err)
	}
	p.token = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unconfirmed[p.token] = p
	return p.answer, nil
}

// confirm tells a read that its messages have arrived. Errors go to stderr, the client's log.
func (p *process) confirm() {
	p.confirmation.Write([]byte("\n")) // fails if the read had nothing to mark, and has ended
	p.end(nil)
	os.Stderr.Write(p.stderr.Bytes())
}

// takeUnconfirmed removes and returns the read whose response is in the line, or nil.
func (s *server) takeUnconfirmed(line []byte) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, p := range s.unconfirmed {
		if bytes.Contains(line, []byte(token)) {
			delete(s.unconfirmed, token)
			return p
		}
	}
	return nil
}
