package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/wire"
)

// A connection is the server's only one: a message is a line, on stdin or stdout. It answers a line that is no message with
// an error, keeps ids as the client wrote them, and knows which calls have their response.
type connection struct {
	*server
	messages chan jsonrpc.Message
	writing  sync.Mutex // guards stdout
	mark     string     // secret: see encodeID
	calls    sync.Map   // the IDs of unanswered calls
	open     sync.WaitGroup
}

// Connect makes the connection.
func (s *server) Connect(context.Context) (sdk.Connection, error) {
	c := &connection{server: s, messages: make(chan jsonrpc.Message), mark: rand.Text()}
	go c.receive()
	return c, nil
}

func (c *connection) SessionID() string { return "" }

// Close ends the server.
func (c *connection) Close() error {
	c.stop()
	return nil
}

// Read returns the client's next message.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, isOpen := <-c.messages:
		if isOpen {
			return m, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.running.Done():
	}
	return nil, io.EOF
}

// maxMessage is the size of a client's message in bytes: that of a text, with room for JSON and more.
const maxMessage = 32 << 20

// receive passes on the messages on stdin. At its end it waits until all calls are answered: the SDK would drop them, and
// the client may be a file.
func (c *connection) receive() {
	for in, end := bufio.NewReader(c.given.In), error(nil); end == nil; {
		var line []byte
		var size int64
		line, size, end = wire.ReadLine(in, maxMessage)
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		m, err := jsonrpc.DecodeMessage(line)
		switch {
		case size > maxMessage:
			c.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d MiB", maxMessage>>20))
		case len(line) == 0:
		case !json.Valid(line):
			c.refuse(jsonrpc.CodeParseError, "Parse error")
		case err != nil:
			c.refuse(jsonrpc.CodeInvalidRequest, "Invalid Request")
		default:
			if r, isRequest := m.(*jsonrpc.Request); isRequest {
				c.prepare(r, line)
			}
			select {
			case c.messages <- m:
			case <-c.running.Done():
				return
			}
		}
	}
	c.disconnect()
	c.open.Wait()
	close(c.messages)
}

// prepare notes a call, and changes the ids in a request as encodeID says.
func (c *connection) prepare(r *jsonrpc.Request, line []byte) {
	params, _ := wire.ReadObject(r.Params)
	if raw := c.encodeID(params.Get("requestId")); raw != nil && r.Method == "notifications/cancelled" {
		r.Params = params.With("requestId", raw).Encode()
	}
	if !r.IsCall() || r.Method == "subscriptions/listen" { // which gets no response
		return
	}
	message, _ := wire.ReadObject(line)
	if raw := c.encodeID(message.Get("id")); raw != nil {
		r.ID, _ = jsonrpc.MakeID(c.mark + string(message.Get("id")))
	}
	if _, isKnown := c.calls.LoadOrStore(r.ID, true); !isKnown {
		c.open.Add(1)
	}
	if r.Method == "tools/call" && params != nil {
		meta := params.Object("_meta").With(callKey, wire.Quote(nameOf(r.ID)))
		r.Params = params.With("_meta", meta.Encode()).Encode()
	}
}

// encodeID carries an id that is a number through the SDK, which makes a float64 and then an int64 of it:
// 12345678901234567890 and 1.5 would come back as others. Such an id becomes a string behind a secret mark; nil: any other.
func (c *connection) encodeID(written json.RawMessage) json.RawMessage {
	var number float64
	if json.Unmarshal(written, &number) != nil || string(written) == strconv.FormatInt(int64(number), 10) {
		return nil
	}
	return wire.Quote(c.mark + string(written))
}

// callKey is the member of a call's _meta with which a tool finds the name of its call.
const callKey = "atm/call"

func nameOf(id jsonrpc.ID) string { return fmt.Sprintf("%#v", id.Raw()) }

// receiveTimeout is how long a response with mail waits for the client to receive it, as atm read does.
const receiveTimeout = 1800 * time.Millisecond

// Write writes a message. If that is the response of a read, it confirms the read.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	r, isResponse := m.(*jsonrpc.Response)
	if !isResponse {
		return c.writeLine(data)
	}
	if written, isMarked := strings.CutPrefix(fmt.Sprint(r.ID.Raw()), c.mark); isMarked {
		message, _ := wire.ReadObject(data)
		data = message.With("id", json.RawMessage(written)).Encode()
	}
	err = c.writeLine(data)
	if p, isRead := c.unconfirmed.LoadAndDelete(nameOf(r.ID)); isRead {
		if err == nil {
			err = output.WaitUntilRead(c.running, c.given.Out, time.Now().Add(receiveTimeout))
		}
		c.confirming.Go(func() { p.(*process).confirm(err == nil) })
	}
	if _, isKnown := c.calls.LoadAndDelete(r.ID); isKnown {
		c.open.Done()
	}
	return err
}

func (c *connection) writeLine(data []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.given.Out.Write(append(data, '\n'))
	return err
}

// refuse answers a line that is no message.
func (c *connection) refuse(code int, why string) {
	c.writeLine(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, why))
}
