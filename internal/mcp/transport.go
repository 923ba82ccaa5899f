package mcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport keeps the end of stdin back until what was asked before it is answered, which the SDK would
// drop: a client may be a file.
type transport struct {
	sdk.IOTransport
	running context.Context // Read gives up with it
	hangUp  func()          // has those stop that wait

	sdk.Connection
	calls    sync.Map // without an answer, by their ids
	isBroken atomic.Bool
}

func (t *transport) Connect(ctx context.Context) (c sdk.Connection, err error) {
	t.Connection, err = t.IOTransport.Connect(ctx)
	return t, err
}

// Read counts the calls but for a subscription, which is never answered.
func (t *transport) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if err != nil {
		t.hangUp()
		for t.isAsked() && !t.isBroken.Load() && t.running.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	} else if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && req.Method != "subscriptions/listen" {
		t.calls.Store(req.ID, true)
	}
	return m, err
}

// isAsked reports whether there is a call without an answer.
func (t *transport) isAsked() (isSo bool) {
	t.calls.Range(func(_, _ any) bool { isSo = true; return false })
	return isSo
}

func (t *transport) Write(ctx context.Context, m jsonrpc.Message) error {
	err := t.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		t.calls.Delete(r.ID)
	}
	t.isBroken.Store(err != nil)
	return err
}
