package confedit

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TOML is a document of TOML 1.0 that was understood, as far as editing needs
// it: which keys it gives a value, and where. Numbers and dates are not
// checked beyond being words.
type TOML struct {
	Entries []Entry
	tables  []table
	src     []byte
	nl      string
}

// An Entry is a key with its value, in [Start, End). Members of inline tables
// are entries too.
type Entry struct {
	Path       []string // from the top of the document
	Array      bool     // a list: Elems
	Elems      []Elem
	Text       string // of a string, decoded; of anything else, as written
	IsString   bool
	Start, End int
	line       int // where the line begins that the entry stands on
	table      int // index in tables
	inline     int // where the } of the inline table is that the entry stands in; -1
	opens      int // where the { is that the value begins with, if it is an inline table; -1
	dots       int // how many parts of Path the entry itself gives
}

// Elem is an element of a list.
type Elem struct {
	Text       string // decoded, of a string
	IsString   bool
	Start, End int
}

// table is what a header begins; the first one is the top of the document.
type table struct {
	path  []string
	array bool // [[…]]
	at    int  // where the header's line begins
	end   int  // where its last line with something on it ends, before the line end
}

// ParseTOML understands a document, or returns a *SyntaxError.
func ParseTOML(src []byte) (*TOML, error) {
	if !utf8.Valid(src) {
		return nil, syntaxError(src, firstInvalid(src), "this is not UTF-8")
	}
	p := &tomlParser{src: src, doc: &TOML{src: src, nl: newline(src), tables: []table{{}}}}
	if strings.HasPrefix(string(src[:min(len(src), len(bom))]), bom) {
		p.at = len(bom)
	}
	for p.at < len(src) {
		if err := p.line(); err != nil {
			return nil, err
		}
	}
	return p.doc, nil
}

// Find is the entry of that path, nil where there is none.
func (d *TOML) Find(path ...string) *Entry {
	for i := range d.Entries {
		if slices.Equal(d.Entries[i].Path, path) {
			return &d.Entries[i]
		}
	}
	return nil
}

// Has reports whether the document says anything of a table or key, or of one
// below it.
func (d *TOML) Has(path ...string) bool {
	below := func(p []string) bool { return len(p) >= len(path) && slices.Equal(p[:len(path)], path) }
	return slices.ContainsFunc(d.Entries, func(e Entry) bool { return below(e.Path) }) ||
		slices.ContainsFunc(d.tables[1:], func(t table) bool { return below(t.path) })
}

type tomlParser struct {
	src []byte
	at  int
	doc *TOML
}

func (p *tomlParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *tomlParser) has(s string) bool {
	return strings.HasPrefix(string(p.src[p.at:min(len(p.src), p.at+len(s))]), s)
}

func (p *tomlParser) wrong(what string) error {
	if p.at >= len(p.src) {
		return syntaxError(p.src, p.at, "the file ends too early: %s", what)
	}
	r, _ := utf8.DecodeRune(p.src[p.at:])
	return syntaxError(p.src, p.at, "unexpected %q: %s", r, what)
}

// spaces passes over blanks on a line.
func (p *tomlParser) spaces() {
	for p.peek() == ' ' || p.peek() == '\t' {
		p.at++
	}
}

// rest passes over a comment and the end of the line.
func (p *tomlParser) rest() error {
	p.spaces()
	if p.peek() == '#' {
		for p.at < len(p.src) && p.peek() != '\n' {
			p.at++
		}
	}
	switch {
	case p.at >= len(p.src):
	case p.peek() == '\n':
		p.at++
	case p.has("\r\n"):
		p.at += 2
	default:
		return p.wrong("the line should end here")
	}
	return nil
}

// blank passes over white space, line ends and comments, in a list.
func (p *tomlParser) blank() {
	for p.at < len(p.src) {
		switch p.peek() {
		case ' ', '\t', '\r', '\n':
			p.at++
		case '#':
			for p.at < len(p.src) && p.peek() != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *tomlParser) line() error {
	begin := p.at
	p.spaces()
	switch c := p.peek(); {
	case p.at >= len(p.src):
		return nil
	case c == '#' || c == '\n' || c == '\r':
		return p.rest()
	case c == '[':
		return p.header(begin)
	}
	t := len(p.doc.tables) - 1
	if err := p.entry(p.doc.tables[t].path, begin, -1, 0); err != nil {
		return err
	}
	p.doc.tables[t].end = p.lastOnLine()
	return p.rest()
}

// lastOnLine is where the line ends that the parser is on, its comment
// included, without the line end.
func (p *tomlParser) lastOnLine() int {
	end := p.at
	for end < len(p.src) && p.src[end] != '\n' {
		end++
	}
	if end > 0 && end <= len(p.src) && end > p.at && p.src[end-1] == '\r' {
		end--
	}
	return end
}

func (p *tomlParser) header(begin int) error {
	t := table{at: begin}
	closer := "]"
	p.at++
	if p.peek() == '[' {
		p.at++
		t.array, closer = true, "]]"
	}
	p.spaces()
	path, err := p.key()
	if err != nil {
		return err
	}
	p.spaces()
	if !p.has(closer) {
		return p.wrong("the table's name should end here")
	}
	p.at += len(closer)
	t.path, t.end = path, p.lastOnLine()
	for _, o := range p.doc.tables[1:] {
		if slices.Equal(o.path, path) && !(o.array && t.array) && !p.inArray(path) {
			return syntaxError(p.src, begin, "the table [%s] is there twice", strings.Join(path, "."))
		}
	}
	p.doc.tables = append(p.doc.tables, t)
	return p.rest()
}

// entry reads key = value. inline is the number of inline tables around it.
func (p *tomlParser) entry(under []string, begin, inline, depth int) error {
	at := p.at
	key, err := p.key()
	if err != nil {
		return err
	}
	p.spaces()
	if p.peek() != '=' {
		return p.wrong("a key needs =")
	}
	p.at++
	p.spaces()
	e := Entry{Path: slices.Concat(under, key), line: begin, table: len(p.doc.tables) - 1, inline: inline, opens: -1, dots: len(key)}
	if p.doc.Find(e.Path...) != nil && !p.inArray(p.doc.tables[len(p.doc.tables)-1].path) {
		return syntaxError(p.src, at, "the key %s is there twice", strings.Join(e.Path, "."))
	}
	i := len(p.doc.Entries)
	p.doc.Entries = append(p.doc.Entries, e)
	if err := p.value(&e, depth); err != nil {
		return err
	}
	p.doc.Entries[i] = e
	return nil
}

// inArray reports whether a table is, or is in, one of which there may be
// several.
func (p *tomlParser) inArray(here []string) bool {
	for _, t := range p.doc.tables {
		if t.array && len(t.path) <= len(here) && slices.Equal(t.path, here[:len(t.path)]) {
			return true
		}
	}
	return false
}

// key reads a dotted key.
func (p *tomlParser) key() ([]string, error) {
	var path []string
	for {
		p.spaces()
		part := ""
		switch c := p.peek(); {
		case c == '"' || c == '\'':
			if p.has(`"""`) || p.has(`'''`) {
				return nil, p.wrong("a key is on one line")
			}
			s, err := p.str()
			if err != nil {
				return nil, err
			}
			part = s
		default:
			start := p.at
			for c := p.peek(); c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'; c = p.peek() {
				p.at++
			}
			if p.at == start {
				return nil, p.wrong("a key should stand here")
			}
			part = string(p.src[start:p.at])
		}
		path = append(path, part)
		p.spaces()
		if p.peek() != '.' {
			return path, nil
		}
		p.at++
	}
}

func (p *tomlParser) value(e *Entry, depth int) error {
	if depth > maxDepth {
		return p.wrong("nested too deep")
	}
	e.Start = p.at
	var err error
	switch c := p.peek(); c {
	case '"', '\'':
		e.IsString = true
		e.Text, err = p.str()
	case '[':
		e.Array = true
		err = p.list(e, depth)
	case '{':
		e.opens = p.at
		err = p.inlineTable(e, depth)
	default:
		// A date may have a blank before its time.
		for strings.IndexByte("+-_.:ZTztaeEofibnxlrus0123456789ABCDEFcd", p.peek()) >= 0 && p.at < len(p.src) {
			p.at++
		}
		if p.at-e.Start == 10 && p.src[e.Start+4] == '-' && p.peek() == ' ' && p.at+1 < len(p.src) && p.src[p.at+1] >= '0' && p.src[p.at+1] <= '9' {
			p.at++
			for strings.IndexByte("+-.:Z0123456789", p.peek()) >= 0 && p.at < len(p.src) {
				p.at++
			}
		}
		e.Text = string(p.src[e.Start:p.at])
		if !plainValue(e.Text) {
			p.at = e.Start
			return p.wrong("a value should stand here")
		}
	}
	e.End = p.at
	return err
}

// plainValue is a loose check of true, false, numbers and dates.
func plainValue(s string) bool {
	switch strings.TrimLeft(s, "+-") {
	case "true", "false":
		return s == "true" || s == "false"
	case "inf", "nan":
		return true
	}
	s = strings.TrimLeft(s, "+-")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

func (p *tomlParser) list(e *Entry, depth int) error {
	p.at++
	for {
		p.blank()
		if p.peek() == ']' {
			p.at++
			return nil
		}
		// What stands in tables within a list has no path of its own.
		before := len(p.doc.Entries)
		v := Entry{Path: slices.Concat(e.Path, []string{"", strconv.Itoa(len(e.Elems))})}
		err := p.value(&v, depth+1)
		p.doc.Entries = p.doc.Entries[:before]
		if err != nil {
			return err
		}
		e.Elems = append(e.Elems, Elem{Text: v.Text, IsString: v.IsString, Start: v.Start, End: v.End})
		p.blank()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
		default:
			return p.wrong("a list goes on with a comma")
		}
	}
}

func (p *tomlParser) inlineTable(e *Entry, depth int) error {
	p.at++
	first := len(p.doc.Entries)
	for n := 0; ; n++ {
		p.spaces()
		if p.peek() == '}' && n == 0 {
			break
		}
		if err := p.entry(e.Path, e.line, 0, depth+1); err != nil {
			return err
		}
		p.spaces()
		if p.peek() == '}' {
			break
		}
		if p.peek() != ',' {
			return p.wrong("an inline table goes on with a comma, on one line")
		}
		p.at++
	}
	for i := first; i < len(p.doc.Entries); i++ {
		if len(p.doc.Entries[i].Path)-p.doc.Entries[i].dots == len(e.Path) {
			p.doc.Entries[i].inline = p.at
		}
	}
	p.at++
	return nil
}

// str reads a string of any of the four kinds.
func (p *tomlParser) str() (string, error) {
	start := p.at
	quote := p.src[p.at : p.at+1]
	if p.has(`"""`) || p.has(`'''`) {
		quote = p.src[p.at : p.at+3]
	}
	many := len(quote) == 3
	p.at += len(quote)
	var b strings.Builder
	if many && p.has("\r\n") {
		p.at += 2
	} else if many && p.peek() == '\n' {
		p.at++
	}
	for p.at < len(p.src) {
		c := p.src[p.at]
		switch {
		case p.has(string(quote)):
			p.at += len(quote)
			for n := 0; many && n < 2 && p.peek() == quote[0]; n++ { // """ may follow a quote
				b.WriteByte(quote[0])
				p.at++
			}
			return b.String(), nil
		case c == '\n' && !many, c < 0x20 && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return "", syntaxError(p.src, start, "a string that is not closed")
		case c == '\\' && quote[0] == '"':
			if err := p.escape(&b, many); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	return "", syntaxError(p.src, start, "a string that is not closed")
}

func (p *tomlParser) escape(b *strings.Builder, many bool) error {
	p.at++
	c := p.peek()
	if i := strings.IndexByte("btnfre\"\\", c); i >= 0 && c != 0 {
		b.WriteByte("\b\t\n\f\r\x1b\"\\"[i])
		p.at++
		return nil
	}
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]; n > 0 {
		p.at++
		r := rune(0)
		for ; n > 0; n-- {
			v := strings.IndexByte("0123456789abcdef", p.peek()|0x20)
			if p.peek() < '0' || v < 0 {
				return p.wrong("an escape that is none")
			}
			r = r<<4 | rune(v)
			p.at++
		}
		if !utf8.ValidRune(r) {
			return p.wrong("an escape that is no character")
		}
		b.WriteRune(r)
		return nil
	}
	if many {
		q := *p
		q.spaces()
		if q.peek() == '\n' || q.has("\r\n") {
			for p.peek() == ' ' || p.peek() == '\t' || p.peek() == '\n' || p.peek() == '\r' {
				p.at++
			}
			return nil
		}
	}
	return p.wrong("an escape that is none")
}
