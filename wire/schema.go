package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A schema says what a value has to be, and how its owner writes it. It is a simple
// value (read), an array (each) or an object.
type schema struct {
	read    func(json.RawMessage) (json.RawMessage, error)
	each    *schema
	isAlone bool               // an element may stand for an array of one
	fields  []field            // the members of every kind
	tag     string             // the member that tells the kinds apart, "" where there are none
	kinds   map[string][]field // the members of each
	isOpen  bool               // unknown members are kept, and of repeated ones the last counts
}

// A field is one member of an object.
type field struct {
	name       string
	is         *schema
	isOptional bool   // it may be absent or null
	isListed   bool   // it may be absent; an empty list is left out
	missing    string // the JSON that its owner writes for an absent one; "": none
}

// schemas are the types of the tables, by table and name, and the simple types.
var schemas = sync.OnceValue(func() map[string]*schema {
	all := simpleTypes()
	for vocabulary, table := range tables {
		var group *schema
		for line := range strings.Lines(strings.TrimSpace(table)) {
			name, members, _ := strings.Cut(strings.TrimSpace(line), " ")
			members = strings.TrimSpace(members)
			if line[0] == ' ' {
				for kind := range strings.SplitSeq(name, "|") {
					group.kinds[kind] = parseFields(all, vocabulary, members)
				}
				continue
			}
			s := findType(all, vocabulary, name)
			s.isOpen = vocabulary == "message"
			if tag, ok := strings.CutPrefix(members, "by "); ok {
				s.tag, s.kinds, group = tag, map[string][]field{}, s
			} else if rest, ok := strings.CutPrefix(members, "of "); ok {
				other, fields, _ := strings.Cut(rest, " ")
				*s = *findType(all, vocabulary, other)
				s.fields = parseFields(all, vocabulary, fields)
			} else if strings.Contains(members, " ") {
				s.fields = parseFields(all, vocabulary, members)
			} else {
				*s = *findType(all, vocabulary, members)
			}
		}
	}
	return all
})

func parseFields(all map[string]*schema, vocabulary, members string) (fields []field) {
	for member := range strings.SplitSeq(members, ",") {
		name, is, _ := strings.Cut(strings.TrimSpace(member), " ")
		if name == "" {
			break // a kind without members
		}
		f := field{name: name}
		is, f.missing, _ = strings.Cut(is, "=")
		is, f.isOptional = strings.CutSuffix(is, "?")
		is, f.isListed = strings.CutSuffix(is, "*")
		f.is = findType(all, vocabulary, is)
		fields = append(fields, f)
	}
	return fields
}

// findType is the schema of a type in a table. One whose line comes later is filled in
// there.
func findType(all map[string]*schema, vocabulary, name string) *schema {
	if element, ok := strings.CutSuffix(name, "[]"); ok {
		return &schema{each: findType(all, vocabulary, element)}
	}
	if strings.Contains(name, "|") {
		return oneOf(strings.Split(name, "|"))
	}
	if s := all[name]; s != nil {
		return s
	}
	full := vocabulary + "." + name
	if all[full] == nil {
		all[full] = &schema{}
	}
	return all[full]
}

func simpleTypes() map[string]*schema {
	str := ofKind("a string", `"`)
	address := parsed(func(s string) (string, error) {
		_, err := ParseAddress(s, "any") // a bare name is completed later
		return s, err
	})
	return map[string]*schema{
		"any":       fitting("", func(string) bool { return true }),
		"string":    str,
		"array":     ofKind("an array", "["),
		"map":       ofKind("an object", "{"),
		"bool":      ofKind("true or false", "tf"),
		"number":    ofKind("a number", "0"),
		"u32":       unsigned(32, "4294967295"),
		"u63":       unsigned(63, "9223372036854775807"),
		"u64":       unsigned(64, "18446744073709551615"),
		"uuid":      parsed(ParseUUID),
		"id":        parsed(ParseID),
		"name":      parsed(ParseName),
		"address":   address,
		"addresses": {each: address, isAlone: true},
		"names":     {each: str, isAlone: true},
		"int": fitting("a whole number", func(raw string) bool {
			_, err := strconv.ParseInt(raw, 10, 64)
			return err == nil
		}),
		"word":   fitting("a word of a-z, 0-9 and _", func(raw string) bool { return isKind(unquote([]byte(raw))) }),
		"sha256": fitting("64 hex digits", func(raw string) bool { return IsSHA256(unquote([]byte(raw))) }),
		"time": parsed(func(s string) (string, error) {
			t, err := parseTime(s)
			return chronoTime(t), err
		}),
		"body": parsed(func(s string) (string, error) {
			if strings.ContainsRune(s, 0) {
				return "", errors.New("has a NUL")
			}
			if len(s) > MaxBody {
				return "", fmt.Errorf("has %d bytes, the most is %d", len(s), MaxBody)
			}
			return s, nil
		}),
		// Unlike a string that is kept as it came, a text has no half of a surrogate pair.
		"text": {read: func(raw json.RawMessage) (json.RawMessage, error) {
			if raw[0] != '"' {
				return nil, errors.New("must be a string")
			}
			s, err := jsontext.AppendUnquote(nil, raw)
			if err != nil {
				return nil, errors.New("has half of a surrogate pair")
			}
			return Quote(string(s)), nil
		}},
	}
}

func fitting(words string, fits func(raw string) bool) *schema {
	return &schema{read: func(raw json.RawMessage) (json.RawMessage, error) {
		if !fits(string(raw)) {
			return nil, errors.New("must be " + words)
		}
		return compact(raw), nil
	}}
}

// ofKind is any value that begins with one of these, as jsontext.Kind has them.
func ofKind(words, kinds string) *schema {
	return fitting(words, func(raw string) bool { return strings.ContainsRune(kinds, rune(jsontext.Value(raw).Kind())) })
}

func unsigned(bits int, most string) *schema {
	return fitting("a whole number from 0 to "+most, func(raw string) bool {
		_, err := strconv.ParseUint(raw, 10, bits)
		return err == nil
	})
}

func oneOf(words []string) *schema {
	last := len(words) - 1
	return fitting(strings.Join(words[:last], ", ")+" or "+words[last], func(raw string) bool {
		return slices.Contains(words, unquote([]byte(raw)))
	})
}

func parsed[T ~string](parse func(string) (T, error)) *schema {
	return &schema{read: func(raw json.RawMessage) (json.RawMessage, error) {
		if raw[0] != '"' {
			return nil, errors.New("must be a string")
		}
		text, err := parse(unquote(raw))
		return Quote(string(text)), err
	}}
}

// Canonical reads a value of another vocabulary and returns it as its owner writes
// it: in one line, the members in their order, without those that the owner does not
// know. The type is the table and the owner's name: "session.HumanInput". The error is
// a *DecodeError, or ErrNotObject.
func Canonical(typeName string, data []byte) (json.RawMessage, error) {
	s := schemas()[typeName]
	if s == nil {
		return nil, fmt.Errorf("%q is no type of a vocabulary", typeName)
	}
	if err := syntax(data); err != nil {
		return nil, err
	}
	if at := start(data); s.read != nil || data[at] == '{' {
		out, err := s.canonical(at, data[at:])
		return out, err.in(data)
	}
	return nil, ErrNotObject
}

// canonical checks a value that begins at an offset of the text, and returns it as its
// owner writes it.
func (s *schema) canonical(at int, raw json.RawMessage) (json.RawMessage, *DecodeError) {
	switch {
	case s.read != nil:
		value, err := s.read(raw)
		if err != nil {
			return nil, errorAt(at, err.Error())
		}
		return value, nil
	case s.each == nil && raw[0] != '{':
		return nil, errorAt(at, "must be an object")
	case s.each == nil:
		o, err := s.object(at, members(raw))
		if err != nil {
			return nil, err
		}
		return o.encode(), nil
	case raw[0] != '[' && !s.isAlone:
		return nil, errorAt(at, "must be an array")
	}
	list := []Member{{Value: raw}}
	if raw[0] == '[' {
		list = split(raw, '[')
	}
	out := []byte("[")
	for i, m := range list {
		value, err := s.each.canonical(at+m.at, m.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']'), nil
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
	for _, m := range o {
		if s.isOpen && !s.has(m.Name) {
			out = append(out, m)
		}
	}
	return out, nil
}

// has reports whether an object without kinds has a member.
func (s *schema) has(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

// member is a member's value as its owner writes it, empty where its owner leaves it out.
func (s *schema) member(f field, at int, o Object) (json.RawMessage, *DecodeError) {
	var found *Member
	for i := range o {
		if o[i].Name != f.name {
			continue
		}
		if found != nil && !s.isOpen {
			return nil, errorAt(at+o[i].at, f.name+" stands twice")
		}
		found = &o[i]
	}
	switch {
	case found == nil && !f.isOptional && !f.isListed:
		return nil, errorAt(at, f.name+" is missing")
	case found == nil || f.isOptional && string(found.Value) == "null":
		return json.RawMessage(f.missing), nil
	}
	value, err := f.is.canonical(at+found.at, found.Value)
	if err != nil {
		err.Msg = f.name + ": " + err.Msg
		return nil, err
	}
	if f.isListed && (string(value) == "[]" || string(value) == "{}") {
		return nil, nil
	}
	return value, nil
}
