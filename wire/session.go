package wire

import (
	"fmt"
	"slices"
	"time"
)

// The vocabulary of Trusted Autonomy's session channel: what a session says
// (tag "event_type"), what a person says to it (tag "input_type"), and the
// session itself.

// SessionEvent is what a session tells the channel.
type SessionEvent struct {
	Kind          string       `wire:"event_type" kinds:"agent_output draft_ready goal_complete waiting_for_input status_update"`
	Stream        OutputStream `wire:"stream" on:"agent_output"`
	Content       string       `wire:"content" on:"agent_output"`
	DraftID       UUID         `wire:"draft_id" on:"draft_ready"`
	Summary       string       `wire:"summary" on:"draft_ready"`
	ArtifactCount uint64       `wire:"artifact_count" on:"draft_ready"`
	GoalID        UUID         `wire:"goal_id" on:"goal_complete"`
	Prompt        string       `wire:"prompt" on:"waiting_for_input"`
	Message       string       `wire:"message" on:"status_update"`
}

// String is the channel's own line for the event.
func (e SessionEvent) String() string {
	switch e.Kind {
	case "agent_output":
		return fmt.Sprintf("[%s] %s", e.Stream, e.Content)
	case "draft_ready":
		return fmt.Sprintf("Draft ready: %s (%d artifacts) — %s", e.DraftID, e.ArtifactCount, e.Summary)
	case "goal_complete":
		return "Goal complete: " + string(e.GoalID)
	case "waiting_for_input":
		return "Waiting for input: " + e.Prompt
	case "status_update":
		return "Status: " + e.Message
	}
	return e.Kind
}

// OutputStream is where output came from: "std_out" or "std_err" on the wire,
// stdout and stderr to people.
type OutputStream string

func (OutputStream) variants() []string { return []string{"std_out", "std_err"} }

func (s OutputStream) String() string {
	switch s {
	case "std_out":
		return "stdout"
	case "std_err":
		return "stderr"
	}
	return string(s)
}

// HumanInput is what a person says to a session. ArtifactURI nil is the whole
// draft.
type HumanInput struct {
	Kind        string  `wire:"input_type" kinds:"message approve reject abort"`
	Text        string  `wire:"text" on:"message"`
	DraftID     UUID    `wire:"draft_id" on:"approve reject"`
	ArtifactURI *string `wire:"artifact_uri" on:"approve reject"`
	Reason      string  `wire:"reason" on:"reject"`
}

// String is the channel's own line for the input.
func (h HumanInput) String() string {
	what := fmt.Sprintf("draft %s", h.DraftID)
	if h.ArtifactURI != nil {
		what = fmt.Sprintf("%s in draft %s", *h.ArtifactURI, h.DraftID)
	}
	switch h.Kind {
	case "message":
		return "Message: " + h.Text
	case "approve":
		return "Approve " + what
	case "reject":
		return "Reject " + what + ": " + h.Reason
	case "abort":
		return "Abort session"
	}
	return h.Kind
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

func (InteractiveSessionState) variants() []string {
	return []string{"active", "paused", "completed", "aborted"}
}

func (s InteractiveSessionState) String() string { return string(s) }

// Alive reports whether something may still be said in the session.
func (s InteractiveSessionState) Alive() bool { return s == SessionActive || s == SessionPaused }

// After reports whether a session may go from one state to this one.
func (s InteractiveSessionState) After(from InteractiveSessionState) bool {
	switch from {
	case SessionActive:
		return s == SessionPaused || s == SessionCompleted || s == SessionAborted
	case SessionPaused:
		return s == SessionActive || s == SessionAborted
	}
	return false
}

// SessionMessage is one thing that was said in a session.
type SessionMessage struct {
	Sender    string    `wire:"sender"` // human, agent or ta-system
	Content   string    `wire:"content"`
	Timestamp time.Time `wire:"timestamp"`
}

// InteractiveSession is one running conversation with an agent.
type InteractiveSession struct {
	SessionID UUID                    `wire:"session_id"`
	GoalID    UUID                    `wire:"goal_id"`
	ChannelID string                  `wire:"channel_id"` // cli:tty0, discord:thread:123
	AgentID   string                  `wire:"agent_id"`
	State     InteractiveSessionState `wire:"state"`
	CreatedAt time.Time               `wire:"created_at"`
	UpdatedAt time.Time               `wire:"updated_at"`
	Messages  []SessionMessage        `wire:"messages,omit"`
	DraftIDs  []UUID                  `wire:"draft_ids,omit"` // in the order in which they came, each once
}

// Transition moves the session to another state. The error, a *SessionError,
// changes nothing.
func (s *InteractiveSession) Transition(to InteractiveSessionState, now time.Time) error {
	if !to.After(s.State) {
		return &SessionError{Reason: fmt.Sprintf("invalid session transition from %s to %s", s.State, to)}
	}
	s.State, s.UpdatedAt = to, now
	return nil
}

// Say adds to what was said.
func (s *InteractiveSession) Say(sender, content string, now time.Time) {
	s.Messages = append(s.Messages, SessionMessage{Sender: sender, Content: content, Timestamp: now})
	s.UpdatedAt = now
}

// AddDraft notes a draft, once.
func (s *InteractiveSession) AddDraft(id UUID, now time.Time) {
	s.UpdatedAt = now
	if !slices.Contains(s.DraftIDs, id) {
		s.DraftIDs = append(s.DraftIDs, id)
	}
}

// Elapsed is how long the session has lived, for people: 42s, 5m 3s, 2h 5m.
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

// InteractiveConfig says how sessions are held. Reading {} gives what the
// declaration says; the zero value is theirs as well, and another.
type InteractiveConfig struct {
	Enabled         bool    `wire:"enabled,default=false"`
	OutputCapture   string  `wire:"output_capture,default=pipe"` // pipe, pty, log
	AllowHumanInput bool    `wire:"allow_human_input,default=true"`
	AutoExitOn      *string `wire:"auto_exit_on"` // "idle_timeout: 300s", "goal_complete"
	ResumeCmd       *string `wire:"resume_cmd"`   // "claude --resume {session_id}"
}

// SessionError is what a session channel refuses.
type SessionError struct{ Reason string }

func (e *SessionError) Error() string { return "session error: " + e.Reason }

// ErrChannelClosed is returned by a session channel whose other end is gone.
var ErrChannelClosed error = channelClosed{}

type channelClosed struct{}

func (channelClosed) Error() string { return "channel closed" }
