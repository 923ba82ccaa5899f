// Package process runs a program on a PTY or on pipes and ends it together with everything that it started.
//
// The program leads a session, whose terminal is the PTY. What you may rely on:
//
//   - Read, or a read of Stdout and Stderr, returns everything that the program had written when it exited, then io.EOF, at most
//     250 ms later even if a grandchild that ignores SIGHUP keeps the terminal open.
//   - Write never blocks longer than its timeout.
//   - A process is identified by its PID and start time, so that no signal reaches another process with a reused PID.
//   - After Stop nothing that the program started is left, even if it ignores signals, is suspended, changed its session or was
//     forked twice. It is found by its session, by descent, or by ATM_RUN in its environment.
//   - Nothing else is ended or reaped: no other child of this process.
//   - Nothing polls while the program runs.
//
// A process that left the session, lost its parent and has no ATM_RUN any more is found only by a process that has called
// Subreaper, on Linux. Systems other than Linux and macOS cannot start programs.
//
// Begin with Start. What the program draws is package screen's.
package process

import (
	"errors"
	"fmt"
	"strings"
)

// NoProgramError says why a program cannot be started: it is not there, or it is none.
type NoProgramError struct{ error }

// ErrNoTable means that processes cannot be ended because /proc is missing, or numbers them as another PID namespace.
var ErrNoTable = errors.New("/proc does not show the processes of this sandbox")

// Command says what to run.
type Command struct {
	Argv []string // the program, looked up in Env's PATH, and its arguments
	Dir  string   // "": the current directory

	// Env is its environment; nil: ours. ATM_RUN marks the run: Stop ends every process with the same value.
	Env []string

	Cols, Rows int // the terminal's size

	Stdin []byte // of a Helper

	Pipes bool // the program gets pipes and no terminal: see Child's Stdin, Stdout and Stderr
}

// Exit is how the program exited.
type Exit struct {
	Code   int    // 128+n for signal n
	Signal string // the signal's name, like SIGKILL; "": none
}

// Info is a process that runs, or ran. PID and Start together are unique; the PID alone may be reused.
type Info struct {
	PID   int
	Name  string // the kernel's, on Linux at most 15 bytes
	Start uint64 // on Linux in ticks since boot, on macOS in microseconds since 1970

	ppid, pgid, sid int
	isZombie        bool
}

func (i Info) String() string { return fmt.Sprintf("%s (%d)", i.Name, i.PID) }

// Names returns the processes as texts for people.
func Names(processes []Info) (names []string) {
	for _, p := range processes {
		names = append(names, p.String())
	}
	return names
}

// Variables returns the variables of an environment; of one that stands in it twice the last value counts.
func Variables(environment []string) map[string]string {
	values := map[string]string{}
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}
