package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// atm's own kinds, with the ids that an event from outside may have.
var (
	runnerEvent = taggedAll("kind", func() kinds {
		return kinds{
			"session_start":    {optional("source", text)},
			"session_end":      {optional("reason", text)},
			"spawned":          {optional("pid", integer)},
			"state_change":     {optional("new", text), optional("previous", text), optional("detail", text), optional("evidence", text)},
			"confirm_required": {optional("tool", text), optional("prompt", text), optional("id", text), optional("options", anyArray), optional("input", text), optional("dialog", text)},
			"exited":           {optional("code", integer), optional("signal", text)},
			"restarting":       {optional("attempt", integer), optional("pause_ms", integer)},
			wire.Usage: {
				optional(wire.FieldInputTokens, tokens), optional(wire.FieldOutputTokens, tokens), optional(wire.FieldCachedTokens, tokens),
				optional(wire.FieldTotalTokens, tokens), optional(wire.FieldCost, amount), optional(wire.FieldCurrency, currency),
				optional(wire.FieldContextUsed, tokens), optional(wire.FieldContextSize, tokens),
			},
		}
	}, ownIDs)
	mailboxEvent = taggedAll("kind", func() kinds {
		return kinds{
			wire.EventAnnounced: {optional("id", text)}, wire.EventAcked: {optional("id", text)}, wire.EventWithdrawn: {optional("id", text)},
			wire.EventInjecting: {optional("id", text)}, wire.EventInjected: {optional("id", text)},
			wire.EventReturned: {optional("id", text)}, wire.EventUnread: {optional("id", text)},
			wire.EventRead:            {optional("id", text), optional("batch", text)},
			wire.EventInjectionFailed: {optional("id", text), optional("outcome", text), optional("reason", text)},
		}
	}, ownIDs)
	// What a program may have used; what is more is a mistake.
	tokens = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) {
		if n, err := strconv.ParseUint(string(raw), 10, 64); err != nil || n > wire.MaxTokens {
			return nil, fmt.Errorf("must be a whole number from 0 to %d", uint64(wire.MaxTokens))
		}
		return raw, nil
	}}
	amount = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) {
		if n, err := strconv.ParseFloat(string(raw), 64); err != nil || !(n >= 0 && n <= wire.MaxCost) {
			return nil, fmt.Errorf("must be a number from 0 to %d", uint64(wire.MaxCost))
		}
		return raw, nil
	}}
	currency = &jsonType{check: func(raw json.RawMessage) (json.RawMessage, error) {
		if code := wire.Unquote(raw); !wire.IsCurrency(code) {
			return nil, errors.New("must be three capital letters, such as USD")
		}
		return raw, nil
	}}
	activity = oneOf("unknown", "starting", "idle", "thinking", "responding", "tool_running", "awaiting_input", "confirming", "exited", "error")
)

func ownIDs() members {
	return members{optional("session", text), optional("session_id", text), optional("sessionId", text),
		optional("turn_id", text), optional("event_id", text)}
}

// CheckKind says why nobody but atm may append an event of a kind, or why the kind is none.
func CheckKind(kind string) error {
	if !isKind(kind) {
		return fmt.Errorf("%q is not a kind: a-z, 0-9 and _, at most 64", wire.Clip(kind, 40))
	}
	if mailboxEvent.hasKind(kind) {
		return fmt.Errorf("%s records what happens to a message, and only atm appends it", kind)
	}
	return nil
}

// Slip returns the known kind of which an unknown one is a slip, as isSlip says; "": none.
func Slip(kind string, isSlip func(word, name string) bool) string {
	for _, t := range eventTypes {
		for _, name := range slices.Sorted(maps.Keys(t.kinds())) {
			if !typeOf(kind).hasKind(kind) && isSlip(kind, name) {
				return name
			}
		}
	}
	return ""
}

// ParseField returns the JSON of a field that somebody types: a string, unless it is a JSON object or array, or the
// field of that kind is a number. It refuses what the kind's owner would.
func ParseField(kind, name, value string) (json.RawMessage, error) {
	want := anything
	for _, f := range typeOf(kind).kinds()[kind] {
		if f.name == name {
			want = f.typ
		}
	}
	if kind == "state_change" && name == "new" {
		want = activity // the log accepts any; here a typing error is caught
	}
	raw := wire.Compact([]byte(value))
	isNumber := slices.Contains([]*jsonType{integer, uint64s, tokens, amount}, want)
	if raw == nil || !isNumber && raw[0] != '{' && raw[0] != '[' {
		raw = wire.Quote(value)
	}
	return want.canonical(raw)
}

// isKind reports whether s can be a kind: a word of a-z, 0-9 and _.
func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// isAnswer reports whether a kind of event answers a request of the older ACP.
func isAnswer(kind string) bool { return kind == "permission_result" || kind == "tool_result" }

// IsHearsay reports whether the event is an answer to a request that neither atm approve nor atm reject has given: these
// alone say, at the top of the event, by whom. Whoever follows the log for an answer must not get it.
func IsHearsay(e *wire.Event) bool { return isAnswer(e.Kind) && e.Field("by") == "" }
