package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	Tool    string // "": unknown
	Alias   string // another name of the tool, or ""; a rule may name either
	Command bool   // Input is a command, whatever the tool's name suggests (see TakesNoCommand)
	Input   string // the command, path or address that the tool is about to use

	// Dirs are the names of the directory that paths are relative to; without one, rules see paths only as they are
	// written.
	Dirs []string
}

// isTool reports whether the name in a rule matches the tool. toAllow: only under a name that may allow the request.
func (q Request) isTool(name string, toAllow bool) bool {
	return slices.ContainsFunc([]string{q.Tool, q.Alias}, func(tool string) bool {
		return glob(strings.ToLower(name), strings.ToLower(tool)) && (!toAllow || q.isAllowedAs(tool))
	})
}

// isAllowedAs reports whether a rule may allow the request under a tool's name. A command under the name of a tool that
// takes none may only be denied by it: the model chose that name.
func (q Request) isAllowedAs(tool string) bool {
	return tool != "" && !(q.Command && TakesNoCommand(tool))
}

// Rules are tried in order; the first that matches decides.
//
// A pattern allows a shell command only if the line is one plain call: no second command, no expansion, no redirection,
// no assignment. A pattern denies or asks if any command in the line matches, whatever its quoting and the program's
// directory, and however a path is written: relative or absolute, with "." and ".." (links are not resolved). If it is
// uncertain whether a deny or ask rule matches, no later rule allows the request.
//
// Rules are no sandbox: an agent that may run a script may run anything.
type Rules []Rule

// Decide applies the rules, whoever they are for, to a request.
func (rules Rules) Decide(q Request) Decision {
	in := parseInput(q)
	isUncertain := in.isCut // or an earlier deny or ask rule may match
	for _, r := range rules {
		name, pattern, _ := splitTool(r.Tool)
		isMatch := r.matches(q, in)
		switch {
		case r.Decision == Allow && isMatch && isUncertain:
			return Ask
		case r.Decision == Allow && !isMatch:
		case r.Decision == Ask && q.isTool(name, false) && !q.isTool(name, true):
			isUncertain = true // a later rule may still deny
		case isMatch:
			return r.Decision
		case !q.isTool(name, false):
			isUncertain = isUncertain || q.Tool == ""
		default:
			isUncertain = isUncertain || in.mayInclude(pattern)
		}
	}
	return Ask
}

// matches reports whether a rule is for a request, whatever comes before it.
func (r Rule) matches(q Request, in input) bool {
	name, pattern, hasPattern := splitTool(r.Tool)
	if r.Decision == Allow {
		return q.isAllowedAs(q.Tool) && q.isTool(name, true) && (!hasPattern || in.isPlain && glob(pattern, in.text))
	}
	return q.isTool(name, false) && (!hasPattern || in.includes(pattern))
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

func matches(expression, s string) bool {
	return regexp.MustCompile("(?s)^" + expression + "$").MatchString(s)
}
