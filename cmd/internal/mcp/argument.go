package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// otherNames are what models call arguments that mean the same; the first that a tool has counts.
var otherNames = map[string][]string{
	"body": {"text"}, "message": {"text"}, "content": {"text"}, "note": {"text"},
	"recipient": {"to"}, "recipients": {"to"}, "attachments": {"attach"}, "files": {"attach"}, "requires_ack": {"ack"},
	"message_id": {"id"}, "ids": {"id"}, "thread_id": {"thread", "id"}, "query": {"words"}, "choices": {"choice"}, "options": {"choice"},
}

// hints are for what models try that means something else.
var hints = map[string]string{
	"priority": `"urgent": true`, "importance": `"urgent": true`, "cc": `name them all in "to"`,
	"mark_read": `"peek": true marks nothing as read`, "timeout_s": `such as "30s"`, "timeout_ms": `such as "30s"`,
}

// single are the arguments that a command takes once only.
var single = []string{"from", "thread", "subject", "due", "at", "once", "text", "since", "in", "timeout", "limit", "outcome"}

// arguments returns the arguments of a call by their names in the schema: null, "" and an empty list are as good as none, a
// number, true or a list may be in quotes, and "bob, carol" are two where names or ids are expected. Otherwise a sentence
// says what is wrong.
func (s schema) arguments(tool string, raw json.RawMessage) (map[string][]string, error) {
	var given map[string]any
	var inQuotes string
	if json.Unmarshal(raw, &inQuotes) == nil { // the object as a text
		raw = []byte(inQuotes)
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&given); err != nil && len(raw) > 0 {
		return nil, failure.Usage("the arguments of %s are not an object", tool)
	}
	maps.DeleteFunc(given, func(_ string, value any) bool {
		list, isList := value.([]any)
		return value == nil || value == "" || isList && len(list) == 0
	})
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		ours := name
		isFree := func(other string) bool { return s.has(other) && given[other] == nil && out[other] == nil }
		if i := slices.IndexFunc(otherNames[name], isFree); i >= 0 && !s.has(name) {
			ours = otherNames[name][i]
		}
		if !s.has(ours) {
			return nil, s.unknown(tool, name)
		}
		list, err := s.values(ours, given[name])
		if err != nil {
			return nil, err
		}
		out[ours] = list
	}
	for _, name := range s.Required {
		if len(out[name]) == 0 {
			return nil, failure.Usage("%s needs %q", tool, name)
		}
	}
	return out, nil
}

func (s schema) has(name string) bool { _, ok := s.Properties[name]; return ok }

func (s schema) unknown(tool, name string) *failure.Error {
	known := slices.Sorted(maps.Keys(s.Properties))
	if len(known) == 0 {
		return failure.Usage("%s takes no arguments, and %q is one", tool, name)
	}
	return failure.Usage("%s has no argument %q; it has: %s", tool, name, strings.Join(known, ", ")).
		WithHint("%s", hints[name]).WithNearest(name, known)
}

// values returns the values of an argument, and checks what the command cannot: it would take the last of several.
func (s schema) values(name string, value any) (out []string, err error) {
	list, isList := value.([]any)
	text, isText := value.(string)
	switch isSingle := slices.Contains(single, name); {
	case isList && isSingle && len(list) > 1:
		return nil, failure.Usage("%q takes one value, not %d", name, len(list))
	case isList, isText && !isSingle && json.Unmarshal([]byte(text), &list) == nil:
	case isText && (name == "to" || name == "id"):
		for one := range strings.SplitSeq(strings.Trim(text, ", "), ",") {
			out = append(out, strings.TrimSpace(one))
		}
		return out, nil
	default:
		list = []any{value}
	}
	for _, one := range list {
		text, err := s.value(name, one)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

func (s schema) value(name string, value any) (string, error) {
	p, is := s.Properties[name], "a text"
	text, isText := value.(string)
	if !isText {
		raw, _ := json.Marshal(value)
		text = string(raw)
	}
	switch n, err := strconv.ParseFloat(text, 64); {
	case p.Type == "integer" && err == nil && n >= *p.Minimum && n == float64(int64(n)):
		return fmt.Sprint(int64(n)), nil
	case p.Type == "integer":
		is = fmt.Sprintf("a whole number from %v up", *p.Minimum)
	case p.Type == "boolean" && !slices.Contains([]string{"true", "false", "1", "0"}, strings.ToLower(text)):
		is = "true or false"
	case p.Enum != nil && !slices.Contains(p.Enum, text):
		is = "one of " + strings.Join(p.Enum, ", ")
	case isText || !strings.ContainsAny(text[:1], "{[n"): // no object, list or null
		return text, nil
	}
	return "", failure.Usage("%q is %s, not %s", name, is, text)
}
