package teamdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
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
	return t.Dir().Remove(runFile(name, policyFile))
}

// PolicyNow returns the policy that a runner of the member would be started with now.
func (t *Team) PolicyNow(name wire.Name) (policy.Policy, error) {
	c, err := t.Config()
	return c.Policy(name), err
}

// PolicyFor returns the policy for a member's questions: the saved one that its runner, or the program of a person, was
// started with, else that of the current team.toml. With an error for the saved one it returns a policy that allows
// nobody anything: team.toml may allow more.
func (t *Team) PolicyFor(asker wire.Name) (p policy.Policy, isSaved bool, err error) {
	err = t.readPolicy(asker, &p)
	if errors.Is(err, fs.ErrNotExist) {
		p, err = t.PolicyNow(asker)
		return p, false, err
	}
	if err != nil {
		return policy.Policy{Approvers: []wire.Name{}, Mute: true}, true, err
	}
	return p, true, nil
}

// noRules is in a policyFile for one that was removed, since nobody here had written it: see Root.RemoveLeft.
const noRules = `{"removed":true}`

// ErrNoRules says that a member has noRules.
var ErrNoRules = errors.New("it came with the root, and its rules were removed when that was accepted")

// readPolicy reads what SavePolicy saved. What differs from it by anything, such as a member that another version of atm
// knows, may be a rule that denies or a name that is missing.
func (t *Team) readPolicy(name wire.Name, p *policy.Policy) error {
	data, err := t.readRunFile(name, policyFile)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(data)) == noRules {
		return fmt.Errorf("%s: %w", t.Dir().Join(runFile(name, policyFile)), ErrNoRules)
	}
	err = durable.DecodeObject(data, p)
	if again, _ := json.Marshal(p); err == nil && !bytes.Equal(again, bytes.TrimSpace(data)) {
		err = errors.New("it is not as this version of atm writes it")
	}
	if err != nil {
		return &durable.FormatError{Path: t.Dir().Join(runFile(name, policyFile)), Reason: err.Error()}
	}
	return nil
}

// CheckPolicy returns what is wrong with the saved policy of a member; nil also if there is none.
func (t *Team) CheckPolicy(name wire.Name) error {
	err := t.readPolicy(name, &policy.Policy{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HasOtherRules reports whether team.toml has changed the policy since the member's runner was started.
func (t *Team) HasOtherRules(name wire.Name) bool {
	atStart, isSaved, unknown := t.PolicyFor(name)
	now, err := t.PolicyNow(name)
	return isSaved && unknown == nil && err == nil && !now.Equal(atStart)
}
