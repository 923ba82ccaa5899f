package wire

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ErrNotEvent is returned for JSON that is not an event of any vocabulary.
var ErrNotEvent = errors.New(
	`not an event: without a "kind", "event_type", "update_type", "sessionUpdate" or "method" of a-z, 0-9 and _`)

// Adopt makes an event from one object of any vocabulary, which it keeps whole in Wire, or from a line of another event
// log of ours, of which it keeps Wire, Extra and, in Agent, the owner. The log that it goes to fills in the rest.
//
// An object of a known kind must be as its owner writes it, without repeated members; a turn event of the daemon may
// lack agent, thread_id, turn_id and transport. Of the current ACP, which grows, only the types are checked. Unknown
// kinds and members are kept.
//
// The error is ErrNotEvent or a *DecodeError.
func Adopt(line []byte) (Event, error) {
	o, err := ReadObject(line)
	switch {
	case err == ErrNotObject:
		return Event{}, ErrNotEvent
	case err != nil:
		return Event{}, err
	case isLogLine(o):
		return adoptLogLine(line, o)
	}
	typeName, kind := detect(o)
	if typeName == "" {
		return Event{}, ErrNotEvent
	}
	if typeName == currentUpdate && kind != "" {
		typeName = currentCall
	}
	s := schemas()[typeName]
	known := schema{fields: slices.Concat(s.fields, s.kinds[o.Text(s.tag)])}
	if s.tag != "" {
		known.fields = append(known.fields, field{name: s.tag, schema: schemas()["string"]})
	}
	if _, wrong := known.object(0, o); wrong != nil {
		return Event{}, wrong.locate(line)
	}
	if kind == "" {
		return Event{}, ErrNotEvent
	}
	e := Event{Kind: kind, Wire: compact(line)}
	b := e.Body()
	e.Session, e.TurnID, e.EventID = b.Text("session"), b.Text("turn_id"), o.Text("event_id")
	return e, nil
}

// AdoptDropped is Adopt for a dropped object. With a body or a recipient it is a message, without a tag it is text.
func AdoptDropped(data []byte) (Event, error) {
	if o, err := ReadObject(data); err == nil && !isLogLine(o) {
		if _, kind := detectTagged(o); kind == "" || o.Has("body", "to", "from", "subject") {
			return Event{}, ErrNotEvent
		}
	}
	return Adopt(data)
}

func isLogLine(o Object) bool {
	return o.Has("seq") && o.Has("at") && o.Has("team") && o.Has("agent") && o.Has("source") && o.Has("kind")
}

func adoptLogLine(line []byte, o Object) (Event, error) {
	if _, wrong := schemas()["log.Event"].object(0, o); wrong != nil {
		return Event{}, wrong.locate(line)
	}
	e, err := DecodeEvent(line)
	if err != nil {
		return Event{}, err
	}
	if hasKind(mailboxEvent, e.Kind) {
		// It is kept as it came, but is no evidence about a message of this mailbox.
		e.Wire, e.Extra = line, nil
	}
	e.Wire = compact(e.Wire)
	e.Seq, e.At, e.Team, e.Source = 0, time.Time{}, "", ""
	return e, nil
}

// detect returns the type and the kind of an event, "" if the object is none.
func detect(o Object) (typeName, kind string) {
	if typeName, kind = detectTagged(o); typeName == "" {
		typeName, kind = detectUntagged(o)
	}
	return typeName, kind
}

// detectTagged detects events by their tag. The kind is "" if the tag is not a word: then the object is of some other
// system (a Kubernetes manifest has a "kind" too). An update of the current ACP may be bare, in {"sessionId","update"},
// or in its JSON-RPC notification.
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
	return detectUpdate(o)
}

// detectUntagged detects the calls of the older ACP and their results, which have no tag.
func detectUntagged(o Object) (typeName, kind string) {
	hasSession := o.Has("session_id")
	switch {
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
	case hasSession && o.Has("state"):
		return "acp.SessionNewResult", "session_start"
	case o.Object("session").Has("session_id"):
		return "acp.SessionLoadResult", "session_start"
	case hasSession && o.Has("content"):
		return "acp.SessionPromptParams", acpKinds["session/prompt"]
	case o.Has("turn_id") && o.Has("status"):
		return "acp.SessionPromptResult", "turn_complete"
	case hasSession && o.Has("turn_id") && len(o) == 2:
		return "acp.SessionCancelParams", acpKinds["session/cancel"]
	}
	return "", ""
}

// acpKinds maps the methods of the older ACP, except session/update, and those of the current one to kinds of event.
var acpKinds = map[string]string{
	"session/new": "session_new", "session/load": "session_load", "session/prompt": TurnStarted,
	"session/cancel": "session_cancel", "server/request": "server_request", "client/response": "tool_result",
}

// detectUpdate detects an update of the current ACP inside the params of its notification.
func detectUpdate(params Object) (typeName, kind string) {
	if kind := params.Object("update").Text("sessionUpdate"); isKind(kind) {
		return currentUpdate, kind
	}
	return "", ""
}

// detectResponse detects the result of an ACP call, older or current.
func detectResponse(result Object) (typeName, kind string) {
	switch {
	case result.Has("stopReason"):
		return currentCall, "turn_complete"
	case result.Has("sessionId"):
		return currentCall, "session_start"
	case result.Object("outcome") != nil, result.Text("action") != "": // of a permission, of an elicitation
		return currentCall, "permission_result"
	}
	if _, kind = detectUntagged(result); kind != "" {
		typeName = "acp.OlderResponse"
	}
	return typeName, kind
}

// detectCall detects a call of ACP or Codex in JSON-RPC, with or without its version, and a response of ACP.
func detectCall(o Object) (typeName, kind string) {
	if o.Has("jsonrpc") && o.Has("result") {
		return detectResponse(o.Object("result"))
	} else if o.Has("jsonrpc") && o.Object("error") != nil {
		return currentCall, "turn_complete" // one line cannot tell which call failed: taken as the prompt
	}
	method, params := o.Text("method"), o.Object("params")
	isCall := strings.Contains(method, "/") || method == "error" || method != "" && o.Has("jsonrpc", "emittedAtMs")
	if !isCall || params == nil && o.Get("params") != nil ||
		len(o.without("jsonrpc", "emittedAtMs", "method", "params", "id", "trace")) > 0 {
		return "", "" // something else that happens to have a method
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
		return detectUpdate(params)
	case "session/request_permission":
		return currentUpdate, "confirm_required"
	case "elicitation/create":
		return currentUpdate, "waiting_for_input"
	case "turn/started", "turn/completed":
		return "codex.TurnCall", codexKinds[method]
	case "thread/status/changed":
		kind = codexKinds[threadStatus(params)]
	}
	return "codex.Call", cmp.Or(kind, codexKinds[method], methodKind(method))
}

// threadStatus returns the status of a Codex thread, or what an active thread waits for.
func threadStatus(params Object) string {
	status := params.Object("status")
	word := cmp.Or(params.Text("status"), status.Text("type"))
	for _, flag := range []string{"waitingOnApproval", "waitingOnUserInput"} {
		if word == "active" && bytes.Contains(status.Get("activeFlags"), []byte(`"`+flag+`"`)) {
			return flag
		}
	}
	return word
}

// codexKinds maps the methods of Codex's app-server, and the statuses of its threads, to kinds of event.
var codexKinds = map[string]string{
	"turn/started": TurnStarted, "turn/completed": TurnCompleted, "thread/started": "session_start",
	"thread/closed": "session_end", "error": StreamError,
	"idle": TurnIdle, "systemError": TurnCompleted, "active": "thread_active",
	"waitingOnApproval": "confirm_required", "waitingOnUserInput": "waiting_for_input",
}

// methodKind makes a kind from a method: item/agentMessage becomes item_agent_message.
func methodKind(method string) string {
	kind := strings.ToLower(regexp.MustCompile("[A-Z]").ReplaceAllString(method, "_$0"))
	kind = regexp.MustCompile("[^a-z0-9]").ReplaceAllString(kind, "_")
	return kind[:min(len(kind), 64)]
}
