// Package child runs a program on a pseudo-terminal of its own and ends it
// with everything that it started.
//
// The program leads a session whose terminal is the PTY. What may be relied on:
//
//   - Read never blocks longer than the terminal lives: when the program has
//     ended, what it had written is still delivered, then io.EOF comes, at most
//     250 ms later even if a grandchild that ignores the hangup holds the
//     terminal.
//   - Write never blocks longer than it was told to, whoever does not read.
//   - No signal goes to a process that happens to have got a dead one's number:
//     processes are held by pidfd and known by their start time, and the dead
//     program's own number is kept from being given away until Close.
//   - After Stop or Close nothing that the program started is left: not what
//     ignores signals, is stopped, changed its session or was forked twice. Three
//     things tell what belongs to it: the session, the descent (what loses its
//     parent becomes our child, see Subreaper), and the mark ATM_RUN in the
//     environment.
//   - A Child has one goroutine, which ends with the program; the process has
//     one more after Subreaper. Nothing polls while the program runs.
//
// On macOS and FreeBSD there is no pidfd, no subreaper that a Go program could
// use without C, and the kernel's own waiting gives the program's number away at
// once. There the process is compared by number and start time just before each
// signal, which leaves a gap of microseconds, and what has left the session, lost
// its parent and cleared its environment is not found. macOS hides the
// environment of programs that Apple signed, so those are only known by session
// and descent. Windows has no PTY that this package could use: Start says so.
package child

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// markName is the environment variable that marks a run's processes.
const markName = "ATM_RUN"

// readGrace is how long reads go on after the program's end for what it wrote
// before, in case somebody else keeps the terminal open.
const readGrace = 250 * time.Millisecond

// ErrUnsupported is returned where agents cannot be run at all.
var ErrUnsupported = errors.New("running agents is not supported on this system")

// Command says what to run.
type Command struct {
	Argv []string // the program, looked up in Env's PATH, and its arguments
	Dir  string   // where to run it; "": here

	// Env is its environment; nil: ours. A value of ATM_RUN in it marks the run:
	// Stop ends every process that carries it.
	Env []string

	Cols, Rows int // the terminal's size
}

// mark is the value of ATM_RUN in an environment.
func mark(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], markName+"="); ok {
			return v
		}
	}
	return ""
}

// Exit says how the program ended.
type Exit struct {
	Code   int    // its exit code, 128+n for signal n
	Signal string // the signal's name, as in SIGKILL; "" if it was none
}

func (e Exit) String() string {
	if e.Signal != "" {
		return e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Process is a process that runs, or ran: the number alone may be somebody
// else's by now, number and start together are not.
type Process struct {
	PID     int
	Name    string // as the kernel shows it, at most 15 bytes on Linux
	Cmdline string // arguments with blanks between
	Start   uint64 // on Linux ticks since boot, as in /proc/PID/stat; elsewhere microseconds since 1970
}

func (p Process) String() string { return fmt.Sprintf("%s (%d)", p.Name, p.PID) }

// How a program came to its end.
const (
	HowExited     = "exited"     // it had ended before anybody asked
	HowAsked      = "asked"      // by what Stop's ask told it
	HowTerminated = "terminated" // by SIGTERM
	HowHungUp     = "hung up"    // when its terminal went away
	HowKilled     = "killed"     // by SIGKILL
)

// Ended is what Stop did.
type Ended struct {
	How    string    // one of the How constants
	Others []Process // what the program had started and did not end with it
	Left   []Process // what did not even end when killed: stuck in the kernel, or another user's
}
