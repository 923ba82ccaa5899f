package ptyrun

import (
	"context"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// An agent is one start of the agent's program, as the loop, the gates and the outcomes know it: it takes a text, which
// begins a turn, is interrupted, answers a question with one of its options, and tells what happens. There are two:
// terminal, a program on a PTY, and speaker, one that speaks the Agent Client Protocol.
//
// Only the loop calls these methods, and none of them waits for the program; but Stop is called beside the loop. What an
// agent tells it tells the runner: append (an event), openQuestion, closeQuestion, show.
type agent interface {
	processes
	way

	// woken gets something when there is something for step to take in, and is nil when there will never be any more.
	woken() <-chan struct{}
	step(now time.Time) // takes in what it has told, and does what is due with time
	refresh()           // takes in all that it has told by now; called before anything is given, pressed or shown
	state() agentState

	// interrupt ends the turn, in steps with driver.InterruptPause between them. press chooses an option of the question, or
	// says why it cannot.
	interrupt(step int) (isMore bool)
	press(q *question, o ask.Option) error
}

// processes are an agent's process and all that it started; see process.Child.
type processes interface {
	PID() int
	Done() <-chan struct{}
	Exit() process.Exit
	Stop(ctx context.Context, grace time.Duration) ([]process.Info, error)
}

// hasTerminal reports whether the agent's program runs on a terminal, onTerminal returns the one that runs now, else nil: what
// people see and type, and what only a screen shows, is its own.
func (r *runner) hasTerminal() bool { return r.ACP == nil }

func (r *runner) onTerminal() *terminal {
	if r.prog == nil {
		return nil
	}
	t, _ := r.prog.agent.(*terminal)
	return t
}

// agentState is what the loop has to know of its agent.
type agentState struct {
	driver    string         // its name
	reader    *driver.Driver // of the program that acts on what a text contains
	activity  reducer.Activity
	detail    string       // of that, or the kind of what it asks
	ways      control.Ways // in which it is told something
	isPlain   bool         // it runs what it gets, like a shell
	isByLine  bool         // every line of a text is submitted by itself
	takesText bool         // with its line breaks, as one text; else what it gets is keys, any of which may do something
	isReady   bool         // it has once waited for a text, for long enough
	hasLines  bool         // what it shows stays, line by line
	hasDraft  bool         // in its prompt is a text, perhaps a person's
	isAsking  bool         // also what is only just coming up, or cannot be read
	isDialog  bool         // what it asks can be read
	cancels   bool         // an interrupt is no answer to what it asks, but cancels it
	isOurs    bool         // a text of ours began its turn, of which no event may tell yet
}
