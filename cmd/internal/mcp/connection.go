package mcp

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentteammail/atm/cmd/internal/output"
)

// A connection is the SDK's, on stdin and stdout. It ends only when all calls that came before the end of stdin are answered,
// which the SDK would drop: the client may be a file. And it knows when the response of a read was received.
type connection struct {
	sdk.Connection
	*server
	calls sync.Map // the IDs of unanswered calls
	open  sync.WaitGroup
}

// Connect makes the only connection.
func (s *server) Connect(ctx context.Context) (sdk.Connection, error) {
	stdio, err := (&sdk.StdioTransport{}).Connect(ctx)
	return &connection{Connection: stdio, server: s}, err
}

// Close ends the server.
func (c *connection) Close() error {
	c.stop()
	return c.Connection.Close()
}

// Read returns the client's next message.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" { // which gets no response
		if _, isKnown := c.calls.LoadOrStore(r.ID, true); !isKnown {
			c.open.Add(1)
		}
	}
	if err != nil {
		c.disconnect()
		answered, stop := context.WithCancel(c.running)
		go func() {
			c.open.Wait()
			stop()
		}()
		<-answered.Done()
	}
	return m, err
}

// Write writes a message. If that is the response of a read, it says whether it was received. A client drops the response of a
// call that it has cancelled.
func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	r, isResponse := m.(*jsonrpc.Response)
	if !isResponse {
		return err
	}
	if p := c.unconfirmed.Load(); p != nil && bytes.Contains(r.Result, []byte(p.mark)) {
		if err == nil {
			err = output.WaitUntilRead(c.running, c.given.Out, time.Now().Add(output.Patience))
		}
		p.isReceived <- err == nil && p.call.Err() == nil
	}
	if _, isKnown := c.calls.LoadAndDelete(r.ID); isKnown {
		c.open.Done()
	}
	return err
}
