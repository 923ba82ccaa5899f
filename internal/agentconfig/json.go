package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// dialect is what a program's reader of JSON accepts beyond RFC 8259.
type dialect struct{ comments, trailingCommas bool }

var (
	strictJSON   = dialect{}
	jsonComments = dialect{comments: true}
	looseJSON    = dialect{comments: true, trailingCommas: true}
)

var byteOrderMark = []byte("\uFEFF")

// parseJSON reads a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte, d dialect) (*hujson.Value, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("this is not UTF-8")
	}
	text, marked := bytes.CutPrefix(data, byteOrderMark)
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(slices.Concat(text, []byte("\n"))) // a comment has to end
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	root.AfterExtra = root.AfterExtra[:len(root.AfterExtra)-1]
	if marked {
		root.BeforeExtra = slices.Concat(byteOrderMark, root.BeforeExtra)
	}
	if root.Value.Kind() != '{' {
		return nil, fmt.Errorf("it is %s, not an object", kindName(root.Value))
	}
	for v := range root.All() {
		before, after, end := extras(v)
		for _, extra := range slices.Concat(before, after, []*hujson.Extra{end, &v.BeforeExtra, &v.AfterExtra}) {
			if !d.comments && hasComment(*extra) {
				return nil, errors.New("it has a comment, which this program does not read")
			}
		}
		if n := len(after); !d.trailingCommas && n > 0 && *after[n-1] != nil {
			return nil, errors.New("it has a comma behind the last value, which this program does not read")
		}
	}
	return &root, nil
}

func kindName(v hujson.ValueTrimmed) string {
	switch v.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	}
	return "a plain value"
}

// extras are the white space and comments of an object or list: before and
// after each child, and before the closing bracket. A nil extra after the last
// child means that no comma stands there.
func extras(v *hujson.Value) (before, after []*hujson.Extra, end *hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			before = append(before, &c.Members[i].Name.BeforeExtra)
			after = append(after, &c.Members[i].Value.AfterExtra)
		}
		return before, after, &c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			before = append(before, &c.Elements[i].BeforeExtra)
			after = append(after, &c.Elements[i].AfterExtra)
		}
		return before, after, &c.AfterExtra
	}
	return nil, nil, new(hujson.Extra)
}

func hasComment(e hujson.Extra) bool { return bytes.IndexByte(e, '/') >= 0 }

// member gives the value of a key, nil where there is none. As in every reader
// that these files have, the last one counts.
func member(v *hujson.Value, key string) *hujson.Value {
	all := members(v)
	for i := len(all) - 1; i >= 0; i-- {
		if str(&all[i].Name) == key {
			return &all[i].Value
		}
	}
	return nil
}

// find follows keys from an object inwards, nil where nothing is.
func find(v *hujson.Value, keys ...string) *hujson.Value {
	for _, k := range keys {
		if v == nil {
			return nil
		}
		v = member(v, k)
	}
	return v
}

// members are those of an object; what is no object has none.
func members(v *hujson.Value) []hujson.ObjectMember {
	if obj, ok := v.Value.(*hujson.Object); ok {
		return obj.Members
	}
	return nil
}

// isEmpty reports whether an object or list holds nothing, no comment either.
func isEmpty(v *hujson.Value) bool {
	before, _, end := extras(v)
	_, plain := v.Value.(hujson.Literal)
	return !plain && len(before) == 0 && !hasComment(*end)
}

// elements are those of a list; nil and what is no list have none.
func elements(v *hujson.Value) []hujson.Value {
	if v == nil {
		return nil
	}
	if list, ok := v.Value.(*hujson.Array); ok {
		return list.Elements
	}
	return nil
}

// str is a string's value, "" for everything else.
func str(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	return v.Value.(hujson.Literal).String()
}

// strs are the strings in a list.
func strs(v *hujson.Value) (out []string) {
	for _, e := range elements(v) {
		if s := str(&e); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// container gives the object ('{') or list ('[') at keys, and makes it and
// those around it where they are missing. sep is the white space that belongs
// in front of a new child of it, and outer what goes in front of its closing
// bracket where it was empty.
func container(root *hujson.Value, kind hujson.Kind, keys ...string) (v *hujson.Value, sep, outer string, err error) {
	unit := "  "
	if before, _, _ := extras(root); len(before) > 0 {
		unit = strings.TrimLeft(layout(*before[0]), "\r\n")
	}
	v, outer = root, "\n"
	sep = childLayout(root, outer, unit)
	for i, k := range keys {
		want := hujson.Kind('{')
		if i == len(keys)-1 {
			want = kind
		}
		child := member(v, k)
		if child == nil {
			empty := hujson.Value{Value: &hujson.Object{}}
			if want == '[' {
				empty.Value = &hujson.Array{}
			}
			child = appendMember(v, k, empty, sep, outer)
		}
		if child.Value.Kind() != want {
			return nil, "", "", wrongKind(keys[:i+1], child.Value, want)
		}
		v, outer = child, ""
		if strings.Contains(sep, "\n") {
			outer = sep
		}
		sep = childLayout(v, outer, unit)
	}
	return v, sep, outer, nil
}

// childLayout is the white space in front of a new child of v: as its last child
// has it, else one unit further in than outer, if that is a line end.
func childLayout(v *hujson.Value, outer, unit string) string {
	before, _, _ := extras(v)
	if n := len(before); n > 0 {
		sep := layout(*before[n-1])
		if n == 1 && sep == "" {
			sep = " "
		}
		return sep
	}
	if outer == "" {
		return ""
	}
	return outer + unit
}

// layout is the white space that an extra ends with: a line end and what stands
// in front of the value, or blanks where the value follows on the same line.
func layout(e hujson.Extra) string {
	i := bytes.LastIndexByte(e, '\n')
	if i > 0 && e[i-1] == '\r' {
		i--
	}
	if i < 0 {
		i = 0
	}
	blank, _, _ := strings.Cut(string(e[i:]), "/")
	return blank
}

func wrongKind(keys []string, is hujson.ValueTrimmed, want hujson.Kind) error {
	names := map[hujson.Kind]string{'{': "an object", '[': "a list", '"': "a string"}
	return fmt.Errorf("%s is %s, not %s; the file was left alone", strings.Join(keys, "."), kindName(is), names[want])
}

// appendMember puts a member at the end of an object.
func appendMember(v *hujson.Value, key string, value hujson.Value, sep, outer string) *hujson.Value {
	obj := v.Value.(*hujson.Object)
	value.BeforeExtra = hujson.Extra(" ")
	if n := len(obj.Members); n > 0 && len(bytes.TrimSpace(obj.Members[n-1].Value.BeforeExtra)) == 0 {
		value.BeforeExtra = bytes.Clone(obj.Members[n-1].Value.BeforeExtra)
	}
	obj.Members = append(obj.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: value})
	layOutLast(v, sep, outer)
	return &obj.Members[len(obj.Members)-1].Value
}

// appendElement puts a value at the end of a list.
func appendElement(v *hujson.Value, value hujson.ValueTrimmed, sep, outer string) {
	list := v.Value.(*hujson.Array)
	list.Elements = append(list.Elements, hujson.Value{Value: value})
	layOutLast(v, sep, outer)
}

// layOutLast gives a child that was just appended its white space. A comment
// behind the child before it stays where it is, and so does a comma too many.
func layOutLast(v *hujson.Value, sep, outer string) {
	before, after, end := extras(v)
	n := len(before) - 1
	if n == 0 && !hasComment(*end) {
		*before[0], *end = hujson.Extra(sep), hujson.Extra(outer)
		return
	}
	if n > 0 && *after[n-1] != nil {
		*after[n] = hujson.Extra{}
	}
	if !hasComment(*end) {
		*before[n] = hujson.Extra(sep)
		return
	}
	text := string(*end)
	comment, tail := text, ""
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		comment, tail = text[:i], text[i:]
		if !strings.Contains(sep, "\n") {
			sep = tail
		}
	}
	*before[n], *end = hujson.Extra(comment+sep), hujson.Extra(tail)
}

// removeChild takes a child out of an object or list. Comments in front of it
// stay.
func removeChild(v *hujson.Value, i int) {
	before, after, end := extras(v)
	last := i == len(before)-1
	next := end
	if !last {
		next = before[i+1]
	}
	gone := *before[i]
	switch {
	case hasComment(gone):
		comment := strings.TrimSuffix(string(gone), layout(gone))
		*next = hujson.Extra(comment + string(*next))
	case i == 0 && !last && !hasComment(*next):
		*next = gone
	}
	if last && i > 0 {
		if *after[i] == nil {
			*end = slices.Concat(*after[i-1], *end)
			*after[i-1] = nil
		} else if *after[i-1] == nil {
			*after[i-1] = hujson.Extra{}
		}
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
	if last && i == 0 && !hasComment(*end) {
		*end = nil
	}
}

// removeMember takes a member out of the object at keys.
func removeMember(root *hujson.Value, keys ...string) {
	last := len(keys) - 1
	v := find(root, keys[:last]...)
	for i := len(members(v)) - 1; i >= 0; i-- {
		if str(&members(v)[i].Name) == keys[last] {
			removeChild(v, i)
			return
		}
	}
}

// readJSON reads a file that is not going to be edited; nil is one that cannot
// be understood.
func readJSON(path string) *hujson.Value {
	data, _, err := readFile(path)
	if err != nil {
		return nil
	}
	root, err := parseJSON(data, looseJSON)
	if err != nil {
		return nil
	}
	return root
}
