package programs

import (
	"errors"
	"fmt"
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

// Now returns the program with the conversation that it shows now. Of a new one (/new) its hooks tell with the first prompt;
// if its server has it, and only this program can show it, it is noted here. A program beside it that has no conversation yet
// shows one, too: only with more than those it cannot be told.
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
	unbound := 0
	for _, thread := range newer {
		if _, shown := MemberOfThread(t.Root(), thread.ID); shown.PID != 0 { // by another one, perhaps until that has ended
			continue
		}
		found := terminals(t.Root(), thread.Dir, func(name string) string { return its[name] })
		others := slices.DeleteFunc(slices.Clone(found), func(s terminal) bool { return s.PID == p.PID })
		if len(others) == len(found) { // it shows none there
			continue
		}
		if len(others) == 0 {
			p.Session = thread.ID
			return p, Note(t, name, p, true)
		}
		others = slices.DeleteFunc(others, func(s terminal) bool { return s.isBound })
		if unbound++; unbound > len(others) {
			return p, fmt.Errorf("which conversation it shows cannot be told before somebody types there: %satm primer %s", server.Typed, name)
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

// TakesContextAtStop reports whether the program goes on with what its hook adds to the context where it would stop.
func (p Program) TakesContextAtStop() bool {
	s, err := p.Says()
	return err == nil && s.TakesContextAtStop
}
