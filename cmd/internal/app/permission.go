package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// OwnEnvironment is this process's environment for what an owner has started: without what says who I am, or that an agent
// has started it.
func OwnEnvironment() []string {
	marks := append(programs.Marks(), "ATM_AGENT", ProjectDir)
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(marks, name)
	})
}

// isPerson reports whether a person types this at a terminal of their own.
func (g *Given) isPerson() bool { return !programs.HasMark(os.Getenv) && output.IsTerminal(g.In) }

// agentOf returns the member, of any team, whose program started this process (zero: unknown), and whether an agent's
// program did so at all.
func (s *Scope) agentOf() (by wire.Address, isInAgent bool) {
	return programs.StartedBy(s.Team, process.Parent(), os.Getenv)
}

// IsInAgent reports whether an agent's program started this process, also where no team is open.
func (s *Scope) IsInAgent() bool {
	return programs.HasMark(os.Getenv) || s.Root.RunnerOf(process.Ancestors(process.Parent())).Team != ""
}

// AgentOf is agentOf for another process, by its ancestors and its environment.
func (s *Scope) AgentOf(pid int) (by wire.Address, isInAgent bool) {
	if pid <= 0 {
		return by, false
	}
	return programs.StartedBy(s.Team, pid, variablesOf(process.Environment(pid)))
}

// variablesOf returns os.Getenv for another environment.
func variablesOf(environment []string) func(string) string {
	env := process.Variables(environment)
	return func(name string) string { return env[name] }
}

// Actor returns the member of this team on whose behalf this process acts ("": none), and whether an agent's program
// started it. If that agent is known, it is the agent, whatever --as says.
func (s *Scope) Actor() (who wire.Name, isInAgent bool) {
	by, isInAgent := s.agentOf()
	if by.Team == s.Team.Name {
		return by.Agent, true
	}
	name, _ := s.Given.Identity()
	a, err := wire.ParseAddress(name, s.Team.Name)
	if by.Team != "" || os.Getenv("ATM_RUN") != "" || err != nil || a.Team != s.Team.Name {
		return "", isInAgent
	}
	return a.Agent, isInAgent
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
	info, err := runinfo.Read(s.Team.Dir(), name)
	if err != nil {
		return failure.Refused("whether this process is of %s, which is running, is unknown: %w", name, err)
	}
	if run := os.Getenv("ATM_RUN"); run != "" && run == info.Run {
		if by := s.Root.RunnerOf(process.Ancestors(process.Parent())); by == (wire.Address{}) || by == s.Me.Address() {
			return nil
		}
	}
	return failure.Refused("%s is running: only its own processes may act as %s", name, name).
		WithHint("`atm read --peek --as %s` looks without marking; to write, use a name of your own", name)
}

// MayAct refuses to do something to another member that Policy.CheckActor refuses, and anything in a root that nobody here
// accepted. verb goes into the message.
func (s *Scope) MayAct(verb string, to wire.Name) error {
	return cmp.Or(s.CheckAccepted(), s.MayStop(verb, to))
}

// CheckAccepted is Root.CheckAccepted.
func (s *Scope) CheckAccepted() error { return s.Root.CheckAccepted(context.Background()) }

// WarnUnaccepted warns, once, about a root in which nothing may act: its mail may be a stranger's.
func (s *Scope) WarnUnaccepted() { s.warnOf(s.CheckAccepted()) }

// WarnUnnoted is WarnUnaccepted without a look at what git tracks.
func (s *Scope) WarnUnnoted() { s.warnOf(s.Root.WasNoted()) }

func (s *Scope) warnOf(unaccepted error) {
	if unaccepted == nil || s.hasWarned {
		return
	}
	s.hasWarned = true
	yours := ""
	if s.Root.Shadows != "" {
		yours = "; it hides yours: --root " + policy.Quote(s.Root.Shadows)
	}
	s.Given.Warn("%v; its mail may be a stranger's: `atm init` shows what is there%s", unaccepted, yours)
}

// MayManage refuses an agent what only people and the lead do to a team: start, add and retire its members, and end it
// whole. A script at a terminal may, in a name of its own too.
func (s *Scope) MayManage(verb string, to wire.Name) error {
	if _, isInAgent := s.Actor(); !isInAgent {
		return nil
	}
	return s.MayStop(verb, to)
}

// MayStop is MayAct for what must work in any root, such as stopping an agent.
func (s *Scope) MayStop(verb string, to wire.Name) error {
	who, isInAgent := s.Actor()
	if who == to || who == "" && !isInAgent {
		return nil
	}
	// The run's own copy, else the caller's: agents can write to team.toml, and its mistakes must not keep a lead from
	// stopping anybody. A copy that cannot be read, or only in part, lets no agent stop it.
	rules, isSaved, err := s.Team.PolicyFor(to)
	if !isSaved && who != "" {
		rules, _, err = s.Team.PolicyFor(who)
	}
	if rules.IsPartial {
		err = s.Team.CheckPolicy(to)
	}
	if err != nil && !isInAgent {
		return nil
	}
	if err != nil {
		return err
	}
	if err = rules.CheckActor(verb, to, who, isInAgent); err == nil {
		return nil
	}
	if asked := s.whomToAsk(who, rules, to); asked != "" {
		return failure.Refused("%w", err).WithHint("ask: `atm send %s \"Please %s %s: …\"`", asked, verb, to)
	}
	return failure.Refused("%w", err).WithHint("ask your person")
}

// whomToAsk returns the member to ask for what only a person or the lead may do to another: the lead, a person, or that
// other one, if it can read the mail; "": none of them.
func (s *Scope) whomToAsk(who wire.Name, rules policy.Policy, to wire.Name) wire.Name {
	candidates := append([]wire.Name{rules.Lead}, rules.People...)
	if running, _ := s.Team.Running(to); running {
		candidates = append(candidates, to)
	}
	i := slices.IndexFunc(candidates, func(n wire.Name) bool { return n != "" && n != who && s.Team.Store.IsAgent(n) })
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// MayBridge refuses to let an agent decide which machines belong to the team, and anybody in a root that nobody here
// accepted.
func (s *Scope) MayBridge() error {
	if _, isInAgent := s.Actor(); isInAgent {
		return failure.Refused("an agent may not bridge the team to other machines").WithHint("ask a person")
	}
	return s.CheckAccepted()
}

// MayAnswer refuses an answer to a member's question from somebody who may not give it, and one that only the terminal
// can give. The rules are those that the member's runner was started with: agents can write to team.toml.
func (s *Scope) MayAnswer(q ask.Question) error {
	who, isInAgent := s.Actor()
	if who == "" {
		return failure.Refused("this process belongs to a run that has ended or to another team: it may not answer for anybody").
			WithHint("ask a person")
	}
	return s.mayAnswerAs(who, isInAgent, q)
}

// mayAnswerAs is MayAnswer for a given name, also of another host. A question from another host is judged there.
func (s *Scope) mayAnswerAs(who wire.Name, isInAgent bool, q ask.Question) error {
	if err := s.CheckAccepted(); err != nil {
		return err
	}
	if q.Kind == ask.KindMail {
		if who != q.To {
			return failure.Refused("%s asks %s, who alone may answer", q.Agent, q.To).WithHint("`atm send %s \"Please answer %s.\"`", q.To, q.Short())
		}
		return nil
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
	if why, hint := AnsweredElsewhere(&q); why != "" {
		return failure.Refused("%s %s", q.Agent, why).WithHint("%s", hint)
	}
	return nil
}

// SavePolicy saves the policy for the questions of a program that its person has just started as Me, as a runner does: by
// that the program is judged until it ends, whatever is written into team.toml. A program that is known already, as after
// a compaction, has one.
func (s *Scope) SavePolicy() error {
	own, _ := process.Program()
	name := s.Me.Agent()
	if slices.ContainsFunc(programs.Of(s.Team, name), func(p programs.Program) bool { return p.PID == own.PID }) {
		return nil
	}
	p, err := s.Team.PolicyNow(name)
	if err != nil { // doctor says what is wrong with team.toml; until it is right, nobody answers
		return s.Team.ForgetPolicy(name)
	}
	if err = s.Team.SavePolicy(name, p); err != nil { // the rules of the session before are not this one's
		err = errors.Join(err, s.Team.ForgetPolicy(name))
	}
	return err
}
