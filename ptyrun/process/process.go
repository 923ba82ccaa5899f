// Package process runs a program on a pseudo-terminal of its own and ends it with everything that it started.
//
// The program leads a session whose terminal is the PTY. What may be relied on:
//
//   - Read gets what the program had written when it ended, then io.EOF, at most 250 ms later even if a grandchild that
//     ignores the hangup holds the terminal.
//   - Write never blocks longer than it was told to.
//   - A process is known by its number and its start time, so that no signal
//     goes to another one that was given the number of a dead one.
//   - After Stop or Close nothing that the program started is left: not what ignores signals, is stopped, changed its
//     session or was forked twice. Three things tell what belongs to it: the session, the descent (a process that loses
//     its parent becomes our child, see Subreaper), and the mark ATM_RUN in the environment.
//   - Nothing polls while the program runs.
//
// On macOS, where there is no subreaper, a process that has left the session and lost its parent may not be
// found. On other systems nothing can be started.
package process

import (
	"errors"
	"fmt"
)

// ErrNoProgram is wrapped by the error for a name that no directory of the PATH has.
var ErrNoProgram = errors.New("no such program on PATH")

// Command says what to run.
type Command struct {
	Argv []string // the program, looked up in Env's PATH, and its arguments
	Dir  string   // where to run it; "": here

	// Env is its environment; nil: ours. A value of ATM_RUN in it marks the run: Stop ends every process
	// that carries it.
	Env []string

	Cols, Rows int // the terminal's size
}

// Exit says how the program ended.
type Exit struct {
	Code   int    // its exit code, 128+n for signal n
	Signal string // the signal's name, as in SIGKILL; "" if it was none
}

// Info is a process that runs, or ran: the number alone may belong to another process by now, number and
// start together do not.
type Info struct {
	PID   int
	Name  string // as the kernel shows it, at most 15 bytes on Linux
	Start uint64 // on Linux ticks since boot, on macOS microseconds since 1970
}

func (i Info) String() string { return fmt.Sprintf("%s (%d)", i.Name, i.PID) }

// Names are processes as people are told of them.
func Names(processes []Info) (names []string) {
	for _, p := range processes {
		names = append(names, p.String())
	}
	return names
}
