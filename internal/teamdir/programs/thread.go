package programs

import (
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents"
	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// This file finds out whose a conversation (thread) is of a vendor whose programs share a server: see agents.Server. A
// thread is bound to a member, once, together with the program that shows it (see Program): at the first call of its hooks, if
// only one program can show it, or else by its person (see Bind). From then on the thread says who acts.

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

// members are those of all teams of a root.
func members(r *teamdir.Root) iter.Seq2[*teamdir.Team, wire.Name] {
	return func(yield func(*teamdir.Team, wire.Name) bool) {
		teams, _ := r.Teams()
		for _, name := range teams {
			t, _ := r.Team(name) // Teams has opened it
			agents, _ := t.Agents()
			for _, agent := range agents {
				if !yield(t, agent) {
					return
				}
			}
		}
	}
}

// MemberOfThread returns the member, of any team, to whom a thread is bound, and its program. A binding ends with that, which
// is zero if there never was one.
func MemberOfThread(r *teamdir.Root, thread string) (of wire.Address, p Program) {
	for t, name := range members(r) {
		for _, noted := range NotedPrograms(t, name) {
			if thread != "" && noted.Session == thread && all.Of(noted.Tool).Server != nil && !p.IsRunning() {
				of, p = t.Box(name).Address(), noted
			}
		}
	}
	return of, p
}

// A terminal is a program that may show any thread of its directory: nothing says which of several there shows which.
type terminal struct {
	Program
	name    string // in its environment; "": it has none
	isBound bool   // to a member, with a thread that it has shown
}

// terminals returns those of this user's that work in a directory, the oldest first.
func terminals(r *teamdir.Root, dir string, env func(string) string) (found []terminal) {
	bound := map[process.Info]bool{}
	for t, name := range members(r) {
		for _, p := range NotedPrograms(t, name) {
			bound[process.Info{PID: p.PID, Start: p.Start}] = true
		}
	}
	for _, v := range all.Vendors {
		if v.Server == nil {
			continue
		}
		for _, info := range process.Named(v.Name) {
			if name, ok := showsThreadsIn(v.Server, info.PID, dir, env); ok {
				p := Program{Tool: v.Name, PID: info.PID, Start: info.Start}
				p.Server, _ = v.Server.Socket(process.Environment(p.PID))
				found = append(found, terminal{p, name, bound[process.Info{PID: p.PID, Start: p.Start}]})
			}
		}
	}
	return found
}

// FindProgram finds the program that shows a thread of a directory which is bound to nobody, and its member's name: those of
// this user's there must have one name. It is one without a thread, if there are several. names are those that they have, ""
// among them.
func FindProgram(r *teamdir.Root, dir string, env func(string) string) (name string, p Program, names []string) {
	found := terminals(r, dir, env)
	for _, s := range found {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	if len(names) != 1 {
		return "", p, names
	}
	return names[0], newest(found), names
}

// newest returns the newest of some terminals, of those without a thread if there are any.
func newest(found []terminal) Program {
	free := slices.DeleteFunc(slices.Clone(found), func(s terminal) bool { return s.isBound })
	if len(free) > 0 {
		found = free
	}
	return found[len(found)-1].Program
}

// Bind binds the thread in which this command runs to a member, if it is bound to nobody yet and one of the programs that may
// show it has the member's name: a person says which of several it is.
func Bind(t *teamdir.Team, name wire.Name) (isBound bool, err error) {
	thread, _ := ThreadOf(os.Getenv)
	if _, p := MemberOfThread(t.Root(), thread); p.IsRunning() || thread == "" || os.Getenv("ATM_RUN") != "" || !InSharedServer(t.Root()) {
		return false, nil
	}
	dir, _ := os.Getwd()
	its := slices.DeleteFunc(terminals(t.Root(), dir, os.Getenv), func(s terminal) bool {
		of, err := wire.ParseAddress(s.name, t.Name)
		return err != nil || of != t.Box(name).Address()
	})
	if len(its) == 0 {
		return false, nil
	}
	p := newest(its)
	p.Session = thread
	return true, Note(t, name, p, true)
}

func showsThreadsIn(server *agents.Server, pid int, dir string, env func(string) string) (name string, ok bool) {
	args, its := process.Arguments(pid), process.Variables(process.Environment(pid))
	if len(args) == 0 || its["HOME"] != env("HOME") || its["ATM_RUN"] != "" {
		return "", false
	}
	works, ok := server.Shows(pid, args, its, env)
	name = strings.TrimPrefix(its["ATM_AGENT"], "@")
	if team := its["ATM_TEAM"]; name != "" && team != "" && !strings.Contains(name, "@") {
		name += "@" + team
	}
	return name, ok && teamdir.IsSameDir(works, dir)
}
