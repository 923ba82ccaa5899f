package main

import (
	"cmp"
	"os"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/wire"
)

// mayAct refuses what an agent's process may not do to another member of the
// team: from an agent's environment that is the lead's alone. A person may, and
// everybody to themselves. In a root that may have come with a clone nothing is
// done at all, but that what runs can be stopped.
func (e *env) mayAct(verb string, to wire.Name) error {
	if !e.root.Accepted && verb != "stop" {
		return cmdline.Refused("%s: nobody here made or accepted %s; it may have come with a clone", verb, e.root.Path).WithHint("if it is yours: atm init")
	}
	who, agent := e.actor()
	if !agent || who == to {
		return nil
	}
	lead, err := e.team.Lead()
	switch {
	case err != nil: // who cannot be known to lead does not
		return err
	case lead != "" && who == lead:
		return nil
	case lead == "":
		return cmdline.Refused("an agent may %s others only as the team's lead, and team %q has none", verb, e.team.Name).
			WithHint("ask a person, or say what you need: atm send %s \"…\"", to)
	}
	return cmdline.Refused("an agent may %s others only as the team's lead, who is %s", verb, lead).
		WithHint("ask: atm send %s \"Please %s %s: …\"", lead, verb, to)
}

// actor is the member of this team on whose behalf this process acts, and
// whether an agent's program started it. Who runs under atm is who its runner
// says, whatever --as says; "" is nobody of this team. A process that has
// shed its environment is known by those that started it.
func (e *env) actor() (who wire.Name, agent bool) {
	agent = e.inAgent()
	said := e.asked()
	home := e.team.Name
	run := e.Getenv
	if run("ATM_RUN") == "" {
		if env, ok := marked(os.Getppid()); ok {
			run = func(name string) string { return env[name] }
		} else if runner := e.team.RunBy(lineage(os.Getppid())); runner != "" {
			return runner, true
		}
	}
	if run("ATM_RUN") != "" {
		agent = true
		said = run("ATM_AGENT")
		home = wire.Name(cmp.Or(run("ATM_TEAM"), string(home)))
		if root := run("ATM_ROOT"); root != "" && !sameFile(root, e.root.Path) {
			return "", agent // of another root, where names mean others
		}
	}
	if said == "" {
		return "", agent
	}
	a, err := wire.ParseAddress(said, home)
	if err != nil || a.Team != e.team.Name {
		return "", agent
	}
	if value := run("ATM_RUN"); value != "" {
		// While that agent runs, only its own run makes a process that agent.
		own, err := e.team.IsRun(a.Agent, value)
		if running, err2 := e.team.Running(a.Agent); err != nil || err2 != nil || running && !own {
			return "", agent
		}
	}
	return a.Agent, agent
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
