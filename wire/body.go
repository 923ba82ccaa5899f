package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Body is what an event says beyond the fields that all events have: its own fields first, then what is
// kept under Wire, whatever its vocabulary. It is good as long as nobody changes the event. The names in
// aliases are found wherever a vocabulary keeps them, any other name as it is.
type Body struct {
	event   *Event
	levels  [4]Object // its own fields; the update, the params around it, the whole
	isCodex bool
}

// aliases say where else the vocabularies keep what has a plain name: members, or members of members.
var aliases = map[string][][]string{
	"session":      {{"session_id"}, {"sessionId"}, {"session", "session_id"}},
	"turn_id":      {{"turnId"}, {"turn", "id"}},
	"thread_id":    {{"threadId"}, {"thread", "id"}},
	"status":       {{"turn", "status"}},
	"agent":        {{"agent_id"}, {"slot_id"}},
	"tool":         {{"tool_name"}, {"tool_call", "name"}, {"request", "tool_call", "name"}, {"toolCall", "title"}, {"toolCall", "name"}, {"title"}},
	"tool_call_id": {{"toolCallId"}, {"tool_call", "id"}, {"request", "tool_call", "id"}, {"toolCall", "toolCallId"}, {"toolCall", "id"}},
	"request_id":   {{"request", "request_id"}},
	"result":       {{"rawOutput"}},
	"prompt":       {{"toolCall", "title"}},
	"summary":      {{"error_summary"}, {"error", "message"}, {"message"}},
	"previous":     {{"prev_state"}}, // missiond
	"new":          {{"new_state"}},
	"text":         {{"content", "text"}},
	"code":         {{"exit_code"}},
	"arguments": {{"tool_call", "arguments"}, {"request", "tool_call", "arguments"}, {"toolCall", "arguments"},
		{"rawInput"}, {"toolCall", "rawInput"}},

	// Of a session that is loaded.
	"state":            {{"session", "state"}},
	"created_at":       {{"session", "created_at"}},
	"last_activity_at": {{"session", "last_activity_at"}},
	"metadata":         {{"session", "metadata"}},
	"turn_count":       {{"session", "turn_count"}},
}

// Body reads what is under Wire. An event without one, or with one that is no object, has only its own fields.
func (e *Event) Body() Body {
	var update, params, whole Object = nil, nil, members(e.Wire)
	typeName, _ := detectCall(whole)
	if typeName != "" {
		params = append(whole.Object("params"), whole.Object("result")...)
	}
	for _, around := range []Object{whole, params} {
		if inner := around.Object("update"); inner.Has("sessionUpdate") {
			update = inner
		}
	}
	return Body{e, [4]Object{members(e.Extra), update, params, whole}, strings.HasPrefix(typeName, "codex.")}
}

// values are the values that a name has, the event's own first.
func (b Body) values(name string) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		if name == "session" && b.event.Session != "" && !yield(Quote(b.event.Session)) ||
			name == "turn_id" && b.event.TurnID != "" && !yield(Quote(b.event.TurnID)) {
			return
		}
		for _, path := range append([][]string{{name}}, aliases[name]...) {
			for _, level := range b.levels {
				raw := level.Get(path[0])
				for _, inner := range path[1:] {
					raw = members(raw).Get(inner)
				}
				if raw != nil && !yield(raw) {
					return
				}
			}
		}
	}
}

// Raw is the value of a name, nil when there is none or it is null.
func (b Body) Raw(name string) json.RawMessage {
	for raw := range b.values(name) {
		return raw
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

// text passes over what is no string or empty, which Raw does not: status is an object where Codex speaks of a thread.
func (b Body) text(name string) (s string) {
	for raw := range b.values(name) {
		if s = unquote(raw); s != "" {
			break
		}
	}
	switch {
	case name == "transport" && s == "" && b.isCodex:
		return "app-server"
	case name == "prompt" && s == "":
		return cmp.Or(promptText(b.Raw("content")), promptText(b.Raw("prompt")))
	case name == "status" && s == "" && b.levels[3].Has("jsonrpc") && members(b.Raw("error")) != nil:
		return "failed"
	case name == "status" && b.isCodex && b.event.Kind == TurnCompleted && b.Raw("status") != nil &&
		s != "completed" && s != "interrupted":
		return "failed" // also what no completed turn has: inProgress, and the thread's systemError
	}
	return s
}

// promptText is a prompt of ACP as text: its parts, and what they are about.
func promptText(parts json.RawMessage) string {
	var texts []string
	for _, part := range split(parts, '[') {
		switch o := members(part.Value); o.Text("type") {
		case "text":
			texts = append(texts, o.Text("text"))
		case "context":
			texts = append(texts, fmt.Sprintf("<context path=%q language=%q>\n%s\n</context>", o.Text("path"), o.Text("language"), o.Text("content")))
		case "image":
			texts = append(texts, "["+cmp.Or(o.Text("mime_type"), o.Text("mimeType"))+"]")
		case "resource":
			texts = append(texts, o.Object("resource").Text("text"))
		case "resource_link":
			texts = append(texts, "["+o.Text("uri")+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// Uint is a whole number of 64 bits, exactly.
func (b Body) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(string(b.Raw(name)), 10, 64)
	return n, err == nil
}

// Text is the first of the names that is a string in the event's body and not empty, else "". For several looks at one
// event, call Body once.
func (e *Event) Text(names ...string) string { return e.Body().Text(names...) }

// Uint is Body's Uint, for one look.
func (e *Event) Uint(name string) (uint64, bool) { return e.Body().Uint(name) }
