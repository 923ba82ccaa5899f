package teams

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// policyFile is, in a member's run directory, the policy that its runner was
// started with. team.toml lies where agents write: what one of them changes
// there counts only once somebody has started a runner outside of an agent.
const policyFile = "policy.json"

// startFile is, beside it, what team.toml said about a member when its runner
// was started, and stopFile the mark of the last time that it was stopped.
const (
	startFile = "start.json"
	stopFile  = "stopped"
)

// KeepPolicy notes the policy of a runner that is being started.
func (t *Team) KeepPolicy(name wire.Name, p Policy) error { return t.keep(name, policyFile, p) }

// KeptPolicy is the policy that a member's runner was started with; ok is false
// when none is noted.
func (t *Team) KeptPolicy(name wire.Name) (p Policy, ok bool, err error) {
	if ok, err = t.kept(name, policyFile, &p); !ok {
		p = Policy{}
	}
	return p, ok, err
}

// KeepStart notes how a runner that is being started was told to: as team.toml
// says, with the command that it really runs.
func (t *Team) KeepStart(name wire.Name, m MemberPlan) error { return t.keep(name, startFile, m) }

// RunAgain is the command that runs a member as it ran last, or as team.toml says;
// its program is CMD where neither is known, or cannot be typed in a line.
func (t *Team) RunAgain(name wire.Name) string {
	line := "atm run " + string(name)
	var said []string
	if plan, err := t.Plan(); err == nil {
		said = plan.Members[name].Command
	}
	var was MemberPlan
	if ok, err := t.kept(name, startFile, &was); ok && err == nil && len(was.Command) > 0 && !slices.Equal(was.Command, said) {
		const longest = 200
		again := line + " --"
		for _, word := range was.Command {
			again += " " + quote(word)
		}
		if len(again) <= longest && shown(again) == again {
			return again
		}
		said = nil
	}
	if len(said) > 0 {
		return line
	}
	return line + " -- CMD"
}

// Changed names what team.toml says otherwise by now than when a member's runner
// was started, by its keys; rules stands for all that is about answers.
func (t *Team) Changed(name wire.Name, plan *Plan) (keys []string) {
	var was MemberPlan
	if ok, err := t.kept(name, startFile, &was); ok && err == nil {
		keys = was.differs(plan.Members[name])
	}
	if policy, ok, err := t.KeptPolicy(name); ok && err == nil && !t.policyNow(plan).Equal(policy) {
		keys = append(keys, "rules")
	}
	return keys
}

// policyNow is the policy of a plan in this team.
func (t *Team) policyNow(plan *Plan) Policy {
	p := plan.Policy()
	if p.Lead == "" && t.Box("lead").Exists() {
		p.Lead = "lead"
	}
	return p
}

// MarkStopped notes that a member was stopped: who was about to start it does
// so no more. One that was never to be started needs no mark.
func (t *Team) MarkStopped(name wire.Name) error {
	err := t.Dir().Replace(string(name)+"/run/"+stopFile, []byte(wire.NewID()+"\n"), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it never ran
	}
	return err
}

// LastStop tells the last stop of a member from all others. A start that was
// asked for before another one is void.
func (t *Team) LastStop(name wire.Name) (string, error) {
	if err := t.Box(name).Present(); errors.Is(err, mailbox.ErrNoAgent) {
		return "never", nil // and no directory is made where one may be restored
	}
	if err := t.Dir().Mkdir(string(name) + "/run"); err != nil {
		return "", err
	}
	data, err := t.Dir().ReadFile(string(name)+"/run/"+stopFile, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return "never", nil
	}
	return strings.TrimSpace(string(data)), err
}

// keep writes a file of JSON into a member's run directory.
func (t *Team) keep(name wire.Name, file string, v any) error {
	if err := t.Dir().Mkdir(string(name) + "/run"); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.Dir().Replace(string(name)+"/run/"+file, append(data, '\n'), false)
}

// kept reads such a file; ok is false when there is none that makes sense.
func (t *Team) kept(name wire.Name, file string, v any) (ok bool, err error) {
	data, err := t.Dir().ReadFile(string(name)+"/run/"+file, maxRoster)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && json.Unmarshal(data, v) == nil, err
}

// RunBy is the member whose runner is among these processes; "": none is.
func (t *Team) RunBy(pids []int) wire.Name {
	if len(pids) == 0 {
		return ""
	}
	agents, err := t.Agents()
	if err != nil {
		return ""
	}
	for _, n := range agents {
		if running, err := t.Running(n); err == nil && running && slices.Contains(pids, t.runInfo(n).Runner) {
			return n
		}
	}
	return ""
}

// Cautious is a policy that allows nothing by itself: what is left of the one in
// team.toml when an agent starts another and nobody has started that one before.
func (p Policy) Cautious() Policy {
	var deny Rules
	for _, r := range p.Rules {
		if r.Decision == Deny {
			deny = append(deny, r)
		}
	}
	p.Rules = deny
	return p
}
