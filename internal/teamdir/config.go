package teamdir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Config reads team.toml; without that file it returns the defaults. It never returns nil: with a *config.Error, which
// lists all mistakes in the file, the rest may be shown but not acted upon.
func (t *Team) Config() (*config.Config, error) {
	data, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return config.Default(), err
	}
	c, mistakes := config.Parse(data, t.IsAgent)
	if len(mistakes) > 0 {
		return c, &config.Error{Path: t.Dir().Join(config.File), Mistakes: mistakes}
	}
	return c, nil
}

// WriteConfig writes a team.toml atomically unless there is one, and reports whether it did.
func (t *Team) WriteConfig(text string) (path string, made bool, err error) {
	path = t.Dir().Join(config.File)
	err = t.Dir().Publish(config.File, strings.NewReader(text), true)
	if errors.Is(err, fs.ErrExist) {
		return path, false, nil
	}
	return path, err == nil, err
}

const policyFile = "policy.json" // in <agent>/run: the policy that the agent's runner, or program, was started with

// SavePolicy saves the policy that a member's runner, or a person's program, is being started with.
func (t *Team) SavePolicy(name wire.Name, p policy.Policy) error {
	data, _ := json.Marshal(p)
	return t.writeRunFile(name, policyFile, data)
}

// ForgetPolicy removes what SavePolicy saved.
func (t *Team) ForgetPolicy(name wire.Name) error {
	return t.Dir().Remove(string(name) + "/run/" + policyFile)
}

// PolicyNow returns the policy that a runner of the member would be started with now.
func (t *Team) PolicyNow(name wire.Name) (policy.Policy, error) {
	c, err := t.Config()
	return c.Policy(name), err
}

// PolicyFor returns the policy for a member's questions: the saved one that its runner, or the program of a person, was
// started with, else, also if that is damaged, that of the current team.toml.
func (t *Team) PolicyFor(asker wire.Name) (p policy.Policy, isSaved bool, err error) {
	data, err := t.readRunFile(asker, policyFile)
	if err == nil && json.Unmarshal(data, &p) == nil {
		return p, true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, false, err
	}
	p, err = t.PolicyNow(asker)
	return p, false, err
}

// HasOtherRules reports whether team.toml has changed the policy since the member's runner was started.
func (t *Team) HasOtherRules(name wire.Name) bool {
	atStart, isSaved, _ := t.PolicyFor(name)
	now, err := t.PolicyNow(name)
	return isSaved && err == nil && !now.Equal(atStart)
}
