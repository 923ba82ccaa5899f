package foreign

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/agentteammail/atm/wire"
)

// The app-server of Codex.
var (
	codexStatus   = oneOf("completed", "interrupted", "failed", "inProgress")
	codexCall     = object(func() members { return members{required("method", text), required("params", anyObject)} })
	codexTurnCall = object(func() members {
		return members{required("method", text), required("params", inner(optional("threadId", text), optional("thread_id", text),
			optional("turnId", text), optional("turn_id", text), optional("status", codexStatus),
			optional("turn", inner(optional("id", text), optional("status", codexStatus)))))}
	})
)

// codexKinds maps its methods, and the statuses of its threads, to kinds of event.
var codexKinds = map[string]string{
	"turn/started": wire.TurnStarted, "turn/completed": wire.TurnCompleted, "thread/started": "session_start",
	"thread/closed": "session_end", "error": wire.StreamError,
	"idle": wire.TurnIdle, "systemError": wire.TurnCompleted, "active": "thread_active",
	"waitingOnApproval": "confirm_required", "waitingOnUserInput": "waiting_for_input",
}

// threadStatus returns the status of a thread, or what an active thread waits for.
func threadStatus(params wire.Object) string {
	status := params.Object("status")
	for _, flag := range []string{"waitingOnApproval", "waitingOnUserInput"} {
		if bytes.Contains(status.Get("activeFlags"), []byte(`"`+flag+`"`)) {
			return flag
		}
	}
	return status.Text("type")
}

var notInKind = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[^a-z0-9]") })

// methodKind makes a kind from a method: item/agentMessage becomes item_agentmessage.
func methodKind(method string) string {
	kind := notInKind().ReplaceAllString(strings.ToLower(method), "_")
	return kind[:min(len(kind), 64)]
}
