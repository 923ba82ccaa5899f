package programs

import (
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// This file finds out whose a conversation (thread) is of a vendor whose programs share a server: see agents.Server. A
// thread is bound to a member, once, at the first call of its hooks, together with the program that shows it: see Program.
// From then on the thread says who acts.

// ThreadOf returns the thread that an environment names, and the variable that does; "": it names none.
func ThreadOf(env func(string) string) (thread, variable string) {
	for _, v := range all.Vendors {
		if v.Server != nil && env(v.Server.Thread) != "" {
			return env(v.Server.Thread), v.Server.Thread
		}
	}
	return "", ""
}

// InSharedServer reports whether a server that all threads share has started this process. A runner's own is none.
func InSharedServer(r *teamdir.Root) bool {
	ancestors := process.Ancestors(process.Parent())
	return slices.ContainsFunc(ancestors, isServer) && r.RunnerOf(ancestors) == wire.Address{}
}

func isServer(pid int) bool {
	args := process.Arguments(pid)
	return slices.ContainsFunc(all.Vendors, func(v *agents.Vendor) bool { return v.Server != nil && v.Server.IsOne(args) })
}

// A boundProgram is one that a person has started under a member's name.
type boundProgram struct {
	Program
	of wire.Address
}

// programs returns those of the members of all teams, as far as they are noted.
func programs(r *teamdir.Root) (bound []boundProgram) {
	teams, _ := r.Teams()
	for _, team := range teams {
		t, err := r.Team(team)
		if err != nil {
			continue
		}
		members, _ := t.Agents()
		for _, name := range members {
			for _, p := range NotedPrograms(t, name) {
				bound = append(bound, boundProgram{p, t.Box(name).Address()})
			}
		}
	}
	return bound
}

// MemberOfThread returns the member, of any team, to whom a thread is bound, and its program. A binding ends with that.
func MemberOfThread(r *teamdir.Root, thread string) (of wire.Address, p Program, ok bool) {
	return noted(r, thread, true)
}

// LastMemberOfThread is MemberOfThread for a thread whose program has ended: the server ends it a minute later.
func LastMemberOfThread(r *teamdir.Root, thread string) (of wire.Address, p Program, ok bool) {
	return noted(r, thread, false)
}

func noted(r *teamdir.Root, thread string, isRunning bool) (of wire.Address, p Program, ok bool) {
	if thread == "" {
		return of, p, false
	}
	for _, b := range programs(r) {
		if all.Of(b.Tool).Server != nil && b.Session == thread && b.IsRunning() == isRunning {
			return b.of, b.Program, true
		}
	}
	return of, p, false
}

// A terminal is a program that may show a thread.
type terminal struct {
	process.Info
	tool      string
	name      string // in its environment; "": it has none
	startedAt time.Time
	hasShown  bool // a thread before
}

// FindProgram finds the program that shows a thread, which works in a directory, of those of this user's there.
// isNew says that the thread was not resumed. Without such a program name is "". others are the names of several, "" among
// them; of several with one name it is the newest.
func FindProgram(r *teamdir.Root, thread, dir string, isNew bool, env func(string) string) (name string, p Program, others []string) {
	var terminals []terminal
	noted := programs(r)
	for _, v := range all.Vendors {
		if v.Server == nil {
			continue
		}
		for _, info := range process.Named(v.Name) {
			if name, ok := showsThreadsIn(v.Server, info.PID, dir, env); ok {
				hasShown := slices.ContainsFunc(noted, func(b boundProgram) bool { return b.PID == info.PID && b.Start == info.Start })
				terminals = append(terminals, terminal{info, v.Name, name, info.StartedAt(), hasShown})
			}
		}
	}
	found := showing(thread, isNew, terminals)
	for _, s := range found {
		if !slices.Contains(others, s.name) {
			others = append(others, s.name)
		}
	}
	if len(others) != 1 {
		return "", p, others
	}
	newest := found[len(found)-1]
	p = Program{Tool: newest.tool, PID: newest.PID, Start: newest.Start}
	p.Server, _ = all.Of(p.Tool).Server.Socket(process.Environment(p.PID))
	return newest.name, p, others
}

// firstThread is how long after its start a program begins its first thread. Each does, before its person writes anything.
const firstThread = 5 * time.Second

// showing returns those of the programs that may show a thread. What begins as a program starts is its first thread. Any
// program may begin another one later, or resume an old one: nothing says which has.
func showing(thread string, isNew bool, all []terminal) []terminal {
	if !wire.IsID(thread) {
		return all
	}
	const clock = 100 * time.Millisecond // is how exact the times are
	var may, first []terminal
	for _, s := range all {
		age := wire.ID(thread).Time().Sub(s.startedAt)
		if isNew && age < -clock {
			continue // it was started later
		}
		may = append(may, s)
		if !s.hasShown && age >= -clock && age < firstThread {
			first = append(first, s)
		}
	}
	switch {
	case len(first) > 0:
		return first
	case len(may) > 0:
		return may
	}
	return all // the clock was set
}

func showsThreadsIn(server *agents.Server, pid int, dir string, env func(string) string) (name string, ok bool) {
	args, its := process.Arguments(pid), process.Variables(process.Environment(pid))
	if len(args) == 0 || its["HOME"] != env("HOME") || its["ATM_RUN"] != "" {
		return "", false
	}
	works, ok := server.Shows(pid, args, its, env)
	name = its["ATM_AGENT"]
	if team := its["ATM_TEAM"]; name != "" && team != "" && !strings.Contains(name, "@") {
		name += "@" + team
	}
	return name, ok && teamdir.IsSameDir(works, dir)
}
