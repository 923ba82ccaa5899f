package wire

import (
	"bytes"
	"cmp"
	"maps"
	"regexp"
	"slices"
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

// eventTypes are the types whose kinds are kinds of event.
var eventTypes = []string{daemonEvent, sessionEvent, acpUpdateType, "current.Update", "log.RunnerEvent", mailboxEvent}

const (
	daemonEvent     = "daemon.DaemonStreamEvent"
	sessionEvent    = "session.SessionEvent"
	acpUpdateType   = "acp.SessionUpdate"
	acpNotification = "acp.SessionUpdateNotification"
	mailboxEvent    = "log.MailboxEvent"
)

// hasKind reports whether a type has a kind.
func hasKind(typeName, kind string) bool { _, ok := schemas()[typeName].kinds[kind]; return ok }

// kindOf is the tag of a kind of event, and its fields; that of our own for one that
// nobody knows.
func kindOf(kind string) (tag string, fields []field) {
	for _, name := range eventTypes {
		if hasKind(name, kind) {
			return schemas()[name].tag, schemas()[name].kinds[kind]
		}
	}
	return "kind", nil
}

// Kinds are the kinds of event that mean something here, sorted.
func Kinds() (all []string) {
	for _, name := range eventTypes {
		all = slices.AppendSeq(all, maps.Keys(schemas()[name].kinds))
	}
	slices.Sort(all)
	return all
}

// detect says which vocabulary an object is of, and its kind; "" for none. An object that
// has a body or a recipient is a message, whatever else it carries. A "kind" that is no
// word of lower-case letters, digits and underscores belongs to somebody else (a
// Kubernetes manifest has one too).
//
// An update of the current ACP may be bare, in {"sessionId","update"}, or in its whole
// JSON-RPC notification.
func detect(o Object) (v Vocabulary, kind string) {
	if o.Has("body", "to", "from", "subject") {
		return "", ""
	}
	if v, kind := detectCall(o); v != "" {
		return v, kind
	}
	for _, tag := range tags {
		if s := o.Text(tag.key); isKind(s) {
			return tag.v, s
		}
	}
	if s := o.Object("update").Text("sessionUpdate"); isKind(s) {
		return ACP, s
	}
	return "", ""
}

// detectCall is detect for a call of JSON-RPC, with or without its version.
func detectCall(o Object) (v Vocabulary, kind string) {
	method, params := o.Text("method"), o.Object("params")
	isCall := strings.Contains(method, "/") || method == "error" || method != "" && o.Has("jsonrpc", "emittedAtMs")
	hasMore := len(o.without("jsonrpc", "emittedAtMs", "method", "params", "id", "trace")) > 0
	if !isCall || hasMore || params == nil && o.Get("params") != nil {
		return "", "" // at most something else that has a method
	}
	switch method {
	case "session/update":
		if kind = params.Object("update").Text("sessionUpdate"); isKind(kind) {
			return ACP, kind
		}
		return "", ""
	case "session/request_permission":
		return ACP, "confirm_required"
	}
	return AppServer, appServerKind(method, params)
}

// appServerKinds are the kinds of event that the methods of Codex's app-server mean, and
// the statuses of its threads, with their flags. Any other method is a kind of its own,
// with its name in our letters.
var appServerKinds = map[string]string{
	"turn/started": TurnStarted, "turn/completed": TurnCompleted, "thread/started": "session_start",
	"thread/closed": "session_end", "error": StreamFailed,
	"status idle": TurnIdle, "status systemError": StreamFailed, "status active": "thread_active",
	"status waitingOnApproval": "confirm_required", "status waitingOnUserInput": "waiting_for_input",
}

func appServerKind(method string, params Object) string {
	meaning := method
	if method == "thread/status/changed" {
		status := params.Object("status")
		meaning = "status " + cmp.Or(params.Text("status"), status.Text("type"))
		isActive := meaning == "status active"
		for _, flag := range []string{"waitingOnUserInput", "waitingOnApproval"} { // the last one found counts
			if isActive && bytes.Contains(status.Get("activeFlags"), []byte(`"`+flag+`"`)) {
				meaning = "status " + flag
			}
		}
	}
	if kind := appServerKinds[meaning]; kind != "" {
		return kind
	}
	kind := capital.ReplaceAllStringFunc(method, func(c string) string { return "_" + strings.ToLower(c) }) // agentMessage is agent_message
	kind = notInKind.ReplaceAllString(kind, "_")
	return kind[:min(len(kind), 64)]
}

var (
	capital   = regexp.MustCompile("[A-Z]")
	notInKind = regexp.MustCompile("[^a-z0-9]")
)

func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
