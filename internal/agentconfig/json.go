package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Places in a document are JSON pointers (RFC 6901) in all of this package; "/-" behind one is the end
// of a list.

// parseJSON reads a document whose root is an object in which no key stands twice. A blank one counts
// as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if err == nil && root.Value.Kind() != '{' {
		err = errors.New("it is not an object")
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	for v := range root.All() {
		object, _ := v.Value.(*hujson.Object)
		for i := 0; object != nil && i < len(object.Members); i++ {
			name := &object.Members[i].Name
			if slices.ContainsFunc(object.Members[:i], func(m hujson.ObjectMember) bool { return str(&m.Name) == str(name) }) {
				before := data[:name.StartOffset]
				line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
				return nil, fmt.Errorf("line %d, column %d: a second %q in the same object", line, column, str(name))
			}
		}
	}
	return &root, nil
}

// around is the place of the object or list that a place lies in, and the name there.
func around(place string) (outer, name string) {
	i := strings.LastIndex(place, "/")
	return place[:i], place[i+1:]
}

// str is a string's value, "" for everything else.
func str(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	return v.Value.(hujson.Literal).String()
}

// elements are those of a list; nil and what is no list have none.
func elements(v *hujson.Value) []hujson.Value {
	if v != nil && v.Value.Kind() == '[' {
		return v.Value.(*hujson.Array).Elements
	}
	return nil
}

// indexOf is where a list has a string, -1 where it has not.
func indexOf(list *hujson.Value, s string) int {
	return slices.IndexFunc(elements(list), func(one hujson.Value) bool { return str(&one) == s })
}

// minimal is a value without white space and comments.
func minimal(v hujson.Value) string {
	v = v.Clone()
	v.Minimize()
	return v.String()
}

// isEmpty reports whether an object or list holds nothing, no comment either.
func isEmpty(v *hujson.Value) bool {
	text := strings.Join(strings.Fields(hujson.Value{Value: v.Value}.String()), "")
	return text == "{}" || text == "[]"
}

// put makes a place in a document have a value, and makes what is missing around it. What is new gets a
// line of its own.
func put(root *hujson.Value, place, value string) error {
	outer, name := around(place)
	kind, what, empty := hujson.Kind('{'), "an object", "{}"
	if name == "-" {
		kind, what, empty = '[', "a list", "[]"
	}
	if root.Find(outer) == nil {
		if err := put(root, outer, empty); err != nil {
			return err
		}
	}
	in := root.Find(outer)
	if in.Value.Kind() != kind {
		return fmt.Errorf("%s is not %s; the file was left alone", strings.ReplaceAll(outer[1:], "/", "."), what)
	}
	isNew := in.Find("/"+name) == nil
	err := root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, quoted(place), value))
	if err != nil || !isNew {
		return err
	}
	var before, end *hujson.Extra
	n := 0
	switch c := in.Value.(type) {
	case *hujson.Object:
		n = len(c.Members)
		c.Members[n-1].Value.BeforeExtra = hujson.Extra(" ")
		before, end = &c.Members[n-1].Name.BeforeExtra, &c.AfterExtra
	case *hujson.Array:
		n = len(c.Elements)
		before, end = &c.Elements[n-1].BeforeExtra, &c.AfterExtra
	}
	indent := "\n" + strings.Repeat("  ", strings.Count(outer, "/"))
	*before = slices.Concat(bytes.TrimRight(*before, " \t\r\n"), hujson.Extra(indent+"  "))
	if n == 1 && len(bytes.TrimSpace(*end)) == 0 {
		*end = hujson.Extra(indent)
	}
	return nil
}

// remove takes out what is at a place. It must be there.
func remove(root *hujson.Value, place string) {
	isStandard := root.IsStandard()
	root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, quoted(place)))
	if isStandard {
		root.Standardize() // Patch may leave a comma
	}
	outer, _ := around(place)
	if in := root.Find(outer); isEmpty(in) {
		in.Value = map[hujson.Kind]hujson.ValueTrimmed{'{': &hujson.Object{}, '[': &hujson.Array{}}[in.Value.Kind()]
	}
}
