package wire

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A schema says what a value has to be, and how its owner writes it. It is a simple value (read), an
// array (each) or an object.
type schema struct {
	read    func(json.RawMessage) (json.RawMessage, error)
	each    *schema
	isAlone bool               // an element may stand for an array of one
	fields  []field            // the members of every kind
	tag     string             // the member that tells the kinds apart, "" where there are none
	kinds   map[string][]field // the members of each
	isOpen  bool               // unknown members are kept, and of repeated ones the last counts
}

type field struct {
	name       string
	is         *schema
	isOptional bool   // it may be absent or null
	isListed   bool   // it may be absent; an empty list is left out
	missing    string // the JSON that its owner writes for an absent one; "": none
}

//go:embed vocabularies.txt
var vocabularies string

// schemas are the simple types and those of vocabularies.txt, which says how to read it.
var schemas = sync.OnceValue(func() types {
	all := simpleTypes()
	var group *schema
	for line := range strings.Lines(strings.ReplaceAll(vocabularies, ",\n", ",")) {
		name, members, _ := strings.Cut(strings.TrimSpace(line), " ")
		members = strings.TrimSpace(members)
		switch word, more, _ := strings.Cut(members, " "); {
		case name == "" || name == "#":
		case line[0] == ' ':
			for kind := range strings.SplitSeq(name, "|") {
				group.kinds[kind] = all.fields(members)
			}
		case word == "by":
			group = all.get(name)
			group.tag, group.kinds = more, map[string][]field{}
		case word == "of":
			other, own, _ := strings.Cut(more, " ")
			*all.get(name) = *all[other]
			all[name].fields = all.fields(own)
		case more == "":
			*all.get(name) = *all.get(word)
		default:
			*all.get(name) = schema{fields: all.fields(members), isOpen: strings.HasPrefix(name, "message.")}
		}
	}
	return all
})

type types map[string]*schema

func (all types) fields(text string) (fields []field) {
	for member := range strings.SplitSeq(text, ",") {
		f := field{}
		name, is, _ := strings.Cut(strings.TrimSpace(member), " ")
		is, f.missing, _ = strings.Cut(is, "=")
		is, f.isOptional = strings.CutSuffix(is, "?")
		is, f.isListed = strings.CutSuffix(is, "*")
		f.name = name
		if name != "" {
			f.is = all.get(is)
			fields = append(fields, f)
		}
	}
	return fields
}

// get is a type, which may still have to be filled in.
func (all types) get(name string) *schema {
	if element, ok := strings.CutSuffix(name, "[]"); ok {
		return &schema{each: all.get(element)}
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
	str := ofKind('"', "a string")
	return types{
		"any":       value("", func(json.RawMessage) bool { return true }),
		"string":    str,
		"array":     ofKind('[', "an array"),
		"map":       ofKind('{', "an object"),
		"bool":      goType[bool]("true or false"),
		"number":    goType[float64]("a number"),
		"int":       goType[int64]("a whole number"),
		"u32":       goType[uint32]("a whole number from 0 to 4294967295"),
		"u64":       goType[uint64]("a whole number from 0 to 18446744073709551615"),
		"count":     {read: readCount},
		"word":      fitting("a word of a-z, 0-9 and _", isKind),
		"sha256":    fitting("64 hex digits", IsSHA256),
		"text":      parsed(func(s string) (string, error) { return s, nil }),
		"uuid":      parsed(ParseUUID),
		"id":        parsed(ParseID),
		"name":      parsed(ParseName),
		"time":      parsed(func(s string) (string, error) { t, err := parseTime(s); return chronoTime(t), err }),
		"addresses": {each: parsed(checkAddress), isAlone: true},
		"address":   parsed(checkAddress),
		"names":     {each: str, isAlone: true},
		"body": {read: func(raw json.RawMessage) (json.RawMessage, error) {
			value, err := str.read(raw)
			return value, cmp.Or(err, checkBody(unquote(raw)))
		}},
	}
}

// checkAddress returns an address, which may be a bare name: that is completed later.
func checkAddress(s string) (string, error) {
	_, err := ParseAddress(s, "any")
	return s, err
}

// value is a value that is written as it came.
func value(words string, fits func(raw json.RawMessage) bool) *schema {
	return &schema{read: func(raw json.RawMessage) (json.RawMessage, error) {
		if !fits(raw) {
			return nil, errors.New("must be " + words)
		}
		return raw, nil
	}}
}

func ofKind(kind byte, words string) *schema {
	return value(words, func(raw json.RawMessage) bool { return raw[0] == kind })
}

// goType is a value that a Go type can have.
func goType[T any](words string) *schema {
	return value(words, func(raw json.RawMessage) bool {
		return raw[0] != 'n' && jsonv2.Unmarshal(raw, new(T), lenient) == nil // null fits each
	})
}

// readCount reads a whole number in any way that JSON has to write it, 3.0 too.
func readCount(raw json.RawMessage) (json.RawMessage, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > math.MaxUint32 || f != math.Trunc(f) {
		return nil, errors.New("must be a whole number from 0 to 4294967295")
	}
	return strconv.AppendUint(nil, uint64(f), 10), nil
}

func fitting(words string, fits func(string) bool) *schema {
	return value(words, func(raw json.RawMessage) bool { return fits(unquote(raw)) })
}

func oneOf(words []string) *schema {
	last := len(words) - 1
	return fitting(strings.Join(words[:last], ", ")+" or "+words[last], func(s string) bool { return slices.Contains(words, s) })
}

// parsed is a string that is written as its type has it. It may not have half of a surrogate pair.
func parsed[T ~string](parse func(string) (T, error)) *schema {
	return &schema{read: func(raw json.RawMessage) (json.RawMessage, error) {
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

// Canonical reads a value of another vocabulary and returns it as its owner writes it: in one line, the
// members in their order, without those that the owner does not know. The type is one of
// vocabularies.txt: "session.HumanInput". The error is a *DecodeError, or ErrNotObject.
func Canonical(typeName string, data []byte) (json.RawMessage, error) {
	s, raw := schemas()[typeName], bytes.TrimSpace(data)
	if s == nil {
		return nil, fmt.Errorf("%q is no type of a vocabulary", typeName)
	}
	if err := syntax(data); err != nil {
		return nil, err
	}
	if s.read == nil && raw[0] != '{' {
		return nil, ErrNotObject
	}
	out, wrong := s.canonical(bytes.IndexByte(data, raw[0]), raw)
	return out, wrong.in(data)
}

// canonical checks a value that begins at an offset of the text, and returns it as its owner writes it.
func (s *schema) canonical(at int, raw json.RawMessage) (json.RawMessage, *DecodeError) {
	switch {
	case s.read != nil:
		value, err := s.read(raw)
		if err != nil {
			return nil, errorAt(at, err.Error())
		}
		return value, nil
	case s.each != nil:
		return s.array(at, raw)
	case raw[0] != '{':
		return nil, errorAt(at, "must be an object")
	}
	o, err := s.object(at, members(raw))
	return o.encode(), err
}

func (s *schema) array(at int, raw json.RawMessage) (json.RawMessage, *DecodeError) {
	elements := []Member{{Value: raw}}
	if raw[0] == '[' {
		elements = split(raw, '[')
	} else if !s.isAlone {
		return nil, errorAt(at, "must be an array")
	}
	list := [][]byte{}
	for _, m := range elements {
		value, err := s.each.canonical(at+m.at, m.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
}

// object is canonical for the members of an object.
func (s *schema) object(at int, o Object) (out Object, err *DecodeError) {
	fields := s.fields
	if s.tag != "" {
		tag := field{name: s.tag, is: oneOf(slices.Sorted(maps.Keys(s.kinds)))}
		if _, err := s.member(tag, at, o); err != nil {
			return nil, err
		}
		fields = slices.Concat(fields, []field{tag}, s.kinds[o.Text(s.tag)])
	}
	for _, f := range fields {
		value, err := s.member(f, at, o)
		if err != nil {
			return nil, err
		}
		if len(value) > 0 {
			out = append(out, Member{Name: f.name, Value: value})
		}
	}
	if s.isOpen {
		out = append(out, slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return s.has(m.Name) })...)
	}
	return out, nil
}

// isWhole reports whether a kind is known and an object has every member that its owner always writes.
func (s *schema) isWhole(o Object, kind string) bool {
	fields, isKnown := s.kinds[kind]
	return isKnown && !slices.ContainsFunc(fields, func(f field) bool {
		isAlways := !f.isOptional && !f.isListed || f.missing != ""
		return isAlways && !o.Has(f.name)
	})
}

// has reports whether an object without kinds has a member.
func (s *schema) has(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

// member is a member's value as its owner writes it, empty where its owner leaves it out.
func (s *schema) member(f field, at int, o Object) (json.RawMessage, *DecodeError) {
	var found *Member
	for i, m := range o {
		if m.Name == f.name && found != nil && !s.isOpen {
			return nil, errorAt(at+m.at, f.name+" stands twice")
		}
		if m.Name == f.name {
			found = &o[i]
		}
	}
	switch {
	case found == nil && !f.isOptional && !f.isListed:
		return nil, errorAt(at, f.name+" is missing")
	case found == nil || f.isOptional && string(found.Value) == "null":
		return json.RawMessage(f.missing), nil
	}
	raw, err := f.is.canonical(at+found.at, found.Value)
	if err != nil {
		return nil, errorAt(err.at, f.name+": "+err.Msg)
	}
	if f.isListed && (string(raw) == "[]" || string(raw) == "{}") {
		return nil, nil
	}
	return raw, nil
}
