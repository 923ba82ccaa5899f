package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/tomlfile"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Parse parses a team.toml and returns all mistakes in it; but only the first that makes it no TOML, or of a wrong type.
// The file may name a member without a section if hasMailbox (nil: never) reports true for it.
func Parse(data []byte, hasMailbox func(wire.Name) bool) (*Config, []string) {
	k := checker{config: Default(), hasMailbox: hasMailbox}
	mistakes, isWhole := tomlfile.Decode(data, k.config)
	if isWhole {
		k.check()
		slices.Sort(k.Mistakes)
	}
	return k.config, append(mistakes, k.Mistakes...)
}

// Error reports all mistakes in a team.toml.
type Error struct {
	Path     string
	Mistakes []string // at least one
}

func (e *Error) Error() string { return e.Path + ": " + tomlfile.Mistakes(e.Mistakes).String() }

var reservedEnv = []string{"ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_RUN", "ATM_PROJECT", "ATM_HOOKS"}

// MaySetEnv reports whether a member may have an environment variable of that name: atm sets some itself.
func MaySetEnv(name string) bool {
	return name != "" && !slices.Contains(reservedEnv, name) && !strings.ContainsAny(name, "=\x00")
}

// checker collects the mistakes in the values of a file.
type checker struct {
	tomlfile.Mistakes
	config     *Config
	hasMailbox func(wire.Name) bool // nil: never true
}

func (k *checker) isMember(name wire.Name) bool {
	_, isDescribed := k.config.Members[name]
	return isDescribed || k.hasMailbox != nil && k.hasMailbox(name)
}

func (k *checker) check() {
	c := k.config
	maps.DeleteFunc(c.Members, func(name wire.Name, _ Member) bool {
		_, err := wire.ParseName(string(name))
		k.AddError("members."+string(name), err)
		return err != nil
	})
	if c.Lead == "" && k.isMember("lead") {
		c.Lead = "lead"
	}
	k.checkNames("lead", c.Lead)
	k.checkAddresses("approvers", c.Approvers...)
	k.checkSession("session", &c.Session)
	for name, m := range c.Members {
		k.checkMember("members."+string(name), name, &m)
		c.Members[name] = m
	}
	for name, members := range c.Groups {
		slices.Sort(members)
		c.Groups[name] = slices.Compact(members)
		k.checkGroup("groups."+string(name), name, c.Groups[name])
	}
	for i, r := range c.Rules {
		k.checkRule(fmt.Sprintf("rules[%d]", i), r)
	}
	for i, o := range c.On {
		k.checkOn(fmt.Sprintf("on[%d]", i), o)
	}
	if c.Bridge.Host != "" {
		_, err := hostkey.ParseHost(string(c.Bridge.Host))
		k.AddError("bridge.host", err)
	}
	if c.Bridge.Replicas < 0 || c.Bridge.Replicas > 5 {
		k.Add("bridge.replicas", "%d is not from 1 to 5", c.Bridge.Replicas)
	}
}

func (k *checker) checkMember(path string, name wire.Name, m *Member) {
	if m.Driver != "" {
		k.checkWord(path+".driver", m.Driver, Drivers()...)
	}
	k.checkWord(path+".inject", m.Inject, Injects...)
	k.checkWord(path+".restart", m.Restart, Restarts...)
	k.checkWord(path+".after_limit", m.AfterLimit, "wait", Continue)
	k.checkNames(path+".after", m.After...)
	k.checkNames(path+".serves", m.Serves...)
	k.checkNamed(path+".from", m.From, k.checkAddresses)
	if slices.Contains(k.config.StartOrder(m.After), name) {
		k.Add(path+".after", "a cycle: %s waits for itself", name)
	}
	if m.Command != nil && (len(m.Command) == 0 || m.Command[0] == "") {
		k.Add(path+".command", "it is empty; leave it out if the member is started elsewhere")
		m.Command = nil
	}
	if m.Setup != nil && (len(m.Setup) == 0 || m.Setup[0] == "") {
		k.Add(path+".setup", "it is empty; leave it out if a new worktree needs nothing")
		m.Setup = nil
	}
	if m.Size != "" {
		_, _, err := ParseSize(m.Size)
		k.AddError(path+".size", err)
	}
	for v := range m.Env {
		if !MaySetEnv(v) {
			k.Add(path+".env", "%q is set by atm itself or is not a variable name", v)
		}
	}
	if d, err := time.ParseDuration(m.Lease); m.Lease != "" && (err != nil || d <= 0 || d > holder.MaxLease) {
		k.Add(path+".lease", "%q is not a time above 0 and at most %s, such as \"30m\"", m.Lease, holder.MaxLease)
	}
	if m.Tries < 0 || m.Tries > 100 {
		k.Add(path+".tries", "%d is not from 1 to 100", m.Tries)
		m.Tries = 0
	}
	switch {
	case slices.Contains(m.Serves, name):
		k.Add(path+".serves", "%s cannot serve its own inbox; its own mail it gets anyway", name)
	case len(m.Serves) > 0 && m.Person:
		k.Add(path+".serves", "%s is a person, and nothing is taken for people", name)
	case len(m.Serves) > 0 && m.Inject == "off":
		k.Add(path+".serves", "with inject = \"off\" %s would not be told what it has taken", name)
	}
	if m.Person && (m.Command != nil || m.Worktree || m.Resume) {
		k.Add(path, "%s is a person: people have no command, no worktree and no conversation to resume", name)
	}
	if m.Session != nil {
		k.checkSession(path+".session", m.Session)
	}
}

// checkGroup checks a group. Behind an @ it must be the only one of its name.
func (k *checker) checkGroup(path string, name wire.Name, members []wire.Name) {
	if _, err := wire.ParseName(string(name)); err != nil {
		k.AddError(path, err)
		return
	}
	if k.isMember(name) {
		k.Add(path, "%s is a member as well; give the group another name", name)
	}
	for _, m := range k.config.Members {
		if m.Role == string(name) {
			k.Add(path, "%s is a role as well, and a role is a group already", name)
			break
		}
	}
	if len(members) == 0 {
		k.Add(path, "it has no members")
	}
	k.checkAddresses(path, members...)
}

func (k *checker) checkRule(path string, r policy.Rule) {
	if r.Role != "" && r.Agent != "" {
		k.Add(path, "a rule names a role or an agent, not both")
	}
	if r.Tool == "" || r.Decision == "" {
		k.Add(path, "a rule needs a tool (\"*\" is every tool) and a decision: allow, deny or ask")
	} else {
		k.AddError(path+".tool", policy.CheckTool(r.Tool))
	}
	k.checkWord(path+".decision", string(r.Decision), "allow", "deny", "ask")
	k.checkNames(path+".agent", r.Agent)
}

func (k *checker) checkOn(path string, o On) {
	if len(o.Event) == 0 || len(o.Command) == 0 || o.Command[0] == "" {
		k.Add(path, "an event and a command are needed: event = \"blocked\", command = [\"./notify.sh\"]")
	}
	for _, event := range o.Event {
		k.checkWord(path+".event", event, OnEvents()...)
	}
	switch isUsage := slices.Contains(o.Event, OnUsage); {
	case o.Tokens < 0 || o.Tokens > wire.MaxTokens:
		k.Add(path+".tokens", "%d is not a number of tokens like 2_000_000", o.Tokens)
	case !(o.Cost >= 0 && o.Cost <= wire.MaxCost):
		k.Add(path+".cost", "%v is not an amount of money like 5.0", o.Cost)
	case isUsage && o.Tokens == 0 && o.Cost == 0:
		k.Add(path+".event", "\"usage\" needs a limit: tokens = 2_000_000, or cost = 5.0")
	case !isUsage && (o.Tokens > 0 || o.Cost > 0):
		k.Add(path, "tokens and cost are for event = \"usage\"")
	}
	k.checkNamed(path+".who", o.Who, k.checkNames)
	if d, err := time.ParseDuration(o.Timeout); o.Timeout != "" && (err != nil || d <= 0) {
		k.Add(path+".timeout", "%q is not a duration like \"30s\"", o.Timeout)
	}
}

func (k *checker) checkSession(path string, s *Session) {
	k.checkWord(path+".output_capture", s.OutputCapture, "pipe", "log")
	if on := valueOf(s.AutoExitOn); on != "" && s.Rules() == (session.Rules{}) {
		k.Add(path+".auto_exit_on", `%q is not "idle_timeout: 300s" or "goal_complete"`, on)
	}
	_, err := policy.SplitWords(valueOf(s.ResumeCmd))
	k.AddError(path+".resume_cmd", err)
}

func (k *checker) checkWord(path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		k.Add(path, "%q is not one of %s", value, strings.Join(known, ", "))
	}
}

func (k *checker) checkNames(path string, names ...wire.Name) {
	for _, n := range names {
		if n != "" && !k.isMember(n) {
			k.Add(path, "%q is not a member", n)
		}
	}
}

// checkAddresses checks names of members, of which some may be on other machines: alice@laptop.
func (k *checker) checkAddresses(path string, names ...wire.Name) {
	for _, n := range names {
		if name, host, _ := strings.Cut(string(n), "@"); !wire.IsName(name) || !wire.IsName(host) {
			k.checkNames(path, n)
		}
	}
}

// checkNamed checks words of which each names somebody: a group or a role, or else what check allows.
func (k *checker) checkNamed(path string, words Words, check func(string, ...wire.Name)) {
	if words != nil && len(words) == 0 {
		k.Add(path, "it is empty; leave it out for everybody")
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "@") {
			check(path, wire.Name(word))
		} else if len(k.config.named(word)) == 0 {
			k.Add(path, "%q is no group and no member's role", word)
		}
	}
}
