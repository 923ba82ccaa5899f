package foreign

import (
	"os"
	"strings"

	"github.com/agentteammail/atm/wire"
)

// The session channel of Trusted Autonomy. The kinds of its events are atm's own.
var (
	outputStream = oneOf("std_out", "std_err")
	sessionState = oneOf("active", "paused", "completed", "aborted")

	sessionEvent = tagged("event_type", func() kinds {
		return kinds{
			"agent_output":      {required("stream", outputStream), required("content", text)},
			"draft_ready":       {required("draft_id", uuid), required("summary", text), required("artifact_count", uint64s)},
			"goal_complete":     {required("goal_id", uuid)},
			"waiting_for_input": {required("prompt", text)},
			"status_update":     {required("message", text)},
		}
	})
	humanInput = tagged("input_type", func() kinds {
		return kinds{
			HumanMessage: {required("text", text)},
			HumanApprove: {required("draft_id", uuid), orAbsent("artifact_uri", text, "null")},
			HumanReject:  {required("draft_id", uuid), orAbsent("artifact_uri", text, "null"), required("reason", text)},
			HumanAbort:   {},
		}
	})

	interactiveConfig = object(func() members {
		return members{defaulted("enabled", boolean, "false"), defaulted("output_capture", text, `"pipe"`),
			defaulted("allow_human_input", boolean, "true"), orAbsent("auto_exit_on", text, "null"), orAbsent("resume_cmd", text, "null")}
	})

	sessionMessage = object(func() members {
		return members{required("sender", text), required("content", text), required("timestamp", timestamp)}
	})
	interactiveSession = object(func() members {
		return members{required("session_id", uuid), required("goal_id", uuid), required("channel_id", text),
			required("agent_id", text), required("state", sessionState),
			required("created_at", timestamp), required("updated_at", timestamp),
			unlessEmpty("messages", list(sessionMessage)), unlessEmpty("draft_ids", list(uuid))}
	})
)

// CheckSessionMessage returns why JSON is no entry in a session's log (session.Entry) for the channel's owner. The error is a
// *wire.DecodeError or wire.ErrNotObject.
func CheckSessionMessage(data []byte) error {
	_, err := sessionMessage.canonicalOf(data)
	return err
}

// CheckInteractiveSession is CheckSessionMessage for a session as it is stored (session.InteractiveSession).
func CheckInteractiveSession(data []byte) error {
	_, err := interactiveSession.canonicalOf(data)
	return err
}

// OutputStream is where an agent's output came from, in Trusted Autonomy's session channel.
type OutputStream string

// The streams.
const (
	StdOut OutputStream = "std_out"
	StdErr OutputStream = "std_err"
)

// String returns what the channel's owner prints for the stream: stdout or stderr.
func (s OutputStream) String() string { return strings.Replace(string(s), "std_", "std", 1) }

// UnmarshalJSON reads a stream. The error is a *wire.DecodeError.
func (s *OutputStream) UnmarshalJSON(data []byte) error { return outputStream.read(data, s) }

// SessionEvent is what a session emits on its channel, with the members of all kinds.
type SessionEvent struct {
	Kind          string       `json:"event_type"` // agent_output, draft_ready, goal_complete, waiting_for_input or status_update
	Stream        OutputStream `json:"stream"`
	Content       string       `json:"content"`
	DraftID       wire.UUID    `json:"draft_id"`
	Summary       string       `json:"summary"`
	ArtifactCount uint64       `json:"artifact_count"`
	GoalID        wire.UUID    `json:"goal_id"`
	Prompt        string       `json:"prompt"`
	Message       string       `json:"message"`
}

// String returns the line that the channel's owner prints for the event.
func (e SessionEvent) String() string { return lineOf(e.Kind, e) }

// MarshalJSON writes the event as the channel's owner does: with the members of its kind. It refuses what the owner would.
func (e SessionEvent) MarshalJSON() ([]byte, error) { return sessionEvent.write(e) }

// UnmarshalJSON reads an event as the channel's owner does. The error is a *wire.DecodeError or wire.ErrNotObject.
func (e *SessionEvent) UnmarshalJSON(data []byte) error { return sessionEvent.read(data, e) }

// The kinds of HumanInput.
const (
	HumanMessage = "message"
	HumanApprove = "approve"
	HumanReject  = "reject"
	HumanAbort   = "abort"
)

// HumanInput is what a person says to a session, with the members of all kinds. Without an ArtifactURI it is about the
// whole draft.
type HumanInput struct {
	Kind        string    `json:"input_type"` // HumanMessage, …
	Text        string    `json:"text"`
	DraftID     wire.UUID `json:"draft_id"`
	ArtifactURI *string   `json:"artifact_uri"`
	Reason      string    `json:"reason"`
}

// MarshalJSON writes the input as the channel's owner does: with the members of its kind. It refuses what the owner would.
func (h HumanInput) MarshalJSON() ([]byte, error) { return humanInput.write(h) }

// UnmarshalJSON reads an input as the channel's owner does. The error is a *wire.DecodeError or wire.ErrNotObject.
func (h *HumanInput) UnmarshalJSON(data []byte) error { return humanInput.read(data, h) }

// InteractiveConfig are Trusted Autonomy's settings of an agent's sessions. Read, what is absent gets the owner's value: a
// session's output is from a "pipe", and people may talk to the agent. The zero value is that of the owner's code, with neither.
type InteractiveConfig struct {
	Enabled         bool    `json:"enabled"`
	OutputCapture   string  `json:"output_capture"` // pty, pipe or log
	AllowHumanInput bool    `json:"allow_human_input"`
	AutoExitOn      *string `json:"auto_exit_on"` // idle_timeout: 300s, goal_complete
	ResumeCmd       *string `json:"resume_cmd"`   // claude --resume {session_id}
}

// UnmarshalJSON reads settings as the channel's owner does. The error is a *wire.DecodeError or wire.ErrNotObject.
func (c *InteractiveConfig) UnmarshalJSON(data []byte) error { return interactiveConfig.read(data, c) }

// IsVerdict reports whether the input approves or rejects a draft, or a part of one.
func (h HumanInput) IsVerdict() bool { return h.Kind == HumanApprove || h.Kind == HumanReject }

// String returns the line that the channel's owner prints for the input.
func (h HumanInput) String() string {
	draft := "draft " + string(h.DraftID)
	if h.ArtifactURI != nil {
		draft = *h.ArtifactURI + " in " + draft
	}
	switch h.Kind {
	case HumanMessage:
		return "Message: " + h.Text
	case HumanApprove:
		return "Approve " + draft
	case HumanReject:
		return "Reject " + draft + ": " + h.Reason
	case HumanAbort:
		return "Abort session"
	}
	return h.Kind
}

// HumanText returns the body of the message that carries a HumanInput: its text, or its kind in words. ok is false for
// JSON that is not a HumanInput; err is a *wire.DecodeError for one with a wrong value.
func HumanText(data []byte) (body string, ok bool, err error) {
	o, _ := wire.ReadObject(data)
	if !humanInput.hasKind(o.Text("input_type")) {
		return "", false, nil
	}
	var h HumanInput
	err = h.UnmarshalJSON(data)
	if err != nil || h.Kind == HumanMessage {
		return h.Text, true, err
	}
	words := strings.TrimSuffix(h.String(), ": ") // a rejection without a reason
	return strings.ToLower(words[:1]) + words[1:], true, nil
}

// ownerLines are, to the letter, the lines that the daemon and the session channel print for their events.
var ownerLines = map[string]string{
	wire.TurnStarted:     "TurnStarted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	wire.TurnCompleted:   "TurnCompleted(agent=$agent, turn_id=$turn_id, transport=$transport)",
	wire.TurnIdle:        "TurnIdle(agent=$agent, transport=$transport)",
	wire.StreamError:     "StreamError(agent_id=$agent_id, session_id=$session_id, error_summary=$error_summary)",
	wire.DroppedCounters: "DroppedCounters(agent_id=$agent_id, dropped=$dropped, unknown=$unknown)",
	"agent_output":       "[$stream] $content",
	"draft_ready":        "Draft ready: $draft_id ($artifact_count artifacts) — $summary",
	"goal_complete":      "Goal complete: $goal_id",
	"waiting_for_input":  "Waiting for input: $prompt",
	"status_update":      "Status: $message",
}

// lineOf returns the line for an event that is a Go value; it may lack what its owner requires.
func lineOf(kind string, e any) string {
	raw, _ := wire.Marshal(bare(e))
	o, _ := wire.ReadObject(raw)
	return ownerLine(kind, o)
}

func ownerLine(kind string, o wire.Object) string {
	return os.Expand(ownerLines[kind], func(name string) string {
		if name == "stream" {
			return OutputStream(o.Text(name)).String()
		}
		return plainValue(o.Get(name))
	})
}
