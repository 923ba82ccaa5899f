package teams

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/agentteammail/atm/wire"
)

// CheckToml reads a team.toml and says every mistake in it, by line. agents are
// the members that there are besides those it speaks of. The plan holds what
// could be understood; only one without mistakes is to be acted upon.
func CheckToml(data []byte, agents []wire.Name) (*Plan, []Mistake) {
	c := check(data, agents)
	return c.plan, c.mistakes
}

// check is CheckToml, with what else is known of the file.
func check(data []byte, agents []wire.Name) *checker {
	p := &Plan{
		Members: map[wire.Name]MemberPlan{},
		Session: SessionPlan{OutputCapture: "pipe", AllowHumanInput: true},
	}
	c := &checker{plan: p, agents: agents}
	data = withoutBOM(data)
	if !utf8.Valid(data) {
		line := 1
		for rest := data; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[n:]
		}
		c.document = &document{}
		c.say(line, "this is not UTF-8")
		return c
	}
	c.document = readDocument(data)
	c.file(c.top)
	c.sort()
	return c
}

// sort puts the mistakes into the order of their lines.
func (c *checker) sort() {
	slices.SortStableFunc(c.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
}

// checker compares a document with what team.toml may say.
type checker struct {
	*document
	plan   *Plan
	agents []wire.Name

	spoken []spoken // members that are spoken of
	roles  []*entry
	after  map[wire.Name]int // the line of a member's after
	trees  map[wire.Name]int // and of worktree, where that is true
	dirs   map[wire.Name]int // and of cwd
}

// spoken is a place where a member is named.
type spoken struct {
	name wire.Name
	line int
	what string
}

// field is a key that a table may have, and what is done with its value.
type field struct {
	key string
	do  func(*entry)
}

// table gives each key of a table to its field. Keys that there are not are
// mistakes.
func (c *checker) table(e *entry, where string, fields []field) {
	if e.kind != unstable.Table {
		c.wrong(e, where, "a table")
		return
	}
	for _, k := range e.keys {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == k.key })
		if i >= 0 {
			fields[i].do(k)
			continue
		}
		known := make([]string, len(fields))
		for i, f := range fields {
			known[i] = f.key
		}
		in := "here"
		if where != "" {
			in = "in " + where
		}
		c.mistakes = append(c.mistakes, Mistake{Line: k.line, Text: fmt.Sprintf("there is no key %q %s", k.key, in), Word: k.key, Known: known})
	}
}

// file is the whole of team.toml.
func (c *checker) file(top *entry) {
	p := c.plan
	c.after, c.trees, c.dirs = map[wire.Name]int{}, map[wire.Name]int{}, map[wire.Name]int{}
	c.table(top, "", []field{
		{"lead", func(e *entry) { c.name(e, &p.Lead) }},
		{"approvers", func(e *entry) { c.names(e, &p.Approvers) }},
		{"members", c.members},
		{"rules", c.rules},
		{"session", c.session},
	})
	if _, there := p.Members["lead"]; p.Lead == "" && there {
		p.Lead = "lead"
	}
	known := slices.Clone(c.agents)
	for n := range p.Members {
		known = append(known, n)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	all := make([]string, len(known))
	for i, n := range known {
		all[i] = string(n)
	}
	for _, n := range c.spoken {
		if !slices.Contains(known, n.name) {
			c.mistakes = append(c.mistakes, Mistake{Line: n.line, Text: fmt.Sprintf("%s names %q, who is no member", n.what, n.name), Word: string(n.name), Known: all})
		}
	}
	c.knownRoles()
	c.circles()
}

func (c *checker) members(e *entry) {
	if e.kind != unstable.Table {
		c.wrong(e, "members", "a table for each member: [members.bob]")
		return
	}
	for _, k := range e.keys {
		n, err := wire.ParseName(k.key)
		if err != nil {
			c.noName(k.line, "members", k.key, err)
		}
		m := c.member(n, k)
		if err == nil {
			c.plan.Members[n] = m
		}
	}
}

func (c *checker) member(n wire.Name, e *entry) (m MemberPlan) {
	c.table(e, "members."+e.key, []field{
		{"person", func(e *entry) { c.flag(e, &m.Person) }},
		{"role", func(e *entry) { c.text(e, &m.Role) }},
		{"command", func(e *entry) { c.command(e, &m.Command) }},
		{"cwd", func(e *entry) {
			switch {
			case !c.text(e, &m.Cwd):
			case m.Cwd == "":
				c.say(e.line, `cwd is empty: "." is the directory that holds the root`)
			default:
				c.dirs[n] = e.line
			}
		}},
		{"env", func(e *entry) { m.Env = c.env(e) }},
		{"driver", func(e *entry) { c.word(e, &m.Driver, Drivers) }},
		{"inject", func(e *entry) { c.word(e, &m.Inject, Injects) }},
		{"restart", func(e *entry) { c.word(e, &m.Restart, Restarts) }},
		{"size", func(e *entry) {
			if !c.text(e, &m.Size) {
				return
			}
			if _, _, err := ParseSize(m.Size); err != nil {
				c.say(e.line, "size: %v", err)
				m.Size = ""
			}
		}},
		{"prompt", func(e *entry) { c.text(e, &m.Prompt) }},
		{"after", func(e *entry) {
			c.names(e, &m.After)
			c.after[n] = e.line
		}},
		{"worktree", func(e *entry) {
			if c.flag(e, &m.Worktree); m.Worktree {
				c.trees[n] = e.line
			}
		}},
	})
	if cmd := e.get("command"); m.Person && cmd != nil {
		c.say(cmd.line, "%s is a person, whom no command starts", e.key)
	}
	if m.Person && m.Worktree {
		c.say(c.trees[n], "%s is a person, who gets no worktree", e.key)
	}
	return m
}

func (c *checker) command(e *entry, to *[]string) {
	words, ok := c.words(e, `["claude"]`)
	switch {
	case !ok:
	case len(words) == 0 || words[0] == "":
		c.say(e.line, "%s is empty; without one the member is started elsewhere", e.key)
	default:
		*to = words
	}
}

func (c *checker) env(e *entry) map[string]string {
	if e.kind != unstable.Table {
		c.wrong(e, e.key, `a table such as { LANG = "C.UTF-8" }`)
		return nil
	}
	out := map[string]string{}
	for _, k := range e.keys {
		var s string
		switch {
		case k.key == "" || strings.ContainsAny(k.key, "=\x00"):
			c.say(k.line, "env: %q is no name of a variable", k.key)
		case strings.HasPrefix(k.key, "ATM_") && slices.Contains([]string{"ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_RUN"}, k.key):
			c.say(k.line, "env: atm sets %s itself", k.key)
		case k.kind != unstable.String:
			c.wrong(k, "env."+k.key, "a string")
		case c.text(k, &s):
			out[k.key] = s
		}
	}
	return out
}

func (c *checker) rules(e *entry) {
	if e.kind != unstable.ArrayTable {
		if e.kind == unstable.Array && !slices.ContainsFunc(e.elems, func(e *entry) bool { return e.kind != unstable.Table }) {
			// The same in one line: rules = [{…}, {…}].
		} else {
			c.wrong(e, "rules", "tables, each under a line [[rules]]")
			return
		}
	}
	for _, el := range e.elems {
		c.rule(el)
	}
}

func (c *checker) rule(e *entry) {
	var r Rule
	var decision string
	c.table(e, "rules", []field{
		{"role", func(e *entry) {
			if c.text(e, &r.Role) {
				c.roles = append(c.roles, e)
			}
		}},
		{"agent", func(e *entry) { c.name(e, &r.Agent) }},
		{"tool", func(e *entry) {
			if !c.text(e, &r.Tool) {
				return
			}
			if err := checkPattern(r.Tool); err != nil {
				c.say(e.line, "tool: %v", err)
			}
		}},
		{"decision", func(e *entry) { c.word(e, &decision, []string{string(Allow), string(Deny), string(Ask)}) }},
	})
	r.Decision = Decision(decision)
	switch {
	case e.get("role") != nil && e.get("agent") != nil:
		c.say(e.line, "a rule is for a role or for an agent, not for both")
	case e.get("tool") == nil:
		c.say(e.line, `a rule needs a tool; "*" is every tool`)
	case e.get("decision") == nil:
		c.say(e.line, "a rule needs a decision: allow, deny or ask")
	}
	c.plan.Rules = append(c.plan.Rules, r)
}

// knownRoles names rules for roles that nobody has: they would never hold.
func (c *checker) knownRoles() {
	var all []string
	for _, m := range c.plan.Members {
		if m.Role != "" && !slices.Contains(all, m.Role) {
			all = append(all, m.Role)
		}
	}
	slices.Sort(all)
	for _, e := range c.roles {
		if !slices.Contains(all, e.text) {
			c.mistakes = append(c.mistakes, Mistake{Line: e.line, Text: fmt.Sprintf("nobody has the role %q", e.text), Word: e.text, Known: all})
		}
	}
}

// circles names members who wait for each other.
func (c *checker) circles() {
	names := make([]wire.Name, 0, len(c.plan.Members))
	for n := range c.plan.Members {
		names = append(names, n)
	}
	slices.Sort(names)
	done := map[wire.Name]bool{}
	var visit func(n wire.Name, on []wire.Name)
	visit = func(n wire.Name, on []wire.Name) {
		if i := slices.Index(on, n); i >= 0 {
			c.say(c.after[on[len(on)-1]], "after goes round in a circle: %s", strings.Join(append(strs(on[i:]), string(n)), " after "))
			return
		}
		if done[n] {
			return
		}
		for _, m := range c.plan.Members[n].After {
			visit(m, append(on, n))
		}
		done[n] = true
	}
	for _, n := range names {
		visit(n, nil)
	}
}

func strs(names []wire.Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

func (c *checker) session(e *entry) {
	s := &c.plan.Session
	c.table(e, "session", []field{
		{"enabled", func(e *entry) { c.flag(e, &s.Enabled) }},
		{"output_capture", func(e *entry) { c.word(e, &s.OutputCapture, []string{"pipe", "pty", "log"}) }},
		{"allow_human_input", func(e *entry) { c.flag(e, &s.AllowHumanInput) }},
		{"auto_exit_on", c.exitOn},
		{"resume_cmd", func(e *entry) {
			var line string
			if !c.text(e, &line) {
				return
			}
			words, err := splitWords(line)
			if err != nil || len(words) == 0 {
				c.say(e.line, `resume_cmd: %q is no command, such as "claude --resume {session_id}"`, line)
				return
			}
			for _, name := range placeholders(line) {
				if name != "session_id" {
					c.mistakes = append(c.mistakes, Mistake{
						Line: e.line, Word: name, Known: []string{"session_id"},
						Text: fmt.Sprintf("resume_cmd: nothing is filled in for {%s}; only {session_id} is", name),
					})
				}
			}
			s.ResumeCmd = words
		}},
	})
}

// exitOn reads when a session ends by itself: one condition or several.
func (c *checker) exitOn(e *entry) {
	list := []*entry{e}
	if e.kind == unstable.Array {
		list = e.elems
	}
	for _, el := range list {
		var s string
		if !c.text(el, &s) {
			continue
		}
		if strings.TrimSpace(s) == "goal_complete" {
			c.plan.Session.ExitOnGoal = true
			continue
		}
		key, value, _ := strings.Cut(s, ":")
		d, err := time.ParseDuration(strings.TrimSpace(value))
		if strings.TrimSpace(key) != "idle_timeout" || err != nil || d <= 0 {
			c.say(el.line, `auto_exit_on is %q, and can only be "idle_timeout: 300s" or "goal_complete"`, s)
			continue
		}
		c.plan.Session.ExitWhenIdle = d
	}
}
