package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

var reservedEnv = []string{"ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_RUN", "ATM_PROJECT", "ATM_HOOKS"}

// MaySetEnv reports whether a member may have an environment variable of that name: atm sets some itself.
func MaySetEnv(name string) bool {
	return name != "" && !slices.Contains(reservedEnv, name) && !strings.ContainsAny(name, "=\x00")
}

// checker collects the mistakes in a file while it is decoded and checked.
type checker struct {
	lines      Lines
	hasMailbox func(wire.Name) bool // nil: never true
	config     *Config
	mistakes   []Mistake
	members    map[wire.Name]bool // what isMember has found out: groups may name one many times
}

func (k *checker) isMember(name wire.Name) bool {
	is, isKnown := k.members[name]
	if !isKnown {
		_, is = k.config.Members[name]
		is = is || k.hasMailbox != nil && k.hasMailbox(name)
		k.members[name] = is
	}
	return is
}

func (k *checker) add(path, format string, args ...any) {
	k.mistakes = append(k.mistakes, Mistake{Line: k.lines.Of(path), Text: fmt.Sprintf(format, args...)})
}

func (k *checker) check() {
	c := k.config
	k.checkSession("session", &c.Session)
	for name, m := range c.Members {
		path := "members." + string(name)
		if _, err := wire.ParseName(string(name)); err != nil {
			k.add(path, "members: %v", err)
			delete(c.Members, name)
			continue
		}
		k.checkMember(path, name, &m)
		c.Members[name] = m
	}
	if c.Lead == "" && k.isMember("lead") {
		c.Lead = "lead"
	}
	k.checkNames("lead", c.Lead)
	k.checkNames("approvers", c.Approvers...)
	for name, m := range c.Members {
		k.checkNames("members."+string(name)+".after", m.After...)
		k.checkNames("members."+string(name)+".serves", m.Serves...)
		k.checkNamed("members."+string(name)+".from", m.From)
	}
	for _, name := range c.inCycles() {
		k.add("members."+string(name)+".after", "after has a cycle: %s waits for itself", name)
	}
	if _, err := hostkey.ParseHost(string(c.Bridge.Host)); c.Bridge.Host != "" && err != nil {
		k.add("bridge.host", "host: %v", err)
	}
	if c.Bridge.Replicas < 0 || c.Bridge.Replicas > 5 {
		k.add("bridge.replicas", "replicas is %d, not from 1 to 5", c.Bridge.Replicas)
	}
	for name, members := range c.Groups {
		c.Groups[name] = unique(members)
		k.checkGroup("groups."+string(name), name, c.Groups[name])
	}
	for i, r := range c.Rules {
		k.checkRule(fmt.Sprintf("rules.%d", i), r)
	}
	for i, o := range c.On {
		k.checkOn(fmt.Sprintf("on.%d", i), o)
	}
}

func (k *checker) checkMember(path string, name wire.Name, m *Member) {
	if m.Session != nil {
		k.inherit(path+".session", m.Session)
		k.checkSession(path+".session", m.Session)
	}
	if m.Driver != "" {
		k.checkWord(path+".driver", m.Driver, Drivers()...)
	}
	k.checkWord(path+".inject", m.Inject, Injects...)
	k.checkWord(path+".restart", m.Restart, Restarts...)
	k.checkWord(path+".after_limit", m.AfterLimit, AfterLimits...)
	if m.Command != nil && (len(m.Command) == 0 || m.Command[0] == "") {
		k.add(path+".command", "command is empty; leave it out if the member is started elsewhere")
		m.Command = nil
	}
	if _, _, err := ParseSize(m.Size); m.Size != "" && err != nil {
		k.add(path+".size", "size: %v", err)
	}
	for v := range m.Env {
		if !MaySetEnv(v) {
			k.add(path+".env", "env: %q is set by atm itself or is not a variable name", v)
		}
	}
	if _, err := ParseLease(m.Lease); err != nil {
		k.add(path+".lease", "lease: %v", err)
	}
	if m.Tries < 0 || m.Tries > 100 {
		k.add(path+".tries", "tries: %d is not from 1 to 100", m.Tries)
		m.Tries = 0
	}
	m.Serves = unique(m.Serves)
	switch {
	case slices.Contains(m.Serves, name):
		k.add(path+".serves", "serves: %s cannot serve its own inbox; its own mail it gets anyway", name)
	case len(m.Serves) > 0 && m.Person:
		k.add(path+".serves", "serves: %s is a person, and nothing is taken for people", name)
	case len(m.Serves) > 0 && m.Inject == "off":
		k.add(path+".serves", "serves: with inject = \"off\" %s would not be told what it has taken", name)
	}
	if m.Person && (m.Command != nil || m.Worktree || m.Resume) {
		k.add(path, "%s is a person: people have no command, no worktree and no conversation to resume", name)
	}
}

// unique removes what names has again.
func unique(names []wire.Name) []wire.Name {
	seen := map[wire.Name]bool{}
	return slices.DeleteFunc(names, func(n wire.Name) bool {
		was := seen[n]
		seen[n] = true
		return was
	})
}

// checkGroup checks a group. Behind an @ it must be the only one of its name.
func (k *checker) checkGroup(path string, name wire.Name, members []wire.Name) {
	if _, err := wire.ParseName(string(name)); err != nil {
		k.add(path, "groups: %v", err)
		return
	}
	if k.isMember(name) {
		k.add(path, "group %q is a member as well; give the group another name", name)
	}
	for _, n := range slices.Sorted(maps.Keys(k.config.Members)) {
		if k.config.Members[n].Role == string(name) {
			k.add(path, "group %q is the role of %s as well, and a role is a group already", name, n)
			break
		}
	}
	if len(members) == 0 {
		k.add(path, "group %q has no members", name)
	}
	k.checkNames(path, members...)
}

func (k *checker) checkRule(path string, r policy.Rule) {
	if r.Role != "" && r.Agent != "" {
		k.add(path, "a rule names a role or an agent, not both")
	}
	if r.Tool == "" || r.Decision == "" {
		k.add(path, "a rule needs a tool (\"*\" is every tool) and a decision: allow, deny or ask")
	} else if err := policy.CheckTool(r.Tool); err != nil {
		k.add(path+".tool", "tool: %v", err)
	}
	k.checkWord(path+".decision", string(r.Decision), "allow", "deny", "ask")
	k.checkNames(path+".agent", r.Agent)
}

func (k *checker) checkSession(path string, s *Session) {
	k.checkWord(path+".output_capture", s.OutputCapture, "pipe", "log")
	if _, err := s.exitRules(); err != nil {
		k.add(path+".auto_exit_on", "auto_exit_on is %v", err)
	}
	if _, err := policy.SplitWords(s.ResumeCmd); err != nil {
		k.add(path+".resume_cmd", "resume_cmd: %v", err)
	}
}

func (k *checker) checkWord(path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		k.add(path, "%s is %q, not one of %s", lastKey(path), value, strings.Join(known, ", "))
	}
}

func (k *checker) checkNames(path string, names ...wire.Name) {
	for _, n := range names {
		name, host, _ := strings.Cut(string(n), "@")
		isRemote := (path == "approvers" || strings.HasPrefix(path, "groups.") || strings.HasSuffix(path, ".from")) && wire.IsName(name) && wire.IsName(host)
		if n != "" && !k.isMember(n) && !isRemote {
			k.add(path, "%s names %q, which is not a member", lastKey(path), n)
		}
	}
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
