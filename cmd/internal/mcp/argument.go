package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/failure"
)

// A schema is what tools.json says of a tool's arguments.
type schema struct {
	Required   []string
	Properties map[string]struct {
		Type    string
		Enum    []string
		Minimum *float64
	}
}

// textNames are what models call the text of a message.
var textNames = []string{"body", "message", "content"}

// single are the arguments that a command takes once only.
var single = []string{"from", "thread", "subject", "due", "once", "text", "since", "in", "timeout", "limit"}

// arguments returns the arguments of a call by their names in the schema: null and "" are as good as none, a list where
// the command takes several is one, and a number in quotes is a number. Otherwise a sentence says what is wrong.
func (s schema) arguments(tool string, raw json.RawMessage) (map[string]any, error) {
	var given map[string]any
	var inQuotes string
	if json.Unmarshal(raw, &inQuotes) == nil { // the object as a text
		raw = []byte(inQuotes)
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&given); err != nil && len(raw) > 0 {
		return nil, failure.Usage("the arguments of %s are no object", tool)
	}
	maps.DeleteFunc(given, func(_ string, value any) bool { return value == nil || value == "" })
	for _, name := range textNames {
		if value, isGiven := given[name]; isGiven && s.has("text") && given["text"] == nil && !s.has(name) {
			delete(given, name)
			given["text"] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !s.has(name) {
			return nil, failure.Usage("%s has no argument %q; it has: %s", tool, name, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
		if err := s.check(name, given[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Required {
		if given[name] == nil {
			return nil, failure.Usage("%s needs %q", tool, name)
		}
	}
	return given, nil
}

func (s schema) has(name string) bool { _, ok := s.Properties[name]; return ok }

// check checks what the command cannot: it would take the last of several values, and any number.
func (s schema) check(name string, value any) error {
	property := s.Properties[name]
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	if len(list) > 1 && slices.Contains(single, name) {
		return failure.Usage("%q takes one value, not %d", name, len(list))
	}
	for _, one := range list {
		var number json.Number
		switch v := one.(type) {
		case string:
			number = json.Number(v)
			if property.Enum != nil && !slices.Contains(property.Enum, v) {
				return failure.Usage("%q is one of %s, not %q", name, strings.Join(property.Enum, ", "), v)
			}
		case json.Number:
			number = v
		case bool:
		default:
			return failure.Usage("%q takes a %s", name, property.Type)
		}
		if least := property.Minimum; least != nil {
			if n, err := number.Float64(); err != nil || n < *least || n != float64(int64(n)) {
				return failure.Usage("%q is a whole number from %v up, not %v", name, *least, fmt.Sprint(one))
			}
		}
	}
	return nil
}
