package acpagent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"github.com/agentteammail/atm/wire"
)

// A client stands before the SDK, which begins requests in any order, and drops them at the end of the client's input.
type client struct {
	out        io.Writer
	connected  context.Context // ends when the client closes stdin, with io.EOF as the cause
	disconnect context.CancelCauseFunc
	open       sync.WaitGroup // the requests without an answer

	mu        sync.Mutex
	beginning string        // the ID of a prompt that was passed on and has not begun; "": none
	begun     chan struct{} // receives when it has begun, or has its answer
}

func newClient(ctx context.Context, out io.Writer) *client {
	c := &client{out: out, begun: make(chan struct{}, 1)}
	c.connected, c.disconnect = context.WithCancelCause(ctx)
	return c
}

// maxLine is the size in bytes of a line that the SDK takes.
const maxLine = 10 << 20

// pass passes on what the client writes, and returns once all requests are answered: the client may be a file. A prompt has
// begun before the next line is passed on, and the end of a session's prompts comes from cancel, so that it is noticed
// before the end of the input.
func (c *client) pass(stdin io.Reader, to io.Writer, cancel func(acp.SessionId)) {
	in := bufio.NewReader(stdin)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		in.Discard(len(mark))
	}
	for end := error(nil); end == nil; {
		var line []byte
		var size int64
		if line, size, end = wire.ReadLine(in, maxLine); size > maxLine {
			c.disconnect(bufio.ErrTooLong)
			break
		}
		m := parse(line)
		isRequest := m.ID != nil && m.Method != ""
		isPrompt := isRequest && m.Method == acp.AgentMethodSessionPrompt
		if isRequest {
			c.open.Add(1)
		}
		if isPrompt {
			c.mu.Lock()
			c.beginning = m.id()
			c.mu.Unlock()
		}
		if end != nil {
			line = append(line, '\n')
		}
		to.Write(line)
		if isPrompt {
			<-c.begun
		}
		var n acp.CancelNotification
		if m.Method == acp.AgentMethodSessionCancel && json.Unmarshal(m.Params, &n) == nil {
			cancel(n.SessionId)
		}
	}
	c.disconnect(io.EOF)
	c.open.Wait()
}

const byteOrderMark = "\ufeff"

// Write writes a message to the client.
func (c *client) Write(line []byte) (n int, err error) {
	n, err = c.out.Write(line)
	if m := parse(line); m.ID != nil && m.Method == "" {
		c.begin(m.id())
		c.open.Done()
	}
	return n, err
}

// begin notes that a prompt has begun; id "": the one that was passed on last.
func (c *client) begin(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.beginning != "" && (id == "" || id == c.beginning) {
		c.beginning = ""
		c.begun <- struct{}{}
	}
}

// message has the fields of the SDK's, which takes the same lines for requests.
type message struct {
	JSONRPC        string
	ID             *json.RawMessage
	Method         string
	Params, Result json.RawMessage
	Error          *acp.RequestError
}

// parse returns an empty message for a line that is none.
func parse(line []byte) (m message) {
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	return m
}

// id is the same however the ID is written.
func (m *message) id() string {
	var id any
	json.Unmarshal(*m.ID, &id)
	return fmt.Sprintf("%#v", id)
}
