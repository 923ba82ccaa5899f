package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/wire"
)

var byteOrderMark = []byte("\ufeff") // written by editors on Windows

// Parse parses a team.toml and returns all mistakes by line; after a syntax error only that one. The file may name a
// member without a section if hasMailbox (nil: never) reports true for it.
func Parse(data []byte, hasMailbox func(wire.Name) bool) (*Config, []Mistake) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	lines, tooMany := findLines(data)
	k := checker{config: Default(), hasMailbox: hasMailbox, lines: lines}
	if tooMany > 0 {
		return k.config, []Mistake{{tooMany, "the file has too many keys up to here: atm reads some ten thousand members"}}
	}
	file := map[string]any{}
	if err := toml.Unmarshal(data, &file); err != nil {
		return k.config, []Mistake{syntaxError(err)}
	}
	k.decode("", file, reflect.ValueOf(k.config).Elem())
	k.check()
	slices.SortFunc(k.mistakes, func(a, b Mistake) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Text, b.Text)) })
	return k.config, k.mistakes
}

func syntaxError(err error) Mistake {
	m := Mistake{1, strings.TrimPrefix(err.Error(), "toml: ")}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := at.Position()
		m.Line = max(line, 1)
	}
	if strings.HasSuffix(m.Text, "at start of value") {
		m.Text = "a value is missing, or a string is not in quotes"
	}
	return m
}

// decode stores the value at a path. Unlike go-toml it goes on after an unknown key or a value of the wrong type, and
// reports each as a mistake.
func (k *checker) decode(path string, value any, into reflect.Value) {
	table, isTable := value.(map[string]any)
	list, isList := value.([]any)
	below := func(key any) string { return strings.TrimPrefix(fmt.Sprint(path, ".", key), ".") }
	switch {
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		if own, ok := into.Interface().(*Session); ok {
			*own = k.config.Session // for the keys that it leaves out
		}
		k.decode(path, value, into.Elem())
	case into.Kind() == reflect.Struct && isTable:
		var known []string
		for _, field := range reflect.VisibleFields(into.Type()) {
			key := cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name))
			known = append(known, key)
			if table[key] != nil {
				k.decode(below(key), table[key], into.FieldByIndex(field.Index))
			}
		}
		k.checkKeys(path, table, known)
	case into.Kind() == reflect.Map && isTable:
		into.Set(reflect.MakeMap(into.Type()))
		for key, v := range table {
			item := reflect.New(into.Type().Elem()).Elem()
			k.decode(below(key), v, item)
			into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), item)
		}
	case into.Kind() == reflect.Slice && isList:
		into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
		for i, v := range list {
			k.decode(below(i), v, into.Index(i))
		}
	case into.Kind() == reflect.TypeOf(value).Kind() && reflect.TypeOf(value).ConvertibleTo(into.Type()):
		into.Set(reflect.ValueOf(value).Convert(into.Type()))
	default:
		k.add(path, "%s must be %s, not %s", path, typeName(into.Type()), kindNames[reflect.TypeOf(value).Kind()])
	}
}

// kindNames are the names of TOML's types. go-toml decodes a date as a struct.
var kindNames = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.Int64: "a number", reflect.Float64: "a number", reflect.String: "a string",
	reflect.Slice: "a list", reflect.Map: "a table", reflect.Struct: "a date",
}

// typeName names the type of a field.
func typeName(t reflect.Type) string {
	kind := t.Kind()
	switch {
	case kind == reflect.String:
		return "a string in quotes"
	case kind == reflect.Struct:
		return "a table"
	case kind == reflect.Slice && t.Elem().Kind() == reflect.String:
		return "a list of strings"
	case kind == reflect.Slice:
		return "a list of tables"
	default:
		return kindNames[kind]
	}
}

func (k *checker) checkKeys(path string, table map[string]any, known []string) {
	where := "in " + path
	if path == "" {
		where = "at the top level"
	} else if strings.HasPrefix(path, "rules.") {
		where = "in rules" // without the rule's index
	}
	for key := range table {
		if slices.Contains(known, key) {
			continue
		}
		text := fmt.Sprintf("unknown key %q %s", key, where)
		distance := func(known string) int { return smetrics.WagnerFischer(key, known, 1, 1, 1) }
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(a) - distance(b) })
		if distance(nearest) <= 1+len(key)/4 {
			text += fmt.Sprintf("; did you mean %q?", nearest)
		}
		k.add(strings.TrimPrefix(path+"."+key, "."), "%s", text)
	}
}

// Lines maps the paths of a team.toml's keys and list values, outside inline tables, to their lines:
// "members.bob.after", "members.bob.after.1", "rules.1.tool".
type Lines map[string]int

// FindLines finds the lines of a file's keys, up to a syntax error.
func FindLines(data []byte) Lines {
	lines, _ := findLines(bytes.TrimPrefix(data, byteOrderMark))
	return lines
}

// maxCompared is how many keys go-toml may compare, in a second or less. It compares a key with all that follow its
// table's header, and a header with all keys of the file.
const maxCompared = 300_000_000

const maxParts = 100 // of one key, as in a.b.c

// findLines is FindLines without a byte order mark. It stops at the line of the key with which there are too many; 0:
// there are not.
func findLines(data []byte) (lines Lines, tooMany int) {
	lines = Lines{}
	var p unstable.Parser
	p.Reset(data)
	counted, line := 0, 1
	lineOf := func(n *unstable.Node) int { // nodes come in their order
		at := int(n.Raw.Offset)
		line += bytes.Count(data[counted:at], []byte{'\n'})
		counted = at
		return line
	}
	table, rules := "", 0
	keys, keysBefore, compared := 0, 0, 0
	for p.NextExpression() {
		e := p.Expression()
		path, line := "", 0
		if e.Kind == unstable.KeyValue {
			path = table
		}
		for it, n := e.Key(), 0; it.Next(); n++ {
			line = lineOf(it.Node())
			if n == maxParts {
				return lines, line
			}
			path = strings.TrimPrefix(path+"."+string(it.Node().Data), ".")
			lines[path] = cmp.Or(lines[path], line)
		}
		n := keysOf(e)
		keys += n
		if e.Kind == unstable.KeyValue {
			compared += n * (keys - keysBefore)
		} else {
			compared, keysBefore = compared+keys, keys
		}
		if compared > maxCompared {
			return lines, line
		}
		switch e.Kind {
		case unstable.Table:
			table = path
		case unstable.ArrayTable:
			table, rules = fmt.Sprintf("%s.%d", path, rules), rules+1
			lines[table] = line
		case unstable.KeyValue:
			for i, it := 0, e.Value().Children(); e.Value().Kind == unstable.Array && it.Next(); i++ {
				lines[fmt.Sprintf("%s.%d", path, i)] = lineOf(it.Node())
			}
		}
	}
	return lines, 0
}

// keysOf counts the keys of an expression, and those of the tables inside its value.
func keysOf(n *unstable.Node) (keys int) {
	switch n.Kind {
	case unstable.KeyValue, unstable.Table, unstable.ArrayTable:
		for it := n.Key(); it.Next(); {
			keys++
		}
		if n.Kind == unstable.KeyValue {
			keys += keysOf(n.Value())
		}
	case unstable.Array, unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			keys += keysOf(it.Node())
		}
	}
	return keys
}

// Of returns the line of a key, else of the nearest table or list around it, else 1.
func (l Lines) Of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return 1
}
