// Package ptyrun runs an agent's program and gives it texts: prompts, and its mail.
//
// [Start] starts one, and returns a [Handle] to ask it, give it a text, interrupt it, answer what it asks, type, look at its
// screen and follow its events. It is given a text when it waits for one. On a screen that is known of the programs that atm
// has a driver for (atm doctor --driver all lists them), and of shells and interpreters without a script, such as bash and
// python3; a program of your own says it with the Agent Client Protocol. Options.Decide answers what it asks; with Options.Hooks a question of Claude Code or opencode has
// its tool and input. A program that speaks the Agent Client Protocol runs on pipes (Options.ACP), any other on a PTY, where a
// driver reads its screen. A runner owns one agent: its program, the recording and the control socket. If the agent has a mailbox
// (Options.Mail) the runner follows its inbox and event log, folds them with the reducer, and is the only one that hands over its
// mail.
//
// What you may rely on:
//
//   - Nothing is typed while the program works or asks, or while a person types or has left a half-written line. This is checked
//     again before the return key. atm's own runner gives mail beside the prompt where a program takes it.
//   - A message is data: nothing in it makes the program do anything. What the program would act on is typed in a form that it
//     leaves alone, or else a pointer is typed.
//   - A message counts as read only after the program was seen to accept it. Any other outcome is appended as an event and leaves
//     the message unread.
//   - A turn that no hook and no protocol reports has an id from its start until the program is idle; its thread is the run.
//   - A question is answered only by the caller, by somebody whom atm's runner has authorized, or by one of the owner's rules if
//     the agent has said in words of its own what it asks, and only while it still asks it. A dialog about trust in a directory
//     is never answered.
//   - Who tells is believed: hooks, a server or the protocol. Beside them a screen only says that the program asks something, or
//     is at its prompt. What counts is appended as an event.
//   - When Wait returns, every process that the agent started is gone.
//   - In a root that came with a git checkout, or that nobody has accepted, nothing is typed and no rule answers.
//
// The agent's run directory holds the control socket, the recording (screen.cast) and run.json.
package ptyrun

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Inject says how mail gets into the agent. Pointer types the command that reads the message instead of the message,
// which stays unread until the agent runs that command; so does Body into a plain program, which would run the message.
type Inject string

const Body, Pointer, Off = Inject(inbox.Body), Inject(inbox.Pointer), Inject(inbox.Off)

// Restart says when a program that exited is started again. OnCrash means an exit code other than 0, or a signal.
type Restart string

const Never, OnCrash, Always Restart = "never", "on-crash", "always"

// Options say what to run, and how. Only Command is required.
type Options struct {
	// The agent.
	Mail *Mail  // nil: it gets no mail, and its events are kept until Close
	Run  string // the ATM_RUN of every process of this run, which tells it from all other runs; "": a new one

	// Its program and terminal.
	Command    []string // the program and its arguments
	Dir        string   // "": the current one
	Env        []string // the whole environment, but for the mark of the run; nil: that of this process
	ACP        *ACP     // the program speaks the Agent Client Protocol, and gets no terminal; nil: it draws a screen
	Cols, Rows int      // of its terminal; 0: 120 by 30
	Restart    Restart
	Resume     bool // each program continues the agent's last conversation, if its driver knows how

	// Its mail.
	Inject Inject
	Prompt string // typed once, at the first idle
	// Hooks is the path of the program atm, which the agent's program then calls by hooks that come along for this run, if it has
	// such a way (Claude Code, opencode): what it asks has its tool and input. Mail must be of an open team. "": none come.
	Hooks string

	// Decide answers what the agent asks, with the ID or Label of one of q.Options, or does not (false): then Handle.Answer may.
	// What is none of them is told to Log, and the question stays open. Without a By the answer is the program's that runs it. It is
	// called in a goroutine of its own, and may block. nil: nothing is decided.
	Decide func(q ask.Question) (a ask.Answer, isDecided bool)

	Log *slog.Logger // nil: silence

	runhost.Host // what atm's own runner has it do besides; others leave it

	now    func() time.Time // time.Now but in tests
	timing *run.Timing      // run.StandardTiming but in tests
	temp   string           // os.TempDir but in tests
}

// ACP is about an agent that speaks the Agent Client Protocol.
type ACP struct {
	Session map[string]any // parameters of a new session: metadata, workspace, model_preferences
}

// Exit is how the last program exited.
type Exit struct {
	Code    int      // 128+n for a signal
	Signal  string   // the signal's name; "": none
	Stopped bool     // somebody stopped it
	Loop    bool     // it was not restarted any more because it crashed or exited too often
	Tail    []string // the last 10 lines of the screen
	Ended   []string // processes that it had left running and that were ended
}

// ErrUnsure means that nobody saw whether the program took a text: it may have it, and whoever gives it again may give it twice.
var ErrUnsure = delivery.ErrUnsure

// ErrTakenOver means that the runner lock was removed or belongs to another runner.
var ErrTakenOver = inbox.ErrTakenOver

// ErrRunning means that another process runs the agent.
var ErrRunning = maildir.ErrRunning

// ErrRootGone means that the directory with the agent's mail was removed.
var ErrRootGone = inbox.ErrRootGone

func (o *Options) setDefaults() {
	if o.Driver == nil {
		o.Driver = driver.ForCommand(o.Command)
	}
	o.Inject, o.timing = cmp.Or(o.Inject, Body), cmp.Or(o.timing, &run.StandardTiming)
	o.Cols, o.Rows, o.Run = cmp.Or(o.Cols, 120), cmp.Or(o.Rows, 30), cmp.Or(o.Run, string(wire.NewID()))
	o.Env = withMark(o.Env, o.Run)
	if o.Dir == "" {
		o.Dir, _ = os.Getwd()
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.NotifyLead == nil {
		o.NotifyLead = func(context.Context, ask.Question) error { return nil }
	}
	if o.WithdrawNotice == nil {
		o.WithdrawNotice = func(context.Context, wire.ID) error { return nil }
	}
	if o.now == nil {
		o.now = time.Now
	}
}
