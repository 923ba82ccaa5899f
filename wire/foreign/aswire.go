package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// AsWire writes the event in one line as the owner of a vocabulary would; false if it has no counterpart there. What
// came in that vocabulary is written in canonical form; unknown kinds and the current ACP are written as they came. An
// event of the same kind from elsewhere (a hook, a script, Codex) is translated: unless it says otherwise, its agent is
// the log's owner, its thread the session, and its transport the source.
func AsWire(e *wire.Event, v Vocabulary) ([]byte, bool) {
	o, _ := wire.ReadObject(e.Wire)
	f := detect(o)
	isTheirs := f.owner() == v && (v == ACP || f.kind == e.Kind)
	switch {
	case isTheirs:
		return f.write(e, o)
	case v == Daemon && daemonEvent.hasKind(e.Kind) && (f.owner() != ACP || daemonEvent.hasKind(f.kind)):
		return encodeAs(e, daemonEvent, e.Kind, nil)
	case v == Session && sessionEvent.hasKind(e.Kind):
		return encodeAs(e, sessionEvent, e.Kind, nil)
	case v == Session && e.Kind == "confirm_required" && (e.Source == wire.SourcePTY || e.Source == wire.SourceACP && o == nil): // of a live agent
		return encodeAs(e, sessionEvent, "waiting_for_input", nil)
	case v == ACP && o == nil && e.Kind == "confirm_required" && e.Source == wire.SourceACP: // of a live agent
		return writePermission(e)
	case v == ACP && o == nil:
		return writeUpdate(e)
	}
	return nil, false
}

// write writes an event that came in this form: in canonical form, if it is an event of a kind that the owner knows.
func (f form) write(e *wire.Event, o wire.Object) ([]byte, bool) {
	switch {
	case f.typ == daemonEvent && daemonEvent.hasKind(f.kind), f.typ == sessionEvent && sessionEvent.hasKind(f.kind):
		return encodeAs(e, f.typ, f.kind, o)
	case f.typ == sessionUpdate && sessionUpdate.hasKind(f.kind):
		if line, ok := encodeAs(e, sessionUpdateNotification, f.kind, o); ok {
			return line, true
		}
		if e.Text("session", "turn_id") == "" { // else it is half a notification, not a bare update
			return encodeAs(e, sessionUpdate, f.kind, o)
		}
	}
	return wire.Compact(e.Wire), true
}

// writeUpdate writes an event of ours as an update of the older ACP.
func writeUpdate(e *wire.Event) ([]byte, bool) {
	kind := e.Kind
	switch {
	case e.Source != wire.SourceACP && (kind == wire.TurnCompleted || kind == wire.StreamError): // not of a live agent
		return nil, false
	case kind == wire.TurnCompleted:
		kind = "turn_complete"
	case kind == wire.StreamError:
		kind = "error"
	}
	line, ok := encodeAs(e, sessionUpdateNotification, kind, nil)
	if !ok && e.Text("session", "turn_id") == "" {
		line, ok = encodeAs(e, sessionUpdate, kind, nil)
	}
	return line, ok
}

// writePermission writes a question of ours as a permission request of the older ACP.
func writePermission(e *wire.Event) ([]byte, bool) {
	b := e.Body()
	p := RequestPermissionParams{SessionID: b.Text("session"), ToolCall: ToolCallRecord{
		ID: b.Text("tool_call_id", "id"), Name: b.Text("tool"), Arguments: wire.Quote(b.Text("input", "prompt")), Timestamp: acpTime(e.At),
	}}
	if wire.Unmarshal(b.Raw("options"), &p.Options) != nil {
		return nil, false
	}
	line, err := p.MarshalJSON()
	return line, err == nil
}

// encodeAs writes the event as a kind of a type. o is the object that it came as, if that was in this vocabulary.
// Members that it lacks are filled in from the event and its log.
func encodeAs(e *wire.Event, t *jsonType, kind string, o wire.Object) (json.RawMessage, bool) {
	b, isDaemon := e.Body(), t == daemonEvent
	if !t.hasKind(kind) {
		return nil, false
	}
	texts := map[string]string{
		"agent": cmp.Or(b.Text("agent"), string(e.Agent)), "agent_id": cmp.Or(b.Text("agent_id"), string(e.Agent)), "turn_id": b.Text("turn_id"),
		"thread_id": b.Text("thread_id", "session"), "session_id": b.Text("session", "session_id", "thread_id"),
		"transport": cmp.Or(b.Text("transport"), e.Source), "prompt": b.Text("prompt", "summary"),
		"error_summary": b.Text("error_summary", "summary"),
	}
	if isDaemon {
		texts["status"] = daemonStatus(b.Text("status"))
	}
	if t.tag == "update_type" {
		texts["message"] = b.Text("message", "error_summary")
	}
	if o == nil {
		o = wire.Object{{Name: t.tag, Value: wire.Quote(kind)}}
	}
	for _, f := range t.fieldsOf(kind) {
		words, isText := texts[f.name]
		raw := b.Raw(f.name)
		switch {
		case o.Get(f.name) != nil:
		case isText && (isDaemon || words != "" || f.name == "prompt"):
			o = o.With(f.name, wire.Quote(words))
		case !isText && raw != nil:
			o = o.With(f.name, raw)
		case isDaemon:
			o = o.With(f.name, json.RawMessage("0")) // a counter
		case f.name == "tool_call" && e.Source == wire.SourceACP:
			o = o.With(f.name, toolCall(b))
		}
	}
	out, err := t.object(o)
	return out.Encode(), err == nil
}

// toolCall returns the record of a call that began.
func toolCall(b wire.Body) json.RawMessage {
	line, _ := ToolCallRecord{
		ID: b.Text("tool_call_id"), Name: b.Text("tool"), Arguments: b.Raw("arguments"), Timestamp: b.Text("timestamp"),
	}.MarshalJSON()
	return line
}

// daemonStatus translates how a turn ended into the daemon's words.
func daemonStatus(status string) string {
	switch status {
	case "", "completed", "awaiting_input":
		return "completed"
	case "interrupted", "cancelled":
		return "interrupted"
	}
	return "failed"
}

// IsOlderACP reports whether the event came from a program that speaks the older Agent Client Protocol.
func IsOlderACP(e *wire.Event) bool {
	o, _ := wire.ReadObject(e.Wire)
	f := detect(o)
	return f.owner() == ACP && f.typ != currentUpdate
}

// Response answers a request in the form that its asker expects: a JSON-RPC call gets a response, one for permission with the
// current ACP's names if the call used them. result is a RequestPermissionResult or a ToolExecutionResult.
func Response(asked *wire.Event, result json.RawMessage) json.RawMessage {
	call, _ := wire.ReadObject(asked.Wire)
	if call.Get("id") == nil || call.Get("method") == nil {
		return result
	}
	if call.Object("params").Object("toolCall").Get("toolCallId") != nil { // of the current ACP
		outcome := bytes.Replace(result, []byte(`"option_id":`), []byte(`"optionId":`), 1)
		result = fmt.Appendf(nil, `{"outcome":%s}`, outcome)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.Get("id"), result)
}

// plainValue shows a JSON value to people: a string without quotes.
func plainValue(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return wire.Unquote(raw)
	}
	return string(raw)
}

// isToldElsewhere are the members of a foreign object that an event has at its top, or that are around the rest.
var isToldElsewhere = []string{"seq", "at", "team", "agent", "source", "kind", "session", "turn_id", "event_id", "wire",
	"event_type", "update_type", "sessionUpdate", "session_id", "sessionId", "jsonrpc", "method", "params", "result", "update"}

// Line describes the event in one line for people, with nothing escaped: its owner's line if there is one, else what
// the event says beyond its kind.
func Line(e *wire.Event) string {
	for _, owner := range []Vocabulary{Daemon, Session} {
		if raw, ok := AsWire(e, owner); ok && ownerLines[e.Kind] != "" {
			o, _ := wire.ReadObject(raw)
			return ownerLine(e.Kind, o)
		}
	}
	b := e.Body()
	switch e.Kind {
	case "state_change":
		detail := b.Text("detail")
		if detail != "" {
			detail = "(" + detail + ")"
		}
		return strings.TrimSpace(b.Text("previous") + " → " + b.Text("new") + " " + detail)
	case "exited":
		return cmp.Or(b.Text("signal"), "code "+string(b.Raw("code")))
	case "message_delta", "thought_delta":
		return b.Text("delta")
	}
	extra, _ := wire.ReadObject(e.Extra)
	whole, _ := wire.ReadObject(e.Wire)
	var parts []string
	for _, m := range append(extra, whole.Without(isToldElsewhere...)...) {
		if string(m.Value) != "null" {
			parts = append(parts, m.Name+"="+wire.Clip(plainValue(m.Value), 80))
		}
	}
	return strings.Join(parts, " ")
}
