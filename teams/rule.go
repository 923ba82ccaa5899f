package teams

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// Decision is what a rule says to a permission request.
type Decision string

// The decisions. Ask is also what no rule means.
const (
	Allow Decision = "allow"
	Deny  Decision = "deny"
	Ask   Decision = "ask"
)

// Rule answers permission requests of an agent, of everybody with a role, or of
// all (neither). Tool is a tool's name, or name(pattern of what it is about to
// do); * stands for anything.
type Rule struct {
	Role     string    `json:"role,omitempty"`
	Agent    wire.Name `json:"agent,omitempty"`
	Tool     string    `json:"tool"`
	Decision Decision  `json:"decision"`
}

// Request is what an agent asks for.
type Request struct {
	Agent wire.Name
	Role  string
	Tool  string
	Input string // the command, the path, … that the tool is about to take
	Cut   bool   // Input is not all there is
}

// Rules are tried in order, the first that matches decides.
//
// They are conservative where a command line is more than one command. Each
// command of it is decided by itself; one that is denied denies the whole, and
// it is allowed only if each is. A pattern never allows what puts something in
// at its run ($(…), `…`), reads or writes files by redirection, or is not
// known whole. A pattern that denies is held against what the words say without
// their quotes and directories; and where it cannot be told whether a command
// comes under it, no later rule allows that command.
//
// They are no sandbox: who may run a script may run anything.
type Rules []Rule

// Decide is Answer for what an agent in a role asks for.
func (rs Rules) Decide(agent wire.Name, role, tool, input string) Decision {
	return rs.Answer(Request{Agent: agent, Role: role, Tool: tool, Input: input})
}

// Answer is what the rules say to a request.
func (rs Rules) Answer(q Request) Decision {
	if len(rs) == 0 {
		return Ask
	}
	q.Cut = q.Cut || strings.ContainsRune(q.Input, '…') // a program's way to say so
	s := script{parts: []string{q.Input}}
	shell := !takesNoCommand(q.Tool)
	switch {
	case shell:
		s = readScript(q.Input)
	default:
		s.opaque = unseen(q.Input) || strings.ContainsAny(q.Input, "\n\t") || climbs(q.Input)
	}
	if len(s.parts) == 0 {
		s.parts = []string{""}
	}
	all := Allow
	for _, part := range s.parts {
		switch rs.decide(q, s, part, shell) {
		case Deny:
			return Deny
		case Ask:
			all = Ask
		}
	}
	return all
}

// decide is Answer for one command of a request.
func (rs Rules) decide(q Request, s script, part string, shell bool) Decision {
	// Whether a rule that does not allow, and comes before, may be about this:
	// by what stands there, or because nobody can tell from that.
	doubt, dark := false, false
	for i := range rs {
		r := &rs[i]
		if r.Role != "" && r.Role != q.Role || r.Agent != "" && r.Agent != q.Agent {
			continue
		}
		name, pattern, has := cutPattern(r.Tool)
		if !glob(strings.ToLower(name), strings.ToLower(q.Tool)) {
			// What is asked for is not known: it may come under this.
			doubt = doubt || q.Tool == "" && r.Decision != Allow
			continue
		}
		if r.Decision == Allow {
			switch {
			case q.Tool == "":
				continue
			case !has:
			case q.Cut, s.opaque, part == "", !glob(pattern, part):
				continue
			}
			if doubt || dark && !has || q.Cut {
				return Ask
			}
			return Allow
		}
		if !has || glob(pattern, part) || shell && glob(pattern, bare(part)) {
			return r.Decision
		}
		doubt = doubt || q.Cut || s.opaque || part == "" || shell && hides(q.Input, pattern)
		dark = dark || shell && blind(program(part))
	}
	return Ask
}

// hides reports whether a command line holds what a pattern is about, though it
// does not say so outright: in quotes, in what is put in, behind a program that
// runs another.
func hides(line, pattern string) bool {
	matches := func(s string) bool {
		b := bare(s)
		return glob(pattern, s) || glob(pattern, b) || glob(pattern, b+" ") // what came behind may have been cut off
	}
	for _, f := range fragments(line) {
		f = strings.TrimSpace(f)
		if matches(f) || wraps(program(f)) && suffixes(f, matches) {
			return true
		}
	}
	return false
}

// climbs reports whether a path leads upwards: then its beginning says nothing
// of where it leads.
func climbs(path string) bool {
	for _, p := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if p == ".." {
			return true
		}
	}
	return false
}

// takesNoCommand names the tools of the known agents whose input is a path, an
// address or words to look for. That of any other may be a command.
func takesNoCommand(tool string) bool {
	switch strings.ToLower(strings.ReplaceAll(tool, "_", "")) {
	case "read", "edit", "write", "multiedit", "notebookedit", "notebookread", "glob", "grep", "ls", "list", "webfetch", "websearch",
		"readfile", "readmanyfiles", "writefile", "replace", "findfiles", "searchtext", "googlesearch", "applypatch", "patch", "todowrite":
		return true
	}
	return false
}

// cutPattern parts a rule's tool into its name and the pattern, if it has one.
func cutPattern(tool string) (name, pattern string, has bool) {
	name, rest, has := strings.Cut(tool, "(")
	return name, strings.TrimSuffix(rest, ")"), has
}

// checkPattern says what is wrong with a rule's tool.
func checkPattern(tool string) error {
	name, pattern, has := cutPattern(tool)
	switch {
	case strings.TrimSpace(name) == "" || name != strings.TrimSpace(name):
		return fmt.Errorf("%q names no tool", tool)
	case strings.Contains(name, ")"), has && !strings.HasSuffix(tool, ")"):
		return fmt.Errorf("%q: a pattern stands in parentheses behind the name, as in \"Bash(git *)\"", tool)
	case has && strings.TrimSpace(pattern) == "":
		return errors.New("the pattern is empty; without one the rule is about all that the tool does")
	case strings.HasSuffix(pattern, ":*"):
		return fmt.Errorf("%q: here a * stands for anything, also within a word: \"%s(%s *)\"", tool, name, strings.TrimSuffix(pattern, ":*"))
	}
	return nil
}

// glob reports whether a text is what a pattern says, in which * stands for
// anything.
func glob(pattern, s string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	if !stars {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		next, more, stars := strings.Cut(rest, "*")
		if !stars {
			return strings.HasSuffix(s, next)
		}
		n := strings.Index(s, next)
		if n < 0 {
			return false
		}
		s, rest = s[n+len(next):], more
	}
}
