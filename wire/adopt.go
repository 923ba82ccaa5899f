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
// An object of a known kind must be as its owner writes it; a turn event of the daemon may lack agent, thread_id,
// turn_id and transport. Of the current ACP, which grows, only the types are checked. Unknown kinds and members are
// kept.
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
		return adoptLogLine(line)
	}
	typeName, kind := detect(o)
	if typeName == "" {
		return Event{}, ErrNotEvent
	}
	if typeName == currentUpdate {
		typeName = currentCall
	}
	s := schemas()[typeName]
	if _, err := selectFields(o, slices.Concat(s.fields, s.kinds[o.Text(s.tag)])); err != nil {
		return Event{}, locate(line, err)
	}
	e := Event{Kind: kind, Wire: compact(line)}
	b := e.Body()
	e.Session, e.TurnID, e.EventID = b.Text("session"), b.Text("turn_id"), o.Text("event_id")
	return e, nil
}

// AdoptDropped is Adopt for a dropped file, which may be anything and must not disappear: it is an event only if its kind
// is known, it is as its owner writes it, and it has nothing that makes it a message.
func AdoptDropped(data []byte) (e Event, isEvent bool) {
	o, err := ReadObject(data)
	if err == nil && (isLogLine(o) || isKnown(o) && !o.Has("body", "to", "from", "subject")) {
		e, err = Adopt(data)
		return e, err == nil
	}
	return e, false
}

// isKnown reports whether an object has the tag of a vocabulary and a kind that this vocabulary has.
func isKnown(o Object) bool {
	switch typeName, kind := detectTagged(o); typeName {
	case "":
		return false
	case "acp.OlderResponse", "codex.TurnCall":
		return true
	case "acp.OlderCall":
		return o.Text("method") != "session/update" || hasKind(olderUpdate, kind)
	case "codex.Call":
		return kind != methodKind(o.Text("method"))
	case currentUpdate:
		return hasKind(currentUpdate, kind) || o.Text("method") == "session/request_permission"
	default:
		return hasKind(typeName, kind)
	}
}

func isLogLine(o Object) bool {
	return o.Has("seq") && o.Has("at") && o.Has("team") && o.Has("agent") && o.Has("source") && o.Has("kind")
}

func adoptLogLine(line []byte) (Event, error) {
	_, err := Canonical("log.Event", line)
	e, undecoded := DecodeEvent(line)
	if err = cmp.Or(err, undecoded); err != nil {
		return Event{}, err
	}
	if hasKind(mailboxEvent, e.Kind) || isAnswer(e.Kind) {
		// It is kept as it came, but is no evidence about a message of this mailbox, or about who has answered here.
		e.Wire, e.Extra = line, nil
	}
	e.Wire = compact(e.Wire)
	e.Seq, e.At, e.Team, e.Source = 0, time.Time{}, "", ""
	return e, nil
}

// detect returns the type and the kind of an event, "" if the object is none.
func detect(o Object) (typeName, kind string) {
	typeName, kind = detectTagged(o)
	if typeName == "" && !o.Has("kind", "event_type", "update_type", "sessionUpdate") {
		typeName, kind = detectUntagged(o)
	}
	return typeName, kind
}

// detectTagged detects events by their tag, which is a word, or else the object is of some other system (a Kubernetes
// manifest has a "kind" too). An update of the current ACP may be bare, in {"sessionId","update"}, or in its JSON-RPC
// notification.
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
	}
	return detectUpdate(o)
}

// untagged are the calls of the older ACP and their results, which have no tag, by the members that they, or an object
// within them, have.
var untagged = []struct{ within, members, typeName, kind string }{
	{"", "toolCall options", "acp.RequestPermissionParams", "confirm_required"},
	{"", "outcome", "acp.RequestPermissionResult", "permission_result"},
	{"request", "request_id", "acp.ServerRequestNotification", "server_request"},
	{"", "request_id success", "acp.ToolExecutionResult", "tool_result"},
	{"", "workspace", "acp.SessionNewParams", "session_new"},
	{"", "model_preferences", "acp.SessionNewParams", "session_new"},
	{"", "session_id state", "acp.SessionNewResult", "session_start"},
	{"session", "session_id", "acp.SessionLoadResult", "session_start"},
	{"", "session_id content", "acp.SessionPromptParams", TurnStarted},
	{"", "turn_id status", "acp.SessionPromptResult", "turn_complete"},
	{"", "session_id turn_id", "acp.SessionCancelParams", "session_cancel"},
}

func detectUntagged(o Object) (typeName, kind string) {
	for _, call := range untagged {
		in := o
		if call.within != "" {
			in = o.Object(call.within)
		}
		isMissing := func(member string) bool { return !in.Has(member) }
		if !slices.ContainsFunc(strings.Fields(call.members), isMissing) {
			return call.typeName, call.kind
		}
	}
	return "", ""
}

// acpKinds maps the methods of the older ACP, except session/update, to kinds of event.
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

// detectCall detects a call of ACP or Codex in JSON-RPC, with or without its version, and a response of the older ACP.
func detectCall(o Object) (typeName, kind string) {
	if o.Has("jsonrpc") {
		result := o.Object("result")
		_, kind := detectUntagged(result)
		if len(result) == 1 && result.Has("session_id") { // of session/new: its state has a default
			kind = "session_start"
		}
		if kind != "" {
			return "acp.OlderResponse", kind
		}
	}
	method, params := o.Text("method"), o.Object("params")
	if !o.Has("jsonrpc", "emittedAtMs") && method != "error" && !strings.Contains(method, "/") || method == "" ||
		len(o.without("jsonrpc", "emittedAtMs", "method", "params", "id", "trace")) > 0 {
		return "", "" // something else that happens to have a method
	}
	if kind = acpKinds[method]; method == "session/update" {
		kind = params.Text("update_type")
	}
	if kind != "" && !params.Has("sessionId", "cwd") {
		return "acp.OlderCall", kind
	}
	switch method {
	case "session/update":
		return detectUpdate(params)
	case "session/request_permission":
		return currentUpdate, "confirm_required"
	case "turn/started", "turn/completed":
		return "codex.TurnCall", codexKinds[method]
	case "thread/status/changed":
		kind = codexKinds[threadStatus(params)]
	default:
		kind = codexKinds[method]
	}
	return "codex.Call", cmp.Or(kind, methodKind(method))
}

// threadStatus returns the status of a Codex thread, or what an active thread waits for.
func threadStatus(params Object) string {
	status := params.Object("status")
	for _, flag := range []string{"waitingOnApproval", "waitingOnUserInput"} {
		if bytes.Contains(status.Get("activeFlags"), []byte(`"`+flag+`"`)) {
			return flag
		}
	}
	return status.Text("type")
}

// codexKinds maps the methods of Codex's app-server, and the statuses of its threads, to kinds of event.
var codexKinds = map[string]string{
	"turn/started": TurnStarted, "turn/completed": TurnCompleted, "thread/started": "session_start",
	"thread/closed": "session_end", "error": StreamError,
	"idle": TurnIdle, "systemError": TurnCompleted, "active": "thread_active",
	"waitingOnApproval": "confirm_required", "waitingOnUserInput": "waiting_for_input",
}

var notInKind = regexp.MustCompile("[^a-z0-9]")

// methodKind makes a kind from a method: item/agentMessage becomes item_agentmessage.
func methodKind(method string) string {
	kind := notInKind.ReplaceAllString(strings.ToLower(method), "_")
	return kind[:min(len(kind), 64)]
}
