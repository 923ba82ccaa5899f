package wire

import (
	"bytes"
	"cmp"
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

// foreign says what an object of another vocabulary is: its vocabulary and its
// kind. An object that has a body or an addressee is a message, whatever else
// it carries. A "kind" that is no word of lower-case letters, digits and
// underscores is somebody else's (a Kubernetes manifest has one too).
//
// An update of the current ACP may be bare, in {"sessionId","update"}, or in
// its whole JSON-RPC notification; a request for permission is
// confirm_required. What Codex's app-server says has the kind that it means;
// a method that means nothing here is its own kind, in our letters.
func foreign(o Object) (v Vocabulary, kind string, ok bool) {
	if o.Has("body", "to", "from", "subject") {
		return "", "", false
	}
	if v, kind, ok := call(o); ok {
		return v, kind, true
	}
	for _, tag := range tags {
		if s := o.Text(tag.key); isKind(s) {
			return tag.v, s, true
		}
	}
	if s := o.Object("update").Text("sessionUpdate"); isKind(s) {
		return ACP, s, true
	}
	return "", "", false
}

// call is foreign for what is called: JSON-RPC, with or without its version.
func call(o Object) (v Vocabulary, kind string, ok bool) {
	method := o.Text("method")
	if method == "" {
		return "", "", false
	}
	sure := strings.Contains(method, "/") || method == "error"
	for _, m := range o {
		switch m.Name {
		case "jsonrpc", "emittedAtMs":
			sure = true
		case "method", "params", "id", "trace":
		default:
			return "", "", false // something else that has a method
		}
	}
	params := o.Object("params")
	if !sure || params == nil && o.Get("params") != nil {
		return "", "", false
	}
	switch method {
	case "session/update":
		s := params.Object("update").Text("sessionUpdate")
		return ACP, s, isKind(s)
	case "session/request_permission":
		return ACP, "confirm_required", true
	}
	kind = appServerKind(method, params)
	return AppServer, kind, kind != ""
}

// appServerKind is what a method of Codex's app-server means.
func appServerKind(method string, params Object) string {
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
		status := params.Object("status")
		switch cmp.Or(params.Text("status"), status.Text("type")) {
		case "idle":
			return TurnIdle
		case "systemError":
			return StreamFailed
		case "active":
			flags := status.Get("activeFlags")
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
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// HumanText says whether JSON is what a person says to an interactive session
// (tag "input_type"), and the text that stands for it in a mailbox: the
// message's text, or the kind in words. An error is a *DecodeError of one that
// is no good.
func HumanText(data []byte) (body string, ok bool, err error) {
	tag := members(data).Get("input_type")
	if tag == nil || tag[0] == '"' && !inputKinds.has(unquote(tag)) {
		return "", false, nil
	}
	var h HumanInput
	if err := Unmarshal(data, &h); err != nil {
		return "", true, err
	}
	if h.Kind == "message" {
		return h.Text, true, nil
	}
	words := strings.TrimSuffix(h.String(), ": ")
	return strings.ToLower(words[:1]) + words[1:], true, nil
}
