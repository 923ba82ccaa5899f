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
	Daemon  Vocabulary = "daemon"  // tag "kind"; atm's own kinds too
	Session Vocabulary = "session" // tag "event_type"
	ACP     Vocabulary = "acp"     // tags "update_type" and "sessionUpdate"
)

// The types of event in vocabularies.txt, and Codex's calls.
const (
	daemonEvent   = "daemon.DaemonStreamEvent"
	sessionEvent  = "session.SessionEvent"
	olderUpdate   = "acp.SessionUpdate"
	currentUpdate = "acp.CurrentUpdate"
	currentCall   = "acp.Call"
	runnerEvent   = "log.RunnerEvent"
	mailboxEvent  = "log.MailboxEvent"
)

// eventTypes are the types whose kinds are kinds of event. Their tags tell the vocabularies apart, the
// first one found: a tool call of ACP has a "kind" too.
var eventTypes = []string{sessionEvent, currentUpdate, olderUpdate, daemonEvent, runnerEvent, mailboxEvent}

func hasKind(typeName, kind string) bool { _, ok := schemas()[typeName].kinds[kind]; return ok }

// Kinds are the kinds of event in the vocabularies.
func Kinds() (kinds []string) {
	for _, name := range eventTypes {
		kinds = slices.AppendSeq(kinds, maps.Keys(schemas()[name].kinds))
	}
	return kinds
}

// typeOf is the type of event that has a kind. One that nobody knows counts as the daemon's, whose tag is ours, too.
func typeOf(kind string) string {
	i := slices.IndexFunc(eventTypes, func(name string) bool { return hasKind(name, kind) })
	if i < 0 {
		return daemonEvent
	}
	return eventTypes[i]
}

// detect says of which type of event an object is, and its kind; "" for none. What has a body or a recipient is a
// message, unless all is there that the owner of a known kind writes.
func detect(o Object) (typeName, kind string) {
	if typeName, kind = detectTagged(o); typeName == "" {
		typeName, kind = detectOlder(o)
	}
	if typeName != "" && hasLetterField(o) && !schemas()[typeName].isWhole(o, kind) {
		return "", ""
	}
	return typeName, kind
}

// hasLetterField reports whether an object has a body, a subject, a sender or a recipient.
func hasLetterField(o Object) bool { return o.Has("body", "to", "from", "subject") }

// detectTagged is detect for what has a tag. The kind is "" where the tag is no word: that is somebody else's (a
// Kubernetes manifest has a "kind", too). An update of the current ACP may be bare, in {"sessionId","update"}, or in
// its whole JSON-RPC notification.
func detectTagged(o Object) (typeName, kind string) {
	if typeName, kind = detectCall(o); typeName != "" {
		return typeName, kind
	}
	for _, name := range eventTypes {
		tag := schemas()[name].tag
		if kind := o.Text(tag); isKind(kind) {
			if exact := typeOf(kind); schemas()[exact].tag == tag {
				name = exact
			}
			return name, kind
		}
		if o.Has(tag) {
			return name, ""
		}
	}
	return updateOf(o)
}

// detectOlder is detect for what the older ACP says without a tag: its calls, and what answers them.
func detectOlder(o Object) (typeName, kind string) {
	switch isOfSession := o.Has("session_id"); {
	case o.Has("toolCall") && o.Has("options"):
		return "acp.RequestPermissionParams", "confirm_required"
	case o.Has("outcome"):
		return "acp.RequestPermissionResult", "permission_result"
	case o.Object("request").Has("request_id"):
		return "acp.ServerRequestNotification", "server_request"
	case o.Has("request_id") && o.Has("success"):
		return "acp.ToolExecutionResult", "tool_result"
	case o.Has("workspace", "model_preferences"):
		return "acp.SessionNewParams", acpKinds["session/new"]
	case isOfSession && o.Has("state"):
		return "acp.SessionNewResult", "session_start"
	case o.Object("session").Has("session_id"):
		return "acp.SessionLoadResult", "session_start"
	case isOfSession && o.Has("content"):
		return "acp.SessionPromptParams", acpKinds["session/prompt"]
	case o.Has("turn_id") && o.Has("status"):
		return "acp.SessionPromptResult", "turn_complete"
	case isOfSession && o.Has("turn_id") && len(o) == 2:
		return "acp.SessionCancelParams", acpKinds["session/cancel"]
	}
	return "", ""
}

// acpKinds are the kinds of event that the methods of ACP mean, beside its updates: of the older one all of them.
var acpKinds = map[string]string{
	"session/new": "session_new", "session/load": "session_load", "session/prompt": TurnStarted,
	"session/cancel": "session_cancel", "server/request": "server_request", "client/response": "tool_result",
}

// updateOf is detect for what is round an update of the current ACP.
func updateOf(o Object) (typeName, kind string) {
	if kind := o.Object("update").Text("sessionUpdate"); isKind(kind) {
		return currentUpdate, kind
	}
	return "", ""
}

// detectResponse is detect for the result of a call of ACP, older or current.
func detectResponse(result Object) (typeName, kind string) {
	switch {
	case result.Has("stopReason"):
		return currentCall, "turn_complete"
	case result.Has("sessionId"):
		return currentCall, "session_start"
	case result.Object("outcome") != nil, result.Text("action") != "": // to a permission, to an elicitation
		return currentCall, "permission_result"
	}
	if _, kind = detectOlder(result); kind != "" {
		typeName = "acp.OlderResponse"
	}
	return typeName, kind
}

// detectCall is detect for a call of JSON-RPC, with or without its version, and for a response of ACP.
func detectCall(o Object) (typeName, kind string) {
	if o.Has("jsonrpc") && o.Has("result") {
		return detectResponse(o.Object("result"))
	} else if o.Has("jsonrpc") && o.Object("error") != nil {
		return currentCall, "turn_complete" // of a prompt, as far as one line can tell
	}
	method, params := o.Text("method"), o.Object("params")
	isCall := strings.Contains(method, "/") || method == "error" || method != "" && o.Has("jsonrpc", "emittedAtMs")
	if !isCall || params == nil && o.Get("params") != nil ||
		len(o.without("jsonrpc", "emittedAtMs", "method", "params", "id", "trace")) > 0 {
		return "", "" // at most something else that has a method
	}
	if update := params.Text("update_type"); method == "session/update" && hasKind(olderUpdate, update) {
		return "acp.OlderCall", update
	}
	if kind = acpKinds[method]; kind != "" && params.Has("sessionId", "cwd") {
		return currentCall, kind
	} else if kind != "" {
		return "acp.OlderCall", kind
	}
	switch method {
	case "session/update":
		return updateOf(params)
	case "session/request_permission":
		return currentUpdate, "confirm_required"
	case "elicitation/create":
		return currentUpdate, "waiting_for_input"
	case "turn/started", "turn/completed":
		return "codex.TurnCall", codexKinds[method]
	case "thread/status/changed":
		status := params.Object("status")
		word := cmp.Or(params.Text("status"), status.Text("type"))
		for _, flag := range []string{"waitingOnApproval", "waitingOnUserInput"} {
			if word == "active" && bytes.Contains(status.Get("activeFlags"), []byte(`"`+flag+`"`)) {
				word = flag
			}
		}
		kind = codexKinds[word]
	}
	return "codex.Call", cmp.Or(kind, codexKinds[method], kindName(method))
}

// codexKinds are the kinds of event that the methods of Codex's app-server mean, and the statuses of its
// threads. Any other method is a kind of its own.
var codexKinds = map[string]string{
	"turn/started": TurnStarted, "turn/completed": TurnCompleted, "thread/started": "session_start",
	"thread/closed": "session_end", "error": StreamFailed,
	"idle": TurnIdle, "systemError": TurnCompleted, "active": "thread_active",
	"waitingOnApproval": "confirm_required", "waitingOnUserInput": "waiting_for_input",
}

// kindName is the name of a method in our letters: agentMessage is agent_message.
func kindName(method string) string {
	kind := strings.ToLower(regexp.MustCompile("[A-Z]").ReplaceAllString(method, "_$0"))
	kind = regexp.MustCompile("[^a-z0-9]").ReplaceAllString(kind, "_")
	return kind[:min(len(kind), 64)]
}

func isKind(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
