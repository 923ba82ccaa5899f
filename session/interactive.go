package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/jsonextra"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// The senders of messages in a session.
const (
	SenderHuman  = "human"
	SenderAgent  = "agent"
	SenderSystem = "ta-system" // the session itself: state, drafts, goals
)

// Entry is an entry in a session's log.
type Entry struct {
	Sender    string          `json:"sender"` // human, agent or ta-system
	Content   string          `json:"content"`
	Timestamp time.Time       `json:"timestamp"`
	Extra     json.RawMessage `json:"-"` // an object of unknown members
}

// MarshalJSON writes the entry as the channel's owner does, then its unknown members.
func (m Entry) MarshalJSON() ([]byte, error) { return wire.Marshal(m.object()) }

func (m *Entry) object() any {
	type plain Entry // without the methods
	return jsonextra.Object((*plain)(m), &m.Extra)
}

// UnmarshalJSON reads an entry as the channel's owner does, and keeps unknown members. The error is a *wire.DecodeError
// or wire.ErrNotObject.
func (m *Entry) UnmarshalJSON(data []byte) error {
	err := foreign.CheckSessionMessage(data)
	var read Entry
	if err == nil {
		err = wire.Unmarshal(data, read.object())
	}
	if err == nil {
		*m = read
	}
	return err
}

// InteractiveSession is one conversation with an agent, as Trusted Autonomy has it.
type InteractiveSession struct {
	SessionID wire.UUID   `json:"session_id"`
	GoalID    wire.UUID   `json:"goal_id"`
	ChannelID string      `json:"channel_id"` // cli:tty0, discord:thread:123
	AgentID   string      `json:"agent_id"`
	State     State       `json:"state"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	Messages  []Entry     `json:"messages,omitempty"`
	DraftIDs  []wire.UUID `json:"draft_ids,omitempty"` // the drafts reviewed in it, in this order, each once
}

type plainSession InteractiveSession // without the methods

// MarshalJSON writes the session as the channel's owner does, and unknown members of its log's entries. What UnmarshalJSON
// would refuse is an error.
func (s InteractiveSession) MarshalJSON() ([]byte, error) {
	data, err := wire.Marshal(plainSession(s))
	if err == nil {
		err = foreign.CheckInteractiveSession(data)
	}
	return data, err
}

// UnmarshalJSON reads a session as the channel's owner does. The error is a *wire.DecodeError or wire.ErrNotObject.
func (s *InteractiveSession) UnmarshalJSON(data []byte) error {
	err := foreign.CheckInteractiveSession(data)
	var read plainSession
	if err == nil {
		err = wire.Unmarshal(data, &read)
	}
	if err == nil {
		*s = InteractiveSession(read)
	}
	return err
}

// LogMessage appends to the log. Bytes that are not UTF-8 become U+FFFD.
func (s *InteractiveSession) LogMessage(sender, content string, at time.Time) {
	at = at.UTC().Round(0)
	s.Messages = append(s.Messages, Entry{Sender: sender, Content: strings.ToValidUTF8(content, "\uFFFD"), Timestamp: at})
	s.touch(at)
}

// AddDraft records that a draft was reviewed in the session. Repeated, it is activity and nothing else.
func (s *InteractiveSession) AddDraft(id wire.UUID, at time.Time) {
	if !slices.Contains(s.DraftIDs, id) {
		s.DraftIDs = append(s.DraftIDs, id)
	}
	s.touch(at)
}

// touch records activity of the agent or of people.
func (s *InteractiveSession) touch(at time.Time) { s.UpdatedAt = later(s.UpdatedAt, at) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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

// Error is the error for an operation that a session channel refuses.
type Error struct{ Reason string }

func (e *Error) Error() string { return "session error: " + e.Reason }

// ErrChannelClosed is the owner's error for a session channel whose session is over.
var ErrChannelClosed = errors.New("channel closed")
