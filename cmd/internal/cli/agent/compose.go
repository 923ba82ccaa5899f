package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// errNotPair ends the error for a word that is not k=v.
var errNotPair = errors.New("is not k=v")

// compose makes an event from a kind and the k=v that somebody types. A value is a string, unless it is a JSON object or
// array, or the kind's field is a number.
func compose(kind string, words []string) (wire.Event, error) {
	e, seen := wire.Event{Kind: kind}, map[string]bool{"kind": true}
	if err := foreign.CheckKind(kind); err != nil {
		return e, err
	}
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		switch {
		case !found || name == "":
			return e, fmt.Errorf("%q %w", word, errNotPair)
		case seen[name]:
			return e, fmt.Errorf("%s appears twice", name)
		case name == "by" && foreign.IsHearsay(&e):
			return e, fmt.Errorf("by: only atm approve and atm reject say who has answered")
		}
		seen[name] = true
		raw, err := foreign.ParseField(kind, name, value)
		if err != nil {
			return e, fmt.Errorf("%s: %w", name, err)
		}
		switch name {
		case "turn_id":
			e.TurnID = value
		case "session":
			e.Session = value
		case "event_id":
			e.EventID = value
		default:
			e = e.With(name, raw)
		}
	}
	if kind == wire.Usage && seen[wire.FieldCost] && !seen[wire.FieldCurrency] {
		return e, fmt.Errorf("%s: it needs a currency, such as %s=USD", wire.FieldCost, wire.FieldCurrency)
	}
	if e.Wire != nil { // a field has the name of a member of all events: all are together
		whole, _ := wire.ReadObject(e.Wire)
		rest, _ := wire.ReadObject(e.Extra)
		e.Wire, e.Extra = append(whole, rest...).Encode(), nil
	}
	return foreign.Translate(e), nil
}
