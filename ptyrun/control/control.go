// Package control is how other processes reach an agent's runner: a Unix socket in the agent's run
// directory, both ends of it.
//
//	<agent>/run/control.sock   0600, there while the runner runs
//
// A path that is too long for a socket is a symbolic link to one below $XDG_RUNTIME_DIR or the directory for temporary
// files. Each end asks the kernel who the other is, and deals only with its own user and root.
//
// On the wire are lines of JSON: first the server's version, then requests and answers.
//
//	{"ok":true,"result":2}
//	{"op":"screen","with":{"last":50}}
//	{"ok":true,"result":{"lines":[…],…}}   or   {"error":{"code":"refused","message":"…"}}
//
// After the answer to "attach" bytes go as base64, until exit or detached comes from the server or the
// client closes its sending half. The runner waits for no viewer: output for one that is too slow is left
// out, and after the gap it asks to be repainted.
//
//	from the server   {"out":"…"}  {"gap":true}  {"exit":{"code":0}}  {"detached":"why"}
//	from the client   {"in":"…"}  {"in":"…","report":true}  {"size":{"cols":80,"rows":24}}  {"repaint":true}
package control

import (
	"context"
	"errors"
	"time"
)

const (
	SocketName = "control.sock"         // of the socket in a run directory
	Patience   = 500 * time.Millisecond // of Dial; only a runner that is stopped takes longer to greet
)

var (
	ErrNoRunner     = errors.New("no runner")                  // nobody listens there
	ErrNotAnswering = errors.New("the runner does not answer") // a NotAnsweringError wraps it
	ErrGone         = errors.New("the runner ended before it answered")
)

// A NotAnsweringError says which process listens and does not answer; 0: not known.
type NotAnsweringError struct{ PID int }

func (e *NotAnsweringError) Error() string { return ErrNotAnswering.Error() }
func (e *NotAnsweringError) Unwrap() error { return ErrNotAnswering }

// An Error is what the runner answered instead of doing it. Codes are those of the command line: failed,
// usage, ambiguous, not_found, timeout, locked, refused.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Handler is the runner, called by several goroutines at once. A context ends when the server closes; a
// method returns soon after that, and its answer is still sent.
type Handler interface {
	// Status is the state at this moment.
	Status(ctx context.Context) (Status, error)
	// Screen is the screen at this moment. While no program runs it has the last lines of the one before.
	Screen(ctx context.Context, r ScreenRequest) (Screen, error)
	// Type types a text as a person does, and returns when the program's terminal has taken it; with Enter, when
	// the key has been pressed.
	Type(ctx context.Context, r TypeRequest) (Outcome, error)
	// Interrupt ends the turn, and returns when it is over ("interrupted"). A turn that goes on is an error. Of an idle
	// agent it presses nothing, which is none ("idle").
	Interrupt(ctx context.Context) (Outcome, error)
	// Answer presses an option of the dialog on the screen, and returns when that is gone.
	Answer(ctx context.Context, r AnswerRequest) (Outcome, error)
	// Stop ends the agent, all that it started, and the runner, and returns when they are gone.
	Stop(ctx context.Context) (Outcome, error)
	// Restart ends the program, to start it again. It returns before that ("restarting"); while no program runs,
	// the next one begins without its pause ("restarted").
	Restart(ctx context.Context) (Outcome, error)
	// Attach serves a viewer until its Input is closed, the context ends or the child has ended, in which
	// case it calls Exit. The viewer is told its error.
	Attach(ctx context.Context, r AttachRequest, v *Viewer) error
}

// Status is what a runner says about itself.
type Status struct {
	ChildPID    int       `json:"child_pid,omitempty"`
	State       string    `json:"state"` // a reducer.Activity
	Detail      string    `json:"detail,omitempty"`
	Driver      string    `json:"driver,omitempty"`
	Started     time.Time `json:"started"`
	Ready       bool      `json:"ready"`
	Viewers     int       `json:"viewers"`
	Gate        Gate      `json:"gate,omitempty"`
	ByLine      bool      `json:"by_line,omitempty"`      // each line of a text is submitted by itself
	Untyped     string    `json:"untyped,omitempty"`      // why a message that waits could not be typed in
	NotRecorded string    `json:"not_recorded,omitempty"` // why the recording has stopped
}

// MaxLine is how many bytes are typed without bracketed paste: a terminal line that is edited by the kernel keeps 4095,
// and loses the rest.
const MaxLine = 4000

// MaxTries is how many times a message is typed that the program may have had, or that has ended it.
const MaxTries = 3

// A Gate says why mail is not typed in at this moment. Where the screen is the reason it is the driver's
// word, of which only those that others tell apart are named here.
type Gate string

const (
	GateOpen     Gate = "" // it is typed in
	GateOff      Gate = "its program does not run"
	GateStopping Gate = "it is being stopped"
	GateDialog   Gate = "dialog"
	GateDrawing  Gate = "it is drawing"
	GateBusy     Gate = "busy"
	GateTyping   Gate = "a person types"
	GateSettling Gate = "idle for a moment only"
	GateDraft    Gate = "draft"
	GateNoPrompt Gate = "no prompt on the screen"
	GateUnread   Gate = "it shows nothing of what was typed last"
)

// ScreenRequest asks for what is on the screen.
type ScreenRequest struct {
	ANSI bool `json:"ansi,omitempty"` // with colours, in Screen.ANSI
	Last int  `json:"last,omitempty"` // so many lines, in ANSI too, reaching into the scrollback; 0: the screen
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
	State   string   `json:"state"` // a reducer.Activity
	Detail  string   `json:"detail,omitempty"`
}

// TypeRequest asks to type. A text of more than one key is refused where a permission or trust is asked for.
type TypeRequest struct {
	Text  []byte `json:"text,omitempty"`
	Raw   bool   `json:"raw,omitempty"`   // as it is: no paste marks, nothing removed
	Enter bool   `json:"enter,omitempty"` // and then the key that submits
	By    string `json:"by,omitempty"`    // the name of whoever types
	PID   int    `json:"-"`               // as in AnswerRequest
}

// AnswerRequest asks to answer what the agent's screen asks.
type AnswerRequest struct {
	ID     string `json:"id,omitempty"`     // of the question; empty: the only one
	Option string `json:"option,omitempty"` // its id; empty: the one that allows, or with Deny denies
	Deny   bool   `json:"deny,omitempty"`
	By     string `json:"by,omitempty"` // the name of whoever answers
	PID    int    `json:"-"`            // the process that asks; 0 where the system does not tell
}

// AttachRequest asks to join a terminal, from one of that size.
type AttachRequest struct {
	Cols     int  `json:"cols"`
	Rows     int  `json:"rows"`
	ReadOnly bool `json:"read_only,omitempty"` // nothing that this viewer sends is typed
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

// Exit is how the child ended.
type Exit struct {
	Code   int    `json:"code"` // 128+n where signal n ended it
	Signal string `json:"signal,omitempty"`
}
