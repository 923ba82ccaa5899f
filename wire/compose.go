package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Compose makes an event of a kind and of fields as somebody types them. A
// value is a string, except where the kind's field is a number, and where it is
// a JSON object or array. turn_id, session and event_id are what all events
// have. A field that is named as another of those (seq, at, team, agent,
// source) goes, with all the others, under Wire.
func Compose(kind string, pairs [][2]string) (Event, error) {
	e := Event{Kind: kind}
	if !isKind(kind) {
		return e, fmt.Errorf("%q is no kind: a-z, 0-9 and _, at most 64", clip(kind, 40))
	}
	if mailboxKinds.has(kind) {
		return e, fmt.Errorf("%s is evidence of a message, and appended by who moves it", kind)
	}
	g, known := kindOf(kind)
	tag := "kind"
	if known != nil {
		tag = g.tag
	}
	inWire, own, crowded := Object{{Name: tag, Value: Quote(kind)}}, Object{}, false
	for i, p := range pairs {
		key, value := p[0], p[1]
		switch {
		case key == "":
			return e, fmt.Errorf("%q has no name before the =", clip("="+value, 40))
		case key == "kind" || key == tag:
			return e, fmt.Errorf("%s: the kind is %s already", key, kind)
		case slices.ContainsFunc(pairs[:i], func(o [2]string) bool { return o[0] == key }):
			return e, fmt.Errorf("%s stands twice", key)
		}
		is := anything
		if known != nil {
			if at := slices.IndexFunc(known.fields, func(f field) bool { return f.name == key }); at >= 0 {
				is = known.fields[at].is
			}
		}
		if kind == "state_change" && key == "new" {
			is = activities
		}
		raw := json.RawMessage(value)
		switch {
		case is.words == whole.words || is.words == count.words:
		case (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && Valid(raw):
			raw = compact(raw)
		default:
			raw = Quote(value)
		}
		if _, err := is.canonical(0, raw); err != nil {
			return e, fmt.Errorf("%s: %w", key, err)
		}
		member := Member{Name: key, Value: raw}
		inWire = append(inWire, member)
		switch key {
		case "turn_id":
			e.TurnID = value
		case "session":
			e.Session = value
		case "event_id":
			e.EventID = value
		default:
			crowded = crowded || slices.Contains(eventFields, key)
			own = append(own, member)
		}
	}
	var err error
	if crowded {
		e.Wire, err = inWire.MarshalJSON()
	} else if len(own) > 0 {
		e.Extra, err = own.MarshalJSON()
	}
	return e, err
}
