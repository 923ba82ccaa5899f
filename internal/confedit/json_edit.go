package confedit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Map is an object to write, its keys in this order.
type Map []Pair

// Pair is a key of a Map with its value: a string, an int, a bool, a Map, a
// List, or one of these Flat.
type Pair struct {
	Key   string
	Value any
}

// List is a list to write.
type List []any

// Flat is a value that stands on one line wherever it is put.
type Flat struct{ Value any }

// Set gives an object's member a value: the last one of that name, or a new
// one at the end.
func (d *JSON) Set(obj *Value, key string, value any) Edit {
	if i := obj.index(key); i >= 0 {
		return d.Replace(obj.Members[i].Value, value)
	}
	return d.insert(obj, func(indent string, spread bool) string {
		return d.render(Map{{key, value}}, indent, spread, true)
	})
}

// Append puts a value at the end of a list.
func (d *JSON) Append(list *Value, value any) Edit {
	return d.insert(list, func(indent string, spread bool) string {
		return d.render(value, indent, spread, false)
	})
}

// Replace puts another value where one stands.
func (d *JSON) Replace(old *Value, value any) Edit {
	spread := d.spread
	if first, ok := firstChild(old); ok {
		spread = d.onOwnLine(old, first)
	}
	return Edit{{At: old.Start, Del: old.End - old.Start, Ins: d.render(value, lineIndent(d.src, old.Start), spread, false)}}
}

// Remove takes a member, by its index, out of an object, or an element out of
// a list, with the comma that is then one too many. Comments stay.
func (d *JSON) Remove(from *Value, i int) Edit {
	n := len(from.Elems) + len(from.Members)
	start, end := d.child(from, i)
	before := gap{end: from.Start + 1, comma: -1}
	if i > 0 {
		_, prev := d.child(from, i-1)
		before.end = prev
	}
	d.survey(&before, start)
	after := gap{end: end, comma: -1}
	next := from.End - 1
	if i < n-1 {
		next, _ = d.child(from, i+1)
	}
	d.survey(&after, next)

	if n == 1 && !before.comment && !after.comment {
		return Edit{{At: from.Start + 1, Del: from.End - from.Start - 2}}
	}
	lead := before.end
	if before.line && d.sharesLine(end, after.comma) {
		lead = start // else what follows would become part of the comment
	}
	if after.comma < 0 {
		e := Edit{{At: lead, Del: end - lead}}
		if before.comma >= 0 {
			e = append(Edit{{At: before.comma, Del: 1}}, e...)
		}
		return e
	}
	tail := 1
	if lead == start { // what stood first on its line: the next one takes its place
		for c := after.comma + tail; d.src[c] == ' ' || d.src[c] == '\t'; c++ {
			tail++
		}
	}
	return Edit{{At: lead, Del: end - lead}, {At: after.comma, Del: tail}}
}

// child is where the i-th element or member begins and ends.
func (d *JSON) child(v *Value, i int) (start, end int) {
	if v.Kind == Object {
		return v.Members[i].At, v.Members[i].Value.End
	}
	return v.Elems[i].Start, v.Elems[i].End
}

// gap is what stands between two values, or a value and a bracket.
type gap struct {
	end     int  // of the last thing that is no white space
	comma   int  // where it is; -1
	line    bool // the last thing is a comment up to the end of its line
	comment bool // there is one
}

// survey looks at what stands from g.end up to to.
func (d *JSON) survey(g *gap, to int) {
	for at := g.end; at < to; {
		switch d.src[at] {
		case ',':
			if g.comma < 0 {
				g.comma = at
			}
			at++
			g.end, g.line = at, false
		case '/':
			end, line, _ := comment(d.src, at)
			at = end
			g.end, g.line, g.comment = end, line, true
		default:
			at++
		}
	}
}

// sharesLine reports whether something stays on the line on which a removed
// value ends, so that it must not be joined with a comment before the value.
func (d *JSON) sharesLine(end, comma int) bool {
	if comma == end {
		end++
	}
	rest, _, _ := strings.Cut(string(d.src[end:]), "\n")
	return strings.TrimSpace(rest) != ""
}

// insert puts a child at the end of a container. text renders it for lines
// that begin with indent, over several lines if spread.
func (d *JSON) insert(in *Value, text func(indent string, spread bool) string) Edit {
	closer := in.End - 1
	base := lineIndent(d.src, in.Start)
	first, some := firstChild(in)
	spread := d.spread
	indent := base + d.unit
	if some {
		if spread = d.onOwnLine(in, first); spread {
			indent = lineIndent(d.src, first)
		}
	}
	g := gap{end: in.Start + 1, comma: -1}
	last := g.end
	if some {
		_, last = d.child(in, len(in.Elems)+len(in.Members)-1)
		g.end = last
	}
	d.survey(&g, closer)

	lead := ""
	switch {
	case spread || g.line:
		lead = d.nl + indent
	case (some || g.comment) && d.airy:
		lead = " "
	}
	new := lead + text(indent, spread)
	if !some {
		if !g.comment {
			if spread {
				new += d.nl + base
			}
			return Edit{{At: in.Start + 1, Del: closer - in.Start - 1, Ins: new}}
		}
		if rest := string(d.src[g.end:closer]); spread && !strings.Contains(rest, "\n") {
			new += d.nl + base
		}
		return Edit{{At: g.end, Ins: new}}
	}
	if g.comma >= 0 {
		return Edit{{At: g.end, Ins: new + ","}}
	}
	if g.end == last {
		return Edit{{At: last, Ins: "," + new}}
	}
	return Edit{{At: last, Ins: ","}, {At: g.end, Ins: new}}
}

// render writes a value; bare leaves out the brackets of a Map.
func (d *JSON) render(value any, indent string, spread, bare bool) string {
	var parts []string
	open, closer := "[", "]"
	inner := indent + d.unit
	if bare {
		inner = indent
	}
	colon, comma := ": ", ", "
	if !spread && !d.airy {
		colon, comma = ":", ","
	}
	switch v := value.(type) {
	case Flat:
		flat := *d
		flat.airy = d.airy || spread
		return flat.render(v.Value, indent, false, bare)
	case string:
		return quote(v)
	case int:
		return strconv.Itoa(v)
	case bool:
		return strconv.FormatBool(v)
	case List:
		for _, e := range v {
			parts = append(parts, d.render(e, inner, spread, false))
		}
	case Map:
		open, closer = "{", "}"
		for _, m := range v {
			parts = append(parts, quote(m.Key)+colon+d.render(m.Value, inner, spread, false))
		}
	default:
		panic(fmt.Sprintf("confedit: cannot write a %T", value))
	}
	switch {
	case bare:
		return strings.Join(parts, comma)
	case len(parts) == 0 || !spread:
		return open + strings.Join(parts, comma) + closer
	}
	return open + d.nl + inner + strings.Join(parts, ","+d.nl+inner) + d.nl + indent + closer
}

// quote is a JSON string, with <, > and & as they are.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string never fails
	}
	return strings.TrimSuffix(b.String(), "\n")
}
