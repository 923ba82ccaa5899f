// Package runhost is what atm's own runner has a run do, beside what ptyrun.Options offer everybody: what needs a team, its
// configuration and its sessions.
package runhost

import (
	"context"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// Host is a part of ptyrun.Options. What it does not do is nil. Its functions are called beside the loop, and may block.
type Host struct {
	Version string         // of the program that runs the agent, for run.json, and for an agent with the Agent Client Protocol
	Brought agents.Brought // what has the program call atm's hooks
	Driver  *driver.Driver // nil: chosen by the name of the program in Command
	Rules   policy.Rules   // for what an agent with the Agent Client Protocol asks

	GoesOn bool   // the agent is told to go on when a usage limit is over that has ended its turn
	Fork   string // the first program goes on from a copy of the conversation with this id; "": it does not
	Anew   bool   // GoesOn is no reason to continue a conversation

	Carrier Carrier                 // gives mail beside the prompt; nil: all mail is typed
	Follow  func(Followed) Follower // called once
	Work    Work                    // what the agent takes by itself
	Serves  []wire.Name             // the inboxes that Work takes from, for run.json

	// Conversation returns the id of the conversation that the program of an earlier run showed last, if no event has told
	// one; "": it is not known.
	Conversation func(run string) string

	// Authorize is control.Handler's CheckRight. Nil: whoever reaches the socket has every right.
	Authorize func(right control.Right, pid int, by string) error

	// NotifyLead sends the lead a question that no rule answered, and WithdrawNotice withdraws it. Remind sends what is
	// due about overdue answers: notices to the lead and, if the agent is idle, reminders to it. Edited is told of each
	// file that an agent with the Agent Client Protocol has edited. HasAnswered tells whether the agent has replied to a
	// message, or acknowledged it.
	NotifyLead     func(ctx context.Context, q ask.Question) error
	WithdrawNotice func(ctx context.Context, id wire.ID) error
	Remind         func(ctx context.Context, isIdle bool) error
	Edited         func(ctx context.Context, path string) error
	HasAnswered    func(ctx context.Context, m *wire.Message) bool
}

// Work is work that an agent takes by itself. Its methods are called beside the loop.
type Work interface {
	// Look is called every second while the agent is idle and would take a text (isFree), so that it gets some work, and less
	// often while it is at work, so that it keeps that.
	Look(ctx context.Context, isFree bool) error

	// GiveBack is called before the first program starts, and when one has ended: the next one knows nothing of its work.
	GiveBack(ctx context.Context) error
}

// A Carrier gives a program mail beside its prompt: by an inbox of its own, its server, a plugin. Then a person's draft and
// keys are no reason to wait. The program, or what it has for this, tells which messages it has: they are read then. The runner
// takes back, and types, what nobody has told of in time.
//
// Its methods are called beside the loop, one at a time.
type Carrier interface {
	// Carry gives those of the messages that nobody else has claimed, by the way that is open; by "": none is. After an error
	// the way is of no use for a while. The program may take its mail itself.
	Carry(ctx context.Context, ids []wire.ID) (by string, err error)
	// TakeBack has unread messages that were given be given again, marked as possible repeats. After an error it is called again.
	TakeBack(ctx context.Context, ids []wire.ID) error
}

// A Follower sees what the agent of a run does and gets, may hold back its mail, and may stop it. What it does not do is nil.
// Run, Withhold and Body are called beside the loop, at any time, and may block; the others are called by the loop, and must not.
type Follower struct {
	Run         func(ctx context.Context)    // until ctx ends
	HandleEvent func(e *wire.Event)          // of the agent's log
	IsReady     func() bool                  // it has begun to follow: until then the run is not called ready
	Detach      func(Ended)                  // the last call, which may block; none if another runner has the agent by now
	Withhold    func(m *wire.Message) string // why an unread message must not be given to the agent now; "": it may
	Body        func(m *wire.Message) string // what the agent gets as the message's body
}

// Ended is how a run has ended.
type Ended struct {
	Code    int   // the exit code of its last program
	Stopped bool  // somebody stopped it
	Loop    bool  // it was not restarted any more because it crashed or exited too often
	Err     error // why the run could not go on
}

// Followed is the run of an agent, for its follower. Append is for HandleEvent, IsEngaged for what runs beside the loop.
type Followed interface {
	Agent() wire.Name
	Log() *slog.Logger

	// Retry calls try beside the loop until it succeeds, and when the run is over once more.
	Retry(what string, try func() error)
	// Stop stops the agent when its turn is over, or after patience. Mail that it has stays read: with what it was about it
	// is over.
	Stop(why string, patience time.Duration)
	// Reread asks again whether a message is withheld, and acts on it.
	Reread(id wire.ID)
	// Append appends an event to the agent's log.
	Append(e wire.Event)
	// IsEngaged reports whether the agent starts, works or is about to, or a person has typed in its terminal within some
	// time. It fails with the run.
	IsEngaged(within time.Duration) (bool, error)
}
