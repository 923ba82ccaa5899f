package run

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// An Agent is one start of the agent's program, as the loop, the gates and the outcomes know it: it takes a text, which
// begins a turn, is interrupted, and tells what happens. There are two:
// terminal.Terminal, a program on a PTY, and one that speaks the Agent Client Protocol.
//
// Only the loop calls these methods, and none of them waits for the program; but Stop is called beside the loop. What an
// agent tells it appends to the log (Run.Append), or opens and closes as a question (Run.Questions), whose answer it takes.
type Agent interface {
	processes
	Way

	// Woken gets something when there is something for Step to take in, and is nil when there will never be any more.
	Woken() <-chan struct{}
	Step(now time.Time) // takes in what it has told, and does what is due with time
	Refresh()           // takes in all that it has told by now; called before anything is given, pressed or shown
	State() AgentState

	// Interrupt ends the turn, in steps with driver.InterruptPause between them.
	Interrupt(step int) (isMore bool)
}

// processes are an agent's process and all that it started; see process.Child.
type processes interface {
	PID() int
	Done() <-chan struct{}
	Exit() process.Exit
	Stop(ctx context.Context, grace time.Duration) ([]process.Info, error)
}

// AgentState is what the loop has to know of its agent.
type AgentState struct {
	Driver    string         // its name
	Reader    *driver.Driver // of the program that acts on what a text contains
	Activity  reducer.Activity
	Detail    string       // of that, or the kind of what it asks
	Ways      control.Ways // in which it is told something
	IsPlain   bool         // it runs what it gets, like a shell
	TakesText bool         // with its line breaks, as one text; else what it gets is keys, any of which may do something
	IsReady   bool         // it has once waited for a text, for long enough
	HasDraft  bool         // in its prompt is a text, perhaps a person's
	IsAsking  bool         // also what is only just coming up, or cannot be read
	IsDialog  bool         // what it asks can be read
	Cancels   bool         // an interrupt is no answer to what it asks, but cancels it
	IsOurs    bool         // a text of ours began its turn, of which no event may tell yet
}

// HasEndedTurn reports whether an agent that does so has no open turn.
func HasEndedTurn(a reducer.Activity) bool { return a == reducer.Idle || a == reducer.Limited }

// A Way is a way into the agent's program: delivery.Way for the loop, so nothing in it waits. There are three: an agent's
// own, which is typed at or prompted, and what a program has beside its prompt.
type Way interface {
	// Gate says why the way takes no text now.
	Gate(now time.Time) control.Gate
	// Put begins to give a text, and returns In, else Moot and why. The loop notes In before the program gets anything of
	// it. How that goes on is reported later, from beside the loop and never by Put itself: nil says that it was sent off, an
	// error that it was not, or, if it is delivery.ErrUnsure, that nobody knows.
	Put(t *Text, report func(error)) (e delivery.Event, why string)
	// Has returns what has happened to the text since then, and why; "": nothing new.
	Has(t *Text, now time.Time) (e delivery.Event, why string)
	// TakeBack takes the text back, and returns Gone or Kept; "": that is not known yet.
	TakeBack(t *Text) delivery.Event
}

// A Text is on its way into the program.
type Text struct {
	State delivery.State
	Since time.Time // of the state
	Words string

	IDs       []wire.ID    // of its messages
	Items     []*wire.Item // those that were claimed, which the text contains or points at
	IsPointer bool         // it only points at them, and they stay unread

	IsTyped bool           // by a terminal
	Turn    string         // that it began, if known
	Cause   delivery.Event // why it is not given, or taken back
}

// IsBeingTyped reports whether keys were typed, but not yet the return key.
func (t *Text) IsBeingTyped() bool { return t.IsTyped && t.State == delivery.Put }
