package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"
)

// lookLimit is how long a client waits for what a runner can say at once.
const lookLimit = 5 * time.Second

// A Client talks to one runner, one request at a time: it is not for several
// goroutines. After an error that is no *Error it is of no more use.
type Client struct {
	file *os.File
	r    *bufio.Reader
	peer Peer
}

// Dial connects to the runner of a run directory. ErrNoRunner: nobody listens;
// NotAnsweringError: somebody does, and has not said a word within Patience, or
// before the deadline of ctx where it has one.
func Dial(ctx context.Context, dir string) (*Client, error) {
	return dialAs(ctx, dir, os.Geteuid())
}

func dialAs(ctx context.Context, dir string, me int) (*Client, error) {
	if _, limited := ctx.Deadline(); !limited {
		patient, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		ctx = patient
	}
	f, peer, err := dial(ctx, dir)
	if err != nil {
		return nil, err
	}
	c := &Client{file: f, r: bufio.NewReader(f), peer: peer}
	// Root may talk to everybody's runner, and nobody is fooled by root.
	if !admits(me, peer.UID) && me != 0 {
		f.Close()
		return nil, &Error{Code: "refused", Message: fmt.Sprintf("user %d listens on %s, who is not its owner", peer.UID, f.Name())}
	}
	if err := c.greeted(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// greeted reads the server's first line.
func (c *Client) greeted(ctx context.Context) error {
	line, err := c.line(ctx)
	if err != nil {
		return err
	}
	var g greeting
	var a answer
	if json.Unmarshal(line, &g) != nil || json.Unmarshal(line, &a) != nil {
		return fmt.Errorf("what listens on %s does not talk like a runner", c.file.Name())
	}
	switch {
	case a.Error != nil:
		return a.Error
	case g.ATM != "control":
		return fmt.Errorf("what listens on %s does not talk like a runner", c.file.Name())
	case g.Version > version:
		return &Error{Code: "failed", Message: fmt.Sprintf("the runner is of a newer atm (control version %d)", g.Version), Hint: "use the atm that started it; atm version says which this is"}
	}
	if c.peer.PID == 0 {
		c.peer.PID = g.PID
	}
	return nil
}

// Peer is the process that listens.
func (c *Client) Peer() Peer { return c.peer }

// Close ends the connection.
func (c *Client) Close() error { return c.file.Close() }

// Status asks what the runner does.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return s, c.call(ctx, request{Op: opStatus}, &s)
}

// Screen asks for what is on the screen.
func (c *Client) Screen(ctx context.Context, r ScreenRequest) (s Screen, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return s, c.call(ctx, request{Op: opScreen, ANSI: r.ANSI, Last: r.Last}, &s)
}

// Type asks to type.
func (c *Client) Type(ctx context.Context, r TypeRequest) (Outcome, error) {
	req := request{Op: opType, Text: r.Text, Raw: r.Raw, Enter: r.Enter}
	if !utf8.ValidString(r.Text) {
		req.Text, req.Bytes = "", []byte(r.Text)
	}
	return c.outcome(ctx, req)
}

// Interrupt asks to interrupt what the agent does.
func (c *Client) Interrupt(ctx context.Context) (Outcome, error) {
	return c.outcome(ctx, request{Op: opInterrupt})
}

// Answer asks to answer the agent's question.
func (c *Client) Answer(ctx context.Context, r AnswerRequest) (Outcome, error) {
	return c.outcome(ctx, request{Op: opAnswer, ID: r.ID, Option: r.Option, Deny: r.Deny, Reason: r.Reason, By: r.By})
}

// Stop asks to end the agent and its runner.
func (c *Client) Stop(ctx context.Context, r StopRequest) (Outcome, error) {
	return c.outcome(ctx, request{Op: opStop, GraceMS: r.Grace.Milliseconds()})
}

// Restart asks to start the agent's program anew.
func (c *Client) Restart(ctx context.Context) (Outcome, error) {
	return c.outcome(ctx, request{Op: opRestart})
}

func (c *Client) outcome(ctx context.Context, r request) (o Outcome, err error) {
	return o, c.call(ctx, r, &o)
}

// call sends a request and reads the answer, as long as ctx allows.
func (c *Client) call(ctx context.Context, r request, result any) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) >= maxLine {
		return bad("the request is over 4 MiB")
	}
	c.file.SetWriteDeadline(time.Now().Add(answerLimit))
	// One that was refused has an answer all the same: read it.
	if _, err := c.file.Write(append(data, '\n')); errors.Is(err, os.ErrDeadlineExceeded) {
		return &NotAnsweringError{PID: c.peer.PID}
	}
	line, err := c.line(ctx)
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("the runner's answer cannot be read: %w", err)
	}
	switch {
	case a.Error != nil:
		return a.Error
	case !a.OK:
		return errors.New("the runner's answer says nothing")
	case result != nil && a.Result != nil:
		if err := json.Unmarshal(a.Result, result); err != nil {
			return fmt.Errorf("the runner's answer cannot be read: %w", err)
		}
	}
	return nil
}

// line reads the next line until ctx ends; where that was a deadline the runner
// does not answer.
func (c *Client) line(ctx context.Context) ([]byte, error) {
	c.file.SetReadDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { c.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := readLine(c.r, maxLine)
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &NotAnsweringError{PID: c.peer.PID}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), reset(err):
		return nil, ErrGone
	}
	return nil, err
}

// Wait waits until the runner has closed the connection, as its end does.
func (c *Client) Wait(ctx context.Context) error {
	_, err := c.line(ctx)
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
