package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Compose makes an event of a kind and of fields as somebody types them. A value is a string, unless the kind's field
// is a number or the value is a JSON object or array. turn_id, session and event_id become the event's own. If a field
// has the name of another that all events have (seq, at, team, agent, source), all go under Wire.
func Compose(kind string, pairs [][2]string) (Event, error) {
	e := Event{Kind: kind}
	if !isKind(kind) {
		return e, fmt.Errorf("%q is no kind: a-z, 0-9 and _, at most 64", clip(kind, 40))
	}
	if hasKind(mailboxEvent, kind) {
		return e, fmt.Errorf("%s is evidence of a message, and appended by who moves it", kind)
	}
	s := schemas()[typeOf(kind)]
	tag, fields := s.tag, s.kinds[kind]
	whole := Object{{Name: tag, Value: Quote(kind)}}
	for _, p := range pairs {
		name, value := p[0], p[1]
		switch {
		case name == "":
			return e, fmt.Errorf("%q has no name before the =", clip("="+value, 40))
		case name == "kind" || name == tag:
			return e, fmt.Errorf("%s: the kind is %s already", name, kind)
		case whole.Has(name):
			return e, fmt.Errorf("%s stands twice", name)
		}
		raw, err := typedValue(kind, fields, name, value)
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		whole = append(whole, Member{Name: name, Value: raw})
	}
	e.TurnID, e.Session, e.EventID = whole.Text("turn_id"), whole.Text("session"), whole.Text("event_id")
	own := whole.without(tag, "turn_id", "session", "event_id")
	if slices.ContainsFunc(own, func(m Member) bool { return isEventField(m.Name) }) {
		e.Wire = whole.encode()
	} else if len(own) > 0 {
		e.Extra = jsontext.Value(own.encode())
	}
	return e, nil
}

// typedValue is the JSON of a field's value as somebody types it.
func typedValue(kind string, fields []field, name, value string) (json.RawMessage, error) {
	is := schemas()["any"]
	if kind == "state_change" && name == "new" {
		is = schemas()["log.Activity"]
	} else if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		is = fields[i].is
	}
	raw := Quote(value)
	isNumber := is == schemas()["int"] || is == schemas()["u64"]
	if (isNumber || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && syntax([]byte(value)) == nil {
		raw = compact([]byte(value))
	}
	if _, wrong := is.canonical(0, raw); wrong != nil {
		return nil, errors.New(wrong.Msg)
	}
	return raw, nil
}
