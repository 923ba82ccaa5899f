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
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/reducer/ask"
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

// Actor returns who does what this process does: the member whose program started it, whatever --as says, else the member
// that it names. One of another team has its whole address for a name. A process of an agent that is not known names nobody
// if it bears no mark, since it is cut off from what started it, and no member that atm runs, whose processes are known.
func (s *Scope) Actor() policy.Actor {
	by, isAgent := s.agentOf()
	if by != (wire.Address{}) {
		return policy.Actor{Name: s.nameOf(by), IsAgent: true}
	}
	if os.Getenv("ATM_RUN") != "" || isAgent && !programs.HasMark(os.Getenv) { // a run that has ended, or an invented one
		return policy.Actor{IsAgent: true}
	}
	name, _ := s.Given.Identity()
	if a, err := wire.ParseAddress(name, s.Team.Name); err == nil {
		if running, _ := s.Team.Running(a.Agent); isAgent && running {
			return policy.Actor{IsAgent: true}
		}
		return policy.Actor{Name: s.nameOf(a), IsAgent: isAgent}
	}
	return policy.Actor{Name: wire.Name(name), IsAgent: isAgent}
}

// nameOf is how the rules of this team call a member: alice, or alice@web of another team.
func (s *Scope) nameOf(a wire.Address) wire.Name {
	if a.Team == s.Team.Name && a.Host == "" {
		return a.Agent
	}
	return wire.Name(a.String())
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

// MayAct is May, and refuses everything in a root that nobody here accepted.
func (s *Scope) MayAct(act policy.Act, on wire.Name) error {
	return cmp.Or(s.CheckAccepted(), s.May(act, on))
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

// May returns why this process may not do something to a member, with whom it can ask for it.
func (s *Scope) May(act policy.Act, on wire.Name) error {
	return s.may(act, on, s.Actor())
}

func (s *Scope) may(act policy.Act, on wire.Name, by policy.Actor) error {
	// The run's own copy, else the caller's: agents can write to team.toml, and its mistakes must not keep a lead from
	// stopping anybody. What cannot be read lets no agent act, and nobody answer.
	rules, isSaved, err := s.Team.PolicyFor(cmp.Or(on, by.Name)) // "": it is about the whole team
	switch {
	case act == policy.Answer:
	case err != nil && !by.IsAgent:
		rules, _ = s.Team.PolicyNow(on)
		err = nil
	case !isSaved && by.Name != "" && by.IsAgent:
		rules, _, err = s.Team.PolicyFor(by.Name)
	}
	if err != nil && by.Name != on {
		return err
	}
	if err = rules.Check(act, on, by); err == nil {
		return nil
	}
	if act == policy.Answer {
		return err // Explain has its hint
	}
	if on == "" {
		return failure.Refused("%w", err).WithHint("ask a person")
	}
	if asked := s.whomToAsk(by.Name, rules, on); asked != "" {
		return failure.Refused("%w", err).WithHint("ask: `atm send %s \"Please %s %s: …\"`", asked, act, on)
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

// MayAnswer refuses an answer to a member's question from somebody who may not give it, and one that only the terminal
// can give. The rules are those that the member's runner was started with: agents can write to team.toml.
func (s *Scope) MayAnswer(q ask.Question) error { return s.mayAnswer(q, s.Actor()) }

// mayAnswer is MayAnswer for an actor, also of another host. A question from another host is judged there.
func (s *Scope) mayAnswer(q ask.Question, by policy.Actor) error {
	if err := s.CheckAccepted(); err != nil {
		return err
	}
	switch {
	case q.Kind == ask.KindMail && by != (policy.Actor{Name: q.To}):
		return failure.Refused("%s asks %s, who alone may answer", q.Agent, q.To).WithHint("`atm send %s \"Please answer %s.\"`", q.To, q.Short())
	case q.Kind == ask.KindMail:
		return nil
	case q.Host != "" && by.IsAgent:
		return failure.Refused("%s is on another host: only a person may answer it from here", q.Agent).WithHint("ask a person")
	case q.Host == "":
		if err := s.may(policy.Answer, q.Agent, by); err != nil {
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
