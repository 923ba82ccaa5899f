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

	"github.com/agentteammail/atm/internal/cli/command"
)

type answer struct {
	text      string
	documents []json.RawMessage
	token     string // of a read that waits for its response to be written
}

type process struct {
	*exec.Cmd
	answer
	confirmation *io.PipeWriter // the stdin of a read
	printed      *json.Decoder
	warnings     bytes.Buffer
}

func (s *server) start(ctx context.Context, stdin io.Reader, args []string) (*process, error) {
	p := &process{Cmd: exec.CommandContext(ctx, s.program, slices.Concat(s.flags, args)...)}
	p.Stdin, p.Stderr, p.WaitDelay = stdin, &p.warnings, time.Second
	stdout, err := p.StdoutPipe()
	p.printed = json.NewDecoder(stdout)
	return p, cmp.Or(err, p.Start())
}

// next takes in the next value that the verb prints. The error is the one that the verb ends with; io.EOF: it
// prints no more.
func (p *process) next() error {
	var printed struct {
		Document json.RawMessage `json:"document"`
		Text     string          `json:"text"`
		Error    *command.Error  `json:"error"`
	}
	if err := p.printed.Decode(&printed); err != nil {
		return err
	}
	if printed.Error != nil {
		return printed.Error
	}
	p.text += printed.Text
	p.documents = append(p.documents, printed.Document)
	return nil
}

// end lets a verb end, whose warnings belong to its answer. err is what next has returned; a verb that printed
// nothing has said why on stderr.
func (p *process) end(err error) (answer, error) {
	if p.confirmation != nil {
		p.confirmation.Close()
	}
	ended := p.Wait()
	p.text = strings.TrimSpace(p.text + "\n" + p.warnings.String())
	if err == io.EOF && len(p.documents) == 0 {
		return p.answer, fmt.Errorf("atm %s: %v %s", p.Args[1:], ended, p.text)
	}
	if err == io.EOF {
		err = nil
	}
	return p.answer, err
}

func (s *server) run(ctx context.Context, stdin string, args []string) (answer, error) {
	p, err := s.start(ctx, strings.NewReader(stdin), args)
	for err == nil {
		err = p.next()
	}
	return p.end(err)
}

// read runs atm read, which goes on when the response with its answer has been written, and then marks.
// A client that has cancelled the call meanwhile drops the response, so then it marks nothing.
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

// confirm tells a read that its messages have arrived. What goes wrong now is for the client's log.
func (p *process) confirm() {
	p.confirmation.Write([]byte("\n")) // one that has nothing to mark has ended
	p.end(nil)
	os.Stderr.Write(p.warnings.Bytes())
}

// confirmedBy takes the read off the list whose response is a line; nil: it is of none.
func (s *server) confirmedBy(line []byte) *process {
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
