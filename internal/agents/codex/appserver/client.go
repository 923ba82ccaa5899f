// Package appserver speaks with the server of OpenAI's Codex, which runs the threads that its terminals show: it asks what a
// thread does, puts messages into it, and answers what it asks. Nothing stays connected.
//
// One server serves all threads of a CODEX_HOME. It listens on a Unix socket and speaks JSON-RPC over WebSocket, without the
// field "jsonrpc". What is used here was tried with 0.169 and 0.171.
//
//   - A server that another user runs is refused.
//   - Whatever the server sends is bounded: two seconds for an answer or all pages of a list, maxMessage bytes for a message. A
//     longer message is skipped.
//   - An error says what was asked and of which thread. ErrGone is among its causes if the server is not there any more.
package appserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tailscale/peercred"

	"github.com/agentteammail/atm/internal/letter"
)

// Limits of what a server may send, in bytes; and how many events may wait to be taken.
const (
	maxMessage = 4 << 20
	maxSkipped = 256 << 20
	maxWaiting = 1024
)

// timeout is how long the server may take to accept a connection and to answer a request. Tests shorten it.
var timeout = 2 * time.Second

// ErrGone means that there is no server, or not any more.
var ErrGone = errors.New("codex's server is gone")

// errOther is of an answer that is none.
var errOther = errors.New("codex's server answers with something else")

// errTooLong is of a message that was skipped.
var errTooLong = errors.New("the message is too long")

// A Client is one connection to a server. It has one goroutine. Its methods may be called concurrently.
type Client struct {
	conn *webSocket

	events  chan Event
	stopped chan struct{} // closed when reading has ended

	mu      sync.Mutex
	lastID  int64
	waiting map[int64]chan answer // for their answers
	err     error                 // why reading has ended
}

// An answer is the server's to one request.
type answer struct {
	result  json.RawMessage
	problem *struct {
		Message string `json:"message"`
	}
}

// message is any that a server sends: an answer has no method, a notification no id, and a request has both.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// notWanted are notifications that the server is asked not to send: they come with every word.
var notWanted = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/commandExecution/outputDelta", "item/fileChange/outputDelta",
	"item/fileChange/patchUpdated", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded",
	"item/reasoning/textDelta", "item/mcpToolCall/progress", "rawResponseItem/completed", "rawResponse/completed",
	"turn/diff/updated", "turn/plan/updated", "thread/tokenUsage/updated", "account/rateLimits/updated",
}

// Dial connects to the server that listens on a socket.
func Dial(ctx context.Context, socket string) (*Client, error) {
	c := &Client{events: make(chan Event, maxWaiting), stopped: make(chan struct{}), waiting: map[int64]chan answer{}}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.connect(limited, socket)
	if err != nil {
		return nil, fmt.Errorf("connect to codex's server at %s: %w", socket, err)
	}
	go c.read()
	if err := c.initialize(limited); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) connect(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return oneLine(ctx, fmt.Errorf("%w: %w", ErrGone, err))
	}
	if err := checkPeer(conn, os.Geteuid()); err != nil {
		conn.Close()
		return err
	}
	if c.conn, err = newWebSocket(ctx, conn); err != nil {
		return oneLine(ctx, err)
	}
	return nil
}

// checkPeer checks that the process at the other end is the user's.
func checkPeer(conn net.Conn, user int) error {
	creds, err := peercred.Get(conn)
	if err != nil {
		return err
	}
	if uid, ok := creds.UserID(); !ok || uid != strconv.Itoa(user) {
		return fmt.Errorf("user %s listens there, not you", cmp.Or(uid, "unknown"))
	}
	return nil
}

func (c *Client) initialize(ctx context.Context) error {
	type info struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	type capabilities struct {
		Experimental bool     `json:"experimentalApi"` // the queue is
		NotWanted    []string `json:"optOutNotificationMethods"`
	}
	_, err := get[struct{}](ctx, c, "initialize", "", struct {
		Info         info         `json:"clientInfo"`
		Capabilities capabilities `json:"capabilities"`
	}{info{"atm", "atm", "1"}, capabilities{true, notWanted}})
	if err != nil {
		return err
	}
	return c.write(ctx, map[string]string{"method": "initialized"})
}

// Close hangs up, and waits for the goroutine.
func (c *Client) Close() error {
	c.conn.conn.Close()
	<-c.stopped
	return nil
}

// Events are what happens in the threads that were resumed, and what all clients are told. The channel is closed
// when the connection has ended; Err says why. Whoever does not take them loses the connection.
func (c *Client) Events() <-chan Event { return c.events }

// Err says why the connection has ended; nil: it has not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read takes what the server sends until the connection ends.
func (c *Client) read() {
	var err error
	for err == nil {
		var data []byte
		if data, err = c.conn.read(); err == nil {
			err = c.handle(data)
		} else if errors.Is(err, errTooLong) {
			err = nil
		}
	}
	c.conn.conn.Close()
	c.mu.Lock()
	c.err = fmt.Errorf("%w: %w", ErrGone, oneLine(context.Background(), err))
	for _, waiting := range c.waiting {
		close(waiting)
	}
	c.waiting = nil
	c.mu.Unlock()
	close(c.events)
	close(c.stopped)
}

// handle passes one message on. One that cannot be understood counts for nothing: a call waits for its answer no longer
// than that.
func (c *Client) handle(data []byte) error {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	if m.Method == "" {
		c.handleAnswer(m)
		return nil
	}
	e := newEvent(m)
	select {
	case c.events <- e:
		return nil
	default:
		return errors.New("nobody takes its events")
	}
}

func (c *Client) handleAnswer(m message) {
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	a := answer{result: m.Result}
	if len(m.Error) > 0 && !bytes.Equal(m.Error, []byte("null")) {
		json.Unmarshal(m.Error, &a.problem)
		a.problem = cmp.Or(a.problem, &struct {
			Message string `json:"message"`
		}{})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.waiting[id]; waiting != nil {
		waiting <- a
		delete(c.waiting, id)
	}
}

// A RefusedError is the server's answer that it does not do what it was asked.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return "codex's server refuses: " + e.Message }

// get asks the server for something, and reads the answer. The thread is for the error.
func get[T any](ctx context.Context, c *Client, method, thread string, params any) (result T, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := c.call(ctx, method, params)
	if err == nil {
		if err = json.Unmarshal(data, &result); err != nil {
			err = errOther
		}
	}
	if err != nil && thread != "" {
		err = fmt.Errorf("%s of thread %s: %w", method, letter.OneLine(thread, 40), err)
	} else if err != nil {
		err = fmt.Errorf("%s: %w", method, err)
	}
	return result, err
}

func (c *Client) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answered := make(chan answer, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.lastID++
	id := c.lastID
	c.waiting[id] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	err := c.write(ctx, struct {
		ID     int64  `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{id, method, params})
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, oneLine(ctx, ctx.Err())
	case a, ok := <-answered:
		if !ok {
			return nil, c.Err()
		}
		if a.problem != nil {
			return nil, &RefusedError{Message: letter.OneLine(cmp.Or(a.problem.Message, "it does not say why"), 300)}
		}
		return a.result, nil
	}
}

func (c *Client) write(ctx context.Context, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = c.conn.write(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, oneLine(ctx, err))
	}
	return nil
}

// oneLine makes an error short, and says when it is that the server took too long. Causes that callers ask for stay.
func oneLine(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if errors.Is(err, ErrGone) {
		return err
	}
	return errors.New(letter.OneLine(err.Error(), 300))
}
