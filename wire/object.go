package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object: its members in order, with repeated ones, and with their values as they were written.
type Object []Member

// Member is one member of an object.
type Member struct {
	Name  string
	Value json.RawMessage

	at int // bytes from the beginning of the text to the value
}

// ReadObject takes an object apart. The error is a *DecodeError, or ErrNotObject for JSON that is something else.
func ReadObject(data []byte) (Object, error) {
	o := members(bytes.Clone(data))
	if o == nil || !utf8.Valid(data) {
		return nil, cmp.Or(syntax(data), ErrNotObject)
	}
	return o, nil
}

// members takes apart an object, nil if it is none. The values are parts of data.
func members(data []byte) Object { return split(data, '{') }

// split takes apart an object or array, whose elements have no names; nil if data is anything else.
func split(data []byte, kind jsontext.Kind) (o Object) {
	if len(data) == 0 {
		return nil // most events lack some part, and to make a decoder costs more than all else
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), lenient)
	if dec.PeekKind() != kind {
		return nil
	}
	dec.ReadToken()
	o = Object{}
	for next := dec.PeekKind(); next != '}' && next != ']'; next = dec.PeekKind() {
		m := Member{}
		if kind == '{' {
			name, _ := dec.ReadToken() // after an error there is no value either
			m.Name = name.String()
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		end := int(dec.InputOffset())
		m.at = end - len(value)
		m.Value = data[m.at:end:end]
		o = append(o, m)
	}
	dec.ReadToken()
	if _, err := dec.ReadToken(); err != io.EOF {
		return nil // something follows it
	}
	return o
}

// Get is the value of a member: the last one if it is repeated, nil if it is absent or null.
func (o Object) Get(name string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.Name == name && string(m.Value) != "null" {
			return m.Value
		}
	}
	return nil
}

// Text is the value of a member that is a string, else "".
func (o Object) Text(name string) string { return unquote(o.Get(name)) }

// Object is the value of a member that is an object, else nil.
func (o Object) Object(name string) Object { return members(o.Get(name)) }

// Has reports whether there is a member of one of these names, be it null.
func (o Object) Has(names ...string) bool {
	return slices.ContainsFunc(o, func(m Member) bool { return slices.Contains(names, m.Name) })
}

func (o Object) without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// With is a copy of the object with a member set, in its old place or at the end.
func (o Object) With(name string, value json.RawMessage) Object {
	out := slices.Clone(o)
	for i := range out {
		if out[i].Name == name {
			out[i].Value = value
			return out
		}
	}
	return append(out, Member{Name: name, Value: value})
}

// MarshalJSON writes the object in one line. The error is a value that is not JSON.
func (o Object) MarshalJSON() ([]byte, error) {
	if raw := o.encode(); raw != nil {
		return raw, nil
	}
	return nil, errors.New("a member's value is not JSON")
}

// encode is MarshalJSON for values that are known to be JSON.
func (o Object) encode() json.RawMessage {
	out := []byte("{")
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, Quote(m.Name)...), ':'), m.Value...)
	}
	return compact(append(out, '}'))
}
