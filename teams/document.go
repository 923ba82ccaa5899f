package teams

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// document is a TOML file as it was written: every value with the line of its
// key, and what is wrong with it as TOML.
type document struct {
	top      *entry
	mistakes []Mistake

	parser unstable.Parser
	at     *entry // the table that the last header began
}

// entry is a key's value in a document.
type entry struct {
	key   string
	line  int
	kind  unstable.Kind // Table for headers' and inline ones; ArrayTable
	text  string        // of a string, decoded; of a number or date, as written
	yes   bool          // of a Bool
	elems []*entry      // of an Array or ArrayTable
	keys  []*entry      // of a Table, in order

	made   bool // by a header of its own, or whole
	dotted bool // by a dotted key
}

func (e *entry) get(key string) *entry {
	for _, k := range e.keys {
		if k.key == key {
			return k
		}
	}
	return nil
}

// withoutBOM is a text without the mark that editors on Windows put before it.
func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// maxBroken bounds how many lines that are no TOML are named: a file of another
// kind is not one of many mistakes.
const maxBroken = 20

// readDocument reads a file of TOML. Lines that are none are left out and named,
// so that what stands around them is read; where that does not help, as with a
// header or a string without an end, what stands before the place is read.
func readDocument(data []byte) *document {
	d := &document{}
	bad := d.read(data)
	if bad == nil {
		// The parser looks at one line at a time; what else TOML forbids is for
		// its owner to say.
		var whole map[string]any
		var wrong *toml.DecodeError
		if err := toml.Unmarshal(data, &whole); errors.As(err, &wrong) && len(d.mistakes) == 0 {
			line, _ := wrong.Position()
			d.say(line, "%s", strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return d
	}
	broken := []Mistake{*bad}
	for rest := data; len(broken) <= maxBroken; {
		var ok bool
		if rest, ok = withoutLine(rest, bad.Line); !ok {
			break
		}
		next := &document{}
		if bad = next.read(rest); bad == nil {
			d = next
			break
		}
		if bad.Line <= broken[len(broken)-1].Line {
			break // it is not the line that is to blame
		}
		broken = append(broken, *bad)
		d = next
	}
	d.mistakes = append(d.mistakes, broken...)
	return d
}

// withoutLine is a file with a line left empty, so that the others keep their
// numbers. Not a header: what follows would be taken for the table before.
func withoutLine(data []byte, line int) (rest []byte, ok bool) {
	from := bytes.LastIndexByte(data[:offset(data, line)], '\n') + 1
	to := len(data)
	if n := bytes.IndexByte(data[from:], '\n'); n >= 0 {
		to = from + n
	}
	text := bytes.TrimSpace(data[from:to])
	if len(text) == 0 || bytes.HasPrefix(text, []byte("[")) {
		return nil, false
	}
	return slices.Concat(data[:from], data[to:]), true
}

// offset is where a line (from 1) begins.
func offset(data []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return len(data)
		}
		at += n + 1
	}
	return at
}

// read reads as far as it is TOML, and says where it is not.
func (d *document) read(data []byte) *Mistake {
	d.top = &entry{kind: unstable.Table}
	d.at = d.top
	d.parser.Reset(data)
	for d.parser.NextExpression() {
		n := d.parser.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			d.header(n)
		case unstable.KeyValue:
			d.pair(d.at, n)
		}
	}
	err := d.parser.Error()
	if err == nil {
		return nil
	}
	line := 1
	var wrong *unstable.ParserError
	if errors.As(err, &wrong) && len(wrong.Highlight) > 0 {
		line = d.parser.Shape(d.parser.Range(wrong.Highlight)).Start.Line
	} else if n := len(data) - len(bytes.TrimRight(data, "\n")); n < len(data) {
		line = 1 + bytes.Count(data[:len(data)-n], []byte("\n"))
	}
	return &Mistake{Line: line, Text: plainer(strings.TrimPrefix(err.Error(), "toml: "))}
}

// plainer says the two commonest slips in the words of who makes them.
func plainer(said string) string {
	char, odd := strings.CutPrefix(said, "unexpected character U+")
	char, first := strings.CutSuffix(char, " at start of value")
	if !odd || !first {
		return said
	}
	code, shown, _ := strings.Cut(char, " ")
	if code == "000A" || code == "000D" || code == "0023" { // nothing, or a comment, stands there
		return "there is no value behind the ="
	}
	return "a value cannot begin with " + shown + ": a text stands in quotes"
}

func (d *document) say(line int, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (d *document) lineOf(n *unstable.Node) int {
	return d.parser.Shape(n.Raw).Start.Line
}

// path is a dotted key, and the line that it begins on.
func (d *document) path(n *unstable.Node) (path []string, line int) {
	for it := n.Key(); it.Next(); {
		if line == 0 {
			line = d.lineOf(it.Node())
		}
		path = append(path, string(it.Node().Data))
	}
	return path, line
}

// header begins the table that a line in brackets names. One that cannot be is
// read all the same, apart.
func (d *document) header(n *unstable.Node) {
	path, line := d.path(n)
	last := len(path) - 1
	d.at = &entry{key: path[last], line: line, kind: unstable.Table, made: true}
	in := d.below(d.top, path[:last], line, false)
	if in == nil {
		return
	}
	switch old := in.get(path[last]); {
	case n.Kind == unstable.ArrayTable && old == nil:
		in.keys = append(in.keys, &entry{key: path[last], line: line, kind: unstable.ArrayTable, elems: []*entry{d.at}})
	case n.Kind == unstable.ArrayTable && old.kind == unstable.ArrayTable:
		old.elems = append(old.elems, d.at)
	case n.Kind == unstable.Table && old == nil:
		in.keys = append(in.keys, d.at)
	case n.Kind == unstable.Table && old.kind == unstable.Table && !old.made && !old.dotted:
		old.made, old.line = true, line
		d.at = old
	default:
		d.say(line, "%s stands here a second time, after line %d", quoted(path), old.line)
	}
}

// below is the table at the end of a path, made where it is absent; nil, and
// said, where something else is there.
func (d *document) below(in *entry, path []string, line int, dotted bool) *entry {
	for i, key := range path {
		next := in.get(key)
		switch {
		case next == nil:
			next = &entry{key: key, line: line, kind: unstable.Table, dotted: dotted}
			in.keys = append(in.keys, next)
		case next.kind == unstable.ArrayTable:
			next = next.elems[len(next.elems)-1]
		case next.kind != unstable.Table || dotted && next.made:
			d.say(line, "%s has its value in line %d, and nothing can be added to it", quoted(path[:i+1]), next.line)
			return nil
		}
		in = next
	}
	return in
}

func (d *document) pair(in *entry, n *unstable.Node) {
	path, line := d.path(n)
	last := len(path) - 1
	if in = d.below(in, path[:last], line, true); in == nil {
		return
	}
	if old := in.get(path[last]); old != nil {
		d.say(line, "%s stands here a second time, after line %d", quoted(path), old.line)
		return
	}
	in.keys = append(in.keys, d.value(path[last], line, n.Value()))
}

func (d *document) value(key string, line int, n *unstable.Node) *entry {
	e := &entry{key: key, line: line, kind: n.Kind, made: true}
	switch n.Kind {
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			child := it.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			at := line
			if child.Raw.Length > 0 {
				at = d.lineOf(child)
			}
			e.elems = append(e.elems, d.value(key, at, child))
		}
	case unstable.InlineTable:
		e.kind = unstable.Table
		for it := n.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				d.pair(e, it.Node())
			}
		}
	case unstable.Bool:
		e.yes = string(n.Data) == "true"
	default:
		e.text = string(n.Data)
	}
	return e
}

// quoted is a dotted key for people.
func quoted(path []string) string { return fmt.Sprintf("%q", strings.Join(path, ".")) }
