package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// file is team.toml as it is decoded; what the sections about sessions leave out
// holds on from what stands above them.
type file struct {
	Lead      wire.Name
	Approvers []wire.Name
	Members   map[wire.Name]memberTable
	Rules     []ruleTable
	Session   *sessionTable
}

type memberTable struct {
	Member
	Session *sessionTable
}

type ruleTable struct {
	Role, Tool, Decision string
	Agent                wire.Name
}

type sessionTable struct {
	Enabled         *bool
	OutputCapture   *string `toml:"output_capture"`
	AllowHumanInput *bool   `toml:"allow_human_input"`
	AutoExitOn      string  `toml:"auto_exit_on"`
	ResumeCmd       string  `toml:"resume_cmd"`
}

// byteOrderMark is what editors on Windows put before a text.
var byteOrderMark = []byte("\ufeff")

// Parse reads a team.toml and reports every mistake in it, by line. agents are
// the members that have a mailbox; the file may name them without a section.
// Where the file is no TOML, or a value has the wrong type, the first such place
// is the only mistake.
func Parse(data []byte, agents []wire.Name) (*Config, []Mistake) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	c := checker{config: Default(), agents: agents, lines: FindLines(data)}
	var f file
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&f)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		for _, e := range unknown.Errors {
			line, _ := e.Position()
			c.mistakes = append(c.mistakes, Mistake{line, unknownKey(e.Key())})
		}
	} else if err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "toml: ")
		var broken *toml.DecodeError
		if errors.As(err, &broken) {
			line, _ = broken.Position()
		}
		if strings.HasSuffix(text, "at start of value") {
			text = "a value is missing, or a string is not in quotes"
		}
		return c.config, []Mistake{{max(line, 1), text}}
	}
	c.check(&f)
	slices.SortStableFunc(c.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return c.config, c.mistakes
}

// keys are all that team.toml may hold.
var keys = strings.Fields("lead approvers members rules session person role command cwd env driver inject restart size prompt after worktree " +
	"agent tool decision enabled output_capture allow_human_input auto_exit_on resume_cmd")

// unknownKey says what is wrong about a key that its table does not have.
func unknownKey(key []string) string {
	if !slices.Contains(keys[:5], key[0]) {
		key = key[:1]
	}
	word, where := key[len(key)-1], "here"
	if len(key) > 1 {
		where = "in " + strings.Join(key[:len(key)-1], ".")
	}
	text := fmt.Sprintf("there is no key %q %s", word, where)
	slips := func(known string) int { return smetrics.WagnerFischer(word, known, 1, 1, 1) }
	near := slices.MinFunc(keys, func(a, b string) int { return slips(a) - slips(b) })
	if slips(near) <= (len(word)+1)/3 {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// Lines are the lines of the keys of a team.toml, outside of inline tables, by
// their paths: "members.bob.after", "rules.1.tool".
type Lines map[string]int

// FindLines finds the lines of a file's keys, as far as it is TOML.
func FindLines(data []byte) Lines {
	lines := Lines{}
	var p unstable.Parser
	p.Reset(bytes.TrimPrefix(data, byteOrderMark))
	table, rules := "", 0
	for p.NextExpression() {
		e := p.Expression()
		path, line := "", 0
		for it := e.Key(); it.Next(); {
			line = p.Shape(it.Node().Raw).Start.Line
			path += "." + string(it.Node().Data)
		}
		switch e.Kind {
		case unstable.Table:
			table = path
		case unstable.ArrayTable:
			table = fmt.Sprintf("%s.%d", path, rules)
			rules++
		}
		if e.Kind == unstable.KeyValue {
			path = table + path
		} else {
			path = table
		}
		lines[strings.TrimPrefix(path, ".")] = line
	}
	return lines
}

// Of is the line of a key, or of the table or array that it stands in.
func (l Lines) Of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return 1
}

// reservedEnv are the variables that `atm run` sets itself.
var reservedEnv = []string{"ATM_ROOT", "ATM_TEAM", "ATM_AGENT", "ATM_RUN"}

// checker makes a Config of a decoded file and collects what is wrong with its
// values.
type checker struct {
	lines    Lines
	agents   []wire.Name // that have mailboxes
	config   *Config
	mistakes []Mistake
}

func (k *checker) add(path, format string, args ...any) {
	k.mistakes = append(k.mistakes, Mistake{Line: k.lines.Of(path), Text: fmt.Sprintf(format, args...)})
}

func (k *checker) check(f *file) {
	c := k.config
	c.Lead, c.Approvers = f.Lead, f.Approvers
	k.session("session", f.Session, &c.Session)
	for _, name := range slices.Sorted(maps.Keys(f.Members)) {
		path := "members." + string(name)
		if _, err := wire.ParseName(string(name)); err != nil {
			k.add(path, "members: %v", err)
			continue
		}
		c.Members[name] = k.member(path, name, f.Members[name])
	}
	if _, ok := c.Members["lead"]; ok && c.Lead == "" {
		c.Lead = "lead"
	}
	k.names("lead", c.Lead)
	k.names("approvers", c.Approvers...)
	for name, m := range c.Members {
		k.names("members."+string(name)+".after", m.After...)
	}
	for i, r := range f.Rules {
		k.rule(fmt.Sprintf("rules.%d", i), r)
	}
	k.circles()
}

func (k *checker) member(path string, name wire.Name, t memberTable) Member {
	m := t.Member
	if t.Session != nil {
		own := k.config.Session
		k.session(path+".session", t.Session, &own)
		m.Session = &own
	}
	k.word(path+".driver", m.Driver, Drivers...)
	k.word(path+".inject", m.Inject, Injects...)
	k.word(path+".restart", m.Restart, Restarts...)
	if m.Command != nil && (len(m.Command) == 0 || m.Command[0] == "") {
		k.add(path+".command", "command is empty; leave it out if the member is started elsewhere")
		m.Command = nil
	}
	if _, _, err := ParseSize(m.Size); m.Size != "" && err != nil {
		k.add(path+".size", "size: %v", err)
	}
	for v := range m.Env {
		if slices.Contains(reservedEnv, v) || v == "" || strings.ContainsAny(v, "=\x00") {
			k.add(path+".env", "env: %q is set by atm itself, or cannot be the name of a variable", v)
		}
	}
	if m.Person && (m.Command != nil || m.Worktree) {
		k.add(path, "%s is a person: people get no command and no worktree", name)
	}
	return m
}

func (k *checker) rule(path string, t ruleTable) {
	r := policy.Rule{Role: t.Role, Agent: t.Agent, Tool: t.Tool, Decision: policy.Decision(t.Decision)}
	if r.Role != "" && r.Agent != "" {
		k.add(path, "a rule is for a role or for an agent, not for both")
	}
	if r.Tool == "" || r.Decision == "" {
		k.add(path, "a rule needs a tool (\"*\" is every tool) and a decision: allow, deny or ask")
	} else if err := policy.CheckTool(r.Tool); err != nil {
		k.add(path+".tool", "tool: %v", err)
	}
	k.word(path+".decision", t.Decision, string(policy.Allow), string(policy.Deny), string(policy.Ask))
	k.names(path+".agent", r.Agent)
	k.config.Rules = append(k.config.Rules, r)
}

// session reads a section about sessions over what holds without it.
func (k *checker) session(path string, t *sessionTable, s *Session) {
	if t == nil {
		return
	}
	if t.Enabled != nil {
		s.Enabled, s.Forbidden = *t.Enabled, !*t.Enabled
	}
	if t.OutputCapture != nil {
		s.OutputCapture = *t.OutputCapture
		k.word(path+".output_capture", s.OutputCapture, "pipe", "pty", "log")
	}
	if t.AllowHumanInput != nil {
		s.AllowHumanInput = *t.AllowHumanInput
	}
	if idle, ok := strings.CutPrefix(t.AutoExitOn, "idle_timeout:"); ok {
		s.ExitWhenIdle, _ = time.ParseDuration(strings.TrimSpace(idle))
	}
	s.ExitOnGoal = s.ExitOnGoal || t.AutoExitOn == "goal_complete"
	if t.AutoExitOn != "" && t.AutoExitOn != "goal_complete" && s.ExitWhenIdle <= 0 {
		k.add(path+".auto_exit_on", `auto_exit_on is %q, and can only be "idle_timeout: 300s" or "goal_complete"`, t.AutoExitOn)
	}
	if t.ResumeCmd != "" {
		words, err := policy.SplitWords(t.ResumeCmd)
		if err != nil {
			k.add(path+".resume_cmd", "resume_cmd: %v", err)
		}
		s.ResumeCmd = words
	}
}

// word reports a value that is none of the known words.
func (k *checker) word(path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		k.add(path, "%s is %q, and can only be %s", path[strings.LastIndexByte(path, '.')+1:], value, strings.Join(known, ", "))
	}
}

// names reports names that no member has.
func (k *checker) names(path string, names ...wire.Name) {
	for _, n := range names {
		if _, ok := k.config.Members[n]; n != "" && !ok && !slices.Contains(k.agents, n) {
			k.add(path, "%s names %q, and there is no such member", path[strings.LastIndexByte(path, '.')+1:], n)
		}
	}
}

// circles reports members that are started after themselves, by way of others.
func (k *checker) circles() {
	for name, m := range k.config.Members {
		if slices.Contains(k.config.StartOrder(m.After), name) {
			k.add("members."+string(name)+".after", "after goes round in a circle: %s waits for itself", name)
		}
	}
}
