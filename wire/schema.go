package wire

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A schema says what a value has to be and how its owner writes it. Without parse and element it is an object.
type schema struct {
	parse        func(json.RawMessage) (json.RawMessage, error) // of a simple value
	element      *schema                                        // of an array
	allowsSingle bool                                           // one element may stand for an array of one
	fields       []field                                        // the members of every kind
	tag          string                                         // the member that names the kind; "": no kinds
	kinds        map[string][]field                             // the members of each kind
	keepsUnknown bool                                           // and of repeated members the last counts
}

type field struct {
	name       string
	schema     *schema
	isOptional bool   // it may be absent or null
	omitsEmpty bool   // it may be absent; an empty list or object is left out
	absent     string // the JSON that its owner writes if it is absent; "": nothing
}

//go:embed vocabularies.txt
var vocabularies string

// schemas returns the simple types and those of vocabularies.txt, which explains its own syntax.
var schemas = sync.OnceValue(func() types {
	all := simpleTypes()
	var group *schema
	for line := range strings.Lines(strings.ReplaceAll(vocabularies, ",\n", ",")) {
		name, definition, _ := strings.Cut(strings.TrimSpace(line), " ")
		definition = strings.TrimSpace(definition)
		word, rest, _ := strings.Cut(definition, " ")
		switch {
		case name == "" || name == "#":
		case line[0] == ' ':
			for kind := range strings.SplitSeq(name, "|") {
				group.kinds[kind] = all.parseFields(definition)
			}
		case word == "by":
			tag, members, _ := strings.Cut(rest, " ")
			group = all.get(name)
			*group = schema{tag: tag, kinds: map[string][]field{}, fields: all.parseFields(members)}
		case word == "of":
			base, own, _ := strings.Cut(rest, " ")
			*all.get(name) = *all[base]
			all[name].fields = all.parseFields(own)
		case rest == "":
			*all.get(name) = *all.get(word)
		default:
			*all.get(name) = schema{fields: all.parseFields(definition), keepsUnknown: strings.HasPrefix(name, "message.")}
		}
	}
	return all
})

type types map[string]*schema

func (all types) parseFields(text string) (fields []field) {
	for member := range strings.SplitSeq(text, ",") {
		name, typeName, _ := strings.Cut(strings.TrimSpace(member), " ")
		if name == "" {
			continue
		}
		f := field{name: name}
		typeName, f.absent, _ = strings.Cut(typeName, "=")
		typeName, f.isOptional = strings.CutSuffix(typeName, "?")
		typeName, f.omitsEmpty = strings.CutSuffix(typeName, "*")
		f.schema = all.get(typeName)
		fields = append(fields, f)
	}
	return fields
}

// get returns a type, which may be defined only later.
func (all types) get(name string) *schema {
	if element, ok := strings.CutSuffix(name, "[]"); ok {
		return &schema{element: all.get(element)}
	}
	if words := strings.Split(name, "|"); len(words) > 1 {
		return oneOf(words)
	}
	if all[name] == nil {
		all[name] = &schema{}
	}
	return all[name]
}

func simpleTypes() types {
	return types{
		"any":       value("", func(json.RawMessage) bool { return true }),
		"string":    ofKind('"', "a string"),
		"array":     ofKind('[', "an array"),
		"map":       ofKind('{', "an object"),
		"bool":      goType[bool]("true or false"),
		"number":    goType[float64]("a number"),
		"int":       goType[int64]("a whole number"),
		"u32":       goType[uint32]("a whole number from 0 to 4294967295"),
		"u64":       goType[uint64]("a whole number from 0 to 18446744073709551615"),
		"count":     {parse: parseCount},
		"word":      stringValue("a word of a-z, 0-9 and _", isKind),
		"sha256":    stringValue("64 hex digits", IsSHA256),
		"body":      {parse: parseBody},
		"text":      parsedString(func(s string) (string, error) { return s, nil }),
		"uuid":      parsedString(ParseUUID),
		"id":        parsedString(ParseID),
		"name":      parsedString(ParseName),
		"time":      parsedString(func(s string) (string, error) { t, err := parseTime(s); return formatTime(t), err }),
		"address":   parsedString(checkAddress),
		"addresses": {element: parsedString(checkAddress), allowsSingle: true},
		"names":     {element: ofKind('"', "a string"), allowsSingle: true},
	}
}

// value is a type whose values are written as they came.
func value(description string, isValid func(json.RawMessage) bool) *schema {
	return &schema{parse: func(raw json.RawMessage) (json.RawMessage, error) {
		if !isValid(raw) {
			return nil, errors.New("must be " + description)
		}
		return raw, nil
	}}
}

func ofKind(kind byte, description string) *schema {
	return value(description, func(raw json.RawMessage) bool { return raw[0] == kind })
}

// goType is a value that fits a Go type.
func goType[T any](description string) *schema {
	return value(description, func(raw json.RawMessage) bool {
		return raw[0] != 'n' && jsonv2.Unmarshal(raw, new(T), lenient) == nil // null would fit any type
	})
}

func stringValue(description string, isValid func(string) bool) *schema {
	return value(description, func(raw json.RawMessage) bool { return isValid(unquote(raw)) })
}

func oneOf(words []string) *schema {
	last := len(words) - 1
	return stringValue(strings.Join(words[:last], ", ")+" or "+words[last], func(s string) bool { return slices.Contains(words, s) })
}

// parsedString is a string that is written as its Go type has it. Half of a surrogate pair is refused.
func parsedString[T ~string](parse func(string) (T, error)) *schema {
	return &schema{parse: func(raw json.RawMessage) (json.RawMessage, error) {
		if raw[0] != '"' {
			return nil, errors.New("must be a string")
		}
		s, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, errors.New("has half of a surrogate pair")
		}
		value, err := parse(string(s))
		return Quote(string(value)), err
	}}
}

// parseCount accepts every notation of a whole number in JSON, such as 3.0.
func parseCount(raw json.RawMessage) (json.RawMessage, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > math.MaxUint32 || f != math.Trunc(f) {
		return nil, errors.New("must be a whole number from 0 to 4294967295")
	}
	return strconv.AppendUint(nil, uint64(f), 10), nil
}

func parseBody(raw json.RawMessage) (json.RawMessage, error) {
	if raw[0] != '"' {
		return nil, errors.New("must be a string")
	}
	return raw, checkBody(unquote(raw))
}

// checkAddress accepts a bare name too, which is completed later.
func checkAddress(s string) (string, error) {
	_, err := ParseAddress(s, "any")
	return s, err
}

// Canonical reads a value of another vocabulary and returns it as its owner writes it: in one line, with the members in
// the owner's order and without unknown ones. The type is one of vocabularies.txt, such as "session.HumanInput". The
// error is a *DecodeError or ErrNotObject.
func Canonical(typeName string, data []byte) (json.RawMessage, error) {
	s, raw := schemas()[typeName], bytes.TrimSpace(data)
	if err := checkSyntax(data); err != nil {
		return nil, err
	}
	if s.parse == nil && raw[0] != '{' {
		return nil, ErrNotObject
	}
	out, wrong := s.canonical(bytes.IndexByte(data, raw[0]), raw)
	return out, wrong.locate(data)
}

// canonical checks a value at an offset of the text and returns it as its owner writes it.
func (s *schema) canonical(offset int, raw json.RawMessage) (json.RawMessage, *DecodeError) {
	switch {
	case s.parse != nil:
		value, err := s.parse(raw)
		if err != nil {
			return nil, errorAt(offset, err.Error())
		}
		return value, nil
	case s.element != nil:
		return s.array(offset, raw)
	case raw[0] != '{':
		return nil, errorAt(offset, "must be an object")
	}
	o, err := s.object(offset, parseObject(raw))
	return o.Encode(), err
}

func (s *schema) array(offset int, raw json.RawMessage) (json.RawMessage, *DecodeError) {
	elements := []Member{{Value: raw}}
	if raw[0] == '[' {
		elements = parseMembers(raw, '[')
	} else if !s.allowsSingle {
		return nil, errorAt(offset, "must be an array")
	}
	list := [][]byte{}
	for _, m := range elements {
		value, err := s.element.canonical(offset+m.offset, m.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
}

// object is canonical for a parsed object.
func (s *schema) object(offset int, o Object) (out Object, err *DecodeError) {
	fields := s.fields
	if s.tag != "" {
		tag := field{name: s.tag, schema: oneOf(slices.Sorted(maps.Keys(s.kinds)))}
		fields = slices.Concat(fields, []field{tag}, s.kinds[o.Text(s.tag)])
	}
	for _, f := range fields {
		value, err := s.member(f, offset, o)
		if err != nil {
			return nil, err
		}
		if len(value) > 0 {
			out = append(out, Member{Name: f.name, Value: value})
		}
	}
	if s.keepsUnknown {
		out = append(out, slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return s.hasField(m.Name) })...)
	}
	return out, nil
}

// hasField reports whether a member belongs to every kind of object.
func (s *schema) hasField(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

// member returns a member of o as its owner writes it, empty if its owner leaves it out.
func (s *schema) member(f field, offset int, o Object) (json.RawMessage, *DecodeError) {
	var found *Member
	for i, m := range o {
		if m.Name == f.name && found != nil && !s.keepsUnknown {
			return nil, errorAt(offset+m.offset, f.name+" appears twice")
		}
		if m.Name == f.name {
			found = &o[i]
		}
	}
	switch {
	case found == nil && !f.isOptional && !f.omitsEmpty:
		return nil, errorAt(offset, f.name+" is missing")
	case found == nil || f.isOptional && string(found.Value) == "null":
		return json.RawMessage(f.absent), nil
	}
	raw, err := f.schema.canonical(offset+found.offset, found.Value)
	if err != nil {
		return nil, errorAt(err.offset, f.name+": "+err.Msg)
	}
	if f.omitsEmpty && (string(raw) == "[]" || string(raw) == "{}") {
		return nil, nil
	}
	return raw, nil
}
