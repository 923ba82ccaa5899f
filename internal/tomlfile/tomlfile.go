// Package tomlfile reads TOML files that people write. It is strict: an unknown key and a value of the wrong type are
// mistakes with a line, and all of them are reported.
package tomlfile

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/xrash/smetrics"
)

// A Mistake is a mistake in a file.
type Mistake struct {
	Line int
	Text string
}

func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text) }

// SortMistakes sorts mistakes by line.
func SortMistakes(mistakes []Mistake) {
	slices.SortFunc(mistakes, func(a, b Mistake) int { return cmp.Or(a.Line-b.Line, strings.Compare(a.Text, b.Text)) })
}

// Options change what Decode does.
type Options struct {
	Prepare func(pointer any)   // sets what a new value has that the file may leave out
	Expand  func(string) string // changes the strings of values that implement encoding.TextUnmarshaler
}

var byteOrderMark = []byte("\ufeff") // written by editors on Windows

// Decode decodes a file into a struct, and returns the lines of its keys and the mistakes. A file with a syntax error or
// too much in it is not read, and has only that mistake. A field "Line" with the tag toml:"-" is set to the line of its table.
func Decode(data []byte, into any, o Options) (lines Lines, mistakes []Mistake, isUnread bool) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	lines, tooMany := findLines(data)
	if tooMany > 0 {
		return lines, []Mistake{{tooMany, "the file has too many keys up to here"}}, true
	}
	file := map[string]any{}
	if err := toml.Unmarshal(data, &file); err != nil {
		return lines, []Mistake{syntaxError(err)}, true
	}
	d := decoder{Options: o, lines: lines}
	d.decode("", file, reflect.ValueOf(into).Elem())
	SortMistakes(d.mistakes)
	return lines, d.mistakes, false
}

// A decoder collects the mistakes while it decodes.
type decoder struct {
	Options
	lines    Lines
	mistakes []Mistake
}

func (d *decoder) add(path, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{Line: d.lines.Of(path), Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) expand(s string) string {
	if d.Expand == nil {
		return s
	}
	return d.Expand(s)
}

// lastKey is the last key of a path; of an item in a list, the list's.
func lastKey(path string) string {
	path = strings.TrimRight(path, ".0123456789")
	return path[strings.LastIndexByte(path, '.')+1:]
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
func (d *decoder) decode(path string, value any, into reflect.Value) {
	table, isTable := value.(map[string]any)
	list, isList := value.([]any)
	text, isText := into.Addr().Interface().(encoding.TextUnmarshaler)
	below := func(key any) string { return strings.TrimPrefix(fmt.Sprint(path, ".", key), ".") }
	switch {
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		if d.Prepare != nil {
			d.Prepare(into.Interface())
		}
		d.decode(path, value, into.Elem())
	case isText && reflect.TypeOf(value).Kind() == reflect.String:
		if err := text.UnmarshalText([]byte(d.expand(value.(string)))); err != nil {
			d.add(path, "%s: %v", lastKey(path), err)
		}
	case into.Kind() == reflect.Struct && isTable:
		var known []string
		for _, field := range reflect.VisibleFields(into.Type()) {
			if field.Anonymous || !field.IsExported() {
				continue
			}
			if field.Tag.Get("toml") == "-" {
				if field.Name == "Line" {
					into.FieldByIndex(field.Index).SetInt(int64(d.lines.Of(path)))
				}
				continue
			}
			key := cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name))
			known = append(known, key)
			if table[key] != nil {
				d.decode(below(key), table[key], into.FieldByIndex(field.Index))
			}
		}
		d.checkKeys(path, table, known)
	case into.Kind() == reflect.Map && isTable:
		into.Set(reflect.MakeMap(into.Type()))
		for key, v := range table {
			item := reflect.New(into.Type().Elem()).Elem()
			d.decode(below(key), v, item)
			into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), item)
		}
	case into.Kind() == reflect.Slice && isList:
		into.Set(reflect.MakeSlice(into.Type(), len(list), len(list)))
		for i, v := range list {
			d.decode(below(i), v, into.Index(i))
		}
	case into.Kind() == reflect.Int && reflect.TypeOf(value).Kind() == reflect.Int64:
		into.SetInt(value.(int64))
	case into.Kind() == reflect.TypeOf(value).Kind() && reflect.TypeOf(value).ConvertibleTo(into.Type()):
		into.Set(reflect.ValueOf(value).Convert(into.Type()))
	default:
		want := typeName(into.Type())
		if isText {
			want = typeName(reflect.TypeFor[string]())
		}
		d.add(path, "%s must be %s, not %s", path, want, kindNames[reflect.TypeOf(value).Kind()])
	}
}

// kindNames are the names of TOML's types. go-toml decodes a date as a struct.
var kindNames = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.Int: "a number", reflect.Int64: "a number", reflect.Float64: "a number", reflect.String: "a string",
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

func (d *decoder) checkKeys(path string, table map[string]any, known []string) {
	where := "at the top level"
	if path != "" {
		where = "in " + strings.TrimRight(path, ".0123456789") // without the index in a list
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
		d.add(strings.TrimPrefix(path+"."+key, "."), "%s", text)
	}
}

// Lines maps the paths of a file's keys and list values, outside inline tables, to their lines:
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
	table, tables := "", map[string]int{} // the tables of each list yet
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
			table, tables[path] = fmt.Sprintf("%s.%d", path, tables[path]), tables[path]+1
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
