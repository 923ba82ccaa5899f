package wire

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// AsWire writes the event as the owner of a vocabulary would, in one line; false when it has no
// counterpart there. What came in that vocabulary is written in its canonical form; an unknown kind and
// the current ACP are written as they came. An event of the same kind from elsewhere (a hook, a script,
// Codex) is written in the vocabulary's form: its agent is then the owner of the log, its thread the
// session, and its transport the source, unless the event says otherwise.
func AsWire(e *Event, v Vocabulary) ([]byte, bool) {
	o := members(e.Wire)
	typeName, kind := detect(o)
	isTheirs := kind == e.Kind && strings.HasPrefix(typeName, string(v)+".")
	isOlder := isTheirs && typeName != currentCall
	isHalf := e.Session != "" || e.TurnID != "" || o.Has("session_id", "turn_id") // of a notification, if of none
	switch {
	case v == Daemon && hasKind(daemonEvent, e.Kind):
		return e.inForm(daemonEvent, isTheirs)
	case v == Session && hasKind(sessionEvent, e.Kind):
		return e.inForm(sessionEvent, isTheirs)
	case v == Session && e.Kind == "confirm_required" && e.Source == "pty": // of a live agent
		asks := *e
		asks.Kind = "waiting_for_input"
		return asks.inForm(sessionEvent, false)
	case v == ACP && e.Kind == TurnCompleted && e.Source == "acp" && o == nil: // of a live agent
		end := *e
		end.Kind = "turn_complete"
		return end.inForm("acp.SessionUpdateNotification", false)
	case v == ACP && hasKind(olderUpdate, e.Kind) && (isOlder || o == nil):
		if line, ok := e.inForm("acp.SessionUpdateNotification", isTheirs); ok {
			return line, true
		}
		if !isHalf {
			return e.inForm(olderUpdate, isTheirs)
		}
	}
	return compact(e.Wire), isTheirs
}

// inForm is the event as a type of a vocabulary; isTheirs means that it came in this vocabulary. What an
// event from elsewhere lacks is taken from the log, and so is what may be missing in one of the daemon's.
func (e *Event) inForm(typeName string, isTheirs bool) (json.RawMessage, bool) {
	b, s, isDaemon := e.Body(), schemas()[typeName], typeName == daemonEvent
	texts := map[string]string{
		"agent": string(e.Agent), "agent_id": string(e.Agent), "turn_id": b.Text("turn_id"),
		"thread_id": b.Text("thread_id", "session"), "session_id": b.Text("session", "session_id", "thread_id"),
		"transport": cmp.Or(b.Text("transport"), e.Source), "prompt": b.Text("prompt", "summary"),
		"error_summary": b.Text("summary", "error_summary", "message"),
	}
	if isDaemon {
		texts["status"] = daemonStatus(b.Text("status"))
	}
	o := Object{{Name: s.tag, Value: Quote(e.Kind)}}
	if isTheirs {
		o = b.levels[3]
	}
	for _, f := range slices.Concat(s.fields, s.kinds[e.Kind]) {
		text, isText := texts[f.name]
		raw := b.Raw(f.name)
		switch {
		case isTheirs && (!isDaemon || o.Get(f.name) != nil):
		case isText && (isDaemon || text != "" || f.name == "prompt"):
			o = o.With(f.name, Quote(text))
		case !isText && raw != nil:
			o = o.With(f.name, raw)
		case isDaemon:
			o = o.With(f.name, json.RawMessage("0")) // a counter
		}
	}
	out, wrong := s.object(0, o)
	return out.encode(), wrong == nil
}

// PermissionResponse is the answer to a permission request as its asker expects it: to a call of JSON-RPC a response,
// in the names of the current ACP where the call has these. result is an acp.RequestPermissionResult.
func PermissionResponse(asked *Event, result json.RawMessage) json.RawMessage {
	call := members(asked.Wire)
	if call.Get("id") == nil || call.Get("method") == nil {
		return result
	}
	options := split(call.Object("params").Get("options"), '[')
	if isOlder := len(options) > 0 && members(options[0].Value).Has("id"); !isOlder {
		outcome := members(result)
		for i, m := range outcome {
			if m.Name == "option_id" {
				outcome[i].Name = "optionId"
			}
		}
		result = Object{{Name: "outcome", Value: outcome.encode()}}.encode()
	}
	return Object{{Name: "jsonrpc", Value: Quote("2.0")}, {Name: "id", Value: call.Get("id")}, {Name: "result", Value: result}}.encode()
}

// daemonStatus is the daemon's word for how a turn ended.
func daemonStatus(status string) string {
	switch status {
	case "", "completed", "awaiting_input":
		return "completed"
	case "interrupted", "cancelled":
		return "interrupted"
	}
	return "failed"
}

// lines are the lines of the daemon and of the session channel for their events, to the letter, with the
// names of members.
var lines = map[string]string{
	TurnStarted:         "TurnStarted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	TurnCompleted:       "TurnCompleted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	TurnIdle:            "TurnIdle(agent=$agent, transport=$transport)",
	StreamFailed:        "StreamError(agent_id=$agent_id, session_id=$session_id, error_summary=$error_summary)",
	DroppedCounters:     "DroppedCounters(agent_id=$agent_id, dropped=$dropped, unknown=$unknown)",
	"agent_output":      "[$stream] $content",
	"draft_ready":       "Draft ready: $draft_id ($artifact_count artifacts) — $summary",
	"goal_complete":     "Goal complete: $goal_id",
	"waiting_for_input": "Waiting for input: $prompt",
	"status_update":     "Status: $message",
}

func ownersLine(kind string, o Object) string {
	return os.Expand(lines[kind], func(name string) string {
		raw := o.Get(name)
		if name == "stream" {
			return OutputStream(unquote(raw)).String()
		}
		return shown(raw)
	})
}

// shown is a value for people: a string without quotes.
func shown(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return unquote(raw)
	}
	return string(raw)
}

// Line is the event in one line for people; nothing in it is escaped. To its owner's line it adds how a
// turn ended that did not just complete.
func Line(e *Event) string {
	s := display(e)
	if status := daemonStatus(e.Text("status")); e.Kind == TurnCompleted && status != "completed" {
		s += ", " + status
	}
	return s
}

// display is the line without the kind where that would be all: that of its owner, if there is one.
func display(e *Event) string {
	for _, owner := range []Vocabulary{Daemon, Session} {
		if raw, ok := AsWire(e, owner); ok && lines[e.Kind] != "" {
			return ownersLine(e.Kind, members(raw))
		}
	}
	b, s := e.Body(), ""
	switch e.Kind {
	case "state_change":
		s = joined(" ", b.Text("previous"), "→", b.Text("new"))
		if d := b.Text("detail"); d != "" {
			s += " (" + d + ")"
		}
	case "confirm_required":
		s = joined(": ", b.Text("tool"), b.Text("prompt"))
	case "exited":
		s = cmp.Or(b.Text("signal"), "code "+string(b.Raw("code")))
	case "message_delta", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		s = b.Text("delta", "text")
	case "tool_call", "tool_call_start", "tool_call_update", "tool_call_end":
		s = joined(" ", b.Text("tool"), b.Text("tool_call_id"), b.Text("status"))
	default:
		for _, m := range b.ownFields() {
			v := shown(m.Value)
			if IsID(v) {
				v = ID(v).Short(6)
			}
			s = joined(" ", s, m.Name+"="+clip(v, 80))
		}
		s = cmp.Or(s, b.Text("status", "summary", "prompt", "text"))
	}
	return clip(s, 400)
}

// envelopeFields name a kind, a session or what is around an update.
var envelopeFields = []string{
	"event_type", "update_type", "sessionUpdate", "session_id", "sessionId", "jsonrpc", "method", "params", "update",
}

// ownFields are those of the innermost level of the event that has any beside the common ones.
func (b Body) ownFields() (out Object) {
	for _, level := range b.levels {
		for _, m := range level.without(envelopeFields...) {
			if !isEventField(m.Name) && string(m.Value) != "null" {
				out = append(out, m)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
