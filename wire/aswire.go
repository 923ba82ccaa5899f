package wire

import (
	"slices"
	"unicode/utf8"
)

// AsWire writes the event as the owner of a vocabulary would, in one line;
// false when it has no counterpart there. What came in that vocabulary is
// written in its canonical form, of an unknown kind or the current ACP as it
// came. An event of the same kind from elsewhere (a hook, a script, Codex) is
// written in the vocabulary's form: its agent is then the log's owner, its
// thread the session, its transport the source, unless it says them.
func AsWire(e *Event, v Vocabulary) ([]byte, bool) {
	o := members(e.Wire)
	from, kind, ok := foreign(o)
	theirs := ok && from == v && kind == e.Kind
	switch {
	case v == Daemon && daemonKinds.has(e.Kind):
		d, ok := e.daemon()
		return written(d, ok)
	case v == Session && sessionKinds.has(e.Kind):
		s, ok := e.session()
		return written(s, ok)
	case v == ACP && acpKinds.has(e.Kind) && (len(e.Wire) == 0 || theirs && o.Has("update_type")):
		return e.acp()
	case theirs && !(v == Daemon && (ownKinds.has(e.Kind) || mailboxKinds.has(e.Kind))):
		return compact(e.Wire), true
	}
	return nil, false
}

// written is a record as its owner writes it, if there is one.
func written(record any, ok bool) ([]byte, bool) {
	if !ok {
		return nil, false
	}
	line, err := Marshal(record)
	return line, err == nil
}

// daemon is the event as the daemon's stream has it.
func (e *Event) daemon() (DaemonStreamEvent, bool) {
	b := e.Body()
	d := DaemonStreamEvent{Kind: e.Kind, Agent: string(e.Agent), AgentID: string(e.Agent), TurnID: e.TurnID}
	if v, kind, ok := foreign(b.wire[2]); ok && v == Daemon && kind == e.Kind {
		// Missing in theirs is what was prepared here.
		d.ThreadID, d.Transport = e.Session, e.Source
		return d, Unmarshal(e.Wire, &d) == nil
	}
	if d.TurnID == "" {
		d.TurnID = b.Text("turn_id")
	}
	d.ThreadID = b.Text("thread_id", "session")
	if d.Transport = b.Text("transport"); d.Transport == "" {
		d.Transport = e.Source
	}
	d.SessionID = b.Text("session", "session_id", "thread_id")
	d.ErrorSummary = b.Text("summary", "error_summary", "message")
	d.Dropped, _ = b.Uint("dropped")
	d.Unknown, _ = b.Uint("unknown")
	switch s := b.Text("status"); s {
	case "", "completed":
		d.Status = "completed"
	case "interrupted", "cancelled":
		d.Status = "interrupted"
	default:
		d.Status = "failed"
	}
	return d, true
}

// session is the event as the session channel has it; false when it lacks what
// they demand.
func (e *Event) session() (SessionEvent, bool) {
	raw := []byte(e.Wire)
	if v, _, ok := foreign(members(raw)); !ok || v != Session {
		if e.Kind == "waiting_for_input" {
			return SessionEvent{Kind: e.Kind, Prompt: e.Body().Text("prompt", "summary")}, true
		}
		raw = e.tagged("event_type")
	}
	var s SessionEvent
	err := Unmarshal(raw, &s)
	return s, err == nil
}

// acp is an event of the older client.
func (e *Event) acp() ([]byte, bool) {
	raw := []byte(e.Wire)
	if len(raw) == 0 {
		raw = e.tagged("update_type")
	}
	var n SessionUpdateNotification
	if Unmarshal(raw, &n) == nil {
		return written(n, true)
	}
	if members(raw).Has("session_id", "turn_id") {
		return compact(e.Wire), len(e.Wire) > 0 // half a notification: nobody's canonical form
	}
	var u SessionUpdate
	return written(&u, Unmarshal(raw, &u) == nil)
}

// tagged is the event's own fields with the tag of a vocabulary.
func (e *Event) tagged(tag string) []byte {
	var o Object
	for _, m := range []Member{{Name: "session_id", Value: Quote(e.Session)}, {Name: "turn_id", Value: Quote(e.TurnID)}} {
		if string(m.Value) != `""` {
			o = append(o, m)
		}
	}
	o = append(append(o, Member{Name: tag, Value: Quote(e.Kind)}), members(e.Extra)...)
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil
	}
	return raw
}

// Display is the event in one line for people, without its kind where that
// would be all; nothing in it is escaped. Events of the daemon's stream and of
// the session channel have their owners' lines, to the letter.
func Display(e *Event) string {
	switch {
	case daemonKinds.has(e.Kind):
		if d, ok := e.daemon(); ok {
			return d.String()
		}
	case sessionKinds.has(e.Kind):
		if s, ok := e.session(); ok {
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
		if s = b.Text("signal"); s == "" {
			s = "code " + string(b.Raw("code"))
		}
	case "message_delta":
		s = b.Text("delta")
	case "tool_call", "tool_call_start", "tool_call_update", "tool_call_end":
		s = joined(" ", b.Text("tool"), b.Text("tool_call_id"), b.Text("status"))
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		if raw, ok := b.Value("content", "text"); ok {
			s = unquote(raw)
		}
	default:
		for _, m := range b.rest() {
			v := string(m.Value)
			if t := unquote(m.Value); IsID(t) {
				v = ID(t).Short(6)
			} else if t != "" {
				v = t
			}
			s = joined(" ", s, m.Name+"="+clip(v, 80))
		}
		if s == "" {
			s = b.Text("status", "summary", "prompt", "text")
		}
	}
	return clip(s, 400)
}

// Line is Display, and how a turn ended where it did not just complete, which
// their owners' lines leave out.
func Line(e *Event) string {
	s := Display(e)
	if e.Kind == TurnCompleted {
		if d, ok := e.daemon(); ok && d.Status != "completed" {
			s += ", " + string(d.Status)
		}
	}
	return s
}

// rest are the event's own fields; of one that is kept under Wire those there
// which no line says already.
func (b Body) rest() (out Object) {
	if len(b.own) > 0 {
		return b.own
	}
	for _, level := range b.wire {
		for _, m := range level {
			if !slices.Contains(eventFields, m.Name) && !slices.Contains(envelope, m.Name) && string(m.Value) != "null" {
				out = append(out, m)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// envelope are the keys by which a kind, a session or an envelope is named.
var envelope = []string{"event_type", "update_type", "sessionUpdate", "session_id", "sessionId", "jsonrpc", "method", "params", "update"}

func joined(sep string, parts ...string) string {
	s := ""
	for _, p := range parts {
		if s != "" && p != "" {
			s += sep
		}
		s += p
	}
	return s
}

// clip shortens to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n--; n == 0 {
			return s[:i] + "…"
		}
	}
	return s
}
