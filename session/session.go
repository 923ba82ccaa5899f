// Package session keeps interactive sessions: conversations between people and an agent, with a goal, a log and drafts.
//
//	<team>/.sessions/<id>.json    one session; the id is its UUID
//
// A file is the session as Trusted Autonomy writes it (InteractiveSession), plus one member of ours, "atm".
// Unknown members are kept. It is changed under the team's lock and replaced in one step. A file that cannot be
// understood is refused with a *FileError and never overwritten.
//
// The log is a fold: the agent emits to its events and nowhere else, and every change of a session first folds what the
// events and the inbox have gained since the last one. So output that nobody watches is not lost. The log keeps the
// last MiB; older messages are in the events and the mailbox.
//
// A Store and a MailboxChannel may be used by several goroutines at once, a Session by one.
//
// Begin with Open, then Store.New or Store.Get. Nothing here runs an agent: package ptyrun/sessions has the runner's part.
package session

import (
	"bytes"
	"encoding/json"
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

const (
	// maxFile is the longest file that is read: a full log, and room for the members of others.
	maxFile = 16 << 20

	// maxLog is how many bytes of encoded messages a session keeps.
	maxLog = 1 << 20
)

// NoGoal is the goal of a session that has none of its own. Any completed goal completes it.
const NoGoal wire.UUID = "00000000-0000-0000-0000-000000000000"

// Session is one session, as it was when it was read, and its file.
type Session struct {
	InteractiveSession
	Notes Notes           `json:"atm,omitempty"`
	Extra json.RawMessage `json:"-"` // an object of unknown members
}

// MarshalJSON writes the session with its unknown members.
func (s Session) MarshalJSON() ([]byte, error) { return wire.Marshal(s.object()) }

// UnmarshalJSON reads a session as its owner does, and keeps unknown members. The error is a *wire.DecodeError or
// wire.ErrNotObject.
func (s *Session) UnmarshalJSON(data []byte) error {
	err := foreign.CheckInteractiveSession(data)
	var read Session
	if err == nil {
		err = wire.Unmarshal(data, read.object())
	}
	if err == nil {
		*s = read
	}
	return err
}

func (s *Session) object() any {
	return jsonextra.Object(&struct {
		Theirs *plainSession `json:",embed"`
		Notes  *Notes        `json:"atm,omitempty"`
	}{(*plainSession)(&s.InteractiveSession), &s.Notes}, &s.Extra)
}

// Notes are what we keep of a session beyond its owner's members.
type Notes struct {
	Seq     uint64              `json:"seq,omitzero"`     // the last event of the agent that was folded
	Dropped uint64              `json:"dropped,omitzero"` // messages removed from the log
	Goal    time.Time           `json:"goal,omitzero"`    // when an event reported the goal as complete
	Said    string              `json:"said,omitzero"`    // the agent's message deltas of the open turn
	Drafts  map[wire.UUID]Draft `json:"drafts,omitempty"`
	Runner  Binding             `json:"run,omitempty"`
	Extra   json.RawMessage     `json:"-"` // an object of unknown members
}

// MarshalJSON writes the notes with their unknown members.
func (n Notes) MarshalJSON() ([]byte, error) { return wire.Marshal(n.object()) }

// UnmarshalJSON reads notes, and keeps unknown members. The error is a *wire.DecodeError.
func (n *Notes) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, n.object()) }

func (n *Notes) object() any {
	type plain Notes
	return jsonextra.Object((*plain)(n), &n.Extra)
}

// decode reads a session file by the rules of its owner.
func decode(data []byte) (*Session, error) {
	s := &Session{}
	err := s.UnmarshalJSON(data)
	if err == nil && !wire.IsName(s.AgentID) {
		err = fmt.Errorf("its agent_id %q is not a name", s.AgentID)
	}
	return s, err
}

// encode returns the session as one line of JSON, the owner's members first and as the owner writes them. It drops the
// oldest messages beyond maxLog.
func (s *Session) encode() ([]byte, error) {
	first, size := len(s.Messages), 0
	for ; first > 0; first-- {
		size += encodedSize(s.Messages[first-1])
		if size > maxLog {
			break
		}
	}
	s.Messages = s.Messages[first:]
	s.Notes.Dropped += uint64(first)
	return wire.Marshal(s)
}

// encodedSize returns how many bytes of the file a message takes.
func encodedSize(m Entry) int {
	raw, _ := wire.Marshal(m)
	return len(raw) + len(",")
}

// LogMessage appends to the log. A message beyond maxLog loses its beginning. Bytes that are not UTF-8 become U+FFFD.
func (s *Session) LogMessage(sender, content string, at time.Time) {
	m := Entry{Sender: sender, Content: strings.ToValidUTF8(content, "\uFFFD"), Timestamp: at.UTC().Round(0)}
	if encodedSize(m) > maxLog { // a byte takes at most six
		m.Content = "…" + strings.ToValidUTF8(m.Content[max(0, len(m.Content)-maxLog/8):], "")
	}
	s.Messages = append(s.Messages, m)
	s.touch(m.Timestamp)
}

// AddInput logs human input once, with the id of its message: unread input is folded again at every change, even if it was dropped from the log.
func (s *Session) AddInput(in Input) {
	content := in.String()
	if in.Kind == foreign.HumanMessage {
		content = in.Text
	}
	id := json.RawMessage(`{"id":` + string(wire.Quote(string(in.ID))) + `}`)
	isLogged := slices.ContainsFunc(s.Messages, func(m Entry) bool {
		isSame := m.Sender == SenderHuman && m.Timestamp.Equal(in.At) && m.Content == content
		return isSame && (len(m.Extra) == 0 || in.ID == "" || bytes.Equal(m.Extra, id)) // older entries have no id
	})
	wasDropped := s.Notes.Dropped > 0 && len(s.Messages) > 0 && in.At.Before(s.Messages[0].Timestamp)
	if isLogged || wasDropped {
		return
	}
	s.LogMessage(SenderHuman, content, in.At)
	if in.ID != "" {
		s.Messages[len(s.Messages)-1].Extra = id
	}
	if in.IsVerdict() && in.ArtifactURI == nil {
		s.AddDraft(in.DraftID, now())
	}
}

// touch records activity of the agent or of people.
func (s *Session) touch(at time.Time) { s.UpdatedAt = later(s.UpdatedAt, at) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// now returns the time as it is written: UTC, without the monotonic clock.
func now() time.Time { return time.Now().UTC().Round(0) }

// Move moves the session to another state and logs that, followed by why: "by alice". It fails as Transition does.
func (s *Session) Move(to State, why string, now time.Time) error {
	now = later(s.UpdatedAt, now.UTC().Round(0)) // the clock may have been set back
	change := string(to)
	if s.State == Paused && to == Active {
		change = "resumed"
	}
	if err := s.Transition(to, now); err != nil {
		return err
	}
	s.Notes.Runner.AutoPaused = false
	s.LogMessage(SenderSystem, strings.TrimSpace("Session "+change+" "+why), now)
	return nil
}

// Entries returns the messages after the first n that the log ever had, as far as they are kept, and how many there
// have been in all: the n of the next call.
func (s *Session) Entries(n uint64) (list []Entry, all uint64) {
	dropped := s.Notes.Dropped
	all = dropped + uint64(len(s.Messages))
	return s.Messages[min(max(n, dropped), all)-dropped:], all
}

// Rules say when a session ends by itself; the zero value: never. Runners and all commands that look at it apply them.
type Rules struct {
	WhenIdle time.Duration // nobody has said anything for so long, and the agent is in no turn; 0: never
	OnGoal   bool          // its goal is complete
}

// ApplyRules completes a session if a rule says so, and records which.
func (s *Session) ApplyRules(r Rules, now time.Time) error {
	ended := s.EndedBy(r, now)
	if ended == "" {
		return nil
	}
	s.Notes.Runner.Ended = ended
	return s.Move(Completed, "("+ended+")", now)
}

// EndedBy returns the rule that completes a session now; "": none.
func (s *Session) EndedBy(r Rules, now time.Time) string {
	switch {
	case s.State != Active:
	case r.OnGoal && !s.Notes.Goal.IsZero():
		return "goal_complete"
	case r.WhenIdle > 0 && !now.Before(s.UpdatedAt.Add(r.WhenIdle)):
		return fmt.Sprintf("idle_timeout: %gs", r.WhenIdle.Seconds())
	}
	return ""
}
