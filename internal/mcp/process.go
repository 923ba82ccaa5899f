package mcp

import (
	"bytes"
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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/internal/cli/command"
)

// A process is a verb of atm that runs.
type process struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	printed  *json.Decoder
	warnings bytes.Buffer
}

// An answer is what a verb has printed.
type answer struct {
	text      string
	documents []json.RawMessage
	token     string // of a read that waits for its response to be written
}

// start starts a verb. The end of the context kills it.
func (s *server) start(ctx context.Context, args []string) (p *process, err error) {
	p = &process{cmd: exec.CommandContext(ctx, s.program, slices.Concat(s.flags, args)...)}
	p.cmd.Stderr = &p.warnings
	p.cmd.WaitDelay = time.Second
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		p.printed = json.NewDecoder(stdout)
		p.stdin, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	return p, err
}

// next adds the next value that the verb prints to an answer. The error is the one that the verb ends with;
// io.EOF: it prints no more.
func (p *process) next(a *answer) error {
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
	a.text += printed.Text
	a.documents = append(a.documents, printed.Document)
	return nil
}

// end lets a verb end that is told nothing more, and adds its warnings to the answer. err is what next has
// returned; a verb that printed nothing has said why on stderr.
func (p *process) end(a *answer, err error) error {
	p.stdin.Close()
	ended := p.cmd.Wait()
	warnings := strings.TrimSpace(p.warnings.String())
	a.text = strings.TrimSpace(a.text + "\n" + warnings)
	if err != io.EOF {
		return err
	}
	if len(a.documents) > 0 {
		return nil
	}
	return fmt.Errorf("atm %s: %v %s", p.cmd.Args[1:], ended, warnings)
}

// run runs a verb to its end, with a text on its stdin.
func (s *server) run(ctx context.Context, stdin string, args []string) (a answer, err error) {
	p, err := s.start(ctx, args)
	if err != nil {
		return a, err
	}
	go func() {
		io.WriteString(p.stdin, stdin) // a verb that fails reads nothing
		p.stdin.Close()
	}()
	for err == nil {
		err = p.next(&a)
	}
	return a, p.end(&a, err)
}

// read runs atm read, which goes on when the response with its answer has been written, and then marks.
func (s *server) read(_ context.Context, _ *sdk.CallToolRequest, _ string, args []string) (a answer, err error) {
	p, err := s.start(context.Background(), slices.Insert(args, 1, "--confirm"))
	if err != nil {
		return a, err
	}
	if err := p.next(&a); err != nil {
		return a, p.end(&a, err)
	}
	a.token = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unconfirmed[a.token] = p
	return a, nil
}

// confirm tells a read that its messages have arrived. What goes wrong now is for the client's log.
func (p *process) confirm() {
	var a answer
	p.stdin.Write([]byte("\n")) // one that has nothing to mark has ended
	p.end(&a, nil)
	if a.text != "" {
		fmt.Fprintln(os.Stderr, a.text)
	}
}

// confirmedBy takes the reads off the list whose response is in a line.
func (s *server) confirmedBy(line []byte) (reads []*process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, p := range s.unconfirmed {
		if bytes.Contains(line, []byte(token)) {
			delete(s.unconfirmed, token)
			reads = append(reads, p)
		}
	}
	return reads
}
