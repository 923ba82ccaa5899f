package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Compose makes an event from a kind and the fields that somebody types. A value is a string, unless it is a JSON object
// or array, or the kind's field is a number. turn_id, session and event_id become the event's own. If a field has the
// name of another member that all events have (seq, at, team, agent, source), all fields go under Wire.
func Compose(kind string, pairs [][2]string) (Event, error) {
	e := Event{Kind: kind}
	if !isKind(kind) {
		return e, fmt.Errorf("%q is no kind: a-z, 0-9 and _, at most 64", shorten(kind, 40))
	}
	if hasKind(mailboxEvent, kind) {
		return e, fmt.Errorf("%s is evidence of a message, and appended by whatever moves it", kind)
	}
	s := schemas()[typeOf(kind)]
	whole := Object{{Name: s.tag, Value: Quote(kind)}}
	for _, pair := range pairs {
		name, value := pair[0], pair[1]
		switch {
		case name == "":
			return e, fmt.Errorf("%q has no name before the =", shorten("="+value, 40))
		case name == "kind" || name == s.tag:
			return e, fmt.Errorf("%s: the kind is %s already", name, kind)
		case whole.Has(name):
			return e, fmt.Errorf("%s appears twice", name)
		}
		raw, err := parseTyped(fieldSchema(kind, s.kinds[kind], name), value)
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		whole = append(whole, Member{Name: name, Value: raw})
	}
	e.TurnID, e.Session, e.EventID = whole.Text("turn_id"), whole.Text("session"), whole.Text("event_id")
	own := whole.without(s.tag, "turn_id", "session", "event_id")
	if slices.ContainsFunc(own, func(m Member) bool { return isEventField(m.Name) }) {
		e.Wire = whole.encode()
	} else if len(own) > 0 {
		e.Extra = jsontext.Value(own.encode())
	}
	return e, nil
}

// fieldSchema returns what a typed field has to be. The log accepts any state; here a typing error is caught.
func fieldSchema(kind string, fields []field, name string) *schema {
	if kind == "state_change" && name == "new" {
		return schemas()["log.Activity"]
	}
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		return fields[i].schema
	}
	return schemas()["any"]
}

// parseTyped returns the JSON of a value as somebody types it.
func parseTyped(s *schema, value string) (json.RawMessage, error) {
	raw := Quote(value)
	isJSON := s == schemas()["int"] || s == schemas()["u64"] || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")
	if isJSON && checkSyntax([]byte(value)) == nil {
		raw = compact([]byte(value))
	}
	if _, wrong := s.canonical(0, raw); wrong != nil {
		return nil, errors.New(wrong.Msg)
	}
	return raw, nil
}
