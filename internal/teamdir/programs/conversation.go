package programs

import (
	"errors"
	"slices"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// Bound returns the program that a member's mail is given to: of those that people sit before the one that was used last.
// A member that atm runs has none, since its runner gives it the mail.
func Bound(t *teamdir.Team, name wire.Name) (p Program, ok bool) {
	if running, err := t.Running(name); running || err != nil {
		return p, false
	}
	return lastUsed(Of(t, name))
}

func lastUsed(programs []Program) (p Program, ok bool) {
	programs = slices.DeleteFunc(slices.Clone(programs), func(p Program) bool { return !p.IsAttended() || p.Session == "" })
	if len(programs) == 0 {
		return p, false
	}
	return slices.MaxFunc(programs, func(a, b Program) int { return a.At.Compare(b.At) }), true
}

// errUnclear is why a program takes no mail.
var errUnclear = errors.New("which conversation it shows cannot be told before somebody writes there")

// Now returns the program with the conversation that it shows now. Of a new one (/new) its hooks tell with the first prompt;
// if its server has it, it is noted here.
func (p Program) Now(t *teamdir.Team, name wire.Name) (Program, error) {
	server := all.Of(p.Tool).Server
	if server == nil || p.Server == "" {
		return p, nil
	}
	newer, err := server.Threads(p.Server, p.Session)
	if err != nil {
		return p, err
	}
	its := process.Variables(process.Environment(p.PID))
	for _, thread := range newer {
		if _, _, isBound := MemberOfThread(t.Root(), thread.ID); isBound {
			continue
		}
		_, shows, names := FindProgram(t.Root(), thread.ID, thread.Dir, true, func(name string) string { return its[name] })
		switch {
		case len(names) > 1:
			return p, errUnclear
		case len(names) == 1 && shows.PID == p.PID:
			p.Session = thread.ID
			return p, Note(t, name, p, true)
		}
	}
	return p, nil
}

// Says returns what a program says of itself.
func (p Program) Says() (*agents.Session, error) {
	read := all.Of(p.Tool).Session
	if read == nil {
		return nil, errors.New("it says nothing of itself")
	}
	return read(agents.Process{PID: p.PID, Conversation: p.Session, Server: p.Server})
}
