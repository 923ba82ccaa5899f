// Package ptyrun runs an agent's program in a terminal of its own and carries its mail to it.
//
// A runner owns one agent: its runner lock (held by the caller), its program on a PTY, the screen that the
// program draws, the recording, the control socket. It follows the agent's inbox and event log, folds them
// with the reducer, and carries out the effects that the reducer names; nobody else does.
//
// What may be relied on:
//
//   - Nothing is typed unless every gate (control.Gate) is open. The gates are looked at again before the return key.
//   - A message is read only when it was seen to be taken. Every other outcome is an event, and leaves it unread.
//   - A turn that no hook tells of has an id from its start to the idle that follows, and the run for its thread.
//   - A dialog is answered only by a rule of the owner's or by somebody who may, and only while
//     that same dialog is on the screen; one about trust in a directory never is.
//   - What the screen shows becomes events. Where the program's hooks tell, they count; the
//     screen then only says what hooks cannot know.
//   - When Run returns, what the agent started is gone.
//   - What people say in a session is not typed while that is paused. One that is aborted, or
//     ends by its rules, ends the agent with it.
//
// In the agent's run directory are the control socket, the recording (screen.cast), run.json and the claims
// of what is being typed.
//
// How it works. One loop owns all state of a run. It sleeps until a channel brings something: output or the
// end of the program, a message or an event from the mailbox, a function that another goroutine posts, or
// the time that was asked for. Then it calls step, in which each topic looks at the state, does what is due,
// and says when to be called again. An injection is a straight function that takes turns with the loop, as a
// coroutine. What has to wait for anything else (the terminal, a lock, a disk, a client) is a goroutine
// beside the loop, which posts to it or asks it; Run waits for all of them.
//
// One turn: the reducer names a message, which is queued (stepMail). When gate lets it, inject claims it, types it,
// presses return and sees it taken; beginTurn says that the turn has begun. stepScreen reads what the program draws
// and tells what has held; a dialog becomes a Question until it is gone. endTurn says how the turn ended, with the
// answer that Response cuts out of the screen.
//
//	loop.go      the state, the loop, and how others call it
//	process.go   the program: its start, output and end, restarts, and stopping it
//	mail.go      what the reducer is told and names to be done, and the queue of what is to be typed
//	gate.go      whether something may be typed
//	inject.go    how mail is typed, submitted and seen to be taken; letter.go: the text of it
//	detect.go    what the screen shows, and when that is told
//	turn.go      turns that only the screen tells of, interrupting one, and what that puts back into the draft
//	dialog.go    what the screen asks, and pressing the answer
//	session.go   the agent's sessions; capture.go: their output
//	server.go    requests of other processes; attach.go: terminals that join
//	io.go        goroutines that read and type, and work in order
package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Inject says how mail gets into the agent. Pointer types a line that says what to run instead of the
// message, which stays unread until it is run.
type Inject string

const Body, Pointer, Off Inject = "body", "pointer", "off"

// Restart says when a program that ended is started again. A crash is an end with a code other than 0, or by
// a signal, that nobody asked for.
type Restart string

const Never, OnCrash, Always Restart = "never", "on-crash", "always"

// Decision is what a rule says about a permission request.
type Decision string

const Allow, Deny, Ask Decision = "allow", "deny", "ask"

// Options say what is run, and how. Box, Hold, Run, Command, Cols and Rows are needed.
type Options struct {
	Box   *mailbox.Box
	State reducer.State // the fold of the agent's events; the watcher goes on after its Seq

	Run     string   // what tells this run from all others: ATM_RUN of everything it starts
	Command []string // the program and its arguments
	Front   []string // what runs on the terminal in its place, and gets them as arguments
	Dir     string
	Env     []string       // whole, with ATM_RUN: without it the leftovers of a killed runner cannot be found
	Driver  *driver.Driver // nil: by the command, until the screen shows another

	Inject      Inject
	Cols, Rows  int
	Restart     Restart
	RecordInput bool   // record what is typed as well
	Prompt      string // typed once, at the first idle

	// Decide applies the owner's rules, as they were when the runner started. Nil: everything is asked.
	Decide func(driver.Dialog) Decision

	// May says why the process pid (0: not known) may not answer in the name of by, nil where it may. isTyped: by keys,
	// which a dialog takes for its answer. Nil: everybody may who reaches the socket.
	Authorize func(pid int, by string, isTyped bool) error

	// Told tells the lead of a question that no rule has answered, Answered takes that back, and Overdue
	// sends what is due about answers that are overdue: notices to the lead, and reminders to the agent if
	// that is idle. Each may take its time, and may be nil.
	NotifyLead     func(ctx context.Context, q Question) error
	WithdrawNotice func(ctx context.Context, id wire.ID) error
	Remind         func(ctx context.Context, isIdle bool) error

	Runs     func() map[string]wire.Name // letter.Renderer's
	Sessions *Sessions                   // nil: they are none of the runner's business
	Hold     *mailbox.Runner             // of the agent's runner lock
	Log      *slog.Logger                // nil: silence
	Now      func() time.Time            // nil: time.Now
	Timing   *Timing                     // nil: as agents need them
}

// Waits are how long the gates and steps of typing take. Tests shorten them.
type Timing struct {
	FirstIdle, Idle time.Duration // a program that was just started must have been idle for so long, any for so long
	PersonQuiet     time.Duration // since a person's last key
	Render          time.Duration // for the text to be seen in the draft
	Quiet           time.Duration // of the screen before the return key
	BeforeReturn    time.Duration // from the last byte to the return key, at least
	Accept          time.Duration // for the draft to go
	RetryReturn     time.Duration // before the return key is pressed once more
	Settle          time.Duration // a state that the screen shows counts after
	HookSettle      time.Duration // and after so long where hooks tell otherwise
	Backoff         time.Duration // the first pause before a restart
}

// standardWaits are what real programs need (measured with four).
var standardTiming = Timing{
	FirstIdle: driver.FirstSettle, Idle: driver.Settle, PersonQuiet: 3 * time.Second, Render: 2 * time.Second,
	Quiet: 100 * time.Millisecond, BeforeReturn: 150 * time.Millisecond, Accept: 3 * time.Second, RetryReturn: 500 * time.Millisecond,
	Settle: driver.DialogSettle, HookSettle: 2 * time.Second, Backoff: 500 * time.Millisecond,
}

// Exit is how the last program ended.
type Exit struct {
	Code    int      // 128+n for a signal
	Signal  string   // its name, "" where it exited
	Stopped bool     // somebody stopped it
	Loop    bool     // it crashed, or ended to be started again, too often
	Tail    []string // the last 10 lines of the screen
	Ended   []string // what it had started and had to be ended
}

// ErrTakenOver says that the runner lock is another's by now, or may be.
var ErrTakenOver = errors.New("its runner lock was removed, or another runner has it")

func (o *Options) setDefaults() {
	if o.Driver == nil {
		o.Driver = driver.ForCommand(o.Command)
	}
	if o.Driver.Plain && runsScript(o.Command) {
		o.Driver, _ = driver.Named("plain")
	}
	o.Inject, o.Timing = cmp.Or(o.Inject, Body), cmp.Or(o.Timing, &standardTiming)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
}

// runsScript reports whether a command is a shell that runs a script: its prompts are the script's own,
// also a lone "> ", with which a shell asks for the rest of a command.
func runsScript(command []string) bool {
	if len(command) < 2 || !strings.HasSuffix(filepath.Base(command[0]), "sh") {
		return false
	}
	option, isOption := strings.CutPrefix(command[1], "-")
	return !isOption || !strings.HasPrefix(option, "-") && strings.Contains(option, "c")
}
