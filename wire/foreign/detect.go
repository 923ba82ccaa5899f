package foreign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// form is what an object is: a kind of event in somebody's vocabulary. Its typ is nil if it is none.
type form struct {
	typ  *jsonType
	kind string // in the owner's words, or for a call, whose method is no kind, in ours
}

// eventTypes are in the order in which their tags are looked for: a tool call of ACP has a "kind" too.
var eventTypes = []*jsonType{sessionEvent, currentUpdate, sessionUpdate, daemonEvent, runnerEvent, mailboxEvent}

// typeOf returns the type of event that has a kind. An unknown kind counts as the daemon's, whose tag is ours too.
func typeOf(kind string) *jsonType {
	i := slices.IndexFunc(eventTypes, func(t *jsonType) bool { return t.hasKind(kind) })
	if i < 0 {
		return daemonEvent
	}
	return eventTypes[i]
}

// owner returns the vocabulary that the form belongs to, "" if it is Codex's, missiond's or our own.
func (f form) owner() Vocabulary {
	switch f.typ {
	case daemonEvent:
		if typeOf(f.kind) != daemonEvent {
			return "" // ours, with a word that another vocabulary has under its own tag
		}
		return Daemon
	case sessionEvent:
		return Session
	case nil, codexCall, codexTurnCall, runnerEvent, mailboxEvent:
		return ""
	}
	return ACP
}

// isKnown reports whether the vocabulary has this kind, and its objects have a tag: anything may have members of those
// that have none.
func (f form) isKnown(o wire.Object) bool {
	switch f.typ {
	case nil, mailboxEvent:
		return false
	case olderResponse, codexTurnCall:
		return true
	case olderCall:
		return o.Text("method") != "session/update" || sessionUpdate.hasKind(f.kind)
	case codexCall:
		return f.kind != methodKind(o.Text("method"))
	case currentUpdate:
		return currentUpdate.hasKind(f.kind) || o.Text("method") == "session/request_permission"
	}
	return f.typ.hasKind(f.kind)
}

// detect returns the form of an event; its typ is nil if the object is none.
func detect(o wire.Object) form {
	f := detectTagged(o)
	if f.typ == nil && !o.Has("kind", "event_type", "update_type", "sessionUpdate") {
		f = detectUntagged(o)
	}
	return f
}

// detectTagged detects events by their tag, which is a word, or else the object is of some other system (a Kubernetes
// manifest has a "kind" too). An update of the current ACP may be bare, in {"sessionId","update"}, or in its JSON-RPC
// notification.
func detectTagged(o wire.Object) form {
	if f := detectCall(o); f.typ != nil {
		return f
	}
	for _, t := range eventTypes {
		if kind := o.Text(t.tag); isKind(kind) {
			if exact := typeOf(kind); exact.tag == t.tag {
				t = exact
			}
			return form{t, kind}
		}
	}
	return detectUpdate(o)
}

// untagged are the calls of the older ACP and their results, which have no tag, by the members that they, or an object
// within them, have.
var untagged = []struct {
	within, members string
	form
}{
	{"", "toolCall options", form{permissionParams, "confirm_required"}},
	{"", "outcome", form{permissionResult, "permission_result"}},
	{"request", "request_id", form{serverRequest, "server_request"}},
	{"", "request_id success", form{toolExecutionResult, "tool_result"}},
	{"", "workspace", form{sessionNewParams, "session_new"}},
	{"", "model_preferences", form{sessionNewParams, "session_new"}},
	{"", "session_id state", form{sessionNewResult, "session_start"}},
	{"session", "session_id", form{sessionLoadResult, "session_start"}},
	{"", "session_id content", form{sessionPromptParams, wire.TurnStarted}},
	{"", "turn_id status", form{sessionPromptResult, "turn_complete"}},
	{"", "session_id turn_id", form{sessionCancelParams, "session_cancel"}},
}

func detectUntagged(o wire.Object) form {
	for _, call := range untagged {
		in := o
		if call.within != "" {
			in = o.Object(call.within)
		}
		isMissing := func(member string) bool { return !in.Has(member) }
		if !slices.ContainsFunc(strings.Fields(call.members), isMissing) {
			return call.form
		}
	}
	return form{}
}

// acpKinds maps the methods of the older ACP, except session/update, to kinds of event.
var acpKinds = map[string]string{
	"session/new": "session_new", "session/load": "session_load", "session/prompt": wire.TurnStarted,
	"session/cancel": "session_cancel", "server/request": "server_request", "client/response": "tool_result",
}

// detectUpdate detects an update of the current ACP inside the params of its notification.
func detectUpdate(params wire.Object) form {
	if kind := params.Object("update").Text("sessionUpdate"); isKind(kind) {
		return form{currentUpdate, kind}
	}
	return form{}
}

// detectCall detects a call of ACP or Codex in JSON-RPC, with or without its version, and a response of the older ACP.
func detectCall(o wire.Object) form {
	if o.Has("jsonrpc") {
		result := o.Object("result")
		kind := detectUntagged(result).kind
		if len(result) == 1 && result.Has("session_id") { // of session/new: its state has a default
			kind = "session_start"
		}
		if kind != "" {
			return form{olderResponse, kind}
		}
	}
	method, params := o.Text("method"), o.Object("params")
	if !o.Has("jsonrpc", "emittedAtMs") && method != "error" && !strings.Contains(method, "/") || method == "" ||
		len(o.Without("jsonrpc", "emittedAtMs", "method", "params", "id", "trace")) > 0 {
		return form{} // something else that happens to have a method
	}
	kind := acpKinds[method]
	if method == "session/update" {
		kind = params.Text("update_type")
	}
	if kind != "" && !params.Has("sessionId", "cwd") {
		return form{olderCall, kind}
	}
	switch method {
	case "session/update":
		return detectUpdate(params)
	case "session/request_permission":
		return form{currentUpdate, "confirm_required"}
	case "turn/started", "turn/completed":
		return form{codexTurnCall, codexKinds[method]}
	case "thread/status/changed":
		kind = codexKinds[threadStatus(params)]
	default:
		kind = codexKinds[method]
	}
	return form{codexCall, cmp.Or(kind, methodKind(method))}
}
