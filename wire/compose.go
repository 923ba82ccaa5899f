package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Compose makes an event of a kind and of fields as somebody types them. A value is a
// string, unless the kind's field is a number or the value is a JSON object or array.
// turn_id, session and event_id become the event's own. If a field has the name of
// another that all events have (seq, at, team, agent, source), all go under Wire.
func Compose(kind string, pairs [][2]string) (Event, error) {
	e := Event{Kind: kind}
	if !isKind(kind) {
		return e, fmt.Errorf("%q is no kind: a-z, 0-9 and _, at most 64", clip(kind, 40))
	}
	if mailboxKinds.has(kind) {
		return e, fmt.Errorf("%s is evidence of a message, and appended by who moves it", kind)
	}
	tag := "kind"
	if g, _ := kindOf(kind); g != nil {
		tag = g.tag
	}
	whole, own, nameTaken := Object{{Name: tag, Value: Quote(kind)}}, Object{}, false
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
		raw, err := typedValue(schemaOf(kind, name), value)
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		member := Member{Name: name, Value: raw}
		whole = append(whole, member)
		switch name {
		case "turn_id":
			e.TurnID = value
		case "session":
			e.Session = value
		case "event_id":
			e.EventID = value
		default:
			nameTaken = nameTaken || slices.Contains(eventFields, name)
			own = append(own, member)
		}
	}
	var err error
	if nameTaken {
		e.Wire, err = whole.MarshalJSON()
	} else if len(own) > 0 {
		e.Extra, err = own.MarshalJSON()
	}
	return e, err
}

// typedValue is the JSON of a value as somebody types it.
func typedValue(is schema, value string) (json.RawMessage, error) {
	raw := json.RawMessage(value)
	switch {
	case is.words == whole.words || is.words == count.words:
	case (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && Valid(raw):
		raw = compact(raw)
	default:
		raw = Quote(value)
	}
	if _, err := is.canonical(0, raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// schemaOf is what a field of a kind has to be.
func schemaOf(kind, name string) schema {
	if kind == "state_change" && name == "new" {
		return activities
	}
	if _, k := kindOf(kind); k != nil {
		for _, f := range k.fields {
			if f.name == name {
				return f.is
			}
		}
	}
	return anything
}
