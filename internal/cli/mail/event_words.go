package mail

import (
	"strings"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// eventWords says an event as people would: "bob" stands before it. `atm events`
// shows events as programs know them.
func eventWords(e *wire.Event, r *letter.Renderer) string {
	if words := messageWords(e, r); words != "" {
		return words
	}
	detail := letter.Clip(letter.Escape(eventDetail(e)), 200)
	words := map[string]string{
		wire.TurnStarted:    "began a turn",
		wire.TurnIdle:       "is idle",
		"session_start":     "began a session",
		"session_end":       "ended its session",
		"spawned":           "was started",
		"restarting":        "is started again",
		"waiting_for_input": "asks",
		"confirm_required":  "asks for a permission",
		"server_request":    "asks for a permission",
		"draft_ready":       "has a draft",
		"goal_complete":     "has reached its goal",
		"stream_error":      "has an error",
		"error":             "has an error",
	}[e.Kind]
	switch {
	case e.Kind == wire.TurnCompleted:
		words = "ended its turn"
		if detail == "completed" {
			detail = ""
		}
	case e.Kind == "exited" && e.Text("reason") != "":
		words, detail = "was stopped", ""
	case e.Kind == "exited":
		words = "has ended"
	case e.Kind == "state_change":
		words = "is " + strings.ReplaceAll(letter.Escape(e.Text("new", "new_state")), "_", " ")
	case words == "":
		words, detail = letter.Escape(strings.ReplaceAll(e.Kind, "_", " ")), letter.Clip(letter.Escape(wire.Line(e)), 200)
	}
	if detail != "" {
		words += ": " + detail
	}
	return words
}

// messageWords are the words for an event about a message, "" for others.
func messageWords(e *wire.Event, r *letter.Renderer) string {
	id := e.MessageID()
	if !wire.IsID(string(id)) {
		return ""
	}
	short := r.Short(id)
	by := letter.Escape(e.Field("by"))
	switch e.Kind {
	case wire.EventAnnounced:
		return "was told of " + short
	case wire.EventRead:
		return "read " + short
	case wire.EventAcked:
		return "acked " + short
	case wire.EventWithdrawn:
		return "had " + short + " withdrawn"
	case wire.EventInjecting:
		return "is being typed " + short
	case wire.EventInjected:
		return "was typed " + short
	case wire.EventInjectionFailed:
		return "could not be typed " + short + ": " + letter.Escape(e.Text("reason", "outcome"))
	case wire.EventTaken:
		return "had " + short + " taken by " + by
	case wire.EventReturned:
		return "had " + short + " given back by " + by
	case wire.EventAgain:
		return "has " + short + " once more"
	}
	return ""
}

// eventDetail is what an event says beside its kind.
func eventDetail(e *wire.Event) string {
	switch e.Kind {
	case wire.TurnStarted, wire.TurnIdle, "spawned", "session_start", "session_end":
		return ""
	case wire.TurnCompleted:
		return e.Text("status")
	case "exited":
		if signal := e.Text("signal"); signal != "" {
			return signal
		}
		code, _ := e.Value("code")
		return strings.TrimPrefix("exit "+string(code), "exit 0")
	case "state_change":
		return e.Text("detail")
	case "confirm_required", "server_request":
		what := strings.TrimSpace(e.Text("tool") + " " + e.Text("input"))
		if what != "" {
			return what
		}
		return e.Text("prompt")
	}
	if text := e.Text("prompt", "message", "summary", "error_summary"); text != "" {
		return text
	}
	return wire.Line(e)
}
