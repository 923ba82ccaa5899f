package foreign

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/wire"
)

// jsonType is a type of another system's JSON: it says what a value has to be, and how its owner writes it.
type jsonType struct {
	check   func(raw json.RawMessage) (json.RawMessage, error) // of a simple value
	words   []string                                           // that a text may be
	fits    func() any                                         // a pointer to a Go value that JSON must fit
	is      string                                             // what fits must be
	element *jsonType                                          // of an array
	fields  func() members                                     // the members of every kind of object; nil: none
	tag     string                                             // the member that names the kind; "": no kinds

	makeKinds func() kinds // when they are first asked for: most commands need none; nil: none
	once      sync.Once
	made      kinds
}

// kinds are the members that each kind of object has beside those of all kinds.
type kinds map[string]members

// members are those of an object.
type members []field

// field is a member of an object, in the order in which the owner writes them.
type field struct {
	name   string
	typ    *jsonType
	absent string // the JSON that its owner writes if it is absent; "": nothing

	mayBeAbsent, mayBeNull bool
	omitsEmpty             bool // an empty list or object is left out
}

func required(name string, t *jsonType) field { return field{name: name, typ: t} }

// optional is a member that may be absent or null, and is then left out.
func optional(name string, t *jsonType) field {
	return field{name: name, typ: t, mayBeAbsent: true, mayBeNull: true}
}

// orAbsent is a member that may be absent or null, and is then written as this JSON.
func orAbsent(name string, t *jsonType, absent string) field {
	return field{name: name, typ: t, absent: absent, mayBeAbsent: true, mayBeNull: true}
}

// defaulted is a member that may be absent, and is then written as this JSON, but may not be null.
func defaulted(name string, t *jsonType, absent string) field {
	return field{name: name, typ: t, absent: absent, mayBeAbsent: true}
}

// unlessEmpty is a list or an object that is left out if it is empty, and may not be null.
func unlessEmpty(name string, t *jsonType) field {
	return field{name: name, typ: t, mayBeAbsent: true, omitsEmpty: true}
}

func object(f func() members) *jsonType { return &jsonType{fields: f} }

// inner is an object within another's fields.
func inner(f ...field) *jsonType { return object(func() members { return f }) }

func list(element *jsonType) *jsonType { return &jsonType{element: element} }

func tagged(tag string, k func() kinds) *jsonType { return &jsonType{tag: tag, makeKinds: k} }

// taggedAll is tagged with members that all kinds have.
func taggedAll(tag string, k func() kinds, ofAll func() members) *jsonType {
	return &jsonType{tag: tag, makeKinds: k, fields: ofAll}
}

func oneOf(words ...string) *jsonType { return &jsonType{words: words} }

// The simple types. A number is written as it came, a text with as little escaped as possible.
var (
	anything = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) { return raw, nil }}
	text     = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) {
		s, err := readText(raw)
		return wire.Quote(s), err
	}}
	boolean   = &jsonType{is: "true or false", fits: func() any { return new(bool) }}
	number    = &jsonType{is: "a number", fits: func() any { return new(float64) }}
	integer   = &jsonType{is: "a whole number", fits: func() any { return new(int64) }}
	uint32s   = &jsonType{is: "a whole number from 0 to 4294967295", fits: func() any { return new(uint32) }}
	uint64s   = &jsonType{is: "a whole number from 0 to 18446744073709551615", fits: func() any { return new(uint64) }}
	anyObject = &jsonType{is: "an object", fits: func() any { return new(map[string]json.RawMessage) }}
	anyArray  = &jsonType{is: "an array", fits: func() any { return new([]json.RawMessage) }}
	uuid      = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) { return rewrite(raw, new(wire.UUID)) }}
	timestamp = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) { return rewrite(raw, new(time.Time)) }}
)

// rewrite returns a string as the Go value has it that it is read into.
func rewrite(raw json.RawMessage, value any) (json.RawMessage, error) {
	if _, err := readText(raw); err != nil {
		return nil, err
	}
	if err := wire.Unmarshal(raw, value); err != nil {
		return nil, errors.New(err.(*wire.DecodeError).Msg)
	}
	return wire.Marshal(value)
}

func readText(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", errors.New("must be a string")
	}
	return wire.Unquote(raw), nil
}

// canonicalOf returns a value as its owner writes it: in one line, with the members in the owner's order and without
// unknown ones. The error is a *wire.DecodeError or wire.ErrNotObject.
func (t *jsonType) canonicalOf(data []byte) (json.RawMessage, error) {
	raw := json.RawMessage{}
	if err := wire.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	if t.isObject() && raw[0] != '{' {
		return nil, wire.ErrNotObject
	}
	out, err := t.canonical(raw)
	return out, wire.Locate(data, err)
}

// marshal writes a Go value exactly as the type's owner would, and refuses it where its owner would refuse it.
func (t *jsonType) marshal(v any) (json.RawMessage, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, err
	}
	return t.canonical(raw)
}

// unmarshal reads a value into v. It fails as canonicalOf does.
func (t *jsonType) unmarshal(data []byte, v any) error {
	raw, err := t.canonicalOf(data)
	if err != nil {
		return err
	}
	return wire.Unmarshal(raw, v)
}

// write is marshal for the MarshalJSON of a Go type, and so does not call it.
func (t *jsonType) write(v any) ([]byte, error) { return t.marshal(bare(v)) }

// read is unmarshal for the UnmarshalJSON of a Go type. After an error the value is as it was.
func (t *jsonType) read(data []byte, pointer any) error {
	to := reflect.ValueOf(pointer).Elem()
	value := reflect.New(bareType(to.Type()))
	err := t.unmarshal(data, value.Interface())
	if err == nil {
		to.Set(value.Elem().Convert(to.Type()))
	}
	return err
}

// bare returns a value without the methods of its type, so that its JSON is what the tags of its fields say.
func bare(v any) any {
	value := reflect.ValueOf(v)
	return value.Convert(bareType(value.Type())).Interface()
}

// bareTypes are the types without methods by those with them: making one costs as much as reading a value.
var bareTypes sync.Map

func bareType(t reflect.Type) reflect.Type {
	if made, ok := bareTypes.Load(t); ok {
		return made.(reflect.Type)
	}
	made := reflect.TypeFor[string]()
	if t.Kind() != reflect.String {
		made = reflect.StructOf(slices.Collect(t.Fields()))
	}
	bareTypes.Store(t, made)
	return made
}

// canonical checks a value that is JSON.
func (t *jsonType) canonical(raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case t.check != nil:
		return t.check(raw)
	case t.words != nil:
		s, err := readText(raw)
		if last := len(t.words) - 1; err == nil && !slices.Contains(t.words, s) {
			err = errors.New("must be " + strings.Join(t.words[:last], ", ") + " or " + t.words[last])
		}
		return wire.Quote(s), err
	case t.fits != nil && (raw[0] == 'n' || wire.Unmarshal(raw, t.fits()) != nil): // null fits any Go value
		return nil, errors.New("must be " + t.is)
	case t.fits != nil:
		return raw, nil
	case t.element != nil && raw[0] != '[':
		return nil, errors.New("must be an array")
	case t.element != nil:
		var list []json.RawMessage
		if err := wire.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = t.element.canonical(list[i]); err != nil {
				return nil, err
			}
		}
		return joinArray(list), nil
	case raw[0] != '{':
		return nil, errors.New("must be an object")
	}
	o, err := wire.ReadObject(raw)
	if err == nil {
		o, err = t.object(o)
	}
	return o.Encode(), err
}

func joinArray(list []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, raw := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// object is canonical for a parsed object. The error is a *wire.MemberError unless a member is missing.
func (t *jsonType) object(o wire.Object) (wire.Object, error) {
	fields := t.fieldsOf(o.Text(t.tag))
	if t.tag != "" {
		tag := required(t.tag, oneOf(slices.Sorted(maps.Keys(t.kinds()))...))
		fields = slices.Insert(fields, len(t.ofAll()), tag)
	}
	return selectFields(o, fields)
}

// fieldsOf returns the members of a kind.
func (t *jsonType) fieldsOf(kind string) []field {
	return slices.Concat(t.ofAll(), t.kinds()[kind])
}

func (t *jsonType) ofAll() members {
	if t.fields == nil {
		return nil
	}
	return t.fields()
}

func (t *jsonType) kinds() kinds {
	t.once.Do(func() {
		if t.makeKinds != nil {
			t.made = t.makeKinds()
		}
	})
	return t.made
}

func (t *jsonType) isObject() bool {
	return t.check == nil && t.words == nil && t.fits == nil && t.element == nil
}

func (t *jsonType) hasKind(kind string) bool { _, ok := t.kinds()[kind]; return ok }

// selectFields returns the members of o that are fields, as their owner writes them.
func selectFields(o wire.Object, fields []field) (out wire.Object, err error) {
	for _, f := range fields {
		raw := json.RawMessage(f.absent)
		i := slices.IndexFunc(o, func(m wire.Member) bool { return m.Name == f.name })
		isAbsent := i < 0 || f.mayBeNull && string(o[i].Value) == "null"
		if isAbsent && !f.mayBeAbsent {
			return nil, errors.New(f.name + " is missing")
		}
		if !isAbsent {
			if raw, err = f.typ.canonical(o[i].Value); err != nil {
				return nil, &wire.MemberError{Name: f.name, Msg: err.Error()}
			}
		}
		isEmpty := string(raw) == "[]" || string(raw) == "{}"
		if len(raw) > 0 && !(f.omitsEmpty && isEmpty) {
			out = append(out, wire.Member{Name: f.name, Value: raw})
		}
	}
	return out, nil
}
