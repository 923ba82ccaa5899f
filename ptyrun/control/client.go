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
)

// answerLimit is for what a runner can say, or take, at once.
const answerTimeout = 5 * time.Second

// A Client talks to one runner, one request at a time: it is not for several goroutines. Its methods are
// the Handler's. After an error that is no *Error it is of no more use.
type Client struct{ conn *connection }

// Dial connects to the runner of a run directory. ErrNoRunner: nobody listens; NotAnsweringError: somebody
// does, and is silent until ctx's deadline, or for Patience.
func Dial(ctx context.Context, dir string) (*Client, error) {
	conn, err := connect(dir)
	isTooLong := errors.Is(err, syscall.EINVAL) // a runner would have made a link to a shorter path
	if isTooLong || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoRunner
	}
	if err != nil {
		return nil, cmp.Or(foreignRunnerError(dir), err)
	}
	c := &Client{newConnection(conn)}
	if err := c.readGreeting(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// othersRunner is the error of a socket that another user's runner has made; nil: it is this user's.
func foreignRunnerError(dir string) error {
	info, err := os.Stat(socketPath(dir))
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
	hint := "only " + name + " and root may do that; atm send reaches the agent"
	return &Error{Code: "refused", Message: "it runs as another user, " + name, Hint: hint}
}

// greet makes sure that a runner of this user is at the other end.
func (c *Client) readGreeting(ctx context.Context) error {
	// Root may talk to everybody's runner, and nobody is fooled by root.
	if !c.conn.isTrusted() && os.Geteuid() != 0 {
		return &Error{Code: "refused", Message: "what listens there is not of this user"}
	}
	if _, limited := ctx.Deadline(); !limited {
		patient, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		ctx = patient
	}
	var spoken int
	err := c.readAnswer(ctx, &spoken)
	if err == nil && spoken != version {
		err = &Error{Code: "failed", Message: "the runner is of another version of atm", Hint: "use the one that started it"}
	}
	return err
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "status", nil)
}
func (c *Client) Screen(ctx context.Context, r ScreenRequest) (Screen, error) {
	return ask[Screen](ctx, c, "screen", r)
}
func (c *Client) Type(ctx context.Context, r TypeRequest) (Outcome, error) {
	return ask[Outcome](ctx, c, "type", r)
}
func (c *Client) Interrupt(ctx context.Context) (Outcome, error) {
	return ask[Outcome](ctx, c, "interrupt", nil)
}
func (c *Client) Answer(ctx context.Context, r AnswerRequest) (Outcome, error) {
	return ask[Outcome](ctx, c, "answer", r)
}
func (c *Client) Stop(ctx context.Context) (Outcome, error) {
	return ask[Outcome](ctx, c, "stop", nil)
}
func (c *Client) Restart(ctx context.Context) (Outcome, error) {
	return ask[Outcome](ctx, c, "restart", nil)
}

// ask sends a request and reads the answer, as long as ctx allows.
func ask[A any](ctx context.Context, c *Client, op string, with any) (result A, err error) {
	if op == "status" || op == "screen" || op == "attach" {
		limited, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		ctx = limited
	}
	c.conn.SetWriteDeadline(time.Now().Add(answerTimeout))
	c.conn.Encode(map[string]any{"op": op, "with": with}) // an error shows when the answer is read
	err = c.readAnswer(ctx, &result)
	return result, err
}

func (c *Client) readAnswer(ctx context.Context, result any) error {
	defer context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	said := answer{Result: result}
	err := c.conn.Decode(&said)
	switch {
	case err == nil && said.Error == nil:
		return nil
	case err == nil:
		return said.Error
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &NotAnsweringError{PID: c.conn.pid}
	}
	return cmp.Or(ctx.Err(), ErrGone)
}

// A Terminal is what joins an agent's.
type Terminal struct {
	In    <-chan []byte // what is typed; closed when the terminal has gone
	Out   io.Writer     // called by two goroutines; an error ends the attachment
	Sizes <-chan Size   // the terminal's size, whenever it changes
}

// An Ending is how an attachment ended.
type Ending struct {
	Detached bool   // by the key, by the context, or because the terminal has gone:
	Gone     bool   // that is why
	Exit     *Exit  // the child has ended
	Reason   string // the runner's, when neither: "the runner ends"
	err      error
}

// Attach joins the agent's terminal until the child ends, the detach key is typed (DetachKey), or ctx ends,
// which detaches as well. The client is of no more use then.
func (c *Client) Attach(ctx context.Context, r AttachRequest, t Terminal) (Ending, error) {
	defer c.Close()
	if _, err := ask[any](ctx, c, "attach", r); err != nil {
		return Ending{}, err
	}
	shown := make(chan Ending, 1)
	go func() { shown <- c.showOutput(t.Out) }()
	end := c.sendInput(ctx, t, shown)
	if end.Detached {
		c.conn.CloseWrite()
		select {
		case <-shown: // all that was typed has arrived
		case <-time.After(300 * time.Millisecond):
		}
	}
	return end, end.err
}

// follow passes on what is typed and how large the terminal is.
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
				return Ending{Detached: true, Gone: true}
			}
			repaint := showsKeys
			in, showsKeys, detach = keys.scan(p, time.Now())
			if in.Repaint = repaint; showsKeys {
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
		c.conn.SetWriteDeadline(time.Now().Add(answerTimeout))
		c.conn.Encode(in) // where that fails the output ends
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
			c.conn.SetWriteDeadline(time.Now().Add(answerTimeout))
			json.NewEncoder(c.conn.UnixConn).Encode(Input{Repaint: true}) // follow has the other one
		}
		if line.Exit != nil || line.Detached != "" {
			return Ending{Exit: line.Exit, Reason: line.Detached}
		}
		if _, err := out.Write(line.Out); err != nil {
			return Ending{err: fmt.Errorf("writing to the terminal: %w", err)}
		}
	}
}
