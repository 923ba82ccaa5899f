package teams

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// What is saved about a member's run lies in <agent>/run: policy.json, the policy that its runner was started with,
// run.json, which the runner writes, and stopped, which changes whenever somebody stops the member.
const (
	policyFile  = "policy.json"
	stoppedFile = "stopped"
)

func (t *Team) saveRun(name wire.Name, file string, data []byte) error {
	dir := string(name) + "/run"
	if err := t.Dir().Mkdir(dir); err != nil {
		return err
	}
	return t.Dir().Replace(dir+"/"+file, append(data, '\n'), false)
}

func (t *Team) savedRun(name wire.Name, file string) ([]byte, error) {
	return t.Dir().ReadFile(string(name)+"/run/"+file, config.MaxSize)
}

// SavePolicy saves the policy of a runner that is being started.
func (t *Team) SavePolicy(name wire.Name, p policy.Policy) error {
	data, _ := json.Marshal(p)
	return t.saveRun(name, policyFile, data)
}

// SavedPolicy is the policy that a member's runner was started with; ok is false
// when none is saved that can be understood.
func (t *Team) SavedPolicy(name wire.Name) (p policy.Policy, ok bool, err error) {
	data, err := t.savedRun(name, policyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	return p, err == nil && json.Unmarshal(data, &p) == nil, err
}

// PolicyNow is the policy that a runner of the member would be started with now.
func (t *Team) PolicyNow(name wire.Name) (policy.Policy, error) {
	c, err := t.Config()
	return c.Policy(name), err
}

// PolicyFor is the policy by which a member's questions are answered: the saved
// one of its runner, else what team.toml says now.
func (t *Team) PolicyFor(asker wire.Name) (policy.Policy, error) {
	saved, ok, err := t.SavedPolicy(asker)
	if ok || err != nil {
		return saved, err
	}
	return t.PolicyNow(asker)
}

// HasOtherRules reports whether team.toml says otherwise who and what answers a member
// than when its runner was started.
func (t *Team) HasOtherRules(name wire.Name) bool {
	saved, ok, err := t.SavedPolicy(name)
	now, mistakes := t.PolicyNow(name)
	return ok && err == nil && mistakes == nil && !now.Equal(saved)
}

// RunAgain is the command that runs a member as team.toml says, or as it ran last; with
// CMD for its program where neither is known, or cannot be typed.
func (t *Team) RunAgain(name wire.Name) string {
	line := "atm run " + string(name)
	c, _ := t.Config()
	run, configured := t.runInfo(name), c.Members[name].Command
	last := run.Command
	if len(configured) > 0 && (len(last) == 0 || slices.Equal(last, configured)) {
		return line
	}
	if run.Driver == "acp" {
		line += " --driver acp"
	}
	again := line + " --"
	for _, word := range last {
		again += " " + policy.Quote(word)
	}
	if len(last) == 0 || len(again) > 200 || letter.Escape(again) != again {
		return line + " -- CMD"
	}
	return again
}

// MarkStopped notes that a member is being stopped, so that a start which is under way gives up.
func (t *Team) MarkStopped(name wire.Name) error {
	return t.saveRun(name, stoppedFile, []byte(wire.NewID()))
}

// LastStop identifies the last stop of a member. A start that was asked for before another one is void.
func (t *Team) LastStop(name wire.Name) (string, error) {
	data, err := t.savedRun(name, stoppedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "never", nil
	}
	return strings.TrimSpace(string(data)), err
}

func (t *Team) runInfo(name wire.Name) (info runinfo.Info) {
	info, _ = runinfo.Read(t.Dir(), name)
	return info
}

// Runs are the members that run, by the ATM_RUN of their processes.
func (t *Team) Runs() map[string]wire.Name {
	runs := map[string]wire.Name{}
	agents, _ := t.Agents()
	for _, n := range agents {
		if running, err := t.Running(n); err == nil && running {
			runs[t.runInfo(n).Run] = n
		}
	}
	return runs
}

// RunBy is the member, of any team, whose runner is the first of these processes: it holds that member's runner lock.
// Agents can write run.json.
func (r *Root) RunBy(pids []int) (a wire.Address) {
	teams, _ := r.Teams()
	for _, pid := range pids {
		for _, name := range teams {
			t, err := r.Team(name)
			if err != nil {
				continue
			}
			for _, lock := range t.Locks().HeldBy(pid) {
				if agent, ok := strings.CutSuffix(lock, ".runner"); ok {
					return t.Box(wire.Name(agent)).Address()
				}
			}
		}
	}
	return a
}
