package wire

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Body reads the fields of an event: its own first, then those under Wire, in any vocabulary. Fields with different
// names in different vocabularies are found under the plain names in aliases. Do not change the event while using it.
type Body struct {
	event   *Event
	members Object // of Extra, of the update, of the params around it, and of the whole of Wire
	isCodex bool
}

// aliases says under which other names the vocabularies keep a field: members, or members of members.
var aliases = map[string]string{
	"session":      "session_id sessionId session.session_id",
	"turn_id":      "turnId turn.id",
	"thread_id":    "threadId thread.id",
	"status":       "turn.status",
	"agent":        "agent_id slot_id",
	"tool":         "tool_name tool_call.name request.tool_call.name toolCall.title toolCall.name title",
	"tool_call_id": "toolCallId tool_call.id request.tool_call.id toolCall.toolCallId toolCall.id",
	"request_id":   "request.request_id",
	"result":       "rawOutput",
	"prompt":       "toolCall.title",
	"summary":      "error_summary error.message message",
	"previous":     "prev_state", // missiond
	"new":          "new_state",
	"text":         "content.text",
	"code":         "exit_code",
	"timestamp":    "tool_call.timestamp toolCall.timestamp",
	"arguments":    "tool_call.arguments request.tool_call.arguments toolCall.arguments rawInput toolCall.rawInput",

	// of a loaded session
	"state":            "session.state",
	"created_at":       "session.created_at",
	"last_activity_at": "session.last_activity_at",
	"metadata":         "session.metadata",
	"turn_count":       "session.turn_count",
}

// Body parses Extra and Wire.
func (e *Event) Body() Body {
	var update, params, whole Object = nil, nil, parseObject(e.Wire)
	callType, _ := detectCall(whole)
	if callType != "" {
		params = append(whole.Object("params"), whole.Object("result")...)
	}
	for _, around := range []Object{whole, params} {
		if inner := around.Object("update"); inner.Has("sessionUpdate") {
			update = inner
		}
	}
	return Body{e, slices.Concat(parseObject(e.Extra), update, params, whole), strings.HasPrefix(callType, "codex.")}
}

// values yields every value of a field, the event's own first.
func (b Body) values(name string) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		if name == "session" && b.event.Session != "" && !yield(Quote(b.event.Session)) ||
			name == "turn_id" && b.event.TurnID != "" && !yield(Quote(b.event.TurnID)) {
			return
		}
		for path := range strings.FieldsSeq(name + " " + aliases[name]) {
			words := strings.Split(path, ".")
			for _, m := range b.members {
				if m.Name != words[0] {
					continue
				}
				raw := Object{m}.Get(m.Name)
				for _, inner := range words[1:] {
					raw = parseObject(raw).Get(inner)
				}
				if raw != nil && !yield(raw) {
					return
				}
			}
		}
	}
}

// Raw returns a field's value, nil if it is absent or null.
func (b Body) Raw(name string) json.RawMessage {
	for raw := range b.values(name) {
		return raw
	}
	return nil
}

// Text returns the first of the fields that is a string and not empty, else "".
func (b Body) Text(names ...string) string {
	for _, name := range names {
		if s := b.text(name); s != "" {
			return s
		}
	}
	return ""
}

// text skips values that are not strings: "status" is an object where Codex reports on a thread.
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
		return promptText(b.Raw("content"))
	case name == "status" && b.isCodex && b.event.Kind == TurnCompleted && b.Raw("status") != nil &&
		s != "completed" && s != "interrupted":
		return "failed" // also inProgress and the thread's systemError, with which no turn completes
	}
	return s
}

// promptText renders an ACP prompt as text: its parts and their context.
func promptText(parts json.RawMessage) string {
	var texts []string
	for _, part := range parseMembers(parts, '[') {
		switch o := parseObject(part.Value); o.Text("type") {
		case "text":
			texts = append(texts, o.Text("text"))
		case "context":
			texts = append(texts, fmt.Sprintf("<context path=%q language=%q>\n%s\n</context>", o.Text("path"), o.Text("language"), o.Text("content")))
		case "image":
			texts = append(texts, "["+o.Text("mime_type")+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// Uint returns a field that is a whole number, exact to 64 bits.
func (b Body) Uint(name string) (uint64, bool) {
	n, err := strconv.ParseUint(string(b.Raw(name)), 10, 64)
	return n, err == nil
}

// Text is Body().Text. To read several fields, call Body once.
func (e *Event) Text(names ...string) string { return e.Body().Text(names...) }

// Uint is Body().Uint.
func (e *Event) Uint(name string) (uint64, bool) { return e.Body().Uint(name) }
