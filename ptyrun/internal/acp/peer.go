package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coder/acp-go-sdk"
)

// peer is the agent as the other end of JSON-RPC: a message is a line. The SDK's connection ends when many notifications
// come at once, and keeps no order between notifications, requests and responses.
type peer struct {
	calls      map[int]func(result json.RawMessage, err error) // what is done with the response to each request of ours
	requests   map[string]context.CancelFunc                   // the agent's open ones, by ID
	lastID     int
	unsent     [][]byte
	unsentSize int
	isGone     bool // it takes no more
}

func newPeer() peer {
	return peer{calls: map[int]func(json.RawMessage, error){}, requests: map[string]context.CancelFunc{}}
}

const (
	maxLine     = 64 << 20 // bytes of one message of the agent's
	maxRequests = 1000     // that are open
)

// errGone means that the agent has ended, or will be.
var errGone = errors.New("the agent is gone")

// call sends a request to the agent. done is called with the response, in order with everything else that it sends.
func (a *Agent) call(method string, params any, done func(result json.RawMessage, err error)) {
	raw, err := json.Marshal(params)
	if err == nil && a.peer.isGone {
		err = errGone
	}
	if err != nil {
		done(nil, err)
		return
	}
	a.peer.lastID++
	a.peer.calls[a.peer.lastID] = done
	a.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.peer.lastID, method, raw))
}

// request sends a request and waits for the response, for connect.
func request[R any](a *Agent, method string, params any) (r R, err error) {
	answered := make(chan struct{})
	a.do(func() {
		a.isConnecting = false
		a.call(method, params, func(result json.RawMessage, e error) {
			if err = e; err == nil && !isNull(result) {
				err = json.Unmarshal(result, &r)
			}
			a.isConnecting = true
			close(answered)
		})
	})
	<-answered
	return r, err
}

func (a *Agent) notify(method string, params any) {
	raw, _ := json.Marshal(params) // of ours: cannot fail
	a.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, raw))
}

func (a *Agent) send(line []byte) {
	if !a.peer.isGone {
		a.peer.unsent = append(a.peer.unsent, append(line, '\n'))
		a.peer.unsentSize += len(line)
	}
}

// write sends the agent what is for it.
func (a *Agent) write() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for len(a.peer.unsent) == 0 && !a.peer.isGone {
			a.changed.Wait()
		}
		lines := a.peer.unsent
		if a.peer.unsent = nil; a.peer.isGone {
			return
		}
		a.mu.Unlock()
		_, err := a.child.Stdin.Write(bytes.Join(lines, nil))
		a.mu.Lock()
		a.peer.unsentSize = 0
		for _, line := range a.peer.unsent {
			a.peer.unsentSize += len(line)
		}
		if err != nil {
			a.giveUp("it closed its input", endGrace)
			return
		}
		a.changed.Broadcast()
	}
}

// hangUp ends the calls that get no response any more.
func (a *Agent) hangUp() {
	a.peer.isGone = true
	for id, done := range a.peer.calls {
		delete(a.peer.calls, id)
		done(nil, errGone)
	}
}

// receive takes a message, when connect has gone on with the last one and there is room for what follows from this one.
func (a *Agent) receive(line []byte) {
	line = bytes.ToValidUTF8(line, []byte("\ufffd")) // a copy
	var m struct {
		ID             json.RawMessage
		Method         string
		Params, Result json.RawMessage
		Error          *acp.RequestError
	}
	err := json.Unmarshal(line, &m)
	a.do(func() {
		for a.isConnecting || a.isFull() {
			a.changed.Wait()
		}
		switch {
		case err != nil:
			if text := bytes.TrimSpace(line); len(text) > 0 {
				a.note("not of the protocol: " + string(text[:min(len(text), maxRaw)]))
			}
		case m.Method == "" && !isNull(m.ID):
			id, _ := strconv.Atoi(string(m.ID))
			done := a.peer.calls[id]
			if delete(a.peer.calls, id); done == nil {
				return
			}
			if m.Error != nil {
				done(nil, m.Error)
			} else {
				done(m.Result, nil)
			}
		case !isNull(m.ID):
			a.serve(m.ID, m.Method, m.Params)
		case m.Method == "$/cancel_request":
			var p struct{ RequestID json.RawMessage }
			json.Unmarshal(m.Params, &p)
			if cancel := a.peer.requests[string(p.RequestID)]; cancel != nil {
				cancel()
			}
		case m.Method == acp.ClientMethodSessionUpdate:
			a.update(m.Params, line)
		}
	})
}

// serve asks what the agent asks, and answers it beside all other requests. It has no other methods.
func (a *Agent) serve(id json.RawMessage, method string, params json.RawMessage) {
	response := func(what string, v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			what, raw = "error", []byte(`{"code":-32603,"message":"Internal error"}`)
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, id, what, raw)
	}
	if method != acp.ClientMethodSessionRequestPermission {
		a.send(response("error", acp.NewMethodNotFound(method)))
		return
	}
	var p permissionRequest
	if err := json.Unmarshal(params, &p); err != nil {
		a.send(response("error", acp.NewInvalidParams(map[string]any{"error": err.Error()})))
		return
	}
	if _, isOpen := a.peer.requests[string(id)]; isOpen || len(a.peer.requests) >= maxRequests {
		a.send(response("error", acp.NewInvalidRequest("too many requests, or two with one ID")))
		return
	}
	ctx, cancel := context.WithCancel(a.running)
	a.peer.requests[string(id)] = cancel
	outcome := a.askPermission(ctx, p)
	go func() {
		line := response("result", acp.RequestPermissionResponse{Outcome: outcome()})
		a.do(func() {
			cancel()
			delete(a.peer.requests, string(id))
			a.send(line)
		})
	}()
}

func isNull(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }
