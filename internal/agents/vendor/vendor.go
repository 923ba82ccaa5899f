// Package vendor says what atm has to know of a program of a vendor. Each vendor has a folder beside this one, and package
// all lists them.
package vendor

import (
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/reducer"
)

// A Vendor is a program, as its maker ships it.
type Vendor struct {
	Name string // of the program, its driver and its hooks

	Session func(pid int) (*Session, error) // what a process says of itself; nil: nothing
	Server  *Server                         // which its processes share; nil: none
}

// A Session is what a program says of its conversation in a file of its own.
type Session struct {
	ID         string // as its hooks name it
	Activity   reducer.Activity
	Since      time.Time
	WaitingFor string // its person, in its own words

	TakesContextAtStop bool // it goes on with what its hook adds to the context where it would stop

	// Open opens the way to the conversation. mode is that of its permissions, which its hooks tell.
	Open func(mode string) (delivery.Way, error)
}

// IsIdle reports whether the program waits for its next prompt.
func (s *Session) IsIdle() bool { return s.Activity == reducer.Idle }

// A Server has the conversations (threads) of all programs of a person's. It runs their hooks and commands with the
// environment of whoever started it.
type Server struct {
	Thread string // the variable that names the thread to a command

	IsOne  func(arguments []string) bool // whether a process with these is a server
	Socket func(environ []string) (path string, err error)
	// Shows reports whether a process with these arguments and that environment may show a thread of the server that the
	// environment env leads to, and which directory it works in.
	Shows func(pid int, arguments []string, its map[string]string, env func(string) string) (dir string, ok bool)
}
