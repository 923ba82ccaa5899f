package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

type plainEvent SessionEvent // without the methods

// String returns the line that the channel's owner prints for the event.
func (e SessionEvent) String() string {
	raw, _ := Marshal(plainEvent(e))
	return ownerLine(e.Kind, parseObject(raw))
}

// MarshalJSON writes the event as the channel's owner does: with the members of its kind. It refuses what the owner would.
func (e SessionEvent) MarshalJSON() ([]byte, error) { return MarshalAs(sessionEvent, plainEvent(e)) }

// UnmarshalJSON reads an event as the channel's owner does. The error is a *DecodeError or ErrNotObject.
func (e *SessionEvent) UnmarshalJSON(data []byte) error {
	var p plainEvent
	err := UnmarshalAs(sessionEvent, data, &p)
	if err == nil {
		*e = SessionEvent(p)
	}
	return err
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

type plainInput HumanInput // without the methods

// MarshalJSON writes the input as the channel's owner does: with the members of its kind. It refuses what the owner would.
func (h HumanInput) MarshalJSON() ([]byte, error) { return MarshalAs(humanInput, plainInput(h)) }

// UnmarshalJSON reads an input as the channel's owner does. The error is a *DecodeError or ErrNotObject.
func (h *HumanInput) UnmarshalJSON(data []byte) error {
	var p plainInput
	err := UnmarshalAs(humanInput, data, &p)
	if err == nil {
		*h = HumanInput(p)
	}
	return err
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
	err = h.UnmarshalJSON(data)
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

type plainMessage SessionMessage // without the methods

// MarshalJSON writes the entry as the channel's owner does, then its unknown members.
func (m SessionMessage) MarshalJSON() ([]byte, error) { return Marshal(plainMessage(m)) }

// UnmarshalJSON reads an entry as the channel's owner does, and keeps unknown members. The error is a *DecodeError or
// ErrNotObject.
func (m *SessionMessage) UnmarshalJSON(data []byte) error {
	_, err := Canonical("session.SessionMessage", data)
	var p plainMessage
	if err == nil {
		err = Unmarshal(data, &p)
	}
	if err == nil {
		*m = SessionMessage(p)
	}
	return err
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
	DraftIDs  []UUID                  `json:"draft_ids,omitempty"` // the drafts reviewed in it, in this order, each once
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
