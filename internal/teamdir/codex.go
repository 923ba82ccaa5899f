package teamdir

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/wire"
)

// This file finds out whose a conversation of Codex is. All that a person starts share one server, which runs the hooks and
// the commands of all conversations (threads) with the environment of whoever started it. So a thread is bound to a member,
// once, at the first call of its hooks, together with the program that shows it: see Program. From then on the thread says
// who acts.

// ThreadVariable is the variable that names the thread to a command that Codex runs.
const ThreadVariable = "CODEX_THREAD_ID"

const (
	codexTool   = "codex"
	codexServer = "app-server" // its argument
)

// notShown are arguments of a program of Codex that shows no thread of the shared server.
var notShown = []string{codexServer, "--no-daemon", "--remote", "exec", "e", "review", "mcp-server", "exec-server", "login", "queue"}

// InSharedServer reports whether the server that all threads share has started this process. A runner's own is none.
func (r *Root) InSharedServer() bool {
	ancestors := process.Ancestors(process.Parent())
	return slices.ContainsFunc(ancestors, isCodexServer) && r.RunnerOf(ancestors) == wire.Address{}
}

func isCodexServer(pid int) bool {
	args := process.Arguments(pid)
	return len(args) > 1 && filepath.Base(args[0]) == codexTool && slices.Contains(args[1:], codexServer)
}

// ServerSocket returns the path of the socket of the server that a program of Codex uses. The server need not run.
func (p Program) ServerSocket() (string, error) { return serverSocket(process.Environment(p.PID)) }

func serverSocket(environ []string) (string, error) {
	its := process.Variables(environ)
	home := its["CODEX_HOME"]
	if home == "" {
		home = filepath.Join(its["HOME"], ".codex")
	}
	if !filepath.IsAbs(home) {
		return "", errors.New("find codex's server: its program has neither CODEX_HOME nor HOME")
	}
	return filepath.Join(home, "app-server-control", "app-server-control.sock"), nil
}

// A boundProgram is one that a person has started under a member's name.
type boundProgram struct {
	Program
	of wire.Address
}

// programs returns those of the members of all teams, as far as they are noted.
func (r *Root) programs() (all []boundProgram) {
	teams, _ := r.Teams()
	for _, team := range teams {
		t, err := r.Team(team)
		if err != nil {
			continue
		}
		members, _ := t.Agents()
		for _, name := range members {
			for _, p := range t.notedPrograms(name) {
				all = append(all, boundProgram{p, t.Box(name).Address()})
			}
		}
	}
	return all
}

// MemberOfThread returns the member, of any team, to whom a thread is bound, and its program. A binding ends with that.
func (r *Root) MemberOfThread(thread string) (of wire.Address, p Program, ok bool) {
	return r.noted(thread, true)
}

// LastMemberOfThread is MemberOfThread for a thread whose program has ended: the server ends it a minute later.
func (r *Root) LastMemberOfThread(thread string) (of wire.Address, p Program, ok bool) {
	return r.noted(thread, false)
}

func (r *Root) noted(thread string, isRunning bool) (of wire.Address, p Program, ok bool) {
	if thread == "" {
		return of, p, false
	}
	for _, b := range r.programs() {
		if b.Tool == codexTool && b.Session == thread && b.isRunning() == isRunning {
			return b.of, b.Program, true
		}
	}
	return of, p, false
}

// A terminal is a program that may show a thread.
type terminal struct {
	process.Info
	name      string // in its environment; "": it has none
	startedAt time.Time
	hasShown  bool // a thread before
}

// FindProgram finds the program that shows a thread, which works in a directory, of those with this user's Codex there.
// isNew says that the thread was not resumed. Without such a program name is "". others are the names of several, "" among
// them; of several with one name it is the newest.
func (r *Root) FindProgram(thread, dir string, isNew bool, env func(string) string) (name string, p Program, others []string) {
	var all []terminal
	noted := r.programs()
	for _, info := range process.Named(codexTool) {
		if name, ok := showsThreadsIn(info.PID, dir, env); ok {
			hasShown := slices.ContainsFunc(noted, func(b boundProgram) bool { return b.PID == info.PID && b.Start == info.Start })
			all = append(all, terminal{info, name, info.StartedAt(), hasShown})
		}
	}
	found := showing(thread, isNew, all)
	for _, s := range found {
		if !slices.Contains(others, s.name) {
			others = append(others, s.name)
		}
	}
	if len(others) != 1 {
		return "", p, others
	}
	newest := found[len(found)-1]
	return newest.name, Program{Tool: codexTool, PID: newest.PID, Start: newest.Start}, others
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

func showsThreadsIn(pid int, dir string, env func(string) string) (name string, ok bool) {
	args := process.Arguments(pid)
	if len(args) == 0 || slices.ContainsFunc(args[1:], func(arg string) bool { return slices.Contains(notShown, arg) }) {
		return "", false
	}
	its := process.Variables(process.Environment(pid))
	if its["HOME"] != env("HOME") || its["CODEX_HOME"] != env("CODEX_HOME") || its["ATM_RUN"] != "" {
		return "", false
	}
	name = its["ATM_AGENT"]
	if team := its["ATM_TEAM"]; name != "" && team != "" && !strings.Contains(name, "@") {
		name += "@" + team
	}
	return name, isSameDir(worksIn(pid, args), dir)
}

// worksIn returns the directory that a program of Codex works in.
func worksIn(pid int, args []string) string {
	dir := process.Dir(pid)
	for i, arg := range args {
		if (arg == "-C" || arg == "--cd") && i+1 < len(args) {
			arg = "--cd=" + args[i+1]
		}
		if to, ok := strings.CutPrefix(arg, "--cd="); ok && filepath.IsAbs(to) {
			dir = to
		} else if ok {
			dir = filepath.Join(dir, to)
		}
	}
	return dir
}
