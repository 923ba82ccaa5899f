package programs

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/agents/all"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// This file finds out whose program has started a process, so that an agent does not pass for a person.

// ShellOf is the variable that names the agent in whose shell a command runs, as far as its hooks can set it.
const ShellOf = "ATM_SHELL_OF"

// Marks are the variables that agents' programs set for the processes they start.
func Marks() []string {
	marks := []string{"ATM_RUN", ShellOf, "PI_CODING_AGENT", "COPILOT_CLI"}
	for _, v := range all.Vendors {
		marks = append(marks, v.Marks...)
	}
	return marks
}

// HasMark reports whether an environment is that of a process that an agent's program started.
func HasMark(env func(string) string) bool {
	return slices.ContainsFunc(Marks(), func(mark string) bool { return env(mark) != "" })
}

// StartedBy returns the member, of any team, whose program started a process, by its ancestors and its environment (zero:
// unknown), and whether an agent's program did so at all.
func StartedBy(t *teamdir.Team, pid int, env func(string) string) (by wire.Address, isAgents bool) {
	if by = t.Root().RunnerOf(process.Ancestors(pid)); by != (wire.Address{}) {
		return by, true
	}
	if env("ATM_RUN") != "" {
		return memberOfRun(t, env), true
	}
	if by, ok := MemberOfShell(t, env); ok {
		return by, true
	}
	thread, _ := ThreadOf(env)
	if by, p := MemberOfThread(t.Root(), thread); p.IsRunning() {
		return by, true
	}
	return wire.Address{}, HasMark(env) || isCutOff(t.Root())
}

// isCutOff reports whether this process is in a namespace of processes from which it does not see a runner of the root: then
// that runner's agent may have started it, and nobody can tell. In the first namespace of a machine all is seen.
func isCutOff(root *teamdir.Root) bool {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || space == "pid:[4026531836]" { // PROC_PID_INIT_INO of Linux's include/linux/proc_ns.h
		return false
	}
	for t, name := range members(root) {
		if running, _ := t.Running(name); running && !t.SeesRunner(name) {
			if running, _ = t.Running(name); running { // it has not just ended
				return true
			}
		}
	}
	return false
}

// MemberOfShell returns the member that an environment's ShellOf names, which may be without a team.
func MemberOfShell(t *teamdir.Team, env func(string) string) (of wire.Address, ok bool) {
	of, err := wire.ParseAddress(strings.TrimPrefix(env(ShellOf), "@"), cmp.Or(wire.Name(env("ATM_TEAM")), t.Name))
	return of, err == nil
}

// memberOfRun returns the member whose last run an environment's ATM_RUN is, above all the member that it names:
// processes of a killed runner still act for its agent. Zero for an old run, one of another root, or an invented one.
func memberOfRun(t *teamdir.Team, env func(string) string) wire.Address {
	home := cmp.Or(wire.Name(env("ATM_TEAM")), t.Name)
	named, err := wire.ParseAddress(env("ATM_AGENT"), home)
	isNamed := err == nil
	if isNamed {
		home = named.Team
	}
	team, err := t.Root().Team(home)
	if err != nil {
		return wire.Address{}
	}
	members, _ := team.Agents()
	if isNamed {
		members = append([]wire.Name{named.Agent}, members...)
	}
	for _, name := range members {
		if info, _ := runinfo.Read(team.Dir(), name); info.Run == env("ATM_RUN") {
			return team.Box(name).Address()
		}
	}
	return wire.Address{}
}

// Origin is the evidence that this process attaches to what it sends. via names its program.
func Origin(t *teamdir.Team, via string) *wire.Origin {
	o := &wire.Origin{Via: via, Run: os.Getenv("ATM_RUN")}
	if by, isAgents := StartedBy(t, process.Parent(), os.Getenv); isAgents {
		o.Agent = cmp.Or(by.String(), wire.UnknownAgent)
	}
	if uid := os.Getuid(); uid >= 0 {
		o.UID = &uid
	}
	return o
}
