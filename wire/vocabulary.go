package wire

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
)

// A schema says what a value has to be and how its owner writes it. Without check and element it is an object.
type schema struct {
	check   func(json.RawMessage) (json.RawMessage, error) // of a simple value
	element *schema                                        // of an array
	fields  []field                                        // the members of every kind
	tag     string                                         // the member that names the kind; "": no kinds
	kinds   map[string][]field                             // the members of each kind

	allowsSingle bool // one element may stand for an array of one
	keepsUnknown bool // members
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
	all := types{
		"any": goValue[any](""), "bool": goValue[bool]("true or false"), "number": goValue[float64]("a number"),
		"int": goValue[int64]("a whole number"), "u32": goValue[uint32]("a whole number from 0 to 4294967295"),
		"u64": goValue[uint64]("a whole number from 0 to 18446744073709551615"),
		"map": goValue[map[string]json.RawMessage]("an object"), "array": goValue[[]json.RawMessage]("an array"),
		"text": textual(func(s string) (string, error) { return s, nil }), "uuid": textual(ParseUUID),
		"time": textual(func(s string) (string, error) { t, err := parseTime(s); return formatTime(t), err }),
		"id":   textual(ParseID), "sha256": validText("64 hex digits", IsSHA256),
		"body": validText("a text without NUL of at most 1 MiB", isBody), "word": validText("a word of a-z, 0-9 and _", isKind),
		"name": textual(ParseName), "address": textual(checkAddress),
		"addresses": {element: textual(checkAddress), allowsSingle: true},
	}
	all["names"] = &schema{element: all["text"], allowsSingle: true}
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
			*all.get(name) = schema{tag: all[base].tag, kinds: all[base].kinds, fields: all.parseFields(own)}
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

// goValue is a value that fits a Go type, and is written as it came.
func goValue[T any](description string) *schema {
	return &schema{check: func(raw json.RawMessage) (json.RawMessage, error) {
		if description != "" && (raw[0] == 'n' || jsonv2.Unmarshal(raw, new(T), lenient) != nil) { // null fits any Go type
			return nil, errors.New("must be " + description)
		}
		return raw, nil
	}}
}

// textual is a string that is written as its Go type has it.
func textual[T ~string](parse func(string) (T, error)) *schema {
	return &schema{check: func(raw json.RawMessage) (json.RawMessage, error) {
		if raw[0] != '"' {
			return nil, errors.New("must be a string")
		}
		value, err := parse(unquote(raw))
		return Quote(string(value)), err
	}}
}

func validText(description string, isValid func(string) bool) *schema {
	return textual(func(s string) (string, error) {
		if !isValid(s) {
			return "", errors.New("must be " + description)
		}
		return s, nil
	})
}

func oneOf(words []string) *schema {
	last := len(words) - 1
	description := strings.Join(words[:last], ", ") + " or " + words[last]
	return validText(description, func(s string) bool { return slices.Contains(words, s) })
}

func isBody(s string) bool { return len(s) <= MaxBody && !strings.ContainsRune(s, 0) }

// checkAddress accepts a bare name too, which is completed later.
func checkAddress(s string) (string, error) {
	_, err := ParseAddress(s, "any")
	return s, err
}

func schemaOf(typeName string) (*schema, error) {
	if s := schemas()[typeName]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("no vocabulary has a type %q", typeName)
}

// Canonical reads a value of another vocabulary and returns it as its owner writes it: in one line, with the members in
// the owner's order and without unknown ones. The type is one of vocabularies.txt, such as "session.HumanInput". The
// error is a *DecodeError or ErrNotObject, or another for a type that there is not.
func Canonical(typeName string, data []byte) (json.RawMessage, error) {
	s, err := schemaOf(typeName)
	if err != nil {
		return nil, err
	}
	raw := json.RawMessage{}
	if err := Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	if s.check == nil && raw[0] != '{' {
		return nil, ErrNotObject
	}
	out, err := s.canonical(raw)
	return out, locate(data, err)
}

// canonical checks a value and returns it as its owner writes it.
func (s *schema) canonical(raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case s.check != nil:
		return s.check(raw)
	case s.allowsSingle && raw[0] != '[':
		return s.canonical(slices.Concat([]byte("["), raw, []byte("]")))
	case s.element != nil && raw[0] == '[':
		list := [][]byte{}
		for _, m := range parseMembers(raw, '[') {
			value, err := s.element.canonical(m.Value)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
	case s.element != nil:
		return nil, errors.New("must be an array")
	case raw[0] != '{':
		return nil, errors.New("must be an object")
	}
	o, err := s.object(parseObject(raw))
	return o.Encode(), err
}

// object is canonical for a parsed object. The error is a *memberError unless a member is missing.
func (s *schema) object(o Object) (out Object, err error) {
	fields := s.fields
	if s.tag != "" {
		tag := field{name: s.tag, schema: oneOf(slices.Sorted(maps.Keys(s.kinds)))}
		fields = slices.Concat(fields, []field{tag}, s.kinds[o.Text(s.tag)])
	}
	out, err = selectFields(o, fields)
	if err == nil && s.keepsUnknown {
		out = append(out, slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return s.hasField(m.Name) })...)
	}
	return out, err
}

// hasField reports whether a member belongs to every kind of object.
func (s *schema) hasField(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name })
}

// selectFields returns the members of o that are fields, as their owner writes them.
func selectFields(o Object, fields []field) (out Object, err error) {
	for _, f := range fields {
		raw := json.RawMessage(f.absent)
		i := o.index(f.name)
		isAbsent := i < 0 || f.isOptional && string(o[i].Value) == "null"
		if isAbsent && !f.isOptional && !f.omitsEmpty {
			return nil, errors.New(f.name + " is missing")
		}
		if !isAbsent {
			if raw, err = f.schema.canonical(o[i].Value); err != nil {
				return nil, &memberError{f.name, err.Error()}
			}
		}
		isEmpty := string(raw) == "[]" || string(raw) == "{}"
		if len(raw) > 0 && !(f.omitsEmpty && isEmpty) {
			out = append(out, Member{Name: f.name, Value: raw})
		}
	}
	return out, nil
}

// Vocabulary is another system whose events we understand.
type Vocabulary string

const (
	Daemon  Vocabulary = "daemon"  // tag "kind", which our own kinds have too
	Session Vocabulary = "session" // tag "event_type"
	ACP     Vocabulary = "acp"     // tags "update_type" and "sessionUpdate"
)

// The types of event in vocabularies.txt, and the type of ACP's calls.
const (
	daemonEvent   = "daemon.DaemonStreamEvent"
	sessionEvent  = "session.SessionEvent"
	humanInput    = "session.HumanInput"
	olderUpdate   = "acp.SessionUpdate"
	olderNotice   = "acp.SessionUpdateNotification"
	currentUpdate = "acp.CurrentUpdate"
	currentCall   = "acp.Call"
	runnerEvent   = "log.RunnerEvent"
	mailboxEvent  = "log.MailboxEvent"
)

// eventTypes are in the order in which their tags are looked for: a tool call of ACP has a "kind" too.
var eventTypes = []string{sessionEvent, currentUpdate, olderUpdate, daemonEvent, runnerEvent, mailboxEvent}

func hasKind(typeName, kind string) bool { _, ok := schemas()[typeName].kinds[kind]; return ok }

// typeOf returns the type of event that has a kind. An unknown kind counts as the daemon's, whose tag is ours too.
func typeOf(kind string) string {
	i := slices.IndexFunc(eventTypes, func(name string) bool { return hasKind(name, kind) })
	if i < 0 {
		return daemonEvent
	}
	return eventTypes[i]
}

// isKind reports whether s can be a kind: a word of a-z, 0-9 and _.
func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
