package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object: its members in order, with their values as written.
type Object []Member

// Member is one member of an object.
type Member struct {
	Name  string
	Value json.RawMessage

	offset int // of the value, in bytes from the beginning of the text
}

// ReadObject parses an object. The error is a *DecodeError, or ErrNotObject for other JSON.
func ReadObject(data []byte) (Object, error) {
	o := parseObject(bytes.Clone(data))
	if o != nil && utf8.Valid(data) {
		return o, nil
	}
	var value jsontext.Value
	if err := Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return nil, ErrNotObject
}

// parseObject parses an object; it returns nil for anything else. The values are slices of data.
func parseObject(data []byte) (o Object) {
	if len(data) == 0 {
		return nil // most events lack some part, and making a decoder costs more than all the rest
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), lenient)
	if dec.PeekKind() != '{' {
		return nil
	}
	dec.ReadToken()
	o = Object{}
	for dec.PeekKind() != '}' {
		name, _ := dec.ReadToken() // after an error ReadValue fails too
		m := Member{Name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		end := int(dec.InputOffset())
		m.offset = end - len(value)
		m.Value = data[m.offset:end:end]
		o = append(o, m)
	}
	dec.ReadToken()
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil // more text follows
	}
	return o
}

// index returns the index of a member, -1 if it is absent.
func (o Object) index(name string) int {
	return slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
}

// Get returns the value of a member, nil if it is absent or null.
func (o Object) Get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 && string(o[i].Value) != "null" {
		return o[i].Value
	}
	return nil
}

// Text returns a member that is a string, else "".
func (o Object) Text(name string) string { return Unquote(o.Get(name)) }

// Object returns a member that is an object, else nil.
func (o Object) Object(name string) Object { return parseObject(o.Get(name)) }

// Has reports whether any of the members is there, even as null.
func (o Object) Has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return o.index(name) >= 0 })
}

// Without returns a copy of the object that lacks the members.
func (o Object) Without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// With returns a copy of the object with a member set, in its old place or at the end.
func (o Object) With(name string, value json.RawMessage) Object {
	out := slices.Clone(o)
	if i := out.index(name); i >= 0 {
		out[i].Value = value
		return out
	}
	return append(out, Member{Name: name, Value: value})
}

// Encode returns the object in one line, nil if a value is not JSON.
func (o Object) Encode() []byte {
	out := []byte("{")
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, Quote(m.Name)...), ':'), m.Value...)
	}
	return Compact(append(out, '}'))
}
