package wire

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
)

// Vocabulary is one of the systems whose events are understood.
type Vocabulary string

// The vocabularies, named by who speaks them.
const (
	Daemon    Vocabulary = "daemon"     // tag "kind"; the kinds of our own too
	Session   Vocabulary = "session"    // tag "event_type"
	ACP       Vocabulary = "acp"        // tags "update_type" and "sessionUpdate"
	AppServer Vocabulary = "app-server" // Codex: "method" and "params"
)

// tags tell the vocabularies apart. An object may have several: a tool call of
// ACP has a "kind".
var tags = []struct {
	key string
	v   Vocabulary
}{{"event_type", Session}, {"sessionUpdate", ACP}, {"update_type", ACP}, {"kind", Daemon}}

// Foreign says what an object of another vocabulary is: its vocabulary and its
// kind. An object that has a body or an addressee is a message, whatever else
// it carries. A "kind" that is no word of lower-case letters, digits and
// underscores is somebody else's (a Kubernetes manifest has one too).
//
// An update of the current ACP may be bare, in {"sessionId","update"}, or in
// its whole JSON-RPC notification; a request for permission is
// confirm_required. What Codex's app-server says has the kind that it means;
// a method that means nothing here is its own kind, in our letters.
func Foreign(fields []Field) (v Vocabulary, kind string, ok bool) {
	for _, f := range fields {
		switch f.Key {
		case "body", "to", "from", "subject":
			return "", "", false
		}
	}
	if v, kind, ok := call(fields); ok {
		return v, kind, true
	}
	for _, tag := range tags {
		for _, f := range fields {
			if f.Key != tag.key {
				continue
			}
			if s, err := decodeString(f.Raw); err == nil && isKind(s) {
				return tag.v, s, true
			}
		}
	}
	if s := str(find(inside(find(fields, "update")), "sessionUpdate")); isKind(s) {
		return ACP, s, true
	}
	return "", "", false
}

// call is Foreign for what is called: JSON-RPC, with or without its version.
func call(fields []Field) (v Vocabulary, kind string, ok bool) {
	method := str(find(fields, "method"))
	if method == "" {
		return "", "", false
	}
	sure := strings.Contains(method, "/") || method == "error"
	for _, f := range fields {
		switch f.Key {
		case "jsonrpc", "emittedAtMs":
			sure = true
		case "method", "params", "id", "trace":
		default:
			return "", "", false // something else that has a method
		}
	}
	params := inside(find(fields, "params"))
	if !sure || params == nil && find(fields, "params") != nil {
		return "", "", false
	}
	switch method {
	case "session/update":
		s := str(find(inside(find(params, "update")), "sessionUpdate"))
		return ACP, s, isKind(s)
	case "session/request_permission":
		return ACP, "confirm_required", true
	}
	kind = appServerKind(method, params)
	return AppServer, kind, kind != ""
}

// appServerKind is what a method of Codex's app-server means.
func appServerKind(method string, params []Field) string {
	switch method {
	case "turn/started":
		return TurnStarted
	case "turn/completed":
		return TurnCompleted
	case "thread/started":
		return "session_start"
	case "thread/closed":
		return "session_end"
	case "error":
		return StreamFailed
	case "thread/status/changed":
		status := find(params, "status")
		is := str(status)
		if is == "" {
			is = str(find(inside(status), "type"))
		}
		switch is {
		case "idle":
			return TurnIdle
		case "systemError":
			return StreamFailed
		case "active":
			flags := find(inside(status), "activeFlags")
			switch {
			case bytes.Contains(flags, []byte(`"waitingOnApproval"`)):
				return "confirm_required"
			case bytes.Contains(flags, []byte(`"waitingOnUserInput"`)):
				return "waiting_for_input"
			}
			return "thread_active"
		}
	}
	var b strings.Builder
	for i := 0; i < len(method) && b.Len() < 63; i++ {
		switch c := method[i]; {
		case c >= 'A' && c <= 'Z': // agentMessage is agent_message
			b.WriteByte('_')
			b.WriteByte(c + 'a' - 'A')
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteByte(c)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

func isKind(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// HumanText says whether an object is what a person says to an interactive
// session (tag "input_type"), and the text that stands for it in a mailbox:
// the message's text, or the kind in words. data is the whole text that the
// fields were taken from. An error is a *DecodeError of one that is no good.
func HumanText(data []byte, fields []Field) (body string, ok bool, err error) {
	raw := find(fields, "input_type")
	if raw == nil || raw[0] == '"' && !slices.Contains(planOf(reflect.TypeFor[HumanInput]())[0].kinds, str(raw)) {
		return "", false, nil
	}
	h, err := Parse[HumanInput](data)
	if err != nil {
		return "", true, err
	}
	if h.Kind == "message" {
		return h.Text, true, nil
	}
	words := strings.TrimSuffix(h.String(), ": ")
	return strings.ToLower(words[:1]) + words[1:], true, nil
}
