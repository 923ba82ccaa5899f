package foreign

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// fields are the fields of events that others name differently or keep deeper: the plain name, then where else the
// value may be. What others say at the top of their object under the plain name is not copied.
var fields = []struct{ name, paths string }{
	{"thread_id", "threadId thread.id"},
	{"transport", ""},
	{"status", "turn.status"},
	{"stopReason", ""},
	{"prompt", "toolCall.title"},
	{"response", ""},
	{"delta", "content.text"},
	{"title", ""},
	{"tool", "tool_name tool_info.tool.name tool_call.name request.tool_call.name toolCall.title toolCall.name"},
	{"tool_call_id", "toolCallId tool_call.id request.tool_call.id toolCall.toolCallId toolCall.id"},
	{"tool_calls", ""},
	{"arguments", "tool_call.arguments request.tool_call.arguments toolCall.arguments rawInput toolCall.rawInput"},
	{"result", "rawOutput"},
	{"timestamp", "tool_call.timestamp toolCall.timestamp"},
	{"request_id", "request.request_id"},
	{"options", ""},
	{"previous", "prev_state"},
	{"new", "new_state"},
	{"code", "exit_code"},

	// of a session that is made or loaded
	{"state", "session.state"},
	{"created_at", "session.created_at"},
	{"last_activity_at", "session.last_activity_at"},
	{"metadata", "session.metadata"},
	{"turn_count", "session.turn_count"},
	{"workspace", ""},
	{"model_preferences", ""},
}

// maxCopy is the size of the largest value that is copied, so that the event still fits in a line of the log.
const maxCopy = 1 << 20

// Where others keep the ids that an event of ours has at its top.
const (
	sessionPaths = "session session_id sessionId session.session_id"
	turnPaths    = "turn_id turnId turn.id"
)

// Translate gives an event atm's own kind and, beside Wire, the fields that others call or place differently. An event
// in atm's own words stays as it is.
func Translate(e wire.Event) wire.Event {
	whole, _ := wire.ReadObject(e.Wire)
	extra, _ := wire.ReadObject(e.Extra)
	f := detect(whole)
	// An update, the params or the result around it, and the whole of the object.
	var update, params wire.Object
	if call := detectCall(whole); call.typ != nil {
		params = append(whole.Object("params"), whole.Object("result")...)
	}
	for _, around := range []wire.Object{whole, params} {
		if inner := around.Object("update"); inner.Has("sessionUpdate") {
			update = inner
		}
	}
	members := slices.Concat(extra, update, params, whole)
	text := func(paths string) string { return wire.Unquote(find(members, paths, isText)) }
	if e.Session == "" {
		e.Session = text(sessionPaths)
	}
	if e.TurnID == "" {
		e.TurnID = text(turnPaths)
	}
	seen := slices.Concat(extra, whole) // what Event.Text finds
	add := func(name string, value json.RawMessage) {
		if value != nil && len(value) <= maxCopy && seen.Get(name) == nil {
			extra = extra.With(name, value)
		}
	}
	kind := ownKind(e.Kind, text("status"), text("state"))
	if e.Wire == nil && kind == e.Kind {
		return e // it is in our own words
	}
	e.Kind = kind
	for _, field := range fields {
		add(field.name, find(members, field.name+" "+field.paths, nil))
	}
	isCodex := f.typ == codexCall || f.typ == codexTurnCall
	if isCodex {
		add("transport", wire.Quote("app-server"))
	}
	switch e.Kind {
	case wire.TurnStarted:
		add("prompt", quoteUnlessEmpty(PromptText(find(members, "content", nil))))
	case wire.TurnCompleted:
		if status := text("status turn.status"); isCodex && find(members, "status turn.status", nil) != nil && status != "completed" && status != "interrupted" {
			extra = extra.With("status", wire.Quote("failed")) // also inProgress and the thread's systemError, with which no turn completes
		}
	case "tool_call_start", "tool_call_end", "tool_call_update", "confirm_required":
		add("tool", find(members, "title", nil))
	case wire.Usage: // its cost is an object
		for name, path := range map[string]string{
			wire.FieldContextUsed: "used", wire.FieldContextSize: "size", wire.FieldCost: "cost.amount", wire.FieldCurrency: "cost.currency",
		} {
			if value := find(members, path, nil); value != nil {
				extra = extra.With(name, value)
			}
		}
	case wire.StreamError:
		add("error_summary", find(members, "error.message summary message", isText))
	}
	if len(extra) > 0 {
		e.Extra = extra.Encode()
	}
	return e
}

// ownKind returns atm's word for a kind of ACP; any other kind is atm's own, or is kept.
func ownKind(kind, status, state string) string {
	switch kind {
	case "turn_complete":
		return wire.TurnCompleted
	case "error":
		return wire.StreamError
	case "usage_update":
		return wire.Usage
	case "agent_message_chunk":
		return "message_delta"
	case "agent_thought_chunk":
		return "thought_delta"
	case "tool_call", "tool_call_update":
		switch {
		case status == "completed" || status == "failed":
			return "tool_call_end"
		case status == "in_progress" || kind == "tool_call":
			return "tool_call_start"
		}
	case "state_update": // of the second version of ACP
		switch state {
		case "running":
			return "thread_active"
		case "requires_action":
			return "confirm_required"
		case "idle":
			return wire.TurnCompleted
		}
	}
	return kind
}

func isText(raw json.RawMessage) bool { return wire.Unquote(raw) != "" }

func quoteUnlessEmpty(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return wire.Quote(s)
}

// find returns the first value at one of the paths, which are members or members of members, that is not null and, if
// there is such a function, accepted.
func find(members wire.Object, paths string, accept func(json.RawMessage) bool) json.RawMessage {
	for path := range strings.FieldsSeq(paths) {
		words := strings.Split(path, ".")
		for _, m := range members {
			if m.Name != words[0] {
				continue
			}
			raw := m.Value
			for _, inner := range words[1:] {
				o, _ := wire.ReadObject(raw)
				raw = o.Get(inner)
			}
			if raw != nil && string(raw) != "null" && (accept == nil || accept(raw)) {
				return raw
			}
		}
	}
	return nil
}

// PromptText renders an ACP prompt as text: its parts and their context.
func PromptText(parts json.RawMessage) string {
	var list []json.RawMessage
	_ = wire.Unmarshal(parts, &list) // what is no list has no text
	var texts []string
	for _, part := range list {
		switch o, _ := wire.ReadObject(part); o.Text("type") {
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
