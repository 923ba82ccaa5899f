// Package control is how other processes reach an agent's runner: a Unix socket
// in the agent's run directory.
//
//	<agent>/run/control.sock   0600, there while the runner runs
//
// What may be relied on:
//
//   - Only the runner's own user, and root, get through; a client likewise talks
//     to nobody else. Each end asks the kernel who the other is.
//   - A server never waits for a client. Who does not send gets no thread of
//     the Handler's; who does not read what an agent prints is dropped once
//     1 MiB of it waits.
//   - Lines and frames are bounded. What cannot be understood is answered with
//     an error and changes nothing.
//   - A client learns at once that nobody is there, and soon (Patience) that
//     who is there does not answer.
//   - Close removes the socket unless it is somebody else's by now, and comes
//     back when every goroutine of the server has ended.
//
// On the wire: the server says first who it is, in one line of JSON,
//
//	{"atm":"control","version":1,"pid":4711}
//
// and then answers requests, a line each, one after the other:
//
//	{"op":"screen","last":50}
//	{"ok":true,"result":{"lines":[…],…}}       or
//	{"error":{"code":"refused","message":"…","hint":"…"}}
//
// After the answer to "attach" the connection carries frames: a byte that says
// of which kind, the length in four bytes, big end first, and so many bytes.
//
//	to the client   o output   x {"code":0,"signal":""}   d {"reason":"…"}
//	to the server   i input    r {"cols":80,"rows":24}    d (empty)
//
// The output ends with one x or d; a frame of another kind is passed over.
package control

import (
	"context"
	"errors"
	"time"
)

// SocketName is the name of the socket in a run directory.
const SocketName = "control.sock"

// Patience is how long Dial waits until the server has said who it is. It
// says so at once, whatever the runner is busy with, so that only one that is
// stopped or stuck takes longer.
const Patience = 500 * time.Millisecond

var (
	// ErrNoRunner: nobody listens there.
	ErrNoRunner = errors.New("no runner")
	// ErrNotAnswering is wrapped by a NotAnsweringError.
	ErrNotAnswering = errors.New("the runner does not answer")
	// ErrGone: the runner ended, or broke off, before it had answered.
	ErrGone = errors.New("the runner ended before it answered")
	// ErrInUse: another server listens there.
	ErrInUse = errors.New("a runner listens there already")
	// ErrUnsupported: this system cannot run agents in terminals.
	ErrUnsupported = errors.New("agents are run on Linux, macOS and FreeBSD only")
)

// A NotAnsweringError says which process listens and does not answer.
type NotAnsweringError struct {
	PID int // 0 where the system does not tell
}

func (e *NotAnsweringError) Error() string { return ErrNotAnswering.Error() }

// Unwrap returns ErrNotAnswering.
func (e *NotAnsweringError) Unwrap() error { return ErrNotAnswering }

// An Error is an answer that is none. Codes are those of the command line:
// failed, usage, ambiguous, not_found, timeout, locked, refused.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Handler is the runner. Calls come from several goroutines at once. A context
// ends when its client has gone or the server closes; what has to be finished
// all the same, as a stop that has begun, is the Handler's to finish. A method
// returns soon after its context has ended: Close waits for it. An error that
// is no *Error gets the code "failed", or "timeout" where its context's deadline
// was the reason.
type Handler interface {
	Status(ctx context.Context) (Status, error)
	Screen(ctx context.Context, r ScreenRequest) (Screen, error)
	Type(ctx context.Context, r TypeRequest) (Outcome, error)
	Interrupt(ctx context.Context) (Outcome, error)
	Answer(ctx context.Context, r AnswerRequest) (Outcome, error)
	Stop(ctx context.Context, r StopRequest) (Outcome, error)
	Restart(ctx context.Context) (Outcome, error)
	// Attach serves a viewer until its Input is closed, the context ends or
	// the child has ended, in which case it calls Exit. With an error before
	// anything was sent, the client is told that instead of being attached.
	Attach(ctx context.Context, r AttachRequest, v *Viewer) error
}

// Status is what a runner says about itself.
type Status struct {
	PID      int       `json:"pid"`
	ChildPID int       `json:"child_pid,omitempty"`
	Run      string    `json:"run"`
	Driver   string    `json:"driver"`
	State    string    `json:"state"`
	Detail   string    `json:"detail,omitempty"`
	Started  time.Time `json:"started"`
	Ready    bool      `json:"ready"`
	Restarts int       `json:"restarts"`
	Command  []string  `json:"command"`
	Cols     int       `json:"cols"`
	Rows     int       `json:"rows"`
	Viewers  int       `json:"viewers"`
	Gate     string    `json:"gate,omitempty"` // why mail waits
}

// ScreenRequest asks for what is on the screen.
type ScreenRequest struct {
	ANSI bool // with colours, in Screen.ANSI
	Last int  // so many lines, reaching into the scrollback; 0: the screen
}

// Screen is what an agent's terminal shows.
type Screen struct {
	Lines   []string `json:"lines"`
	ANSI    string   `json:"ansi,omitempty"`
	Cols    int      `json:"cols"`
	Rows    int      `json:"rows"`
	CursorX int      `json:"cursor_x"` // from 0
	CursorY int      `json:"cursor_y"`
	Title   string   `json:"title"`
	State   string   `json:"state"`
	Detail  string   `json:"detail,omitempty"`
	Alt     bool     `json:"alt"` // the alternate screen is on
}

// TypeRequest asks to type.
type TypeRequest struct {
	Text  string // any bytes
	Raw   bool   // as they are: no paste marks, nothing removed
	Enter bool   // and then the key that submits
}

// AnswerRequest asks to answer what the agent's screen asks.
type AnswerRequest struct {
	ID     string // of the question; empty: the only one
	Option string // the option's id; empty: what allows, or with Deny what denies
	Deny   bool
	Reason string
	By     string // who answers
}

// StopRequest asks to end the agent, all that it started, and the runner.
type StopRequest struct {
	Grace time.Duration // for each step; 0: the runner's own
}

// AttachRequest asks to join a terminal.
type AttachRequest struct {
	Cols, Rows int
	ReadOnly   bool // nothing that this viewer sends is typed
}

// Outcome says what came of a request.
type Outcome struct {
	Done   string   `json:"done"` // "interrupted", "stopped", …
	Detail string   `json:"detail,omitempty"`
	Ended  []string `json:"ended,omitempty"` // processes that were ended
}

// Size is a terminal's, in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// valid says whether a terminal may have the size.
func (s Size) valid() bool {
	const most = 10_000
	return s.Cols >= 1 && s.Cols <= most && s.Rows >= 1 && s.Rows <= most
}

// Exit is how the child ended.
type Exit struct {
	Code   int    `json:"code"` // 128+n where signal n ended it
	Signal string `json:"signal,omitempty"`
}

// A Peer is the process at the other end.
type Peer struct {
	UID int
	PID int // 0 where the system does not tell
}

type peerKey struct{}

// PeerOf returns the client on whose behalf a Handler's method was called, by
// the context that it was given. What the process of that number has in its
// environment tells an agent's command from a person's.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// admits reports whether a process of user me deals with one of user peer.
func admits(me, peer int) bool { return peer == me || peer == 0 }
