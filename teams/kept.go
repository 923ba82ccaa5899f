package teams

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// policyFile is, in a member's run directory, the policy that its runner was
// started with. team.toml lies where agents write: what one of them changes
// there counts only once somebody has started a runner outside of an agent.
const policyFile = "policy.json"

// KeepPolicy notes the policy of a runner that is being started.
func (t *Team) KeepPolicy(name wire.Name, p Policy) error {
	dir, err := t.Dir().Make(string(name), "run")
	if err != nil {
		return err
	}
	defer dir.Close()
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return dir.Replace(policyFile, append(data, '\n'), false)
}

// KeptPolicy is the policy that a member's runner was started with; ok is false
// when none is noted.
func (t *Team) KeptPolicy(name wire.Name) (p Policy, ok bool, err error) {
	dir, err := t.Dir().Walk(string(name), "run")
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	defer dir.Close()
	data, err := dir.ReadFile(policyFile, maxRoster)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	if json.Unmarshal(data, &p) != nil {
		return Policy{}, false, nil
	}
	return p, true, nil
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
		if running, err := t.Running(n); err == nil && running && slices.Contains(pids, t.told(n).Runner) {
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
