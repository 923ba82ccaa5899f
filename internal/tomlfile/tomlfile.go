// Package tomlfile reads TOML files that people write. It is strict: an unknown key and a value of the wrong type are
// mistakes with a line.
package tomlfile

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/xrash/smetrics"
)

// MaxSize is how large a file may be. go-toml compares each key with all others, and shows each unknown one with the file
// around it: the worst 64 KiB cost it some three seconds, 1 MiB minutes.
const MaxSize = 64 << 10

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

var byteOrderMark = []byte("\ufeff") // written by editors on Windows

// Decode decodes a file into a struct, and returns the lines of its keys and the mistakes: unknown keys and values of a
// wrong type, or only the first syntax error. After a value of a wrong type or a syntax error, or if it is too large, the
// file is unread.
func Decode(data []byte, into any) (lines Lines, mistakes []Mistake, isUnread bool) {
	if len(data) > MaxSize {
		return nil, []Mistake{{1, fmt.Sprintf("the file has more than %d KiB", MaxSize>>10)}}, true
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	lines = FindLines(data)
	root := reflect.TypeOf(into).Elem()
	for hasSyntax := toml.Unmarshal(data, &map[string]any{}) == nil; ; {
		err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(into)
		unknown, isUnknown := errors.AsType[*toml.StrictMissingError](err)
		if isUnknown {
			for _, e := range unknown.Errors {
				line, _ := e.Position()
				mistakes = append(mistakes, Mistake{line, unknownKey(root, e.Key())})
			}
		}
		if err == nil || isUnknown {
			break
		}
		wrong, rest := mistakeOf(err, root), bytes.SplitAfter(data, []byte("\n"))
		mistakes, isUnread = append(mistakes, wrong), true
		isHeader := wrong.Line <= len(rest) && bytes.HasPrefix(bytes.TrimSpace(rest[wrong.Line-1]), []byte("["))
		if !hasSyntax || len(mistakes) > maxMistakes || wrong.Line > len(rest) || isHeader { // the keys below need their header
			break
		}
		rest[wrong.Line-1] = []byte("\n") // to find what else is wrong
		data, into = bytes.Join(rest, nil), reflect.New(root).Interface()
		if toml.Unmarshal(data, &map[string]any{}) != nil { // the value has further lines
			break
		}
	}
	SortMistakes(mistakes)
	return lines, slices.Compact(mistakes), isUnread
}

// maxMistakes is how many values of a wrong type are looked for.
const maxMistakes = 20

// Key is the key of a struct's field in a file; "": it has none.
func Key(field reflect.StructField) string {
	key := cmp.Or(field.Tag.Get("toml"), strings.ToLower(field.Name))
	if key == "-" || field.Anonymous || !field.IsExported() {
		return ""
	}
	return key
}

// keysOf returns the keys of a table, or of the tables in a list or a table, with the types of their values.
func keysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		for _, field := range reflect.VisibleFields(t) {
			keys[Key(field)] = field.Type
		}
	}
	delete(keys, "")
	return keys
}

// unknownKey says which key there is not, and which one may be meant.
func unknownKey(table reflect.Type, path toml.Key) string {
	at, known := 0, keysOf(table)
	for ; at < len(path)-1; at++ {
		next := known[path[at]]
		if table.Kind() == reflect.Map {
			next = table.Elem()
		}
		if next == nil {
			break
		}
		table, known = next, keysOf(next)
	}
	key := path[at]
	text := fmt.Sprintf("unknown key %q", key)
	if at > 0 {
		text += " in " + strings.Join(path[:at], ".")
	}
	distance := func(known string) int { return smetrics.WagnerFischer(key, known, 1, 1, 1) }
	nearest := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return cmp.Or(distance(a)-distance(b), strings.Compare(a, b)) })
	if len(nearest) > 0 && distance(nearest[0]) <= 1+len(key)/4 {
		text += fmt.Sprintf("; did you mean %q?", nearest[0])
	}
	return text
}

// addTypes adds what values of a type are called in a file, and those in it, by the names that go-toml has for them.
func addTypes(names map[string]string, t reflect.Type) {
	if names[t.String()] != "" {
		return
	}
	kind, name := t.Kind(), "a table"
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		names[t.String()] = "a string in quotes"
		return
	case kind == reflect.Bool:
		name = "true or false"
	case kind == reflect.Int || kind == reflect.Int64:
		name = "a whole number"
	case kind == reflect.String:
		name = "a string in quotes"
	case kind == reflect.Slice && t.Elem().Kind() == reflect.String:
		name = "a list of strings"
	case kind == reflect.Slice:
		name = "a list of tables"
	}
	names[t.String()], names[kind.String()] = name, name
	if kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map {
		addTypes(names, t.Elem())
	}
	for _, inner := range keysOf(t) {
		addTypes(names, inner)
	}
}

var wrongType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^cannot (?:decode TOML|store an?) (.+) in(?:to)?(?: a)?(?: struct field \S+ of type)? (\S+)$`)
})

// mistakeOf says what is wrong in a file that go-toml could not decode into a type.
func mistakeOf(err error, into reflect.Type) Mistake {
	m := Mistake{1, strings.TrimPrefix(err.Error(), "toml: ")}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := at.Position()
		m.Line = max(line, 1)
		path := strings.Join(at.Key(), ".")
		if is := wrongType().FindStringSubmatch(m.Text); is != nil {
			names := map[string]string{}
			addTypes(names, into)
			m.Text = fmt.Sprintf("%s: %s is needed, not a TOML %s", path, cmp.Or(names[is[2]], is[2]), is[1])
		} else if path != "" && !strings.Contains(m.Text, "already") {
			m.Text = path + ": " + m.Text
		}
	}
	if strings.HasSuffix(m.Text, "at start of value") {
		m.Text = "a value is missing, or a string is not in quotes"
	}
	return m
}

// Lines maps the paths of a file's keys and list items to their lines: "members.bob.after", "members.bob.after.1",
// "rules.1.tool". They are in lower case, since a key may be in any.
type Lines map[string]int

// maxDepth is how many parts of a path Lines has. No file that is right has as many.
const maxDepth = 20

// FindLines finds the lines of a file's keys, up to a syntax error.
func FindLines(data []byte) Lines {
	f := lineFinder{lines: Lines{}, data: bytes.TrimPrefix(data, byteOrderMark), line: 1}
	var p unstable.Parser
	p.Reset(f.data)
	table, tables := []string(nil), map[string]int{} // the tables of each list yet
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.KeyValue:
			f.add(table, e)
		case unstable.Table:
			table = f.addKey(nil, e)
		case unstable.ArrayTable:
			table = f.addKey(nil, e)
			list := strings.Join(table, ".")
			table = append(table, fmt.Sprint(tables[list]))
			tables[list]++
			f.note(table)
		}
	}
	return f.lines
}

// A lineFinder goes through a file's nodes in their order.
type lineFinder struct {
	lines   Lines
	data    []byte
	counted int // bytes
	line    int // of the last one
}

func (f *lineFinder) goTo(n *unstable.Node) {
	if at := int(n.Raw.Offset); at > f.counted {
		f.line += bytes.Count(f.data[f.counted:at], []byte{'\n'})
		f.counted = at
	}
}

func (f *lineFinder) note(path []string) {
	if len(path) <= maxDepth {
		key := strings.ToLower(strings.Join(path, "."))
		f.lines[key] = cmp.Or(f.lines[key], f.line)
	}
}

// addKey adds the key of a node, and returns its path.
func (f *lineFinder) addKey(path []string, n *unstable.Node) []string {
	path = slices.Clip(path)
	for it := n.Key(); it.Next(); {
		f.goTo(it.Node())
		path = append(path, string(it.Node().Data))
		f.note(path)
	}
	return path
}

// add adds what is below a path: a key with its value, or a value with the keys and items in it.
func (f *lineFinder) add(path []string, n *unstable.Node) {
	switch {
	case len(path) > maxDepth:
	case n.Kind == unstable.KeyValue:
		f.add(f.addKey(path, n), n.Value())
	case n.Kind == unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			f.add(path, it.Node())
		}
	case n.Kind == unstable.Array:
		for i, it := 0, n.Children(); it.Next(); i++ {
			f.goTo(it.Node())
			item := append(slices.Clip(path), fmt.Sprint(i))
			f.note(item)
			f.add(item, it.Node())
		}
	}
}

// Of returns the line of a key, else of the nearest table or list around it, else 1.
func (l Lines) Of(path string) int {
	for path = strings.ToLower(path); path != ""; {
		if line, ok := l[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return 1
}
