package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// AsWire writes the event in one line as the owner of a vocabulary would; false if it has no counterpart there. What
// came in that vocabulary is written in canonical form; unknown kinds and the current ACP are written as they came. An
// event of the same kind from elsewhere (a hook, a script, Codex) is translated: unless it says otherwise, its agent is
// the log's owner, its thread the session, and its transport the source.
func AsWire(e *Event, v Vocabulary) ([]byte, bool) {
	o := parseObject(e.Wire)
	typeName, kind := detect(o)
	isTheirs := kind == e.Kind && strings.HasPrefix(typeName, string(v)+".")
	switch {
	case v == Daemon && hasKind(daemonEvent, e.Kind):
		return e.encodeAs(daemonEvent, e.Kind, isTheirs)
	case v == Session && hasKind(sessionEvent, e.Kind):
		return e.encodeAs(sessionEvent, e.Kind, isTheirs)
	case v == Session && e.Kind == "confirm_required" && (e.Source == "pty" || e.Source == "acp" && o == nil): // of a live agent
		return e.encodeAs(sessionEvent, "waiting_for_input", false)
	case v == ACP && e.Kind == TurnCompleted && e.Source == "acp" && o == nil: // of a live agent
		return e.encodeAs(olderNotice, "turn_complete", false)
	case v == ACP && hasKind(olderUpdate, e.Kind) && (isTheirs || o == nil):
		if line, ok := e.encodeAs(olderNotice, e.Kind, isTheirs); ok {
			return line, true
		}
		if e.Text("session", "turn_id") == "" { // else it is half a notification, not a bare update
			return e.encodeAs(olderUpdate, e.Kind, isTheirs)
		}
	}
	return compact(e.Wire), isTheirs
}

// encodeAs writes the event as a kind of a type. isTheirs means that it came in that vocabulary. Members that an event
// from elsewhere lacks are filled in from the log, and so are the optional ones of the daemon's own events.
func (e *Event) encodeAs(typeName, kind string, isTheirs bool) (json.RawMessage, bool) {
	b, s, isDaemon := e.Body(), schemas()[typeName], typeName == daemonEvent
	texts := map[string]string{
		"agent": string(e.Agent), "agent_id": string(e.Agent), "turn_id": b.Text("turn_id"),
		"thread_id": b.Text("thread_id", "session"), "session_id": b.Text("session", "thread_id"),
		"transport": cmp.Or(b.Text("transport"), e.Source), "prompt": b.Text("prompt", "summary"),
		"error_summary": b.Text("summary"),
	}
	if isDaemon {
		texts["status"] = daemonStatus(b.Text("status"))
	}
	o := Object{{Name: s.tag, Value: Quote(kind)}}
	if isTheirs {
		o = parseObject(e.Wire)
	}
	for _, f := range slices.Concat(s.fields, s.kinds[kind]) {
		text, isText := texts[f.name]
		raw := b.Raw(f.name)
		switch {
		case o.Get(f.name) != nil:
		case isText && (isDaemon || text != "" || f.name == "prompt"):
			o = o.With(f.name, Quote(text))
		case !isText && raw != nil:
			o = o.With(f.name, raw)
		case isDaemon:
			o = o.With(f.name, json.RawMessage("0")) // a counter
		}
	}
	out, err := s.object(o)
	return out.Encode(), err == nil
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

// PermissionResponse answers a permission request in the form that its asker expects: a JSON-RPC call gets a response,
// with the current ACP's names if the call used them. result is an acp.RequestPermissionResult.
func PermissionResponse(asked *Event, result json.RawMessage) json.RawMessage {
	call := parseObject(asked.Wire)
	if call.Get("id") == nil || call.Get("method") == nil {
		return result
	}
	options := parseMembers(call.Object("params").Get("options"), '[')
	if isOlder := len(options) > 0 && parseObject(options[0].Value).Has("id"); !isOlder {
		outcome := bytes.Replace(result, []byte(`"option_id":`), []byte(`"optionId":`), 1)
		result = fmt.Appendf(nil, `{"outcome":%s}`, outcome)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.Get("id"), result)
}

// lineFormats are, to the letter, the lines that the daemon and the session channel print for their events.
var lineFormats = map[string]string{
	TurnStarted:         "TurnStarted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	TurnCompleted:       "TurnCompleted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	TurnIdle:            "TurnIdle(agent=$agent, transport=$transport)",
	StreamError:         "StreamError(agent_id=$agent_id, session_id=$session_id, error_summary=$error_summary)",
	DroppedCounters:     "DroppedCounters(agent_id=$agent_id, dropped=$dropped, unknown=$unknown)",
	"agent_output":      "[$stream] $content",
	"draft_ready":       "Draft ready: $draft_id ($artifact_count artifacts) — $summary",
	"goal_complete":     "Goal complete: $goal_id",
	"waiting_for_input": "Waiting for input: $prompt",
	"status_update":     "Status: $message",
}

func ownerLine(kind string, o Object) string {
	return os.Expand(lineFormats[kind], func(name string) string {
		if name == "stream" {
			return strings.Replace(o.Text(name), "std_", "std", 1)
		}
		return plainValue(o.Get(name))
	})
}

// plainValue shows a JSON value to people: a string without quotes.
func plainValue(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return unquote(raw)
	}
	return string(raw)
}

// Line describes the event in one line for people, with nothing escaped: its owner's line if there is one, else what
// the event says beyond its kind.
func Line(e *Event) string {
	for _, owner := range []Vocabulary{Daemon, Session} {
		if raw, ok := AsWire(e, owner); ok && lineFormats[e.Kind] != "" {
			return ownerLine(e.Kind, parseObject(raw))
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
	case "message_delta", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		return b.Text("delta", "text")
	}
	var parts []string
	for _, m := range b.members.without("event_type", "update_type", "sessionUpdate", "session_id", "sessionId",
		"jsonrpc", "method", "params", "update") {
		if !isEventField(m.Name) && string(m.Value) != "null" {
			parts = append(parts, m.Name+"="+Clip(plainValue(m.Value), 80))
		}
	}
	return strings.Join(parts, " ")
}
