package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A schema says what a value of another vocabulary has to be, and how its owner
// writes it.
type schema struct {
	words   string                                // for errors: "must be a string"
	kind    jsontext.Kind                         // 0: any value
	fits    func(json.RawMessage) bool            // nil: every value of this kind
	rewrite func(json.RawMessage) (string, error) // for a string: as its owner writes it
	each    *schema                               // for the elements of an array
	fields  []field                               // for the members of an object, in the order of its owner
	group   *group                                // and those of its kind
	missing string                                // the JSON that stands for an absent member; "" leaves it out
}

// A field is one member of an object.
type field struct {
	name string
	use  use
	is   schema
}

// use says when a field may be absent.
type use int

const (
	required use = iota // the owner always writes it
	optional            // it may be absent or null
	listed              // it may be absent, and not null; an empty list is left out
	extra               // the owner does not know it, and atm understands it
)

var (
	anything = schema{}
	str      = schema{words: "a string", kind: '"'}
	text     = schema{words: "a string", kind: '"', rewrite: func(raw json.RawMessage) (string, error) {
		s, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", errors.New("has half of a surrogate pair")
		}
		return string(s), nil
	}}
	array    = schema{words: "an array", kind: '['}
	mapping  = schema{words: "an object", kind: '{'}
	boolean  = schema{words: "true or false", fits: func(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == "false" }}
	uuidText = schema{words: "a UUID", rewrite: func(raw json.RawMessage) (string, error) {
		u, err := ParseUUID(unquote(raw))
		return string(u), err
	}}
	moment = schema{words: "a time", rewrite: func(raw json.RawMessage) (string, error) {
		t, err := parseTime(unquote(raw))
		return chronoTime(t), err
	}}
	number = schema{words: "a number", kind: '0'}
	whole  = schema{words: "a whole number", fits: func(raw json.RawMessage) bool {
		_, err := strconv.ParseInt(string(raw), 10, 64)
		return err == nil
	}}
	count   = unsigned(64, "18446744073709551615")
	count32 = unsigned(32, "4294967295")
)

func unsigned(bits int, most string) schema {
	return schema{words: "a whole number from 0 to " + most, fits: func(raw json.RawMessage) bool {
		_, err := strconv.ParseUint(string(raw), 10, bits)
		return err == nil
	}}
}

func oneOf(words ...string) schema {
	last := len(words) - 1
	return schema{words: strings.Join(words[:last], ", ") + " or " + words[last], fits: func(raw json.RawMessage) bool {
		return slices.Contains(words, unquote(raw))
	}}
}

func object(fields ...field) schema { return schema{words: "an object", kind: '{', fields: fields} }
func kindsOf(g *group) schema       { return schema{words: "an object", kind: '{', group: g} }
func listOf(s schema) schema        { return schema{words: "an array", kind: '[', each: &s} }

// or is the schema with what its owner writes for an absent member.
func (s schema) or(missing string) schema {
	s.missing = missing
	return s
}

// canonical checks a value that begins at an offset of the text, and returns it
// as its owner writes it.
func (s schema) canonical(at int, raw json.RawMessage) (json.RawMessage, *fault) {
	if s.kind != 0 && jsontext.Value(raw).Kind() != s.kind || s.fits != nil && !s.fits(raw) {
		return nil, faultAt(at, "must be %s", s.words)
	}
	switch {
	case s.rewrite != nil:
		text, err := s.rewrite(raw)
		if err != nil {
			return nil, faultAt(at, "%s", err)
		}
		return Quote(text), nil
	case s.each != nil:
		list := [][]byte{}
		for _, e := range elements(raw) {
			value, err := s.each.canonical(at+e.at, e.Value)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
	case s.fields != nil || s.group != nil:
		out, err := s.canonicalObject(at, members(raw))
		if err != nil {
			return nil, err
		}
		written, _ := out.MarshalJSON() // each of its values is JSON
		return written, nil
	}
	return compact(raw), nil
}

// canonicalObject is canonical for an object. Members that are not in the schema are
// left out.
func (s schema) canonicalObject(at int, o Object) (out Object, err *fault) {
	fields := s.fields
	if s.group != nil {
		tag := field{s.group.tag, required, oneOf(s.group.names()...)}
		if _, err := object(tag).canonicalObject(at, o); err != nil {
			return nil, err
		}
		fields = slices.Concat(fields, []field{tag}, s.group.find(o.Text(tag.name)).fields)
	}
	for _, f := range fields {
		value, err := f.canonical(at, o)
		if err != nil {
			return nil, err
		}
		if value != nil && f.use != extra {
			out = append(out, Member{Name: f.name, Value: value})
		}
	}
	return out, nil
}

// canonical is the field's value as its owner writes it in an object, nil where its
// owner leaves it out.
func (f field) canonical(at int, o Object) (json.RawMessage, *fault) {
	var found *Member
	for i := range o {
		if o[i].Name != f.name {
			continue
		}
		if found != nil {
			return nil, faultAt(at+o[i].at, "%s stands twice", f.name)
		}
		found = &o[i]
	}
	nullable := f.use == optional || f.use == extra
	switch {
	case found == nil && f.use == required:
		return nil, faultAt(at, "%s is missing", f.name)
	case found == nil || nullable && string(found.Value) == "null":
		if f.is.missing == "" {
			return nil, nil
		}
		return json.RawMessage(f.is.missing), nil
	}
	value, err := f.is.canonical(at+found.at, found.Value)
	if err != nil {
		err.msg = f.name + ": " + err.msg
		return nil, err
	}
	if f.use == listed && (string(value) == "[]" || string(value) == "{}") {
		return nil, nil
	}
	return value, nil
}
