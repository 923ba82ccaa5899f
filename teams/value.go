package teams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/agentteammail/atm/wire"
)

// wrong says that a value has another type than it should.
func (c *checker) wrong(e *entry, name, want string) {
	is := map[unstable.Kind]string{
		unstable.String: "a string", unstable.Bool: "a boolean", unstable.Integer: "a number", unstable.Float: "a number",
		unstable.Array: "a list", unstable.Table: "a table", unstable.ArrayTable: "a list of tables",
	}[e.kind]
	if is == "" {
		is = "a date or time"
	}
	c.say(e.line, "%s must be %s, and is %s", name, want, is)
}

func (c *checker) text(e *entry, to *string) bool {
	if e.kind != unstable.String {
		c.wrong(e, e.key, "a string")
		return false
	}
	if strings.ContainsRune(e.text, 0) {
		c.say(e.line, "%s holds a NUL", e.key)
		return false
	}
	*to = e.text
	return true
}

func (c *checker) flag(e *entry, to *bool) {
	if e.kind != unstable.Bool {
		c.wrong(e, e.key, "true or false")
		return
	}
	*to = e.yes
}

// word is a string that is one of a few.
func (c *checker) word(e *entry, to *string, known []string) {
	var s string
	if !c.text(e, &s) {
		return
	}
	if !slices.Contains(known, s) {
		c.mistakes = append(c.mistakes, Mistake{
			Line: e.line, Word: s, Known: known,
			Text: fmt.Sprintf("%s is %q, and can only be %s", e.key, s, strings.Join(known, ", ")),
		})
		return
	}
	*to = s
}

// words is a list of strings.
func (c *checker) words(e *entry, example string) (out []string, ok bool) {
	if e.kind != unstable.Array || slices.ContainsFunc(e.elems, func(e *entry) bool { return e.kind != unstable.String }) {
		c.wrongList(e, example)
		return nil, false
	}
	out = []string{}
	for _, el := range e.elems {
		var s string
		if !c.text(el, &s) {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func (c *checker) wrongList(e *entry, example string) {
	if e.kind == unstable.Array {
		for _, el := range e.elems {
			if el.kind != unstable.String {
				c.wrong(el, "each of "+e.key, "a string")
			}
		}
		return
	}
	c.wrong(e, e.key, "a list such as "+example)
}

// name is the name of a member.
func (c *checker) name(e *entry, to *wire.Name) bool {
	var s string
	if !c.text(e, &s) {
		return false
	}
	n, err := wire.ParseName(s)
	if err != nil {
		c.noName(e.line, e.key, s, err)
		return false
	}
	c.spoken = append(c.spoken, spoken{n, e.line, e.key})
	*to = n
	return true
}

// noName says that a word is no name of a member. The same in small letters is
// likely to be meant.
func (c *checker) noName(line int, what, word string, err error) {
	m := Mistake{Line: line, Text: fmt.Sprintf("%s: %v", what, err)}
	if lower := strings.ToLower(word); lower != word && wire.IsName(lower) {
		m.Word, m.Known = word, []string{lower}
	}
	c.mistakes = append(c.mistakes, m)
}

func (c *checker) names(e *entry, to *[]wire.Name) {
	if _, ok := c.words(e, `["alice"]`); !ok {
		return
	}
	out := []wire.Name{}
	for _, el := range e.elems {
		var n wire.Name
		if c.name(el, &n) {
			out = append(out, n)
		}
	}
	*to = out
}

// placeholders are the names in braces in a line. What a shell fills in, as in
// ${HOME}, is none.
func placeholders(line string) (names []string) {
	for {
		before, rest, ok := strings.Cut(line, "{")
		if !ok {
			return names
		}
		line = rest
		name, _, ok := strings.Cut(rest, "}")
		if ok && isPlaceholder(name) && !strings.HasSuffix(before, "$") {
			names = append(names, name)
		}
	}
}

func isPlaceholder(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
