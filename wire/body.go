package wire

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Body is what an event says beyond the fields that all events have: its own fields
// first, then what is kept under Wire, whatever its vocabulary. It is good as long as
// nobody changes the event.
//
// The names in aliases are found wherever a vocabulary keeps them. Any other name is
// looked for as it is: in the update, then in the params around it, then in the whole.
type Body struct {
	event *Event
	own   Object
	wire  [3]Object // the update, the params, the whole
	codex bool      // a message of Codex's app-server
}

// aliases say where else the vocabularies keep what has a plain name: members, or
// members of members.
var aliases = map[string][][]string{
	"session":      {{"session_id"}, {"sessionId"}},
	"turn_id":      {{"turnId"}, {"turn", "id"}},
	"thread_id":    {{"threadId"}, {"thread", "id"}},
	"status":       {{"turn", "status"}},
	"agent":        {{"agent_id"}, {"slot_id"}},
	"tool":         {{"tool_name"}, {"tool_call", "name"}, {"request", "tool_call", "name"}, {"toolCall", "title"}, {"title"}},
	"tool_call_id": {{"toolCallId"}, {"tool_call", "id"}, {"request", "tool_call", "id"}, {"toolCall", "toolCallId"}},
	"prompt":       {{"toolCall", "title"}},
	"summary":      {{"error_summary"}, {"error", "message"}, {"message"}},
	"previous":     {{"prev_state"}}, // missiond
	"new":          {{"new_state"}},
	"text":         {{"content", "text"}},
	"code":         {{"exit_code"}},
}

// Body reads what is under Wire. An event without one, or with one that is no object,
// has only its own fields.
func (e *Event) Body() Body {
	b := Body{event: e, own: members(e.Extra)}
	whole := members(e.Wire)
	b.wire[2] = whole
	if typeName, _ := detectCall(whole); typeName != "" {
		b.wire[1], b.codex = whole.Object("params"), typeName != currentUpdate
	}
	for _, around := range b.wire[1:] {
		if update := around.Object("update"); update.Get("sessionUpdate") != nil {
			b.wire[0] = update
			break
		}
	}
	return b
}

// values are the values that a name has, the event's own first.
func (b Body) values(name string) []json.RawMessage {
	switch {
	case name == "session" && b.event.Session != "":
		return []json.RawMessage{Quote(b.event.Session)}
	case name == "turn_id" && b.event.TurnID != "":
		return []json.RawMessage{Quote(b.event.TurnID)}
	}
	all := []json.RawMessage{b.own.Get(name)}
	for _, path := range append([][]string{{name}}, aliases[name]...) {
		all = append(all, b.at(path))
	}
	return slices.DeleteFunc(all, func(raw json.RawMessage) bool { return raw == nil })
}

// at is the value at a path of members, in the innermost object that has the first.
func (b Body) at(path []string) json.RawMessage {
	for _, level := range b.wire {
		if raw := level.Get(path[0]); raw != nil {
			for _, name := range path[1:] {
				raw = members(raw).Get(name)
			}
			return raw
		}
	}
	return nil
}

// Raw is the value of a name, nil when there is none or it is null.
func (b Body) Raw(name string) json.RawMessage {
	if all := b.values(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Text is the first of the names that is a string and not empty, else "".
func (b Body) Text(names ...string) string {
	for _, name := range names {
		if s := b.text(name); s != "" {
			return s
		}
	}
	return ""
}

// text passes over what is no string or empty, which Raw does not: status is an object
// where Codex speaks of a thread.
func (b Body) text(name string) (s string) {
	for _, raw := range b.values(name) {
		if s = unquote(raw); s != "" {
			break
		}
	}
	switch {
	case name == "transport" && s == "" && b.codex:
		return "app-server"
	case name == "status" && s == "inProgress" && b.codex && b.event.Kind == TurnCompleted:
		return "failed" // no status that a completed turn can have
	}
	return s
}

// Uint is a whole number of 64 bits, exactly.
func (b Body) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(string(b.Raw(name)), 10, 64)
	return n, err == nil
}

// These read the body for one look.
func (e *Event) Text(names ...string) string     { return e.Body().Text(names...) }
func (e *Event) Uint(name string) (uint64, bool) { return e.Body().Uint(name) }
