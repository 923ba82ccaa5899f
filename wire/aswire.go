package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AsWire writes the event as the owner of a vocabulary would, in one line; false when
// it has no counterpart there. What came in that vocabulary is written in its canonical
// form; an unknown kind and the current ACP are written as they came. An event of the
// same kind from elsewhere (a hook, a script, Codex) is written in the vocabulary's
// form: its agent is then the owner of the log, its thread the session, and its
// transport the source, unless the event says otherwise.
func AsWire(e *Event, v Vocabulary) ([]byte, bool) {
	o := members(e.Wire)
	isTheirs := e.isOf(o, v)
	switch {
	case v == Daemon && daemonKinds.has(e.Kind):
		o, err := e.asDaemon()
		if err != nil {
			return nil, false
		}
		line, err := o.MarshalJSON()
		return line, err == nil
	case v == Session && sessionKinds.has(e.Kind):
		return canonical("session.SessionEvent", e.asSession())
	case v == ACP && acpKinds.has(e.Kind) && (len(e.Wire) == 0 || isTheirs && o.Has("update_type")):
		return e.asACP()
	case isTheirs && !(v == Daemon && (ownKinds.has(e.Kind) || mailboxKinds.has(e.Kind))):
		return compact(e.Wire), true
	}
	return nil, false
}

// isOf reports whether the event is kept in this vocabulary.
func (e *Event) isOf(o Object, v Vocabulary) bool {
	of, kind, ok := detect(o)
	return ok && of == v && kind == e.Kind
}

func canonical(typeName string, raw []byte) ([]byte, bool) {
	line, err := records[typeName].read(start(raw), raw)
	return line, err == nil
}

// asDaemon is the event as the daemon's stream has it. What the event does not say
// itself is taken from the log.
func (e *Event) asDaemon() (Object, error) {
	b := e.Body()
	var said Object
	if e.isOf(b.wire[2], Daemon) {
		said = b.wire[2]
	}
	texts := map[string]string{
		"agent": string(e.Agent), "agent_id": string(e.Agent), "turn_id": b.Text("turn_id"), "thread_id": b.Text("thread_id", "session"),
		"session_id": b.Text("session", "session_id", "thread_id"), "transport": cmp.Or(b.Text("transport"), e.Source),
		"error_summary": b.Text("summary", "error_summary", "message"), "status": daemonStatus(b.Text("status")),
	}
	o := Object{{Name: "kind", Value: Quote(e.Kind)}}
	for _, f := range daemonKinds.find(e.Kind).fields {
		raw := said.Get(f.name)
		if text, ok := texts[f.name]; raw == nil && ok {
			raw = Quote(text)
		} else if raw == nil {
			n, _ := b.Uint(f.name)
			raw = strconv.AppendUint(nil, n, 10)
		}
		o = append(o, Member{Name: f.name, Value: raw})
	}
	out, err := records["daemon.DaemonStreamEvent"].canonicalObject(0, o)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// daemonStatus is the daemon's word for how a turn ended.
func daemonStatus(status string) string {
	switch status {
	case "", "completed":
		return "completed"
	case "interrupted", "cancelled":
		return "interrupted"
	}
	return "failed"
}

// daemonLines are the name and the fields in the daemon's own line for an event.
var daemonLines = map[string][]string{
	TurnStarted:     {"TurnStarted", "agent", "turn_id", "transport"},
	TurnCompleted:   {"TurnCompleted", "agent", "turn_id", "transport"},
	TurnIdle:        {"TurnIdle", "agent", "transport"},
	StreamFailed:    {"StreamError", "agent_id", "session_id", "error_summary"},
	DroppedCounters: {"DroppedCounters", "agent_id", "dropped", "unknown"},
}

func daemonLine(o Object) string {
	line, shown := daemonLines[o.Text("kind")], []string{}
	for _, name := range line[1:] {
		value := string(o.Get(name))
		if value[0] == '"' {
			value = o.Text(name)
		}
		shown = append(shown, name+"="+value)
	}
	return line[0] + "(" + strings.Join(shown, ", ") + ")"
}

// asSession is the event with the session channel's tag.
func (e *Event) asSession() []byte {
	switch {
	case e.isOf(members(e.Wire), Session):
		return e.Wire
	case e.Kind == "waiting_for_input":
		asks := Event{Kind: e.Kind}.With("prompt", e.Text("prompt", "summary"))
		return asks.tagged("event_type")
	}
	return e.tagged("event_type")
}

// asACP is an event of the older client, with or without its turn beside it.
func (e *Event) asACP() ([]byte, bool) {
	raw := []byte(e.Wire)
	if len(raw) == 0 {
		raw = e.tagged("update_type")
	}
	if line, ok := canonical("acp.SessionUpdateNotification", raw); ok {
		return line, true
	}
	if members(raw).Has("session_id", "turn_id") {
		return compact(e.Wire), len(e.Wire) > 0 // half a notification has no canonical form
	}
	return canonical("acp.SessionUpdate", raw)
}

// tagged is the event's own fields with the tag of a vocabulary.
func (e *Event) tagged(tag string) []byte {
	var o Object
	for _, m := range []struct{ name, value string }{{"session_id", e.Session}, {"turn_id", e.TurnID}, {tag, e.Kind}} {
		if m.value != "" {
			o = append(o, Member{Name: m.name, Value: Quote(m.value)})
		}
	}
	raw, _ := append(o, members(e.Extra)...).MarshalJSON()
	return raw
}

// display is the line without the kind where that would be all. Events of the daemon's
// stream and of the session channel have their owners' lines, to the letter.
func display(e *Event) string {
	switch {
	case daemonKinds.has(e.Kind):
		if o, err := e.asDaemon(); err == nil {
			return daemonLine(o)
		}
	case sessionKinds.has(e.Kind):
		var s SessionEvent
		if Unmarshal(e.asSession(), &s) == nil {
			return s.String()
		}
	}
	b := e.Body()
	s := ""
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
	case "message_delta":
		s = b.Text("delta")
	case "tool_call", "tool_call_start", "tool_call_update", "tool_call_end":
		s = joined(" ", b.Text("tool"), b.Text("tool_call_id"), b.Text("status"))
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		raw, _ := b.Value("content", "text")
		s = unquote(raw)
	default:
		for _, m := range b.ownFields() {
			v := cmp.Or(unquote(m.Value), string(m.Value))
			if IsID(v) {
				v = ID(v).Short(6)
			}
			s = joined(" ", s, m.Name+"="+clip(v, 80))
		}
		s = cmp.Or(s, b.Text("status", "summary", "prompt", "text"))
	}
	return clip(s, 400)
}

// Line is the event in one line for people; nothing in it is escaped. To an owner's line
// it adds how a turn ended that did not just complete.
func Line(e *Event) string {
	s := display(e)
	if e.Kind == TurnCompleted {
		if o, err := e.asDaemon(); err == nil && o.Text("status") != "completed" {
			s += ", " + o.Text("status")
		}
	}
	return s
}

// envelopeFields name a kind, a session or what is around an update.
var envelopeFields = []string{"event_type", "update_type", "sessionUpdate", "session_id", "sessionId", "jsonrpc", "method", "params", "update"}

// ownFields are the event's own fields; of one that is kept under Wire, those of the
// innermost object that has any beside the common ones.
func (b Body) ownFields() (out Object) {
	if len(b.own) > 0 {
		return b.own
	}
	for _, level := range b.wire {
		for _, m := range level {
			if !slices.Contains(eventFields, m.Name) && !slices.Contains(envelopeFields, m.Name) && string(m.Value) != "null" {
				out = append(out, m)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// joined joins the parts that are not empty.
func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

// clip shortens to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
