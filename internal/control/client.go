package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/reducer/ask"
)

// answerTimeout is for a request that the runner can answer at once, and for it to read one.
const answerTimeout = 5 * time.Second

// A Client talks to one runner, one request at a time; only one goroutine may use it. Its methods are the Handler's.
// After an error that is no *Error it cannot be used any more.
type Client struct {
	By       string        // the name of whoever asks, as in TypeRequest
	Patience time.Duration // with a runner that should answer at once; 0: five seconds

	conn *connection
}

// Dial connects to the runner of a run directory. The error is ErrNoRunner if nobody listens or another agent's runner
// does, an OtherUserError or an OtherVersionError, and a NotAnsweringError if the runner is silent until ctx's deadline,
// or without one for DialTimeout.
func Dial(ctx context.Context, dir string) (*Client, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, ErrNoRunner
	}
	conn, err := connect(dir)
	isTooLong := errors.Is(err, syscall.EINVAL) // the path is: a runner would have replaced it with a link
	if isTooLong || errors.Is(err, ErrNoRunner) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoRunner
	}
	if err != nil {
		return nil, cmp.Or(foreignRunnerError(dir), err)
	}
	c := &Client{conn: newConnection(conn, maxAnswer)}
	if err := c.readGreeting(ctx, id); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// foreignRunnerError returns the error for a socket of another user's runner; nil: it is this user's.
func foreignRunnerError(dir string) error {
	path, _ := socketPath(dir)
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	uid := durable.Owner(info)
	if uid == nil || *uid == os.Geteuid() {
		return nil
	}
	name := strconv.Itoa(*uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return &OtherUserError{User: name}
}

// readGreeting checks that a runner of this user and this version is at the other end, and that it serves the directory
// with that id.
func (c *Client) readGreeting(ctx context.Context, id string) error {
	// Root may talk to anybody's runner.
	if !c.conn.isTrusted() && os.Geteuid() != 0 {
		return Refused("another user's process listens on its socket")
	}
	if _, limited := ctx.Deadline(); !limited {
		patient, cancel := context.WithTimeout(ctx, DialTimeout)
		defer cancel()
		ctx = patient
	}
	var spoken int
	greeting, err := c.readLine(ctx, &spoken)
	if err == nil && spoken != version {
		err = &OtherVersionError{PID: c.conn.pid}
	} else if err == nil && greeting.Directory != id {
		err = ErrNoRunner
	}
	return err
}

func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, "status", nil)
}
func (c *Client) Screen(ctx context.Context, r ScreenRequest) (Screen, error) {
	return call[Screen](ctx, c, "screen", r)
}
func (c *Client) Type(ctx context.Context, r TypeRequest) (Outcome, error) {
	return call[Outcome](ctx, c, "type", r)
}

// requestBy says who asks; every request may.
type requestBy struct {
	By string `json:"by,omitempty"`
}

func (c *Client) Interrupt(ctx context.Context) (Outcome, error) {
	return call[Outcome](ctx, c, "interrupt", requestBy{c.By})
}
func (c *Client) Answer(ctx context.Context, r ask.Answer) (Outcome, error) {
	return call[Outcome](ctx, c, "answer", r)
}
func (c *Client) Stop(ctx context.Context) (Outcome, error) {
	return call[Outcome](ctx, c, "stop", requestBy{c.By})
}
func (c *Client) Restart(ctx context.Context, r RestartRequest) (Outcome, error) {
	r.By = c.By
	return call[Outcome](ctx, c, "restart", r)
}

// call sends a request and reads the answer. ctx limits the wait. The greeting proves nothing about the runner's loop, so
// before a request that may take long the runner has to answer one that does not.
func call[A any](ctx context.Context, c *Client, op string, with any) (result A, err error) {
	if op == "status" || op == "screen" || op == "plugin" {
		limited, cancel := context.WithTimeout(ctx, cmp.Or(c.Patience, answerTimeout))
		defer cancel()
		ctx = limited
	} else if _, err := c.Status(ctx); err != nil {
		if _, isAnswer := errors.AsType[*Error](err); !isAnswer {
			return result, err
		}
	}
	c.send(map[string]any{"op": op, "with": with})
	err = c.readAnswer(ctx, &result)
	return result, err
}

// send sends a line; several goroutines may call it. If it fails, the connection is closed, so that reading fails too
// and no later line follows a lost one.
func (c *Client) send(line any) {
	c.conn.SetWriteDeadline(time.Now().Add(answerTimeout))
	if json.NewEncoder(c.conn.UnixConn).Encode(line) != nil {
		c.conn.Close()
	}
}

func (c *Client) readAnswer(ctx context.Context, result any) error {
	_, err := c.readLine(ctx, result)
	return err
}

func (c *Client) readLine(ctx context.Context, result any) (answer, error) {
	defer context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	reply := answer{Result: result}
	err := c.conn.Decode(&reply)
	switch {
	case err == nil && reply.Error == nil:
		return reply, nil
	case err == nil:
		return reply, reply.Error
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return reply, &NotAnsweringError{PID: c.conn.pid}
	}
	return reply, cmp.Or(ctx.Err(), ErrGone)
}

// A Terminal is the client's side of an attachment.
type Terminal struct {
	In    <-chan []byte // typed bytes; closed when the terminal is gone
	Out   io.Writer     // two goroutines write to it; an error ends the attachment
	Sizes <-chan Size   // the new size at each change
}

// An Ending is how an attachment ended.
type Ending struct {
	Detached     bool   // by the detach key, by the context or because the terminal is gone
	TerminalGone bool   // the terminal is
	Exit         *Exit  // the child exited
	Reason       string // the runner's, if neither: "the runner ends"
	err          error
}

// Attach attaches a terminal until the child exits, the detach key is typed (DetachKey) or ctx ends, which detaches as
// well. The Client cannot be used afterwards.
func (c *Client) Attach(ctx context.Context, r AttachRequest, t Terminal) (Ending, error) {
	defer c.Close()
	r.By = c.By
	if _, err := call[any](ctx, c, "attach", r); err != nil {
		return Ending{}, err
	}
	shown := make(chan Ending, 1)
	go func() { shown <- c.showOutput(t.Out) }()
	end := c.sendInput(ctx, t, shown)
	if end.Detached {
		c.conn.CloseWrite()
		select {
		case <-shown: // the runner has read everything
		case <-time.After(300 * time.Millisecond):
		}
	}
	return end, end.err
}

// sendInput sends what is typed and the terminal's size until the attachment ends.
func (c *Client) sendInput(ctx context.Context, t Terminal, shown <-chan Ending) Ending {
	var keys keyScanner
	for showsKeys := false; ; {
		in, detach := Input{}, false
		var isLate <-chan time.Time
		if len(keys.partial) > 0 {
			isLate = time.After(time.Until(keys.partialUntil))
		}
		select {
		case p, ok := <-t.In:
			if !ok {
				return Ending{Detached: true, TerminalGone: true}
			}
			repaint := showsKeys
			in, showsKeys, detach = keys.scan(p, time.Now())
			in.Repaint = repaint
			if showsKeys {
				t.Out.Write([]byte(keysLine))
			}
		case <-isLate:
			in = keys.release()
		case in.Size = <-t.Sizes:
		case end := <-shown:
			return end
		case <-ctx.Done():
			return Ending{Detached: true}
		}
		c.send(in)
		if detach {
			return Ending{Detached: true}
		}
	}
}

func (c *Client) showOutput(out io.Writer) Ending {
	for {
		var line output
		if c.conn.Decode(&line) != nil {
			return Ending{err: ErrGone}
		}
		if line.Gap {
			c.send(Input{Repaint: true})
		}
		if line.Exit != nil || line.Detached != "" {
			return Ending{Exit: line.Exit, Reason: line.Detached}
		}
		if _, err := out.Write(line.Out); err != nil {
			return Ending{err: fmt.Errorf("writing to the terminal: %w", err)}
		}
	}
}
