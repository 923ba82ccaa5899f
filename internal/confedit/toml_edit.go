package confedit

import (
	"fmt"
	"slices"
	"strings"
)

// AddElem puts a string at the end of the list at path, which is made where
// there is none. A path has two parts or more, here and below.
func (d *TOML) AddElem(value string, path ...string) (Edit, error) {
	e := d.Find(path...)
	if e == nil {
		return d.add(path, "["+tomlString(value)+"]")
	}
	if !e.Array {
		return nil, fmt.Errorf("%s is no list", strings.Join(path, "."))
	}
	closer := e.End - 1
	if len(e.Elems) == 0 {
		return Edit{{At: closer, Ins: tomlString(value)}}, nil
	}
	last := e.Elems[len(e.Elems)-1]
	comma, end, line := d.between(last.End, closer)
	lead := " "
	if first := e.Elems[0]; strings.Contains(string(d.src[e.Start:first.Start]), "\n") || line {
		lead = d.nl + lineIndent(d.src, last.Start)
	}
	switch {
	case comma >= 0:
		return Edit{{At: end, Ins: lead + tomlString(value) + ","}}, nil
	case end == last.End:
		return Edit{{At: end, Ins: "," + lead + tomlString(value)}}, nil
	}
	return Edit{{At: last.End, Ins: ","}, {At: end, Ins: lead + tomlString(value)}}, nil
}

// SetString gives the key at path a string.
func (d *TOML) SetString(value string, path ...string) (Edit, error) {
	if e := d.Find(path...); e != nil {
		return Edit{{At: e.Start, Del: e.End - e.Start, Ins: tomlString(value)}}, nil
	}
	return d.add(path, tomlString(value))
}

// between looks at what stands in a list after a value: the first comma, and
// where the last thing ends that is no white space; line: it is a comment.
func (d *TOML) between(from, to int) (comma, end int, line bool) {
	comma, end = -1, from
	for at := from; at < to; at++ {
		switch d.src[at] {
		case ',':
			if comma < 0 {
				comma = at
			}
			end, line = at+1, false
		case '#':
			for at < to && d.src[at] != '\n' {
				at++
			}
			end, line = at, true
			if d.src[end-1] == '\r' {
				end--
			}
		}
	}
	return comma, end, line
}

// add gives a key that is not there yet a value, at the end of the table that
// it belongs to; where there is none, one is made at the end of the document.
func (d *TOML) add(path []string, value string) (Edit, error) {
	parent := path[:len(path)-1]
	for n := len(parent); n > 0; n-- {
		if e := d.Find(parent[:n]...); e != nil {
			if e.opens < 0 {
				return nil, fmt.Errorf("%s is no table", strings.Join(parent[:n], "."))
			}
			return d.addInline(e, path[n:], value), nil
		}
	}
	for _, t := range d.tables {
		if t.array && len(t.path) <= len(parent) && slices.Equal(t.path, parent[:len(t.path)]) {
			return nil, fmt.Errorf("%s is a list of tables", strings.Join(t.path, "."))
		}
	}
	for i, t := range d.tables[1:] {
		if slices.Equal(t.path, parent) {
			return d.addLine(i+1, -1, path[len(parent):], value), nil
		}
	}
	// A table that dotted keys make must be gone on with in the same way.
	for i := len(d.Entries) - 1; i >= 0; i-- {
		e := d.Entries[i]
		header := d.tables[e.table].path
		if e.inline < 0 && len(e.Path) > len(parent) && slices.Equal(e.Path[:len(parent)], parent) && len(header) < len(parent) {
			return d.addLine(e.table, i, path[len(header):], value), nil
		}
	}
	text := ""
	if len(d.src) > 0 && !Blank(d.src) {
		if !strings.HasSuffix(string(d.src), "\n") {
			text = d.nl
		}
		text += d.nl
	}
	text += "[" + tomlKey(parent) + "]" + d.nl + tomlKey(path[len(parent):]) + " = " + value + d.nl
	return Edit{{At: len(d.src), Ins: text}}, nil
}

// addInline puts a key into an inline table.
func (d *TOML) addInline(e *Entry, key []string, value string) Edit {
	closer := e.End - 1
	end := closer
	for end > e.opens+1 && (d.src[end-1] == ' ' || d.src[end-1] == '\t') {
		end--
	}
	text := tomlKey(key) + " = " + value
	if end == e.opens+1 {
		return Edit{{At: end, Del: closer - end, Ins: " " + text + " "}}
	}
	return Edit{{At: end, Ins: ", " + text}}
}

// addLine puts a key on a line of its own after an entry, or after the last
// line of a table.
func (d *TOML) addLine(table, after int, key []string, value string) Edit {
	t := d.tables[table]
	at, indent := t.end, ""
	for i, e := range d.Entries {
		if e.table == table && e.inline < 0 && (after < 0 || i == after) {
			indent = lineIndent(d.src, e.Start)
			if i == after {
				at = d.lineEnd(e.End)
			}
		}
	}
	return Edit{{At: at, Ins: d.nl + indent + tomlKey(key) + " = " + value}}
}

// lineEnd is where the line of an offset ends, before its line end.
func (d *TOML) lineEnd(at int) int {
	for at < len(d.src) && d.src[at] != '\n' {
		at++
	}
	if at > 0 && at < len(d.src) && d.src[at-1] == '\r' {
		at--
	}
	return at
}

// RemoveElem takes an element out of a list.
func (d *TOML) RemoveElem(e *Entry, i int) Edit {
	el := e.Elems[i]
	closer := e.End - 1
	lead := e.Start + 1
	prevComma, line := -1, false
	if i > 0 {
		prevComma, lead, line = d.between(e.Elems[i-1].End, el.Start)
	} else {
		_, lead, line = d.between(lead, el.Start)
	}
	next := closer
	if i < len(e.Elems)-1 {
		next = e.Elems[i+1].Start
	}
	comma, _, _ := d.between(el.End, next)
	if len(e.Elems) == 1 && strings.TrimSpace(strings.Replace(string(d.src[e.Start+1:el.Start])+string(d.src[el.End:closer]), ",", "", 1)) == "" {
		return Edit{{At: e.Start + 1, Del: closer - e.Start - 1}}
	}
	after := el.End
	if comma >= 0 {
		after = comma + 1
	}
	if rest, _, _ := strings.Cut(string(d.src[after:]), "\n"); line && strings.TrimSpace(rest) != "" {
		lead = el.Start
	}
	if comma < 0 {
		out := Edit{{At: lead, Del: el.End - lead}}
		if prevComma >= 0 {
			out = append(Edit{{At: prevComma, Del: 1}}, out...)
		}
		return out
	}
	tail := 1
	if lead == el.Start {
		for d.src[comma+tail] == ' ' || d.src[comma+tail] == '\t' {
			tail++
		}
	}
	return Edit{{At: lead, Del: el.End - lead}, {At: comma, Del: tail}}
}

// RemoveKey takes an entry out, with its line where it has one of its own.
func (d *TOML) RemoveKey(e *Entry) Edit {
	if e.inline >= 0 {
		return d.removeInline(e)
	}
	end := d.lineEnd(e.End)
	if rest := strings.TrimSpace(string(d.src[e.End:end])); rest != "" {
		// A comment behind it stays, on the line.
		begin, stop := e.line+len(lineIndent(d.src, e.Start)), e.End
		for d.src[stop] == ' ' || d.src[stop] == '\t' {
			stop++
		}
		return Edit{{At: begin, Del: stop - begin}}
	}
	if e.line > 0 { // with the end of the line before: the inverse of addLine
		begin := e.line - 1
		if begin > 0 && d.src[begin-1] == '\r' {
			begin--
		}
		return Edit{{At: begin, Del: end - begin}}
	}
	for n := 0; n < len(d.nl) && end < len(d.src); n++ {
		end++
	}
	begin := e.line
	if strings.HasPrefix(string(d.src), bom) && begin == 0 {
		begin = len(bom)
	}
	return Edit{{At: begin, Del: end - begin}}
}

// removeInline takes a key that needs no quotes out of an inline table.
func (d *TOML) removeInline(e *Entry) Edit {
	begin := e.Start
	for begin > 0 && d.src[begin-1] != ',' && d.src[begin-1] != '{' {
		begin--
	}
	if d.src[begin-1] == ',' {
		return Edit{{At: begin - 1, Del: e.End - begin + 1}}
	}
	end := e.End
	for end < e.inline && d.src[end] != ',' {
		end++
	}
	if d.src[end] == ',' {
		end++
		return Edit{{At: begin, Del: end - begin}}
	}
	return Edit{{At: begin, Del: e.inline - begin}}
}

// RemoveTable takes the header of a table out that has no keys, and the blank
// line before it. It is nil where there is none, or it has keys or comments.
func (d *TOML) RemoveTable(path ...string) Edit {
	for i, t := range d.tables {
		if i == 0 || t.array || !slices.Equal(t.path, path) {
			continue
		}
		for _, e := range d.Entries {
			if e.table == i {
				return nil
			}
		}
		end := len(d.src)
		if i+1 < len(d.tables) {
			end = d.tables[i+1].at
		}
		if d.lineEnd(t.at) != t.end || strings.Contains(string(d.src[t.at:end]), "#") {
			return nil
		}
		begin := t.at
		stop := t.end
		for n := 0; n < len(d.nl) && stop < len(d.src); n++ {
			stop++
		}
		if before := string(d.src[:begin]); strings.HasSuffix(before, d.nl+d.nl) {
			begin -= len(d.nl)
		}
		return Edit{{At: begin, Del: stop - begin}}
	}
	return nil
}

// tomlString is a basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// tomlKey is a dotted key.
func tomlKey(path []string) string {
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = p
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			parts[i] = tomlString(p)
		}
	}
	return strings.Join(parts, ".")
}
