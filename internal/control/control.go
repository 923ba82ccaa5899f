// Package control has both ends of the Unix socket through which other processes reach an agent's runner.
//
//	<agent>/run/control.sock   0600, exists while the runner runs
//
// If this path is too long for a socket, it is a symbolic link to atm-*/control.sock below $XDG_RUNTIME_DIR, the
// temporary directory or /tmp. Each end asks the kernel whose process the other end is, and accepts only its own user
// and root. The client also compares which directory the server serves with the one that it asked: whoever made the
// link may have meant another agent's.
//
// The protocol is lines of JSON: first the server's version and directory, then requests and answers.
//
//	{"ok":true,"result":3,"directory":"64769:131075"}
//	{"op":"screen","with":{"last":50}}
//	{"ok":true,"result":{"lines":[…],…}}   or   {"error":{"code":"refused","message":"…","try":[{"op":"attach"}]}}
//
// After the answer to "attach" the lines carry bytes in base64, until the server sends exit or detached or the client
// closes its sending half. The runner never waits for a viewer: output for a slow one is dropped, and after the gap the
// viewer asks for a repaint.
//
//	from the server   {"out":"…"}  {"gap":true}  {"exit":{"code":0}}  {"detached":"why"}
//	from the client   {"in":"…"}  {"in":"…","report":true}  {"size":{"cols":80,"rows":24}}  {"repaint":true}
//
// A client begins with Dial, a runner with Listen and a Runner.
package control

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer/ask"
)

const (
	socketName  = "control.sock"
	DialTimeout = time.Second // for Dial; only a suspended runner takes longer to greet, also on a busy machine
)

var (
	ErrNoRunner     = errors.New("no runner")
	ErrNotAnswering = errors.New("the runner does not answer") // wrapped by NotAnsweringError
	ErrGone         = errors.New("the runner ended before it answered")
)

// NotAnsweringError names the process that listens but does not answer; 0: unknown.
type NotAnsweringError struct{ PID int }

func (e *NotAnsweringError) Error() string { return ErrNotAnswering.Error() }
func (e *NotAnsweringError) Unwrap() error { return ErrNotAnswering }

// OtherUserError is Dial's for another user's runner, which only that user and root may ask.
type OtherUserError struct{ User string } // by name, or by number if that has none

func (e *OtherUserError) Error() string { return "it runs as another user, " + e.User }
func (e *OtherUserError) Unwrap() error { return Refused(e.Error()) }

// OtherVersionError is Dial's for a runner that speaks another version of the protocol.
type OtherVersionError struct{ PID int } // the runner's process; 0: unknown

func (e *OtherVersionError) Error() string {
	return "its runner speaks another version of the protocol"
}
func (e *OtherVersionError) Unwrap() error { return Refused(e.Error()) }

// Error is a runner's answer to a request that it did not carry out. Its codes are the command line's: failed, usage,
// ambiguous, not_found, timeout, locked, refused.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Try     []Try  `json:"try,omitempty"` // what helps now, the best first
}

func (e *Error) Error() string { return e.Message }

// Locked is the code of an error that time alone may end.
const Locked = "locked"

// Refused and Usage make errors of these codes.
func Refused(message string, try ...Try) *Error { return &Error{"refused", message, try} }
func Usage(message string, try ...Try) *Error   { return &Error{"usage", message, try} }

// A Try is an operation that helps when another one was not carried out, with what its request must have.
type Try struct {
	Op     string `json:"op"`               // "screen" to see why; "attach", "answer", "interrupt" or "type" to do it
	Option string `json:"option,omitempty"` // of answer; "": the one that is chosen
	Deny   bool   `json:"deny,omitempty"`   // of answer
	Raw    bool   `json:"raw,omitempty"`    // of type
	Enter  bool   `json:"enter,omitempty"`  // of type
}

// A Right is what a client needs for an operation. Whoever reaches the socket is of the runner's user, also the agent's
// own processes and those of other agents.
type Right string

const (
	Look   Right = "look"   // see what the terminal shows
	Act    Right = "act"    // end the agent's turn or program
	Type   Right = "type"   // type a text while it asks nothing
	Keys   Right = "keys"   // type anything at any time, which may answer what it asks
	Answer Right = "answer" // answer what it asks
)

// Handler is what a server serves: whoever takes answers, and if it runs the program a Runner. Several goroutines call it at
// once. The context ends when the server closes; a method then returns soon, and its answer is still sent.
type Handler interface {
	// CheckRight returns an error if the process pid (0: unknown), which says that it acts for by ("": it does not say),
	// does not have a right. It is called before each operation.
	CheckRight(right Right, pid int, by string) error
	// Answer gives the program the answer to what it asks, and returns when it has that.
	Answer(ctx context.Context, r ask.Answer) (Outcome, error)
}

// Runner is a Handler that runs the program.
type Runner interface {
	Handler
	Status(ctx context.Context) (Status, error)
	// Screen returns the screen. Between two programs it has the last lines of the first.
	Screen(ctx context.Context, r ScreenRequest) (Screen, error)
	// Type types a text like a person, and returns when the terminal has it; with Enter, when the key was pressed. An agent
	// without a terminal takes it as a prompt, with Enter, while it is idle.
	Type(ctx context.Context, r TypeRequest) (Outcome, error)
	// Interrupt ends the turn and returns when it is over ("interrupted"), or an error if it goes on. If the agent is
	// idle nothing is pressed ("idle").
	Interrupt(ctx context.Context) (Outcome, error)
	// Stop ends the agent, everything that it started, and the runner. It returns when the agent's processes are gone.
	Stop(ctx context.Context) (Outcome, error)
	// Restart asks the program to end, to start it again, and returns at once ("restarting"). Between two programs the
	// next one starts without a pause ("restarted").
	Restart(ctx context.Context, r RestartRequest) (Outcome, error)
	// Attach serves a viewer until its Input is closed, the context ends or the child has exited; then it calls Exit.
	// The viewer is sent its error.
	Attach(ctx context.Context, r AttachRequest, v *Viewer) error
}

// Status is what a runner says about itself.
type Status struct {
	ChildPID    int       `json:"child_pid,omitempty"`
	State       string    `json:"state"` // a reducer.Activity: what the screen shows now, though it may not last
	Detail      string    `json:"detail,omitempty"`
	Driver      string    `json:"driver,omitempty"`
	Started     time.Time `json:"started"`
	Ready       bool      `json:"ready"`
	Gate        Gate      `json:"gate,omitempty"`
	Ways        Ways      `json:"ways,omitzero"`          // what it can be told, and how
	NoTerminal  bool      `json:"no_terminal,omitempty"`  // it has none: who attaches only looks
	Untyped     string    `json:"untyped,omitempty"`      // why a waiting message could not be typed
	NotRecorded string    `json:"not_recorded,omitempty"` // why the recording has stopped
	Resumed     string    `json:"resumed,omitempty"`      // the id of the conversation that the program continues
	NotResumed  string    `json:"not_resumed,omitempty"`  // why it began a new one although one was to be continued
}

// Ways says how an agent is told what: "typed", by "keys", by a "protocol", by its "hooks" or by the way that mail is pushed
// ("inbox socket"); "": it cannot be told.
type Ways struct {
	Prompt    string `json:"prompt,omitempty"`    // a text that begins a turn
	Steer     string `json:"steer,omitempty"`     // a text while it works
	Interrupt string `json:"interrupt,omitempty"` // to end its turn
	Answer    string `json:"answer,omitempty"`    // the answer to what it asks
}

// IsPush reports whether a text begins a turn without being typed.
func (w Ways) IsPush() bool { return w.Prompt != "" && w.Prompt != "typed" && w.Prompt != "protocol" }

// String returns those that there are, for people: "prompt typed · interrupt keys".
func (w Ways) String() string {
	var all []string
	for _, way := range [][2]string{{"prompt", w.Prompt}, {"steer", w.Steer}, {"interrupt", w.Interrupt}, {"answer", w.Answer}} {
		if way[1] != "" {
			all = append(all, way[0]+" "+way[1])
		}
	}
	return strings.Join(all, " · ")
}

// MaxLine returns how many bytes are typed without bracketed paste: the kernel's line editing keeps 4095, on macOS 1023,
// and drops the rest.
func MaxLine() int {
	if runtime.GOOS == "darwin" {
		return 1000
	}
	return 4000
}

// MaxTries is how often a message is typed that the program may have accepted before, or that has ended it.
const MaxTries = 3

// A Gate is why no mail is typed at this moment.
type Gate string

// The gates. The first ones are the runner's own, the others are read from the screen.
const (
	GateOpen     Gate = "" // mail is typed
	GateOff      Gate = "its program is not running"
	GateStopping Gate = "it is being stopped"
	GateTyping   Gate = "a person is typing"
	GateSettling Gate = "it has only just become idle"
	GateUnread   Gate = "it shows no sign of the last message typed in"
	GateMoved    Gate = "its root was moved"
	GateStranger Gate = "its root is not accepted"
	GateUnknown  Gate = "atm does not know its program"

	GateDialog     Gate = "dialog"
	GateBusy       Gate = "busy"
	GateLimit      Gate = "usage limit"
	GateDraft      Gate = "draft"
	GateStarting   Gate = "starting"
	GateDrawing    Gate = "it is redrawing its screen"
	GateNoPrompt   Gate = "no prompt on the screen"
	GateFullScreen Gate = "a full-screen program is running"
	GateCommand    Gate = "a command is running"
)

// ScreenRequest asks for the screen.
type ScreenRequest struct {
	ANSI bool `json:"ansi,omitempty"` // with colours, in Screen.ANSI
	Last int  `json:"last,omitempty"` // this many last lines, from the scrollback too; 0: the visible ones
}

// Screen is what an agent's terminal shows, or the end of its transcript if it has none.
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

// TypeRequest asks to type. A text of more than one key is refused while a dialog asks for permission or trust.
type TypeRequest struct {
	Text  []byte `json:"text,omitempty"`
	Raw   bool   `json:"raw,omitempty"`   // as it is: no paste marks, nothing removed
	Enter bool   `json:"enter,omitempty"` // then press the key that submits
	By    string `json:"by,omitempty"`    // the name of whoever types
	PID   int    `json:"-"`               // the client's process, set by the server; 0: unknown
}

// RestartRequest asks to restart the program.
type RestartRequest struct {
	Resume bool   `json:"resume,omitempty"` // this and every later start of this run continues the conversation
	By     string `json:"by,omitempty"`     // the name of whoever asks
}

// AttachRequest asks to attach a terminal of this size.
type AttachRequest struct {
	Cols     int  `json:"cols"`
	Rows     int  `json:"rows"`
	ReadOnly bool `json:"read_only,omitempty"` // type nothing that this viewer sends

	By string `json:"by,omitempty"` // set by the Client
}

// Outcome is the result of a request.
type Outcome struct {
	Done         string   `json:"done"` // "interrupted", "stopped", …
	Detail       string   `json:"detail,omitempty"`
	Ended        []string `json:"ended,omitempty"`         // processes that were ended
	NotSubmitted bool     `json:"not_submitted,omitempty"` // the typed text is a draft until Enter is typed
	ReasonGiven  bool     `json:"reason_given,omitempty"`  // the program gets the reason with the answer
}

// Size is a terminal's, in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Exit is how the child exited.
type Exit struct {
	Code   int    `json:"code"` // 128+n for signal n
	Signal string `json:"signal,omitempty"`
}
