package wire

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// AsWire writes the event as the owner of a vocabulary would, in one line;
// false when it has no counterpart there. What came in that vocabulary is
// written in its canonical form, of an unknown kind or the current ACP as it
// came. An event of the same kind from elsewhere (a hook, a script, Codex) is
// written in the vocabulary's form: its agent is then the log's owner, its
// thread the session, its transport the source, unless it says them.
func AsWire(e *Event, v Vocabulary) ([]byte, bool) {
	fields := within(e.Wire)
	from, kind, ok := Foreign(fields)
	theirs := ok && from == v && kind == e.Kind
	switch {
	case v == Daemon && IsDaemonKind(e.Kind):
		d, ok := e.daemon()
		return d.append(nil), ok
	case v == Session && slices.Contains(kindsOf[SessionEvent](), e.Kind):
		s, ok := e.session()
		return Encode(s), ok
	case v == ACP && slices.Contains(kindsOf[SessionUpdate](), e.Kind) && (len(e.Wire) == 0 || theirs && has(fields, "update_type")):
		return e.acp()
	case theirs && !(v == Daemon && IsOwnKind(e.Kind)):
		return appendRaw(nil, e.Wire), true
	}
	return nil, false
}

// kindsOf are the variants of a record that is an enum.
func kindsOf[T any]() []string { return planOf(newOf[T]().Type())[0].kinds }

// daemon is the event as the daemon's stream has it.
func (e *Event) daemon() (DaemonStreamEvent, bool) {
	b := e.Body()
	d := DaemonStreamEvent{Kind: e.Kind, Agent: string(e.Agent), TurnID: e.TurnID}
	if v, kind, ok := Foreign(b.wire[2]); ok && v == Daemon && kind == e.Kind {
		// Missing in theirs is what was prepared here.
		d.ThreadID, d.Transport = e.Session, e.Source
		r := reading{data: e.Wire, fields: b.wire[2]}
		return d, d.take(&r, true) == nil
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
	if v, _, ok := Foreign(within(e.Wire)); ok && v == Session {
		s, err := Parse[SessionEvent](e.Wire)
		return s, err == nil
	}
	if e.Kind == "waiting_for_input" {
		return SessionEvent{Kind: e.Kind, Prompt: e.Body().Text("prompt", "summary")}, true
	}
	s, err := Parse[SessionEvent](e.tagged("event_type"))
	return s, err == nil
}

// acp is an event of the older client.
func (e *Event) acp() ([]byte, bool) {
	raw := []byte(e.Wire)
	if len(raw) == 0 {
		raw = e.tagged("update_type")
	}
	if n, err := Parse[SessionUpdateNotification](raw); err == nil {
		return Encode(n), true
	}
	fields := within(raw)
	if has(fields, "session_id") || has(fields, "turn_id") {
		return appendRaw(nil, e.Wire), len(e.Wire) > 0 // half a notification: nobody's canonical form
	}
	u, err := Parse[SessionUpdate](raw)
	return Encode(u), err == nil
}

// tagged is the event's own fields with the tag of a vocabulary.
func (e *Event) tagged(tag string) []byte {
	w := objectWriter{}
	w.str("session_id", e.Session)
	w.str("turn_id", e.TurnID)
	w.text(tag, e.Kind)
	w.fields(e.Extra)
	return w.end()
}

// Display is the event in one line for people, without its kind where that
// would be all; nothing in it is escaped. Events of the daemon's stream and of
// the session channel have their owners' lines, to the letter.
func Display(e *Event) string {
	switch {
	case IsDaemonKind(e.Kind):
		if d, ok := e.daemon(); ok {
			return d.String()
		}
	case slices.Contains(kindsOf[SessionEvent](), e.Kind):
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
	case EventTaken, EventReturned, EventAside:
		s = e.lease()
	case "message_delta":
		s = b.Text("delta")
	case "tool_call", "tool_call_start", "tool_call_update", "tool_call_end":
		s = joined(" ", b.Text("tool"), b.Text("tool_call_id"), b.Text("status"))
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		if raw, ok := b.Value("content", "text"); ok {
			s = str(raw)
		}
	default:
		for _, f := range b.rest() {
			v := string(f.Raw)
			if t := str(f.Raw); IsID(t) {
				v = ID(t).Short(6)
			} else if t != "" {
				v = t
			}
			s = joined(" ", s, f.Key+"="+clip(v, 80))
		}
		if s == "" {
			s = b.Text("status", "summary", "prompt", "text")
		}
	}
	return clip(s, 400)
}

// lease is what became of a message under a lease.
func (e *Event) lease() string {
	s := e.MessageID().Short(6)
	by := strings.TrimSuffix(e.Field("by"), "@"+string(e.Team))
	if e.Kind != EventAside {
		s = joined(" by ", s, by)
	}
	number := func(key string) string {
		for _, f := range e.Extra {
			if f.Key == key {
				return string(f.Raw)
			}
		}
		return ""
	}
	switch e.Kind {
	case EventTaken:
		long := e.Field("lease")
		if strings.HasSuffix(long, "m0s") { // as people write it
			long = strings.TrimSuffix(long, "0s")
		}
		if strings.HasSuffix(long, "h0m") {
			long = strings.TrimSuffix(long, "0m")
		}
		s = joined(" for ", s, long)
		if n := number("try"); n != "" {
			s += ", try " + n
		}
	case EventReturned:
		s = joined(": ", s, e.Field("how"))
	default:
		if n := number("tries"); n != "" {
			s += " after " + n + " tries"
		}
		s = joined(", last by ", s, by)
	}
	return s
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
func (b Body) rest() []Field {
	if len(b.event.Extra) > 0 {
		return b.event.Extra
	}
	var out []Field
	for _, level := range b.wire {
		for _, f := range level {
			if !slices.Contains(eventFields, f.Key) && !slices.Contains(envelope, f.Key) && string(f.Raw) != "null" {
				out = append(out, f)
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
