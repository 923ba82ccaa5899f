// Package agents says what atm knows of a coding agent: a Vendor, made in a folder below this one, which has all that is this
// vendor's. The folders are linked by the package all.
package agents

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// A Vendor is a coding agent that atm knows more of than its screen. What it does not have is nil.
type Vendor struct {
	Name string

	*Configuration // what atm writes for it; nil: nothing

	// Parsers parse a call of each word that may follow `atm hook`.
	Parsers map[string]func(*Call)
	// Answer returns the document that answers a call, which has a text, or a refusal, or is answered always.
	Answer func(c *Call, text string) any
	// Decide returns the document that answers a request for a permission; nil: no hook answers any.
	Decide func(c *Call, v Verdict) any
	// ProjectDir is the variable that has, for a hook, the directory that the program was started in; "": hooks run there.
	ProjectDir string
	// Entry is the variable that says how the program was started: "cli" in a terminal, something else by a script, which must not
	// wait for a hook; "": it does not say.
	Entry string
	// IsScript reports whether a script reads what the program prints, as far as it or its command line says; nil: unknown.
	IsScript func(getenv func(string) string, arguments func() []string) bool
	// EnvFile is the variable that has, for a hook that begins a session, the file with variables for the session's commands; "":
	// none.
	EnvFile string
	// Marks are the variables that the program sets for the processes that it starts.
	Marks []string

	// Activity returns a function that says what a program, which waits for an answer, is seen to do; nil: nothing is seen.
	Activity func(ctx context.Context, pid int) func() reducer.Activity

	Ways    []Way                           // into a program that its person has started, the best first
	Session func(Process) (*Session, error) // what a program says of itself; nil: nothing
	Server  *Server                         // which its processes share; nil: none

	// Edits are the tools that edit a file, and the argument that names it, or is a patch of several.
	Edits map[string]string
}

// A Process is a program as its hooks have told of it.
type Process struct {
	PID          int
	Conversation string
	Server       string // the socket of the server that has the conversation; "": the program has it itself
}

// A Session is what a program says of its conversation, in a file of its own or through its server.
type Session struct {
	ID         string // as its hooks name it
	Activity   reducer.Activity
	Since      time.Time
	WaitingFor string // its person, in its own words

	TakesContextAtStop bool // it goes on with what its hook adds to the context where it would stop

	// What its hooks do not tell.
	FailedTurn, FailedWhy string         // its last turn, if that has failed
	Questions             []ask.Question // what it asks now, as Answer takes it

	// Open opens the vendor's own way to the conversation. mode is that of its permissions, which its hooks tell.
	Open func(mode string) (delivery.Way, error)
	// Answer answers one of the Questions; nil: there are none. The model gets why; isGiven: it does.
	Answer func(ctx context.Context, q ask.Question, o ask.Option, why string) (isGiven bool, err error)
}

// A Server has the conversations (threads) of all programs of a person's. It runs their hooks and commands with the
// environment of whoever started it.
type Server struct {
	Unshared []string // starts a session without it
	Thread   string   // the variable that names the thread to a command
	Typed    string   // begins a command that its person types at the prompt

	IsOne  func(arguments []string) bool // whether a process with these is a server
	Socket func(environ []string) (path string, err error)
	// Shows reports whether a process with these arguments and that environment may show a thread of the server that the
	// environment env leads to, and which directory it works in.
	Shows func(pid int, arguments []string, its map[string]string, env func(string) string) (dir string, ok bool)
	// Threads returns the threads that a server has and people may see, the newest first, as far as they are newer than one.
	Threads func(socket, after string) ([]Thread, error)
}

// A Thread is a conversation that a server has.
type Thread struct{ ID, Dir string }
