package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	Rules     []policy.Rule
	Session   *sessionTable
}

type memberTable struct {
	Member
	Session *sessionTable
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
// Behind a place that is no TOML nothing is read.
func Parse(data []byte, agents []wire.Name) (*Config, []Mistake) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	c := checker{config: Default(), agents: agents, lines: FindLines(data)}
	if f, ok := c.decode(data); ok {
		c.check(f)
	}
	slices.SortStableFunc(c.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return c.config, c.mistakes
}

// decode decodes the file; ok: as far as can be checked on. go-toml stops at a value
// of a wrong type: it is noted, blanked out, and the rest is decoded once more.
func (k *checker) decode(data []byte) (f *file, ok bool) {
	for {
		f = &file{}
		err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(f)
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			for _, e := range unknown.Errors {
				line, _ := e.Position()
				k.mistakes = append(k.mistakes, Mistake{line, unknownKey(e.Key())})
			}
			return f, true
		}
		wrong, ok := errors.AsType[*toml.DecodeError](err)
		if !ok && err != nil {
			k.add("", "%v", err)
		}
		if !ok {
			return f, err == nil
		}
		line, _ := wrong.Position()
		text, isType := wrongType(wrong)
		k.mistakes = append(k.mistakes, Mistake{max(line, 1), text})
		rest := k.lines.blank(data, line)
		if !isType || bytes.Equal(rest, data) {
			return nil, false
		}
		data = rest
	}
}

var typeError = regexp.MustCompile(`^toml: (cannot decode TOML [a-z ]+) into (?:.* of type )?(.*)$`)

// wrongType says what is wrong in a place where decoding stopped; isType: a value
// has a type that does not fit there, and what follows can be decoded.
func wrongType(e *toml.DecodeError) (text string, isType bool) {
	text = strings.TrimPrefix(e.Error(), "toml: ")
	if strings.HasSuffix(text, "at start of value") {
		return "a value is missing, or a string is not in quotes", false
	}
	m := typeError.FindStringSubmatch(e.Error())
	if m == nil {
		return text, strings.HasPrefix(text, "cannot store ")
	}
	fits := "a table"
	switch {
	case m[2] == "bool":
		fits = "true or false"
	case m[2] == "string" || m[2] == "wire.Name":
		fits = "a string in quotes"
	case m[2] == "[]string" || m[2] == "[]wire.Name":
		fits = "a list of strings"
	}
	return fmt.Sprintf("%s: %s is %s", m[1], strings.Join(e.Key(), "."), fits), true
}

// keys are all that team.toml may hold, those at its top first.
var keys = strings.Fields("lead approvers members rules session person role command cwd env driver inject restart size" +
	" prompt after worktree agent tool decision enabled output_capture allow_human_input auto_exit_on resume_cmd")

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
			path = fmt.Sprintf("%s.%d", path, rules)
			table, rules = path, rules+1
		default:
			path = table + path
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

// blank takes the key out that a line belongs to; of a header also what stands below it.
func (l Lines) blank(data []byte, line int) []byte {
	out := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(out) {
		return data
	}
	starts := map[int]bool{}
	for _, n := range l {
		starts[n] = true
	}
	for !starts[line] && line > 1 {
		line--
	}
	isHeader := func(n int) bool { return bytes.HasPrefix(bytes.TrimSpace(out[n-1]), []byte("[")) && starts[n] }
	wasHeader := isHeader(line)
	out[line-1] = nil
	for n := line + 1; n <= len(out) && !isHeader(n) && (wasHeader || !starts[n]); n++ {
		out[n-1] = nil
	}
	return bytes.Join(out, []byte("\n"))
}
