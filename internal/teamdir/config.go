package teamdir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/wire"
)

// Config returns what team.toml says now; without that file, the defaults. It never returns nil: with a *config.Error, which
// lists all mistakes in the file, the rest may be shown but not acted upon. Nobody may change it: others have it too.
func (t *Team) Config() (*config.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := time.Now()
	file, err := t.Dir().Lstat(config.File)
	dir, dirErr := t.Dir().Lstat(".") // who is a member counts, too
	isThere := err == nil && dirErr == nil
	if isThere && isSame(t.read.file, file) && isSame(t.read.dir, dir) {
		return t.read.config, t.read.err
	}
	data, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return config.Default(), err
	}
	c, mistakes := config.Parse(data, t.Store.IsAgent)
	err = nil
	if len(mistakes) > 0 {
		err = &config.Error{Path: t.Dir().Join(config.File), Mistakes: mistakes}
	}
	t.read = readConfig{}
	if isThere && began.Sub(file.ModTime()) > clockStep && began.Sub(dir.ModTime()) > clockStep {
		t.read = readConfig{file, dir, c, err}
	}
	return c, err
}

// readConfig is what was read of a team.toml, in a directory that had these members.
type readConfig struct {
	file, dir fs.FileInfo
	config    *config.Config
	err       error
}

// clockStep is how long what changes once more may bear the same time, on any file system.
const clockStep = 2 * time.Second

func isSame(before, now fs.FileInfo) bool {
	return before != nil && os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
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

// ReplaceConfig writes a team.toml in place of the one that is there, which it keeps as team.toml.old.
func (t *Team) ReplaceConfig(text string) (path string, made bool, err error) {
	before, err := t.Dir().ReadFile(config.File, config.MaxSize)
	if err == nil && string(before) != text {
		err = t.Dir().Replace(config.File+".old", before, true)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = t.Dir().Replace(config.File, []byte(text), true)
	}
	return t.Dir().Join(config.File), err == nil, err
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

// Servers lists the members that take jobs from a shared inbox by themselves, by team.toml or as they run.
func (t *Team) Servers(inbox wire.Name) (names []wire.Name) {
	c, _ := t.Config()
	all, _ := t.Store.Agents()
	for _, name := range all {
		runs, _ := t.Running(name)
		if slices.Contains(c.Members[name].Serves, inbox) || runs && slices.Contains(t.RunInfo(name).Serves, inbox) {
			names = append(names, name)
		}
	}
	return names
}

// Takers lists the members that may take a job from a shared inbox: its servers, or all if there is none.
func (t *Team) Takers(inbox wire.Name) []wire.Name {
	if servers := t.Servers(inbox); servers != nil {
		return servers
	}
	c, _ := t.Config()
	all, _ := t.Store.Agents()
	return slices.DeleteFunc(all, func(name wire.Name) bool {
		isShared, _ := claim.Shared(t.Box(name))
		return isShared || c.Members[name].Person
	})
}

// Tries is how often a job of a shared inbox is given out in vain before it is set aside.
func (t *Team) Tries(inbox wire.Name) int {
	c, _ := t.Config()
	return cmp.Or(c.Members[inbox].Tries, config.DefaultTries)
}

// PolicyNow returns the policy that a runner of the member would be started with now.
func (t *Team) PolicyNow(name wire.Name) (policy.Policy, error) {
	c, err := t.Config()
	return c.Policy(name), err
}

// PolicyFor returns the policy for a member's questions: the saved one that its runner, or the program of a person, was
// started with, else that of the current team.toml. Of one that another version of atm has saved it returns what is known,
// as policy.Partial says. With an error for the saved one it returns a policy that allows nobody anything: team.toml may
// allow more.
func (t *Team) PolicyFor(asker wire.Name) (p policy.Policy, isSaved bool, err error) {
	p, err = t.readPolicy(asker)
	partial, isPartial := errors.AsType[*partialError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p, err = t.PolicyNow(asker)
		return p, false, err
	case isPartial:
		return partial.known, true, nil
	case err != nil:
		return policy.Policy{Approvers: []wire.Name{}, Mute: true}, true, err
	}
	return p, true, nil
}

// partialError says that a saved policy has more than this version of atm knows.
type partialError struct {
	error
	known policy.Policy
}

// readPolicy reads what SavePolicy saved. With a *partialError there is more in it. Where it differs in any other way, what
// is missing may be a rule that denies, or a name.
func (t *Team) readPolicy(name wire.Name) (p policy.Policy, err error) {
	data, err := t.ReadRunFile(name, policyFile)
	if err != nil {
		return p, err
	}
	fault := func(reason string) error {
		return &durable.FormatError{Path: t.Dir().Join(runFile(name, policyFile)), Reason: reason}
	}
	if err := durable.DecodeObject(data, &p); err != nil {
		return p, fault(err.Error())
	}
	again, _ := json.Marshal(p)
	unknown, hasAll := beyond("", value(data), value(again))
	for _, r := range p.Rules {
		if r.Decision != policy.Allow && r.Decision != policy.Deny && r.Decision != policy.Ask {
			unknown = fmt.Sprintf("decision %q", r.Decision)
		}
	}
	switch {
	case !hasAll:
		return p, fault("it is not as atm writes it")
	case unknown != "":
		return p, &partialError{fault("another version of atm wrote it: this one does not know its " + unknown), p.Partial()}
	}
	return p, nil
}

func value(data []byte) (v any) {
	json.Unmarshal(data, &v) // it was decoded before
	return v
}

// beyond names a member of a JSON value that the other one, which knows fewer, does not have; "": there is none. hasAll
// reports whether it has all of the other.
func beyond(path string, v, known any) (name string, hasAll bool) {
	switch known := known.(type) {
	case map[string]any:
		object, _ := v.(map[string]any)
		for key, want := range known {
			got, isThere := object[key]
			more, ok := beyond(path+key+".", got, want)
			if !isThere || !ok {
				return "", false
			}
			name = cmp.Or(name, more)
		}
		for key := range object {
			if _, isKnown := known[key]; !isKnown {
				name = strconv.Quote(path + key)
			}
		}
		return name, true
	case []any:
		list, _ := v.([]any)
		if len(list) != len(known) {
			return "", false
		}
		for i := range known {
			more, ok := beyond(path, list[i], known[i])
			if !ok {
				return "", false
			}
			name = cmp.Or(name, more)
		}
		return name, true
	}
	return "", v == known
}

// CheckPolicy returns what is wrong with the saved policy of a member, or that it is partial; nil also if there is none.
func (t *Team) CheckPolicy(name wire.Name) error {
	_, err := t.readPolicy(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// HasOtherRules reports whether team.toml has changed the policy since the member's runner was started.
func (t *Team) HasOtherRules(name wire.Name) bool {
	atStart, isSaved, unknown := t.PolicyFor(name)
	now, err := t.PolicyNow(name)
	return isSaved && unknown == nil && !atStart.IsPartial && err == nil && !now.Equal(atStart)
}
