// Package policy decides who and what may answer an agent's permission requests: the rules of team.toml, and the
// members who may answer what no rule decides.
//
// A runner saves the policy that it was started with and keeps to it: team.toml lies where agents write.
package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Decision is what a rule says to a permission request.
type Decision string

// The decisions. Ask is also the answer when no rule matches.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	Ask   Decision = "ask"
)

// Rule decides the permission requests of one agent, of everybody with a role, or, with neither, of everybody. Tool is
// a tool's name or name(pattern), the pattern matching what the tool is about to do; * stands for anything.
type Rule struct {
	Role     string    `json:"role,omitempty"`
	Agent    wire.Name `json:"agent,omitempty"`
	Tool     string    `json:"tool"`
	Decision Decision  `json:"decision"`
}

// Request is what an agent asks for.
type Request struct {
	Agent   wire.Name
	Role    string
	Tool    string // "": not known
	Alias   string // another name of the tool, "" for none: a rule meets either
	Command bool   // Input is a command: by the name of a tool that takes none nothing is allowed
	Input   string // the command, path or address that the tool is about to use
	Cut     bool   // Input is not complete
}

// isTool reports whether the name in a rule is one of the tool's.
func (q Request) isTool(name string) bool {
	name = strings.ToLower(name)
	return glob(name, strings.ToLower(q.Tool)) || q.Alias != "" && glob(name, strings.ToLower(q.Alias))
}

// Rules are tried in order; the first that matches decides.
//
// A pattern allows a shell command only when the line is one plain call: no second command, no expansion, no
// redirection, no assignment. Anything else asks. A pattern denies a line when any command in it matches, whatever the
// quoting and the program's directory. Where a rule that denies or asks might apply to a line but this cannot be told
// for sure, no later rule allows it.
//
// Rules are no sandbox: an agent that may run a script may run anything.
type Rules []Rule

// Decide says what the rules decide about a request.
func (rules Rules) Decide(q Request) Decision {
	in, allowed := readInput(q), q
	if q.Command && TakesNoCommand(q.Tool) {
		allowed.Tool = ""
	}
	if q.Command && TakesNoCommand(q.Alias) {
		allowed.Alias = ""
	}
	uncertain := false // an earlier rule that denies or asks may apply
	for _, r := range rules {
		if r.Role != "" && r.Role != q.Role || r.Agent != "" && r.Agent != q.Agent {
			continue
		}
		name, pattern, hasPattern := splitTool(r.Tool)
		mayAllow := r.Decision == Allow && allowed.Tool != "" && allowed.isTool(name)
		isAllowed := mayAllow && (!hasPattern || in.plain && glob(pattern, in.text))
		switch {
		case isAllowed && (uncertain || in.cut):
			return Ask
		case isAllowed:
			return Allow
		case r.Decision == Allow:
		case !q.isTool(name):
			uncertain = uncertain || q.Tool == ""
		case r.Decision == Ask && !allowed.isTool(name):
			uncertain = true // the name is the model's word: a later rule may deny, and none allows
		case !hasPattern || in.includes(pattern):
			return r.Decision
		default:
			uncertain = uncertain || in.mayInclude(pattern)
		}
	}
	return Ask
}

func splitTool(tool string) (name, pattern string, hasPattern bool) {
	name, rest, hasPattern := strings.Cut(tool, "(")
	return name, strings.TrimSuffix(rest, ")"), hasPattern
}

// CheckTool says what is wrong with a rule's tool.
func CheckTool(tool string) error {
	name, pattern, hasPattern := splitTool(tool)
	switch {
	case strings.TrimSpace(name) == "" || name != strings.TrimSpace(name):
		return fmt.Errorf("%q names no tool", tool)
	case strings.Contains(name, ")") || hasPattern && !strings.HasSuffix(tool, ")"):
		return fmt.Errorf("%q: a pattern stands in parentheses behind the name, as in \"Bash(git *)\"", tool)
	case hasPattern && strings.TrimSpace(pattern) == "":
		return errors.New("the pattern is empty; leave the parentheses out to match everything that the tool does")
	case strings.HasSuffix(pattern, ":*"):
		return fmt.Errorf("%q: here a * stands for anything, also within a word: \"%s(%s *)\"", tool, name, strings.TrimSuffix(pattern, ":*"))
	}
	return nil
}

func glob(pattern, s string) bool { return matches("", pattern, "", s) }

// matches reports whether a text is what a pattern stands for, with what two regular expressions admit around it.
func matches(before, pattern, after, s string) bool {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	return regexp.MustCompile("(?s)^" + before + expression + after + "$").MatchString(s)
}
