package agentconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// parseJSON reads a document whose root is an object. A blank one counts as {}.
func parseJSON(data []byte) (*hujson.Value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("it is not an object")
	}
	return &root, nil
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

// find follows keys from an object inwards, nil where nothing is.
func find(v *hujson.Value, keys ...string) *hujson.Value {
	for _, key := range keys {
		i := memberAt(v, key)
		if i < 0 {
			return nil
		}
		v = &members(v)[i].Value
	}
	return v
}

// memberAt is where an object has a key, -1 where it has not. As in every reader
// that these files have, the last of two equal keys counts.
func memberAt(v *hujson.Value, key string) int {
	all := members(v)
	i := len(all) - 1
	for i >= 0 && str(&all[i].Name) != key {
		i--
	}
	return i
}

// members are those of an object; nil and what is no object have none.
func members(v *hujson.Value) []hujson.ObjectMember {
	if v == nil {
		return nil
	}
	if object, ok := v.Value.(*hujson.Object); ok {
		return object.Members
	}
	return nil
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

// indexOf is where a list has a string, -1 where it has not.
func indexOf(list *hujson.Value, s string) int {
	return slices.IndexFunc(elements(list), func(one hujson.Value) bool { return str(&one) == s })
}

// isEmpty reports whether an object or list holds nothing, no comment either.
func isEmpty(v *hujson.Value) bool {
	before, _, end := extras(v)
	_, plain := v.Value.(hujson.Literal)
	return !plain && len(before) == 0 && !hasComment(*end)
}

// container gives the object ('{') or list ('[') at keys, and makes it and those
// around it where they are missing.
func container(root *hujson.Value, kind hujson.Kind, keys ...string) (*hujson.Value, error) {
	v := root
	for i, key := range keys {
		want := hujson.Kind('{')
		if i == len(keys)-1 {
			want = kind
		}
		if find(v, key) == nil {
			empty := hujson.ValueTrimmed(&hujson.Object{})
			if want == '[' {
				empty = &hujson.Array{}
			}
			appendMember(v, key, empty, i)
		}
		if v = find(v, key); v.Value.Kind() != want {
			name := map[hujson.Kind]string{'{': "an object", '[': "a list"}[want]
			return nil, fmt.Errorf("%s is not %s; the file was left alone", strings.Join(keys[:i+1], "."), name)
		}
	}
	return v, nil
}

// appendMember puts a member at the end of an object that lies so deep.
func appendMember(v *hujson.Value, key string, value hujson.ValueTrimmed, depth int) {
	object := v.Value.(*hujson.Object)
	object.Members = append(object.Members, hujson.ObjectMember{
		Name: hujson.Value{Value: hujson.String(key)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value},
	})
	layOutLast(v, depth)
}

// appendElement puts a value at the end of a list that lies so deep.
func appendElement(v *hujson.Value, value hujson.ValueTrimmed, depth int) {
	list := v.Value.(*hujson.Array)
	list.Elements = append(list.Elements, hujson.Value{Value: value})
	layOutLast(v, depth)
}

// layOutLast gives a child that was just appended a line of its own. A comma too
// many stays.
func layOutLast(v *hujson.Value, depth int) {
	before, after, end := extras(v)
	n := len(before) - 1
	indent := "\n" + strings.Repeat("  ", depth)
	*before[n] = hujson.Extra(indent + "  ")
	if n > 0 && *after[n-1] != nil {
		*after[n] = hujson.Extra{}
	}
	if n == 0 && !hasComment(*end) {
		*end = hujson.Extra(indent)
	}
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
	if hasComment(*before[i]) {
		*next = slices.Concat(*before[i], *next)
	}
	if last && i > 0 && *after[i] == nil {
		*end = slices.Concat(*after[i-1], *end)
		*after[i-1] = nil
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

// removeMember takes a member that is there out of the object at keys.
func removeMember(root *hujson.Value, keys ...string) {
	last := len(keys) - 1
	v := find(root, keys[:last]...)
	removeChild(v, memberAt(v, keys[last]))
}
