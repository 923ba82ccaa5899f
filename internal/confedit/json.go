package confedit

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Dialect says what a program's reader of JSON takes beyond RFC 8259.
type Dialect struct {
	Comments       bool // //… and /*…*/
	TrailingCommas bool // one before ] and }
}

// Kind is what a value is.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "true or false", "a number", "a string", "a list", "an object"}[k]
}

// A Value is a value where it stands in its document: in [Start, End).
type Value struct {
	Kind       Kind
	Start, End int
	Text       string   // of a String, decoded
	Elems      []*Value // of an Array
	Members    []Member // of an Object, in their order, duplicates too
}

// A Member is a key with its value.
type Member struct {
	Key   string
	At    int // where the key's quote stands
	Value *Value
}

// Get is the member's value, nil where there is none. Of several with one key
// the last counts, as it does to JSON.parse.
func (v *Value) Get(key string) *Value {
	if i := v.index(key); i >= 0 {
		return v.Members[i].Value
	}
	return nil
}

func (v *Value) index(key string) int {
	if v != nil {
		for i := len(v.Members) - 1; i >= 0; i-- {
			if v.Members[i].Key == key {
				return i
			}
		}
	}
	return -1
}

// At follows keys downwards; nil where one is missing.
func (v *Value) At(keys ...string) *Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// JSON is a document that was understood.
type JSON struct {
	Root    *Value
	src     []byte
	dialect Dialect
	nl      string // how lines end
	unit    string // one step of indentation
	spread  bool   // members stand on lines of their own
	airy    bool   // a blank follows : and ,
}

// maxDepth bounds nesting; no configuration comes near it.
const maxDepth = 200

// ParseJSON understands a document, or returns a *SyntaxError.
func ParseJSON(src []byte, d Dialect) (*JSON, error) {
	p := &parser{src: src, dialect: d}
	if strings.HasPrefix(string(src[:min(len(src), len(bom))]), bom) {
		p.at = len(bom)
	}
	if !utf8.Valid(src) {
		return nil, syntaxError(src, firstInvalid(src), "this is not UTF-8")
	}
	if err := p.blank(); err != nil {
		return nil, err
	}
	root, err := p.value(0)
	if err == nil {
		err = p.blank()
	}
	if err == nil && p.at < len(src) {
		err = p.wrong()
	}
	if err != nil {
		return nil, err
	}
	doc := &JSON{Root: root, src: src, dialect: d, nl: newline(src), unit: "  ", spread: true, airy: true}
	doc.learn()
	return doc, nil
}

// learn sees how the document is laid out.
func (d *JSON) learn() {
	if first, ok := firstChild(d.Root); ok {
		d.spread = d.onOwnLine(d.Root, first)
		base := lineIndent(d.src, d.Root.Start)
		if in := lineIndent(d.src, first); d.spread && len(in) > len(base) && strings.HasPrefix(in, base) {
			d.unit = in[len(base):]
		}
	}
	if d.Root.Kind == Object && len(d.Root.Members) > 0 {
		d.airy = d.src[d.Root.Members[0].Value.Start-1] != ':'
	}
}

// firstChild is where the first element or member begins.
func firstChild(v *Value) (at int, ok bool) {
	switch {
	case len(v.Elems) > 0:
		return v.Elems[0].Start, true
	case len(v.Members) > 0:
		return v.Members[0].At, true
	}
	return 0, false
}

// onOwnLine reports whether a line begins between a container's opening
// bracket and its first child.
func (d *JSON) onOwnLine(v *Value, first int) bool {
	return strings.Contains(string(d.src[v.Start:first]), "\n")
}

func firstInvalid(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(src)
}

// parser reads from src[at:].
type parser struct {
	src     []byte
	at      int
	dialect Dialect
}

func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// wrong is the error about what stands here.
func (p *parser) wrong() error {
	if p.at >= len(p.src) {
		return syntaxError(p.src, p.at, "the file ends too early")
	}
	if p.peek() == '/' && !p.dialect.Comments {
		return syntaxError(p.src, p.at, "a comment, which this program does not read")
	}
	r, _ := utf8.DecodeRune(p.src[p.at:])
	return syntaxError(p.src, p.at, "unexpected %q", r)
}

// blank passes over white space and comments.
func (p *parser) blank() error {
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.at++
		case c == '/' && p.dialect.Comments:
			end, _, ok := comment(p.src, p.at)
			if !ok {
				return p.wrong()
			}
			p.at = end
		default:
			return nil
		}
	}
	return nil
}

// comment is where the comment that begins at at ends; a line comment ends
// before the end of its line.
func comment(src []byte, at int) (end int, line, ok bool) {
	rest := src[at:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
			return at + i, true, true
		}
		return len(src), true, true
	case bytes.HasPrefix(rest, []byte("/*")):
		if i := bytes.Index(rest[2:], []byte("*/")); i >= 0 {
			return at + 2 + i + 2, false, true
		}
	}
	return at, false, false
}

func (p *parser) value(depth int) (*Value, error) {
	if depth > maxDepth {
		return nil, syntaxError(p.src, p.at, "nested more than %d deep", maxDepth)
	}
	v := &Value{Start: p.at}
	var err error
	switch c := p.peek(); {
	case c == '{':
		v.Kind = Object
		err = p.children('}', func() error { return p.member(v, depth) })
	case c == '[':
		v.Kind = Array
		err = p.children(']', func() error {
			e, err := p.value(depth + 1)
			v.Elems = append(v.Elems, e)
			return err
		})
	case c == '"':
		v.Kind = String
		v.Text, err = p.str()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind = Number
		err = p.number()
	default:
		err = p.word(v)
	}
	v.End = p.at
	return v, err
}

func (p *parser) member(v *Value, depth int) error {
	m := Member{At: p.at}
	if p.peek() != '"' {
		return p.wrong()
	}
	var err error
	if m.Key, err = p.str(); err != nil {
		return err
	}
	if err := p.blank(); err != nil {
		return err
	}
	if p.peek() != ':' {
		return p.wrong()
	}
	p.at++
	if err := p.blank(); err != nil {
		return err
	}
	if m.Value, err = p.value(depth + 1); err != nil {
		return err
	}
	v.Members = append(v.Members, m)
	return nil
}

// children reads what stands between brackets.
func (p *parser) children(closer byte, child func() error) error {
	p.at++
	for n := 0; ; n++ {
		if err := p.blank(); err != nil {
			return err
		}
		if p.peek() == closer && (n == 0 || p.dialect.TrailingCommas) {
			p.at++
			return nil
		}
		if err := child(); err != nil {
			return err
		}
		if err := p.blank(); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.at++
		case closer:
			p.at++
			return nil
		default:
			return p.wrong()
		}
	}
}

func (p *parser) str() (string, error) {
	start, plain := p.at, true
	for i := p.at + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '\\':
			i++
			plain = false
		case c < 0x20:
			p.at = i
			return "", syntaxError(p.src, i, "a string that is not closed")
		case c == '"' && plain:
			p.at = i + 1
			return string(p.src[start+1 : i]), nil
		case c == '"':
			var s string
			if err := json.Unmarshal(p.src[start:i+1], &s); err != nil {
				return "", syntaxError(p.src, start, "a string with a bad escape")
			}
			p.at = i + 1
			return s, nil
		}
	}
	return "", syntaxError(p.src, start, "a string that is not closed")
}

func (p *parser) number() error {
	start := p.at
	for strings.IndexByte("+-.eE0123456789", p.peek()) >= 0 && p.at < len(p.src) {
		p.at++
	}
	if !json.Valid(p.src[start:p.at]) {
		return syntaxError(p.src, start, "not a number: %s", p.src[start:p.at])
	}
	return nil
}

func (p *parser) word(v *Value) error {
	for word, kind := range map[string]Kind{"true": Bool, "false": Bool, "null": Null} {
		if strings.HasPrefix(string(p.src[p.at:min(len(p.src), p.at+5)]), word) {
			v.Kind = kind
			p.at += len(word)
			return nil
		}
	}
	return p.wrong()
}
