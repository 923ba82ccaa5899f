package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// What is left of the mail verbs for as long as other verbs here use it.

// ownID is the id that --id brings, "" where there is none. It checks the name
// that --once brings, too.
func (e *env) ownID() (id wire.ID, err error) {
	if e.Given("once") {
		if err := mailbox.CheckKeyName(e.String("once")); err != nil {
			return "", cmdline.Usage("--once: %v", err).WithHint("--once release-1.4/notes")
		}
	}
	if !e.Given("id") {
		return "", nil
	}
	if id, err = wire.ParseID(e.String("id")); err == nil {
		err = teams.GivenID(id)
	}
	if err != nil {
		return "", cmdline.Usage("--id: %v", err).WithHint("leave --id out: atm makes one; --once NAME takes any name")
	}
	return id, nil
}

// named gives a prepared message the id that belongs to its --once.
func (e *env) named(o *teams.Outgoing) error {
	if !e.Given("once") {
		return nil
	}
	_, err := o.Once(e.String("once"))
	return err
}

// text is the message's text, from wherever it is given.
func (e *env) text(words []string) (string, error) {
	given := func(f string) bool { return e.Has(f) && e.Given(f) }
	for _, f := range []string{"message", "file"} {
		if given(f) && len(words) > 0 {
			return "", cmdline.Usage("--%s and text contradict each other", f).WithHint("leave one out")
		}
	}
	switch {
	case given("message"):
		return e.Text([]string{e.String("message")})
	case given("file") && e.String("file") != "-":
		f, err := os.Open(e.String("file"))
		if err != nil {
			return "", cmdline.Usage("--file: %v", err).WithHint("--file takes the text from a file, --attach FILE sends one")
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return "", cmdline.Usage("--file: %s is a directory", e.String("file")).WithHint("--file takes the text from a file, --attach FILE sends one")
		}
		return cmdline.ReadText(f)
	case given("file"):
		return e.Text([]string{"-"})
	case len(words) == 0 && (given("payload") || given("attach")):
		return "", nil
	}
	return e.Text(words)
}

// delivered is one recipient in the JSON of send, reply and ack.
type delivered struct {
	To      string `json:"to"`
	Running bool   `json:"running"`
	State   string `json:"state"`
	Known   bool   `json:"known,omitempty"`   // it was there before, and was not sent again
	Differs bool   `json:"differs,omitempty"` // and has another text

	word string
}

// anothers refuses to wait for the answer to what was sent under an id or a name
// before, with another text.
func (e *env) anothers(id wire.ID) error {
	return cmdline.Refused("%s was sent before with another text: what answers it answers that", id.Short(6)).
		WithHint("another --once NAME or --id for this one; atm wait --reply %s%s waits for that answer", id.Short(6), e.typed())
}

// differs reports whether a message that was there before has another text than the
// one that was to be sent now, and says so.
func (e *env) differs(b *mailbox.Box, m *wire.Message) bool {
	it, err := b.Get(m.ID)
	if err != nil || it.Body == m.Body {
		return false
	}
	e.Warn("%s was there before with another text, and stays as it is; another message needs another id or name", m.ID.Short(6))
	return true
}

// reached is a recipient whom a message reached, and what is known of them.
func (e *env) reached(b *mailbox.Box, now time.Time, urgent bool) delivered {
	a := b.Address()
	t, _ := e.root.Team(a.Team)
	m, _ := t.Summary(a.Agent)
	return delivered{To: a.String(), Running: m.Running, State: string(m.State), word: m.Forecast(now, urgent)}
}

// batchSize is how many messages share their syncs.
const batchSize = 100

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

type inputLine struct {
	number int
	text   []byte
	err    error
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

// liveGate asks a runner why nothing is typed in just now. One that does not
// answer at once is not waited for.
func liveGate(ctx context.Context, b *mailbox.Box) string {
	c, err := control.Dial(ctx, runDir(b))
	if errors.Is(err, control.ErrNotAnswering) {
		return "its runner does not answer"
	}
	if err != nil {
		return ""
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, control.Patience)
	defer cancel()
	s, err := c.Status(ctx)
	if err != nil {
		return ""
	}
	return s.Gate
}

func quietEnd(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// since is how long a member has been so, for a warning.
func since(m teams.Member) string {
	if m.Since == nil {
		return ""
	}
	return " since " + letter.Span(time.Since(*m.Since))
}

// patience is how long a reader that is there and does not read is waited for:
// a little less than Read keeps the lock, so that what then counts as taken is
// marked before another reader can choose it.
const patience = 1800 * time.Millisecond
