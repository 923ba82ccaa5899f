package command

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// MayWrite refuses what only an agent's own processes may do while it runs: mark its mail, acknowledge and send as it.
// They are those whose ATM_RUN names this very run of this very agent, and that no other member's runner started:
// agents can read the ATM_RUN of others.
func (s *Scope) MayWrite() error {
	name := s.Me.Agent()
	running, err := s.Team.Running(name)
	if err != nil || !running {
		return err
	}
	noted, _ := runinfo.Read(s.Team.Dir(), name)
	if run := os.Getenv("ATM_RUN"); run != "" && run == noted.Run {
		if by := s.startedBy(os.Getppid()); by == (wire.Address{}) || by == s.Me.Address() {
			return nil
		}
	}
	return Refused("%s is running: only its own processes act as %s", name, name).
		WithHint("atm read --peek --as %s looks without marking; to write, use a name of your own", name)
}

// MayAct refuses what an agent's process may not do to another member: from an agent's environment that is the lead's
// alone. A person may, and everybody to themselves. verb stands in the sentence. In a root that may have come with a
// clone nothing is done at all, but for stopping (MayStop).
func (s *Scope) MayAct(verb string, to wire.Name) error {
	if !s.Root.Accepted {
		return Refused("%s: nobody here made or accepted %s; it may have come with a clone", verb, s.Root.Path).
			WithHint("if it is yours: atm init")
	}
	return s.MayStop(verb, to)
}

// MayStop is MayAct for what must be possible in any root, such as ending what runs.
func (s *Scope) MayStop(verb string, to wire.Name) error {
	who, agent := s.Actor()
	if !agent || who == to {
		return nil
	}
	rules, isSaved, err := s.Team.SavedPolicy(to) // its run knows the lead: team.toml lies where agents write
	if err == nil && !isSaved {
		rules, err = s.Team.PolicyFor(cmp.Or(who, to))
	}
	lead := rules.Lead
	if err != nil || who == lead && who != "" {
		return err
	}
	if lead == "" {
		return Refused("an agent may %s others only as the team's lead, and team %q has none", verb, s.Team.Name).
			WithHint("ask a person, or say what you need: atm send %s \"…\"", to)
	}
	return Refused("an agent may %s others only as the team's lead, who is %s", verb, lead).
		WithHint("ask: atm send %s \"Please %s %s: …\"", lead, verb, to)
}

// MayBridge refuses whoever may not say which machines belong to the team: an agent, and anybody in a root that
// may have come with a clone.
func (s *Scope) MayBridge() error {
	if _, isAgent := s.Actor(); isAgent {
		return Refused("an agent may not bridge the team to other machines").WithHint("ask a person")
	}
	return s.MayAct("bridge", "all")
}

// MayAnswer refuses whoever may not answer what a member asks, and what cannot be answered from here. The
// rules are those that the asker's runner was started with, as team.toml lies where agents write.
func (s *Scope) MayAnswer(q policy.Question) error {
	who, isInAgent := s.Actor()
	if who == "" {
		return Refused("this process belongs to a run that is over, or of another team: it answers for nobody").
			WithHint("ask a person")
	}
	return s.mayAnswerAs(who, isInAgent, q)
}

// mayAnswerAs is MayAnswer for somebody else, as alice@laptop. What is asked on another host is judged there.
func (s *Scope) mayAnswerAs(who wire.Name, isInAgent bool, q policy.Question) error {
	if !s.Root.Accepted {
		return Refused("nothing is answered in %s: nobody here made or accepted it", s.Root.Path).
			WithHint("if it is yours: atm init")
	}
	var err error
	if q.Host != "" && isInAgent {
		err = Refused("%s is on another host, where agents answer nothing", q.Agent).WithHint("ask a person")
	} else if q.Host == "" {
		var p policy.Policy
		if p, err = s.Team.PolicyFor(q.Agent); err == nil {
			err = p.MayAnswer(q.Agent, who, isInAgent)
		}
	}
	if why, hint := q.OnlyAtTerminal(); err == nil && why != "" {
		err = Refused("%s %s", q.Agent, why).WithHint("%s", hint)
	}
	return err
}

// ShortIn gives the ids of questions as people quote them, with as many digits as tell them apart; "" of one without.
func ShortIn(all []policy.Question) func(policy.Question) string {
	var ids []wire.ID
	for _, q := range all {
		ids = append(ids, wire.ID(q.ID))
	}
	n := letter.ShortLength(ids)
	return func(q policy.Question) string {
		if id := wire.ID(q.ID); q.Short() == id.Short(6) {
			return letter.Escape(id.Short(n))
		}
		return letter.Escape(q.Short())
	}
}

// Actor is the member of this team on whose behalf this process acts, and whether an agent's program started it.
// Whoever runs under atm is who the runner says, whatever --as says; a process that has shed its environment is known
// by the runner among those that started it. "" is nobody of this team.
func (s *Scope) Actor() (who wire.Name, agent bool) {
	if by := s.startedBy(os.Getppid()); by.Team == s.Team.Name {
		return by.Agent, true
	} else if by.Team != "" {
		return "", true
	}
	name, _ := said(s.c)
	run, home := os.Getenv("ATM_RUN"), s.Team.Name
	if run != "" {
		name, home = os.Getenv("ATM_AGENT"), cmp.Or(wire.Name(os.Getenv("ATM_TEAM")), home)
	}
	a, err := wire.ParseAddress(name, home)
	if err != nil || a.Team != s.Team.Name {
		return "", InAgent()
	}
	// A runner that is gone leaves processes that still act for its agent.
	if noted, _ := runinfo.Read(s.Team.Dir(), a.Agent); run != "" && run != noted.Run {
		return "", true // a run that is over, of another root, or made up
	}
	return a.Agent, InAgent()
}

// IsAgent reports whether a process belongs to an agent, as far as the system
// shows: by its environment, or by what started it.
func (s *Scope) IsAgent(pid int) bool {
	if pid <= 0 {
		return false
	}
	return s.startedBy(pid).Team != "" || slices.ContainsFunc(process.Environment(pid), func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return value != "" && slices.Contains(AgentMarks(), name)
	})
}

// startedBy is the member, of any team, whose runner started a process, or is it.
func (s *Scope) startedBy(pid int) wire.Address { return s.Team.Root().RunBy(process.Ancestors(pid)) }
