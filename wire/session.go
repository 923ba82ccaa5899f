package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// SessionEvent is what a session emits on its channel, with the members of all kinds: session.SessionEvent.
type SessionEvent struct {
	Kind          string `json:"event_type"`
	Stream        string `json:"stream"` // std_out or std_err
	Content       string `json:"content"`
	DraftID       UUID   `json:"draft_id"`
	Summary       string `json:"summary"`
	ArtifactCount uint64 `json:"artifact_count"`
	GoalID        UUID   `json:"goal_id"`
	Prompt        string `json:"prompt"`
	Message       string `json:"message"`
}

// String returns the line that the channel's owner prints for the event.
func (e SessionEvent) String() string {
	raw, _ := jsonv2.Marshal(e, writing)
	return ownerLine(e.Kind, parseObject(raw))
}

// HumanInput is what a person says to a session, with the members of all kinds: session.HumanInput. Without an
// ArtifactURI it is about the whole draft.
type HumanInput struct {
	Kind        string  `json:"input_type"`
	Text        string  `json:"text"`
	DraftID     UUID    `json:"draft_id"`
	ArtifactURI *string `json:"artifact_uri"`
	Reason      string  `json:"reason"`
}

// IsVerdict reports whether the input approves or rejects a draft, or a part of one.
func (h HumanInput) IsVerdict() bool { return h.Kind == "approve" || h.Kind == "reject" }

// String returns the line that the channel's owner prints for the input.
func (h HumanInput) String() string {
	draft := "draft " + string(h.DraftID)
	if h.ArtifactURI != nil {
		draft = *h.ArtifactURI + " in " + draft
	}
	switch h.Kind {
	case "message":
		return "Message: " + h.Text
	case "approve":
		return "Approve " + draft
	case "reject":
		return "Reject " + draft + ": " + h.Reason
	case "abort":
		return "Abort session"
	}
	return h.Kind
}

// HumanText returns the body of the message that carries a HumanInput: its text, or its kind in words. ok is false for
// JSON that is not a HumanInput; err is a *DecodeError for one with a wrong value.
func HumanText(data []byte) (body string, ok bool, err error) {
	if !hasKind(humanInput, parseObject(data).Text("input_type")) {
		return "", false, nil
	}
	var h HumanInput
	err = UnmarshalAs(humanInput, data, &h)
	if err != nil || h.Kind == "message" {
		return h.Text, true, err
	}
	text := strings.TrimSuffix(h.String(), ": ") // a rejection without a reason
	return strings.ToLower(text[:1]) + text[1:], true, nil
}

// InteractiveSessionState is where a session is in its life.
type InteractiveSessionState string

// The states of a session.
const (
	SessionActive    InteractiveSessionState = "active"
	SessionPaused    InteractiveSessionState = "paused"
	SessionCompleted InteractiveSessionState = "completed"
	SessionAborted   InteractiveSessionState = "aborted"
)

var transitions = map[InteractiveSessionState][]InteractiveSessionState{
	SessionActive: {SessionPaused, SessionCompleted, SessionAborted},
	SessionPaused: {SessionActive, SessionAborted},
}

// Alive reports whether the session is active or paused.
func (s InteractiveSessionState) Alive() bool { return s == SessionActive || s == SessionPaused }

// SessionMessage is an entry in a session's log.
type SessionMessage struct {
	Sender    string         `json:"sender"` // human, agent or ta-system
	Content   string         `json:"content"`
	Timestamp time.Time      `json:"timestamp"`
	Extra     jsontext.Value `json:",embed"` // unknown members
}

// InteractiveSession is one conversation with an agent.
type InteractiveSession struct {
	SessionID UUID                    `json:"session_id"`
	GoalID    UUID                    `json:"goal_id"`
	ChannelID string                  `json:"channel_id"` // cli:tty0, discord:thread:123
	AgentID   string                  `json:"agent_id"`
	State     InteractiveSessionState `json:"state"`
	CreatedAt time.Time               `json:"created_at"`
	UpdatedAt time.Time               `json:"updated_at"`
	Messages  []SessionMessage        `json:"messages,omitempty"`
	DraftIDs  []UUID                  `json:"draft_ids,omitempty"` // in order of arrival, each once
}

// Transition moves the session to another state. After an error, which is a *SessionError, nothing has changed.
func (s *InteractiveSession) Transition(to InteractiveSessionState, now time.Time) error {
	if !slices.Contains(transitions[s.State], to) {
		return &SessionError{Reason: fmt.Sprintf("invalid session transition from %s to %s", s.State, to)}
	}
	s.State, s.UpdatedAt = to, now
	return nil
}

// Elapsed returns the age of the session for people: 42s, 5m 3s, 2h 5m.
func (s *InteractiveSession) Elapsed(now time.Time) string {
	sec := int64(now.Sub(s.CreatedAt) / time.Second)
	switch {
	case sec < 60:
		return fmt.Sprintf("%ds", sec)
	case sec < 3600:
		return fmt.Sprintf("%dm %ds", sec/60, sec%60)
	}
	return fmt.Sprintf("%dh %dm", sec/3600, sec%3600/60)
}

// SessionError is the error for an operation that a session channel refuses.
type SessionError struct{ Reason string }

func (e *SessionError) Error() string { return "session error: " + e.Reason }

// ErrChannelClosed is returned by a session channel whose session is over.
var ErrChannelClosed = errors.New("channel closed")
