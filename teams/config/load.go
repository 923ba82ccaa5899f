package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/xrash/smetrics"

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
	var broken *toml.DecodeError
	if errors.As(err, &unknown) {
		for _, e := range unknown.Errors {
			line, _ := e.Position()
			c.mistakes = append(c.mistakes, Mistake{line, unknownKey(e.Key())})
		}
	} else if errors.As(err, &broken) {
		line, _ := broken.Position()
		text := strings.TrimPrefix(broken.Error(), "toml: ")
		if strings.HasSuffix(text, "at start of value") {
			text = "a value is missing, or a string is not in quotes"
		}
		c.mistakes = append(c.mistakes, Mistake{max(line, 1), text})
	} else if err != nil {
		c.mistakes = append(c.mistakes, Mistake{1, strings.TrimPrefix(err.Error(), "toml: ")})
	}
	if unknown == nil && err != nil {
		return c.config, c.mistakes
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
		var key []string
		line := 0
		for it := e.Key(); it.Next(); {
			if line == 0 {
				line = p.Shape(it.Node().Raw).Start.Line
			}
			key = append(key, string(it.Node().Data))
		}
		path := strings.Join(key, ".")
		switch e.Kind {
		case unstable.Table:
			table = path + "."
		case unstable.ArrayTable:
			path = fmt.Sprintf("%s.%d", path, rules)
			table = path + "."
			rules++
		default:
			path = table + path
		}
		lines[path] = line
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
