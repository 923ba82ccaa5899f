package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/agentteammail/atm/wire"
)

// The tables of team.toml. Their values are of any type, because the decoder
// stops at the first value of a wrong type, and all of them are to be reported:
// a reader checks them.
type (
	fileTable struct {
		Lead      any                    `toml:"lead"`
		Approvers any                    `toml:"approvers"`
		Members   map[string]memberTable `toml:"members"`
		Rules     []ruleTable            `toml:"rules"`
		Session   sessionTable           `toml:"session"`
	}
	memberTable struct {
		Person   any           `toml:"person"`
		Role     any           `toml:"role"`
		Command  any           `toml:"command"`
		Cwd      any           `toml:"cwd"`
		Env      any           `toml:"env"`
		Driver   any           `toml:"driver"`
		Inject   any           `toml:"inject"`
		Restart  any           `toml:"restart"`
		Size     any           `toml:"size"`
		Prompt   any           `toml:"prompt"`
		After    any           `toml:"after"`
		Worktree any           `toml:"worktree"`
		Session  *sessionTable `toml:"session"`
	}
	ruleTable struct {
		Role     any `toml:"role"`
		Agent    any `toml:"agent"`
		Tool     any `toml:"tool"`
		Decision any `toml:"decision"`
	}
	sessionTable struct {
		Enabled         any `toml:"enabled"`
		OutputCapture   any `toml:"output_capture"`
		AllowHumanInput any `toml:"allow_human_input"`
		AutoExitOn      any `toml:"auto_exit_on"`
		ResumeCmd       any `toml:"resume_cmd"`
	}
)

// byteOrderMark is what editors on Windows put before a text.
var byteOrderMark = []byte("\ufeff")

// Parse reads a team.toml and reports every mistake in it, by line. agents are
// the members that have a mailbox; the file may name them without a section.
// Where the file is no TOML, the first such place is the only mistake.
func Parse(data []byte, agents []wire.Name) (*Config, []Mistake) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	r := &reader{config: Default()}
	if line, ok := invalidUTF8(data); ok {
		return r.config, []Mistake{{Line: line, Text: "this is not UTF-8"}}
	}
	var file fileTable
	decoder := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	err := decoder.Decode(&file)
	var unknown *toml.StrictMissingError
	var broken *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		for _, e := range unknown.Errors {
			r.unknownKey(&e)
		}
	case errors.As(err, &broken):
		line, _ := broken.Position()
		text := strings.TrimPrefix(broken.Error(), "toml: ")
		if strings.HasSuffix(text, "at start of value") {
			text = "a value is missing, or a string is not in quotes"
		}
		return r.config, []Mistake{{Line: line, Text: text}}
	case err != nil:
		return r.config, []Mistake{{Line: 1, Text: strings.TrimPrefix(err.Error(), "toml: ")}}
	}
	r.lines = FindLines(data)
	r.read(&file, agents)
	slices.SortStableFunc(r.mistakes, func(a, b Mistake) int { return a.Line - b.Line })
	return r.config, r.mistakes
}

// invalidUTF8 returns the line of the first byte that is not UTF-8.
func invalidUTF8(data []byte) (line int, found bool) {
	for i, l := range bytes.SplitAfter(data, []byte("\n")) {
		if !utf8.Valid(l) {
			return i + 1, true
		}
	}
	return 0, false
}

// unknownKey reports a key that its table does not have.
func (r *reader) unknownKey(e *toml.DecodeError) {
	key := e.Key()
	line, _ := e.Position()
	table, where := reflect.TypeFor[fileTable](), "here"
	if len(key) > 1 && key[0] == "rules" {
		table, where = reflect.TypeFor[ruleTable](), "in rules"
	}
	if len(key) > 1 && key[0] == "session" || len(key) > 3 && key[0] == "members" {
		table, where = reflect.TypeFor[sessionTable](), "in "+strings.Join(key[:len(key)-1], ".")
	}
	if len(key) == 3 && key[0] == "members" {
		table, where = reflect.TypeFor[memberTable](), "in members."+key[1]
	}
	word := key[len(key)-1]
	if len(key) > 1 && where == "here" {
		word = key[0]
	}
	var known []string
	for i := range table.NumField() {
		known = append(known, table.Field(i).Tag.Get("toml"))
	}
	r.mistakes = append(r.mistakes, Mistake{Line: line, Text: fmt.Sprintf("there is no key %q %s", word, where) + suggest(word, known)})
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
