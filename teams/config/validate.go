package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// reader makes a Config of the tables of team.toml and collects what is wrong
// with them.
type reader struct {
	lines    Lines
	config   *Config
	mistakes []Mistake
	mentions []mention
	roles    []mention
}

// mention is a place where a member or a role is named.
type mention struct{ word, path string }

// The names of the environment that `atm run` sets itself.
var reservedEnv = []string{"ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_RUN"}

func (r *reader) read(file *fileTable, agents []wire.Name) {
	c := r.config
	c.Lead = r.name("lead", file.Lead)
	c.Approvers = r.names("approvers", file.Approvers)
	r.session("session", &file.Session, &c.Session)
	for _, key := range slices.Sorted(maps.Keys(file.Members)) {
		m := r.member("members."+key, key, file.Members[key])
		n, err := wire.ParseName(key)
		if err != nil {
			r.badName("members."+key, "members", key, err)
			continue
		}
		c.Members[n] = m
	}
	for i, rule := range file.Rules {
		r.rule(fmt.Sprintf("rules.%d", i), rule)
	}
	if _, ok := c.Members["lead"]; ok && c.Lead == "" {
		c.Lead = "lead"
	}
	r.checkMentions(agents)
	r.checkCircles()
}

func (r *reader) member(path, key string, t memberTable) Member {
	m := Member{
		Person:   r.flag(path+".person", t.Person),
		Role:     r.text(path+".role", t.Role),
		Command:  r.texts(path+".command", t.Command, `["claude"]`),
		Cwd:      r.text(path+".cwd", t.Cwd),
		Env:      r.env(path+".env", t.Env),
		Driver:   r.word(path+".driver", t.Driver, Drivers),
		Inject:   r.word(path+".inject", t.Inject, Injects),
		Restart:  r.word(path+".restart", t.Restart, Restarts),
		Size:     r.text(path+".size", t.Size),
		Prompt:   r.text(path+".prompt", t.Prompt),
		After:    r.names(path+".after", t.After),
		Worktree: r.flag(path+".worktree", t.Worktree),
	}
	if t.Session != nil {
		own := r.config.Session
		r.session(path+".session", t.Session, &own)
		m.Session = &own
	}
	if t.Command != nil && m.Command != nil && (len(m.Command) == 0 || m.Command[0] == "") {
		r.add(path+".command", "command is empty; leave it out if the member is started elsewhere")
		m.Command = nil
	}
	if t.Cwd == "" {
		r.add(path+".cwd", `cwd is empty: "." is the directory that holds the root`)
	}
	if m.Size != "" {
		if _, _, err := ParseSize(m.Size); err != nil {
			r.add(path+".size", "size: %v", err)
			m.Size = ""
		}
	}
	if m.Person && t.Command != nil {
		r.add(path+".command", "%s is a person: no command starts a person", key)
	}
	if m.Person && m.Worktree {
		r.add(path+".worktree", "%s is a person, and people get no worktree", key)
	}
	return m
}

func (r *reader) env(path string, value any) map[string]string {
	if value == nil {
		return nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		r.wrongType(path, value, `a table such as { LANG = "C.UTF-8" }`)
		return nil
	}
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(table)) {
		at := path + "." + k
		if k == "" || strings.ContainsAny(k, "=\x00") {
			r.add(at, "env: %q cannot be the name of a variable", k)
		} else if slices.Contains(reservedEnv, k) {
			r.add(at, "env: atm sets %s itself", k)
		} else if _, isText := table[k].(string); !isText {
			r.add(at, "env.%s must be a string, and is %s", k, typeOf(table[k]))
		} else {
			out[k] = r.text(at, table[k])
		}
	}
	return out
}

func (r *reader) rule(path string, t ruleTable) {
	rule := policy.Rule{
		Role:     r.text(path+".role", t.Role),
		Agent:    r.name(path+".agent", t.Agent),
		Tool:     r.text(path+".tool", t.Tool),
		Decision: policy.Decision(r.word(path+".decision", t.Decision, []string{string(policy.Allow), string(policy.Deny), string(policy.Ask)})),
	}
	if rule.Role != "" {
		r.roles = append(r.roles, mention{rule.Role, path + ".role"})
	}
	if _, isText := t.Tool.(string); isText {
		if err := policy.CheckTool(rule.Tool); err != nil {
			r.add(path+".tool", "tool: %v", err)
		}
	}
	switch {
	case t.Role != nil && t.Agent != nil:
		r.add(path, "a rule is for a role or for an agent, not for both")
	case t.Tool == nil:
		r.add(path, `a rule needs a tool; "*" is every tool`)
	case t.Decision == nil:
		r.add(path, "a rule needs a decision: allow, deny or ask")
	}
	r.config.Rules = append(r.config.Rules, rule)
}

// session reads a session section over the values that apply without it.
func (r *reader) session(path string, t *sessionTable, s *Session) {
	if t.Enabled != nil {
		s.Enabled = r.flag(path+".enabled", t.Enabled)
		s.Forbidden = t.Enabled == false
	}
	if t.OutputCapture != nil {
		s.OutputCapture = r.word(path+".output_capture", t.OutputCapture, []string{"pipe", "pty", "log"})
	}
	if t.AllowHumanInput != nil {
		s.AllowHumanInput = r.flag(path+".allow_human_input", t.AllowHumanInput)
	}
	r.autoExit(path+".auto_exit_on", t.AutoExitOn, s)
	if line := r.text(path+".resume_cmd", t.ResumeCmd); t.ResumeCmd != nil {
		s.ResumeCmd = r.resumeCmd(path+".resume_cmd", line)
	}
}

// autoExit reads when a session ends by itself: one condition or several.
func (r *reader) autoExit(path string, value any, s *Session) {
	list, ok := value.([]any)
	if !ok && value != nil {
		list = []any{value}
	}
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			r.wrongType(path, v, "a string")
			continue
		}
		if strings.TrimSpace(text) == "goal_complete" {
			s.ExitOnGoal = true
			continue
		}
		key, value, _ := strings.Cut(text, ":")
		d, err := time.ParseDuration(strings.TrimSpace(value))
		if strings.TrimSpace(key) != "idle_timeout" || err != nil || d <= 0 {
			r.add(path, `auto_exit_on is %q, and can only be "idle_timeout: 300s" or "goal_complete"`, text)
			continue
		}
		s.ExitWhenIdle = d
	}
}

var placeholder = regexp.MustCompile(`(?:^|[^$])\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// resumeCmd splits the command into words, as a shell does but without expanding
// anything.
func (r *reader) resumeCmd(path, line string) []string {
	words, err := splitWords(line)
	if err != nil || len(words) == 0 {
		r.add(path, `resume_cmd: %q is no command, such as "claude --resume {session_id}"`, line)
		return nil
	}
	for _, found := range placeholder.FindAllStringSubmatch(line, -1) {
		if found[1] != "session_id" {
			r.add(path, "resume_cmd: nothing is filled in for {%s}; only {session_id} is%s", found[1], suggest(found[1], []string{"session_id"}))
		}
	}
	return words
}

// checkMentions reports members that there are not, and roles that nobody has.
func (r *reader) checkMentions(agents []wire.Name) {
	members, roles := []string{}, []string{}
	for _, n := range agents {
		members = append(members, string(n))
	}
	for n, m := range r.config.Members {
		members = append(members, string(n))
		if m.Role != "" {
			roles = append(roles, m.Role)
		}
	}
	slices.Sort(members)
	slices.Sort(roles)
	for _, m := range r.mentions {
		if !slices.Contains(members, m.word) {
			r.add(m.path, "%s names %q, and there is no such member%s", lastKey(m.path), m.word, suggest(m.word, members))
		}
	}
	for _, m := range r.roles {
		if !slices.Contains(roles, m.word) {
			r.add(m.path, "nobody has the role %q%s", m.word, suggest(m.word, roles))
		}
	}
}

// checkCircles reports members that wait for each other, or for themselves.
func (r *reader) checkCircles() {
	visited := map[wire.Name]bool{}
	var visit func(n wire.Name, chain []wire.Name)
	visit = func(n wire.Name, chain []wire.Name) {
		if i := slices.Index(chain, n); i >= 0 {
			circle := string(n)
			for _, m := range slices.Backward(chain[i:]) {
				circle = string(m) + " after " + circle
			}
			r.add("members."+string(chain[len(chain)-1])+".after", "after goes round in a circle: %s", circle)
			return
		}
		if visited[n] {
			return
		}
		visited[n] = true
		for _, before := range r.config.Members[n].After {
			visit(before, append(chain, n))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(r.config.Members)) {
		visit(n, nil)
	}
}

func (r *reader) add(path, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{Line: r.lines.Of(path), Text: fmt.Sprintf(format, args...)})
}

func (r *reader) wrongType(path string, value any, want string) {
	r.add(path, "%s must be %s, and is %s", lastKey(path), want, typeOf(value))
}

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// text reads a string; an absent one is empty.
func (r *reader) text(path string, value any) string {
	s, ok := value.(string)
	if !ok && value != nil {
		r.wrongType(path, value, "a string")
	}
	if strings.ContainsRune(s, 0) {
		r.add(path, "%s contains a NUL", lastKey(path))
		return ""
	}
	return s
}

func (r *reader) flag(path string, value any) bool {
	b, ok := value.(bool)
	if !ok && value != nil {
		r.wrongType(path, value, "true or false")
	}
	return b
}

// word reads a string that is one of a few.
func (r *reader) word(path string, value any, known []string) string {
	s := r.text(path, value)
	if _, isText := value.(string); !isText || slices.Contains(known, s) {
		return s
	}
	r.add(path, "%s is %q, and can only be %s%s", lastKey(path), s, strings.Join(known, ", "), suggest(s, known))
	return ""
}

// texts reads a list of strings; nil when it is absent or none.
func (r *reader) texts(path string, value any, example string) []string {
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		r.wrongType(path, value, "a list such as "+example)
		return nil
	}
	out := []string{}
	for _, v := range list {
		if _, isText := v.(string); !isText {
			r.add(path, "each of %s must be a string, and one is %s", lastKey(path), typeOf(v))
			return nil
		}
		out = append(out, r.text(path, v))
	}
	return out
}

// name reads the name of a member.
func (r *reader) name(path string, value any) wire.Name {
	s := r.text(path, value)
	if _, isText := value.(string); !isText {
		return ""
	}
	n, err := wire.ParseName(s)
	if err != nil {
		r.badName(path, lastKey(path), s, err)
		return ""
	}
	r.mentions = append(r.mentions, mention{s, path})
	return n
}

func (r *reader) names(path string, value any) []wire.Name {
	list := r.texts(path, value, `["alice"]`)
	if list == nil {
		return nil
	}
	out := []wire.Name{}
	for _, s := range list {
		if n := r.name(path, s); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// badName reports a word that cannot be a member's name. The same in small
// letters was probably meant.
func (r *reader) badName(path, what, word string, err error) {
	meant := ""
	if lower := strings.ToLower(word); wire.IsName(lower) {
		meant = suggest(word, []string{lower})
	}
	r.add(path, "%s: %v%s", what, err, meant)
}
