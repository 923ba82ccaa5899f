package command

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// ShellOf is the variable that names the agent in whose shell a command runs, as far as its hooks can set it.
const ShellOf = "ATM_SHELL_OF"

// AgentMarks are the variables that agents' programs set for the processes they start.
func AgentMarks() []string {
	return []string{"ATM_RUN", ShellOf, "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE"}
}

// hasAgentMark reports whether an agent's program started this process.
func hasAgentMark() bool {
	return slices.ContainsFunc(AgentMarks(), func(mark string) bool { return os.Getenv(mark) != "" })
}

// Person reports whether a person types this at a terminal of their own.
func Person() bool { return !hasAgentMark() && term.IsTerminal(int(os.Stdin.Fd())) }

// Actor returns the member of this team on whose behalf this process acts ("": none), and whether an agent's program
// started it. Under a runner that is the runner's agent, whatever --as says; the runner is found among the process's
// ancestors even without its environment.
func (s *Scope) Actor() (who wire.Name, isInAgent bool) {
	if by := s.startedBy(process.Parent()); by.Team == s.Team.Name {
		return by.Agent, true
	} else if by.Team != "" {
		return "", true
	}
	name, _ := GivenIdentity(s.c)
	run, home := os.Getenv("ATM_RUN"), s.Team.Name
	if run != "" {
		name, home = os.Getenv("ATM_AGENT"), cmp.Or(wire.Name(os.Getenv("ATM_TEAM")), home)
	}
	a, err := wire.ParseAddress(name, home)
	if err != nil || a.Team != s.Team.Name {
		return "", hasAgentMark()
	}
	// Processes of a killed runner still act for its agent.
	if info, _ := runinfo.Read(s.Team.Dir(), a.Agent); run != "" && run != info.Run {
		return "", true // an old run, one of another root, or an invented one
	}
	return a.Agent, hasAgentMark()
}

// IsAgent reports whether a process belongs to an agent, by its environment or its ancestors.
func (s *Scope) IsAgent(pid int) bool {
	if pid <= 0 {
		return false
	}
	return s.startedBy(pid).Team != "" || isMarked(process.Environment(pid))
}

// isMarked reports whether an environment has the mark of an agent's program.
func isMarked(environment []string) bool {
	return slices.ContainsFunc(environment, func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return value != "" && slices.Contains(AgentMarks(), name)
	})
}

// startedBy returns the member, of any team, whose runner is the process or one of its ancestors.
func (s *Scope) startedBy(pid int) wire.Address {
	return s.Team.Root().RunnerOf(process.Ancestors(pid))
}

// MayWrite refuses to mark mail, acknowledge and send as a running agent, except for the agent's own processes: those
// whose ATM_RUN names this run of this agent, unless another member's runner started them (agents can read each other's
// ATM_RUN).
func (s *Scope) MayWrite() error {
	name := s.Me.Agent()
	running, err := s.Team.Running(name)
	if err != nil || !running {
		return err
	}
	info, _ := runinfo.Read(s.Team.Dir(), name)
	if run := os.Getenv("ATM_RUN"); run != "" && run == info.Run {
		if by := s.startedBy(process.Parent()); by == (wire.Address{}) || by == s.Me.Address() {
			return nil
		}
	}
	return failure.Refused("%s is running: only its own processes may act as %s", name, name).
		WithHint("atm read --peek --as %s looks without marking; to write, use a name of your own", name)
}

// MayAct refuses to do something to another member from an agent's environment, unless the agent is the lead, and
// anything in a root that nobody here accepted. verb goes into the message.
func (s *Scope) MayAct(verb string, to wire.Name) error {
	return cmp.Or(s.checkAccepted(), s.MayStop(verb, to))
}

func (s *Scope) checkAccepted() error {
	if s.Root.Accepted {
		return nil
	}
	return failure.Refused("nobody here made or accepted %s; it may have come with a clone", s.Root.Path).
		WithHint("if it is yours: atm init")
}

// WarnUnaccepted warns about a root that this user neither named nor made nor accepted.
func (s *Scope) WarnUnaccepted() {
	if !s.Root.Accepted {
		Warn(s.c, "nobody here made or accepted %s; its mail may have come with a clone. If you know its team: atm init accepts it", s.Root.Path)
	}
}

// MayStop is MayAct for what must work in any root, such as stopping an agent.
func (s *Scope) MayStop(verb string, to wire.Name) error {
	who, isInAgent := s.Actor()
	if !isInAgent || who == to {
		return nil
	}
	// The run's own copy, else the caller's: agents can write to team.toml, and its mistakes must not keep a lead from
	// stopping anybody.
	rules, isSaved, err := s.Team.PolicyFor(to)
	if !isSaved && who != "" {
		rules, _, err = s.Team.PolicyFor(who)
	}
	lead := rules.Lead
	if err != nil || who == lead && who != "" {
		return err
	}
	e := failure.Refused("an agent may %s others only as the team's lead, which team %q has none of", verb, s.Team.Name)
	if lead != "" {
		e = failure.Refused("an agent may %s others only as the team's lead, who is %s", verb, lead)
	}
	return e.WithHint("ask: atm send %s \"Please %s %s: …\"", cmp.Or(lead, to), verb, to)
}

// MayBridge refuses to let an agent decide which machines belong to the team, and anybody in a root that nobody here
// accepted.
func (s *Scope) MayBridge() error {
	if _, isInAgent := s.Actor(); isInAgent {
		return failure.Refused("an agent may not bridge the team to other machines").WithHint("ask a person")
	}
	return s.checkAccepted()
}

// MayAnswer refuses an answer to a member's question from somebody who may not give it, and one that only the terminal
// can give. The rules are those that the member's runner was started with: agents can write to team.toml.
func (s *Scope) MayAnswer(q policy.Question) error {
	who, isInAgent := s.Actor()
	if who == "" {
		return failure.Refused("this process belongs to a run that has ended or to another team: it may not answer for anybody").
			WithHint("ask a person")
	}
	return s.mayAnswerAs(who, isInAgent, q)
}

// mayAnswerAs is MayAnswer for a given name, also of another host. A question from another host is judged there.
func (s *Scope) mayAnswerAs(who wire.Name, isInAgent bool, q policy.Question) error {
	if err := s.checkAccepted(); err != nil {
		return err
	}
	if q.Host != "" && isInAgent {
		return failure.Refused("%s is on another host: only a person may answer it from here", q.Agent).WithHint("ask a person")
	}
	if q.Host == "" {
		p, _, err := s.Team.PolicyFor(q.Agent)
		if err := cmp.Or(err, p.CheckAnswerer(q.Agent, who, isInAgent)); err != nil {
			return err
		}
	}
	if why, hint := q.OnlyAtTerminal(); why != "" {
		return failure.Refused("%s %s", q.Agent, why).WithHint("%s", hint)
	}
	return nil
}
