package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

// A call is a verb that acts for the client, and what it has printed.
type call struct {
	server *server
	verb   string
	open   func(*app.Given) (*app.Scope, error)
	act    func(context.Context, *app.Scope, *command.Printer) error

	value    any
	text     string
	warnings warnings
	err      *failure.Error
}

// warnings are lines of what may run side by side.
type warnings struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (w *warnings) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(line)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

// run acts, and keeps what is printed. answer is the printer's; nil: what is printed counts as received.
func (c *call) run(ctx context.Context, answer func() bool) {
	given := *c.server.given
	given.In, given.Out, given.Err, given.Verb = strings.NewReader(""), io.Discard, &c.warnings, "atm "+c.verb
	p := &command.Printer{Given: &given, Answer: func(v any, text string) (bool, error) {
		c.value, c.text = v, text
		return answer == nil || answer(), nil
	}}
	var opened *app.Scope
	open := func(g *app.Given) (_ *app.Scope, err error) {
		opened, err = c.open(g)
		return opened, err
	}
	defer func() {
		if opened != nil && opened.Root != nil {
			opened.Root.Close()
		}
	}()
	err := command.Act(ctx, p, open, func(s *app.Scope) error { return c.act(ctx, s, p) })
	if err == nil {
		return
	}
	if c.err = given.Explain(err); c.err.Done == nil {
		c.err.Done = c.value
	}
}

// String is the text of the result.
func (c *call) String() string {
	text := strings.TrimSuffix(c.text, "\n") + "\n" + c.warnings.String()
	if c.err != nil {
		text += withHint(c.err)
	}
	return framed(strings.TrimSpace(text))
}

func withHint(e *failure.Error) string {
	text := e.Message
	if e.Hint != "" {
		text += "\nhint: " + e.Hint.String()
	}
	return letter.EscapeBody(text)
}

func (c *call) result() *sdk.CallToolResult {
	document := c.value
	if c.err != nil {
		document = command.ErrorObject(c.err)
	}
	raw, _ := command.JSON(document) // the command prints it, too
	return &sdk.CallToolResult{
		IsError: c.err != nil, StructuredContent: json.RawMessage(escaped(raw)), Content: []sdk.Content{&sdk.TextContent{Text: c.String()}},
	}
}

// A page is the mail that a read has shown, and that is marked as read once it was received.
type page struct {
	call       context.Context // ends when the client cancels it
	mark       string          // what tells its response from others
	isReceived chan bool
}

// read is run for a read: it returns with what is printed, before that is marked.
func (c *call) read(ctx context.Context) (*sdk.CallToolResult, error) {
	s := c.server
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &page{call: ctx, mark: rand.Text(), isReceived: make(chan bool, 1)}
	s.unconfirmed.Store(p)
	results := make(chan *sdk.CallToolResult, 2) // the second one, of the marking, has no reader
	s.confirming.Go(func() {
		defer func() { <-s.reading }()
		c.run(context.WithoutCancel(ctx), func() (isReceived bool) {
			r := c.result()
			r.Meta = sdk.Meta{"atm/page": p.mark}
			results <- r
			select {
			case isReceived = <-p.isReceived:
			case <-s.running.Done():
			}
			return isReceived
		})
		results <- c.result()
	})
	return <-results, nil
}

var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// escaped is a document in which text is as the model may see it: some clients give it only that.
func escaped(document []byte) []byte {
	return jsonString.ReplaceAllFunc(document, func(raw []byte) []byte {
		var text string
		json.Unmarshal(raw, &text)
		raw, _ = json.Marshal(letter.EscapeMail(text))
		return raw
	})
}

// framed ends a text with mail: a client may put others behind it.
func framed(text string) string {
	if strings.Contains(text, "\n  ") {
		text = strings.TrimSuffix(text, "\n") + "\n" + letter.End
	}
	return text
}
