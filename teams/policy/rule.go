package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Decision is how a rule answers a permission request.
type Decision string

// The decisions. Ask is also the decision when no rule matches.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	Ask   Decision = "ask"
)

// Rule decides the permission requests of one agent, of all agents with a role or, with neither, of all agents. Tool is
// a tool's name or name(pattern); the pattern matches what the tool is about to do, and * matches anything.
type Rule struct {
	Role     string    `json:"role,omitempty"`
	Agent    wire.Name `json:"agent,omitempty"`
	Tool     string    `json:"tool"`
	Decision Decision  `json:"decision"`
}

// Request is a permission request of an agent.
type Request struct {
	Agent   wire.Name
	Tool    string // "": unknown
	Alias   string // another name of the tool, or ""; a rule may name either
	Command bool   // Input is a command, whatever the tool's name suggests (see TakesNoCommand)
	Input   string // the command, path or address that the tool is about to use

	role string
}

// isTool reports whether the name in a rule matches the tool.
func (q Request) isTool(name string) bool {
	name = strings.ToLower(name)
	return glob(name, strings.ToLower(q.Tool)) || q.Alias != "" && glob(name, strings.ToLower(q.Alias))
}

// Rules are tried in order; the first that matches decides.
//
// A pattern allows a shell command only if the line is one plain call: no second command, no expansion, no redirection,
// no assignment. A pattern denies or asks if any command in the line matches, whatever its quoting and the program's
// directory. If it is uncertain whether a deny or ask rule matches, no later rule allows the request.
//
// Rules are no sandbox: an agent that may run a script may run anything.
type Rules []Rule

// decide applies the rules to a request.
func (rules Rules) decide(q Request) Decision {
	in, allowed := parseInput(q), q.asAllowed()
	isUncertain := in.isCut // or an earlier deny or ask rule may match
	for _, r := range rules {
		switch {
		case !r.isFor(q):
		case r.Decision != Allow:
			matches, mayMatch := r.restricts(q, allowed, in)
			if matches {
				return r.Decision
			}
			isUncertain = isUncertain || mayMatch
		case r.allows(allowed, in):
			if isUncertain {
				return Ask
			}
			return Allow
		}
	}
	return Ask
}

// asAllowed returns the request with only the names under which a rule may allow it.
func (q Request) asAllowed() Request {
	if q.Command && TakesNoCommand(q.Tool) {
		q.Tool = ""
	}
	if q.Command && TakesNoCommand(q.Alias) {
		q.Alias = ""
	}
	return q
}

func (r Rule) isFor(q Request) bool {
	return (r.Role == "" || r.Role == q.role) && (r.Agent == "" || r.Agent == q.Agent)
}

func (r Rule) allows(allowed Request, in input) bool {
	name, pattern, hasPattern := splitTool(r.Tool)
	if allowed.Tool == "" || !allowed.isTool(name) {
		return false
	}
	return !hasPattern || in.isPlain && glob(pattern, in.text)
}

// restricts reports whether a deny or ask rule matches the request, or else may match.
func (r Rule) restricts(q, allowed Request, in input) (matches, mayMatch bool) {
	name, pattern, hasPattern := splitTool(r.Tool)
	switch {
	case !q.isTool(name):
		return false, q.Tool == ""
	case r.Decision == Ask && !allowed.isTool(name):
		return false, true // the model chose this name: a later rule may deny, but none may allow
	case !hasPattern || in.includes(pattern):
		return true, false
	}
	return false, in.mayInclude(pattern)
}

func splitTool(tool string) (name, pattern string, hasPattern bool) {
	name, rest, hasPattern := strings.Cut(tool, "(")
	return name, strings.TrimSuffix(rest, ")"), hasPattern
}

// CheckTool returns what is wrong with a rule's tool.
func CheckTool(tool string) error {
	name, pattern, hasPattern := splitTool(tool)
	switch {
	case strings.TrimSpace(name) == "" || name != strings.TrimSpace(name):
		return fmt.Errorf("%q names no tool", tool)
	case strings.Contains(name, ")") || hasPattern && !strings.HasSuffix(tool, ")"):
		return fmt.Errorf("%q: the pattern goes in parentheses after the name, as in \"Bash(git *)\"", tool)
	case hasPattern && strings.TrimSpace(pattern) == "":
		return errors.New("the pattern is empty; leave out the parentheses to match every use of the tool")
	case strings.HasSuffix(pattern, ":*"):
		return fmt.Errorf("%q: * matches anything, also within a word: \"%s(%s *)\"", tool, name, strings.TrimSuffix(pattern, ":*"))
	}
	return nil
}

func glob(pattern, s string) bool { return matches(asRegexp(pattern), s) }

// asRegexp returns the regular expression of a pattern, in which * matches anything.
func asRegexp(pattern string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
}

// matches reports whether a regular expression matches all of s.
func matches(expression, s string) bool {
	return regexp.MustCompile("(?s)^" + expression + "$").MatchString(s)
}
