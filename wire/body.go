package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Body is what an event says beyond the fields that all events have: its own
// fields first, then what is kept under Wire, whoever's vocabulary that is. It
// is read once; a Body is good as long as nobody changes the event.
//
// These names are found wherever a vocabulary keeps them (a turn's id is
// turn_id, turnId or turn.id): session, turn_id, thread_id, status, transport,
// agent, tool, tool_call_id, prompt, summary, previous, new, code. Any other
// name is looked for as it is, in the update before the params around it and
// these before the whole.
type Body struct {
	event *Event
	wire  [3][]Field // the update, the params, the whole
	codex bool       // a message of Codex's app-server
}

// plain says where else the vocabularies keep what has a plain name: members,
// or members of members.
var plain = []struct {
	name  string
	where [][]string
}{
	{"session", [][]string{{"session_id"}, {"sessionId"}}},
	{"turn_id", [][]string{{"turnId"}, {"turn", "id"}}},
	{"thread_id", [][]string{{"threadId"}, {"thread", "id"}}},
	{"status", [][]string{{"turn", "status"}}},
	{"agent", [][]string{{"agent_id"}, {"slot_id"}}},
	{"tool", [][]string{{"tool_name"}, {"tool_call", "name"}, {"request", "tool_call", "name"}, {"toolCall", "title"}, {"title"}}},
	{"tool_call_id", [][]string{{"toolCallId"}, {"tool_call", "id"}, {"request", "tool_call", "id"}, {"toolCall", "toolCallId"}}},
	{"prompt", [][]string{{"toolCall", "title"}}},
	{"summary", [][]string{{"error_summary"}, {"error", "message"}, {"message"}}},
	{"previous", [][]string{{"prev_state"}}}, // missiond
	{"new", [][]string{{"new_state"}}},
	{"code", [][]string{{"exit_code"}}},
}

// elsewhere is where else a plain name is looked for.
func elsewhere(name string) [][]string {
	for i := range plain {
		if plain[i].name == name {
			return plain[i].where
		}
	}
	return nil
}

// Body reads what is under Wire. An event without one, or with one that is no
// object, has only its own fields.
func (e *Event) Body() Body {
	b := Body{event: e}
	whole := within(e.Wire)
	if whole == nil {
		return b
	}
	b.wire[2] = whole
	if v, _, ok := call(whole); ok {
		b.wire[1], b.codex = inside(find(whole, "params")), v == AppServer
	}
	for _, around := range b.wire[1:] {
		if update := inside(find(around, "update")); find(update, "sessionUpdate") != nil {
			b.wire[0] = update
			break
		}
	}
	return b
}

// find is the value of a key in the innermost object that has it.
func (b Body) find(key string) json.RawMessage {
	for _, level := range b.wire {
		if raw := find(level, key); raw != nil {
			return raw
		}
	}
	return nil
}

// Raw is the value of a name, nil when there is none or it is null.
func (b Body) Raw(name string) json.RawMessage {
	if raw := b.own(name); raw != nil {
		return raw
	}
	if raw := b.find(name); raw != nil {
		return raw
	}
	for _, p := range elsewhere(name) {
		if raw := b.at(p); raw != nil {
			return raw
		}
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

// Uint is a whole number of 64 bits, exactly.
func (b Body) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(string(b.Raw(name)), 10, 64)
	return n, err == nil
}

// Value is the value at a path: a name, and the members to follow from there.
func (b Body) Value(path ...string) (json.RawMessage, bool) {
	if len(path) == 0 {
		return nil, false
	}
	raw := b.Raw(path[0])
	for _, name := range path[1:] {
		raw = find(within(raw), name)
	}
	return raw, raw != nil
}

// Value is Body().Value: for one look.
func (e *Event) Value(path ...string) (json.RawMessage, bool) { return e.Body().Value(path...) }

// Text is Body().Text: for one look.
func (e *Event) Text(names ...string) string { return e.Body().Text(names...) }

// Uint is Body().Uint: for one look.
func (e *Event) Uint(name string) (uint64, bool) { return e.Body().Uint(name) }

// text passes over what is no string or empty, which Raw does not: status is
// an object where Codex speaks of a thread.
func (b Body) text(name string) string {
	switch {
	case name == "session" && b.event.Session != "":
		return b.event.Session
	case name == "turn_id" && b.event.TurnID != "":
		return b.event.TurnID
	}
	if s := str(find(b.event.Extra, name)); s != "" {
		return s
	}
	s := str(b.find(name))
	for _, p := range elsewhere(name) {
		if s != "" {
			break
		}
		s = str(b.at(p))
	}
	switch {
	case name == "transport" && s == "" && b.codex:
		return "app-server"
	case name == "status" && s == "inProgress" && b.codex && b.event.Kind == "turn_completed":
		return "failed" // no status that a completed turn can have
	}
	return s
}

func (b Body) own(name string) json.RawMessage {
	switch {
	case name == "session" && b.event.Session != "":
		return AppendString(nil, b.event.Session)
	case name == "turn_id" && b.event.TurnID != "":
		return AppendString(nil, b.event.TurnID)
	}
	return find(b.event.Extra, name)
}

func (b Body) at(path []string) json.RawMessage {
	raw := b.find(path[0])
	for _, name := range path[1:] {
		raw = find(within(raw), name)
	}
	return raw
}

// find is the value of a key, nil when it is absent or null.
func find(fs []Field, key string) json.RawMessage {
	for i := len(fs) - 1; i >= 0; i-- { // the last of several counts
		if fs[i].Key == key && string(fs[i].Raw) != "null" {
			return fs[i].Raw
		}
	}
	return nil
}

func str(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	s, _ := decodeString(raw)
	return s
}

// within is the members of an object, nil for anything else.
func within(raw json.RawMessage) []Field {
	if !validJSON(raw) {
		return nil
	}
	return inside(raw)
}

// inside is within for what is known to be JSON: a part of such a text, above
// all.
func inside(raw json.RawMessage) []Field {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return members(raw, 0)
}
