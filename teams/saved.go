package teams

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/runinfo"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// What is saved about a member's run lies in <agent>/run: policy.json , start.json, what team.toml said about the member when its runner was
// started, and stopped, which changes whenever somebody stops the member.

const (
	policyFile  = "policy.json"
	startFile   = "start.json"
	stoppedFile = "stopped"
)

func runFile(name wire.Name, file string) string { return string(name) + "/run/" + file }

// saveRun saves a value in a member's run directory.
func (t *Team) saveRun(name wire.Name, file string, v any) error {
	if err := t.Dir().Mkdir(string(name) + "/run"); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.Dir().Replace(runFile(name, file), append(data, '\n'), false)
}

// SavePolicy saves the policy of a runner that is being started.
func (t *Team) SavePolicy(name wire.Name, p policy.Policy) error {
	return t.saveRun(name, policyFile, p)
}

// SavedPolicy is the policy that a member's runner was started with; ok is false
// when none is saved that can be understood.
func (t *Team) SavedPolicy(name wire.Name) (p policy.Policy, ok bool, err error) {
	data, err := t.Dir().ReadFile(runFile(name, policyFile), config.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil || json.Unmarshal(data, &p) != nil {
		return policy.Policy{}, false, err
	}
	return p, true, nil
}

// PolicyNow is the policy that a runner of the member would be started with now.
func (t *Team) PolicyNow(name wire.Name) (policy.Policy, error) {
	c, err := t.Config()
	return t.policyIn(c, name), err
}

func (t *Team) policyIn(c *config.Config, name wire.Name) policy.Policy {
	p := c.Policy(name)
	p.Lead = t.leadIn(c)
	return p
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

// SaveStart saves how a runner that is being started was told to run: as
// team.toml says, with the command that it really runs.
func (t *Team) SaveStart(name wire.Name, m config.Member) error {
	return t.saveRun(name, startFile, m)
}

// savedStart is how a member's runner was told to run; ok is false when that is
// not known.
func (t *Team) savedStart(name wire.Name) (m config.Member, ok bool) {
	data, err := t.Dir().ReadFile(runFile(name, startFile), config.MaxSize)
	return m, err == nil && json.Unmarshal(data, &m) == nil
}

// RunAgain is the command that runs a member as it ran last, or as team.toml
// says; with CMD for its program where neither is known, or cannot be typed.
func (t *Team) RunAgain(name wire.Name) string {
	line := "atm run " + string(name)
	c, _ := t.Config()
	configured := c.Members[name].Command
	last, ok := t.savedStart(name)
	if len(configured) > 0 && (!ok || len(last.Command) == 0 || slices.Equal(last.Command, configured)) {
		return line
	}
	if len(last.Command) == 0 {
		return line + " -- CMD"
	}
	again := line + " --"
	for _, word := range last.Command {
		again += " " + quote(word)
	}
	if len(again) > 200 || printable(again) != again {
		return line + " -- CMD"
	}
	return again
}

// Changed names the keys of team.toml that differ since a member's runner was
// started; "rules" stands for all that decides about answers.
func (t *Team) Changed(name wire.Name, c *config.Config) (keys []string) {
	if last, ok := t.savedStart(name); ok {
		keys = last.Differences(c.Members[name])
	}
	if saved, ok, err := t.SavedPolicy(name); ok && err == nil && !t.policyIn(c, name).Equal(saved) {
		keys = append(keys, "rules")
	}
	return keys
}

// MarkStopped notes that a member is being stopped, so that a start which is
// under way gives up. A member that never ran needs no mark.
func (t *Team) MarkStopped(name wire.Name) error {
	err := t.Dir().Replace(runFile(name, stoppedFile), []byte(wire.NewID()+"\n"), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LastStop identifies the last stop of a member. A start that was asked for
// before another one is void.
func (t *Team) LastStop(name wire.Name) (string, error) {
	if err := t.Box(name).Present(); errors.Is(err, mailbox.ErrNoAgent) {
		return "never", nil // no directory is made for somebody who is no member
	}
	if err := t.Dir().Mkdir(string(name) + "/run"); err != nil {
		return "", err
	}
	data, err := t.Dir().ReadFile(runFile(name, stoppedFile), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return "never", nil
	}
	return strings.TrimSpace(string(data)), err
}

// runInfo is what a member's runner has written down about itself; zero when it
// has not.
func (t *Team) runInfo(name wire.Name) (info runinfo.Info) {
	if data, err := t.Dir().ReadFile(string(name)+"/run/"+runinfo.File, runinfo.MaxSize); err == nil {
		info, _ = runinfo.Parse(data)
	}
	return info
}

// IsRun reports whether run, the ATM_RUN of some process, names the live run of
// this member. Any other value counts as none.
func (t *Team) IsRun(name wire.Name, run string) (bool, error) {
	if run == "" {
		return false, nil
	}
	running, err := t.Running(name)
	if err != nil || !running {
		return false, err
	}
	return t.runInfo(name).Run == run, nil
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
