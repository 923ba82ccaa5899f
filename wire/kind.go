package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kindOf is what the value of a field must be, if it is there and not null.
type kindOf string

const (
	aString  kindOf = "a string"
	aNumber  kindOf = "a whole number"
	aCount   kindOf = "a whole number from 0 to 18446744073709551615"
	anArray  kindOf = "an array"
	anObject kindOf = "an object"
	aUUID    kindOf = "a UUID"
	aStatus  kindOf = "completed, interrupted or failed"
	aStream  kindOf = "std_out or std_err"
)

// kinds are the fields, with their types, of the kinds of runner, hooks and
// mailbox, and of what scripts say in the words of other vocabularies. (Made
// when it is first needed: most commands never do.)
func kinds() map[string]map[string]kindOf {
	kindsOnce.Do(func() { kindsMade = makeKinds() })
	return kindsMade
}

var (
	kindsOnce sync.Once // a sync.OnceValue would be made at every start
	kindsMade map[string]map[string]kindOf
)

func makeKinds() map[string]map[string]kindOf {
	return map[string]map[string]kindOf{
		"session_start":      {"source": aString},
		"session_end":        {"reason": aString},
		"spawned":            {"pid": aNumber},
		"state_change":       {"previous": aString, "new": aString, "detail": aString},
		"confirm_required":   {"id": aString, "prompt": aString, "tool": aString, "input": aString, "dialog": aString, "options": anArray},
		"exited":             {"code": aNumber, "signal": aString},
		"restarting":         {"attempt": aNumber, "pause_ms": aNumber},
		EventAnnounced:       {"id": aString},
		EventRead:            {"id": aString, "batch": aString},
		EventAcked:           {"id": aString},
		EventWithdrawn:       {"id": aString},
		EventInjecting:       {"id": aString},
		EventInjected:        {"id": aString},
		EventInjectionFailed: {"id": aString, "outcome": aString, "reason": aString},
		EventTaken:           {"id": aString, "by": aString, "lease": aString, "try": aNumber},
		EventReturned:        {"id": aString, "by": aString, "how": aString},
		EventAside:           {"id": aString, "tries": aNumber},
		EventAgain:           {"id": aString, "by": aString},

		TurnStarted:     {},
		TurnCompleted:   {"status": aStatus},
		TurnIdle:        {},
		StreamFailed:    {},
		DroppedCounters: {"dropped": aCount, "unknown": aCount},

		"agent_output":      {"stream": aStream},
		"draft_ready":       {"draft_id": aUUID, "artifact_count": aCount},
		"goal_complete":     {"goal_id": aUUID},
		"waiting_for_input": {},
		"status_update":     {},

		"message_delta":   {},
		"tool_call_start": {"tool_call": anObject},
		"tool_call_end":   {},
		"turn_complete":   {},
		"error":           {},
		"server_request":  {"request": anObject},
	}
}

// currentKinds are the updates of the Agent Client Protocol, version 1.
var currentKinds = []string{
	"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
	"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update",
}

// Kinds are the kinds of event that mean something here, sorted.
func Kinds() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(kinds())), currentKinds...)))
}

// IsOwnKind reports whether a kind is of the runner, the hooks or the mailbox.
func IsOwnKind(kind string) bool {
	_, known := kinds()[kind]
	return known && tagOf(kind) == "kind" && !IsDaemonKind(kind)
}

// tagOf is the tag by which a kind's owner names it.
func tagOf(kind string) string {
	switch {
	case slices.Contains(kindsOf[SessionEvent](), kind):
		return "event_type"
	case slices.Contains(kindsOf[SessionUpdate](), kind):
		return "update_type"
	case slices.Contains(currentKinds, kind):
		return "sessionUpdate"
	}
	return "kind"
}

func (k kindOf) fits(raw json.RawMessage) bool {
	if string(raw) == "null" {
		return true
	}
	switch k {
	case aString:
		return raw[0] == '"'
	case anArray:
		return raw[0] == '['
	case anObject:
		return raw[0] == '{'
	case aUUID:
		_, err := ParseUUID(str(raw))
		return err == nil
	case aStatus, aStream, activities:
		return slices.Contains(strings.FieldsFunc(string(k), func(r rune) bool { return r == ' ' || r == ',' }), str(raw)) && str(raw) != "or"
	case aCount:
		_, err := strconv.ParseUint(string(raw), 10, 64)
		return err == nil
	}
	_, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil
}

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
	if IsMailboxKind(kind) {
		return e, fmt.Errorf("%s is evidence of a message, and appended by who moves it", kind)
	}
	whole := objectWriter{}
	whole.text(tagOf(kind), kind)
	crowded := false
	for i, p := range pairs {
		key, value := p[0], p[1]
		switch {
		case key == "":
			return e, fmt.Errorf("%q has no name before the =", clip("="+value, 40))
		case key == "kind" || key == tagOf(kind):
			return e, fmt.Errorf("%s: the kind is %s already", key, kind)
		case slices.ContainsFunc(pairs[:i], func(o [2]string) bool { return o[0] == key }):
			return e, fmt.Errorf("%s stands twice", key)
		}
		raw := json.RawMessage(value)
		want := kinds()[kind][key]
		if kind == "state_change" && key == "new" {
			want = activities
		}
		switch {
		case want == aNumber || want == aCount:
		case (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")) && json.Valid(raw):
			raw = appendValue(nil, raw)
		default:
			raw = AppendString(nil, value)
		}
		if want != "" && !(json.Valid(raw) && want.fits(raw)) {
			return e, fmt.Errorf("%s: must be %s", key, want)
		}
		whole.raw(key, raw)
		switch key {
		case "turn_id":
			e.TurnID = value
		case "session":
			e.Session = value
		case "event_id":
			e.EventID = value
		default:
			crowded = crowded || slices.Contains(eventFields, key)
			e.Extra = append(e.Extra, Field{Key: key, Raw: raw})
		}
	}
	if crowded {
		e.Extra, e.Wire = nil, whole.end()
	}
	return e, nil
}
