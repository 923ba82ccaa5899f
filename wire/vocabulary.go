package wire

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
)

// Vocabulary is one of the systems whose events are understood.
type Vocabulary string

const (
	Daemon    Vocabulary = "daemon"     // tag "kind"; atm's own kinds too
	Session   Vocabulary = "session"    // tag "event_type"
	ACP       Vocabulary = "acp"        // tags "update_type" and "sessionUpdate"
	AppServer Vocabulary = "app-server" // Codex: "method" and "params"
)

// tags tell the vocabularies apart, the first one found. A tool call of ACP has a
// "kind" too.
var tags = []struct {
	key string
	v   Vocabulary
}{{"event_type", Session}, {"sessionUpdate", ACP}, {"update_type", ACP}, {"kind", Daemon}}

// detect says which vocabulary an object is of, and its kind. An object that has a
// body or a recipient is a message, whatever else it carries. A "kind" that is no word
// of lower-case letters, digits and underscores belongs to somebody else (a Kubernetes
// manifest has one too).
//
// An update of the current ACP may be bare, in {"sessionId","update"}, or in its whole
// JSON-RPC notification.
func detect(o Object) (v Vocabulary, kind string, ok bool) {
	if o.Has("body", "to", "from", "subject") {
		return "", "", false
	}
	if v, kind, ok := detectCall(o); ok {
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

// detectCall is detect for a call of JSON-RPC, with or without its version.
func detectCall(o Object) (v Vocabulary, kind string, ok bool) {
	method := o.Text("method")
	if method == "" {
		return "", "", false
	}
	isCall := strings.Contains(method, "/") || method == "error"
	for _, m := range o {
		switch m.Name {
		case "jsonrpc", "emittedAtMs":
			isCall = true
		case "method", "params", "id", "trace":
		default:
			return "", "", false // something else that has a method
		}
	}
	params := o.Object("params")
	if !isCall || params == nil && o.Get("params") != nil {
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

// appServerKind is the kind of event that a method of Codex's app-server means. Any
// other method is a kind of its own, with its name in our letters.
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
		if kind := appServerStatus(params); kind != "" {
			return kind
		}
	}
	kind := capital.ReplaceAllStringFunc(method, func(c string) string { return "_" + strings.ToLower(c) }) // agentMessage is agent_message
	kind = notInKind.ReplaceAllString(kind, "_")
	return kind[:min(len(kind), 64)]
}

var (
	capital   = regexp.MustCompile("[A-Z]")
	notInKind = regexp.MustCompile("[^a-z0-9]")
)

// appServerStatus is the kind of event that the new status of a thread means, "" for
// one that means nothing here.
func appServerStatus(params Object) string {
	status := params.Object("status")
	switch cmp.Or(params.Text("status"), status.Text("type")) {
	case "idle":
		return TurnIdle
	case "systemError":
		return StreamFailed
	case "active":
		switch flags := status.Get("activeFlags"); {
		case bytes.Contains(flags, []byte(`"waitingOnApproval"`)):
			return "confirm_required"
		case bytes.Contains(flags, []byte(`"waitingOnUserInput"`)):
			return "waiting_for_input"
		}
		return "thread_active"
	}
	return ""
}

func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
